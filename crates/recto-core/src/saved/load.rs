//! From plain data to a conversation. Nothing in it is trusted: what does not hold together is
//! refused, so that a damaged value never becomes a conversation that behaves oddly.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::{
    Part, SAVED_FORMAT, SavedBatch, SavedConversation, SavedMarks, SavedVersion, SavedView,
};
use crate::conversation::Setup;
use crate::counter::Counter;
use crate::history::{History, Record, StepRecord, Story, Told};
use crate::live_path::{LeftBatch, LivePath, OpenBatch, Opening};
use crate::message_log::Meter;
use crate::state::State;
use crate::{
    Conversation, Error, Limits, LogIndex, Marks, Message, MessageLog, ToolSet, Version, View,
};

fn damaged(reason: impl Into<String>) -> Error {
    Error::Damaged { reason: reason.into() }
}

impl Conversation {
    /// The conversation that was saved. Its counter must be one of the built-in ones; for another
    /// use [`load_with`](Self::load_with).
    pub fn load(saved: &SavedConversation) -> Result<Conversation, Error> {
        let counter = <dyn Counter>::named(&saved.counter)
            .ok_or_else(|| Error::UnknownCounter { name: saved.counter.clone() })?;
        Self::load_with(saved, counter)
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
        if counter.name() != saved.counter {
            let (saved, given) = (saved.counter.clone(), counter.name().to_owned());
            return Err(Error::OtherCounter { saved, given });
        }
        let mut loading = Loading::new(saved)?;
        let mut history: Option<History> = None;
        for (number, saved) in saved.versions.iter().enumerate() {
            let version = Version(number as u32);
            let record =
                loading.version(saved, version).map_err(|error| in_version(error, version))?;
            match &mut history {
                Some(history) => history.push(record)?,
                None => history = Some(History::new(record)),
            }
        }
        let history = history.ok_or_else(|| damaged("it has no version 0"))?;
        if loading.log_len != loading.log.len() {
            return Err(damaged("its log has entries that no version knows"));
        }
        let meter = Meter { counter, media_tokens: saved.media_tokens };
        let setup = Arc::new(Setup { meter, heading: saved.heading.clone() });
        Ok(Conversation { setup, log: loading.log, history })
    }
}

fn in_version(error: Error, version: Version) -> Error {
    match error {
        Error::Damaged { reason } => damaged(format!("version {version}: {reason}")),
        other => other,
    }
}

/// What has been read so far.
struct Loading {
    log: MessageLog,
    tools: Vec<Arc<ToolSet>>,
    views: Vec<View>,
    /// Marks, and the length that a log must have at least for them.
    marks: Vec<(Marks, usize)>,
    openings: Vec<Opening>,
    /// By opening and batch below: the versions of one batch share it.
    open_batches: HashMap<(usize, Option<usize>), Arc<OpenBatch>>,
    batches: Vec<Arc<LeftBatch>>,
    /// How long the log was at the version before.
    log_len: usize,
}

impl Loading {
    fn new(saved: &SavedConversation) -> Result<Loading, Error> {
        let mut log = MessageLog::default();
        for (number, entry) in saved.log.iter().enumerate() {
            let message = Message::from_json_within(entry.message.get(), &Limits::NONE)
                .map_err(|error| damaged(format!("log entry {number}: {error}")))?;
            if log.len() >= u32::MAX as usize {
                return Err(damaged("its log is too long"));
            }
            log.append_counted(message, entry.timestamp, entry.tokens);
        }
        let tools = saved.tools.iter().map(|tools| {
            let set = ToolSet::new(tools.clone(), &saved.heading)?;
            set.map(Arc::new).ok_or_else(|| damaged("a list of tools is empty"))
        });
        let openings = saved.openings.iter().map(|opening| Opening {
            timestamp: opening.timestamp,
            description: (*opening.description).into(),
            boundary: opening.boundary,
        });
        let mut loading = Loading {
            tools: tools.collect::<Result<_, Error>>()?,
            openings: openings.collect(),
            open_batches: HashMap::new(),
            log,
            views: Vec::with_capacity(saved.views.len()),
            marks: Vec::with_capacity(saved.marks.len()),
            batches: Vec::with_capacity(saved.batches.len()),
            log_len: 0,
        };
        for (number, view) in saved.views.iter().enumerate() {
            let view = loading.view(view).map_err(|error| match error {
                Error::Damaged { reason } => damaged(format!("view {number}: {reason}")),
                other => other,
            })?;
            loading.views.push(view);
        }
        for marks in &saved.marks {
            let marks = loading.read_marks(marks)?;
            let needed = marks.needed_log_len();
            loading.marks.push((marks, needed));
        }
        for batch in &saved.batches {
            let batch = loading.batch(batch)?;
            loading.batches.push(batch);
        }
        Ok(loading)
    }

    fn view(&self, saved: &SavedView) -> Result<View, Error> {
        let none = View::default();
        let base = match saved.base {
            Some(base) => known(&self.views, base, "view")?,
            None => &none,
        };
        check_parts(&saved.parts, base, self.log.len())?;
        let mut view = View::default();
        for part in &saved.parts {
            match *part {
                // A short stretch is cheaper to copy than to cut out and join, and keeps the tail
                // shared with the view before.
                Part::Add(first, len) if len < 64 => {
                    view.0.extend(self.log.as_view().0.iter_range(entries(first, len)).cloned());
                }
                Part::Keep(start, len) if len < 64 => {
                    view.0.extend(base.0.iter_range(start..start + len).cloned());
                }
                Part::Keep(start, len) => view.0.append(&base.0.slice(start..start + len)),
                Part::Add(first, len) => {
                    view.0.append(&self.log.as_view().0.slice(entries(first, len)));
                }
            }
        }
        Ok(view)
    }

    fn read_marks(&self, saved: &SavedMarks) -> Result<Marks, Error> {
        let mut marks = match saved.base {
            Some(base) => known(&self.marks, base, "marks")?.0.clone(),
            None => Marks::default(),
        };
        for change in &saved.changes {
            let is_listed = |indices: &[LogIndex]| indices.is_sorted_by(|a, b| a < b);
            let is_logged = |index: &LogIndex| index.as_usize() < self.log.len();
            let is_right = !change.label.is_empty()
                && is_listed(&change.set)
                && is_listed(&change.unset)
                && change.set.iter().all(is_logged);
            if !is_right {
                return Err(damaged(format!("the mark {:?} is not well-formed", change.label)));
            }
            if !change.set.is_empty() {
                marks.set(&change.set, &change.label);
            }
            marks.unset(&change.unset, &change.label);
        }
        Ok(marks)
    }

    /// A batch that was left.
    fn batch(&mut self, saved: &SavedBatch) -> Result<Arc<LeftBatch>, Error> {
        let batch = self.open_batch(saved.opening, saved.below)?;
        let below = batch.below();
        let view = known(&self.views, saved.view, "view")?.clone();
        if !view.is_within(saved.log_len) || saved.log_len > self.log.len() {
            return Err(damaged("a batch shows entries that came after it was left"));
        }
        if below.is_some_and(|left| left.log_len > saved.log_len) {
            return Err(damaged("a batch was left before the one below it"));
        }
        Ok(LeftBatch::new(batch, view, saved.log_len))
    }

    /// The batch that began like this on top of that one.
    fn open_batch(
        &mut self,
        opening: usize,
        below: Option<usize>,
    ) -> Result<Arc<OpenBatch>, Error> {
        if let Some(batch) = self.open_batches.get(&(opening, below)) {
            return Ok(batch.clone());
        }
        let left = match below {
            Some(below) => Some(known(&self.batches, below, "batch")?.clone()),
            None => None,
        };
        let batch = OpenBatch::new(known(&self.openings, opening, "opening")?.clone(), left);
        self.open_batches.insert((opening, below), batch.clone());
        Ok(batch)
    }

    fn version(&mut self, saved: &SavedVersion, version: Version) -> Result<Record, Error> {
        let log_len = saved.log_len as usize;
        if log_len < self.log_len || log_len > self.log.len() {
            return Err(damaged("the log's length does not fit"));
        }
        self.log_len = log_len;
        if [saved.undo, saved.redo].into_iter().flatten().any(|other| other >= version) {
            return Err(damaged("it points to a version that came later"));
        }
        let within = |view: &View| match view.is_within(log_len) {
            true => Ok(view.clone()),
            false => Err(damaged("it shows entries that came later")),
        };
        let current = self.open_batch(saved.opening, saved.below)?;
        if current.below().is_some_and(|left| left.log_len > log_len) {
            return Err(damaged("its live path comes from a later version"));
        }
        let marks = match saved.marks {
            Some(marks) => match known(&self.marks, marks, "marks")? {
                (_, needed) if *needed > log_len => {
                    return Err(damaged("it marks entries that came later"));
                }
                (marks, _) => marks.clone(),
            },
            None => Marks::default(),
        };
        let tools = match saved.tools {
            Some(tools) => Some(known(&self.tools, tools, "tools")?.clone()),
            None => None,
        };
        let steps: Result<Vec<StepRecord>, Error> = saved
            .steps
            .iter()
            .map(|step| {
                Ok(StepRecord {
                    kind: step.operation,
                    description: (*step.description).into(),
                    view: within(known(&self.views, step.view, "view")?)?,
                })
            })
            .collect();
        let steps = steps?;
        Ok(Record {
            state: State {
                view: within(known(&self.views, saved.view, "view")?)?,
                path: LivePath { current },
                marks,
                tools,
            },
            timestamp: saved.timestamp,
            log_len: saved.log_len,
            undo: saved.undo.into(),
            redo: saved.redo.into(),
            kind: saved.operation,
            story: saved.description.as_deref().map_or(Story::Plain, |description| {
                Story::Told(Arc::new(Told { description: description.into(), steps }))
            }),
        })
    }
}

fn known<'a, T>(list: &'a [T], place: usize, what: &str) -> Result<&'a T, Error> {
    list.get(place).ok_or_else(|| damaged(format!("{what} {place} does not come before its use")))
}

fn entries(first: u32, len: u32) -> Range<usize> {
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
