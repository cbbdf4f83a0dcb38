//! Errors of requests about lists.

use recto_core::Error as EngineError;
use serde_json::Value;

/// Error of a request about a list.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request cannot be read, or the engine refused it.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A message cannot be read, or a list cannot be repaired.
    #[error(transparent)]
    Format(#[from] recto_format::Error),
    /// The engine refused the value of a field of the request.
    #[error("{cause}")]
    InField {
        /// The field of the request. The cause names a field of the engine instead.
        field: String,
        /// Why it was refused.
        #[source]
        cause: Box<Error>,
    },
}

impl Error {
    /// The error code, as the contract defines it.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Engine(error) => error.code().as_str(),
            Error::Format(error) => error.code(),
            Error::InField { cause, .. } => cause.code(),
        }
    }

    /// The JSON form that the contract defines: `{error: {code, message, field?, details?}}`.
    pub fn to_json(&self) -> Value {
        match self {
            Error::Engine(error) => error.to_json(),
            Error::Format(error) => error.to_json(),
            Error::InField { field, cause } => {
                let mut written = cause.to_json();
                written["error"]["field"] = field.as_str().into();
                written
            }
        }
    }

    /// Adds the field of the request to an error that names a field of the engine or a message.
    pub(crate) fn in_field(self, field: &str) -> Error {
        let field = match &self {
            Error::Engine(cause) if cause.field().is_some() => field.to_owned(),
            Error::Format(recto_format::Error::ForeignMessage { position, .. }) => {
                format!("{field}[{position}]")
            }
            // A field of a message: `[0].role`.
            Error::Format(recto_format::Error::Malformed { field: part, .. })
                if part.starts_with('[') =>
            {
                format!("{field}{part}")
            }
            _ => return self,
        };
        Error::InField { field, cause: Box::new(self) }
    }
}

/// An `invalid_operation` about one field.
pub fn wrong(field: &str, reason: impl Into<String>) -> EngineError {
    EngineError::InvalidOperation { reason: reason.into(), field: Some(field.to_owned()) }
}
