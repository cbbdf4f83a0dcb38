//! The state of a single version, assembled from a few saved versions.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::load::{change_marks, check_references, damaged, in_version};
use super::save::ReadCost;
use super::{
    Runs, SavedBatch, SavedBatchOrigin, SavedLeft, SavedMarks, SavedTools, SavedVersion, SavedView,
    Saver,
};
use crate::live_path::Opening;
use crate::missing::{BatchOrigin, StoredPath};
use crate::state::Origins;
use crate::{BatchIndex, Error, LogIndex, Marks, Missing, Timestamp, Tool, Version, VersionInfo};

/// The saved versions of a conversation that are loaded, by number.
///
/// Methods that need another version return [`Error::NotLoaded`] with its number:
/// [`insert`](Self::insert) it, and call the method again.
#[derive(Clone, Debug, Default)]
pub struct SavedVersions(BTreeMap<Version, Arc<SavedVersion>>);

/// The state of a version, assembled by [`SavedVersions::state`].
#[derive(Clone, Debug)]
pub struct SavedState {
    pub(crate) version: Version,
    pub(crate) saved: Arc<SavedVersion>,
    pub(crate) view: Runs,
    pub(crate) marks: Marks,
    pub(crate) tools: Option<Vec<Tool>>,
    pub(crate) tools_origin: Version,
    pub(crate) origins: Origins,
    pub(crate) opening: Opening,
    pub(crate) batch: BatchOrigin,
    view_cost: ReadCost,
    marks_cost: ReadCost,
}

/// A batch below the current one.
#[derive(Clone, Debug)]
pub(crate) struct SavedLeftBatch {
    pub(crate) opening: Opening,
    pub(crate) batch: BatchOrigin,
    pub(crate) number: usize,
    pub(crate) view: Runs,
    pub(crate) view_origin: Option<Version>,
    pub(crate) log_len: usize,
}

impl SavedState {
    /// The version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The log entries whose metadata is needed to load the version, in order.
    pub fn entries(&self) -> Vec<LogIndex> {
        let mut entries: Vec<LogIndex> = self.view.indices().collect();
        entries.sort_unstable();
        entries
    }

    /// The visible entries, in the order of the view.
    pub fn view(&self) -> Vec<LogIndex> {
        self.view.indices().collect()
    }

    /// Length of the log at the version.
    pub fn log_len(&self) -> u32 {
        self.saved.log_len
    }
}

impl Saver {
    /// Continues from a version that was read, so that the next version is written as a change of it.
    pub fn resume_from(&mut self, state: &SavedState) {
        self.note_view(state.origins.view, state.view_cost, &state.view);
        self.note_marks(state.origins.marks, state.marks_cost);
    }
}

impl SavedVersion {
    /// Length of the log at the version.
    pub fn log_len(&self) -> u32 {
        self.log_len
    }

    /// Number of log entries that the version added.
    pub fn added(&self) -> u32 {
        self.added
    }

    /// Time of the request.
    pub fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    /// The number of the current batch.
    pub fn batch_number(&self) -> u32 {
        self.batch_number
    }

    /// The operation, time, reason and sizes of the version, whose number is `version`.
    pub fn info(&self, version: Version) -> VersionInfo {
        VersionInfo {
            version,
            operation: self.operation,
            reason: self.reason(),
            timestamp: self.timestamp,
            messages: self.figures.0 as usize,
            tokens: self.figures.1,
            batch: BatchIndex(self.batch_number as usize),
            batch_opened_by: self.batch.0,
            log: self.log_len as usize,
            note: self.note.clone(),
        }
    }

    /// The version whose request opened the current batch.
    pub fn batch_opened_by(&self) -> Version {
        self.batch.0
    }

    /// The version whose state an UNDO after this version restores.
    pub fn undo(&self) -> Option<Version> {
        self.undo
    }

    /// The version whose state a REDO after this version restores.
    pub fn redo(&self) -> Option<Version> {
        self.redo
    }

    /// The earlier version whose view this version has, if it is stored as a reference to that one. Other
    /// versions may have the same view.
    pub fn version_with_same_view(&self) -> Option<Version> {
        self.view.of.filter(|_| self.view.parts.is_none())
    }

    fn opened(&self, ordinal: u32) -> Result<&SavedBatch, Error> {
        // They are in the order in which they were opened.
        let found = self.batches.binary_search_by_key(&ordinal, |batch| batch.ordinal);
        let missing =
            |_| damaged("its batch is not among the batches of the version that opened it");
        found.map(|at| &self.batches[at]).map_err(missing)
    }
}

impl SavedVersions {
    /// Adds a version.
    pub fn insert(&mut self, version: Version, saved: SavedVersion) {
        self.0.insert(version, Arc::new(saved));
    }

    /// A version, if it is loaded.
    pub fn get(&self, version: Version) -> Option<&SavedVersion> {
        self.0.get(&version).map(|saved| &**saved)
    }

    /// The loaded versions below one.
    pub fn only_below(&self, end: Version) -> SavedVersions {
        let below = self.0.range(..end);
        SavedVersions(below.map(|(version, saved)| (*version, saved.clone())).collect())
    }

    /// Number of loaded versions.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no version is loaded.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn saved(&self, version: Version) -> Result<&Arc<SavedVersion>, Error> {
        self.0.get(&version).ok_or(Error::NotLoaded(Missing::Version(version)))
    }

    /// A version to which the version `than` refers. It must be earlier than `than`.
    fn earlier(&self, version: Version, than: Version) -> Result<&Arc<SavedVersion>, Error> {
        match version < than {
            true => self.saved(version),
            false => Err(damaged("it refers to a later version")),
        }
    }

    /// The state of a version.
    pub fn state(&self, version: Version) -> Result<SavedState, Error> {
        self.assemble(version).map_err(|error| in_version(error, version))
    }

    fn assemble(&self, version: Version) -> Result<SavedState, Error> {
        let saved = self.saved(version)?;
        check_references(saved, version)?;
        let log_len = saved.log_len as usize;
        let (view, view_cost) = self.view(&saved.view, version, log_len)?;
        let (marks, marks_origin, marks_cost) = self.marks(saved, version)?;
        let (tools, tools_origin) = self.tools(saved, version)?;
        let batch: BatchOrigin = saved.batch.into();
        Ok(SavedState {
            version,
            saved: saved.clone(),
            view,
            marks,
            tools,
            origins: Origins { view: saved.view.origin().unwrap_or(version), marks: marks_origin },
            tools_origin,
            opening: self.opened(saved.batch, version)?.opening(),
            batch,
            view_cost,
            marks_cost,
        })
    }

    /// A view of a version, as runs of log entries.
    pub(super) fn view(
        &self,
        saved: &SavedView,
        version: Version,
        log_len: usize,
    ) -> Result<(Runs, ReadCost), Error> {
        let mut changes = Vec::new();
        let mut size = 0;
        let (mut at, mut before) = (saved, version);
        while let Some(of) = at.of {
            if at.parts.is_some() {
                changes.push(at);
                size += at.parts.as_ref().map_or(0, |parts| parts.len() / 2);
            }
            (at, before) = (&self.earlier(of, before)?.view, of);
        }
        let is_outside = || damaged("a part of its view is not in its base");
        let mut runs = Runs::default().changed_by(at).ok_or_else(is_outside)?;
        for change in changes.iter().rev() {
            runs = runs.changed_by(change).ok_or_else(is_outside)?;
        }
        if !runs.is_valid(log_len) {
            return Err(damaged("it contains an entry twice, or an entry that was added later"));
        }
        Ok((runs, ReadCost { depth: changes.len(), size }))
    }

    pub(super) fn marks(
        &self,
        saved: &SavedVersion,
        version: Version,
    ) -> Result<(Marks, Version, ReadCost), Error> {
        let mut changes = Vec::new();
        let (mut at, mut before) = (saved.marks.as_ref(), version);
        let origin = at.and_then(SavedMarks::origin).unwrap_or(version);
        while let Some(marks) = at {
            changes.push(&marks.changes);
            let Some(of) = marks.of else { break };
            let earlier = self.earlier(of, before)?;
            (at, before) = (earlier.marks.as_ref(), of);
        }
        let size = changes.iter().copied().flatten().map(|change| change.size()).sum();
        let read_cost = ReadCost { depth: changes.len().saturating_sub(1), size };
        let mut marks = Marks::default();
        for changes in changes.into_iter().rev() {
            change_marks(&mut marks, changes)?;
        }
        if marks.needed_log_len() > saved.log_len as usize {
            return Err(damaged("it marks entries that were added later"));
        }
        Ok((marks, origin, read_cost))
    }

    fn tools(
        &self,
        saved: &SavedVersion,
        version: Version,
    ) -> Result<(Option<Vec<Tool>>, Version), Error> {
        match &saved.tools {
            None => Ok((None, version)),
            Some(SavedTools::List(tools)) => Ok((Some(tools.clone()), version)),
            Some(SavedTools::Of(origin)) => match &self.earlier(*origin, version)?.tools {
                Some(SavedTools::List(tools)) => Ok((Some(tools.clone()), *origin)),
                _ => Err(damaged("its tools refer to a version that did not set them")),
            },
        }
    }

    /// The batch with this origin, which must not be later than `version`.
    fn opened(&self, origin: SavedBatchOrigin, version: Version) -> Result<&SavedBatch, Error> {
        let SavedBatchOrigin(opened_by, ordinal) = origin;
        match opened_by <= version {
            true => self.saved(opened_by)?.opened(ordinal),
            false => Err(damaged("it is in a batch that was opened later")),
        }
    }

    /// The record of the batch below the one at `origin`, whose number is `number`. `None` below batch 0.
    fn below(&self, origin: SavedBatchOrigin, number: usize) -> Result<Option<&SavedLeft>, Error> {
        match (self.opened(origin, origin.0)?.left.as_ref(), number) {
            (None, 0) => Ok(None),
            // Each batch must be older than the one above it, so a walk ends for any data.
            (Some(left), 1..) if left.batch < origin => Ok(Some(left)),
            _ => Err(damaged("its live path does not reach batch 0")),
        }
    }

    /// The last view of the batch below the batch with this origin.
    fn left_view(&self, origin: SavedBatchOrigin, left: &SavedLeft) -> Result<Runs, Error> {
        let SavedBatchOrigin(left_in, ordinal) = origin;
        let batches = &self.saved(left_in)?.batches;
        let end = batches.partition_point(|batch| batch.ordinal < ordinal);
        let before = batches[..end].iter().rev().filter_map(|batch| batch.left.as_ref());
        let mut changes = Vec::new();
        let mut at = left;
        for before in before {
            if !at.follows {
                break;
            }
            changes.push(at);
            at = before;
        }
        if at.follows {
            return Err(damaged("a batch refers to a previous one that does not exist"));
        }
        let (mut runs, _) = self.view(&at.view, left_in, at.log_len as usize)?;
        for change in changes.iter().rev() {
            let changed = runs.changed_by(&change.view);
            runs = changed.ok_or_else(|| damaged("a part of its view is not in its base"))?;
        }
        match runs.is_valid(left.log_len as usize) {
            true => Ok(runs),
            false => Err(damaged("it contains an entry twice, or an entry that was added later")),
        }
    }
}

/// A walk down a live path, which collects batches. It keeps its position: after a missing version
/// was loaded, it continues there. A path of n batches therefore takes n steps, however many versions are
/// loaded on the way.
#[derive(Clone, Debug)]
pub struct BatchWalk {
    /// The path that is walked.
    pub(crate) path: StoredPath,
    /// The batches whose views are collected. Of the others only the openings are.
    wanted: Range<usize>,
    /// The lowest batch that the walk has reached, and its number.
    above: (SavedBatchOrigin, usize),
    /// The collected batches, the highest first.
    pub(crate) left: Vec<SavedLeftBatch>,
    /// The openings of the batches that were passed, the highest first.
    pub(crate) openings: Vec<Opening>,
}

impl BatchWalk {
    /// A walk down to the lowest of the wanted batches of a path, which collects those.
    pub fn to_batches(path: StoredPath, wanted: Range<usize>) -> BatchWalk {
        let above = (path.origin.into(), path.number);
        BatchWalk { path, wanted, above, left: Vec::new(), openings: Vec::new() }
    }

    /// A walk down to batch 0 of a path, which collects the openings of all batches.
    pub fn to_openings(path: StoredPath) -> BatchWalk {
        BatchWalk::to_batches(path, 0..0)
    }

    /// A walk down to a batch of the live path of a version.
    pub fn to_batch_of(version: &SavedVersion, batch: BatchIndex) -> BatchWalk {
        let (origin, number) = (version.batch.into(), version.batch_number as usize);
        let wanted = batch.0..batch.0.saturating_add(1);
        BatchWalk::to_batches(StoredPath { origin, number }, wanted)
    }

    /// Walks to the end. [`Error::NotLoaded`] names a version that `versions` lacks: insert it, and call the
    /// method again.
    pub fn advance(&mut self, versions: &SavedVersions) -> Result<(), Error> {
        while self.above.1 > self.wanted.start {
            let (origin, number) = self.above;
            let Some(left) = versions.below(origin, number)? else { break };
            let SavedBatchOrigin(left_in, _) = origin;
            let opening = versions.opened(left.batch, left_in)?.opening();
            if self.wanted.contains(&(number - 1)) {
                let view = versions.left_view(origin, left)?;
                self.left.push(SavedLeftBatch {
                    opening: opening.clone(),
                    batch: left.batch.into(),
                    number: number - 1,
                    view,
                    view_origin: left.view.origin(),
                    log_len: left.log_len as usize,
                });
            }
            self.openings.push(opening);
            self.above = (left.batch, number - 1);
        }
        Ok(())
    }

    /// The number of batches that were passed.
    pub fn steps(&self) -> usize {
        self.path.number - self.above.1
    }

    /// The version that opened the batch at which the walk ended.
    pub fn opened_by(&self) -> Version {
        self.above.0.0
    }

    /// The log entries whose metadata is needed to load the collected batches, in order, each once.
    pub fn entries(&self) -> Vec<LogIndex> {
        let mut entries: Vec<LogIndex> =
            self.left.iter().flat_map(|left| left.view.indices()).collect();
        entries.sort_unstable();
        entries.dedup();
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Approx, Conversation, Delete, Message, Settings};

    /// The saved versions of a conversation in which every version except the first two opens a batch.
    fn versions(count: u32) -> Vec<SavedVersion> {
        let start = Conversation::new(Settings::counting_with(Approx), 0).unwrap();
        let messages = (0..=count).map(|number| Message::user(&number.to_string()));
        let (mut conversation, _) = start.append(messages, 0).unwrap();
        let mut saver = Saver::default();
        let mut versions = vec![saver.newest(&start.into())];
        versions.push(saver.newest(&conversation.clone().into()));
        for number in 0..count {
            let delete = Delete { indices: vec![LogIndex(number)] };
            conversation = conversation.apply(delete, 0).unwrap().0;
            versions.push(saver.newest(&conversation.clone().into()));
        }
        versions
    }

    /// Runs a walk with at most two loaded versions, and returns it with the versions that it asked for.
    fn asked_for(mut walk: BatchWalk, saved: &[SavedVersion]) -> (BatchWalk, Vec<Version>) {
        let mut asked = Vec::new();
        let mut versions = SavedVersions::default();
        while let Err(error) = walk.advance(&versions) {
            let Error::NotLoaded(Missing::Version(version)) = error else { panic!("{error}") };
            assert!(asked.len() < 10 * saved.len(), "the walk does not end");
            // Two versions are kept, because a step needs the batch above and the batch below.
            versions = match asked.last() {
                Some(&last) => SavedVersions(
                    versions.0.into_iter().filter(|(known, _)| *known == last).collect(),
                ),
                None => versions,
            };
            versions.insert(version, saved[version.0 as usize].clone());
            asked.push(version);
        }
        (walk, asked)
    }

    #[test]
    fn a_walk_continues_at_the_same_batch_after_a_version_was_loaded() {
        let saved = versions(100);
        let newest = &saved[101];
        let path = StoredPath { origin: newest.batch.into(), number: newest.batch_number as usize };
        let (walk, asked) = asked_for(BatchWalk::to_openings(path), &saved);
        assert_eq!((walk.steps(), walk.opened_by()), (100, Version(0)));
        assert_eq!(walk.openings.len(), 100);
        let all: Vec<Version> = (2..=101).rev().chain([0]).map(Version).collect();
        assert_eq!(asked, all, "each version once");
        let (walk, _) = asked_for(BatchWalk::to_batch_of(newest, BatchIndex(60)), &saved);
        assert_eq!(walk.opened_by(), Version(61));
    }
}
