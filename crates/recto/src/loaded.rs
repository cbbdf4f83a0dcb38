//! A stored conversation in memory: the value of the engine, and the state for loading more of it and for
//! writing the next version.
//!
//! Loading a conversation reads only its newest version. Everything else is loaded on demand: a method
//! of the engine that needs missing data returns `NotLoaded`, and [`LoadedConversation::with`] loads the
//! data and calls the method again.

use std::ops::Range;
use std::sync::Arc;

use recto_core::{
    BatchIndex, BatchWalk, EntryMeta, LogIndex, Message, Missing, PartialConversation,
    SavedSettings, SavedState, SavedVersion, SavedVersions, Saver, ShownEntries, Version,
};
use recto_store::{Ancestor, ConversationId, Entry, Head, Store};

use crate::Error;
use crate::conversation::Creation;
use crate::recto::Counters;
use crate::row_reader::{OpenCommit, RowReader, damaged, measure};

/// A conversation at the newest version that this process has loaded.
#[derive(Debug)]
pub(crate) struct LoadedConversation {
    pub(crate) reader: RowReader,
    pub(crate) conversation: PartialConversation,
    pub(crate) saver: Saver,
    /// Cache of decoded versions, which other versions need because a version is stored as a change of
    /// others. Snapshots share the cache.
    versions: Arc<SavedVersions>,
    /// Estimated bytes that were loaded.
    loaded_bytes: usize,
}

/// Data that a fork has in common with a loaded conversation.
#[derive(Default)]
struct SharedData {
    /// The metadata of the first log entries.
    metadata: Vec<EntryMeta>,
    versions: Arc<SavedVersions>,
}

/// Upper bound for the loaded data of one conversation, in bytes. Above it the conversation is loaded
/// again, so that data which is not used any more leaves the memory.
const MAX_LOADED_BYTES: usize = 64 << 20;
/// Estimated bytes of a version without its messages.
const VERSION_BYTES: usize = 1_024;
/// Estimated bytes of the opening of a batch.
const OPENING_BYTES: usize = 128;
/// Estimated bytes of an entry without its message.
const ENTRY_BYTES: usize = 256;

/// Capacity of the cache of decoded versions.
const MAX_CACHED_VERSIONS: usize = 4_096;

impl LoadedConversation {
    /// Loads the newest version of a conversation.
    pub(crate) async fn load(
        store: Arc<dyn Store>,
        id: ConversationId,
        creation: &Creation,
        counters: &Counters,
    ) -> Result<LoadedConversation, Error> {
        Self::load_at(store, id, creation, counters, None).await
    }

    /// Loads a conversation as it was at a version; `None` is the newest. A conversation whose newest
    /// version needs damaged rows can be read at versions that do not need them.
    pub(crate) async fn load_at(
        store: Arc<dyn Store>,
        id: ConversationId,
        creation: &Creation,
        counters: &Counters,
        at: Option<Version>,
    ) -> Result<LoadedConversation, Error> {
        let reader = RowReader::new(store, id, creation.lineage.clone()).await?;
        Self::load_from(reader, creation, counters, at, None).await
    }

    /// Loads the newest version of a fork, with the metadata of its log. `ancestor` is a conversation of its
    /// lineage, with the metadata of its log: what the fork shares of it is not read again.
    pub(crate) async fn load_fork(
        store: Arc<dyn Store>,
        id: ConversationId,
        creation: &Creation,
        counters: &Counters,
        ancestor: Option<(&LoadedConversation, Ancestor)>,
    ) -> Result<LoadedConversation, Error> {
        let reader = RowReader::new(store, id, creation.lineage.clone()).await?;
        let shared = match ancestor {
            Some((ancestor, shared)) => SharedData {
                metadata: ancestor.conversation.metadata(0..shared.entries)?,
                versions: match ancestor.versions.len() > MAX_CACHED_VERSIONS {
                    true => Arc::default(),
                    false => Arc::new(ancestor.versions.only_below(Version(shared.versions))),
                },
            },
            None => SharedData::default(),
        };
        Self::load_from(reader, creation, counters, None, Some(shared)).await
    }

    /// Loads the newest version or the version `at`. With `shared` data, the metadata of the log is loaded
    /// too.
    async fn load_from(
        reader: RowReader,
        creation: &Creation,
        counters: &Counters,
        at: Option<Version>,
        shared: Option<SharedData>,
    ) -> Result<LoadedConversation, Error> {
        let id = reader.id;
        let newest = reader.unpacked.last().ok_or_else(|| damaged(id, "it has no version"))?;
        let version = match at {
            Some(version) => version,
            None => {
                newest.check()?;
                Version(newest.head.version)
            }
        };
        let settings: SavedSettings = serde_json::from_str(&creation.settings)
            .map_err(|_| damaged(id, "its settings cannot be read"))?;
        let counter = counters.named(&settings.counter)?;
        let (mut metadata, mut versions) = match shared {
            Some(shared) => (Some(shared.metadata), shared.versions),
            None => (None, Arc::default()),
        };
        let expected = at.is_none().then_some(newest.head.entries);
        let state = state_of(&reader, &mut versions, version).await?;
        let entries = state.log_len();
        if expected.is_some_and(|expected| expected != entries) {
            return Err(damaged(id, "its newest record and row differ in log length"));
        }
        let shown = state.entries();
        if shown.len() >= entries as usize / 2 {
            metadata.get_or_insert_default();
        }
        let conversation = if let Some(mut measures) = metadata {
            let rest = measures.len() as u32..entries;
            measures.extend(reader.measures(rest).await?);
            PartialConversation::open_with_log(&settings, counter, &state, measures)?
        } else {
            let measures = measures_of(&reader, &shown).await?;
            let measure = |index| measures.get(&index).cloned();
            PartialConversation::open(&settings, counter, &state, measure)?
        };
        let mut saver = Saver::default();
        saver.resume_from(&state);
        Ok(LoadedConversation { reader, conversation, saver, versions, loaded_bytes: 0 })
    }

    /// Whether it has a later version than another one, or the same version with more data loaded.
    pub(crate) fn is_better_than(&self, other: &LoadedConversation) -> bool {
        let rank =
            |loaded: &LoadedConversation| (loaded.conversation.version(), loaded.loaded_bytes);
        rank(self) > rank(other)
    }

    /// The head of the newest version.
    pub(crate) fn head(&self) -> Head {
        self.reader.unpacked.last().expect("the newest commit is always there").head
    }

    /// Whether so much is loaded that the conversation should be loaded again.
    pub(crate) fn is_too_large(&self) -> bool {
        self.loaded_bytes > MAX_LOADED_BYTES
    }

    /// Calls the engine until all data that the call needs is loaded.
    pub(crate) async fn with<T>(
        &mut self,
        mut call: impl FnMut(&PartialConversation) -> Result<T, recto_core::Error>,
    ) -> Result<T, Error> {
        loop {
            match call(&self.conversation) {
                Err(error) => match error.root() {
                    recto_core::Error::NotLoaded(missing) => {
                        self.load_missing(missing.clone()).await?
                    }
                    _ => return Err(error.into()),
                },
                Ok(output) => return Ok(output),
            }
        }
    }

    async fn load_missing(&mut self, missing: Missing) -> Result<(), Error> {
        self.limit_versions();
        match missing {
            Missing::Version(version) => self.load_version(version).await,
            Missing::Versions => self.replay().await,
            Missing::Batches(path, batches) => {
                let walk = self.finish_walk(BatchWalk::to_batches(path, batches)).await?;
                let measures = self.measures_of(|| walk.entries()).await?;
                self.loaded_bytes += VERSION_BYTES + measures.len() * ENTRY_BYTES;
                let measure = |index| measures.get(&index).cloned();
                Ok(self.conversation.add_batches(walk, measure)?)
            }
            Missing::Openings(path) => {
                let walk = self.finish_walk(BatchWalk::to_openings(path)).await?;
                self.loaded_bytes += walk.steps() * OPENING_BYTES;
                self.conversation.add_openings(walk);
                Ok(())
            }
            Missing::Log => {
                let len = self.conversation.log_len() as u32;
                let measures = self.reader.measures(0..len).await?;
                Ok(self.conversation.add_metadata(measures.into_iter())?)
            }
            Missing::Messages(indices) => self.load_messages(&indices).await,
            other => Err(damaged(self.reader.id, format!("{other:?} cannot be loaded"))),
        }
    }

    async fn load_version(&mut self, version: Version) -> Result<(), Error> {
        let state = state_of(&self.reader, &mut self.versions, version).await?;
        let measures = self.measures_of(|| state.entries()).await?;
        self.loaded_bytes += VERSION_BYTES + measures.len() * ENTRY_BYTES;
        let measure = |index| measures.get(&index).cloned();
        Ok(self.conversation.add_version(&state, measure)?)
    }

    /// Loads every version, one after the other, so that they share their common parts.
    async fn replay(&mut self) -> Result<(), Error> {
        let newest = self.conversation.version();
        let measures = self.reader.measures(0..self.conversation.log_len() as u32).await?;
        let settings = self.conversation.saved_settings();
        let counter = self.conversation.counter().clone();
        let mut replayed: Option<PartialConversation> = None;
        for version in (0..=newest.0).map(Version) {
            let saved = self.saved_version(version).await?;
            let added = saved.log_len().saturating_sub(saved.added())..saved.log_len();
            let added = added.start as usize..added.end as usize;
            let added =
                measures.get(added).ok_or_else(|| damaged(self.reader.id, "the log is short"))?;
            let added: Vec<_> = added.iter().map(|measure| (None, measure.clone())).collect();
            replayed = Some(match &replayed {
                None => PartialConversation::first(&settings, counter.clone(), &saved, added)?,
                Some(before) => before.followed_by(&saved, added)?,
            });
        }
        self.conversation = replayed.ok_or_else(|| damaged(self.reader.id, "it has no version"))?;
        self.loaded_bytes += newest.0 as usize * VERSION_BYTES;
        Ok(())
    }

    /// The measures of sorted entries. Empty if the engine has the measures of the whole log.
    async fn measures_of(
        &self,
        entries: impl FnOnce() -> Vec<LogIndex>,
    ) -> Result<Measures, Error> {
        match self.conversation.has_metadata() {
            true => Ok(Measures::default()),
            false => measures_of(&self.reader, &entries()).await,
        }
    }

    async fn load_record(&mut self, error: recto_core::Error) -> Result<(), Error> {
        load_record(&self.reader, &mut self.versions, error).await
    }

    /// Loads the messages of these entries.
    pub(crate) async fn load_messages(&mut self, indices: &[LogIndex]) -> Result<(), Error> {
        let mut missing = self.conversation.missing_messages(indices.iter().copied());
        missing.sort_unstable();
        for range in ranges_of(missing.iter().copied()) {
            let entries = self.reader.entries(range.clone()).await?;
            let mut messages = Vec::new();
            for (number, entry) in range.zip(entries) {
                if missing.binary_search(&LogIndex(number)).is_ok() {
                    self.loaded_bytes += ENTRY_BYTES + entry.body.len();
                    messages.push((LogIndex(number), read_message(&self.reader, &entry.body)?));
                }
            }
            self.conversation.add_messages(messages);
        }
        Ok(())
    }

    /// The record of a version.
    pub(crate) async fn saved_version(&mut self, version: Version) -> Result<SavedVersion, Error> {
        self.limit_versions();
        loop {
            if let Some(saved) = self.versions.get(version) {
                return Ok(saved.clone());
            }
            let missing = recto_core::Error::NotLoaded(Missing::Version(version));
            self.load_record(missing).await?;
        }
    }

    /// Empties the cache of decoded versions if it is full. Not called while a version is being
    /// decoded, because that may need any number of other versions.
    fn limit_versions(&mut self) {
        if self.versions.len() > MAX_CACHED_VERSIONS {
            self.versions = Arc::default();
        }
    }

    /// Advances a walk to its end, and loads the records that it needs.
    async fn finish_walk(&mut self, mut walk: BatchWalk) -> Result<BatchWalk, Error> {
        let mut steps = walk.steps();
        while let Err(error) = walk.advance(&self.versions) {
            // The cache is emptied only between two steps, because one step may need any number of versions.
            if walk.steps() > steps {
                steps = walk.steps();
                self.limit_versions();
            }
            self.load_record(error).await?;
        }
        Ok(walk)
    }

    /// The version that opened a batch of a version's live path.
    pub(crate) async fn opened_by(
        &mut self,
        version: Version,
        batch: BatchIndex,
    ) -> Result<Version, Error> {
        let saved = self.saved_version(version).await?;
        let walk = self.finish_walk(BatchWalk::to_batch_of(&saved, batch)).await?;
        Ok(walk.opened_by())
    }

    /// Makes a stored version the newest one. The commits below `packed_below` are in pages now.
    pub(crate) fn advance(
        &mut self,
        commit: Arc<OpenCommit>,
        next: PartialConversation,
        packed_below: u32,
    ) {
        self.reader.unpacked.drop_below(packed_below);
        let new = self.conversation.log_len() as u32..next.log_len() as u32;
        let messages = new.filter_map(|index| next.message(LogIndex(index)).ok());
        let messages = messages.map(|message| message.json().len() + ENTRY_BYTES);
        self.loaded_bytes += VERSION_BYTES + messages.sum::<usize>();
        self.reader.unpacked.push(commit);
        self.conversation = next;
    }

    /// Adds the versions that other writers have stored. `false` if that is not possible, for example
    /// because they are packed already, or because this value may hold messages that were erased or pruned
    /// since: then the conversation must be loaded again.
    pub(crate) async fn catch_up(&mut self) -> Result<bool, Error> {
        let (commits, rewrites) = self.reader.newer_commits(self.head().version).await?;
        if rewrites != self.reader.rewrites {
            return Ok(false);
        }
        if !commits.is_empty() && !self.conversation.has_metadata() {
            return Ok(false);
        }
        for commit in commits {
            commit.check()?;
            if commit.head.version != self.head().version + 1
                || commit.entries.len() as u32 != commit.head.entries - self.head().entries
            {
                return Ok(false);
            }
            let saved = read_record(&self.reader, &commit.record)?;
            let messages = commit.entries.iter().map(|entry| read_entry(&self.reader, entry));
            let messages: Vec<_> = messages.collect::<Result<_, Error>>()?;
            let next = self.with(|conversation| conversation.followed_by(&saved, messages.clone()));
            let next = match next.await {
                // The engine cannot add the version to the loaded data.
                Err(Error::Engine(_)) => return Ok(false),
                next => next?,
            };
            // The saver has the costs only of versions that it has written itself, so the next version is
            // written in full.
            self.saver = Saver::default();
            self.advance(commit, next, 0);
        }
        Ok(true)
    }
}

/// Adds the entries that are visible at a version.
async fn show(
    reader: &RowReader,
    versions: &mut Arc<SavedVersions>,
    version: Version,
    shown: &mut ShownEntries,
) -> Result<(), Error> {
    loop {
        match shown.add(versions, version) {
            Err(error) => load_record(reader, versions, error).await?,
            Ok(()) => return Ok(()),
        }
    }
}

/// Adds the entries that are visible at some versions. It reads the rows of these versions, and of the other
/// versions that are needed to decode them.
pub(crate) async fn show_all(
    reader: &RowReader,
    shown_versions: impl Iterator<Item = Version>,
    shown: &mut ShownEntries,
) -> Result<(), Error> {
    let mut versions = Arc::<SavedVersions>::default();
    for version in shown_versions {
        if versions.len() > MAX_CACHED_VERSIONS {
            versions = Arc::default();
        }
        show(reader, &mut versions, version, shown).await?;
    }
    Ok(())
}

/// The state of a version, decoded from its record and the records that it depends on.
pub(crate) async fn state_of(
    reader: &RowReader,
    versions: &mut Arc<SavedVersions>,
    version: Version,
) -> Result<SavedState, Error> {
    loop {
        match versions.state(version) {
            Err(error) => load_record(reader, versions, error).await?,
            Ok(state) => return Ok(state),
        }
    }
}

/// Loads the record that an error names, and the other records of the same row.
async fn load_record(
    reader: &RowReader,
    versions: &mut Arc<SavedVersions>,
    error: recto_core::Error,
) -> Result<(), Error> {
    let &recto_core::Error::NotLoaded(Missing::Version(version)) = error.root() else {
        return Err(error.into());
    };
    for (number, record) in reader.records(version.0).await? {
        if versions.get(Version(number)).is_none() {
            let read = read_record(reader, &record.json)?;
            Arc::make_mut(versions).insert(Version(number), read);
        }
    }
    match versions.get(version) {
        Some(_) => Ok(()),
        None => Err(damaged(reader.id, format!("version {version} is missing"))),
    }
}

/// The measures of some entries: runs of consecutive entries, each with the index of its first.
#[derive(Debug, Default)]
pub(crate) struct Measures(Vec<(u32, Vec<EntryMeta>)>);

impl Measures {
    pub(crate) fn get(&self, index: &LogIndex) -> Option<&EntryMeta> {
        let behind = self.0.partition_point(|(first, _)| *first <= index.0);
        let (first, run) = self.0.get(behind.checked_sub(1)?)?;
        run.get((index.0 - first) as usize)
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|(_, run)| run.len()).sum()
    }
}

/// The measures of sorted entries.
pub(crate) async fn measures_of(
    reader: &RowReader,
    entries: &[LogIndex],
) -> Result<Measures, Error> {
    let mut measures = Measures::default();
    for range in ranges_of(entries.iter().copied()) {
        measures.0.push((range.start, reader.measures(range).await?));
    }
    Ok(measures)
}

/// Sorted entries as ranges. Entries that are less than a page apart are in one range.
fn ranges_of(sorted: impl Iterator<Item = LogIndex>) -> Vec<Range<u32>> {
    const PAGE_ENTRIES: u32 = 64;
    let mut ranges: Vec<Range<u32>> = Vec::new();
    for LogIndex(index) in sorted {
        match ranges.last_mut() {
            Some(range) if index < range.end.saturating_add(PAGE_ENTRIES) => {
                range.end = range.end.max(index + 1)
            }
            _ => ranges.push(index..index + 1),
        }
    }
    ranges
}

pub(crate) fn read_record(reader: &RowReader, json: &str) -> Result<SavedVersion, Error> {
    serde_json::from_str(json).map_err(|_| damaged(reader.id, "a version cannot be read"))
}

/// A stored log entry in the form of the engine.
pub(crate) fn read_entry(
    reader: &RowReader,
    entry: &Entry<impl AsRef<str>>,
) -> Result<(Option<Message>, EntryMeta), Error> {
    let measure = measure(entry.meta.clone()).map_err(|error| damaged(reader.id, error))?;
    Ok((Some(read_message(reader, entry.body.as_ref())?), measure))
}

pub(crate) fn read_message(reader: &RowReader, json: &str) -> Result<Message, Error> {
    let message = Message::from_json_within(json, &recto_core::Limits::NONE);
    message.map_err(|_| damaged(reader.id, "a message cannot be read"))
}

impl Clone for LoadedConversation {
    /// A snapshot that shares all loaded data. The saver stays with the
    /// writer.
    fn clone(&self) -> LoadedConversation {
        LoadedConversation {
            reader: self.reader.clone(),
            conversation: self.conversation.clone(),
            saver: Saver::default(),
            versions: self.versions.clone(),
            loaded_bytes: self.loaded_bytes,
        }
    }
}
