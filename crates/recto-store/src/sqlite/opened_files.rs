//! Whether the paths of a store still name the files that a connection has open: the file, its write-ahead
//! log and the index of the log.
//!
//! SQLite keeps writing to files that were deleted or replaced, so no other connection finds what it writes.
//! If only the index of the log is replaced, processes do not see each other's locks.
//!
//! The check before each commit reads the metadata of the log only if the folder may have changed since the
//! last check. On kernels with fine timestamps, a file whose time was read gets a new time with its next
//! write, and the sync after that write takes half as long again. Deleting or replacing a file changes the
//! time of its folder.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::Connection;

use super::fault::Fault;
use crate::Error;

/// Which file a path names: device and inode on Unix. Other systems do not delete or replace open files.
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

/// The age from which the time of a folder is trusted: a change that follows another one closely may leave
/// the time as it is.
const MIN_AGE: Duration = Duration::from_secs(1);

/// The files that a connection has open.
#[derive(Debug)]
pub(super) struct OpenedFiles {
    /// When the folder was last changed, according to the last check of all files.
    folder_changed: Option<SystemTime>,
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
        Ok(OpenedFiles { folder_changed: None, file: OpenedFile::of(path), log, log_index })
    }

    /// Updates the log and its index, which a new connection may have created again.
    pub(super) fn opened_again(&mut self, db: &Connection) -> Result<(), Fault> {
        let OpenedFiles { log, log_index, .. } = OpenedFiles::of(self.path().to_owned(), db)?;
        (self.log, self.log_index) = (log, log_index);
        self.folder_changed = None;
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.file.path
    }

    /// Fails if one of the files was deleted or replaced.
    pub(super) fn check(&mut self) -> Result<(), Error> {
        let changed = self.time_of_folder();
        let what = if !self.file.is_same() {
            "the file"
        } else if changed.is_some() && changed == self.folder_changed {
            return Ok(());
        } else if !self.log.is_same() {
            "the write-ahead log (FILE-wal)"
        } else if !self.log_index.is_same() {
            "the index of the write-ahead log (FILE-shm)"
        } else {
            self.folder_changed = changed;
            return Ok(());
        };
        let reason =
            format!("{what} was deleted or replaced after it was opened; open the store again");
        Err(Error::failed("writing", reason))
    }

    /// When the folder was last changed, if that is long enough ago.
    fn time_of_folder(&self) -> Option<SystemTime> {
        let folder = match self.file.path.parent()? {
            folder if folder.as_os_str().is_empty() => Path::new("."),
            folder => folder,
        };
        let changed = std::fs::metadata(folder).ok()?.modified().ok()?;
        (changed.elapsed().ok()? >= MIN_AGE).then_some(changed)
    }

    /// Whether the log was deleted or replaced, but neither the file nor the index of the log, which has the
    /// locks.
    pub(super) fn is_only_log_lost(&self) -> bool {
        self.file.is_same() && self.log_index.is_same() && !self.log.is_same()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_lost_log_is_found_by_the_time_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let db = Connection::open(&path).unwrap();
        db.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (a)").unwrap();
        let mut files = OpenedFiles::of(path.clone(), &db).unwrap();
        assert!(files.check().is_ok() && files.folder_changed.is_none(), "the folder is too new");
        let hour_ago = SystemTime::now() - Duration::from_secs(3_600);
        fs::File::open(folder.path()).unwrap().set_modified(hour_ago).unwrap();
        assert!(files.check().is_ok() && files.folder_changed.is_some());
        assert!(files.check().is_ok());
        fs::remove_file(beside(&path, "-wal")).unwrap();
        assert!(files.check().unwrap_err().to_string().contains("FILE-wal"));
    }
}
