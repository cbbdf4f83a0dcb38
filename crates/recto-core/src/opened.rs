//! A conversation that a store opened: only what was asked for is at hand.
//!
//! Such a value is like any other, but with holes: versions, batches and messages that are still in
//! the store, and a log of which nothing but the length is known. A method that comes upon a hole
//! answers [`Error::NotLoaded`] and changes nothing; whoever opened the conversation fetches what
//! is [`Missing`], puts it in with the methods here, and asks again. So the engine reads a long
//! conversation without ever knowing what a disk is.

use std::sync::Arc;

use crate::conversation::Setup;
use crate::counter::Counter;
use crate::history::{History, Record, Story};
use crate::live_path::{Leaving, LeftBatch, LivePath, OpenBatch, StoredPath};
use crate::message_log::MessageLog;
use crate::saved::Runs;
use crate::state::State;
use crate::tool_exchange::Edges;
use crate::view::Placed;
use crate::{
    BatchIndex, Conversation, Error, LogIndex, Message, Role, SavedSettings, SavedState,
    SavedVersions, Timestamp, ToolSet, Version, View,
};

/// What is not at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Missing {
    /// A version: [`Conversation::add_version`].
    Version(Version),
    /// All versions: [`Conversation::add_version`] for each.
    Versions,
    /// A batch of a live path: [`Conversation::add_batch`].
    Batch(StoredPath, BatchIndex),
    /// How all batches of a live path began: [`Conversation::add_openings`].
    Batches(StoredPath),
    /// What every log entry measures: [`Conversation::add_measures`].
    Log,
    /// Messages: [`Conversation::add_messages`].
    Messages(Vec<LogIndex>),
}

/// What can be known of a log entry without its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Who wrote it.
    pub role: Role,
    /// What it was counted as.
    pub tokens: u64,
    /// The time that the message gives, or that of its arrival.
    pub timestamp: Timestamp,
    /// The tool calls and results in it that have no partner in it. What the numbers mean is known
    /// to the engine alone, and stays the same for ever.
    pub edges: Vec<u64>,
    /// Whether it is a tool description that the engine wrote.
    pub is_written_by_engine: bool,
}

impl Measure {
    pub(crate) fn placed(&self, index: LogIndex) -> Placed {
        Placed::new(index, self.role, self.tokens, Edges::from_numbers(&self.edges))
    }
}

impl Conversation {
    /// Opens a conversation at a version, with what the entries of its view measure.
    ///
    /// `measure` is asked for these entries only, unless the log is put at hand later.
    pub fn open(
        settings: &SavedSettings,
        counter: Arc<dyn Counter>,
        state: &SavedState,
        measure: impl FnMut(LogIndex) -> Option<Measure>,
    ) -> Result<Conversation, Error> {
        let log = MessageLog::opened(state.log_len() as usize);
        Conversation::open_on(log, settings, counter, state, measure)
    }

    /// [`open`](Self::open), with what every log entry measures, in order. Better where the version
    /// shows most of the log: its view shares memory with it, and so will those of other versions.
    pub fn open_measured(
        settings: &SavedSettings,
        counter: Arc<dyn Counter>,
        state: &SavedState,
        measures: Vec<Measure>,
    ) -> Result<Conversation, Error> {
        let mut log = MessageLog::opened(state.log_len() as usize);
        if measures.len() != log.len() {
            return Err(damaged("not every log entry is measured"));
        }
        log.measure(measures.into_iter());
        Conversation::open_on(log, settings, counter, state, |_| None)
    }

    fn open_on(
        mut log: MessageLog,
        settings: &SavedSettings,
        counter: Arc<dyn Counter>,
        state: &SavedState,
        measure: impl FnMut(LogIndex) -> Option<Measure>,
    ) -> Result<Conversation, Error> {
        if state.version.0 == u32::MAX {
            return Err(damaged("there can be no version of this number"));
        }
        let setup = settings.setup(counter)?;
        let record = make_record(&setup, &mut log, state, measure)?;
        let history = History::opened_at(state.version, record);
        Ok(Conversation { setup, log, history })
    }

    /// Puts a version at hand. `measure` is asked as by [`open`](Self::open), if the log is not at
    /// hand.
    pub fn add_version(
        &mut self,
        state: &SavedState,
        measure: impl FnMut(LogIndex) -> Option<Measure>,
    ) -> Result<(), Error> {
        if state.version >= self.version() || state.log_len() as usize > self.log.len() {
            return Err(damaged("the version to be put at hand came later"));
        }
        let record = make_record(&self.setup, &mut self.log, state, measure)?;
        self.history.fill(state.version, record);
        Ok(())
    }

    /// Puts what every log entry measures at hand.
    pub fn add_measures(
        &mut self,
        measures: impl ExactSizeIterator<Item = Measure>,
    ) -> Result<(), Error> {
        match measures.len() == self.log.len() {
            true => {
                self.log.measure(measures);
                Ok(())
            }
            false => Err(damaged("not every log entry is measured")),
        }
    }

    /// Whether it is known what every log entry measures: writing needs it.
    pub fn is_log_at_hand(&self) -> bool {
        self.log.is_measured()
    }

    /// Puts messages at hand. An entry's message must be the one that was logged.
    pub fn add_messages(&mut self, messages: impl IntoIterator<Item = (LogIndex, Message)>) {
        self.log.fill(messages);
    }

    /// Which of these messages are not at hand.
    pub fn missing_messages(&self, indices: impl IntoIterator<Item = LogIndex>) -> Vec<LogIndex> {
        let is_missing = |index: &LogIndex| self.log.message(*index).is_absent();
        indices.into_iter().filter(is_missing).collect()
    }

    /// Puts a batch of a live path at hand: it is put together from saved versions, which
    /// [`Error::NotLoaded`] asks for one by one.
    pub fn add_batch(
        &mut self,
        path: StoredPath,
        batch: BatchIndex,
        versions: &SavedVersions,
        measure: impl FnMut(LogIndex) -> Option<Measure>,
    ) -> Result<(), Error> {
        let left = versions.left_batch(path, batch.0)?;
        let view = make_view(&mut self.log, &left.view, measure)?;
        let open = OpenBatch::on_stored(left.opening, left.batch, left.number);
        let leaving = Leaving { view, view_home: left.view_home.into(), log_len: left.log_len };
        self.setup.known_batches.know(path, batch, LeftBatch::new(open, leaving));
        Ok(())
    }

    /// Puts at hand how the batches of a live path began, from saved versions.
    pub fn add_openings(
        &mut self,
        path: StoredPath,
        versions: &SavedVersions,
    ) -> Result<(), Error> {
        self.setup.known_batches.know_openings(path, versions.openings(path)?);
        Ok(())
    }

    /// What log entries measure, to be stored beside their messages.
    pub fn measures(&self, entries: std::ops::Range<u32>) -> impl Iterator<Item = Measure> {
        let range = entries.start as usize..entries.end as usize;
        self.log.as_view().0.iter_range(range).map(|placed| Measure {
            role: placed.role(),
            tokens: placed.tokens(),
            timestamp: self.log.get(placed.index()).map_or(0, |entry| entry.timestamp),
            edges: placed.edges.numbers(),
            is_written_by_engine: self.log.is_written_by_engine(placed.index()),
        })
    }
}

fn damaged(reason: &str) -> Error {
    Error::Damaged { reason: reason.to_owned() }
}

fn make_record(
    setup: &Setup,
    log: &mut MessageLog,
    saved: &SavedState,
    measure: impl FnMut(LogIndex) -> Option<Measure>,
) -> Result<Record, Error> {
    let tools = match &saved.tools {
        Some(tools) => ToolSet::new(tools.clone(), &setup.headings)?.map(Arc::new),
        None => None,
    };
    let number = saved.saved.batch_number() as usize;
    let current = OpenBatch::on_stored(saved.opening.clone(), saved.batch, number);
    let view = make_view(log, &saved.view, measure)?;
    let marks = saved.marks.clone();
    let state = State { view, path: LivePath { current }, marks, homes: saved.homes };
    saved.saved.check_figures(&state)?;
    let mut record = saved.saved.record(state, None);
    if record.is_plain() {
        // It cannot be told from the version before, which may not be at hand.
        record.story = Story::told(saved.saved.description().into());
    }
    Ok(Record { tools, tools_home: saved.tools_home, ..record })
}

/// A view of these entries. If the log is measured, it shares memory with it.
fn make_view(
    log: &mut MessageLog,
    runs: &Runs,
    mut measure: impl FnMut(LogIndex) -> Option<Measure>,
) -> Result<View, Error> {
    let mut view = View::default();
    if log.is_measured() {
        for (first, len) in runs.iter() {
            let range = first.as_usize()..first.as_usize() + len as usize;
            if range.len() < 64 {
                view.0.extend(log.as_view().0.iter_range(range).cloned());
            } else {
                view.0.append(&log.as_view().0.slice(range));
            }
        }
        return Ok(view);
    }
    let mut entries = Vec::with_capacity(runs.entries());
    let mut times = Vec::with_capacity(runs.entries());
    for index in runs.indices() {
        let measured = measure(index).ok_or_else(|| damaged("an entry of the view is missing"))?;
        times.push((index, measured.timestamp));
        entries.push(measured.placed(index));
    }
    log.date(times);
    Ok(View(entries.into_iter().collect()))
}
