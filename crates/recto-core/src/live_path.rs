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

use std::sync::Arc;

use crate::{BatchIndex, LogIndex, Timestamp, View};

/// How a batch began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Opening {
    pub(crate) timestamp: Timestamp,
    pub(crate) description: Arc<str>,
    /// The smallest index in the view when it was opened, or the log's length if it was empty.
    pub(crate) boundary: LogIndex,
}

/// A batch that was opened, on top of those below it.
#[derive(Debug)]
pub(crate) struct OpenBatch {
    pub(crate) opening: Opening,
    number: usize,
    below: Option<Arc<LeftBatch>>,
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
    /// How long the log was when it was left.
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
        let opening = Opening { timestamp, description, boundary: LogIndex(0) };
        LivePath { current: OpenBatch::new(opening, None) }
    }

    pub(crate) fn current_number(&self) -> BatchIndex {
        BatchIndex(self.current.number)
    }

    /// How many batches there are.
    pub(crate) fn len(&self) -> usize {
        self.current.number + 1
    }

    /// Leaves the current batch with this view, and opens the next one.
    pub(crate) fn open(&mut self, left_with: View, log_len: usize, opening: Opening) {
        let left = LeftBatch::new(self.current.clone(), left_with, log_len);
        self.current = OpenBatch::new(opening, Some(left));
    }

    /// A batch below the current one.
    pub(crate) fn left(&self, batch: BatchIndex) -> Option<&Arc<LeftBatch>> {
        let mut at = self.current.below.as_ref()?;
        if batch.0 > at.number {
            return None;
        }
        while at.number != batch.0 {
            at = match &at.far_below {
                Some(far) if far.number >= batch.0 => far,
                _ => at.below().expect("every batch but 0 has one below it"),
            };
        }
        Some(at)
    }

    /// Makes a batch below the current one current again.
    pub(crate) fn step_down_to(&mut self, left: &LeftBatch) {
        self.current = left.batch.clone();
    }

    /// The batches below the current one, highest first.
    pub(crate) fn left_batches(&self) -> impl Iterator<Item = &Arc<LeftBatch>> {
        std::iter::successors(self.current.below.as_ref(), |left| left.below())
    }

    /// How all batches began, from batch 0 to the current one.
    pub(crate) fn openings(&self) -> Vec<&Opening> {
        let mut openings: Vec<_> = self.left_batches().map(|left| &left.batch.opening).collect();
        openings.reverse();
        openings.push(&self.current.opening);
        openings
    }
}

impl OpenBatch {
    pub(crate) fn new(opening: Opening, below: Option<Arc<LeftBatch>>) -> Arc<OpenBatch> {
        let number = below.as_ref().map_or(0, |left| left.number + 1);
        Arc::new(OpenBatch { opening, number, below })
    }

    pub(crate) fn below(&self) -> Option<&Arc<LeftBatch>> {
        self.below.as_ref()
    }
}

impl LeftBatch {
    pub(crate) fn new(batch: Arc<OpenBatch>, view: View, log_len: usize) -> Arc<LeftBatch> {
        let far_below = batch.below.as_ref().map(|below| below.jump_from());
        let number = batch.number;
        Arc::new(LeftBatch { far_below, batch, number, view, log_len })
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
        let mut next = self.below.take();
        while let Some(left) = next.and_then(Arc::into_inner) {
            // What is far below is still held by what is between.
            drop(left.far_below);
            next = Arc::into_inner(left.batch).and_then(|mut batch| batch.below.take());
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
            path.open(
                View::default(),
                number,
                Opening { timestamp: 0, description: "".into(), boundary },
            );
        }
        path
    }

    #[test]
    fn every_batch_of_a_long_path_can_be_reached() {
        let path = path(1000);
        assert_eq!(path.len(), 1000);
        for batch in 0..999 {
            let left = path.left(BatchIndex(batch)).expect("it is on the path");
            assert_eq!(left.number, batch);
            assert_eq!(left.log_len, batch + 1);
        }
        assert!(path.left(BatchIndex(999)).is_none(), "the current batch was not left");
    }

    #[test]
    fn a_path_of_a_million_batches_is_dropped_without_recursion() {
        let path = path(1_000_000);
        let shared = path.clone();
        drop(path);
        assert_eq!(shared.len(), 1_000_000);
    }
}
