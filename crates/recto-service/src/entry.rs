//! Log entries in responses, with the same fields in every response.

use recto::{Conversation, LogIndex, Message, Position, Query, QueryAt, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{Error, schema};

/// A log entry: `{index, position?, tokens, timestamp, marks?, message}`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Entry")]
#[non_exhaustive]
pub struct ShownEntry {
    /// Its index in the log.
    #[schemars(with = "u32")]
    pub index: LogIndex,
    /// Its position in the view, from 0. Missing if it is hidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub position: Option<Position>,
    /// Its tokens.
    pub tokens: u64,
    /// The timestamp of the message, else the time when it was added, in milliseconds since 1970.
    pub timestamp: Timestamp,
    /// Its marks, in alphabetical order. Missing if it has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<String>,
    /// The message, as it was stored.
    #[schemars(with = "schema::Message")]
    pub message: Message,
}

/// A mark and its entries.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct MarkedEntries {
    /// The mark.
    pub mark: String,
    /// The log entries that have it.
    #[schemars(with = "Vec<u32>")]
    pub indices: Vec<LogIndex>,
}

impl From<recto::Entry> for ShownEntry {
    fn from(entry: recto::Entry) -> ShownEntry {
        let recto::Entry { index, position, message, tokens, timestamp, .. } = entry;
        ShownEntry { index, position, tokens, timestamp, marks: Vec::new(), message }
    }
}

/// The entries that a query finds, with their marks at the queried version. If the query names no version (it
/// may name a batch), the marks are those of the newest version.
pub async fn entries_of(
    conversation: &Conversation,
    query: &Query,
) -> Result<Vec<ShownEntry>, recto::Error> {
    let entries = conversation.query(query).await?;
    let marks = match query.at {
        QueryAt::Version(version) => conversation.marks_at(version).await?,
        _ => conversation.marks().await?,
    };
    Ok(with_marks(entries, &marks))
}

/// Log entries, visible or hidden, with their marks at the newest version.
pub(crate) async fn entries_at(
    conversation: &Conversation,
    indices: &[LogIndex],
) -> Result<Vec<ShownEntry>, recto::Error> {
    let entries = conversation.entries(indices).await?;
    Ok(with_marks(entries, &conversation.marks().await?))
}

/// Entries with their marks. `marks` has the indices of the entries of each mark, in ascending order.
pub fn with_marks(
    entries: Vec<recto::Entry>,
    marks: &[(String, Vec<LogIndex>)],
) -> Vec<ShownEntry> {
    let mut shown: Vec<ShownEntry> = entries.into_iter().map(ShownEntry::from).collect();
    for (mark, indices) in marks {
        for entry in &mut shown {
            if indices.binary_search(&entry.index).is_ok() {
                entry.marks.push(mark.clone());
            }
        }
    }
    shown
}

/// Marks as they appear in responses.
pub(crate) fn marked(marks: Vec<(String, Vec<LogIndex>)>) -> Vec<MarkedEntries> {
    marks.into_iter().map(|(mark, indices)| MarkedEntries { mark, indices }).collect()
}

/// Log indices from numbers.
pub(crate) fn indices_of(numbers: &[u64]) -> Vec<LogIndex> {
    numbers.iter().map(|&number| index_of(number)).collect()
}

/// A log index from a number. A number above `u32::MAX` becomes `u32::MAX`, which is never an index.
pub(crate) fn index_of(number: u64) -> LogIndex {
    LogIndex(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Fails if an index is outside of the log.
pub(crate) fn check_indices(indices: &[LogIndex], len: usize) -> Result<(), Error> {
    match indices.iter().find(|index| index.as_usize() >= len) {
        Some(&index) => Err(recto::EngineError::IndexOutOfRange { index, len }.into()),
        None => Ok(()),
    }
}
