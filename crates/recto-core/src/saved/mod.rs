//! A conversation as plain data: every message, every version.
//!
//! A version is written as the change that it is: which stretches of an earlier view it keeps, and
//! which log entries come in between. What it shares with an earlier version it names by that
//! version's number. So what is written grows with what was done, not with versions × length.
//!
//! ```text
//!   log       0 1 2 3 4 5 6 …                   each message once, as its own bytes
//!   versions  1  view: entries 0..6             APPEND
//!             2  view: of 1, places 4..6        TRUNCATE keepLast 2; opens batch 1 on batch 0
//!             3  view: of 2, places 0..2, entry 6
//!             4  view: that of 1                ROLLBACK to version 1
//! ```
//!
//! Everything points backwards, so that one pass reads it. A version can also be read alone: a few
//! earlier ones say the rest ([`SavedVersions`] puts them together), since now and then a view is
//! written as a full list. That is how a store opens a long conversation.

mod load;
mod runs;
mod save;
mod shown;
mod state;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub(crate) use self::runs::Runs;
pub use self::save::Saver;
pub use self::shown::Shown;
pub use self::state::{SavedState, SavedVersions};
use crate::live_path::BatchHome;
use crate::operation::OperationKind;
use crate::{Conversation, LogIndex, Timestamp, Tool, Version};

/// The format that this build writes. It reads no other one yet.
pub const SAVED_FORMAT: u32 = 1;

/// A whole conversation; see [`Conversation::save`].
///
/// It can be written and read with serde, as JSON or anything else that keeps JSON values raw.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedConversation {
    format: u32,
    settings: SavedSettings,
    log: Vec<SavedEntry>,
    versions: Vec<SavedVersion>,
}

impl SavedConversation {
    /// The name of the counter that counted the messages.
    pub fn counter_name(&self) -> &str {
        &self.settings.counter
    }
}

/// How a conversation is set up: what stays as it was when it was created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedSettings {
    /// The name of the counter.
    pub counter: String,
    /// What an image, audio or file part counts for.
    pub media_tokens: u64,
    /// The heading of the tool description.
    pub heading: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SavedEntry {
    message: Box<RawValue>,
    timestamp: Timestamp,
    tokens: u64,
    /// Whether it is a tool description that the engine wrote.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    written_by_engine: bool,
}

/// A version, as the change that it is. Stores keep one for each request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedVersion {
    operation: OperationKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    timestamp: Timestamp,
    log_len: u32,
    /// How many log entries are new.
    #[serde(default, skip_serializing_if = "is_zero")]
    added: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    undo: Option<Version>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    redo: Option<Version>,
    view: SavedView,
    /// How many messages and tokens the view has: so that versions can be listed without it.
    figures: (u32, u64),
    /// The current batch, and its number.
    batch: SavedBatchHome,
    batch_number: u32,
    /// The batches that this request opened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    batches: Vec<SavedBatch>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    marks: Option<SavedMarks>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tools: Option<SavedTools>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    steps: Vec<SavedStep>,
}

/// A view: that of another version, or stretches of it and log entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SavedView {
    /// The version whose view this is, or is made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of: Option<Version>,
    /// How it is made; absent if it is that of the other version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parts: Option<Vec<i64>>,
}

/// A stretch of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The first place in the other view, and how many.
    Keep(usize, usize),
    /// The first log entry, and how many.
    Add(u32, u32),
}

impl Part {
    /// Two numbers: the first place or, below zero, the complement of the first entry; then how
    /// many.
    fn numbers(self) -> [i64; 2] {
        match self {
            Part::Keep(start, len) => [start as i64, len as i64],
            Part::Add(first, len) => [!i64::from(first), i64::from(len)],
        }
    }

    fn from_numbers(numbers: &[i64]) -> Option<Part> {
        let &[start, len] = numbers else { return None };
        if start < 0 {
            return Some(Part::Add((!start).try_into().ok()?, len.try_into().ok()?));
        }
        Some(Part::Keep(start.try_into().ok()?, len.try_into().ok()?))
    }
}

impl SavedView {
    fn same_as(version: Version) -> SavedView {
        SavedView { of: Some(version), parts: None }
    }

    fn made_of(of: Option<Version>, parts: &[Part]) -> SavedView {
        SavedView { of, parts: Some(parts.iter().flat_map(|part| part.numbers()).collect()) }
    }

    fn parts(&self) -> Option<Vec<Part>> {
        let numbers = self.parts.as_deref().unwrap_or_default();
        numbers.chunks(2).map(Part::from_numbers).collect()
    }
}

/// Which batch: the version that opened it, and how many that had opened before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct SavedBatchHome(Version, u32);

impl From<BatchHome> for SavedBatchHome {
    fn from(home: BatchHome) -> Self {
        SavedBatchHome(home.version, home.ordinal)
    }
}

impl From<SavedBatchHome> for BatchHome {
    fn from(SavedBatchHome(version, ordinal): SavedBatchHome) -> Self {
        BatchHome { version, ordinal }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SavedBatch {
    /// How many batches the request had opened before.
    #[serde(default, skip_serializing_if = "is_zero")]
    ordinal: u32,
    timestamp: Timestamp,
    description: String,
    boundary: LogIndex,
    /// The batch that was current at the newest BATCH_START of the live path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    return_to: Option<u32>,
    /// The batch that was left; none for batch 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left: Option<SavedLeft>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SavedLeft {
    batch: SavedBatchHome,
    view: SavedView,
    /// Whether the view is made of the one in which the batch before it in the list was left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    follows: bool,
    log_len: u32,
}

/// Marks: those of another version, and what changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SavedMarks {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of: Option<Version>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    changes: Vec<SavedMark>,
}

impl SavedMarks {
    /// The version that has the same marks, if nothing changed.
    fn home(&self) -> Option<Version> {
        self.of.filter(|_| self.changes.is_empty())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SavedMark {
    label: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    set: Vec<LogIndex>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unset: Vec<LogIndex>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum SavedTools {
    /// Those of another version.
    Of(Version),
    /// These.
    List(Vec<Tool>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SavedStep {
    operation: OperationKind,
    description: String,
    /// How the view it left is made of the one that the step before left: parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    change: Vec<i64>,
}

impl Conversation {
    /// How the conversation is set up.
    pub fn saved_settings(&self) -> SavedSettings {
        SavedSettings {
            counter: self.setup.meter.counter.name().to_owned(),
            media_tokens: self.setup.meter.media_tokens,
            heading: self.setup.headings.own().to_owned(),
        }
    }
}
