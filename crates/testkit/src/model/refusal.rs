//! Why a request or query was refused.

/// An error answer: nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// One of the codes of section 7.
    pub code: &'static str,
    /// What was wrong, for a reader; not part of the contract.
    pub message: String,
}

impl Refusal {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into() }
    }

    /// The shape of an operation, query or list of tools is wrong.
    pub(super) fn operation(message: impl Into<String>) -> Refusal {
        Refusal::new("invalid_operation", message)
    }

    /// A message is malformed.
    pub(super) fn message(message: impl Into<String>) -> Refusal {
        Refusal::new("invalid_message", message)
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Refusal {}
