//! One conversation in a store: what can be done with it.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use recto_core::{
    Append, ArrayState, BatchIndex, BatchSnapshot, Blame, Diff, EntryMeta, Hit, LogEntry, LogIndex,
    MarkMap, Marks, Message, OperationKind, Outcome, PartialConversation, Position, Query,
    SavedSettings, Scope, Stats, Timestamp, Tool, Version, VersionInfo, Warning,
};
use recto_store::{Ancestor, ConversationId};

use crate::open_slots::{Epoch, Slot};
use crate::opened::{Measures, Opened, measures_of};
use crate::{Error, Recto};

/// A conversation in a store. Cloning one costs O(1).
///
/// Several of them, in one process or in many, may read and write the same conversation: each
/// request is applied to what is newest when it is accepted, one after the other.
#[derive(Clone)]
pub struct StoredConversation {
    pub(crate) recto: Recto,
    pub(crate) id: ConversationId,
    pub(crate) setup: Arc<Setup>,
}

impl fmt::Debug for StoredConversation {
    /// Nothing of what is in it: that does not belong into logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoredConversation({})", self.id)
    }
}

/// What stays as it was when the conversation was created.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) settings: String,
    /// What was wanted of it when it was looked up; forks begin with it.
    pub(crate) policy: Option<String>,
    pub(crate) lineage: Vec<Ancestor>,
}

/// A message in an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its number in the log.
    pub index: LogIndex,
    /// Where it stands in the view that was asked; `None` if it is hidden there.
    pub position: Option<Position>,
    /// The message.
    pub message: Message,
    /// Its tokens.
    pub tokens: u64,
    /// The time that the message gives, or that of its arrival.
    pub timestamp: Timestamp,
}

impl StoredConversation {
    /// What it is known by, for ever.
    pub fn id(&self) -> ConversationId {
        self.id
    }

    /// What time it is.
    pub(crate) fn now(&self) -> recto_core::Timestamp {
        self.recto.shared.clock.now()
    }

    pub(crate) async fn open(&self) -> Result<Opened, Error> {
        let shared = &self.recto.shared;
        Opened::open(shared.store.clone(), self.id, &self.setup, &shared.counters).await
    }

    /// What the writer has open, at the newest version.
    pub(crate) async fn newest<'a>(
        &self,
        slot: &Slot<Opened>,
        open: &'a mut Option<Opened>,
    ) -> Result<&'a mut Opened, Error> {
        let known = open.take().or_else(|| slot.snapshot().0);
        Ok(open.insert(self.followed(known).await?))
    }

    /// A snapshot of the newest version, for reading. It waits for no writer.
    pub(crate) async fn reading(&self) -> Result<Reading, Error> {
        let slot = self.recto.shared.open.slot(self.id);
        let (snapshot, epoch) = slot.snapshot();
        let opened = self.followed(snapshot).await?;
        Ok(Reading { opened: Some(opened), slot, epoch })
    }

    /// What is open, at the newest version; opened again if that is too far away.
    async fn followed(&self, known: Option<Opened>) -> Result<Opened, Error> {
        if let Some(mut opened) = known.filter(|opened| !opened.is_heavy())
            && opened.catch_up().await?
        {
            return Ok(opened);
        }
        self.open().await
    }

    /// Asks the engine at the newest version. What it needs is fetched from the store.
    ///
    /// The value that `ask` is given has holes where nothing was asked for yet; methods that return
    /// a `Result` fill them. For messages use [`messages`](Self::messages) and its neighbours.
    async fn read<T>(
        &self,
        ask: impl FnMut(&PartialConversation) -> Result<T, recto_core::Error>,
    ) -> Result<T, Error> {
        self.reading().await?.with(ask).await
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
        self.read(|conversation| Ok(conversation.version())).await
    }

    /// The figures.
    pub async fn stats(&self) -> Result<Stats, Error> {
        self.read(|conversation| Ok(conversation.stats())).await
    }

    /// What the model reads, in order.
    pub async fn messages(&self) -> Result<Vec<Entry>, Error> {
        self.ask(&Query::default()).await
    }

    /// What the model read at a version, in order.
    pub async fn messages_at(&self, version: Version) -> Result<Vec<Entry>, Error> {
        self.ask(&Query { moment: recto_core::Moment::Version(version), ..Query::default() }).await
    }

    /// Answers a query.
    pub async fn ask(&self, query: &Query) -> Result<Vec<Entry>, Error> {
        let mut reading = self.reading().await?;
        let opened = &mut *reading;
        let hits = opened.with(|conversation| conversation.query(query)).await?;
        let indices: Vec<LogIndex> = hits.iter().map(|hit| hit.index).collect();
        opened.fetch_messages(&indices).await?;
        let entry = |hit: Hit| {
            let LogEntry { message, timestamp, .. } = opened.conversation.entry(hit.index)?.clone();
            let Hit { index, position, tokens, .. } = hit;
            Ok(Entry { index, position, message, tokens, timestamp })
        };
        hits.into_iter().map(entry).collect()
    }

    /// The number of entries that a query finds. Messages are read only where the query looks into
    /// them.
    pub async fn count(&self, query: &Query) -> Result<usize, Error> {
        self.read(|conversation| Ok(conversation.query(query)?.len())).await
    }

    /// A message by its number, visible or not.
    pub async fn message(&self, index: LogIndex) -> Result<Option<Message>, Error> {
        let mut reading = self.reading().await?;
        let opened = &mut *reading;
        if index.as_usize() >= opened.conversation.log_len() {
            return Ok(None);
        }
        opened.fetch_messages(&[index]).await?;
        Ok(Some(opened.conversation.message(index)?.clone()))
    }

    /// Log entries by their numbers, visible or not, in the order of `indices`.
    pub async fn entries(&self, indices: &[LogIndex]) -> Result<Vec<Entry>, Error> {
        let mut reading = self.reading().await?;
        let opened = &mut *reading;
        let measures = measures_in(opened, indices).await?;
        opened.fetch_messages(indices).await?;
        let conversation = &opened.conversation;
        let entry = |&index: &LogIndex| {
            let message = conversation.message(index).ok()?.clone();
            let EntryMeta { tokens, timestamp, .. } = *measures.get(&index)?;
            let position = conversation.view().position_of(index);
            Some(Entry { index, position, message, tokens, timestamp })
        };
        Ok(indices.iter().filter_map(entry).collect())
    }

    /// When log entries were said: the time that the message gives, else that of its arrival. In the
    /// order of `indices`, without reading a message.
    pub async fn times(&self, indices: &[LogIndex]) -> Result<Vec<Timestamp>, Error> {
        let mut reading = self.reading().await?;
        let opened = &mut *reading;
        let measures = measures_in(opened, indices).await?;
        let time = |index: &LogIndex| Some(measures.get(index)?.timestamp);
        Ok(indices.iter().filter_map(time).collect())
    }

    /// The labels on log entries, in alphabetical order, and where they stand.
    pub async fn marks(&self) -> Result<Vec<(String, Vec<LogIndex>)>, Error> {
        self.read(|conversation| Ok(labelled(conversation.marks()))).await
    }

    /// The labels as they were at a version.
    pub async fn marks_at(&self, version: Version) -> Result<Vec<(String, Vec<LogIndex>)>, Error> {
        self.read(|conversation| Ok(labelled(conversation.at(version)?.marks()))).await
    }

    /// The tools, if there are any.
    pub async fn tools(&self) -> Result<Vec<Tool>, Error> {
        self.read(|conversation| {
            Ok(conversation.tools().map_or(Vec::new(), |tools| tools.tools().to_vec()))
        })
        .await
    }

    /// The tools as they were at a version, if there were any.
    pub async fn tools_at(&self, version: Version) -> Result<Vec<Tool>, Error> {
        self.read(|conversation| {
            let then = conversation.at(version)?;
            Ok(then.tools().map_or(Vec::new(), |tools| tools.tools().to_vec()))
        })
        .await
    }

    /// How it was set up: the counter, and what goes with it.
    pub async fn settings(&self) -> Result<SavedSettings, Error> {
        self.read(|conversation| Ok(conversation.saved_settings())).await
    }

    /// How many tokens the log had when it was as long as each of these.
    pub async fn log_tokens(&self, lengths: &[usize]) -> Result<Vec<u64>, Error> {
        self.read(|conversation| {
            lengths.iter().map(|&length| conversation.log_tokens(length)).collect()
        })
        .await
    }

    /// What a user should know of the view: separated tool calls and results, and descriptions of
    /// other tools.
    pub async fn warnings(&self) -> Result<Vec<Warning>, Error> {
        self.read(PartialConversation::warnings).await
    }

    /// The [`warnings`](Self::warnings) about the view of a version.
    pub async fn warnings_at(&self, version: Version) -> Result<Vec<Warning>, Error> {
        self.read(|conversation| conversation.at(version)?.warnings()).await
    }

    /// Which request made a version, when, and why.
    pub async fn version_info(&self, version: Version) -> Result<VersionInfo, Error> {
        let found = self.versions(version.0..version.0.saturating_add(1)).await?;
        let current = Version(u32::MAX - 1);
        let missing = recto_core::Error::VersionNotFound { version, current, field: "version" };
        // Only the number behind the last that there can be makes a range without any.
        Ok(found.into_iter().next().ok_or(missing)?)
    }

    /// The versions of a range in order: which request made each, when, and why. Refused if one of
    /// them does not exist.
    pub async fn versions(&self, range: std::ops::Range<u32>) -> Result<Vec<VersionInfo>, Error> {
        let mut reading = self.reading().await?;
        let opened = &mut *reading;
        let current = opened.conversation.version();
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
            let saved = opened.saved_version(version).await?;
            versions.push(saved.info(version));
        }
        Ok(versions)
    }

    /// The version that a version goes on from: the one before it or, where its request went back, the
    /// one whose view it brought back. `None` for version 0.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use recto::{Message, Recto, Rollback, Settings, Version};
    ///
    /// let talk = Recto::open("memory:").await?.create("talk", Settings::default()).await?;
    /// talk.append([Message::user("Left or right?")]).await?;
    /// talk.append([Message::assistant("Left.")]).await?;
    /// talk.apply(Rollback::ToVersion(Version(1))).await?;
    /// talk.append([Message::assistant("Right.")]).await?;
    /// assert_eq!(talk.parent(Version(4)).await?, Some(Version(3)));
    /// assert_eq!(talk.parent(Version(3)).await?, Some(Version(1)));
    /// # Ok::<(), recto::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn parent(&self, version: Version) -> Result<Option<Version>, Error> {
        let info = self.version_info(version).await?;
        let Some(before) = version.0.checked_sub(1) else { return Ok(None) };
        let goes_back = matches!(
            info.operation,
            OperationKind::Rollback
                | OperationKind::BatchEnd
                | OperationKind::Undo
                | OperationKind::Redo
        );
        if !goes_back {
            return Ok(Some(Version(before)));
        }
        let mut reading = self.reading().await?;
        let opened = &mut *reading;
        if let Some(home) = opened.saved_version(version).await?.view_of() {
            return Ok(Some(home));
        }
        // It carried messages along, so its view is new: it goes on from where the batch was left.
        for earlier in (0..=before).rev().map(Version) {
            let saved = opened.saved_version(earlier).await?;
            if saved.batch_opened_by() == info.batch_opened_by {
                return Ok(Some(earlier));
            }
        }
        Ok(Some(Version(before)))
    }

    /// What two versions have in common, and what not.
    pub async fn diff(&self, from: Version, to: Version) -> Result<Diff, Error> {
        self.read(|conversation| conversation.diff(from, to)).await
    }

    /// Everything that happened to an entry, oldest first.
    pub async fn blame(&self, index: LogIndex) -> Result<Vec<Blame>, Error> {
        self.read(|conversation| conversation.blame(index)).await
    }

    /// A batch of the live path: when and why it was opened, and what it holds.
    pub async fn snapshot(&self, batch: BatchIndex) -> Result<BatchSnapshot, Error> {
        self.read(|conversation| conversation.snapshot(batch)).await
    }

    /// The mark map. Its `typeIndices` list the visible entries, or with [`Scope::All`] the whole
    /// log.
    pub async fn mark_map(&self, scope: Scope) -> Result<MarkMap, Error> {
        self.read(|conversation| conversation.mark_map(scope)).await
    }

    /// The mark map as it was at a version.
    pub async fn mark_map_at(&self, version: Version, scope: Scope) -> Result<MarkMap, Error> {
        self.read(|conversation| conversation.at(version)?.mark_map(scope)).await
    }

    /// The visible messages and a snapshot of each batch below the current one.
    pub async fn state(&self) -> Result<ArrayState, Error> {
        self.read(PartialConversation::array_state).await
    }

    /// The [`state`](Self::state) as it was at a version.
    pub async fn state_at(&self, version: Version) -> Result<ArrayState, Error> {
        self.read(|conversation| conversation.at(version)?.array_state()).await
    }

    /// What a request to a provider contains of the view at a version, in order: all visible
    /// messages, but for tool descriptions in a conversation that has tools, because the provider
    /// receives the tools themselves.
    pub async fn messages_to_send(&self, version: Version) -> Result<Vec<Entry>, Error> {
        let described = self.read(|conversation| conversation.at(version)?.tool_descriptions());
        let described = described.await?;
        let mut entries = self.messages_at(version).await?;
        entries.retain(|entry| described.binary_search(&entry.index).is_err());
        Ok(entries)
    }
}

/// A snapshot that is being read. What was loaded meanwhile is published when it is dropped.
pub(crate) struct Reading {
    /// Always there until it is dropped.
    opened: Option<Opened>,
    slot: Arc<Slot<Opened>>,
    epoch: Epoch,
}

impl Deref for Reading {
    type Target = Opened;

    fn deref(&self) -> &Opened {
        self.opened.as_ref().expect("it is there until it is dropped")
    }
}

impl DerefMut for Reading {
    fn deref_mut(&mut self) -> &mut Opened {
        self.opened.as_mut().expect("it is there until it is dropped")
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        if let Some(opened) = self.opened.take() {
            self.slot.publish_again(opened, self.epoch, Opened::is_better_than);
        }
    }
}

/// What is known of entries without their messages. Of these alone, so that a long log need not be
/// measured.
async fn measures_in(opened: &Opened, indices: &[LogIndex]) -> Result<Measures, Error> {
    let len = opened.conversation.log_len();
    if let Some(&index) = indices.iter().find(|index| index.as_usize() >= len) {
        return Err(recto_core::Error::IndexOutOfRange { index, len }.into());
    }
    let mut sorted = indices.to_vec();
    sorted.sort_unstable();
    measures_of(&opened.shelf, &sorted).await
}

fn labelled(marks: &Marks) -> Vec<(String, Vec<LogIndex>)> {
    marks.labels().map(|label| (label.to_owned(), marks.with(label).collect())).collect()
}

#[cfg(test)]
mod tests {
    use recto_core::{Approx, LogIndex, Message, Settings, Version};
    use shuttle::future::block_on;

    use crate::{Keep, Recto};

    /// Shuttle fails the test if everything waits.
    #[test]
    fn reads_do_not_wait_for_a_writer() {
        let mut config = shuttle::Config::new();
        config.stack_size = 4 << 20;
        let scheduler = shuttle::scheduler::RandomScheduler::new(1);
        shuttle::Runner::new(scheduler, config).run(|| block_on(read_beside_a_writer()));
    }

    async fn read_beside_a_writer() {
        let recto = Recto::open("memory:").await.unwrap();
        let settings = Settings::counting_with(Approx);
        let conversation = recto.create("a", settings).await.unwrap();
        conversation.append([Message::user("x")]).await.unwrap();
        // As a writer holds it while it waits for its commit.
        let slot = recto.shared.open.slot(conversation.id);
        let _writer = slot.writer.lock().await;
        assert_eq!(conversation.stats().await.unwrap().total_messages, 1);
        assert_eq!(conversation.messages().await.unwrap().len(), 1);
        assert_eq!(conversation.versions(0..2).await.unwrap().len(), 2);
        assert_eq!(conversation.entries(&[LogIndex(0)]).await.unwrap().len(), 1);
        conversation.diff(Version(0), Version(1)).await.unwrap();
        conversation.state().await.unwrap();
        conversation.messages_to_send(Version(1)).await.unwrap();
        assert!(conversation.verify().await.unwrap().is_sound());
        let keep = Keep { last_versions: Some(1), ..Keep::default() };
        conversation.preview_prune(&keep, None).await.unwrap();
    }
}
