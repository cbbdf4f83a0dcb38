//! A whole conversation as one value: every message, every version, in plain data.
//!
//! Views are written as what changed: which stretches of an earlier view they keep, and which log
//! entries come in between. So the value grows with what was done, not with versions × length.
//!
//! ```text
//!   log       0 1 2 3 4 5 6 …            each message once, as its own bytes
//!   views     #0 [add 0..6]
//!             #1 base #0: keep 4..6      after TRUNCATE keepLast 2
//!             #2 base #1: keep 0..2, add 6
//!   batches   #0 opened by …, left with view #0, below: –
//!   versions  view, batches below, marks, tools, who, when, why, undo, redo
//! ```
//!
//! A number that starts with `#` above is a place in the list of that name. Everything points
//! backwards, so that one pass reads it.

mod load;
mod save;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::operation::OperationKind;
use crate::{LogIndex, Timestamp, Tool, Version};

/// The format that this build writes. It reads no other one yet.
pub const SAVED_FORMAT: u32 = 1;

/// A whole conversation; see [`Conversation::save`](crate::Conversation::save).
///
/// It can be written and read with serde, as JSON or anything else that keeps JSON values raw.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedConversation {
    format: u32,
    counter: String,
    media_tokens: u64,
    heading: String,
    log: Vec<SavedEntry>,
    tools: Vec<Vec<Tool>>,
    views: Vec<SavedView>,
    marks: Vec<SavedMarks>,
    openings: Vec<SavedOpening>,
    batches: Vec<SavedBatch>,
    versions: Vec<SavedVersion>,
}

impl SavedConversation {
    /// The name of the counter that counted the messages.
    pub fn counter_name(&self) -> &str {
        &self.counter
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SavedEntry {
    message: Box<RawValue>,
    timestamp: Timestamp,
    tokens: u64,
}

/// A view: stretches of the view `base`, and log entries.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SavedView {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base: Option<usize>,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Part {
    /// The first place in the base view, and how many.
    Keep(usize, usize),
    /// The first log entry, and how many.
    Add(u32, u32),
}

/// Marks: what changed against the marks `base`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SavedMarks {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base: Option<usize>,
    changes: Vec<SavedMark>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SavedMark {
    label: String,
    set: Vec<LogIndex>,
    unset: Vec<LogIndex>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SavedOpening {
    timestamp: Timestamp,
    description: String,
    boundary: LogIndex,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SavedBatch {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    below: Option<usize>,
    opening: usize,
    view: usize,
    log_len: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SavedVersion {
    operation: OperationKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    timestamp: Timestamp,
    log_len: u32,
    view: usize,
    opening: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    below: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    marks: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tools: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    undo: Option<Version>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    redo: Option<Version>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    steps: Vec<SavedStep>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SavedStep {
    operation: OperationKind,
    description: String,
    view: usize,
}
