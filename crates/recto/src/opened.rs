//! A conversation that is open: the engine's value, and what it takes to fetch the rest of it and
//! to write the next version.
//!
//! The engine's value has holes where nothing was asked for yet. [`Opened::with`] asks the engine,
//! fetches what it misses, and asks again, until it answers.

use std::ops::Range;
use std::sync::Arc;

use recto_core::{
    BatchIndex, EntryMeta, LogIndex, Message, Missing, PartialConversation, SavedSettings,
    SavedState, SavedVersion, SavedVersions, Saver, Shown, Version,
};
use recto_store::{ConversationId, Entry, Head, Store};

use crate::Error;
use crate::packing::Packing;
use crate::recto::Counters;
use crate::shelf::{OpenCommit, Shelf, Tail, damaged, measure};
use crate::stored::Setup;

/// An open conversation at its newest version, as far as this process knows.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) shelf: Shelf,
    pub(crate) conversation: PartialConversation,
    pub(crate) saver: Saver,
    /// Saved versions that were read, to put others together. Snapshots share them.
    versions: Arc<SavedVersions>,
    /// About how many bytes were put at hand since it was opened.
    weight: usize,
    /// Commits that are being packed.
    pub(crate) packing: Option<Packing>,
}

/// An open conversation that has become heavier than this is opened anew: what nobody asks for again
/// must not stay in memory.
const MOST_WEIGHT: usize = 64 << 20;
/// About what a version takes beside its messages.
const VERSION_WEIGHT: usize = 1_024;
/// About what an entry takes beside its message.
const ENTRY_WEIGHT: usize = 256;

/// More saved versions than these are not kept.
const MOST_VERSIONS: usize = 4_096;

impl Opened {
    /// Opens a conversation: reads its newest version, and nothing of its history beyond that.
    pub(crate) async fn open(
        store: Arc<dyn Store>,
        id: ConversationId,
        setup: &Setup,
        counters: &Counters,
    ) -> Result<Opened, Error> {
        let lineage = setup.lineage.clone();
        let mut shelf = Shelf { store, id, lineage, tail: Tail::default() };
        shelf.tail = shelf.commits(None).await?.into();
        let newest = shelf.tail.last().ok_or_else(|| damaged(id, "it has no version"))?;
        let version = Version(newest.head.version);
        let settings: SavedSettings = serde_json::from_str(&setup.settings)
            .map_err(|_| damaged(id, "its settings cannot be read"))?;
        let counter = counters.named(&settings.counter)?;
        let mut versions = Arc::<SavedVersions>::default();
        let entries = newest.head.entries;
        let state = state_of(&shelf, &mut versions, version).await?;
        if state.log_len() != entries {
            return Err(damaged(id, "its newest version is not of its log"));
        }
        let shown = state.entries();
        let conversation = if shown.len() >= entries as usize / 2 {
            let measures = shelf.measures(0..entries).await?;
            PartialConversation::open_with_log(&settings, counter, &state, measures)?
        } else {
            let measures = measures_of(&shelf, &shown).await?;
            let measure = |index| measures.get(&index).cloned();
            PartialConversation::open(&settings, counter, &state, measure)?
        };
        let mut saver = Saver::default();
        saver.resume_from(&state);
        Ok(Opened { shelf, conversation, saver, versions, weight: 0, packing: None })
    }

    /// Whether it is of a later version than another one, or of the same with more loaded.
    pub(crate) fn is_better_than(&self, other: &Opened) -> bool {
        let rank = |opened: &Opened| (opened.conversation.version(), opened.weight);
        rank(self) > rank(other)
    }

    /// The newest version, as it is stored.
    pub(crate) fn head(&self) -> Head {
        self.shelf.tail.last().expect("the newest commit is always there").head
    }

    /// Whether so much was put at hand that it should be opened anew.
    pub(crate) fn is_heavy(&self) -> bool {
        self.weight > MOST_WEIGHT
    }

    /// Asks the engine, fetching what it misses until it answers.
    pub(crate) async fn with<T>(
        &mut self,
        mut ask: impl FnMut(&PartialConversation) -> Result<T, recto_core::Error>,
    ) -> Result<T, Error> {
        loop {
            match ask(&self.conversation) {
                Err(error) => match error.root() {
                    recto_core::Error::NotLoaded(missing) => self.fetch(missing.clone()).await?,
                    _ => return Err(error.into()),
                },
                Ok(answer) => return Ok(answer),
            }
        }
    }

    async fn fetch(&mut self, missing: Missing) -> Result<(), Error> {
        self.forget_versions();
        match missing {
            Missing::Version(version) => self.fetch_version(version).await,
            Missing::Versions => self.replay().await,
            Missing::Batch(path, batch) => {
                let entries = loop {
                    match self.versions.batch_entries(path, batch) {
                        Err(error) => self.fetch_record(error).await?,
                        Ok(entries) => break entries,
                    }
                };
                let measures = self.measures_of(|| entries).await?;
                self.weight += VERSION_WEIGHT + measures.len() * ENTRY_WEIGHT;
                let measure = |index| measures.get(&index).cloned();
                Ok(self.conversation.add_batch(path, batch, &self.versions, measure)?)
            }
            Missing::Batches(path) => loop {
                match self.conversation.add_openings(path, &self.versions) {
                    Err(error) => self.fetch_record(error).await?,
                    Ok(()) => return Ok(()),
                }
            },
            Missing::Log => {
                let len = self.conversation.log_len() as u32;
                let measures = self.shelf.measures(0..len).await?;
                Ok(self.conversation.add_metadata(measures.into_iter())?)
            }
            Missing::Messages(indices) => self.fetch_messages(&indices).await,
            other => Err(damaged(self.shelf.id, format!("{other:?} cannot be fetched"))),
        }
    }

    async fn fetch_version(&mut self, version: Version) -> Result<(), Error> {
        let state = state_of(&self.shelf, &mut self.versions, version).await?;
        let measures = self.measures_of(|| state.entries()).await?;
        self.weight += VERSION_WEIGHT + measures.len() * ENTRY_WEIGHT;
        let measure = |index| measures.get(&index).cloned();
        Ok(self.conversation.add_version(&state, measure)?)
    }

    /// Puts every version at hand, one after the other, so that they share what they have in common.
    async fn replay(&mut self) -> Result<(), Error> {
        let newest = self.conversation.version();
        let measures = self.shelf.measures(0..self.conversation.log_len() as u32).await?;
        let settings = self.conversation.saved_settings();
        let counter = self.conversation.counter().clone();
        let mut replayed: Option<PartialConversation> = None;
        for version in (0..=newest.0).map(Version) {
            let saved = self.saved_version(version).await?;
            let added = saved.log_len().saturating_sub(saved.added())..saved.log_len();
            let added = added.start as usize..added.end as usize;
            let added =
                measures.get(added).ok_or_else(|| damaged(self.shelf.id, "the log is short"))?;
            let added: Vec<_> = added.iter().map(|measure| (None, measure.clone())).collect();
            replayed = Some(match &replayed {
                None => PartialConversation::first(&settings, counter.clone(), &saved, added)?,
                Some(before) => before.followed_by(&saved, added)?,
            });
        }
        self.conversation = replayed.ok_or_else(|| damaged(self.shelf.id, "it has no version"))?;
        self.weight += newest.0 as usize * VERSION_WEIGHT;
        Ok(())
    }

    /// What these entries, which are in order, measure; nothing if the engine knows it already.
    async fn measures_of(
        &self,
        entries: impl FnOnce() -> Vec<LogIndex>,
    ) -> Result<Measures, Error> {
        match self.conversation.has_metadata() {
            true => Ok(Measures::default()),
            false => measures_of(&self.shelf, &entries()).await,
        }
    }

    async fn fetch_record(&mut self, error: recto_core::Error) -> Result<(), Error> {
        fetch_record(&self.shelf, &mut self.versions, error).await
    }

    /// Puts messages at hand, with their neighbours in the same rows as far as they are asked for.
    pub(crate) async fn fetch_messages(&mut self, indices: &[LogIndex]) -> Result<(), Error> {
        let mut missing = self.conversation.missing_messages(indices.iter().copied());
        missing.sort_unstable();
        for range in near(missing.iter().copied()) {
            let entries = self.shelf.entries(range.clone()).await?;
            let mut messages = Vec::new();
            for (number, entry) in range.zip(entries) {
                if missing.binary_search(&LogIndex(number)).is_ok() {
                    self.weight += ENTRY_WEIGHT + entry.body.len();
                    messages.push((LogIndex(number), read_message(&self.shelf, &entry.body)?));
                }
            }
            self.conversation.add_messages(messages);
        }
        Ok(())
    }

    /// A version as it is saved.
    pub(crate) async fn saved_version(&mut self, version: Version) -> Result<SavedVersion, Error> {
        self.forget_versions();
        loop {
            if let Some(saved) = self.versions.get(version) {
                return Ok(saved.clone());
            }
            let missing = recto_core::Error::NotLoaded(Missing::Version(version));
            self.fetch_record(missing).await?;
        }
    }

    /// Adds the entries that a version shows or marks.
    pub(crate) async fn show(&mut self, version: Version, shown: &mut Shown) -> Result<(), Error> {
        self.forget_versions();
        loop {
            match shown.add(&self.versions, version) {
                Err(error) => self.fetch_record(error).await?,
                Ok(()) => return Ok(()),
            }
        }
    }

    /// Lets go of saved versions, if they have become many. Not while something is put together: it
    /// may take any number of them.
    fn forget_versions(&mut self) {
        if self.versions.len() > MOST_VERSIONS {
            self.versions = Arc::default();
        }
    }

    /// The version that opened a batch of a version's live path.
    pub(crate) async fn opened_by(
        &mut self,
        version: Version,
        batch: BatchIndex,
    ) -> Result<Version, Error> {
        loop {
            match self.versions.opened_by(version, batch) {
                Err(error) => self.fetch_record(error).await?,
                Ok(opened_by) => return Ok(opened_by),
            }
        }
    }

    /// Goes on with a version that is stored now; the commits below another one are packed.
    pub(crate) fn advance(
        &mut self,
        commit: Arc<OpenCommit>,
        next: PartialConversation,
        packed_below: u32,
    ) {
        self.shelf.tail.drop_below(packed_below);
        let new = self.conversation.log_len() as u32..next.log_len() as u32;
        let messages = new.filter_map(|index| next.message(LogIndex(index)).ok());
        let messages = messages.map(|message| message.json().len() + ENTRY_WEIGHT);
        self.weight += VERSION_WEIGHT + messages.sum::<usize>();
        self.shelf.tail.push(commit);
        self.conversation = next;
    }

    /// Follows the versions that others have made meanwhile. `false` if they are too many: then the
    /// conversation has to be opened anew.
    pub(crate) async fn catch_up(&mut self) -> Result<bool, Error> {
        let commits = self.shelf.commits(Some(self.head().version)).await?;
        if !commits.is_empty() && !self.conversation.has_metadata() {
            return Ok(false);
        }
        for commit in commits {
            if commit.head.version != self.head().version + 1
                || commit.entries.len() as u32 != commit.head.entries - self.head().entries
            {
                return Ok(false);
            }
            let saved = read_record(&self.shelf, &commit.record)?;
            let messages = commit.entries.iter().map(|entry| read_entry(&self.shelf, entry));
            let messages: Vec<_> = messages.collect::<Result<_, Error>>()?;
            let next = self.with(|conversation| conversation.followed_by(&saved, messages.clone()));
            let next = match next.await {
                // It is made of something that cannot be put at hand alone.
                Err(Error::Engine(_)) => return Ok(false),
                next => next?,
            };
            // What was read tells nothing about how the new version is written: the next one is
            // written in full.
            self.saver = Saver::default();
            self.advance(commit, next, 0);
        }
        Ok(true)
    }
}

/// What a version consists of, with as many records as it takes.
async fn state_of(
    shelf: &Shelf,
    versions: &mut Arc<SavedVersions>,
    version: Version,
) -> Result<SavedState, Error> {
    loop {
        match versions.state(version) {
            Err(error) => fetch_record(shelf, versions, error).await?,
            Ok(state) => return Ok(state),
        }
    }
}

/// Fetches the record that an error asks for, and those in one row with it.
async fn fetch_record(
    shelf: &Shelf,
    versions: &mut Arc<SavedVersions>,
    error: recto_core::Error,
) -> Result<(), Error> {
    let &recto_core::Error::NotLoaded(Missing::Version(version)) = error.root() else {
        return Err(error.into());
    };
    for (number, record) in shelf.records(version.0).await? {
        if versions.get(Version(number)).is_none() {
            let read = read_record(shelf, &record.json)?;
            Arc::make_mut(versions).insert(Version(number), read);
        }
    }
    match versions.get(version) {
        Some(_) => Ok(()),
        None => Err(damaged(shelf.id, format!("version {version} is missing"))),
    }
}

/// What some entries measure: runs of neighbours, each with the number of its first.
#[derive(Debug, Default)]
pub(crate) struct Measures(Vec<(u32, Vec<EntryMeta>)>);

impl Measures {
    pub(crate) fn get(&self, index: &LogIndex) -> Option<&EntryMeta> {
        let behind = self.0.partition_point(|(first, _)| *first <= index.0);
        let (first, run) = self.0.get(behind.checked_sub(1)?)?;
        run.get((index.0 - first) as usize)
    }

    /// How many entries they are.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|(_, run)| run.len()).sum()
    }
}

/// What these entries, which are in order, measure.
pub(crate) async fn measures_of(shelf: &Shelf, entries: &[LogIndex]) -> Result<Measures, Error> {
    let mut measures = Measures::default();
    for range in near(entries.iter().copied()) {
        measures.0.push((range.start, shelf.measures(range).await?));
    }
    Ok(measures)
}

/// Sorted entries as ranges; those that are less than a page apart are fetched together.
fn near(sorted: impl Iterator<Item = LogIndex>) -> Vec<Range<u32>> {
    const NEAR: u32 = 64;
    let mut ranges: Vec<Range<u32>> = Vec::new();
    for LogIndex(index) in sorted {
        match ranges.last_mut() {
            Some(range) if index < range.end.saturating_add(NEAR) => {
                range.end = range.end.max(index + 1)
            }
            _ => ranges.push(index..index + 1),
        }
    }
    ranges
}

pub(crate) fn read_record(shelf: &Shelf, json: &str) -> Result<SavedVersion, Error> {
    serde_json::from_str(json).map_err(|_| damaged(shelf.id, "a version cannot be read"))
}

/// A log entry, as the engine takes it.
pub(crate) fn read_entry(
    shelf: &Shelf,
    entry: &Entry<impl AsRef<str>>,
) -> Result<(Option<Message>, EntryMeta), Error> {
    let measure = measure(entry.meta.clone()).map_err(|error| damaged(shelf.id, error))?;
    Ok((Some(read_message(shelf, entry.body.as_ref())?), measure))
}

pub(crate) fn read_message(shelf: &Shelf, json: &str) -> Result<Message, Error> {
    let message = Message::from_json_within(json, &recto_core::Limits::NONE);
    message.map_err(|_| damaged(shelf.id, "a message cannot be read"))
}

impl Clone for Opened {
    /// A copy that shares everything that is loaded. What a writer has begun stays with it.
    fn clone(&self) -> Opened {
        Opened {
            shelf: self.shelf.clone(),
            conversation: self.conversation.clone(),
            saver: Saver::default(),
            versions: self.versions.clone(),
            weight: self.weight,
            packing: None,
        }
    }
}
