//! Events of a run, for [`Agent::on_event`](crate::Agent::on_event).

use recto::{LogIndex, Version};

use crate::{Call, Delta};

/// Something that happened in a run.
///
/// Events are delivered in order, on the task of the run. A slow callback delays the run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The request would exceed the token limit.
    TokenLimitExceeded {
        /// Upper bound of the request's tokens, calibrated for the model.
        tokens: u64,
        /// The limit.
        limit: u64,
    },
    /// The view is about to be compressed.
    CompressionRequested {
        /// Upper bound of the request's tokens, calibrated for the model.
        tokens: u64,
        /// The number of tokens above which the view is compressed. The same as `target` if the provider
        /// has rejected the request as too long.
        threshold: u64,
        /// The number of tokens that the compression aims at.
        target: u64,
    },
    /// A strategy compressed the view.
    CompressionCompleted {
        /// The name of the strategy.
        strategy: &'a str,
        /// Upper bound of the request's tokens before the compression, calibrated for the model. Messages
        /// and tools are counted; the tool description is not sent and not counted.
        before: u64,
        /// Upper bound of the request's tokens after the compression.
        after: u64,
        /// The version that the strategy created.
        version: Version,
    },
    /// A strategy failed or found nothing to compress. The view is unchanged.
    CompressionFailed {
        /// The name of the strategy.
        strategy: &'a str,
        /// Why.
        reason: &'a str,
    },
    /// A compression was deferred, because it would cost more than it saves within the budget's
    /// horizon.
    CompressionDeferred {
        /// The name of the strategy.
        strategy: &'a str,
        /// The number of turns after which it pays off; `None`: never.
        pays_off_after: Option<u64>,
    },
    /// The message of [`Agent::send`](crate::Agent::send) was hidden again, because no request with it can
    /// be sent. The log keeps it.
    MessageHidden {
        /// The entry of the message.
        entry: LogIndex,
    },
    /// A request is about to be sent.
    CallStarted {
        /// The version whose view is sent, or whose old messages are sent for a summary.
        version: Version,
        /// The expected tokens of the request, calibrated for the model.
        tokens: u64,
    },
    /// An increment of the reply.
    Delta(Delta<'a>),
    /// The call of a turn ended, and its manifest is in the log. There is no such event for the call of a
    /// summary.
    CallEnded(&'a Call),
    /// A tool call is about to run.
    ToolStarted {
        /// The id of the tool call.
        id: &'a str,
        /// The name of the tool.
        name: &'a str,
        /// The input, as JSON.
        input: &'a str,
    },
    /// A tool call ended.
    ToolEnded {
        /// The id of the tool call.
        id: &'a str,
        /// The name of the tool.
        name: &'a str,
        /// The output.
        output: &'a str,
        /// Whether the tool call failed.
        is_error: bool,
    },
}
