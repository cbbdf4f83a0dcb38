//! Erasing without copies in free pages or in the write-ahead log.
//!
//! Four steps: the transaction that replaces or deletes rows overwrites the freed bytes
//! (`secure_delete`); the search index is merged, which drops deleted words; VACUUM writes the file again
//! without free space, which earlier programs did not overwrite; and the log is truncated. Removing a
//! conversation does not run VACUUM.

use std::io::ErrorKind;

use rusqlite::Connection;

use super::connection;
use super::fault::{Fault, reason};
use crate::Error;
use crate::error::Reason;

/// Writes the file again, and truncates the log.
pub(super) fn clean(db: &Connection) -> Result<(), Error> {
    let cleaned = db.execute_batch("VACUUM").map_err(Fault::from).and_then(|()| checkpoint(db));
    cleaned.map_err(copies_left)
}

/// Truncates the log. Freed bytes of the file are overwritten already.
pub(super) fn clean_log(db: &Connection) -> Result<(), Error> {
    checkpoint(db).map_err(copies_left)
}

fn copies_left(fault: Fault) -> Error {
    match fault {
        Fault::Database(error) => {
            let Reason { text, cause } = reason(&error);
            Error::CopiesLeft { reason: text, source: cause }
        }
        Fault::Refused(error) => Error::CopiesLeft { reason: error.to_string(), source: None },
    }
}

/// Moves the content of the log into the file, syncs the file, and truncates the log to zero bytes.
pub(super) fn checkpoint(db: &Connection) -> Result<(), Fault> {
    let truncate = || db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
    // SQLite waits for readers and writers, but not for a checkpoint of another connection.
    let is_busy: bool = connection::repeat_while(|busy| matches!(busy, Ok(true)), truncate)?;
    if is_busy {
        return Err(Error::failed(EMPTYING, "another process uses it for a long time").into());
    }
    // SQLite does not sync the truncation. After a power failure the old log would come back, with
    // the erased data.
    let log = db.path().map(|path| format!("{path}-wal"));
    match log.map(|log| std::fs::File::open(log).and_then(|log| log.sync_all())) {
        Some(Err(error)) if error.kind() != ErrorKind::NotFound => {
            Err(Error::failed(EMPTYING, error).into())
        }
        _ => Ok(()),
    }
}

const EMPTYING: &str = "emptying the log";
