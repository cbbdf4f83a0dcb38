//! Detects whether the holder of a temporary scope is alive, if it runs on this machine.
//!
//! A holder locks a file in the folder for temporary files. The operating system releases the lock when
//! the process ends for any reason. If a process can lock the file, the holder has ended. If there is no such
//! file, the holder runs on another machine or could not create the file, and its state is unknown.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The name of the folder with the lock files.
const FOLDER: &str = "recto-scopes";

/// The lock of a scope of this process.
#[derive(Debug)]
pub(crate) struct Holder {
    id: String,
    /// `None` if the file could not be created: then only the time of the lease counts.
    file: Option<File>,
}

/// Whether a holder is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HolderState {
    Alive,
    Dead,
    Unknown,
}

impl Holder {
    /// Locks the file of a new scope.
    pub(crate) fn lock(id: &str) -> Holder {
        let file = path(id).and_then(|path| {
            let locked = locked_file(&path);
            locked.inspect_err(|error| warn(error, "a temporary scope has no lock file")).ok()
        });
        Holder { id: id.to_owned(), file }
    }

    /// Removes the file after the scope has ended. A holder that is only dropped counts as dead.
    pub(crate) fn release(mut self) {
        if self.file.take().is_some() {
            Holder::remove_file(&self.id);
        }
    }

    /// Whether the holder of a scope is alive.
    pub(crate) fn state(id: &str) -> HolderState {
        let Some(path) = path(id) else { return HolderState::Unknown };
        let opened = OpenOptions::new().write(true).open(path);
        match opened.map_err(TryLockError::Error).and_then(|file| file.try_lock()) {
            Ok(()) => HolderState::Dead,
            Err(TryLockError::WouldBlock) => HolderState::Alive,
            Err(TryLockError::Error(error)) => {
                if error.kind() != ErrorKind::NotFound {
                    warn(&error, "the lock file of a temporary scope cannot be locked");
                }
                HolderState::Unknown
            }
        }
    }

    /// Removes the file of a scope that has ended.
    pub(crate) fn remove_file(id: &str) {
        if let Some(path) = path(id) {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    warn(&error, "the lock file of a temporary scope could not be removed");
                }
                _ => {}
            }
        }
    }
}

/// Creates a lock file and locks it.
fn locked_file(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.try_lock()?;
    Ok(file)
}

/// Logs an error without the path.
fn warn(error: &io::Error, message: &str) {
    let error = error.kind().to_string();
    tracing::warn!(error, "{message}");
}

/// The path of a scope's lock file. Ids come from the store, which other programs may write to, so an id
/// that could leave the folder is refused.
fn path(id: &str) -> Option<PathBuf> {
    let is_plain = !id.is_empty()
        && id.len() <= 64
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_plain.then(|| std::env::temp_dir().join(FOLDER).join(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_alive_until_it_is_dropped_and_a_released_one_leaves_no_file() {
        let id = recto_store::new_id(0).to_string();
        assert_eq!(Holder::state(&id), HolderState::Unknown);
        let holder = Holder::lock(&id);
        assert_eq!(Holder::state(&id), HolderState::Alive);
        drop(holder);
        assert_eq!(Holder::state(&id), HolderState::Dead);
        Holder::remove_file(&id);
        let id = recto_store::new_id(0).to_string();
        Holder::lock(&id).release();
        assert_eq!(Holder::state(&id), HolderState::Unknown);
    }

    #[test]
    fn an_id_cannot_leave_the_folder() {
        for id in ["", "../../etc/passwd", "a/b", "a\\b", "a.b", &"a".repeat(65)] {
            assert_eq!(path(id), None, "{id}");
        }
    }
}
