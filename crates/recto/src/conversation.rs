//! The handle of one stored conversation, and its reads.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use recto_core::{
    Append, ArrayState, BatchIndex, BatchSnapshot, Blame, Diff, EntryMeta, Hit, LogEntry, LogIndex,
    MarkBlame, MarkMap, Marks, Message, OperationKind, Outcome, PartialConversation, Position,
    Query, SavedSettings, Scope, Stats, Timestamp, Tool, Version, VersionInfo, Warning,
};
use recto_store::{ConversationId, Lineage};

use crate::loaded::{LoadedConversation, measures_of};
use crate::row_reader::damaged;
use crate::{Error, Recto};

/// A handle of a stored conversation. A clone costs O(1).
///
/// Any number of handles, in one process or in several, may read and write the same conversation. Each
/// request is applied to the version that is newest when the request is accepted. Reads never wait for
/// writes.
#[derive(Clone)]
pub struct Conversation {
    pub(crate) recto: Recto,
    pub(crate) id: ConversationId,
    pub(crate) creation: Arc<Creation>,
}

impl fmt::Debug for Conversation {
    /// Writes the id and no messages, so that the value can be logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Conversation({})", self.id)
    }
}

/// What never changes after a conversation was created.
#[derive(Debug)]
pub(crate) struct Creation {
    /// The settings as JSON.
    pub(crate) settings: String,
    /// The conversations whose rows it shares.
    pub(crate) lineage: Lineage,
}

/// An entry of the log, as reads return it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// The index in the log.
    pub index: LogIndex,
    /// The position in the view; `None` if the entry is hidden.
    pub position: Option<Position>,
    /// The message.
    pub message: Message,
    /// The tokens of the message.
    pub tokens: u64,
    /// The time that the message contains, or the time when it was added.
    pub timestamp: Timestamp,
}

impl Entry {
    /// A hidden entry with 0 tokens and the timestamp 0, for tests of programs that read entries.
    pub fn new(index: LogIndex, message: Message) -> Entry {
        Entry { index, position: None, message, tokens: 0, timestamp: 0 }
    }
}

impl Conversation {
    /// The id. It never changes; the name can.
    pub fn id(&self) -> ConversationId {
        self.id
    }

    /// The present time.
    pub(crate) fn now(&self) -> Timestamp {
        self.recto.shared.clock.now()
    }

    /// Appends messages.
    pub async fn append(
        &self,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<Outcome, Error> {
        self.apply(Append { messages: messages.into_iter().collect() }).await
    }

    /// The newest version.
    pub async fn version(&self) -> Result<Version, Error> {
        match self.read(|conversation| Ok(conversation.version())).await {
            // The view of the newest version cannot be read, but its number can.
            Err(error) if error.is_damage() => {
                Ok(Version(self.recto.row_by_id(self.id).await?.head.version))
            }
            version => version,
        }
    }

    /// Counts of messages, tokens and batches.
    pub async fn stats(&self) -> Result<Stats, Error> {
        self.read(|conversation| Ok(conversation.stats())).await
    }

    /// The visible entries, in order.
    pub async fn messages(&self) -> Result<Vec<Entry>, Error> {
        self.query(&Query::default()).await
    }

    /// The entries that were visible at a version, in order.
    pub async fn messages_at(&self, version: Version) -> Result<Vec<Entry>, Error> {
        let at = recto_core::QueryAt::Version(version);
        self.query(&Query { at, ..Query::default() }).await
    }

    /// The entries that a query selects.
    pub async fn query(&self, query: &Query) -> Result<Vec<Entry>, Error> {
        let mut reading = match query.at {
            recto_core::QueryAt::Version(version) => self.reading_at(version).await?,
            _ => self.reading().await?,
        };
        let loaded = &mut *reading;
        let hits = loaded.with(|conversation| conversation.query(query)).await?;
        let indices: Vec<LogIndex> = hits.iter().map(|hit| hit.index).collect();
        loaded.load_messages(&indices).await?;
        let entry = |hit: Hit| {
            let LogEntry { message, timestamp, .. } = loaded.conversation.entry(hit.index)?.clone();
            let Hit { index, position, tokens, .. } = hit;
            Ok(Entry { index, position, message, tokens, timestamp })
        };
        hits.into_iter().map(entry).collect()
    }

    /// The number of entries that a query selects. Messages are loaded only if the query compares their
    /// content.
    pub async fn count(&self, query: &Query) -> Result<usize, Error> {
        self.read(|conversation| Ok(conversation.query(query)?.len())).await
    }

    /// The message of an index, visible or hidden. `None` if the log is shorter.
    pub async fn message(&self, index: LogIndex) -> Result<Option<Message>, Error> {
        let mut reading = self.reading().await?;
        let loaded = &mut *reading;
        if index.as_usize() >= loaded.conversation.log_len() {
            return Ok(None);
        }
        loaded.load_messages(&[index]).await?;
        Ok(Some(loaded.conversation.message(index)?.clone()))
    }

    /// The entries of these indices, visible or hidden, in the order of `indices`.
    pub async fn entries(&self, indices: &[LogIndex]) -> Result<Vec<Entry>, Error> {
        let mut reading = self.reading().await?;
        let loaded = &mut *reading;
        let measures = measures_in(loaded, indices).await?;
        loaded.load_messages(indices).await?;
        let conversation = &loaded.conversation;
        let entry = |(&index, measure): (&LogIndex, EntryMeta)| {
            let message = conversation.message(index)?.clone();
            let EntryMeta { tokens, timestamp, .. } = measure;
            let position = conversation.view().position_of(index);
            Ok(Entry { index, position, message, tokens, timestamp })
        };
        indices.iter().zip(measures).map(entry).collect()
    }

    /// The timestamps of these entries, in the order of `indices`. No message is loaded.
    pub async fn times(&self, indices: &[LogIndex]) -> Result<Vec<Timestamp>, Error> {
        let mut reading = self.reading().await?;
        let loaded = &mut *reading;
        let measures = measures_in(loaded, indices).await?;
        Ok(measures.into_iter().map(|measure| measure.timestamp).collect())
    }

    /// The marks in alphabetical order, each with the entries that have it.
    pub async fn marks(&self) -> Result<Vec<(String, Vec<LogIndex>)>, Error> {
        self.read(|conversation| Ok(listed(conversation.marks()))).await
    }

    /// The [`marks`](Self::marks) at a version.
    pub async fn marks_at(&self, version: Version) -> Result<Vec<(String, Vec<LogIndex>)>, Error> {
        self.read_at(version, |conversation| Ok(listed(conversation.at(version)?.marks()))).await
    }

    /// The tools.
    pub async fn tools(&self) -> Result<Vec<Tool>, Error> {
        self.read(|conversation| {
            Ok(conversation.tools().map_or(Vec::new(), |tools| tools.tools().to_vec()))
        })
        .await
    }

    /// The tools at a version.
    pub async fn tools_at(&self, version: Version) -> Result<Vec<Tool>, Error> {
        self.read_at(version, |conversation| {
            let then = conversation.at(version)?;
            Ok(then.tools().map_or(Vec::new(), |tools| tools.tools().to_vec()))
        })
        .await
    }

    /// The settings that the conversation was created with.
    pub async fn settings(&self) -> Result<SavedSettings, Error> {
        self.read(|conversation| Ok(conversation.saved_settings())).await
    }

    /// For each of `lengths`: the sum of the tokens of that many entries from the start of the log. A length
    /// is that of a version's log ([`VersionInfo::log`]).
    pub async fn log_tokens(&self, lengths: &[usize]) -> Result<Vec<u64>, Error> {
        self.read(|conversation| {
            lengths.iter().map(|&length| conversation.log_tokens(length)).collect()
        })
        .await
    }

    /// Warnings about the view: torn tool exchanges, and stale tool descriptions.
    pub async fn warnings(&self) -> Result<Vec<Warning>, Error> {
        self.read(PartialConversation::warnings).await
    }

    /// The [`warnings`](Self::warnings) about the view of a version.
    pub async fn warnings_at(&self, version: Version) -> Result<Vec<Warning>, Error> {
        self.read_at(version, |conversation| conversation.at(version)?.warnings()).await
    }

    /// The operation, reason, time and counts of a version.
    pub async fn version_info(&self, version: Version) -> Result<VersionInfo, Error> {
        let found = self.versions(version..Version(version.0.saturating_add(1))).await?;
        let current = Version(u32::MAX - 1);
        let missing = recto_core::Error::VersionNotFound { version, current, field: "version" };
        // The range is empty only for the largest number, which is never a version.
        Ok(found.into_iter().next().ok_or(missing)?)
    }

    /// [`version_info`](Self::version_info) of a range of versions, in order. Refused if one of them
    /// does not exist.
    pub async fn versions(&self, range: Range<Version>) -> Result<Vec<VersionInfo>, Error> {
        let range = range.start.0..range.end.0;
        let last = Version(range.end.saturating_sub(1));
        let mut reading = self.reading_at(last).await?;
        let loaded = &mut *reading;
        let current = loaded.conversation.version();
        if range.start > range.end {
            let (start, end) = (range.start as usize, range.end as usize);
            return Err(recto_core::Error::InvalidRange { start, end }.into());
        }
        if range.end > current.0 + 1 {
            let version = Version(range.start.max(current.0 + 1));
            return Err(
                recto_core::Error::VersionNotFound { version, current, field: "version" }.into()
            );
        }
        let mut versions = Vec::new();
        for number in range {
            let version = Version(number);
            let saved = loaded.saved_version(version).await?;
            versions.push(saved.info(version));
        }
        Ok(versions)
    }

    /// The version that a version continues: the one before it or, after ROLLBACK, BATCH_END, UNDO and
    /// REDO, the one whose view was restored. `None` for version 0.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use recto::{Approx, Message, Recto, Rollback, Settings, Version};
    ///
    /// let recto = Recto::open("memory:").await?;
    /// let conversation = recto.create("a", Settings::counting_with(Approx)).await?;
    /// conversation.append([Message::user("Left or right?")]).await?;
    /// conversation.append([Message::assistant("Left.")]).await?;
    /// conversation.apply(Rollback::ToVersion(Version(1))).await?;
    /// conversation.append([Message::assistant("Right.")]).await?;
    /// assert_eq!(conversation.parent(Version(4)).await?, Some(Version(3)));
    /// assert_eq!(conversation.parent(Version(3)).await?, Some(Version(1)));
    /// # Ok::<(), recto::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn parent(&self, version: Version) -> Result<Option<Version>, Error> {
        let info = self.version_info(version).await?;
        let Some(before) = version.0.checked_sub(1) else { return Ok(None) };
        if !info.operation.restores_view() {
            return Ok(Some(Version(before)));
        }
        let mut reading = self.reading().await?;
        let loaded = &mut *reading;
        if let Some(origin) = loaded.saved_version(version).await?.version_with_same_view() {
            return Ok(Some(origin));
        }
        // The version carried messages, so its view is new: it continues the last version of the batch.
        for earlier in (0..=before).rev().map(Version) {
            let saved = loaded.saved_version(earlier).await?;
            if saved.batch_opened_by() == info.batch_opened_by {
                return Ok(Some(earlier));
            }
        }
        Ok(Some(Version(before)))
    }

    /// The version whose request an UNDO undid or a REDO redid; `None` for the versions of other operations.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use recto::{Message, Recto, Redo, Settings, Undo, Version};
    ///
    /// let conversation = Recto::open("memory:").await?.create("a", Settings::default()).await?;
    /// conversation.append([Message::user("one")]).await?;
    /// conversation.append([Message::user("two")]).await?;
    /// conversation.apply(Undo).await?;
    /// conversation.apply(Undo).await?;
    /// conversation.apply(Redo).await?;
    /// assert_eq!(conversation.undo_target(Version(3)).await?, Some(Version(2)));
    /// assert_eq!(conversation.undo_target(Version(4)).await?, Some(Version(1)));
    /// assert_eq!(conversation.undo_target(Version(5)).await?, Some(Version(1)));
    /// assert_eq!(conversation.undo_target(Version(2)).await?, None);
    /// # Ok::<(), recto::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn undo_target(&self, version: Version) -> Result<Option<Version>, Error> {
        let mut reading = self.reading_at(version).await?;
        let loaded = &mut *reading;
        let mut target = Some(version);
        let mut operation = loaded.saved_version(version).await?.info(version).operation;
        if operation == OperationKind::Undo {
            target = version.0.checked_sub(1).map(Version);
        } else if operation != OperationKind::Redo {
            return Ok(None);
        }
        // UNDO and REDO restore the state of an earlier version, which may be one of an UNDO or REDO too.
        while let Some(version) = target {
            operation = loaded.saved_version(version).await?.info(version).operation;
            if !matches!(operation, OperationKind::Undo | OperationKind::Redo) {
                break;
            }
            let Some(before) = version.0.checked_sub(1) else { return Ok(None) };
            let before = loaded.saved_version(Version(before)).await?;
            target = if operation == OperationKind::Undo { before.undo() } else { before.redo() };
        }
        Ok(target)
    }

    /// The entries that are visible in only one of two versions, those that moved, and the totals of those
    /// that are visible in both.
    pub async fn diff(&self, from: Version, to: Version) -> Result<Diff, Error> {
        self.read(|conversation| conversation.diff(from, to)).await
    }

    /// The versions that added, hid or showed an entry, oldest first, with their reasons.
    pub async fn blame(&self, index: LogIndex) -> Result<Vec<Blame>, Error> {
        self.read(|conversation| conversation.blame(index)).await
    }

    /// The requests that added a mark to an entry or removed it, oldest first.
    pub async fn blame_marks(&self, index: LogIndex) -> Result<Vec<MarkBlame>, Error> {
        self.read(|conversation| conversation.blame_marks(index)).await
    }

    /// For every log entry that a version hides, the version that hid it last, with its reason. One call is
    /// cheaper than [`blame`](Self::blame) of each entry.
    pub async fn blame_hidden(&self, at: Version) -> Result<Vec<(LogIndex, Blame)>, Error> {
        self.read(|conversation| conversation.blame_hidden(at)).await
    }

    /// The batch snapshot of a batch of the live path: when and why it was opened, and its view.
    pub async fn snapshot(&self, batch: BatchIndex) -> Result<BatchSnapshot, Error> {
        self.read(|conversation| conversation.snapshot(batch)).await
    }

    /// The mark map. Its `typeIndices` list the visible entries or, with [`Scope::All`], all entries of
    /// the log.
    pub async fn mark_map(&self, scope: Scope) -> Result<MarkMap, Error> {
        self.read(|conversation| conversation.mark_map(scope)).await
    }

    /// The [`mark_map`](Self::mark_map) at a version.
    pub async fn mark_map_at(&self, version: Version, scope: Scope) -> Result<MarkMap, Error> {
        self.read_at(version, |conversation| conversation.at(version)?.mark_map(scope)).await
    }

    /// The visible messages, and a batch snapshot of each batch below the current one.
    pub async fn state(&self) -> Result<ArrayState, Error> {
        self.read(PartialConversation::array_state).await
    }

    /// The [`state`](Self::state) at a version.
    pub async fn state_at(&self, version: Version) -> Result<ArrayState, Error> {
        self.read_at(version, |conversation| conversation.at(version)?.array_state()).await
    }

    /// The entries that a provider request contains at a version, in order: the visible ones without
    /// tool descriptions. The provider receives the tools themselves instead.
    pub async fn messages_to_send(&self, version: Version) -> Result<Vec<Entry>, Error> {
        let described =
            self.read_at(version, |conversation| conversation.at(version)?.tool_descriptions());
        let described = described.await?;
        let mut entries = self.messages_at(version).await?;
        entries.retain(|entry| described.binary_search(&entry.index).is_err());
        Ok(entries)
    }
}

/// The measures of these entries, in the order of `indices`. Only their rows are read, because reading all
/// rows of a long log takes much longer.
async fn measures_in(
    loaded: &LoadedConversation,
    indices: &[LogIndex],
) -> Result<Vec<EntryMeta>, Error> {
    let len = loaded.conversation.log_len();
    if let Some(&index) = indices.iter().find(|index| index.as_usize() >= len) {
        return Err(recto_core::Error::IndexOutOfRange { index, len }.into());
    }
    let mut sorted = indices.to_vec();
    sorted.sort_unstable();
    let measures = measures_of(&loaded.reader, &sorted).await?;
    let missing = |index| damaged(loaded.reader.id, format!("log entry {index} is missing"));
    let of = |index| measures.get(index).cloned().ok_or_else(|| missing(index));
    indices.iter().map(of).collect()
}

fn listed(marks: &Marks) -> Vec<(String, Vec<LogIndex>)> {
    marks.labels().map(|label| (label.to_owned(), marks.indices(label).collect())).collect()
}
