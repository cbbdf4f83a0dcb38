//! Why a request was refused.

use serde_json::{Value, json};

/// Everything that can go wrong with a request. A refused request has changed nothing, except where
/// the error says that its outcome is unknown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request cannot be read, or the engine or the store refused it.
    #[error(transparent)]
    Recto(#[from] recto::Error),
    /// A transcript that cannot be read, or a view that cannot be rendered.
    #[error(transparent)]
    Format(#[from] recto_format::Error),
    /// Manifests of calls that cannot be read.
    #[error(transparent)]
    Agent(#[from] recto_agent::Error),
    /// There are no prices of a model.
    #[error("there are no prices of {model:?}; use {known}, or give a table with its prices")]
    NoPrices {
        /// The model.
        model: String,
        /// The models whose prices are known.
        known: String,
    },
}

impl From<recto::EngineError> for Error {
    fn from(error: recto::EngineError) -> Error {
        Error::Recto(error.into())
    }
}

impl From<recto::StoreError> for Error {
    fn from(error: recto::StoreError) -> Error {
        Error::Recto(error.into())
    }
}

impl Error {
    /// A field of a request that is wrong.
    pub(crate) fn field(field: &str, reason: impl Into<String>) -> Error {
        wrong(field, reason).into()
    }

    /// The code of the contract.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Recto(error) => error.code(),
            Error::Format(error) => error.code(),
            Error::Agent(error) => error.code(),
            Error::NoPrices { .. } => "invalid_operation",
        }
    }

    /// As the contract writes it: `{error: {code, message, field?, details?}}`.
    pub fn to_json(&self) -> Value {
        match self {
            Error::Recto(error) => error.to_json(),
            Error::Format(error) => error.to_json(),
            Error::Agent(_) | Error::NoPrices { .. } => {
                json!({ "error": { "code": self.code(), "message": self.to_string() } })
            }
        }
    }
}

/// An `invalid_operation` about one field.
pub(crate) fn wrong(field: &str, reason: impl Into<String>) -> recto::EngineError {
    let field = Some(field.to_owned());
    recto::EngineError::InvalidOperation { reason: reason.into(), field }
}
