//! Whether the paths of a store still name the files that a connection has open: the file, its write-ahead log
//! and the index of the log.
//!
//! SQLite keeps writing to files that were deleted or replaced, which nothing finds afterwards. If only the index
//! of the log is replaced, processes do not see each other's locks.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::fault::Fault;
use crate::Error;

/// Which file a path names: device and number on Unix. Other systems do not delete or replace open files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity(u64, u64);

impl Identity {
    fn of(path: &Path) -> Option<Identity> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let found = std::fs::metadata(path).ok()?;
            Some(Identity(found.dev(), found.ino()))
        }
        #[cfg(not(unix))]
        {
            let _ = path;
            None
        }
    }
}

/// The path of a file that SQLite keeps beside its file.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// A file that may be deleted or replaced while it is open.
#[derive(Debug)]
struct OpenedFile {
    path: PathBuf,
    identity: Option<Identity>,
}

impl OpenedFile {
    fn of(path: PathBuf) -> OpenedFile {
        let identity = Identity::of(&path);
        OpenedFile { path, identity }
    }

    fn is_same(&self) -> bool {
        Identity::of(&self.path) == self.identity
    }
}

/// The files that a connection has open.
#[derive(Debug)]
pub(super) struct OpenedFiles {
    file: OpenedFile,
    /// The write-ahead log.
    log: OpenedFile,
    /// The index of the log, which also has the locks of readers and writers.
    log_index: OpenedFile,
}

impl OpenedFiles {
    pub(super) fn of(path: PathBuf, db: &Connection) -> Result<OpenedFiles, Fault> {
        // The first read opens the log.
        db.query_row("PRAGMA schema_version", [], |_| Ok(()))?;
        let log = OpenedFile::of(beside(&path, "-wal"));
        let log_index = OpenedFile::of(beside(&path, "-shm"));
        Ok(OpenedFiles { file: OpenedFile::of(path), log, log_index })
    }

    /// Updates the log, which a new connection may have created again.
    pub(super) fn opened_again(&mut self, db: &Connection) -> Result<(), Fault> {
        let OpenedFiles { log, log_index, .. } = OpenedFiles::of(self.path().to_owned(), db)?;
        (self.log, self.log_index) = (log, log_index);
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.file.path
    }

    /// Fails if one of the files was deleted or replaced.
    pub(super) fn check(&self) -> Result<(), Error> {
        let what = if !self.file.is_same() {
            "the file"
        } else if !self.log.is_same() {
            "the write-ahead log (FILE-wal)"
        } else if !self.log_index.is_same() {
            "the index of the write-ahead log (FILE-shm)"
        } else {
            return Ok(());
        };
        let reason =
            format!("{what} was deleted or replaced after it was opened; open the store again");
        Err(Error::failed("writing", reason))
    }

    /// Whether the log was deleted or replaced, and neither the file nor the locks.
    pub(super) fn is_only_log_lost(&self) -> bool {
        self.file.is_same() && self.log_index.is_same() && !self.log.is_same()
    }
}
