//! Partially loaded conversations.
//!
//! A [`PartialConversation`] contains its newest version. Other versions, batches, messages and the metadata
//! of log entries may be *not loaded*. A method that needs something that is not loaded returns
//! [`Error::NotLoaded`] and changes nothing; the error names what is [`Missing`](crate::Missing). The
//! caller reads it from its store, adds it with the method that `Missing` documents for it, and calls the
//! first method again. The engine therefore reads a long conversation without doing I/O.
//!
//! No method of [`PartialConversation`] computes a result from incomplete data, and no method returns an
//! incomplete [`Conversation`].

use std::ops::Range;
use std::sync::Arc;

use crate::counter::Counter;
use crate::history::{History, Reason, Record};
use crate::live_path::{Leaving, LeftBatch, LivePath, OpenBatch};
use crate::message_log::{EntryMeta, LogEntry, MessageLog, check_loaded, is_loaded};
use crate::saved::{BatchWalk, Runs};
use crate::settings::Shared;
use crate::state::State;
use crate::{
    ArrayState, BatchIndex, BatchSnapshot, Blame, Conversation, Diff, Error, Hit, Inconsistency,
    LogIndex, MarkBlame, MarkMap, Marks, Message, Note, Outcome, Query, Request, SavedSettings,
    SavedState, SavedVersion, Scope, Stats, Timestamp, Tool, ToolSet, Version, View, Warning,
};

/// A conversation whose versions, batches and messages may be partially loaded; see the module
/// documentation. A clone costs O(1).
///
/// A method with the same name as a method of [`Conversation`] does the same.
#[derive(Clone, Debug)]
pub struct PartialConversation(pub(crate) Conversation);

impl From<Conversation> for PartialConversation {
    fn from(conversation: Conversation) -> Self {
        PartialConversation(conversation)
    }
}

/// Forwards methods to [`Conversation`], where they return an error if they need data that is not loaded.
macro_rules! delegate {
    ($($name:ident(&self $(, $argument:ident: $type:ty)*) -> $result:ty;)*) => {
        impl PartialConversation {
            $(#[doc = concat!("See [`Conversation::", stringify!($name), "`].")]
            pub fn $name(&self $(, $argument: $type)*) -> $result {
                self.0.$name($($argument),*)
            })*
        }
    };
}

delegate! {
    version(&self) -> Version;
    view(&self) -> &View;
    stats(&self) -> Stats;
    marks(&self) -> &Marks;
    tools(&self) -> Option<&ToolSet>;
    counter(&self) -> &Arc<dyn Counter>;
    saved_settings(&self) -> SavedSettings;
    query(&self, query: &Query) -> Result<Vec<Hit>, Error>;
    diff(&self, from: Version, to: Version) -> Result<Diff, Error>;
    blame(&self, index: LogIndex) -> Result<Vec<Blame>, Error>;
    blame_marks(&self, index: LogIndex) -> Result<Vec<MarkBlame>, Error>;
    blame_hidden(&self, at: Version) -> Result<Vec<(LogIndex, Blame)>, Error>;
    mark_map(&self, scope: Scope) -> Result<MarkMap, Error>;
    snapshot(&self, batch: BatchIndex) -> Result<BatchSnapshot, Error>;
    array_state(&self) -> Result<ArrayState, Error>;
    warnings(&self) -> Result<Vec<Warning>, Error>;
    tool_descriptions(&self) -> Result<Vec<LogIndex>, Error>;
    log_tokens(&self, len: usize) -> Result<u64, Error>;
    outcome(&self, version: Version) -> Result<Outcome, Error>;
    idle_outcome(&self, version: Version) -> Result<Outcome, Error>;
    verify(&self) -> Result<(), Inconsistency>;
}

impl PartialConversation {
    /// Opens a conversation at a version. `metadata` returns the metadata of an entry; it is called for
    /// the entries of the view.
    pub fn open(
        settings: &SavedSettings,
        counter: Arc<dyn Counter>,
        state: &SavedState,
        metadata: impl FnMut(LogIndex) -> Option<EntryMeta>,
    ) -> Result<PartialConversation, Error> {
        let log = MessageLog::not_loaded(state.log_len() as usize);
        Self::open_on(log, settings, counter, state, metadata)
    }

    /// [`open`](Self::open) with the metadata of every log entry, in order. Use it if the version shows
    /// most of the log: its view and the views of other versions then share memory with the log.
    pub fn open_with_log(
        settings: &SavedSettings,
        counter: Arc<dyn Counter>,
        state: &SavedState,
        metadata: Vec<EntryMeta>,
    ) -> Result<PartialConversation, Error> {
        let mut log = MessageLog::not_loaded(state.log_len() as usize);
        if metadata.len() != log.len() {
            return Err(damaged("the metadata of some log entries is missing"));
        }
        log.load_metadata(metadata.into_iter());
        Self::open_on(log, settings, counter, state, |_| None)
    }

    fn open_on(
        mut log: MessageLog,
        settings: &SavedSettings,
        counter: Arc<dyn Counter>,
        state: &SavedState,
        metadata: impl FnMut(LogIndex) -> Option<EntryMeta>,
    ) -> Result<PartialConversation, Error> {
        if state.version.0 == u32::MAX {
            return Err(damaged("the number of the version is too large"));
        }
        let shared = settings.shared(counter)?;
        let record = make_record(&shared, &mut log, state, metadata)?;
        let history = History::with_newest_only(state.version, record);
        Ok(PartialConversation(Conversation { shared, log, history }))
    }

    /// Adds a version. `metadata` has the same meaning as for [`open`](Self::open). It is not called if the
    /// metadata of the log is loaded.
    pub fn add_version(
        &mut self,
        state: &SavedState,
        metadata: impl FnMut(LogIndex) -> Option<EntryMeta>,
    ) -> Result<(), Error> {
        let Conversation { shared, log, history } = &mut self.0;
        if state.version >= history.current_version() || state.log_len() as usize > log.len() {
            return Err(damaged("the added version is newer than the conversation"));
        }
        let record = make_record(shared, log, state, metadata)?;
        history.load(state.version, record);
        Ok(())
    }

    /// Adds the metadata of every log entry.
    pub fn add_metadata(
        &mut self,
        metadata: impl ExactSizeIterator<Item = EntryMeta>,
    ) -> Result<(), Error> {
        if metadata.len() != self.log_len() {
            return Err(damaged("the metadata of some log entries is missing"));
        }
        self.0.log.load_metadata(metadata);
        Ok(())
    }

    /// Whether the metadata of every log entry is loaded. Requests need it.
    pub fn has_metadata(&self) -> bool {
        self.0.log.has_metadata()
    }

    /// Adds messages. The message of an entry must be the one that was added to the log.
    pub fn add_messages(&mut self, messages: impl IntoIterator<Item = (LogIndex, Message)>) {
        self.0.log.load_messages(messages);
    }

    /// Those of the indices whose messages are not loaded. The indices must be in the log.
    pub fn missing_messages(&self, indices: impl IntoIterator<Item = LogIndex>) -> Vec<LogIndex> {
        let is_missing = |index: &LogIndex| self.0.log.message(*index).is_absent();
        indices.into_iter().filter(is_missing).collect()
    }

    /// Adds the batches that a walk has collected. `metadata` is called as by [`open`](Self::open), unless
    /// the metadata of the log is loaded.
    pub fn add_batches(
        &mut self,
        walk: BatchWalk,
        mut metadata: impl FnMut(LogIndex) -> Option<EntryMeta>,
    ) -> Result<(), Error> {
        for left in walk.left {
            let view = make_view(&mut self.0.log, &left.view, &mut metadata)?;
            let open = OpenBatch::on_stored(left.opening, left.batch, left.number);
            let (view_origin, log_len) = (left.view_origin.into(), left.log_len);
            let left_batch = LeftBatch::new(open, Leaving { view, view_origin, log_len });
            let batch = BatchIndex(left.number);
            self.0.shared.loaded_batches.insert(walk.path, batch, left_batch);
        }
        Ok(())
    }

    /// Adds the openings that a walk to batch 0 has collected.
    pub fn add_openings(&mut self, walk: BatchWalk) {
        let openings = walk.openings.into_iter().rev().collect();
        self.0.shared.loaded_batches.insert_openings(walk.path, openings);
    }

    /// The conversation at version 0, with its log entries: their metadata, and their messages if they
    /// are loaded. Further versions [follow](Self::followed_by).
    pub fn first(
        settings: &SavedSettings,
        counter: Arc<dyn Counter>,
        saved: &SavedVersion,
        entries: impl IntoIterator<Item = (Option<Message>, EntryMeta)>,
    ) -> Result<PartialConversation, Error> {
        Conversation::first(settings, counter, saved, entries).map(PartialConversation)
    }

    /// The conversation with one more version that another process made and saved, and with its new log
    /// entries: their metadata, and their messages if they are loaded.
    ///
    /// [`Error::NotLoaded`] names a version that the new one refers to.
    pub fn followed_by(
        &self,
        saved: &SavedVersion,
        entries: impl IntoIterator<Item = (Option<Message>, EntryMeta)>,
    ) -> Result<PartialConversation, Error> {
        self.0.followed_by(saved, entries).map(PartialConversation)
    }

    /// See [`Conversation::apply_request`].
    pub fn apply_request(
        &self,
        request: &Request,
        now: Timestamp,
    ) -> Result<(PartialConversation, Outcome), Error> {
        let (next, outcome) = self.0.apply_request(request, now)?;
        Ok((PartialConversation(next), outcome))
    }

    /// See [`Conversation::set_tools`].
    pub fn set_tools(
        &self,
        tools: Vec<Tool>,
        now: Timestamp,
    ) -> Result<(PartialConversation, Outcome), Error> {
        let (next, outcome) = self.0.set_tools(tools, now)?;
        Ok((PartialConversation(next), outcome))
    }

    /// See [`Conversation::with_note`].
    pub fn with_note(&self, note: Note) -> PartialConversation {
        PartialConversation(self.0.with_note(note))
    }

    /// See [`Conversation::at`].
    pub fn at(&self, version: Version) -> Result<PartialConversation, Error> {
        self.0.at(version).map(PartialConversation)
    }

    /// See [`Conversation::verify_since`].
    pub fn verify_since(&self, base: &PartialConversation) -> Result<(), Inconsistency> {
        self.0.verify_since(&base.0)
    }

    /// Length of the log.
    pub fn log_len(&self) -> usize {
        self.0.log.len()
    }

    /// A log entry.
    pub fn entry(&self, index: LogIndex) -> Result<&LogEntry, Error> {
        let log = &self.0.log;
        let entry = log.get(index).ok_or(Error::IndexOutOfRange { index, len: log.len() })?;
        let mut absent = Vec::new();
        is_loaded(entry, index, &mut absent);
        check_loaded(absent)?;
        Ok(entry)
    }

    /// The message of a log entry.
    pub fn message(&self, index: LogIndex) -> Result<&Message, Error> {
        Ok(&self.entry(index)?.message)
    }

    /// The tokens of a log entry.
    pub fn tokens(&self, index: LogIndex) -> Result<u64, Error> {
        self.0.log.check_metadata()?;
        let len = self.log_len();
        self.0.log.tokens(index).ok_or(Error::IndexOutOfRange { index, len })
    }

    /// The metadata of log entries, to be stored beside their messages.
    pub fn metadata(&self, entries: Range<u32>) -> Result<Vec<EntryMeta>, Error> {
        let log = &self.0.log;
        log.check_metadata()?;
        let range = entries.start as usize..entries.end as usize;
        let view_entry = log.as_view().0.iter_range(range);
        let metadata = view_entry.map(|view_entry| EntryMeta {
            role: view_entry.role(),
            tokens: view_entry.tokens(),
            timestamp: log.get(view_entry.index()).map_or(0, |entry| entry.timestamp),
            edges: view_entry.edges.numbers(),
            is_written_by_engine: log.is_written_by_engine(view_entry.index()),
        });
        Ok(metadata.collect())
    }

    /// The conversation, if everything is loaded.
    pub fn into_whole(self) -> Result<Conversation, Error> {
        self.0.check_all_loaded()?;
        Ok(self.0)
    }
}

impl Conversation {
    /// Tests that everything is loaded.
    pub(crate) fn check_all_loaded(&self) -> Result<(), Error> {
        self.history.check_all_loaded()?;
        self.state().path.check_all_loaded()?;
        self.log.check_metadata()?;
        let numbered = self.log.iter().enumerate();
        let absent = numbered.filter(|(_, entry)| entry.message.is_absent());
        check_loaded(absent.map(|(number, _)| LogIndex(number as u32)).collect())
    }
}

fn damaged(reason: &str) -> Error {
    Error::Damaged { reason: reason.to_owned() }
}

fn make_record(
    shared: &Shared,
    log: &mut MessageLog,
    saved: &SavedState,
    metadata: impl FnMut(LogIndex) -> Option<EntryMeta>,
) -> Result<Record, Error> {
    let tools = match &saved.tools {
        Some(tools) => ToolSet::new(tools.clone(), &shared.headings)?.map(Arc::new),
        None => None,
    };
    let number = saved.saved.batch_number() as usize;
    let current = OpenBatch::on_stored(saved.opening.clone(), saved.batch, number);
    let view = make_view(log, &saved.view, metadata)?;
    let marks = saved.marks.clone();
    let state = State { view, path: LivePath { current }, marks, origins: saved.origins };
    saved.saved.check_sizes(&state)?;
    let mut record = saved.saved.record(state, None);
    if record.has_implicit_reason() {
        // An implicit reason is computed from the previous version, which may not be loaded.
        record.reason = Reason::text(saved.saved.reason().into());
    }
    Ok(Record { tools, tools_origin: saved.tools_origin, ..record })
}

/// A view of these entries. If the metadata of the log is loaded, long runs of the view share memory with
/// the log. Otherwise `metadata` is called for each entry, and the log takes its timestamp and whether the
/// engine wrote it.
fn make_view(
    log: &mut MessageLog,
    runs: &Runs,
    mut metadata: impl FnMut(LogIndex) -> Option<EntryMeta>,
) -> Result<View, Error> {
    let mut view = View::default();
    if log.has_metadata() {
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
    let mut entries = Vec::with_capacity(runs.entry_count());
    let mut times = Vec::with_capacity(runs.entry_count());
    let mut written_by_engine = Vec::new();
    for index in runs.indices() {
        let meta = metadata(index).ok_or_else(|| damaged("an entry of the view is missing"))?;
        times.push((index, meta.timestamp));
        if meta.is_written_by_engine {
            written_by_engine.push(index);
        }
        entries.push(meta.view_entry(index));
    }
    log.load_timestamps(times);
    log.load_written_by_engine(written_by_engine);
    Ok(View(entries.into_iter().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Approx, Code, Delete, Missing, SavedVersions, Saver, Settings};

    /// A conversation of three messages, and the same with only its newest version loaded.
    fn whole_and_partial() -> (Conversation, PartialConversation) {
        let start = Conversation::new(Settings::counting_with(Approx), 0).unwrap();
        let (appended, _) = start.append(["a", "b", "c"].map(Message::user), 1).unwrap();
        let (whole, _) = appended.apply(Delete { indices: vec![LogIndex(1)] }, 2).unwrap();
        let mut saver = Saver::default();
        let mut versions = SavedVersions::default();
        for version in (0..3).map(Version) {
            let saved = saver.newest(&whole.at(version).unwrap().into());
            versions.insert(version, saved);
        }
        let state = versions.state(Version(2)).unwrap();
        let metadata = PartialConversation::from(whole.clone()).metadata(0..3).unwrap();
        let metadata = |index: LogIndex| metadata.get(index.as_usize()).cloned();
        let settings = whole.saved_settings();
        let counter = whole.counter().clone();
        let partial = PartialConversation::open(&settings, counter, &state, metadata).unwrap();
        (whole, partial)
    }

    fn missing<T: std::fmt::Debug>(read: Result<T, Error>) -> Missing {
        match read.unwrap_err() {
            Error::NotLoaded(missing) => missing,
            other => panic!("another error: {other}"),
        }
    }

    #[test]
    fn a_partial_conversation_reads_the_loaded_data() {
        let (whole, partial) = whole_and_partial();
        assert_eq!(partial.version(), whole.version());
        assert_eq!(partial.stats(), whole.stats());
        assert!(partial.view().iter().eq(whole.view().iter()));
        assert_eq!(
            partial.query(&Query::default()).unwrap(),
            whole.query(&Query::default()).unwrap()
        );
    }

    #[test]
    fn every_read_of_something_that_is_not_loaded_is_an_error() {
        let (_, partial) = whole_and_partial();
        let first = LogIndex(0);
        assert_eq!(missing(partial.message(first)), Missing::Messages(vec![first]));
        assert_eq!(missing(partial.entry(first)), Missing::Messages(vec![first]));
        let visible = Missing::Messages(vec![first, LogIndex(2)]);
        assert_eq!(missing(partial.snapshot(BatchIndex(1))), visible);
        assert!(matches!(
            missing(partial.snapshot(BatchIndex(0))),
            Missing::Batches(_, Range { start: 0, end: 1 })
        ));
        assert!(matches!(
            missing(partial.array_state()),
            Missing::Batches(_, Range { start: 0, end: 1 })
        ));
        assert!(matches!(missing(partial.mark_map(Scope::Visible)), Missing::Openings(_)));
        assert_eq!(missing(partial.at(Version(1))), Missing::Version(Version(1)));
        assert_eq!(missing(partial.diff(Version(1), Version(2))), Missing::Version(Version(1)));
        assert_eq!(missing(partial.blame(first)), Missing::Versions);
        assert_eq!(missing(partial.outcome(Version(2))), Missing::Log);
        assert_eq!(missing(partial.tokens(first)), Missing::Log);
        assert_eq!(missing(partial.metadata(0..3)), Missing::Log);
        assert_eq!(missing(partial.log_tokens(1)), Missing::Log);
        assert_eq!(missing(partial.warnings()), Missing::Log);
        let all = Query { scope: Scope::All, ..Query::default() };
        assert_eq!(missing(partial.query(&all)), Missing::Log);
        let words = Query::containing("a");
        assert_eq!(missing(partial.query(&words)), visible);
        let delete = Request::from(Delete { indices: vec![first] });
        assert_eq!(missing(partial.apply_request(&delete, 3)), Missing::Log);
        assert_eq!(missing(partial.clone().into_whole()), Missing::Versions);
        assert_eq!(partial.entry(LogIndex(9)).unwrap_err().code(), Code::IndexOutOfRange);
    }

    #[test]
    fn a_partial_conversation_with_everything_loaded_is_whole() {
        let (whole, _) = whole_and_partial();
        let again = PartialConversation::from(whole.clone()).into_whole().unwrap();
        assert_eq!(again.version(), whole.version());
    }
}
