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
    /// A transcript without a message.
    #[error("the transcript holds no messages (read as {format})")]
    NothingToImport {
        /// The format that it was read as.
        format: &'static str,
    },
    /// An import that failed. What it had written was removed, but for `left`.
    #[error("{cause}; {}", about_left(.left))]
    NotImported {
        /// Why it failed.
        cause: Box<Error>,
        /// Names of conversations that could not be removed, each with the reason.
        left: Vec<(String, String)>,
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
            Error::NothingToImport { .. } => "empty_content",
            Error::NotImported { cause, .. } => cause.code(),
        }
    }

    /// As the contract writes it: `{error: {code, message, field?, details?}}`.
    pub fn to_json(&self) -> Value {
        match self {
            Error::Recto(error) => error.to_json(),
            Error::Format(error) => format_error(error),
            Error::NotImported { cause, left } => {
                let mut written = cause.to_json();
                written["error"]["message"] = self.to_string().into();
                let left: Vec<&str> = left.iter().map(|(name, _)| &**name).collect();
                written["error"]["details"]["left"] = json!(left);
                written
            }
            Error::Agent(_) | Error::NoPrices { .. } | Error::NothingToImport { .. } => {
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

/// The error of a format as the contract writes it. `details` has the line of the file.
pub fn format_error(error: &recto_format::Error) -> Value {
    let mut written = match error {
        recto_format::Error::Engine(error) => error.to_json(),
        _ => json!({ "error": { "code": error.code(), "message": error.to_string() } }),
    };
    if let recto_format::Error::Malformed { line, field, .. } = error {
        if !field.is_empty() {
            written["error"]["field"] = json!(field);
        }
        written["error"]["details"] = json!({ "line": line });
    }
    written
}

/// What a failed import has left in the store.
fn about_left(left: &[(String, String)]) -> String {
    if left.is_empty() {
        return "nothing was imported".to_owned();
    }
    let left: Vec<String> =
        left.iter().map(|(name, reason)| format!("{name:?} ({reason})")).collect();
    format!("these conversations could not be removed; remove them: {}", left.join(", "))
}
