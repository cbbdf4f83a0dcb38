//! A sorted set of log entries that shares structure with the set before it.

use sum_tree::{Item, SumTree, Summary};

use crate::LogIndex;

/// An entry of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Member(LogIndex);

impl Item for Member {
    type Summary = Bounds;

    fn add_to(&self, bounds: &mut Bounds) {
        bounds.count += 1;
        bounds.most = self.0.0;
    }
}

/// How many entries, and the largest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bounds {
    count: u32,
    most: u32,
}

impl Summary for Bounds {
    fn add(&mut self, later: &Self) {
        if later.count > 0 {
            self.count += later.count;
            self.most = later.most;
        }
    }

    fn count(&self) -> usize {
        self.count as usize
    }
}

/// A sorted set. Cloning one costs O(1), adding or removing an entry O(log n).
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexSet(SumTree<Member>);

impl IndexSet {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = LogIndex> + ExactSizeIterator {
        self.0.iter().map(|member| member.0)
    }

    /// Where `index` stands or would stand, and whether it is there.
    fn place(&self, index: LogIndex) -> (usize, bool) {
        match self.0.find(|bounds| bounds.most >= index.0, |member| member.0 >= index) {
            Some((place, found)) => (place, found.0 == index),
            None => (self.len(), false),
        }
    }

    pub(crate) fn contains(&self, index: LogIndex) -> bool {
        self.place(index).1
    }

    /// Adds an entry that is above all others.
    pub(crate) fn push(&mut self, index: LogIndex) {
        self.0.push(Member(index));
    }

    /// The entries below an index.
    pub(crate) fn below(&self, index: LogIndex) -> IndexSet {
        IndexSet(self.0.slice(..self.place(index).0))
    }

    /// With all of `indices`, which are sorted and not doubled.
    pub(crate) fn union(&self, indices: &[LogIndex]) -> IndexSet {
        if self.is_small_change(indices) {
            let mut set = self.clone();
            for &index in indices {
                if let (place, false) = set.place(index) {
                    set.0.splice(place..place, [Member(index)]);
                }
            }
            return set;
        }
        let mut all: Vec<LogIndex> = self.iter().chain(indices.iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        IndexSet(all.into_iter().map(Member).collect())
    }

    /// Without any of `indices`, which are sorted.
    pub(crate) fn without(&self, indices: &[LogIndex]) -> IndexSet {
        if self.is_small_change(indices) {
            let mut set = self.clone();
            for &index in indices {
                if let (place, true) = set.place(index) {
                    set.0.splice(place..=place, []);
                }
            }
            return set;
        }
        let rest = self.iter().filter(|index| indices.binary_search(index).is_err());
        IndexSet(rest.map(Member).collect())
    }

    /// The entries that `other` does not have, in order. Costs what differs.
    pub(crate) fn missing_in(&self, other: &IndexSet) -> Vec<LogIndex> {
        let difference = self.0.difference(&other.0);
        let unshared = difference.left.iter().flat_map(|block| block.items());
        unshared.map(|member| member.0).filter(|&index| !other.contains(index)).collect()
    }

    fn is_small_change(&self, indices: &[LogIndex]) -> bool {
        indices.len() * 32 <= self.len()
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        self.0.check().map_err(|fault| format!("mark: {fault}"))?;
        match self.iter().is_sorted_by(|a, b| a < b) {
            true => Ok(()),
            false => Err("the entries of a mark are not in order".into()),
        }
    }
}
