//! How large input may be.

use crate::{Error, json};

/// Limits on what is read from JSON. Over them the answer is `too_large`, and nothing changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The bytes of one message.
    pub message_bytes: usize,
    /// How deep lists and objects may go.
    pub depth: usize,
    /// How many messages one request may bring.
    pub messages: usize,
}

impl Default for Limits {
    /// 4 MiB a message, 64 levels, 10,000 messages a request.
    fn default() -> Self {
        Limits { message_bytes: 4 << 20, depth: 64, messages: 10_000 }
    }
}

impl Limits {
    /// No limits but those of the engine's own numbers, for input that is trusted.
    pub const NONE: Limits =
        Limits { message_bytes: u32::MAX as usize, depth: usize::MAX, messages: usize::MAX };

    /// Whether a message of that size and depth is within them.
    pub(crate) fn allow_message(&self, bytes: usize, depth: usize) -> bool {
        bytes <= self.message_bytes.min(u32::MAX as usize) && depth <= self.depth
    }

    pub(crate) fn check_message(&self, text: &str) -> Result<(), Error> {
        let limit = self.message_bytes.min(u32::MAX as usize);
        within("a message's size in bytes", text.len(), limit)?;
        self.check_depth(text)
    }

    pub(crate) fn check_depth(&self, text: &str) -> Result<(), Error> {
        // A text is never deeper than it is long.
        if text.len() <= self.depth {
            return Ok(());
        }
        within("the depth of the JSON", json::depth(text), self.depth)
    }

    pub(crate) fn check_messages(&self, count: usize) -> Result<(), Error> {
        within("the number of messages in the request", count, self.messages)
    }
}

fn within(what: &'static str, size: usize, limit: usize) -> Result<(), Error> {
    if size <= limit { Ok(()) } else { Err(Error::too_large(what, size, limit)) }
}
