//! The live path: the batches from 0 to the current one.
//!
//! ```text
//!   batch 0 ◄── batch 1 ◄── batch 2          current: 3
//!   left with   left with   left with        (its view is the
//!   its view    its view    its view          conversation's)
//! ```
//!
//! A batch below the current one keeps the view with which it was left, and the length of the log at that
//! time. The path is a persistent stack: opening a batch pushes one node, a rollback returns to a node
//! below. Each node also has a pointer to a node further down, so reaching the batch that is k batches
//! below costs O(log k).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::missing::{BatchOrigin, StoredPath};
use crate::number::OptVersion;
use crate::{BatchIndex, Error, LogIndex, Missing, Timestamp, View};

/// How a batch was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Opening {
    pub(crate) timestamp: Timestamp,
    pub(crate) reason: Arc<str>,
    /// The smallest index in the view when the batch was opened; the length of the log if the view was
    /// empty.
    pub(crate) boundary: LogIndex,
    /// The batch that was current at the newest BATCH_START of the live path, if there is one.
    pub(crate) return_to: Option<BatchIndex>,
}

/// A batch on top of those below it.
#[derive(Debug)]
pub(crate) struct OpenBatch {
    pub(crate) opening: Opening,
    pub(crate) origin: BatchOrigin,
    number: usize,
    below: Below,
}

/// The batches below a batch.
#[derive(Debug)]
enum Below {
    /// No batches: it is batch 0.
    Bottom,
    /// The batch that was current before.
    Left(Arc<LeftBatch>),
    /// Batches that are not loaded.
    Stored,
}

/// A cache of batches that were loaded from a store. Entries are never changed or removed, so all values
/// of a conversation share one cache.
#[derive(Debug, Default)]
pub(crate) struct LoadedBatches {
    left: Mutex<HashMap<(StoredPath, BatchIndex), Arc<LeftBatch>>>,
    openings: Mutex<HashMap<StoredPath, Vec<Opening>>>,
}

impl LoadedBatches {
    fn left(&self, path: StoredPath, batch: BatchIndex) -> Option<Arc<LeftBatch>> {
        self.left
            .lock()
            .expect("no code panics while it holds this lock")
            .get(&(path, batch))
            .cloned()
    }

    pub(crate) fn insert(&self, path: StoredPath, batch: BatchIndex, left: Arc<LeftBatch>) {
        self.left
            .lock()
            .expect("no code panics while it holds this lock")
            .insert((path, batch), left);
    }

    pub(crate) fn insert_openings(&self, path: StoredPath, openings: Vec<Opening>) {
        self.openings
            .lock()
            .expect("no code panics while it holds this lock")
            .insert(path, openings);
    }
}

/// A batch below the current one.
#[derive(Debug)]
pub(crate) struct LeftBatch {
    /// A batch further down; see [`LeftBatch::jump_from`].
    far_below: Option<Arc<LeftBatch>>,
    pub(crate) batch: Arc<OpenBatch>,
    number: usize,
    /// Its last view.
    pub(crate) view: View,
    /// The version that introduced this view; `NONE` if the view existed only within a request.
    pub(crate) view_origin: OptVersion,
    /// The length of the log when the batch was left.
    pub(crate) log_len: usize,
}

/// The data that a batch keeps when it is left; see [`LeftBatch`].
pub(crate) struct Leaving {
    pub(crate) view: View,
    pub(crate) view_origin: OptVersion,
    pub(crate) log_len: usize,
}

/// The current batch and those below it. A clone costs O(1).
#[derive(Clone, Debug)]
pub(crate) struct LivePath {
    pub(crate) current: Arc<OpenBatch>,
}

impl LivePath {
    /// Batch 0 alone.
    pub(crate) fn new(timestamp: Timestamp) -> LivePath {
        let reason = "the start of the conversation".into();
        let boundary = LogIndex(0);
        let opening = Opening { timestamp, reason, boundary, return_to: None };
        LivePath { current: OpenBatch::new(opening, BatchOrigin::default(), None) }
    }

    pub(crate) fn current_number(&self) -> BatchIndex {
        BatchIndex(self.current.number)
    }

    /// Number of batches.
    pub(crate) fn len(&self) -> usize {
        self.current.number + 1
    }

    /// Leaves the current batch and opens the next one.
    pub(crate) fn open(&mut self, left_with: Leaving, opening: Opening, origin: BatchOrigin) {
        let left = LeftBatch::new(self.current.clone(), left_with);
        self.current = OpenBatch::new(opening, origin, Some(left));
    }

    /// A batch below the current one; `None` if no batch below it has this number.
    pub(crate) fn left(
        &self,
        batch: BatchIndex,
        loaded: &LoadedBatches,
    ) -> Result<Option<Arc<LeftBatch>>, Error> {
        let mut open = &self.current;
        loop {
            let mut at = match &open.below {
                Below::Left(left) if batch.0 <= left.number => left,
                Below::Stored if batch.0 < open.number => {
                    let path = open.stored_path();
                    let missing = || Error::NotLoaded(Missing::Batches(path, batch.0..batch.0 + 1));
                    return loaded.left(path, batch).map(Some).ok_or_else(missing);
                }
                _ => return Ok(None),
            };
            while let Some(far) = at.far_below.as_ref().filter(|far| far.number >= batch.0) {
                at = far;
            }
            if at.number == batch.0 {
                return Ok(Some(at.clone()));
            }
            open = &at.batch;
        }
    }

    /// The batches below the lowest loaded one, if there are any.
    fn stored(&self) -> Option<StoredPath> {
        let lowest = self.left_batches().last().map_or(&self.current, |left| &left.batch);
        matches!(lowest.below, Below::Stored).then(|| lowest.stored_path())
    }

    /// Tests that every batch below the current one is loaded, as part of the path or in the cache. The error
    /// names the lowest missing batch and all batches above it that are not part of the path.
    pub(crate) fn check_left(&self, loaded: &LoadedBatches) -> Result<(), Error> {
        let Some(path) = self.stored() else { return Ok(()) };
        let left = loaded.left.lock().expect("nothing panics here");
        let is_missing = |batch: &usize| !left.contains_key(&(path, BatchIndex(*batch)));
        match (0..path.number).find(is_missing) {
            Some(lowest) => Err(Error::NotLoaded(Missing::Batches(path, lowest..path.number))),
            None => Ok(()),
        }
    }

    /// Tests that every batch is loaded as part of the path. Batches in the cache do not suffice.
    pub(crate) fn check_all_loaded(&self) -> Result<(), Error> {
        match self.stored() {
            Some(_) => Err(Error::NotLoaded(Missing::Versions)),
            None => Ok(()),
        }
    }

    /// Makes a batch below the current one current again.
    pub(crate) fn return_to(&mut self, left: &LeftBatch) {
        self.current = left.batch.clone();
    }

    /// The loaded batches below the current one, highest first.
    pub(crate) fn left_batches(&self) -> impl Iterator<Item = &Arc<LeftBatch>> {
        std::iter::successors(self.current.below(), |left| left.below())
    }

    /// The openings of all batches, from batch 0 to the current one.
    pub(crate) fn openings(&self, loaded: &LoadedBatches) -> Result<Vec<Opening>, Error> {
        let mut openings = match self.stored() {
            Some(path) => {
                let loaded =
                    loaded.openings.lock().expect("no code panics while it holds this lock");
                let missing = || Error::NotLoaded(Missing::Openings(path));
                loaded.get(&path).cloned().ok_or_else(missing)?
            }
            None => Vec::new(),
        };
        let below: Vec<&Opening> = self.left_batches().map(|left| &left.batch.opening).collect();
        openings.extend(below.into_iter().rev().cloned());
        openings.push(self.current.opening.clone());
        Ok(openings)
    }
}

impl OpenBatch {
    pub(crate) fn new(
        opening: Opening,
        origin: BatchOrigin,
        below: Option<Arc<LeftBatch>>,
    ) -> Arc<OpenBatch> {
        let number = below.as_ref().map_or(0, |left| left.number + 1);
        let below = below.map_or(Below::Bottom, Below::Left);
        Arc::new(OpenBatch { opening, origin, number, below })
    }

    /// A batch with this number, on top of batches that are not loaded.
    pub(crate) fn on_stored(
        opening: Opening,
        origin: BatchOrigin,
        number: usize,
    ) -> Arc<OpenBatch> {
        let below = match number {
            0 => Below::Bottom,
            _ => Below::Stored,
        };
        Arc::new(OpenBatch { opening, origin, number, below })
    }

    /// The batch below, if it is loaded.
    pub(crate) fn below(&self) -> Option<&Arc<LeftBatch>> {
        match &self.below {
            Below::Left(left) => Some(left),
            Below::Bottom | Below::Stored => None,
        }
    }

    fn stored_path(&self) -> StoredPath {
        StoredPath { origin: self.origin, number: self.number }
    }
}

impl LeftBatch {
    pub(crate) fn new(batch: Arc<OpenBatch>, leaving: Leaving) -> Arc<LeftBatch> {
        let Leaving { view, view_origin, log_len } = leaving;
        let far_below = batch.below().map(|below| below.jump_from());
        let number = batch.number;
        Arc::new(LeftBatch { far_below, batch, number, view, view_origin, log_len })
    }

    pub(crate) fn below(&self) -> Option<&Arc<LeftBatch>> {
        self.batch.below()
    }

    /// The `far_below` pointer of the batch above this one: the target of the next two jumps if they have
    /// equal length, otherwise this batch. Every batch is then reachable in O(log n) steps (a skew-binary
    /// jump list).
    fn jump_from(self: &Arc<Self>) -> Arc<LeftBatch> {
        if let Some(first) = &self.far_below
            && let Some(second) = &first.far_below
            && self.number - first.number == first.number - second.number
        {
            return second.clone();
        }
        self.clone()
    }
}

impl Drop for OpenBatch {
    /// Drops a long path in a loop. The default would recurse once per batch and overflow the stack.
    fn drop(&mut self) {
        let mut next = std::mem::replace(&mut self.below, Below::Bottom);
        while let Below::Left(left) = next {
            let Some(left) = Arc::into_inner(left) else { return };
            // This does not recurse: the path below `left.batch` still owns the target of `far_below`.
            drop(left.far_below);
            let Some(mut batch) = Arc::into_inner(left.batch) else { return };
            next = std::mem::replace(&mut batch.below, Below::Bottom);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(batches: usize) -> LivePath {
        let mut path = LivePath::new(0);
        for number in 1..batches {
            let boundary = LogIndex(number as u32);
            let leaving =
                Leaving { view: View::default(), view_origin: OptVersion::NONE, log_len: number };
            let opening = Opening { timestamp: 0, reason: "".into(), boundary, return_to: None };
            path.open(leaving, opening, BatchOrigin::default());
        }
        path
    }

    #[test]
    fn every_batch_of_a_long_path_is_reachable() {
        let path = path(1000);
        assert_eq!(path.len(), 1000);
        for batch in 0..999 {
            let left = path
                .left(BatchIndex(batch), &LoadedBatches::default())
                .unwrap()
                .expect("it is on the path");
            assert_eq!(left.number, batch);
            assert_eq!(left.log_len, batch + 1);
        }
        assert!(
            path.left(BatchIndex(999), &LoadedBatches::default()).unwrap().is_none(),
            "the current batch was not left"
        );
    }

    #[test]
    fn a_path_of_a_million_batches_is_dropped_without_recursion() {
        let path = path(1_000_000);
        let shared = path.clone();
        drop(path);
        assert_eq!(shared.len(), 1_000_000);
    }
}
