//! What happens in a run, for whoever wants to hear of it.

use recto::Version;

use crate::{Call, Delta};

/// Something that happened. Events come in order, while it happens: a listener should be quick.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The request would be over the limit of tokens.
    TokenLimitExceeded {
        /// The tokens of the request, as expected of the model, and its error on top.
        tokens: u64,
        /// The limit.
        limit: u64,
    },
    /// The view is to be made shorter.
    CompressionRequested {
        /// The tokens of the request.
        tokens: u64,
        /// Over so many it is due.
        threshold: u64,
        /// Down to so many.
        target: u64,
    },
    /// A strategy has made the view shorter.
    CompressionCompleted {
        /// Which.
        strategy: &'a str,
        /// The tokens of what was sent of the view before, without tools and their description.
        before: u64,
        /// The tokens of what is sent of the view after.
        after: u64,
        /// The version that it made.
        version: Version,
    },
    /// A strategy has failed, or found nothing to do. The view is as it was.
    CompressionFailed {
        /// Which.
        strategy: &'a str,
        /// Why.
        reason: &'a str,
    },
    /// A compression waits, since it would cost more than it saves within the horizon.
    CompressionWaits {
        /// Which.
        strategy: &'a str,
        /// After how many turns it would pay off; `None`: never.
        pays_off_after: Option<u64>,
    },
    /// A request is sent.
    CallStarted {
        /// The version whose view it is.
        version: Version,
        /// Its tokens, as expected of the model.
        tokens: u64,
    },
    /// A piece of the answer.
    Delta(Delta<'a>),
    /// A call has ended, and its manifest is in the history.
    CallEnded(&'a Call),
    /// A tool is run.
    ToolStarted {
        /// The id of the call.
        id: &'a str,
        /// The tool.
        name: &'a str,
        /// What it is given, as JSON.
        input: &'a str,
    },
    /// A tool has answered.
    ToolEnded {
        /// The id of the call.
        id: &'a str,
        /// The tool.
        name: &'a str,
        /// What it says.
        output: &'a str,
        /// Whether it failed.
        is_error: bool,
    },
}
