//! The errors of this crate.
//!
//! [`CallError`] is a failed model call: [`Failure`] is the cause, and the partial reply is attached.
//! [`Error`] is any error of this crate. Errors contain no API keys: text from providers and MCP servers is
//! redacted before it gets into an error.

use std::time::Duration;

use recto_format::Target;

use crate::floor_part::FloorPart;
use crate::{Attempt, Reply};

/// A failed model call.
///
/// Build one from a [`Failure`] with `into()`, then assign `attempts` and `partial` if there are any.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[error("{failure}{}", tried(&self.attempts))]
pub struct CallError {
    /// The cause.
    #[source]
    pub failure: Failure,
    /// The failed attempts, in order. The last one failed with `failure`, unless the call was cancelled
    /// during the delay after it.
    pub attempts: Vec<Attempt>,
    /// The part of the reply that was received, if any.
    pub partial: Option<Box<Reply>>,
}

fn tried(attempts: &[Attempt]) -> String {
    match attempts.len() {
        0 | 1 => String::new(),
        count => format!(" (tried {count} times)"),
    }
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The provider rejected the request. The same request would be rejected again.
    #[error("the provider rejected the request ({status}): {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The provider's message.
        message: String,
    },
    /// The request is longer than the model's context window.
    #[error("the request is too long for the model ({status}): {message}; lower the token limit")]
    TooLong {
        /// The HTTP status.
        status: u16,
        /// The provider's message.
        message: String,
    },
    /// The API key is missing, wrong, or lacks a permission.
    #[error(
        "the provider did not accept the API key ({status}): {message}; check the endpoint's key"
    )]
    Unauthorized {
        /// The HTTP status.
        status: u16,
        /// The provider's message.
        message: String,
    },
    /// The provider limits the rate of requests.
    #[error("too many requests: {message}; {}", when(*.retry_after))]
    RateLimited {
        /// The provider's message.
        message: String,
        /// The time after which the provider accepts the next request, if it states one.
        retry_after: Option<Duration>,
    },
    /// The provider has an internal error or is overloaded.
    #[error("the provider failed ({status}): {message}; try again later")]
    Provider {
        /// The HTTP status; 200 if the error came in an event or a body of a successful response.
        status: u16,
        /// The provider's message.
        message: String,
    },
    /// A timeout elapsed.
    #[error("{what} took longer than {} s; raise the endpoint's timeouts, or try again", .limit.as_secs_f64())]
    Timeout {
        /// What took too long.
        what: &'static str,
        /// The timeout.
        limit: Duration,
    },
    /// The connection could not be established, or it broke before a response was received.
    #[error("cannot connect to the provider: {0}; check the endpoint's base URL and the network")]
    Connection(String),
    /// The reply ended early: the connection broke, or the response is longer than the maximum.
    #[error("the connection broke inside the reply: {0}; try again")]
    Cut(String),
    /// The response is not in the provider's format.
    #[error(
        "the response cannot be read: {0}; check that the endpoint uses this provider's format"
    )]
    Malformed(String),
    /// The caller cancelled the call.
    #[error("the call was cancelled")]
    Cancelled,
}

fn when(retry_after: Option<Duration>) -> String {
    match retry_after {
        Some(after) => format!("the provider accepts the next one in {} s", after.as_secs_f64()),
        None => "try again later".into(),
    }
}

impl Failure {
    /// A short name of the kind of failure, without the provider's text.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Failure::Refused { .. } => "refused",
            Failure::TooLong { .. } => "too_long",
            Failure::Unauthorized { .. } => "unauthorized",
            Failure::RateLimited { .. } => "rate_limited",
            Failure::Provider { .. } => "provider",
            Failure::Timeout { .. } => "timeout",
            Failure::Connection(_) => "connection",
            Failure::Cut(_) => "cut",
            Failure::Malformed(_) => "malformed",
            Failure::Cancelled => "cancelled",
        }
    }

    /// Whether the same request may succeed when it is sent again.
    pub fn is_transient(&self) -> bool {
        match self {
            Failure::RateLimited { .. }
            | Failure::Provider { .. }
            | Failure::Timeout { .. }
            | Failure::Connection(_)
            | Failure::Cut(_) => true,
            Failure::Refused { .. }
            | Failure::TooLong { .. }
            | Failure::Unauthorized { .. }
            | Failure::Malformed(_)
            | Failure::Cancelled => false,
        }
    }
}

#[cfg(feature = "clients")]
impl Failure {
    /// Removes secrets from text that the provider sent.
    pub(crate) fn redacted(mut self, secrets: &crate::secrets::Secrets) -> Failure {
        match &mut self {
            Failure::Refused { message, .. }
            | Failure::TooLong { message, .. }
            | Failure::Unauthorized { message, .. }
            | Failure::RateLimited { message, .. }
            | Failure::Provider { message, .. }
            | Failure::Connection(message)
            | Failure::Cut(message)
            | Failure::Malformed(message) => *message = secrets.redact(message),
            Failure::Timeout { .. } | Failure::Cancelled => {}
        }
        self
    }
}

impl From<Failure> for CallError {
    fn from(failure: Failure) -> Self {
        CallError { failure, attempts: Vec::new(), partial: None }
    }
}

/// An error of this crate. If it ends a run, the conversation keeps what was recorded until then, such as
/// the manifest and the partial reply of a failed call, and the next run can start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The conversation could not be read or written.
    #[error(transparent)]
    Recto(#[from] recto::Error),
    /// The view could not be rendered.
    #[error(transparent)]
    Format(#[from] recto_format::Error),
    /// The model call failed.
    #[error(transparent)]
    Call(#[from] Box<CallError>),
    /// The floor exceeds the token limit: the [parts](FloorPart) of the request that strategies keep.
    #[error(
        "{total} tokens of the request cannot be compressed, and the limit is {limit}: {}; \
         raise the limit, unpin messages, or shorten the largest part",
        list_parts(.parts)
    )]
    FloorTooHigh {
        /// The limit.
        limit: u64,
        /// The tokens that cannot be compressed.
        total: u64,
        /// The parts of the floor, the largest first.
        parts: Vec<FloorPart>,
    },
    /// The request exceeds the token limit, and no strategy made it short enough.
    #[error(
        "the request has about {tokens} tokens, and the limit is {limit}; {}",
        tried_strategies(.tried)
    )]
    OverLimit {
        /// The limit.
        limit: u64,
        /// The tokens of the request.
        tokens: u64,
        /// The strategies that were tried, in order, each with the reason why it was not enough.
        tried: Vec<String>,
    },
    /// The name of a strategy is not known.
    #[error("there is no strategy {name:?}; there are {known}")]
    UnknownStrategy {
        /// The name that was given.
        name: String,
        /// The names of all strategies, separated by commas.
        known: String,
    },
    /// The settings of an endpoint are invalid.
    #[error("{0}")]
    Endpoint(String),
    /// An MCP server could not be started or did not list its tools.
    #[error("the MCP server {name:?} cannot be used: {reason}")]
    McpServer {
        /// The name of the server.
        name: String,
        /// Why.
        reason: String,
    },
    /// The entry is not a summary.
    #[error("entry {entry} is not a summary; a summary has `metadata.summary.of`")]
    NotASummary {
        /// The entry.
        entry: recto::LogIndex,
    },
    /// The conversation has no call of this number.
    #[error("there is no call {number}; the conversation has {calls} calls")]
    CallNotFound {
        /// The number that was given.
        number: u64,
        /// The number of calls in the conversation.
        calls: u64,
    },
    /// The request of a call cannot be rendered again with the same bytes.
    #[error(
        "the request of call {number} to {target} cannot be reproduced: {reason}; \
         the SHA-256 of the sent bytes is {sha256}"
    )]
    RequestNotReproducible {
        /// The number of the call.
        number: u64,
        /// The provider format of the request.
        target: Target,
        /// Why.
        reason: String,
        /// The SHA-256 in the manifest, in hexadecimal digits.
        sha256: String,
    },
}

impl Error {
    /// The error code, as the contract defines it.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Recto(error) => error.code(),
            Error::Format(error) => error.code(),
            Error::Call(_) | Error::McpServer { .. } => "upstream",
            Error::FloorTooHigh { .. } | Error::OverLimit { .. } => "budget_too_small",
            Error::UnknownStrategy { .. } | Error::Endpoint(_) => "invalid_operation",
            Error::NotASummary { .. } => "index_out_of_range",
            Error::CallNotFound { .. } | Error::RequestNotReproducible { .. } => {
                "version_not_found"
            }
        }
    }
}

impl From<recto::EngineError> for Error {
    fn from(error: recto::EngineError) -> Self {
        Error::Recto(error.into())
    }
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        Error::Call(Box::new(error))
    }
}

fn list_parts(parts: &[FloorPart]) -> String {
    let parts: Vec<String> = parts.iter().map(FloorPart::to_string).collect();
    parts.join(", ")
}

fn tried_strategies(tried: &[String]) -> String {
    match tried.is_empty() {
        true => "no compression is set; set one in the conversation's policy".into(),
        false => format!("these strategies did not make it short enough: {}", tried.join(", ")),
    }
}
