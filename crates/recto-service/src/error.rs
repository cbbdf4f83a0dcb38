//! Errors of requests.

use serde_json::{Value, json};

/// Error of a request. A request that fails has changed nothing, unless the error says that its outcome is
/// unknown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request cannot be read, or the engine or the store refused it.
    #[error(transparent)]
    Recto(#[from] recto::Error),
    /// A transcript cannot be read, or a view cannot be rendered.
    #[error(transparent)]
    Format(#[from] recto_format::Error),
    /// Manifests of calls cannot be read.
    #[error(transparent)]
    Agent(#[from] recto_agent::Error),
    /// Messages cannot be appended, because the text has more than messages.
    #[error(
        "there is more than messages (read as {format}): other conversations, branches or compactions; \
         import it as a new conversation"
    )]
    NotOnlyMessages {
        /// The format in which the text was read.
        format: recto_format::Format,
    },
    /// There are no prices for a model.
    #[error("there are no prices for {model:?}; use {known}, or a table that has its prices")]
    NoPrices {
        /// The model.
        model: String,
        /// Names of models whose prices are known, separated by commas: at most 12, and those of the same
        /// family if there are any.
        known: String,
    },
    /// The engine refused the value of a field of the request.
    #[error("{cause}")]
    InField {
        /// The field of the request. The engine's own error names a field of the engine.
        field: String,
        /// Why it was refused.
        #[source]
        cause: Box<Error>,
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

impl From<recto_lists::Error> for Error {
    fn from(error: recto_lists::Error) -> Error {
        match error {
            recto_lists::Error::Engine(error) => error.into(),
            recto_lists::Error::Format(error) => error.into(),
            recto_lists::Error::InField { field, cause } => {
                Error::InField { field, cause: Box::new(Error::from(*cause)) }
            }
            other => {
                let (reason, field) = (other.to_string(), None);
                recto::EngineError::InvalidOperation { reason, field }.into()
            }
        }
    }
}

impl Error {
    /// A field of a request is wrong.
    pub(crate) fn field(field: &str, reason: impl Into<String>) -> Error {
        wrong(field, reason).into()
    }

    /// The code of the contract.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Recto(error) => error.code(),
            Error::Format(error) => error.code(),
            Error::Agent(error) => error.code(),
            Error::NoPrices { .. } | Error::NotOnlyMessages { .. } => "invalid_operation",
            Error::InField { cause, .. } => cause.code(),
        }
    }

    /// The form of the contract: `{error: {code, message, field?, details?}}`.
    pub fn to_json(&self) -> Value {
        match self {
            Error::Recto(error) => error.to_json(),
            Error::Format(error) => error.to_json(),
            Error::InField { field, cause } => {
                let mut written = cause.to_json();
                written["error"]["field"] = field.as_str().into();
                written
            }
            Error::Agent(_) | Error::NoPrices { .. } | Error::NotOnlyMessages { .. } => {
                json!({ "error": { "code": self.code(), "message": self.to_string() } })
            }
        }
    }
}

/// Replaces the field that an error of the engine names with the field of the request.
pub(crate) trait InField<T> {
    /// If the error is one of the engine and names a field, the result names `field` instead: the engine says
    /// `indices` where the request has `blame`, and `version` where it has `at`. Other errors stay as they
    /// are.
    fn in_field(self, field: &str) -> Result<T, Error>;

    /// If the error is one of the engine and names a field, adds the name of the object of the request that
    /// has this field: `counter` becomes `settings.counter`. Other errors stay as they are.
    fn in_object(self, object: &str) -> Result<T, Error>;
}

impl<T, E: Into<Error>> InField<T> for Result<T, E> {
    fn in_field(self, field: &str) -> Result<T, Error> {
        self.map_err(|error| match error.into() {
            Error::Recto(recto::Error::Engine(cause)) if cause.field().is_some() => {
                Error::InField { field: field.to_owned(), cause: Box::new(cause.into()) }
            }
            error => error,
        })
    }

    fn in_object(self, object: &str) -> Result<T, Error> {
        self.map_err(|error| match error.into() {
            Error::Recto(recto::Error::Engine(cause)) => match cause.field() {
                Some(field) => {
                    let field = format!("{object}.{field}");
                    Error::InField { field, cause: Box::new(cause.into()) }
                }
                None => cause.into(),
            },
            error => error,
        })
    }
}

pub(crate) use recto_lists::wrong;
