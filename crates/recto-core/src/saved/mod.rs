//! A conversation as plain data: every message and every version.
//!
//! A version is written as a change of an earlier one: the parts of its view that are kept, and the log
//! entries between them. A view, marks or tools that equal those of an earlier version are written as
//! the number of that version. The size of the data therefore grows with the number of changes, not with
//! versions × length.
//!
//! ```text
//!   log       0 1 2 3 4 5 6 …                   each message once, byte for byte
//!   versions  1  view: entries 0..6             APPEND
//!             2  view: of 1, positions 4..6     TRUNCATE keepLast 2; opens batch 1 on batch 0
//!             3  view: of 2, positions 0..2, entry 6
//!             4  view: same as 1                ROLLBACK to version 1
//! ```
//!
//! All references point backwards, so one pass reads the data. A single version can also be read
//! with only a few earlier ones ([`SavedVersions`]), because views are written as full lists from time to
//! time. A store opens a long conversation in this way.

mod load;
mod runs;
mod save;
mod shown;
mod state;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub(crate) use self::runs::Runs;
pub use self::save::Saver;
pub use self::shown::ShownEntries;
pub use self::state::{BatchWalk, SavedState, SavedVersions};
use crate::missing::BatchOrigin;
use crate::operation::OperationKind;
use crate::{Conversation, LogIndex, Note, Timestamp, Tool, Version};

/// The format that this build writes, and the only one that it reads.
pub const SAVED_FORMAT: u32 = 1;

/// A whole conversation; see [`Conversation::save`].
///
/// Written and read with serde, as JSON or in another format that supports raw JSON values.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedConversation {
    format: u32,
    settings: SavedSettings,
    log: Vec<SavedEntry>,
    versions: Vec<SavedVersion>,
}

impl SavedConversation {
    /// The name of the counter of the conversation.
    pub fn counter_name(&self) -> &str {
        &self.settings.counter
    }
}

/// The settings of a conversation that never change after its creation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct SavedSettings {
    /// The name of the counter.
    pub counter: String,
    /// Tokens of an image, audio or file part.
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
    /// Whether the message is a tool description that the engine wrote.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    written_by_engine: bool,
}

/// A version as a change of earlier ones. Stores keep one for each request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedVersion {
    operation: OperationKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    timestamp: Timestamp,
    log_len: u32,
    /// Number of new log entries.
    #[serde(default, skip_serializing_if = "is_zero")]
    added: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    undo: Option<Version>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    redo: Option<Version>,
    view: SavedView,
    /// Number of messages and tokens of the view, so that versions can be listed without it.
    figures: (u32, u64),
    /// The current batch, and its number.
    batch: SavedBatchOrigin,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<Note>,
}

/// A view: the view of another version, or parts of that view and log entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SavedView {
    /// The version whose view this is, or whose view the parts refer to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of: Option<Version>,
    /// The parts; absent if the view is that of the other version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parts: Option<Vec<i64>>,
}

/// A part of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Entries of the other view: the first position, and their number.
    Keep(usize, usize),
    /// Log entries: the first index, and their number.
    Add(u32, u32),
}

impl Part {
    /// Two numbers: the first position, or the bitwise complement of the first index, which is negative;
    /// then the number of entries.
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

/// The identity of a batch: the version that opened it, and the number of batches that this version had
/// opened before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct SavedBatchOrigin(Version, u32);

impl From<BatchOrigin> for SavedBatchOrigin {
    fn from(origin: BatchOrigin) -> Self {
        SavedBatchOrigin(origin.version, origin.ordinal)
    }
}

impl From<SavedBatchOrigin> for BatchOrigin {
    fn from(SavedBatchOrigin(version, ordinal): SavedBatchOrigin) -> Self {
        BatchOrigin { version, ordinal }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SavedBatch {
    /// Number of batches that the request had opened before this one.
    #[serde(default, skip_serializing_if = "is_zero")]
    ordinal: u32,
    timestamp: Timestamp,
    description: String,
    boundary: LogIndex,
    /// The batch that was current at the newest BATCH_START of the live path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    return_to: Option<u32>,
    /// The batch below; absent for batch 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left: Option<SavedLeft>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde requires a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SavedLeft {
    batch: SavedBatchOrigin,
    view: SavedView,
    /// Whether the parts refer to the view in `left` of the previous batch in the list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    follows: bool,
    log_len: u32,
}

/// Marks: the marks of another version, and changes to them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SavedMarks {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of: Option<Version>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    changes: Vec<SavedMark>,
}

impl SavedMarks {
    /// The version with the same marks, if there are no changes.
    fn origin(&self) -> Option<Version> {
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
    /// The tools of another version.
    Of(Version),
    /// This list.
    List(Vec<Tool>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SavedStep {
    operation: OperationKind,
    description: String,
    /// The parts of the view after this step, which refer to the view after the previous step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    change: Vec<i64>,
}

impl Conversation {
    /// The settings of the conversation.
    pub fn saved_settings(&self) -> SavedSettings {
        SavedSettings {
            counter: self.shared.meter.counter.name().to_owned(),
            media_tokens: self.shared.meter.media_tokens,
            heading: self.shared.headings.configured().to_owned(),
        }
    }
}
