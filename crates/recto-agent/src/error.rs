//! What can go wrong, and what to do about it.
//!
//! [`CallError`] is a call of a model that failed: [`Failure`] says why, and what was said until then
//! comes along. [`Error`] is everything that ends a run. No error holds a key: what others say is told
//! without it.

use std::time::Duration;

use recto_format::Target;

use crate::Answer;
use crate::budget::Part;
use crate::call::Attempt;

/// A call of a model that failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{failure}{}", tried(&self.attempts))]
pub struct CallError {
    /// Why.
    pub failure: Failure,
    /// What was tried, one after the other; the last one is the failure.
    pub attempts: Vec<Attempt>,
    /// What was said until then, if anything was.
    pub partial: Option<Box<Answer>>,
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
    /// The provider does not take the request. The same one will be refused again.
    #[error("the provider refused the request ({status}): {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What the provider says.
        message: String,
    },
    /// The request is longer than the model can read.
    #[error("the request is too long for the model ({status}): {message}; lower the token limit")]
    TooLong {
        /// The HTTP status.
        status: u16,
        /// What the provider says.
        message: String,
    },
    /// The key is missing, wrong, or not allowed to do this.
    #[error(
        "the provider did not accept the key ({status}): {message}; look at the endpoint's key"
    )]
    Unauthorized {
        /// The HTTP status.
        status: u16,
        /// What the provider says.
        message: String,
    },
    /// Too many requests.
    #[error("too many requests: {message}; {}", when(*.retry_after))]
    RateLimited {
        /// What the provider says.
        message: String,
        /// When it takes the next one, if it says so.
        retry_after: Option<Duration>,
    },
    /// The provider has a fault, or too much to do.
    #[error("the provider failed ({status}): {message}; try again later")]
    Provider {
        /// The HTTP status; 200 if it failed inside a stream.
        status: u16,
        /// What the provider says.
        message: String,
    },
    /// Nothing came for too long.
    #[error("{what} took longer than {} s; raise the endpoint's patience, or try again", .limit.as_secs_f64())]
    Timeout {
        /// What was waited for.
        what: &'static str,
        /// For how long.
        limit: Duration,
    },
    /// There is no connection.
    #[error("no connection to the provider: {0}; look at the endpoint's base URL and the network")]
    Connection(String),
    /// The connection broke inside the answer.
    #[error("the connection broke inside the answer: {0}; ask again")]
    Cut(String),
    /// What came is no answer of this provider.
    #[error("the answer cannot be read: {0}; does the endpoint speak this provider's language?")]
    Malformed(String),
    /// Somebody stopped it.
    #[error("the call was cancelled")]
    Cancelled,
}

fn when(retry_after: Option<Duration>) -> String {
    match retry_after {
        Some(after) => format!("the provider takes the next in {} s", after.as_secs_f64()),
        None => "try again later".into(),
    }
}

impl Failure {
    /// Whether the same request may succeed if it is sent again.
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
    /// As it leaves the client: without anything secret in what the other side says.
    pub(crate) fn without(mut self, secrets: &crate::secrets::Secrets) -> Failure {
        match &mut self {
            Failure::Refused { message, .. }
            | Failure::TooLong { message, .. }
            | Failure::Unauthorized { message, .. }
            | Failure::RateLimited { message, .. }
            | Failure::Provider { message, .. }
            | Failure::Connection(message)
            | Failure::Cut(message)
            | Failure::Malformed(message) => *message = secrets.told(message),
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

/// Everything that ends a run. The conversation is as it was before the step that failed, and can go
/// on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The conversation could not be read or written.
    #[error(transparent)]
    Recto(#[from] recto::Error),
    /// The view could not be rendered.
    #[error(transparent)]
    Format(#[from] recto_format::Error),
    /// The model did not answer.
    #[error(transparent)]
    Call(#[from] Box<CallError>),
    /// What cannot be made shorter is over the limit.
    #[error(
        "{total} tokens cannot be made fewer, and the limit is {limit}: {}; \
         raise the limit, unpin something, or shorten the largest",
        named(.parts)
    )]
    FloorTooHigh {
        /// The limit.
        limit: u64,
        /// What stays.
        total: u64,
        /// Its parts, the largest first.
        parts: Vec<Part>,
    },
    /// The view is over the limit, and nothing made it short enough.
    #[error(
        "the request has about {tokens} tokens, and the limit is {limit}; {}",
        tried_strategies(.tried)
    )]
    OverLimit {
        /// The limit.
        limit: u64,
        /// The tokens of the request.
        tokens: u64,
        /// The strategies that were tried, in order.
        tried: Vec<String>,
    },
    /// A strategy that does not exist.
    #[error("there is no strategy {name:?}; there are {}", crate::Strategy::NAMES.join(", "))]
    UnknownStrategy {
        /// What was asked for.
        name: String,
    },
    /// An endpoint that cannot be used.
    #[error("{0}")]
    Endpoint(String),
    /// A server of tools that cannot be used.
    #[error("the MCP server {name:?} cannot be used: {reason}")]
    McpServer {
        /// What it is called.
        name: String,
        /// Why.
        reason: String,
    },
    /// An entry that is no summary.
    #[error("entry {entry} is no summary; one has `metadata.summary.of`")]
    NoSummary {
        /// Which entry.
        entry: recto::LogIndex,
    },
    /// A call that is not in the history.
    #[error("there is no call {number}; the conversation has {calls}")]
    NoSuchCall {
        /// Which was asked for.
        number: u64,
        /// How many there are.
        calls: u64,
    },
    /// A request that cannot be written as it was sent.
    #[error(
        "call {number} cannot be shown as it was sent to {target}: {reason}; \
         the hash of what was sent is {sent}"
    )]
    NotTheSame {
        /// Which call.
        number: u64,
        /// Whom it was for.
        target: Target,
        /// Why.
        reason: String,
        /// The hash in the manifest.
        sent: String,
    },
}

impl Error {
    /// The code of the contract.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Recto(error) => error.code(),
            Error::Format(error) => error.code(),
            Error::Call(_) | Error::McpServer { .. } => "upstream",
            Error::FloorTooHigh { .. } | Error::OverLimit { .. } => "budget_too_small",
            Error::UnknownStrategy { .. } | Error::Endpoint(_) => "invalid_operation",
            Error::NoSummary { .. } => "index_out_of_range",
            Error::NoSuchCall { .. } | Error::NotTheSame { .. } => "version_not_found",
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

fn named(parts: &[Part]) -> String {
    let parts: Vec<String> = parts.iter().map(Part::to_string).collect();
    parts.join(", ")
}

fn tried_strategies(tried: &[String]) -> String {
    match tried.is_empty() {
        true => "no compression is set; set one in the conversation's policy".into(),
        false => format!("these strategies did not make it shorter: {}", tried.join(", ")),
    }
}
