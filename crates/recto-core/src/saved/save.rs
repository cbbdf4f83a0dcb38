//! Writes conversations as plain data.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::{
    Part, Runs, SAVED_FORMAT, SavedBatch, SavedConversation, SavedEntry, SavedLeft, SavedMark,
    SavedMarks, SavedStep, SavedTools, SavedVersion, SavedView,
};
use crate::history::{History, Record, StepRecord};
use crate::live_path::{LivePath, OpenBatch};
use crate::operation::OperationKind;
use crate::state::State;
use crate::view::ViewEntry;
use crate::{Conversation, LogIndex, Marks, MessageLog, PartialConversation, Version, View};

impl Conversation {
    /// The whole conversation as one value: every message and every version.
    ///
    /// ```
    /// use recto_core::{Approx, Conversation, Message, SavedConversation, Settings};
    ///
    /// let start = Conversation::new(Settings::counting_with(Approx), 0)?;
    /// let (conversation, _) = start.append([Message::user("hello")], 1)?;
    ///
    /// let json = serde_json::to_string(&conversation.save()).unwrap();
    /// let saved: SavedConversation = serde_json::from_str(&json).unwrap();
    /// let loaded = Conversation::load(&saved)?;
    /// assert_eq!(loaded.version(), conversation.version());
    /// # Ok::<(), recto_core::Error>(())
    /// ```
    pub fn save(&self) -> SavedConversation {
        let mut saver = Saver::default();
        let versions = self.history.iter();
        SavedConversation {
            format: SAVED_FORMAT,
            settings: self.saved_settings(),
            versions: versions
                .map(|(version, record)| saver.write(&self.history, version, record))
                .collect(),
            log: save_log(&self.log),
        }
    }
}

fn save_log(log: &MessageLog) -> Vec<SavedEntry> {
    let entries = log.iter().zip(log.as_view().0.iter());
    entries
        .map(|(entry, view_entry)| SavedEntry {
            message: RawValue::from_string(entry.message.json().to_owned())
                .expect("a message is valid JSON"),
            timestamp: entry.timestamp,
            tokens: view_entry.tokens(),
            written_by_engine: log.is_written_by_engine(view_entry.index()),
        })
        .collect()
}

/// Writes versions in order, each as a change of earlier ones. It tracks the cost of reading each version,
/// and writes a full list when the cost of the changes would be too high.
///
/// A new saver can be used at any time: if it does not know the cost of reading the previous version, it
/// writes a full list.
#[derive(Clone, Debug, Default)]
pub struct Saver {
    views: HashMap<Version, ViewCost>,
    marks: HashMap<Version, ReadCost>,
}

/// The cost of reading a value that is written as a change of others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReadCost {
    /// Number of changes.
    pub(super) depth: usize,
    /// Size of the changes: the number of parts of a view, or of labels and entries of marks.
    pub(super) size: usize,
}

#[derive(Clone, Debug, Default)]
struct ViewCost {
    read: ReadCost,
    /// The view, if it is short.
    runs: Option<Runs>,
    /// Upper bound for the number of runs of the view.
    max_runs: usize,
}

/// Maximum number of runs of a view that is always written in full, because a change would hardly be
/// shorter.
const FEW_RUNS: usize = 8;
/// Maximum number of runs of a view that the saver keeps.
const MAX_KEPT_RUNS: usize = 64;
/// Number of the newest versions whose costs the saver always keeps. It drops the costs of older versions
/// when it has more than twice as many costs.
const KEPT_VERSIONS: usize = 1_024;
/// Total number of parts of the changes up to which the last view of a batch is not written in full, even if
/// a full list would be shorter.
const MIN_CHANGES: usize = 64;
/// Maximum number of changes that have to be read for a version.
const MAX_CHANGES: usize = 256;

impl Saver {
    /// The newest version of a conversation as plain data.
    pub fn newest(&mut self, conversation: &PartialConversation) -> SavedVersion {
        let history = &conversation.0.history;
        self.write(history, history.current_version(), history.current())
    }

    /// Records the cost of a version that was read, so that the next one can be written as its change.
    pub(super) fn note_view(&mut self, version: Version, read: ReadCost, runs: &Runs) {
        let max_runs = runs.run_count();
        let runs = (max_runs <= MAX_KEPT_RUNS).then(|| runs.clone());
        self.views.insert(version, ViewCost { read, runs, max_runs });
    }

    pub(super) fn note_marks(&mut self, version: Version, read: ReadCost) {
        self.marks.insert(version, read);
    }

    fn write(&mut self, history: &History, version: Version, record: &Record) -> SavedVersion {
        let earlier = version.0.checked_sub(1).and_then(|before| history.get(Version(before)));
        let before = earlier.map(|record| history.state_of(record));
        let state = history.state_of(record);
        // The reason of an APPEND is written only if the caller gave one.
        let is_plain_append = record.kind == OperationKind::Append && record.has_implicit_reason();
        let batches = self.batches(before, new_batches(&state.path, version));
        let steps = save_steps(before, record);
        let origin = (state.origins.view != version).then_some(state.origins.view);
        let added = record.log_len - earlier.map_or(0, |earlier| earlier.log_len);
        let appended = is_plain_append.then_some(added as usize);
        let (view, cost) = self.view(before, &state.view, origin, appended);
        if origin.is_none() {
            self.views.insert(version, cost);
        }
        self.drop_old(version);
        SavedVersion {
            operation: record.kind,
            description: (!is_plain_append).then(|| history.reason(version, record)),
            timestamp: record.timestamp,
            log_len: record.log_len,
            added,
            undo: record.undo.get(),
            redo: record.redo.get(),
            view,
            figures: (state.view.len() as u32, state.view.tokens()),
            batch: state.path.current.origin.into(),
            batch_number: state.path.current_number().0 as u32,
            batches,
            marks: self.marks(before, state, version),
            tools: record.tools.as_ref().map(|tools| match record.tools_origin {
                origin if origin == version => SavedTools::List(tools.tools().to_vec()),
                origin => SavedTools::Of(origin),
            }),
            steps,
            note: record.note.clone(),
        }
    }

    /// The batches that a request opened, each with the last view of the batch below it. The first of these
    /// views, and each one that a version introduced, is written by [`view`](Self::view). Any other one is
    /// written as a change of the one before it, or in full if the changes are longer than a full list.
    fn batches(&self, before: Option<&State>, batches: Vec<&OpenBatch>) -> Vec<SavedBatch> {
        let mut saved = Vec::with_capacity(batches.len());
        let mut last: Option<&View> = None;
        let (mut full_size, mut change_size) = (MIN_CHANGES, 0);
        for batch in batches {
            let left = batch.below().map(|left| {
                let origin = left.view_origin.get();
                let change = last.replace(&left.view).filter(|_| origin.is_none());
                let change = change.map(|last| changes(last, &left.view));
                change_size += change.as_ref().map_or(0, Vec::len);
                let (view, follows) = match change {
                    None => (self.view(before, &left.view, origin, None).0, false),
                    Some(change) if change_size <= full_size => {
                        (SavedView::made_of(None, &change), true)
                    }
                    Some(_) => {
                        let (view, cost) = full_view(&left.view);
                        (full_size, change_size) = (cost.max_runs.max(MIN_CHANGES), 0);
                        (view, false)
                    }
                };
                let (batch, log_len) = (left.batch.origin.into(), left.log_len as u32);
                SavedLeft { batch, view, follows, log_len }
            });
            saved.push(SavedBatch {
                ordinal: batch.origin.ordinal,
                timestamp: batch.opening.timestamp,
                description: batch.opening.reason.to_string(),
                boundary: batch.opening.boundary,
                return_to: batch.opening.return_to.map(|batch| batch.0 as u32),
                left,
            });
        }
        saved
    }

    /// Drops the costs of old versions. A view that is based on such a version is written in full.
    fn drop_old(&mut self, newest: Version) {
        let oldest = Version(newest.0.saturating_sub(KEPT_VERSIONS as u32));
        if self.views.len() > 2 * KEPT_VERSIONS {
            self.views.retain(|version, _| *version >= oldest);
        }
        if self.marks.len() > 2 * KEPT_VERSIONS {
            self.marks.retain(|version, _| *version >= oldest);
        }
    }

    /// Saves a view as a reference to `origin`, as a change of the view in `before`, or in full. `appended`
    /// is the number of new entries if the request only appended entries.
    fn view(
        &self,
        before: Option<&State>,
        view: &View,
        origin: Option<Version>,
        appended: Option<usize>,
    ) -> (SavedView, ViewCost) {
        if let Some(origin) = origin {
            return (SavedView::same_as(origin), ViewCost::default());
        }
        let known = before.and_then(|before| Some((before, self.views.get(&before.origins.view)?)));
        let Some((before, known)) = known else { return full_view(view) };
        let base = before.origins.view;
        let parts = match appended {
            Some(appended) => appended_parts(&before.view, view, appended),
            None => changes(&before.view, view),
        };
        let mut runs = known.runs.as_ref().and_then(|runs| runs.made_of(&parts));
        let max_runs = runs.as_ref().map_or(known.max_runs + parts.len(), Runs::run_count);
        let read = ReadCost { depth: known.read.depth + 1, size: known.read.size + parts.len() };
        let is_shorter_in_full = |runs: &mut Runs| {
            runs.run_count() <= FEW_RUNS.max(parts.len()) || read.size > runs.run_count()
        };
        if let Some(runs) = runs.take_if(is_shorter_in_full) {
            return full_runs(runs);
        }
        if read.depth >= MAX_CHANGES || read.size > max_runs {
            return full_view(view);
        }
        let runs = runs.filter(|runs| runs.run_count() <= MAX_KEPT_RUNS);
        let change = SavedView::made_of(Some(base), &parts);
        (change, ViewCost { read, runs, max_runs })
    }

    fn marks(
        &mut self,
        before: Option<&State>,
        state: &State,
        version: Version,
    ) -> Option<SavedMarks> {
        let State { marks, origins, .. } = state;
        if marks.is_empty() {
            return None;
        }
        if origins.marks != version {
            return Some(SavedMarks { of: Some(origins.marks), changes: Vec::new() });
        }
        let base = before.filter(|before| !before.marks.is_empty());
        let known = base.and_then(|base| Some((base, *self.marks.get(&base.origins.marks)?)));
        if let Some((base, known)) = known {
            let changes = mark_changes(marks, &base.marks);
            let size: usize = changes.iter().map(|change| change.size()).sum();
            let read = ReadCost { depth: known.depth + 1, size: known.size + size };
            if read.depth < MAX_CHANGES && read.size <= marks.size() {
                self.marks.insert(version, read);
                return Some(SavedMarks { of: Some(base.origins.marks), changes });
            }
        }
        self.marks.insert(version, ReadCost::default());
        Some(SavedMarks { of: None, changes: mark_changes(marks, &Marks::default()) })
    }
}

impl SavedMark {
    pub(super) fn size(&self) -> usize {
        1 + self.set.len() + self.unset.len()
    }
}

fn mark_changes(marks: &Marks, earlier: &Marks) -> Vec<SavedMark> {
    let changes = marks.changes_since(earlier).into_iter();
    changes.map(|(label, set, unset)| SavedMark { label, set, unset }).collect()
}

/// A view as a full list.
fn full_view(view: &View) -> (SavedView, ViewCost) {
    full_runs(Runs::of(view.iter()))
}

fn full_runs(runs: Runs) -> (SavedView, ViewCost) {
    let saved = SavedView::made_of(None, &runs.as_parts());
    let max_runs = runs.run_count();
    let runs = (max_runs <= MAX_KEPT_RUNS).then_some(runs);
    (saved, ViewCost { read: ReadCost::default(), runs, max_runs })
}

/// The batches on the path that the request of a version opened, the lowest first.
fn new_batches(path: &LivePath, version: Version) -> Vec<&OpenBatch> {
    let mut batches = Vec::new();
    let mut next = Some(&*path.current);
    while let Some(batch) = next.filter(|batch| batch.origin.version == version) {
        batches.push(batch);
        next = batch.below().map(|left| &*left.batch);
    }
    batches.reverse();
    batches
}

/// The steps of a list of operations, each as a change of the view after the previous one.
fn save_steps(before: Option<&State>, record: &Record) -> Vec<SavedStep> {
    let start = View::default();
    let mut last = before.map_or(&start, |before| &before.view);
    let step = |step: &StepRecord, last: &View| {
        let change = changes(last, &step.view);
        SavedStep {
            operation: step.kind,
            description: step.reason.to_string(),
            change: change.into_iter().flat_map(Part::numbers).collect(),
        }
    };
    let steps = record.steps().iter();
    steps.map(|record| step(record, std::mem::replace(&mut last, &record.view))).collect()
}

/// `view` as parts of `base` and log entries.
fn changes(base: &View, view: &View) -> Vec<Part> {
    let difference = base.0.difference(&view.0);
    // The entries of `view` outside shared nodes, with their positions in `base` if it has them.
    let new = difference.right.iter().flat_map(|block| block.items());
    let mut positions: HashMap<LogIndex, Option<usize>> =
        new.map(|entry| (entry.index(), None)).collect();
    if !positions.is_empty() {
        for block in &difference.left {
            for (number, entry) in block.items().enumerate() {
                if let Some(position) = positions.get_mut(&entry.index()) {
                    *position = Some(block.start + number);
                }
            }
        }
    }
    let mut parts = Vec::new();
    for block in &difference.right {
        match block.shared {
            Some(start) => push(&mut parts, Part::Keep(start, block.len)),
            None => {
                for index in block.items().map(ViewEntry::index) {
                    push(
                        &mut parts,
                        match positions[&index] {
                            Some(position) => Part::Keep(position, 1),
                            None => Part::Add(index.0, 1),
                        },
                    );
                }
            }
        }
    }
    parts
}

/// [`changes`] for a view that is `base` and `appended` more entries, without comparing the two.
fn appended_parts(base: &View, view: &View, appended: usize) -> Vec<Part> {
    let mut parts = Vec::with_capacity(2);
    if !base.is_empty() {
        parts.push(Part::Keep(0, base.len()));
    }
    let new = view.0.iter_range(view.len() - appended..).map(ViewEntry::index);
    new.for_each(|index| push(&mut parts, Part::Add(index.0, 1)));
    debug_assert_eq!(parts, changes(base, view));
    parts
}

/// Adds a part. A part that continues the previous one is joined with it.
fn push(parts: &mut Vec<Part>, part: Part) {
    match (parts.last_mut(), part) {
        (Some(Part::Keep(start, len)), Part::Keep(next, more)) if *start + *len == next => {
            *len += more;
        }
        (Some(Part::Add(first, len)), Part::Add(next, more)) if *first + *len == next => {
            *len += more;
        }
        _ => parts.push(part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Approx, Mark, Message, Settings};

    #[test]
    fn the_costs_of_marks_are_bounded() {
        let start = Conversation::new(Settings::counting_with(Approx), 0).unwrap();
        let mut conversation = start.append([Message::user("a")], 1).unwrap().0;
        let mut saver = Saver::default();
        for number in 0..3 * KEPT_VERSIONS {
            let mark = Mark::label([LogIndex(0)], format!("{}", number % 7));
            conversation = conversation.apply(mark, 2).unwrap().0;
            saver.newest(&conversation.clone().into());
        }
        assert!(saver.marks.len() <= 2 * KEPT_VERSIONS + 1, "{}", saver.marks.len());
    }
}
