//! Limits on the size of input.

use crate::{Error, json};

/// Limits on input. Input that exceeds a limit is refused with the error `too_large`. Later versions may add
/// fields: end a literal with `..Limits::default()` or `..Limits::NONE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of a message, in bytes.
    pub message_bytes: usize,
    /// Maximum depth of lists and objects.
    pub depth: usize,
    /// Maximum number of messages in one request.
    pub messages: usize,
}

impl Default for Limits {
    /// 32 MiB per message, which is enough for the largest image in base64 that a provider accepts;
    /// 64 levels; 10,000 messages per request.
    fn default() -> Self {
        Limits { message_bytes: 32 << 20, depth: 64, messages: 10_000 }
    }
}

impl Limits {
    /// No limits except those of the engine (4 GiB per message, 1,000 levels of tool results inside tool
    /// results), for trusted input.
    pub const NONE: Limits =
        Limits { message_bytes: u32::MAX as usize, depth: usize::MAX, messages: usize::MAX };

    /// Whether a message of this size and depth is within the limits.
    pub(crate) fn allow_message(&self, bytes: usize, depth: usize) -> bool {
        bytes <= self.message_bytes.min(u32::MAX as usize) && depth <= self.depth
    }

    pub(crate) fn check_message(&self, text: &str) -> Result<(), Error> {
        let limit = self.message_bytes.min(u32::MAX as usize);
        check_limit("a message's size in bytes", text.len(), limit)?;
        self.check_depth(text)
    }

    pub(crate) fn check_depth(&self, text: &str) -> Result<(), Error> {
        // Each level takes at least one byte.
        if text.len() <= self.depth {
            return Ok(());
        }
        check_limit("the depth of the JSON", json::depth(text), self.depth)
    }

    pub(crate) fn check_messages(&self, count: usize) -> Result<(), Error> {
        check_limit("the number of messages in the request", count, self.messages)
    }
}

fn check_limit(what: &'static str, size: usize, limit: usize) -> Result<(), Error> {
    if size <= limit { Ok(()) } else { Err(Error::too_large(what, size, limit)) }
}
