//! The stored facts about a log entry. The hash chain covers them.

use serde::{Deserialize, Serialize};

/// The facts about a log entry that need no message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryMeta {
    /// The number of its role.
    pub role: u8,
    /// Its number of tokens.
    pub tokens: u32,
    /// The time in the message, or the time of its arrival.
    pub timestamp: i64,
    /// Hashes of the tool calls and results whose counterparts are in other entries.
    pub edges: Vec<u64>,
    /// The hash of the original message, if it was erased or pruned.
    pub gone: Option<[u8; 32]>,
}
