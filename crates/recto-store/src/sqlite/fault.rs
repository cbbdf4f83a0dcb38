//! Errors of SQLite, described without stored data.

use rusqlite::ErrorCode;

use crate::Error;
use crate::error::{Cause, Reason};

/// Why an operation on the tables failed.
#[derive(Debug)]
pub(super) enum Fault {
    /// The request was refused; SQLite works.
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
    /// Converts to the error that the caller receives.
    pub(super) fn during(self, action: &'static str) -> Error {
        match self {
            Fault::Refused(error) => error,
            Fault::Database(error) => Error::failed(action, reason(&error)),
        }
    }

    /// The fault as a log shows it: without stored data and paths.
    pub(super) fn for_log(&self) -> String {
        match self {
            Fault::Refused(Error::Failed { reason, .. }) => reason.clone(),
            Fault::Refused(error) => error.code().to_owned(),
            Fault::Database(error) => reason(error).text,
        }
    }
}

/// SQLite's result code, in words and as the cause. SQLite's message is dropped, because it can quote
/// rows.
pub(super) fn reason(error: &rusqlite::Error) -> Reason {
    match error.sqlite_error() {
        Some(error) => {
            Reason::from(meaning(error)).with_cause(Cause::new(*error, is_damage(error)))
        }
        None => Reason::from(WrongType.to_string()).with_cause(Cause::new(WrongType, true)),
    }
}

/// A stored value that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("a stored value has another type than it was written with")]
struct WrongType;

/// Whether SQLite reports damage. Damage can cause many codes, so every code counts as damage except those
/// that say what SQLite cannot do now.
fn is_damage(error: &rusqlite::ffi::Error) -> bool {
    !matches!(
        error.code,
        ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::OutOfMemory
            | ErrorCode::ReadOnly
            | ErrorCode::DiskFull
            | ErrorCode::CannotOpen
            | ErrorCode::FileLockingProtocolFailed
            | ErrorCode::PermissionDenied
            | ErrorCode::OperationInterrupted
    ) && error.extended_code != rusqlite::ffi::SQLITE_IOERR_SHMSIZE
}

fn meaning(error: &rusqlite::ffi::Error) -> String {
    let (name, meaning) = match error.code {
        // SQLite creates the shared-memory index of its write-ahead log when it opens the file.
        _ if error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE => {
            ("SQLITE_IOERR", "the disk is full")
        }
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
        _ => return format!("SQLite returned code {}", error.extended_code),
    };
    match error.extended_code > 0xff {
        true => format!("{meaning} ({name}, extended code {})", error.extended_code),
        false => format!("{meaning} ({name})"),
    }
}

pub(super) fn is(error: &rusqlite::Error, code: ErrorCode) -> bool {
    error.sqlite_error_code() == Some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_of_an_error_is_the_result_code_of_sqlite() {
        let db = rusqlite::Connection::open_in_memory().unwrap();
        db.execute_batch("CREATE TABLE t (x UNIQUE); INSERT INTO t VALUES (1)").unwrap();
        let failure = db.execute_batch("INSERT INTO t VALUES (1)").unwrap_err();
        let error = Fault::from(failure).during("testing");
        let source = std::error::Error::source(&error).unwrap();
        let cause = source.downcast_ref::<Cause>().unwrap();
        let code = cause.downcast_ref::<rusqlite::ffi::Error>().unwrap();
        assert_eq!(code.extended_code, rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE);
    }

    #[test]
    fn a_full_disk_is_named_when_the_log_cannot_be_opened() {
        let error = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_SHMSIZE);
        assert!(meaning(&error).starts_with("the disk is full"), "{}", meaning(&error));
    }

    #[test]
    fn a_lock_is_no_damage() {
        let of = |code| {
            Fault::from(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None))
        };
        for code in [rusqlite::ffi::SQLITE_BUSY, rusqlite::ffi::SQLITE_FULL] {
            assert!(!of(code).during("testing").is_damage(), "{code}");
        }
        for code in [rusqlite::ffi::SQLITE_CORRUPT, rusqlite::ffi::SQLITE_NOTADB] {
            assert!(of(code).during("testing").is_damage(), "{code}");
        }
        let db = rusqlite::Connection::open_in_memory().unwrap();
        let wrong = db.query_row("SELECT 'text'", [], |row| row.get::<_, i64>(0)).unwrap_err();
        assert!(Fault::from(wrong).during("testing").is_damage());
    }

    #[test]
    fn errors_do_not_quote_what_is_stored() {
        let db = rusqlite::Connection::open_in_memory().unwrap();
        db.execute_batch("CREATE TABLE t (x UNIQUE); INSERT INTO t VALUES ('secret')").unwrap();
        let failures = [
            db.execute_batch("INSERT INTO t VALUES ('secret')").unwrap_err(),
            db.execute_batch("SELECT secret").unwrap_err(),
            db.query_row("SELECT x FROM t", [], |row| row.get::<_, i64>(0)).unwrap_err(),
        ];
        for failure in failures {
            let error = Fault::from(failure).during("testing");
            assert!(!error.to_string().contains("secret"), "{error}");
            assert!(!format!("{error:?}").contains("secret"), "{error:?}");
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            assert!(cause.is_none_or(|cause| !cause.contains("secret")));
        }
    }
}
