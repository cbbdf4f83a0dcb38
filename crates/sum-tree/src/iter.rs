//! Iteration in both directions, from any position.

use std::ops::RangeBounds;
use std::sync::OnceLock;

use crate::tail::filled;
use crate::tree::clamp;
use crate::{Item, SumTree};

/// Consecutive items of one leaf or of the tail.
#[derive(Debug)]
pub struct Run<'a, T>(Slice<'a, T>);

#[derive(Debug)]
enum Slice<'a, T> {
    Items(&'a [T]),
    Slots(&'a [OnceLock<T>]),
}

impl<T> Clone for Run<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Run<'_, T> {}

impl<T> Clone for Slice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slice<'_, T> {}

impl<'a, T> Run<'a, T> {
    fn empty() -> Self {
        Run(Slice::Items(&[]))
    }

    pub(crate) fn items(items: &'a [T]) -> Self {
        Run(Slice::Items(items))
    }

    pub(crate) fn slots(slots: &'a [OnceLock<T>]) -> Self {
        Run(Slice::Slots(slots))
    }

    /// Number of items.
    #[allow(clippy::len_without_is_empty, reason = "a run that a caller gets is never empty")]
    pub fn len(&self) -> usize {
        match self.0 {
            Slice::Items(items) => items.len(),
            Slice::Slots(slots) => slots.len(),
        }
    }

    /// The item at index `at` of the run.
    pub fn get(&self, at: usize) -> Option<&'a T> {
        match self.0 {
            Slice::Items(items) => items.get(at),
            Slice::Slots(slots) => slots.get(at).map(filled),
        }
    }

    /// The items, in order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = &'a T> {
        (0..self.len()).map(move |at| self.get(at).expect("the index is below the length"))
    }

    pub(crate) fn part(self, from: usize, to: usize) -> Self {
        match self.0 {
            Slice::Items(items) => Run::items(&items[from..to]),
            Slice::Slots(slots) => Run::slots(&slots[from..to]),
        }
    }
}

/// The runs of a range; see [`SumTree::runs`].
#[derive(Debug)]
pub struct Runs<'a, T: Item> {
    tree: &'a SumTree<T>,
    at: usize,
    end: usize,
}

impl<'a, T: Item> Iterator for Runs<'a, T> {
    type Item = Run<'a, T>;

    fn next(&mut self) -> Option<Run<'a, T>> {
        if self.at >= self.end {
            return None;
        }
        let (run, offset) = self.tree.run_at(self.at);
        let to = run.len().min(offset + (self.end - self.at));
        self.at += to - offset;
        Some(run.part(offset, to))
    }
}

/// A double-ended iterator over a range; see [`SumTree::iter_range`].
#[derive(Clone, Debug)]
pub struct Iter<'a, T: Item> {
    tree: &'a SumTree<T>,
    /// Position of the next item from the front.
    front: usize,
    /// The run with that item, and the index of the item in the run.
    front_run: (Run<'a, T>, usize),
    /// Position after the next item from the back.
    back: usize,
    /// The run with that item, and the index after the item in the run.
    back_run: (Run<'a, T>, usize),
}

impl<'a, T: Item> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        if self.front >= self.back {
            return None;
        }
        if self.front_run.1 >= self.front_run.0.len() {
            self.front_run = self.tree.run_at(self.front);
        }
        let item = self.front_run.0.get(self.front_run.1);
        self.front_run.1 += 1;
        self.front += 1;
        item
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.back.saturating_sub(self.front);
        (left, Some(left))
    }
}

impl<T: Item> DoubleEndedIterator for Iter<'_, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.front >= self.back {
            return None;
        }
        if self.back_run.1 == 0 {
            let (run, offset) = self.tree.run_at(self.back - 1);
            self.back_run = (run, offset + 1);
        }
        self.back_run.1 -= 1;
        self.back -= 1;
        self.back_run.0.get(self.back_run.1)
    }
}

impl<T: Item> ExactSizeIterator for Iter<'_, T> {}

impl<T: Item> SumTree<T> {
    /// All items.
    pub fn iter(&self) -> Iter<'_, T> {
        self.iter_range(..)
    }

    /// The items of `range`, in order. The first item takes O(log n).
    pub fn iter_range(&self, range: impl RangeBounds<usize>) -> Iter<'_, T> {
        let range = clamp(range, self.len());
        Iter {
            tree: self,
            front: range.start,
            front_run: (Run::empty(), 0),
            back: range.end,
            back_run: (Run::empty(), 0),
        }
    }

    /// The items of `range`, leaf by leaf: the fastest way to read many items.
    pub fn runs(&self, range: impl RangeBounds<usize>) -> Runs<'_, T> {
        let range = clamp(range, self.len());
        Runs { tree: self, at: range.start, end: range.end }
    }

    /// The run that contains `position`, and the position of its first item. It allows reading neighbouring
    /// items with one search.
    pub fn run_around(&self, position: usize) -> Option<(usize, Run<'_, T>)> {
        if position >= self.len() {
            return None;
        }
        let (run, offset) = self.run_at(position);
        Some((position - offset, run))
    }

    /// The leaf or tail that contains `position`, and the index in it. The position must be inside the
    /// sequence.
    fn run_at(&self, position: usize) -> (Run<'_, T>, usize) {
        match self.leaf_around(position) {
            Some((items, at)) => (Run::items(items), at),
            None => (Run::slots(self.tail().slots()), position - self.body_len()),
        }
    }
}
