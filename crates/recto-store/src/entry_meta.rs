//! The stored facts about a log entry. The hash chain covers the role, the tokens and the timestamp.

use serde::{Deserialize, Serialize};

/// The facts about a log entry that are read without its message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryMeta {
    /// The number of its role. The crate `recto` adds a bit to it if the engine wrote the message.
    pub role: u8,
    /// Its number of tokens.
    pub tokens: u32,
    /// The timestamp of the message, or else the time at which it was added, in milliseconds since 1970.
    pub timestamp: i64,
    /// Hashes of the tool calls without a result in this entry, and of the results without a call in it.
    pub edges: Vec<u64>,
    /// The SHA-256 of the original message, if it was erased or pruned. The hash chain then uses it.
    pub gone: Option<[u8; 32]>,
}
