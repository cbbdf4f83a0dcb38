//! Failures of an attempt, classified by what they mean for a retry.
//!
//! The server's messages are dropped, because they can quote rows. Errors contain the SQLSTATE and a
//! description from this file.

use deadpool_postgres::{PoolError, TimeoutType};
use tokio_postgres::error::SqlState;

use crate::Error;
use crate::error::{Cause, Reason};

/// A SQLSTATE: the code of an error that the server reported. The server's message is dropped, because
/// it can quote rows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("SQLSTATE {0}")]
pub struct SqlStateCode(pub String);

impl SqlStateCode {
    /// Whether the server reports damage, or cannot read what it stores. All other codes mean that the server
    /// forbids the request or cannot execute it now, for example because of a lock, a time limit or a full
    /// disk.
    fn is_damage(&self) -> bool {
        let class = self.0.get(..2).unwrap_or_default();
        matches!(class, "21" | "22" | "23" | "42" | "58" | "XX") && self.0 != "42501"
    }
}

/// Why an attempt failed.
#[derive(Debug)]
pub(super) enum Fault {
    /// The request was refused; another attempt would be refused too.
    Refused(Error),
    /// Nothing has changed, because another transaction used the same rows.
    Collided(Reason),
    /// The connection was lost: the server has executed the attempt completely or not at all.
    Lost(Reason),
    /// The server did not answer within the time limit: it has executed the attempt completely or not at
    /// all, or will do so. Another attempt would have to wait as long.
    Silent(Reason),
    /// No connection could be opened, so the server has received nothing.
    Unreachable(Reason),
    /// Nothing has changed, and another attempt would not help.
    Failed(Reason),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Refused(error)
    }
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Fault {
        let Some(state) = error.code() else {
            // The server sent no error code: the connection was lost, or the driver failed, for example to
            // decode an answer.
            let lost = error.is_closed() || is_io(&error);
            return match lost {
                true => Fault::Lost(with_io("the connection to the server was lost", error)),
                false => Fault::Failed(unexpected(&error)),
            };
        };
        let reason = described(state);
        match state.code() {
            "40001" | "40P01" => Fault::Collided(reason),
            "40003" | "57P01" | "57P02" | "57P03" | "57P05" => Fault::Lost(reason),
            code if code.starts_with("08") => Fault::Lost(reason),
            _ => Fault::Failed(reason),
        }
    }
}

impl From<PoolError> for Fault {
    fn from(error: PoolError) -> Fault {
        match error {
            PoolError::Timeout(TimeoutType::Wait) => {
                Fault::Failed("all connections of the pool stayed busy; allow more of them".into())
            }
            PoolError::Timeout(_) => Fault::Unreachable("the server does not answer".into()),
            PoolError::Backend(error) => match error.code() {
                // The server is starting, stopping or full: a later attempt can succeed.
                Some(state) if matches!(state.code(), "57P01" | "57P02" | "57P03" | "53300") => {
                    Fault::Unreachable(described(state))
                }
                Some(state) => Fault::Failed(described(state)),
                None if error.to_string().contains("authentication") => {
                    Fault::Failed("the server wants another way of authentication".into())
                }
                None if error.to_string().contains("TLS") => Fault::Failed(not_encrypted(&error)),
                None => Fault::Unreachable(with_io("the server cannot be reached", error)),
            },
            _ => Fault::Failed("the pool of connections is closed".into()),
        }
    }
}

/// Whether an insertion or an update failed because the table has a row with the same key.
pub(super) fn is_taken_in(error: &tokio_postgres::Error, table: &str) -> bool {
    let Some(error) = error.as_db_error() else { return false };
    // In distributed tables, the number of the shard follows the name.
    let constraint = error.constraint().or(error.table()).unwrap_or(table);
    *error.code() == SqlState::UNIQUE_VIOLATION && constraint.starts_with(table)
}

/// The messages of the driver and of rustls about a handshake contain no stored data.
fn not_encrypted(error: &tokio_postgres::Error) -> Reason {
    let cause =
        std::error::Error::source(error).map_or(String::new(), |cause| format!(" ({cause})"));
    format!(
        "no encrypted connection can be made{cause}; see sslmode and sslrootcert in the address"
    )
    .into()
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    let source = std::error::Error::source(error);
    source.is_some_and(|source| source.is::<std::io::Error>())
}

/// A reason with the I/O error that caused it, if there is one.
fn with_io(text: &str, error: tokio_postgres::Error) -> Reason {
    match error.into_source().map(|cause| cause.downcast::<std::io::Error>()) {
        Some(Ok(cause)) => Reason::from(text).with_cause((*cause).into()),
        _ => text.into(),
    }
}

/// The driver's own messages contain no stored data.
fn unexpected(error: &tokio_postgres::Error) -> Reason {
    format!("the answer was not as expected ({error})").into()
}

fn described(state: &SqlState) -> Reason {
    let code = state.code();
    let what = match code {
        "55P03" => {
            "a row or a table stayed locked by another session for longer than the lock timeout"
        }
        "57014" => "the statement took longer than the statement timeout, or was cancelled",
        "42501" => "the user may not do this",
        "40003" => "the server does not know whether it was done",
        "53100" => "the server's disk is full",
        "57P03" => "the server is starting or stopping",
        "53300" => "the server has too many connections",
        "25006" => "the server only reads",
        _ => match code.get(..2).unwrap_or_default() {
            "08" => "the connection failed",
            "0A" => "the server cannot do this",
            "22" | "54" => "the server cannot store such a value",
            "23" => "rows do not fit together",
            "28" => "the server refused the user or the password",
            "3D" => "there is no such database",
            "40" => "others were at the same rows",
            "42" => "the tables are not what they should be",
            "53" => "the server is out of memory or room",
            "55" => "something is locked by others",
            "57" => "the server was stopped or the request cancelled",
            "58" => "the server's disk failed",
            "XX" => "the server reports damage",
            _ => "the server refused",
        },
    };
    let state = SqlStateCode(code.to_owned());
    let is_damage = state.is_damage();
    Reason::from(format!("{what} (SQLSTATE {code})")).with_cause(Cause::new(state, is_damage))
}
