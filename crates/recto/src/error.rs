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
}

impl Error {
    /// The code of the contract.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Engine(error) => error.code().as_str(),
            Error::Store(error) => error.code(),
        }
    }

    /// As the contract writes it: `{error: {code, message, field?, details?}}`.
    pub fn to_json(&self) -> Value {
        match self {
            Error::Engine(error) => error.to_json(),
            Error::Store(error) => {
                json!({ "error": { "code": error.code(), "message": error.to_string() } })
            }
        }
    }
}
