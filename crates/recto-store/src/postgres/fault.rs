//! What can go wrong in an attempt, and what it says about the attempt.
//!
//! The server's own words stay here: they can quote rows. Out goes the SQLSTATE, with a description
//! of ours.

use deadpool_postgres::{PoolError, TimeoutType};
use tokio_postgres::error::SqlState;

use crate::Error;

/// Why an attempt did not succeed.
#[derive(Debug)]
pub(super) enum Fault {
    /// The store's answer is no; another attempt would get the same.
    Refused(Error),
    /// Nothing has changed, because others were at the same rows.
    Collided(String),
    /// The connection was lost: the server may have done all of it or nothing.
    Lost(String),
    /// There was no connection to be had, so the server has heard nothing.
    Unreachable(String),
    /// Nothing has changed, and another attempt would not help.
    Failed(String),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Refused(error)
    }
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Fault {
        let Some(state) = error.code() else {
            // Without an answer of the server, all but misuse of the driver is a lost connection.
            let lost = error.is_closed() || is_io(&error);
            let reason = "the connection to the server was lost".to_owned();
            return if lost { Fault::Lost(reason) } else { Fault::Failed(unexpected(&error)) };
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
                // Starting, stopping or crowded: that passes.
                Some(state) if matches!(state.code(), "57P01" | "57P02" | "57P03" | "53300") => {
                    Fault::Unreachable(described(state))
                }
                Some(state) => Fault::Failed(described(state)),
                None if error.to_string().contains("authentication") => {
                    Fault::Failed("the server wants another way of authentication".into())
                }
                None if error.to_string().contains("TLS") => Fault::Failed(not_encrypted(&error)),
                None => Fault::Unreachable("the server cannot be reached".into()),
            },
            _ => Fault::Failed("the pool of connections is closed".into()),
        }
    }
}

/// Whether a row could not be inserted because of one with the same key in this table.
pub(super) fn is_taken_in(error: &tokio_postgres::Error, table: &str) -> bool {
    let Some(error) = error.as_db_error() else { return false };
    // Where tables are spread over machines, names have the number of a shard behind them.
    let constraint = error.constraint().or(error.table()).unwrap_or(table);
    *error.code() == SqlState::UNIQUE_VIOLATION && constraint.starts_with(table)
}

/// What the driver and rustls say of a handshake: nothing of it is stored data.
fn not_encrypted(error: &tokio_postgres::Error) -> String {
    let cause =
        std::error::Error::source(error).map_or(String::new(), |cause| format!(" ({cause})"));
    format!(
        "no encrypted connection can be made{cause}; see sslmode and sslrootcert in the address"
    )
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    let source = std::error::Error::source(error);
    source.is_some_and(|source| source.is::<std::io::Error>())
}

/// What the driver itself says: its texts hold no stored data.
fn unexpected(error: &tokio_postgres::Error) -> String {
    format!("the answer was not as expected ({error})")
}

fn described(state: &SqlState) -> String {
    let code = state.code();
    let what = match code {
        "42501" => "the user may not do this",
        "40003" => "the server does not know whether it was done",
        "53100" => "the server's disk is full",
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
    format!("{what} (SQLSTATE {code})")
}
