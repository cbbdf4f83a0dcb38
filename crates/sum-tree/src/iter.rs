//! Iteration, forwards and backwards, from any place.

use std::ops::RangeBounds;
use std::sync::OnceLock;

use crate::tail::filled;
use crate::tree::cut;
use crate::{Item, SumTree};

/// Neighbouring items that stand together in one leaf or in the tail.
#[derive(Debug)]
pub struct Run<'a, T>(Stretch<'a, T>);

#[derive(Debug)]
enum Stretch<'a, T> {
    Items(&'a [T]),
    Slots(&'a [OnceLock<T>]),
}

impl<T> Clone for Run<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Run<'_, T> {}

impl<T> Clone for Stretch<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Stretch<'_, T> {}

impl<'a, T> Run<'a, T> {
    fn empty() -> Self {
        Run(Stretch::Items(&[]))
    }

    pub(crate) fn items(items: &'a [T]) -> Self {
        Run(Stretch::Items(items))
    }

    pub(crate) fn slots(slots: &'a [OnceLock<T>]) -> Self {
        Run(Stretch::Slots(slots))
    }

    /// How many items the run has.
    #[allow(clippy::len_without_is_empty, reason = "a run that is handed out is never empty")]
    pub fn len(&self) -> usize {
        match self.0 {
            Stretch::Items(items) => items.len(),
            Stretch::Slots(slots) => slots.len(),
        }
    }

    /// The item at `at`, counted from the run's start.
    pub fn get(&self, at: usize) -> Option<&'a T> {
        match self.0 {
            Stretch::Items(items) => items.get(at),
            Stretch::Slots(slots) => slots.get(at).map(filled),
        }
    }

    /// The items in order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = &'a T> {
        (0..self.len()).map(move |at| self.get(at).expect("the index is below the length"))
    }

    pub(crate) fn part(self, from: usize, to: usize) -> Self {
        match self.0 {
            Stretch::Items(items) => Run::items(&items[from..to]),
            Stretch::Slots(slots) => Run::slots(&slots[from..to]),
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

/// The items of a range, from either end; see [`SumTree::iter_range`].
#[derive(Clone, Debug)]
pub struct Iter<'a, T: Item> {
    tree: &'a SumTree<T>,
    /// The next item from the front has this position, and stands at `ahead.1` of `ahead.0`.
    front: usize,
    ahead: (Run<'a, T>, usize),
    /// The next item from the back is the one before this position, and stands right before
    /// `behind.1` of `behind.0`.
    back: usize,
    behind: (Run<'a, T>, usize),
}

impl<'a, T: Item> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        if self.front >= self.back {
            return None;
        }
        if self.ahead.1 >= self.ahead.0.len() {
            self.ahead = self.tree.run_at(self.front);
        }
        let item = self.ahead.0.get(self.ahead.1);
        self.ahead.1 += 1;
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
        if self.behind.1 == 0 {
            let (run, offset) = self.tree.run_at(self.back - 1);
            self.behind = (run, offset + 1);
        }
        self.behind.1 -= 1;
        self.back -= 1;
        self.behind.0.get(self.behind.1)
    }
}

impl<T: Item> ExactSizeIterator for Iter<'_, T> {}

impl<T: Item> SumTree<T> {
    /// All items.
    pub fn iter(&self) -> Iter<'_, T> {
        self.iter_range(..)
    }

    /// The items of `range`, from either end. Getting to the first costs O(log n).
    pub fn iter_range(&self, range: impl RangeBounds<usize>) -> Iter<'_, T> {
        let range = cut(range, self.len());
        Iter {
            tree: self,
            front: range.start,
            ahead: (Run::empty(), 0),
            back: range.end,
            behind: (Run::empty(), 0),
        }
    }

    /// The items of `range`, a leaf's worth at a time: the quickest way to read many.
    pub fn runs(&self, range: impl RangeBounds<usize>) -> Runs<'_, T> {
        let range = cut(range, self.len());
        Runs { tree: self, at: range.start, end: range.end }
    }

    /// The run that holds `position`, and the position of its first item: for reading items that
    /// stand close together without looking for each of them.
    pub fn run_around(&self, position: usize) -> Option<(usize, Run<'_, T>)> {
        if position >= self.len() {
            return None;
        }
        let (run, offset) = self.run_at(position);
        Some((position - offset, run))
    }

    /// The leaf (or tail) that holds `position`, which is inside, and the place in it.
    fn run_at(&self, position: usize) -> (Run<'_, T>, usize) {
        match self.leaf_around(position) {
            Some((items, at)) => (Run::items(items), at),
            None => (Run::slots(self.tail().slots()), position - self.body_len()),
        }
    }
}
