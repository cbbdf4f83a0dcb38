//! The batches from 0 to the current one.
//!
//! ```text
//!   batch 0 ◄── batch 1 ◄── batch 2          current: 3
//!   left with   left with   left with        (its view is the
//!   its view    its view    its view          conversation's)
//! ```
//!
//! A batch that was left keeps the view it was left with, and how long the log was then. The path is
//! a persistent stack: opening a batch puts one node on it, a rollback steps down to a node below.
//! Each node also points far down, so that a step over k batches costs O(log k).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::history::Jump;
use crate::{BatchIndex, Error, LogIndex, Missing, Timestamp, Version, View};

/// How a batch began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Opening {
    pub(crate) timestamp: Timestamp,
    pub(crate) description: Arc<str>,
    /// The smallest index in the view when it was opened, or the log's length if it was empty.
    pub(crate) boundary: LogIndex,
    /// The batch that was current at the newest BATCH_START of the live path, if there is one.
    pub(crate) return_to: Option<BatchIndex>,
}

/// Which batch it is, for ever: numbers are used again, this is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct BatchHome {
    /// The version whose request opened it.
    pub(crate) version: Version,
    /// How many batches that request had opened before.
    pub(crate) ordinal: u32,
}

/// A batch that was opened, on top of those below it.
#[derive(Debug)]
pub(crate) struct OpenBatch {
    pub(crate) opening: Opening,
    pub(crate) home: BatchHome,
    number: usize,
    below: Below,
}

/// What is below a batch.
#[derive(Debug)]
enum Below {
    /// Nothing: it is batch 0.
    Bottom,
    /// The batch that was left.
    Left(Arc<LeftBatch>),
    /// Batches that are in a store.
    Stored,
}

/// The batches below one, which are in a store. Only the engine knows what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StoredPath {
    pub(crate) home: BatchHome,
    pub(crate) number: usize,
}

/// Batches that were in a store and that somebody has asked for. It only ever gets to know more, so
/// all values of a conversation share it.
#[derive(Debug, Default)]
pub(crate) struct KnownBatches {
    left: Mutex<HashMap<(StoredPath, BatchIndex), Arc<LeftBatch>>>,
    openings: Mutex<HashMap<StoredPath, Vec<Opening>>>,
}

impl KnownBatches {
    fn left(&self, path: StoredPath, batch: BatchIndex) -> Option<Arc<LeftBatch>> {
        self.left.lock().expect("nothing panics here").get(&(path, batch)).cloned()
    }

    pub(crate) fn know(&self, path: StoredPath, batch: BatchIndex, left: Arc<LeftBatch>) {
        self.left.lock().expect("nothing panics here").insert((path, batch), left);
    }

    pub(crate) fn know_openings(&self, path: StoredPath, openings: Vec<Opening>) {
        self.openings.lock().expect("nothing panics here").insert(path, openings);
    }
}

/// A batch below the current one.
#[derive(Debug)]
pub(crate) struct LeftBatch {
    /// A batch further down; see [`LeftBatch::jump_from`].
    far_below: Option<Arc<LeftBatch>>,
    pub(crate) batch: Arc<OpenBatch>,
    number: usize,
    /// The view it was left with.
    pub(crate) view: View,
    /// The version that made this view, unless it came and went within a request.
    pub(crate) view_home: Jump,
    /// How long the log was when it was left.
    pub(crate) log_len: usize,
}

/// How a batch is left; see [`LeftBatch`].
pub(crate) struct Leaving {
    pub(crate) view: View,
    pub(crate) view_home: Jump,
    pub(crate) log_len: usize,
}

/// The live path: the current batch and those below it. Cloning one costs O(1).
#[derive(Clone, Debug)]
pub(crate) struct LivePath {
    pub(crate) current: Arc<OpenBatch>,
}

impl LivePath {
    /// Batch 0 alone.
    pub(crate) fn new(timestamp: Timestamp) -> LivePath {
        let description = "the start of the conversation".into();
        let boundary = LogIndex(0);
        let opening = Opening { timestamp, description, boundary, return_to: None };
        LivePath { current: OpenBatch::new(opening, BatchHome::default(), None) }
    }

    pub(crate) fn current_number(&self) -> BatchIndex {
        BatchIndex(self.current.number)
    }

    /// How many batches there are.
    pub(crate) fn len(&self) -> usize {
        self.current.number + 1
    }

    /// Leaves the current batch with this view, and opens the next one.
    pub(crate) fn open(&mut self, left_with: Leaving, opening: Opening, home: BatchHome) {
        let left = LeftBatch::new(self.current.clone(), left_with);
        self.current = OpenBatch::new(opening, home, Some(left));
    }

    /// A batch below the current one.
    pub(crate) fn left(
        &self,
        batch: BatchIndex,
        known: &KnownBatches,
    ) -> Result<Option<Arc<LeftBatch>>, Error> {
        let mut open = &self.current;
        loop {
            let mut at = match &open.below {
                Below::Left(left) if batch.0 <= left.number => left,
                Below::Stored if batch.0 < open.number => {
                    let path = open.stored_path();
                    let missing = || Error::NotLoaded(Missing::Batch(path, batch));
                    return known.left(path, batch).map(Some).ok_or_else(missing);
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

    /// The batches below the lowest one at hand, if they are in a store.
    fn stored(&self) -> Option<StoredPath> {
        let lowest = self.left_batches().last().map_or(&self.current, |left| &left.batch);
        matches!(lowest.below, Below::Stored).then(|| lowest.stored_path())
    }

    /// Tests that every batch is at hand.
    pub(crate) fn check_whole(&self) -> Result<(), Error> {
        match self.stored() {
            Some(_) => Err(Error::NotLoaded(Missing::Versions)),
            None => Ok(()),
        }
    }

    /// Makes a batch below the current one current again.
    pub(crate) fn step_down_to(&mut self, left: &LeftBatch) {
        self.current = left.batch.clone();
    }

    /// The batches below the current one, highest first, as far as they are at hand.
    pub(crate) fn left_batches(&self) -> impl Iterator<Item = &Arc<LeftBatch>> {
        std::iter::successors(self.current.below(), |left| left.below())
    }

    /// How all batches began, from batch 0 to the current one.
    pub(crate) fn openings(&self, known: &KnownBatches) -> Result<Vec<Opening>, Error> {
        let mut openings = match self.stored() {
            Some(path) => {
                let known = known.openings.lock().expect("nothing panics here");
                let missing = || Error::NotLoaded(Missing::Batches(path));
                known.get(&path).cloned().ok_or_else(missing)?
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
        home: BatchHome,
        below: Option<Arc<LeftBatch>>,
    ) -> Arc<OpenBatch> {
        let number = below.as_ref().map_or(0, |left| left.number + 1);
        let below = below.map_or(Below::Bottom, Below::Left);
        Arc::new(OpenBatch { opening, home, number, below })
    }

    /// A batch of this number, on top of others that are in a store.
    pub(crate) fn on_stored(opening: Opening, home: BatchHome, number: usize) -> Arc<OpenBatch> {
        let below = match number {
            0 => Below::Bottom,
            _ => Below::Stored,
        };
        Arc::new(OpenBatch { opening, home, number, below })
    }

    /// The batch below, if it is at hand.
    pub(crate) fn below(&self) -> Option<&Arc<LeftBatch>> {
        match &self.below {
            Below::Left(left) => Some(left),
            Below::Bottom | Below::Stored => None,
        }
    }

    fn stored_path(&self) -> StoredPath {
        StoredPath { home: self.home, number: self.number }
    }
}

impl LeftBatch {
    pub(crate) fn new(batch: Arc<OpenBatch>, leaving: Leaving) -> Arc<LeftBatch> {
        let Leaving { view, view_home, log_len } = leaving;
        let far_below = batch.below().map(|below| below.jump_from());
        let number = batch.number;
        Arc::new(LeftBatch { far_below, batch, number, view, view_home, log_len })
    }

    pub(crate) fn below(&self) -> Option<&Arc<LeftBatch>> {
        self.batch.below()
    }

    /// Where the batch above this one points to: past two jumps of equal length, or else to this
    /// one. That makes any batch reachable in O(log n) steps (a skew-binary jump list).
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
    /// Lets go of a long path one batch after the other: the default would go down recursively and
    /// overrun the stack.
    fn drop(&mut self) {
        let mut next = std::mem::replace(&mut self.below, Below::Bottom);
        while let Below::Left(left) = next {
            let Some(left) = Arc::into_inner(left) else { return };
            // What is far below is still held by what is between.
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
            let leaving = Leaving { view: View::default(), view_home: Jump::NONE, log_len: number };
            let opening =
                Opening { timestamp: 0, description: "".into(), boundary, return_to: None };
            path.open(leaving, opening, BatchHome::default());
        }
        path
    }

    #[test]
    fn every_batch_of_a_long_path_can_be_reached() {
        let path = path(1000);
        assert_eq!(path.len(), 1000);
        for batch in 0..999 {
            let left = path
                .left(BatchIndex(batch), &KnownBatches::default())
                .unwrap()
                .expect("it is on the path");
            assert_eq!(left.number, batch);
            assert_eq!(left.log_len, batch + 1);
        }
        assert!(
            path.left(BatchIndex(999), &KnownBatches::default()).unwrap().is_none(),
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
