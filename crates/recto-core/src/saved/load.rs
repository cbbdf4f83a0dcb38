//! Reads conversations from plain data. The data is not trusted: inconsistent data is refused with
//! [`Error::Damaged`].

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::{
    Part, SAVED_FORMAT, SavedBatch, SavedConversation, SavedMark, SavedMarks, SavedSettings,
    SavedTools, SavedVersion, SavedView,
};
use crate::counter::Counter;
use crate::history::{History, Reason, ReasonText, Record, StateRef, StepRecord};
use crate::live_path::{Leaving, LeftBatch, LivePath, OpenBatch, Opening};
use crate::message_log::Meter;
use crate::missing::BatchOrigin;
use crate::number::OptVersion;
use crate::operation::describe_append;
use crate::settings::Shared;
use crate::state::{Origins, State};
use crate::tools::Headings;
use crate::{
    BatchIndex, Conversation, EntryMeta, Error, Limits, LogIndex, Marks, Message, MessageLog,
    Missing, ToolSet, Version, View,
};

pub(super) fn damaged(reason: impl Into<String>) -> Error {
    Error::Damaged { reason: reason.into() }
}

impl SavedSettings {
    /// The built-in counter that the settings name.
    pub fn counter(&self) -> Result<Arc<dyn Counter>, Error> {
        let unknown = || Error::UnknownCounter { name: self.counter.clone() };
        <dyn Counter>::named(&self.counter).ok_or_else(unknown)
    }

    pub(crate) fn shared(&self, counter: Arc<dyn Counter>) -> Result<Arc<Shared>, Error> {
        if counter.name() != self.counter {
            let (saved, given) = (self.counter.clone(), counter.name().to_owned());
            return Err(Error::OtherCounter { saved, given });
        }
        let meter = Meter { counter, media_tokens: self.media_tokens };
        Ok(Shared::new(meter, self.heading.clone()))
    }
}

impl Conversation {
    /// Loads a saved conversation. Its counter must be built in; otherwise use
    /// [`load_with`](Self::load_with).
    pub fn load(saved: &SavedConversation) -> Result<Conversation, Error> {
        Self::load_with(saved, saved.settings.counter()?)
    }

    /// Loads a saved conversation with this counter, which must have the saved name. Messages are not
    /// counted again.
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
        let shared = saved.settings.shared(counter)?;
        let mut loader =
            Loader { log, headings: &shared.headings, history: None, batches: HashMap::new() };
        for saved in &saved.versions {
            loader.push(saved)?;
        }
        let history = loader.history.ok_or_else(|| damaged("it has no version 0"))?;
        if history.current().log_len as usize != loader.log.len() {
            return Err(damaged("its newest log entries belong to no version"));
        }
        Ok(Conversation { log: loader.log, history, shared })
    }

    /// See [`PartialConversation::first`](crate::PartialConversation::first).
    pub(crate) fn first(
        settings: &SavedSettings,
        counter: Arc<dyn Counter>,
        saved: &SavedVersion,
        entries: impl IntoIterator<Item = (Option<Message>, EntryMeta)>,
    ) -> Result<Conversation, Error> {
        let shared = settings.shared(counter)?;
        let mut log = MessageLog::default();
        for (message, meta) in entries {
            log.append_stored(message, &meta);
        }
        let mut loader =
            Loader { log, headings: &shared.headings, history: None, batches: HashMap::new() };
        loader.push(saved)?;
        let history = loader.history.expect("the version was pushed");
        Ok(Conversation { log: loader.log, history, shared })
    }

    /// See [`PartialConversation::followed_by`](crate::PartialConversation::followed_by).
    pub(crate) fn followed_by(
        &self,
        saved: &SavedVersion,
        entries: impl IntoIterator<Item = (Option<Message>, EntryMeta)>,
    ) -> Result<Conversation, Error> {
        self.log.check_metadata()?;
        let mut log = self.log.clone();
        for (message, meta) in entries {
            log.append_stored(message, &meta);
        }
        if log.len() != saved.log_len as usize {
            return Err(damaged("the version added another number of messages"));
        }
        let history = Some(self.history.clone());
        let headings = &self.shared.headings;
        let mut loader = Loader { log, headings, history, batches: HashMap::new() };
        loader.push(saved)?;
        let history = loader.history.expect("the version was pushed");
        Ok(Conversation { log: loader.log, history, shared: self.shared.clone() })
    }
}

/// Reads a conversation, version by version.
struct Loader<'a> {
    log: MessageLog,
    headings: &'a Headings,
    history: Option<History>,
    batches: HashMap<BatchOrigin, Arc<OpenBatch>>,
}

impl Loader<'_> {
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
            return Err(damaged(
                "the length of its log does not match the number of its new entries",
            ));
        }
        check_references(saved, version)?;
        let mut left = None;
        for batch in &saved.batches {
            left = self.batch(batch, left, version, log_len)?;
        }
        let path = LivePath { current: self.batch_of(saved.batch.into())? };
        let is_newer = |left: &Arc<LeftBatch>| left.log_len > log_len;
        if path.current.below().is_some_and(is_newer) {
            return Err(damaged("its live path comes from a later version"));
        }
        let marks_origin = saved.marks.as_ref().and_then(SavedMarks::origin);
        let marks = match (&saved.marks, marks_origin) {
            (None, _) => Marks::default(),
            (Some(_), Some(origin)) => self.state(origin)?.marks.clone(),
            (Some(marks), None) => self.marks(marks)?,
        };
        if marks.needed_log_len() > log_len {
            return Err(damaged("it marks entries that were added later"));
        }
        let (tools, tools_origin) = match &saved.tools {
            None => (None, version),
            Some(SavedTools::Of(origin)) => (self.record(*origin)?.tools.clone(), *origin),
            Some(SavedTools::List(tools)) => {
                let set = ToolSet::new(tools.clone(), self.headings)?;
                let set = set.ok_or_else(|| damaged("a list of tools is empty"))?;
                (Some(Arc::new(set)), version)
            }
        };
        let steps = self.steps(saved, log_len)?;
        let origins = Origins {
            view: saved.view.origin().unwrap_or(version),
            marks: marks_origin.unwrap_or(version),
        };
        let state = State { view: self.view(&saved.view, log_len)?, path, marks, origins };
        saved.check_sizes(&state)?;
        Ok(Record { tools, tools_origin, ..saved.record(state, Some(steps)) })
    }

    /// The state at an earlier version.
    fn state(&self, version: Version) -> Result<&State, Error> {
        let record = self.record(version)?;
        let history = self.history.as_ref().expect("it has the record");
        Ok(history.state_of(record))
    }

    /// The steps of a list of operations.
    fn steps(&self, saved: &SavedVersion, log_len: usize) -> Result<Vec<StepRecord>, Error> {
        let mut steps: Vec<StepRecord> = Vec::with_capacity(saved.steps.len());
        let before = self.history.as_ref().map(|history| &history.state().view);
        for step in &saved.steps {
            let base = steps.last().map(|step| &step.view).or(before);
            let base = base.cloned().unwrap_or_default();
            let change = SavedView { of: None, parts: Some(step.change.clone()) };
            let view = self.check_within(make_view(&change, &base, &self.log)?, log_len)?;
            let reason = (*step.description).into();
            steps.push(StepRecord { kind: step.operation, reason, view });
        }
        Ok(steps)
    }

    /// The record of an earlier version.
    fn record(&self, version: Version) -> Result<&Record, Error> {
        let history = self.history.as_ref().filter(|history| version <= history.current_version());
        let history = history.ok_or_else(|| damaged("it refers to a later version"))?;
        history.get(version).ok_or(Error::NotLoaded(Missing::Version(version)))
    }

    fn view(&self, saved: &SavedView, log_len: usize) -> Result<View, Error> {
        let base = match saved.of {
            Some(of) => self.state(of)?.view.clone(),
            None => View::default(),
        };
        let view = match saved.origin() {
            Some(_) => base,
            None => make_view(saved, &base, &self.log)?,
        };
        self.check_within(view, log_len)
    }

    /// The view, if all its entries are in a log of this length.
    fn check_within(&self, view: View, log_len: usize) -> Result<View, Error> {
        match view.is_within(log_len) {
            true => Ok(view),
            false => Err(damaged("it shows entries that were added later")),
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

    /// Adds a batch that the version opened. `previous` is the view that the call for the previous batch of
    /// the list returned. Returns the last view of the batch below this one.
    fn batch(
        &mut self,
        saved: &SavedBatch,
        previous: Option<View>,
        version: Version,
        end: usize,
    ) -> Result<Option<View>, Error> {
        let mut left_view = None;
        let below = match &saved.left {
            None => None,
            Some(left) => {
                let log_len = left.log_len as usize;
                let view = match (left.follows, &previous) {
                    (false, _) => self.view(&left.view, log_len)?,
                    (true, Some(previous)) => {
                        self.check_within(make_view(&left.view, previous, &self.log)?, log_len)?
                    }
                    (true, None) => {
                        return Err(damaged(
                            "a batch refers to a previous one that does not exist",
                        ));
                    }
                };
                left_view = Some(view.clone());
                let batch = self.batch_of(left.batch.into())?;
                if log_len > end || batch.below().is_some_and(|left| left.log_len > log_len) {
                    return Err(damaged("a batch was left before the one below it"));
                }
                let view_origin: OptVersion = left.view.origin().into();
                Some(LeftBatch::new(batch, Leaving { view, view_origin, log_len }))
            }
        };
        let origin = BatchOrigin { version, ordinal: saved.ordinal };
        let batch = OpenBatch::new(saved.opening(), origin, below);
        match self.batches.insert(origin, batch) {
            None => Ok(left_view),
            Some(_) => Err(damaged("a batch is opened twice")),
        }
    }

    /// The batch with this origin: a batch that was read, or a batch of a loaded live path.
    fn batch_of(&self, origin: BatchOrigin) -> Result<Arc<OpenBatch>, Error> {
        if let Some(batch) = self.batches.get(&origin) {
            return Ok(batch.clone());
        }
        let unknown = || damaged("it is in a batch that no version opened");
        let history = self.history.as_ref().ok_or_else(unknown)?;
        if origin.version > history.current_version() {
            return Err(unknown());
        }
        let on_path = |record: &Record| {
            let path = &history.state_of(record).path;
            let batches = path.left_batches().map(|left| &left.batch);
            let mut batches = std::iter::once(&path.current).chain(batches);
            batches.find(|batch| batch.origin == origin).cloned()
        };
        if let Some(batch) = on_path(history.current()) {
            return Ok(batch);
        }
        let opened = history.get(origin.version);
        let opened = opened.ok_or(Error::NotLoaded(Missing::Version(origin.version)))?;
        on_path(opened).ok_or_else(unknown)
    }
}

impl SavedView {
    /// The version whose view this is, if there are no parts.
    pub(super) fn origin(&self) -> Option<Version> {
        if self.parts.is_none() { self.of } else { None }
    }
}

impl SavedBatch {
    pub(super) fn opening(&self) -> Opening {
        Opening {
            timestamp: self.timestamp,
            reason: (*self.description).into(),
            boundary: self.boundary,
            return_to: self.return_to.map(|batch| BatchIndex(batch as usize)),
        }
    }
}

impl SavedVersion {
    /// The record of the version, without its tools. `steps` is `None` if the steps are not loaded.
    pub(crate) fn record(&self, state: State, steps: Option<Vec<StepRecord>>) -> Record {
        let steps = steps.or_else(|| self.steps.is_empty().then(Vec::new));
        Record {
            state_ref: StateRef::Owned(state),
            timestamp: self.timestamp,
            log_len: self.log_len,
            undo: self.undo.into(),
            redo: self.redo.into(),
            kind: self.operation,
            reason: self.description.as_deref().map_or(Reason::Implicit, |description| {
                Reason::Text(Arc::new(ReasonText { text: description.into(), steps }))
            }),
            tools: None,
            tools_origin: Version(0),
            note: self.note.clone(),
        }
    }

    /// The reason of the request.
    pub fn reason(&self) -> String {
        let implicit = || describe_append(self.added as usize);
        self.description.clone().unwrap_or_else(implicit)
    }

    /// Tests that the stored sizes of the view and the stored number of the current batch are those of the
    /// state.
    pub(crate) fn check_sizes(&self, state: &State) -> Result<(), Error> {
        let sizes = (state.view.len() as u32, state.view.tokens());
        match sizes == self.figures && state.path.current_number().0 == self.batch_number as usize {
            true => Ok(()),
            false => Err(damaged("its stored sizes are not those of its view")),
        }
    }
}

pub(super) fn check_references(saved: &SavedVersion, version: Version) -> Result<(), Error> {
    match [saved.undo, saved.redo].into_iter().flatten().any(|other| other >= version) {
        true => Err(damaged("its undo or redo refers to a later version")),
        false => Ok(()),
    }
}

pub(super) fn in_version(error: Error, version: Version) -> Error {
    match error {
        Error::Damaged { reason } => damaged(format!("version {version}: {reason}")),
        other => other,
    }
}

/// Applies changes to marks.
pub(super) fn change_marks(marks: &mut Marks, changes: &[SavedMark]) -> Result<(), Error> {
    for change in changes {
        let is_sorted = |indices: &[LogIndex]| indices.is_sorted_by(|a, b| a < b);
        let is_valid = !change.label.is_empty()
            && is_sorted(&change.set)
            && is_sorted(&change.unset)
            && change.set.last().is_none_or(|last| last.0 < u32::MAX);
        if !is_valid {
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
    let parts =
        saved.parts().ok_or_else(|| damaged("the parts of its view are not pairs of numbers"))?;
    check_parts(&parts, base, log.len())?;
    let mut view = View::default();
    for part in &parts {
        match *part {
            // Copying a short part is cheaper than joining trees, and keeps the tail shared with the
            // previous view.
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

/// Tests that the parts are inside the base and the log, and contain no entry twice.
fn check_parts(parts: &[Part], base: &View, log_len: usize) -> Result<(), Error> {
    let mut kept: Vec<Range<usize>> = Vec::new();
    let mut added: Vec<Range<usize>> = Vec::new();
    for part in parts {
        match *part {
            Part::Keep(start, len) => {
                let end = start.checked_add(len).filter(|&end| end <= base.len());
                let outside = || damaged("it keeps entries that its base does not have");
                kept.push(start..end.ok_or_else(outside)?);
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
    let twice = || damaged("it contains an entry twice");
    for ranges in [&mut kept, &mut added] {
        ranges.sort_unstable_by_key(|range| range.start);
        if !ranges.is_sorted_by(|a, b| a.end <= b.start) {
            return Err(twice());
        }
    }
    // Added entries must not be among the kept ones. Usually they are newer than the whole base.
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
    if base.positions_of(&indices).into_iter().any(is_kept) { Err(twice()) } else { Ok(()) }
}
