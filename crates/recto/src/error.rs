//! Errors of this crate.

use serde_json::{Value, json};

/// Why a call failed. A refused request changes nothing, unless the error says that its outcome is
/// unknown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The engine refused the request or the query.
    #[error(transparent)]
    Engine(#[from] recto_core::Error),
    /// The store refused the call or failed.
    #[error(transparent)]
    Store(#[from] recto_store::Error),
    /// The conversation uses a counter that is neither built in nor in `Options::counters`.
    #[error("the counter {name:?} is not built in; open the store with it in `Options::counters`")]
    UnknownCounter {
        /// The name of the counter.
        name: String,
    },
    /// A transcript cannot be read.
    #[cfg(feature = "format")]
    #[error(transparent)]
    Format(#[from] recto_format::Error),
    /// A transcript has no message.
    #[cfg(feature = "format")]
    #[error("the transcript holds no messages (read as {format})")]
    NothingToImport {
        /// The format that it was read as.
        format: recto_format::Format,
    },
    /// The caller cancelled the work.
    #[cfg(feature = "format")]
    #[error("interrupted")]
    Cancelled,
    /// An import failed. The conversations that it had written were removed, except for `left`.
    #[cfg(feature = "format")]
    #[error("{cause}; {}", left_text(.left))]
    NotImported {
        /// Why it failed.
        #[source]
        cause: Box<Error>,
        /// The names of the conversations that could not be removed, each with the reason.
        left: Vec<(String, String)>,
    },
}

impl Error {
    /// The code of the contract.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Engine(error) => error.code().as_str(),
            Error::Store(error) => error.code(),
            Error::UnknownCounter { .. } => "storage",
            #[cfg(feature = "format")]
            Error::Format(error) => error.code(),
            #[cfg(feature = "format")]
            Error::NothingToImport { .. } => "empty_content",
            #[cfg(feature = "format")]
            Error::Cancelled => "interrupted",
            #[cfg(feature = "format")]
            Error::NotImported { cause, .. } => cause.code(),
        }
    }

    /// Whether another writer changed the conversation first. Read it again before the next attempt.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Error::Store(error) if error.is_conflict())
    }

    /// Whether rows, or the structures of the database, are damaged. A store that is locked, full or cannot
    /// be reached is not damaged.
    pub fn reports_damage(&self) -> bool {
        self.is_damage() || matches!(self, Error::Store(error) if error.is_damage())
    }

    /// Whether stored rows are damaged.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Error::Store(recto_store::Error::Damaged { .. }) => true,
            Error::Engine(error) => matches!(error.root(), recto_core::Error::Damaged { .. }),
            _ => false,
        }
    }

    /// The JSON form of the contract: `{error: {code, message, field?, details?}}`.
    pub fn to_json(&self) -> Value {
        match self {
            Error::Engine(error) => error.to_json(),
            Error::Store(recto_store::Error::VersionConflict { expected, current }) => json!({
                "error": {
                    "code": self.code(),
                    "message": self.to_string(),
                    "field": "expectedVersion",
                    "details": { "expectedVersion": expected, "currentVersion": current },
                }
            }),
            #[cfg(feature = "format")]
            Error::Format(error) => error.to_json(),
            #[cfg(feature = "format")]
            Error::NotImported { cause, left } => {
                let mut written = cause.to_json();
                written["error"]["message"] = self.to_string().into();
                let left: Vec<&str> = left.iter().map(|(name, _)| &**name).collect();
                written["error"]["details"]["left"] = json!(left);
                written
            }
            _ => json!({ "error": { "code": self.code(), "message": self.to_string() } }),
        }
    }

    /// The error as a log shows it: without texts that can come from a user, such as names and keys.
    pub(crate) fn for_log(&self) -> String {
        use recto_store::Error as Store;
        match self {
            Error::Store(
                error @ (Store::Damaged { .. }
                | Store::Failed { .. }
                | Store::ReadOnly
                | Store::UnknownOutcome
                | Store::CopiesLeft { .. }
                | Store::RowsChanged
                | Store::Forked
                | Store::VersionConflict { .. }),
            ) => error.to_string(),
            other => other.code().to_owned(),
        }
    }
}

/// The part of the error text about conversations that a failed import has left in the store.
#[cfg(feature = "format")]
fn left_text(left: &[(String, String)]) -> String {
    if left.is_empty() {
        return "nothing was imported".to_owned();
    }
    let left: Vec<String> =
        left.iter().map(|(name, reason)| format!("{name:?} ({reason})")).collect();
    format!("these conversations could not be removed; remove them: {}", left.join(", "))
}
