//! Leaving no copy behind: not in free pages, not in the write-ahead log.
//!
//! Four things together: freed bytes are overwritten in the transaction that replaces them
//! (`secure_delete`), the search index is merged so that deleted words leave it, the file is written
//! anew without its free space, and the log is emptied.

use rusqlite::Connection;

use super::fault::{Fault, reason};
use crate::Error;

/// Writes the file anew, and empties the log.
pub(super) fn clean(db: &Connection) -> Result<(), Error> {
    let cleaned = db.execute_batch("VACUUM").map_err(Fault::from).and_then(|()| checkpoint(db));
    cleaned.map_err(|fault| match fault {
        Fault::Database(error) => Error::CopiesLeft { reason: reason(&error) },
        Fault::Refused(error) => Error::CopiesLeft { reason: error.to_string() },
    })
}

/// Moves all that is in the log into the file, makes it durable there, and cuts the log to nothing.
pub(super) fn checkpoint(db: &Connection) -> Result<(), Fault> {
    let is_busy: bool = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    match is_busy {
        false => Ok(()),
        true => Err(Error::failed("emptying the log", "somebody is reading for long").into()),
    }
}
