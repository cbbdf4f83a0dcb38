//! The error of a refused request or query.

use serde_json::Value;

/// The error of a refused request or query, which changed nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// One of the codes of section 7.
    pub code: &'static str,
    /// What was wrong. The text is not part of the contract.
    pub message: String,
    /// The wrong field, if the contract defines it.
    pub field: Option<&'static str>,
    /// `details`, if the contract defines them.
    pub details: Option<Box<Value>>,
}

impl Refusal {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into(), field: None, details: None }
    }

    /// The shape of an operation, query or list of tools is wrong.
    pub(super) fn operation(message: impl Into<String>) -> Refusal {
        Refusal::new("invalid_operation", message)
    }

    /// A message is malformed.
    pub(super) fn message(message: impl Into<String>) -> Refusal {
        Refusal::new("invalid_message", message)
    }

    pub(super) fn with_field(self, field: &'static str) -> Refusal {
        Refusal { field: Some(field), ..self }
    }

    pub(super) fn with_details(self, details: Value) -> Refusal {
        Refusal { details: Some(Box::new(details)), ..self }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Refusal {}
