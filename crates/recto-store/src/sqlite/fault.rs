//! What SQLite answers when it does not do what it was asked for, in words that quote no data.

use rusqlite::ErrorCode;

use crate::Error;

/// Why a piece of work on the tables came to nothing.
#[derive(Debug)]
pub(super) enum Fault {
    /// It is refused, and the tables are fine.
    Refused(Error),
    /// SQLite failed.
    Database(rusqlite::Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Refused(error)
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Fault {
        Fault::Database(error)
    }
}

impl Fault {
    /// The error that a caller sees.
    pub(super) fn during(self, doing: &'static str) -> Error {
        match self {
            Fault::Refused(error) => error,
            Fault::Database(error) => Error::failed(doing, reason(&error)),
        }
    }
}

/// SQLite's result code, in words. The message that comes with it can quote rows, so it stays here.
pub(super) fn reason(error: &rusqlite::Error) -> String {
    let Some(error) = error.sqlite_error() else {
        return "a stored value has another type than it was written with".to_owned();
    };
    let (name, meaning) = match error.code {
        ErrorCode::DatabaseBusy => ("SQLITE_BUSY", "another writer took too long"),
        ErrorCode::DatabaseLocked => ("SQLITE_LOCKED", "a table is locked"),
        ErrorCode::OutOfMemory => ("SQLITE_NOMEM", "out of memory"),
        ErrorCode::ReadOnly => ("SQLITE_READONLY", "the file cannot be written"),
        ErrorCode::SystemIoFailure => ("SQLITE_IOERR", "disk I/O error"),
        ErrorCode::DatabaseCorrupt => ("SQLITE_CORRUPT", "the file is damaged"),
        ErrorCode::DiskFull => ("SQLITE_FULL", "disk full"),
        ErrorCode::CannotOpen => ("SQLITE_CANTOPEN", "the file cannot be opened"),
        ErrorCode::FileLockingProtocolFailed => ("SQLITE_PROTOCOL", "file locking failed"),
        ErrorCode::PermissionDenied => ("SQLITE_PERM", "permission denied"),
        ErrorCode::TooBig => ("SQLITE_TOOBIG", "a value is too long"),
        ErrorCode::ConstraintViolation => ("SQLITE_CONSTRAINT", "a row contradicts another"),
        ErrorCode::NotADatabase => ("SQLITE_NOTADB", "the file is not a database"),
        _ => return format!("SQLite answered with code {}", error.extended_code),
    };
    match error.extended_code > 0xff {
        true => format!("{meaning} ({name}, extended code {})", error.extended_code),
        false => format!("{meaning} ({name})"),
    }
}

pub(super) fn is(error: &rusqlite::Error, code: ErrorCode) -> bool {
    error.sqlite_error_code() == Some(code)
}
