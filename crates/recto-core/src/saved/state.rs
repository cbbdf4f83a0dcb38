//! Versions read one by one: what a version consists of, put together from a few saved ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::load::{change_marks, check_jumps, damaged, in_version};
use super::{
    Runs, SavedBatch, SavedBatchHome, SavedLeft, SavedMarks, SavedTools, SavedVersion, SavedView,
    Saver,
};
use crate::live_path::{BatchHome, Opening, StoredPath};
use crate::operation::OperationKind;
use crate::state::Homes;
use crate::{BatchIndex, Error, LogIndex, Marks, Missing, Timestamp, Tool, Version};

/// Saved versions at hand.
///
/// Its methods put together what is asked for. Where they need a version that is not at hand, they
/// answer [`Error::NotLoaded`] with its number: [`insert`](Self::insert) it, and ask again.
#[derive(Clone, Debug, Default)]
pub struct SavedVersions(BTreeMap<Version, Arc<SavedVersion>>);

/// Everything that a version consists of.
#[derive(Clone, Debug)]
pub struct SavedState {
    pub(crate) version: Version,
    pub(crate) saved: Arc<SavedVersion>,
    pub(crate) view: Runs,
    pub(crate) marks: Marks,
    pub(crate) tools: Option<Vec<Tool>>,
    pub(crate) tools_home: Version,
    pub(crate) homes: Homes,
    pub(crate) opening: Opening,
    pub(crate) batch: BatchHome,
    view_effort: Effort,
    marks_effort: Effort,
}

/// How much had to be read: changes, and what is in them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Effort {
    depth: usize,
    cost: usize,
}

/// A batch below the current one, as it was left.
#[derive(Clone, Debug)]
pub(crate) struct SavedLeftBatch {
    pub(crate) opening: Opening,
    pub(crate) batch: BatchHome,
    pub(crate) number: usize,
    pub(crate) view: Runs,
    pub(crate) view_home: Option<Version>,
    pub(crate) log_len: usize,
}

impl SavedState {
    /// Which version it is.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The log entries that must be measured to put the version at hand, in order.
    pub fn entries(&self) -> Vec<LogIndex> {
        let mut entries: Vec<LogIndex> = self.view.indices().collect();
        entries.sort_unstable();
        entries
    }

    /// How long the log was.
    pub fn log_len(&self) -> u32 {
        self.saved.log_len
    }

    /// Tells a saver how this version was read, so that the next one can be written as its change.
    pub fn tell(&self, saver: &mut Saver) {
        let Effort { depth, cost } = self.view_effort;
        saver.note_view(self.homes.view, depth, cost, &self.view);
        let Effort { depth, cost } = self.marks_effort;
        saver.note_marks(self.homes.marks, depth, cost);
    }
}

impl SavedVersion {
    /// How long the log was.
    pub fn log_len(&self) -> u32 {
        self.log_len
    }

    /// How many log entries it added.
    pub fn added(&self) -> u32 {
        self.added
    }

    /// When the request was accepted.
    pub fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    /// Which operation made it.
    pub fn operation(&self) -> OperationKind {
        self.operation
    }

    /// How many messages the view has.
    pub fn messages(&self) -> u32 {
        self.figures.0
    }

    /// How many tokens the view has.
    pub fn tokens(&self) -> u64 {
        self.figures.1
    }

    /// The number of the current batch.
    pub fn batch_number(&self) -> u32 {
        self.batch_number
    }

    /// The version whose request opened the current batch.
    pub fn batch_opened_by(&self) -> Version {
        self.batch.0
    }

    /// The earlier version whose view this is too, if it is one's.
    pub fn view_of(&self) -> Option<Version> {
        self.view.of.filter(|_| self.view.parts.is_none())
    }

    fn opened(&self, ordinal: u32) -> Result<&SavedBatch, Error> {
        let batch = self.batches.iter().find(|batch| batch.ordinal == ordinal);
        batch.ok_or_else(|| damaged("a batch is not where it was opened"))
    }
}

impl SavedVersions {
    /// Puts a version at hand.
    pub fn insert(&mut self, version: Version, saved: SavedVersion) {
        self.0.insert(version, Arc::new(saved));
    }

    /// The log entries that must be measured to [put a batch at
    /// hand](crate::Conversation::add_batch), in order.
    pub fn batch_entries(
        &self,
        path: StoredPath,
        batch: BatchIndex,
    ) -> Result<Vec<LogIndex>, Error> {
        let mut entries: Vec<LogIndex> = self.left_batch(path, batch.0)?.view.indices().collect();
        entries.sort_unstable();
        Ok(entries)
    }

    /// The version that opened a batch of a version's live path.
    pub fn opened_by(&self, version: Version, batch: BatchIndex) -> Result<Version, Error> {
        let saved = self.saved(version)?;
        let (home, number) = (saved.batch.into(), saved.batch_number as usize);
        if batch.0 == number {
            return Ok(saved.batch.0);
        }
        for step in self.below(StoredPath { home, number }) {
            let (number, _, left) = step?;
            if number == batch.0 {
                return Ok(left.batch.0);
            }
        }
        let current = BatchIndex(number);
        Err(Error::BatchNotFound { batch, current, field: "batchIndex" })
    }

    /// A version, if it is at hand.
    pub fn get(&self, version: Version) -> Option<&SavedVersion> {
        self.0.get(&version).map(|saved| &**saved)
    }

    /// How many versions are at hand.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no version is at hand.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn saved(&self, version: Version) -> Result<&Arc<SavedVersion>, Error> {
        self.0.get(&version).ok_or(Error::NotLoaded(Missing::Version(version)))
    }

    /// A version that another one is made of; it must come before.
    fn earlier(&self, version: Version, than: Version) -> Result<&Arc<SavedVersion>, Error> {
        match version < than {
            true => self.saved(version),
            false => Err(damaged("it is made of a version that came later")),
        }
    }

    /// What a version consists of.
    pub fn state(&self, version: Version) -> Result<SavedState, Error> {
        self.put_together(version).map_err(|error| in_version(error, version))
    }

    fn put_together(&self, version: Version) -> Result<SavedState, Error> {
        let saved = self.saved(version)?;
        check_jumps(saved, version)?;
        let log_len = saved.log_len as usize;
        let (view, view_effort) = self.view(&saved.view, version, log_len)?;
        let (marks, marks_home, marks_effort) = self.marks(saved, version)?;
        let (tools, tools_home) = self.tools(saved, version)?;
        let batch: BatchHome = saved.batch.into();
        Ok(SavedState {
            version,
            saved: saved.clone(),
            view,
            marks,
            tools,
            homes: Homes { view: saved.view.home().unwrap_or(version), marks: marks_home },
            tools_home,
            opening: self.opened(saved.batch, version)?.opening(),
            batch,
            view_effort,
            marks_effort,
        })
    }

    /// A view in a version, as runs of log entries.
    pub(super) fn view(
        &self,
        saved: &SavedView,
        version: Version,
        log_len: usize,
    ) -> Result<(Runs, Effort), Error> {
        let mut changes = Vec::new();
        let mut cost = 0;
        let (mut at, mut before) = (saved, version);
        while let Some(of) = at.of {
            if at.parts.is_some() {
                changes.push(at);
                cost += at.parts.as_ref().map_or(0, |parts| parts.len() / 2);
            }
            (at, before) = (&self.earlier(of, before)?.view, of);
        }
        let does_not_fit = || damaged("its view is not made of what is there");
        let mut runs = Runs::default().changed_by(at).ok_or_else(does_not_fit)?;
        for change in changes.iter().rev() {
            runs = runs.changed_by(change).ok_or_else(does_not_fit)?;
        }
        if !runs.is_sound(log_len) {
            return Err(damaged("it holds an entry twice, or one that came later"));
        }
        Ok((runs, Effort { depth: changes.len(), cost }))
    }

    pub(super) fn marks(
        &self,
        saved: &SavedVersion,
        version: Version,
    ) -> Result<(Marks, Version, Effort), Error> {
        let mut changes = Vec::new();
        let (mut at, mut before) = (saved.marks.as_ref(), version);
        let home = at.and_then(SavedMarks::home).unwrap_or(version);
        while let Some(marks) = at {
            changes.push(&marks.changes);
            let Some(of) = marks.of else { break };
            let earlier = self.earlier(of, before)?;
            (at, before) = (earlier.marks.as_ref(), of);
        }
        let cost = changes.iter().copied().flatten().map(|change| change.size()).sum();
        let effort = Effort { depth: changes.len().saturating_sub(1), cost };
        let mut marks = Marks::default();
        for changes in changes.into_iter().rev() {
            change_marks(&mut marks, changes)?;
        }
        if marks.needed_log_len() > saved.log_len as usize {
            return Err(damaged("it marks entries that came later"));
        }
        Ok((marks, home, effort))
    }

    fn tools(
        &self,
        saved: &SavedVersion,
        version: Version,
    ) -> Result<(Option<Vec<Tool>>, Version), Error> {
        match &saved.tools {
            None => Ok((None, version)),
            Some(SavedTools::List(tools)) => Ok((Some(tools.clone()), version)),
            Some(SavedTools::Of(home)) => match &self.earlier(*home, version)?.tools {
                Some(SavedTools::List(tools)) => Ok((Some(tools.clone()), *home)),
                _ => Err(damaged("its tools are not where they were set")),
            },
        }
    }

    /// A batch, where it was opened: at or before a version.
    fn opened(&self, home: SavedBatchHome, version: Version) -> Result<&SavedBatch, Error> {
        let SavedBatchHome(opened_by, ordinal) = home;
        match opened_by <= version {
            true => self.saved(opened_by)?.opened(ordinal),
            false => Err(damaged("it is in a batch that was opened later")),
        }
    }

    /// The batches below one, the highest first: its number, and how and where it was left.
    fn below(
        &self,
        from: StoredPath,
    ) -> impl Iterator<Item = Result<(usize, SavedBatchHome, &SavedLeft), Error>> {
        let mut at = Some((SavedBatchHome::from(from.home), from.number));
        std::iter::from_fn(move || {
            let (home, number) = at.take()?;
            let left = match self.opened(home, home.0) {
                Ok(batch) => batch.left.as_ref(),
                Err(error) => return Some(Err(error)),
            };
            match (left, number.checked_sub(1)) {
                (None, None) => None,
                // One that was opened before: whatever is stored, the way down ends.
                (Some(left), Some(below)) if left.batch < home => {
                    at = Some((left.batch, below));
                    Some(Ok((below, home, left)))
                }
                _ => Some(Err(damaged("its live path does not reach batch 0"))),
            }
        })
    }

    /// A batch on the path below `from`.
    pub(crate) fn left_batch(
        &self,
        from: StoredPath,
        wanted: usize,
    ) -> Result<SavedLeftBatch, Error> {
        for step in self.below(from) {
            let (number, home, left) = step?;
            let SavedBatchHome(left_in, _) = home;
            if number == wanted {
                let log_len = left.log_len as usize;
                let view = self.left_view(home, left)?;
                return Ok(SavedLeftBatch {
                    opening: self.opened(left.batch, left_in)?.opening(),
                    batch: left.batch.into(),
                    number,
                    view,
                    view_home: left.view.home(),
                    log_len,
                });
            }
        }
        Err(damaged("its live path does not reach batch 0"))
    }

    /// The view in which a batch was left when the one at `home` was opened on it.
    fn left_view(&self, home: SavedBatchHome, left: &SavedLeft) -> Result<Runs, Error> {
        let SavedBatchHome(left_in, ordinal) = home;
        let batches = &self.saved(left_in)?.batches;
        let end = batches.iter().position(|batch| batch.ordinal == ordinal).unwrap_or(0);
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
            return Err(damaged("a batch follows none"));
        }
        let (mut runs, _) = self.view(&at.view, left_in, at.log_len as usize)?;
        for change in changes.iter().rev() {
            let changed = runs.changed_by(&change.view);
            runs = changed.ok_or_else(|| damaged("its view is not made of what is there"))?;
        }
        match runs.is_sound(left.log_len as usize) {
            true => Ok(runs),
            false => Err(damaged("it holds an entry twice, or one that came later")),
        }
    }

    /// How the batches below `from` began: from batch 0 on.
    pub(crate) fn openings(&self, from: StoredPath) -> Result<Vec<Opening>, Error> {
        let mut openings = Vec::new();
        for step in self.below(from) {
            let (_, SavedBatchHome(left_in, _), left) = step?;
            openings.push(self.opened(left.batch, left_in)?.opening());
        }
        openings.reverse();
        Ok(openings)
    }
}
