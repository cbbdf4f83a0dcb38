//! From plain data to a conversation. Nothing in it is trusted: what does not hold together is
//! refused, so that a damaged value never becomes a conversation that behaves oddly.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::{
    Part, SAVED_FORMAT, SavedBatch, SavedConversation, SavedMark, SavedMarks, SavedSettings,
    SavedTools, SavedVersion, SavedView,
};
use crate::conversation::Setup;
use crate::counter::Counter;
use crate::history::{Held, History, Jump, Record, StepRecord, Story, Told};
use crate::live_path::{BatchHome, Leaving, LeftBatch, LivePath, OpenBatch, Opening};
use crate::message_log::Meter;
use crate::operation::describe_append;
use crate::state::{Homes, State};
use crate::tools::Headings;
use crate::{
    BatchIndex, Conversation, Error, Limits, LogIndex, Marks, Measure, Message, MessageLog,
    Missing, ToolSet, Version, View,
};

pub(super) fn damaged(reason: impl Into<String>) -> Error {
    Error::Damaged { reason: reason.into() }
}

impl SavedSettings {
    /// The built-in counter of that name.
    pub fn counter(&self) -> Result<Arc<dyn Counter>, Error> {
        let unknown = || Error::UnknownCounter { name: self.counter.clone() };
        <dyn Counter>::named(&self.counter).ok_or_else(unknown)
    }

    pub(crate) fn setup(&self, counter: Arc<dyn Counter>) -> Result<Arc<Setup>, Error> {
        if counter.name() != self.counter {
            let (saved, given) = (self.counter.clone(), counter.name().to_owned());
            return Err(Error::OtherCounter { saved, given });
        }
        let meter = Meter { counter, media_tokens: self.media_tokens };
        Ok(Setup::new(meter, self.heading.clone()))
    }
}

impl Conversation {
    /// The conversation that was saved. Its counter must be one of the built-in ones; for another
    /// use [`load_with`](Self::load_with).
    pub fn load(saved: &SavedConversation) -> Result<Conversation, Error> {
        Self::load_with(saved, saved.settings.counter()?)
    }

    /// The conversation that was saved, going on with this counter: the one that counted it, by its
    /// name. Messages that were counted before keep their counts.
    pub fn load_with(
        saved: &SavedConversation,
        counter: Arc<dyn Counter>,
    ) -> Result<Conversation, Error> {
        if saved.format != SAVED_FORMAT {
            return Err(Error::UnknownFormat { found: saved.format, reads: SAVED_FORMAT });
        }
        let mut log = MessageLog::default();
        for (number, entry) in saved.log.iter().enumerate() {
            let message = Message::from_json_within(entry.message.get(), &Limits::NONE)
                .map_err(|error| damaged(format!("log entry {number}: {error}")))?;
            if log.len() >= u32::MAX as usize {
                return Err(damaged("its log is too long"));
            }
            log.append_counted(message, entry.timestamp, entry.tokens);
            if entry.written_by_engine {
                log.note_written_by_engine();
            }
        }
        let setup = saved.settings.setup(counter)?;
        let mut loading =
            Loading { log, headings: &setup.headings, history: None, batches: HashMap::new() };
        for saved in &saved.versions {
            loading.push(saved)?;
        }
        let history = loading.history.ok_or_else(|| damaged("it has no version 0"))?;
        if history.current().log_len as usize != loading.log.len() {
            return Err(damaged("its log has entries that no version knows"));
        }
        Ok(Conversation { log: loading.log, history, setup })
    }

    /// A conversation of which version 0 was saved, with what its log entries measure, and their
    /// messages if they are at hand; more versions may [follow](Self::followed_by).
    pub fn first(
        settings: &SavedSettings,
        counter: Arc<dyn Counter>,
        saved: &SavedVersion,
        messages: impl IntoIterator<Item = (Option<Message>, Measure)>,
    ) -> Result<Conversation, Error> {
        let setup = settings.setup(counter)?;
        let mut log = MessageLog::default();
        for (message, measure) in messages {
            log.append_measured(message, &measure);
        }
        let mut loading =
            Loading { log, headings: &setup.headings, history: None, batches: HashMap::new() };
        loading.push(saved)?;
        let history = loading.history.expect("the version was pushed");
        Ok(Conversation { log: loading.log, history, setup })
    }

    /// The conversation after one more version, which was made and saved elsewhere, with what its new
    /// log entries measure, and their messages if they are at hand.
    ///
    /// If it is made of versions that are not at hand, [`Error::NotLoaded`] names one.
    pub fn followed_by(
        &self,
        saved: &SavedVersion,
        messages: impl IntoIterator<Item = (Option<Message>, Measure)>,
    ) -> Result<Conversation, Error> {
        self.log.check_measured()?;
        let mut log = self.log.clone();
        for (message, measure) in messages {
            log.append_measured(message, &measure);
        }
        if log.len() != saved.log_len as usize {
            return Err(damaged("its messages are not those that the version added"));
        }
        let history = Some(self.history.clone());
        let headings = &self.setup.headings;
        let mut loading = Loading { log, headings, history, batches: HashMap::new() };
        loading.push(saved)?;
        let history = loading.history.expect("the version was pushed");
        Ok(Conversation { log: loading.log, history, setup: self.setup.clone() })
    }
}

/// What has been read so far.
struct Loading<'a> {
    log: MessageLog,
    headings: &'a Headings,
    history: Option<History>,
    batches: HashMap<BatchHome, Arc<OpenBatch>>,
}

impl Loading<'_> {
    fn push(&mut self, saved: &SavedVersion) -> Result<(), Error> {
        let number = self.history.as_ref().map_or(0, |history| history.current_version().0 + 1);
        let version = Version(number);
        let record = self.version(saved, version).map_err(|error| in_version(error, version))?;
        match &mut self.history {
            Some(history) => history.push(record)?,
            None => self.history = Some(History::new(record)),
        }
        Ok(())
    }

    fn version(&mut self, saved: &SavedVersion, version: Version) -> Result<Record, Error> {
        let log_len = saved.log_len as usize;
        let before = self.history.as_ref().map_or(0, |history| history.current().log_len);
        if before.checked_add(saved.added) != Some(saved.log_len) || log_len > self.log.len() {
            return Err(damaged("the log's length does not fit"));
        }
        check_jumps(saved, version)?;
        let mut left = None;
        for batch in &saved.batches {
            left = self.batch(batch, left, version, log_len)?;
        }
        let path = LivePath { current: self.batch_of(saved.batch.into())? };
        let is_newer = |left: &Arc<LeftBatch>| left.log_len > log_len;
        if path.current.below().is_some_and(is_newer) {
            return Err(damaged("its live path comes from a later version"));
        }
        let marks_home = saved.marks.as_ref().and_then(SavedMarks::home);
        let marks = match (&saved.marks, marks_home) {
            (None, _) => Marks::default(),
            (Some(_), Some(home)) => self.state(home)?.marks.clone(),
            (Some(marks), None) => self.marks(marks)?,
        };
        if marks.needed_log_len() > log_len {
            return Err(damaged("it marks entries that came later"));
        }
        let (tools, tools_home) = match &saved.tools {
            None => (None, version),
            Some(SavedTools::Of(home)) => (self.record(*home)?.tools.clone(), *home),
            Some(SavedTools::List(tools)) => {
                let set = ToolSet::new(tools.clone(), self.headings)?;
                let set = set.ok_or_else(|| damaged("a list of tools is empty"))?;
                (Some(Arc::new(set)), version)
            }
        };
        let steps = self.steps(saved, log_len)?;
        let homes = Homes {
            view: saved.view.home().unwrap_or(version),
            marks: marks_home.unwrap_or(version),
        };
        let state = State { view: self.view(&saved.view, log_len)?, path, marks, homes };
        saved.check_figures(&state)?;
        Ok(Record { tools, tools_home, ..saved.record(state, Some(steps)) })
    }

    /// The state at an earlier version that something is made of.
    fn state(&self, version: Version) -> Result<&State, Error> {
        let record = self.record(version)?;
        let history = self.history.as_ref().expect("it has the record");
        Ok(history.state_of(record))
    }

    /// The steps of a list of operations, each made of the one before.
    fn steps(&self, saved: &SavedVersion, log_len: usize) -> Result<Vec<StepRecord>, Error> {
        let mut steps: Vec<StepRecord> = Vec::with_capacity(saved.steps.len());
        let before = self.history.as_ref().map(|history| &history.state().view);
        for step in &saved.steps {
            let base = steps.last().map(|step| &step.view).or(before);
            let base = base.cloned().unwrap_or_default();
            let change = SavedView { of: None, parts: Some(step.change.clone()) };
            let view = self.within(make_view(&change, &base, &self.log)?, log_len)?;
            let description = (*step.description).into();
            steps.push(StepRecord { kind: step.operation, description, view });
        }
        Ok(steps)
    }

    /// An earlier version that something is made of.
    fn record(&self, version: Version) -> Result<&Record, Error> {
        let history = self.history.as_ref().filter(|history| version <= history.current_version());
        let history = history.ok_or_else(|| damaged("it is made of a version that came later"))?;
        history.get(version).ok_or(Error::NotLoaded(Missing::Version(version)))
    }

    fn view(&self, saved: &SavedView, log_len: usize) -> Result<View, Error> {
        let base = match saved.of {
            Some(of) => self.state(of)?.view.clone(),
            None => View::default(),
        };
        let view = match saved.home() {
            Some(_) => base,
            None => make_view(saved, &base, &self.log)?,
        };
        self.within(view, log_len)
    }

    /// A view, provided that it shows nothing that came later.
    fn within(&self, view: View, log_len: usize) -> Result<View, Error> {
        match view.is_within(log_len) {
            true => Ok(view),
            false => Err(damaged("it shows entries that came later")),
        }
    }

    fn marks(&self, saved: &SavedMarks) -> Result<Marks, Error> {
        let mut marks = match saved.of {
            Some(of) => self.state(of)?.marks.clone(),
            None => Marks::default(),
        };
        change_marks(&mut marks, &saved.changes)?;
        Ok(marks)
    }

    /// A batch that the version opened, after one whose predecessor was left with the view `last`.
    fn batch(
        &mut self,
        saved: &SavedBatch,
        last: Option<View>,
        version: Version,
        end: usize,
    ) -> Result<Option<View>, Error> {
        let mut left_with = None;
        let below = match &saved.left {
            None => None,
            Some(left) => {
                let log_len = left.log_len as usize;
                let view = match (left.follows, &last) {
                    (false, _) => self.view(&left.view, log_len)?,
                    (true, Some(last)) => {
                        self.within(make_view(&left.view, last, &self.log)?, log_len)?
                    }
                    (true, None) => return Err(damaged("a batch follows none")),
                };
                left_with = Some(view.clone());
                let batch = self.batch_of(left.batch.into())?;
                if log_len > end || batch.below().is_some_and(|left| left.log_len > log_len) {
                    return Err(damaged("a batch was left before the one below it"));
                }
                let view_home: Jump = left.view.home().into();
                Some(LeftBatch::new(batch, Leaving { view, view_home, log_len }))
            }
        };
        let home = BatchHome { version, ordinal: saved.ordinal };
        let batch = OpenBatch::new(saved.opening(), home, below);
        match self.batches.insert(home, batch) {
            None => Ok(left_with),
            Some(_) => Err(damaged("a batch comes twice")),
        }
    }

    /// A batch by its home: one that was read, or one that is on a path at hand.
    fn batch_of(&self, home: BatchHome) -> Result<Arc<OpenBatch>, Error> {
        if let Some(batch) = self.batches.get(&home) {
            return Ok(batch.clone());
        }
        let unknown = || damaged("it is in a batch that nobody opened");
        let history = self.history.as_ref().ok_or_else(unknown)?;
        if home.version > history.current_version() {
            return Err(unknown());
        }
        let on_path = |record: &Record| {
            let path = &history.state_of(record).path;
            let batches = path.left_batches().map(|left| &left.batch);
            let mut batches = std::iter::once(&path.current).chain(batches);
            batches.find(|batch| batch.home == home).cloned()
        };
        if let Some(batch) = on_path(history.current()) {
            return Ok(batch);
        }
        let opened = history.get(home.version);
        let opened = opened.ok_or(Error::NotLoaded(Missing::Version(home.version)))?;
        on_path(opened).ok_or_else(unknown)
    }
}

impl SavedView {
    /// The version whose view it is, if it is not made of parts.
    pub(super) fn home(&self) -> Option<Version> {
        if self.parts.is_none() { self.of } else { None }
    }
}

impl SavedBatch {
    pub(super) fn opening(&self) -> Opening {
        Opening {
            timestamp: self.timestamp,
            description: (*self.description).into(),
            boundary: self.boundary,
            return_to: self.return_to.map(|batch| BatchIndex(batch as usize)),
        }
    }
}

impl SavedVersion {
    /// The version in memory, but for its tools. Its steps may not be at hand.
    pub(crate) fn record(&self, state: State, steps: Option<Vec<StepRecord>>) -> Record {
        let steps = steps.or_else(|| self.steps.is_empty().then(Vec::new));
        Record {
            held: Held::Own(state),
            timestamp: self.timestamp,
            log_len: self.log_len,
            undo: self.undo.into(),
            redo: self.redo.into(),
            kind: self.operation,
            story: self.description.as_deref().map_or(Story::Plain, |description| {
                Story::Told(Arc::new(Told { description: description.into(), steps }))
            }),
            tools: None,
            tools_home: Version(0),
        }
    }

    /// Why it was made.
    pub fn description(&self) -> String {
        let plain = || describe_append(self.added as usize);
        self.description.clone().unwrap_or_else(plain)
    }

    /// Tests that the figures are those of the state.
    pub(crate) fn check_figures(&self, state: &State) -> Result<(), Error> {
        let figures = (state.view.len() as u32, state.view.tokens());
        match figures == self.figures && state.path.current_number().0 == self.batch_number as usize
        {
            true => Ok(()),
            false => Err(damaged("its figures are not those of its view")),
        }
    }
}

pub(super) fn check_jumps(saved: &SavedVersion, version: Version) -> Result<(), Error> {
    match [saved.undo, saved.redo].into_iter().flatten().any(|other| other >= version) {
        true => Err(damaged("it points to a version that came later")),
        false => Ok(()),
    }
}

pub(super) fn in_version(error: Error, version: Version) -> Error {
    match error {
        Error::Damaged { reason } => damaged(format!("version {version}: {reason}")),
        other => other,
    }
}

/// Sets and unsets labels.
pub(super) fn change_marks(marks: &mut Marks, changes: &[SavedMark]) -> Result<(), Error> {
    for change in changes {
        let is_listed = |indices: &[LogIndex]| indices.is_sorted_by(|a, b| a < b);
        let is_right = !change.label.is_empty()
            && is_listed(&change.set)
            && is_listed(&change.unset)
            && change.set.last().is_none_or(|last| last.0 < u32::MAX);
        if !is_right {
            return Err(damaged(format!("the mark {:?} is not well-formed", change.label)));
        }
        if !change.set.is_empty() {
            marks.set(&change.set, &change.label);
        }
        marks.unset(&change.unset, &change.label);
    }
    Ok(())
}

fn make_view(saved: &SavedView, base: &View, log: &MessageLog) -> Result<View, Error> {
    let parts = saved.parts().ok_or_else(|| damaged("its view is not made of pairs"))?;
    check_parts(&parts, base, log.len())?;
    let mut view = View::default();
    for part in &parts {
        match *part {
            // A short stretch is cheaper to copy than to cut out and join, and keeps the tail
            // shared with the view before.
            Part::Add(first, len) if len < 64 => {
                view.0.extend(log.as_view().0.iter_range(entries(first, len)).cloned());
            }
            Part::Keep(start, len) if len < 64 => {
                view.0.extend(base.0.iter_range(start..start + len).cloned());
            }
            Part::Keep(start, len) => view.0.append(&base.0.slice(start..start + len)),
            Part::Add(first, len) => {
                view.0.append(&log.as_view().0.slice(entries(first, len)));
            }
        }
    }
    Ok(view)
}

pub(super) fn entries(first: u32, len: u32) -> Range<usize> {
    first as usize..first as usize + len as usize
}

/// Tests that the parts lie inside base and log, and that no entry comes twice.
fn check_parts(parts: &[Part], base: &View, log_len: usize) -> Result<(), Error> {
    let mut kept: Vec<Range<usize>> = Vec::new();
    let mut added: Vec<Range<usize>> = Vec::new();
    for part in parts {
        match *part {
            Part::Keep(start, len) => {
                let end = start.checked_add(len).filter(|&end| end <= base.len());
                kept.push(start..end.ok_or_else(|| damaged("it keeps more than its base has"))?);
            }
            Part::Add(first, len) => {
                let range = entries(first, len);
                if range.end > log_len {
                    return Err(damaged("it adds entries that the log does not have"));
                }
                added.push(range);
            }
        }
    }
    let twice = || damaged("it holds an entry twice");
    for ranges in [&mut kept, &mut added] {
        ranges.sort_unstable_by_key(|range| range.start);
        if !ranges.is_sorted_by(|a, b| a.end <= b.start) {
            return Err(twice());
        }
    }
    // What is added must not be among what is kept. Mostly it is newer than anything there.
    let Some(first) = added.first() else { return Ok(()) };
    if base.is_within(first.start) {
        return Ok(());
    }
    let is_kept = |at: usize| {
        let next = kept.partition_point(|range| range.end <= at);
        kept.get(next).is_some_and(|range| range.contains(&at))
    };
    let indices: Vec<LogIndex> =
        added.into_iter().flatten().map(|index| LogIndex(index as u32)).collect();
    if base.places_of(&indices).into_iter().any(is_kept) { Err(twice()) } else { Ok(()) }
}
