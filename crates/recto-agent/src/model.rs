//! The [`Model`] trait: sends the bytes of a request and returns the model's [`Reply`].
//!
//! The agent renders the request, so a model never handles messages. It sends the bytes unchanged and
//! decodes the response. [`HttpModel`](crate::HttpModel) does that for three providers. For any other
//! provider, implement [`Model`].

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use recto_format::Target;
use serde::{Deserialize, Serialize};

use crate::{CallError, CancelToken, Reply};

/// A boxed future. [`Model`] and [`RunTool`](crate::RunTool) return it so that both traits can be used
/// as trait objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A model that an agent can call.
///
/// ```
/// use bytes::Bytes;
/// use recto_agent::{BoxFuture, CallContext, CallError, Model, Reply, Target};
///
/// /// Returns the same reply to every request.
/// struct Constant;
///
/// impl Model for Constant {
///     fn target(&self) -> Target {
///         Target::OpenAiChat
///     }
///
///     fn name(&self) -> &str {
///         "constant"
///     }
///
///     fn call<'a>(
///         &'a self,
///         _body: Bytes,
///         _context: &'a CallContext<'a>,
///     ) -> BoxFuture<'a, Result<Reply, CallError>> {
///         Box::pin(async { Ok(Reply::from_text("Hello!")) })
///     }
/// }
/// ```
pub trait Model: Send + Sync {
    /// The provider format in which requests are rendered.
    fn target(&self) -> Target;

    /// The provider's name of the model. It is recorded with every reply, because thinking may be sent
    /// back only to the model that produced it.
    fn name(&self) -> &str;

    /// Request fields other than the messages and tools, as pairs of name and JSON value.
    fn fields(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// The version of the provider's API, such as `2026-10-21` at Anthropic. Requests follow the rules of
    /// this version. Default: the oldest version that the provider supports.
    fn api_version(&self) -> Option<&str> {
        None
    }

    /// Sends exactly these bytes and waits for the reply. When `context.cancel` is cancelled, the call
    /// fails with [`Failure::Cancelled`](crate::Failure::Cancelled) and carries the partial reply.
    fn call<'a>(
        &'a self,
        body: Bytes,
        context: &'a CallContext<'a>,
    ) -> BoxFuture<'a, Result<Reply, CallError>>;
}

/// Delta callback and cancellation token of one model call.
///
/// The default context ignores deltas and is never cancelled.
#[non_exhaustive]
pub struct CallContext<'a> {
    on_delta: &'a (dyn Fn(Delta<'_>) + Send + Sync),
    /// Cancels the call.
    pub cancel: CancelToken,
}

impl<'a> CallContext<'a> {
    /// A context that passes each delta of the reply to `on_delta`.
    pub fn new(
        on_delta: &'a (dyn Fn(Delta<'_>) + Send + Sync),
        cancel: CancelToken,
    ) -> CallContext<'a> {
        CallContext { on_delta, cancel }
    }

    /// Passes a delta to the callback.
    pub fn emit(&self, delta: Delta<'_>) {
        (self.on_delta)(delta);
    }
}

impl Default for CallContext<'_> {
    fn default() -> Self {
        CallContext { on_delta: &|_| {}, cancel: CancelToken::new() }
    }
}

impl fmt::Debug for CallContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContext").field("cancel", &self.cancel).finish_non_exhaustive()
    }
}

/// An increment of a reply while it is streamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delta<'a> {
    /// Text of the reply.
    Text(&'a str),
    /// Text of the model's thinking.
    Thinking(&'a str),
    /// The name of a tool that the model calls. The input follows.
    ToolCall(&'a str),
    /// An attempt failed. The request is sent again after `delay`.
    Retrying {
        /// Time until the next attempt.
        delay: Duration,
        /// Why the attempt failed.
        reason: &'a str,
    },
}

/// Why a reply ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finish {
    /// The reply is complete.
    Stop,
    /// The model waits for the results of its tool calls.
    ToolCalls,
    /// The model reached its output token limit: the reply is incomplete.
    Length,
    /// The model refused, or the provider filtered the reply.
    Refused,
    /// The reply was interrupted: the call was cancelled or the connection broke.
    Cut,
    /// Any other reason, as the provider names it.
    Other(String),
}

/// Token usage of one call, as the provider reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Usage {
    /// All input tokens, cached or not. (Anthropic reports cached tokens separately; here they are
    /// included.)
    pub input: u64,
    /// Input tokens read from the provider's cache. Part of `input`.
    #[serde(default)]
    pub cached: u64,
    /// Input tokens written to the provider's cache. Part of `input`.
    #[serde(default)]
    pub cache_written: u64,
    /// Input tokens written to the provider's cache for one hour. Part of `cache_written`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_written_1h: u64,
    /// All output tokens, thinking included.
    pub output: u64,
    /// Output tokens of thinking, if the provider reports them. Part of `output`.
    #[serde(default)]
    pub reasoning: u64,
    /// Tokens with which the provider compacted the prompt before it answered. Not part of the other fields,
    /// which are about the compacted prompt.
    #[serde(default, skip_serializing_if = "CompactionUsage::is_none")]
    pub compaction: CompactionUsage,
}

/// Token usage of the compactions that a provider makes during a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompactionUsage {
    /// All input tokens, cached or not.
    pub input: u64,
    /// Input tokens read from the provider's cache. Part of `input`.
    pub cached: u64,
    /// Input tokens written to the provider's cache. Part of `input`.
    pub cache_written: u64,
    /// All output tokens.
    pub output: u64,
}

impl Usage {
    /// Usage of a call without caching and thinking. Assign the other fields as needed.
    pub fn new(input: u64, output: u64) -> Usage {
        Usage { input, output, ..Usage::default() }
    }

    /// The sum of two usages.
    pub(crate) fn plus(self, other: Usage) -> Usage {
        Usage {
            input: self.input.saturating_add(other.input),
            cached: self.cached.saturating_add(other.cached),
            cache_written: self.cache_written.saturating_add(other.cache_written),
            cache_written_1h: self.cache_written_1h.saturating_add(other.cache_written_1h),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
            compaction: self.compaction.plus(other.compaction),
        }
    }
}

impl CompactionUsage {
    /// True if the provider made no compaction, or reported none.
    pub fn is_none(&self) -> bool {
        *self == CompactionUsage::default()
    }

    /// The sum of two usages.
    pub(crate) fn plus(self, other: CompactionUsage) -> CompactionUsage {
        CompactionUsage {
            input: self.input.saturating_add(other.input),
            cached: self.cached.saturating_add(other.cached),
            cache_written: self.cache_written.saturating_add(other.cache_written),
            output: self.output.saturating_add(other.output),
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
