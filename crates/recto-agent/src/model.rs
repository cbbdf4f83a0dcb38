//! A model: takes the bytes of a request, gives an answer.
//!
//! The loop renders the request, so a model never sees messages. It sends the bytes as they are, and
//! reads what comes back into an [`Answer`]. [`HttpModel`](crate::HttpModel) does that for three
//! providers; anything else implements [`Model`].

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use recto_format::Target;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::{Answer, CallError};

/// A future in a box, so that models and tools can be chosen while the program runs.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Something that answers requests.
///
/// ```
/// use bytes::Bytes;
/// use recto_agent::{Answer, BoxFuture, CallError, Model, Target, Watch};
///
/// /// Says the same thing always.
/// struct Parrot;
///
/// impl Model for Parrot {
///     fn target(&self) -> Target {
///         Target::OpenAiChat
///     }
///
///     fn name(&self) -> &str {
///         "parrot"
///     }
///
///     fn call<'a>(
///         &'a self,
///         _body: Bytes,
///         _watch: &'a Watch<'a>,
///     ) -> BoxFuture<'a, Result<Answer, CallError>> {
///         Box::pin(async { Ok(Answer::text("Hello!")) })
///     }
/// }
/// ```
pub trait Model: Send + Sync {
    /// How requests for it are written.
    fn target(&self) -> Target;

    /// What the provider calls it. Answers are remembered under this name, since thinking goes back to
    /// the model that made it only.
    fn name(&self) -> &str;

    /// The fields of a request beside messages and tools, each with its JSON.
    fn fields(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Sends exactly these bytes, and waits for the answer. Once `watch` is cancelled it returns
    /// [`Failure::Cancelled`](crate::Failure::Cancelled), with what was said until then.
    fn call<'a>(
        &'a self,
        body: Bytes,
        watch: &'a Watch<'a>,
    ) -> BoxFuture<'a, Result<Answer, CallError>>;
}

/// Who looks on while a model answers, and may stop it.
pub struct Watch<'a> {
    on_delta: &'a (dyn Fn(Delta<'_>) + Send + Sync),
    /// Stops the answer.
    pub cancel: CancellationToken,
}

impl<'a> Watch<'a> {
    /// Hears every piece of the answer as it comes.
    pub fn new(
        on_delta: &'a (dyn Fn(Delta<'_>) + Send + Sync),
        cancel: CancellationToken,
    ) -> Watch<'a> {
        Watch { on_delta, cancel }
    }

    /// Nobody looks on, nobody stops it.
    pub fn nobody() -> Watch<'static> {
        Watch { on_delta: &|_| {}, cancel: CancellationToken::new() }
    }

    /// Says that a piece has come.
    pub fn delta(&self, delta: Delta<'_>) {
        (self.on_delta)(delta);
    }
}

impl fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("cancel", &self.cancel).finish_non_exhaustive()
    }
}

/// A piece of an answer that is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delta<'a> {
    /// Something said.
    Text(&'a str),
    /// Something thought.
    Thinking(&'a str),
    /// A tool is called; its input is still to come.
    Call(&'a str),
    /// There was no answer, and the provider is asked again after this time.
    Waiting {
        /// How long is waited.
        wait: std::time::Duration,
        /// Why there was no answer.
        why: &'a str,
    },
}

/// Why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finish {
    /// The model had nothing more to say.
    Stop,
    /// It waits for tools.
    ToolCalls,
    /// It reached its limit of tokens: the answer is not whole.
    Length,
    /// It refused, or was filtered.
    Refused,
    /// It was cut off: cancelled, or the connection broke.
    Cut,
    /// Something that this program does not know.
    Other(String),
}

/// What the provider says was used, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// All that was read, from the cache or not. (Anthropic reports its cached tokens beside the
    /// others; here they are added.)
    pub input: u64,
    /// Of these, what came from the provider's cache.
    #[serde(default)]
    pub cached: u64,
    /// Of these, what was written to it.
    #[serde(default)]
    pub cache_written: u64,
    /// All that was written, thinking included.
    pub output: u64,
    /// Of these, what was thinking, where the provider says so.
    #[serde(default)]
    pub reasoning: u64,
}
