//! Why something was refused: by the engine, or by the store.

use serde_json::{Value, json};

/// Everything that can go wrong. A refused request has changed nothing, unless the error says that
/// its outcome is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request or query cannot be done.
    #[error(transparent)]
    Engine(#[from] recto_core::Error),
    /// The store did not do its part.
    #[error(transparent)]
    Store(#[from] recto_store::Error),
    /// A counter that nobody brought along.
    #[error("the counter {name:?} is not built in; open the store with it in `Options::counters`")]
    UnknownCounter {
        /// Its name.
        name: String,
    },
}

impl Error {
    /// The code of the contract.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Engine(error) => error.code().as_str(),
            Error::Store(error) => error.code(),
            Error::UnknownCounter { .. } => "storage",
        }
    }

    /// Whether somebody else was quicker: read the conversation again, and decide anew.
    pub fn is_conflict(&self) -> bool {
        matches!(
            self,
            Error::Store(recto_store::Error::VersionConflict { .. } | recto_store::Error::Forked)
        )
    }

    /// As the contract writes it: `{error: {code, message, field?, details?}}`.
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
            _ => json!({ "error": { "code": self.code(), "message": self.to_string() } }),
        }
    }
}
