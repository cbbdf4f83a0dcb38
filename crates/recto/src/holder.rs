//! Whether the holder of a lease lives, if it is on this machine.
//!
//! A holder locks a file of its own in the folder for temporary files. The lock is gone as soon as the
//! holder is, however it went: the operating system sees to that. Whoever can lock the file knows that
//! its holder has died. Where there is no such file the holder is elsewhere, and nothing is known.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::PathBuf;

/// The folder of the files.
const FOLDER: &str = "recto-scopes";

/// Is held while a scope lives.
#[derive(Debug)]
pub(crate) struct Holder {
    id: String,
    /// `None` where no file can be made: then only the time counts.
    file: Option<File>,
}

/// What is known of a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Alive,
    Dead,
    Unknown,
}

impl Holder {
    /// Holds a scope of this name, which nobody has used before.
    pub(crate) fn new(id: &str) -> Holder {
        let file = path(id).and_then(|path| {
            std::fs::create_dir_all(path.parent()?).ok()?;
            let file = OpenOptions::new().write(true).create_new(true).open(path).ok()?;
            file.try_lock().ok()?;
            Some(file)
        });
        Holder { id: id.to_owned(), file }
    }

    /// The scope has ended. If a holder is only dropped, others see that it has died.
    pub(crate) fn release(mut self) {
        if self.file.take().is_some() {
            Holder::forget(&self.id);
        }
    }

    /// Whether the holder of a scope lives.
    pub(crate) fn life(id: &str) -> Life {
        let opened = path(id).and_then(|path| OpenOptions::new().write(true).open(path).ok());
        match opened.map(|file| file.try_lock()) {
            Some(Ok(())) => Life::Dead,
            Some(Err(TryLockError::WouldBlock)) => Life::Alive,
            Some(Err(TryLockError::Error(_))) | None => Life::Unknown,
        }
    }

    /// Nobody asks for this scope any more.
    pub(crate) fn forget(id: &str) {
        if let Some(path) = path(id) {
            // It may be gone already.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Names come from a store that others may write to, so only what cannot lead elsewhere is one.
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
    fn a_holder_lives_until_it_is_dropped_and_leaves_nothing_if_it_is_released() {
        let id = uuid::Uuid::now_v7().to_string();
        assert_eq!(Holder::life(&id), Life::Unknown);
        let holder = Holder::new(&id);
        assert_eq!(Holder::life(&id), Life::Alive);
        drop(holder);
        assert_eq!(Holder::life(&id), Life::Dead);
        Holder::forget(&id);
        let id = uuid::Uuid::now_v7().to_string();
        Holder::new(&id).release();
        assert_eq!(Holder::life(&id), Life::Unknown);
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        for id in ["", "../../etc/passwd", "a/b", "a\\b", "a.b", &"a".repeat(65)] {
            assert_eq!(path(id), None, "{id}");
        }
    }
}
