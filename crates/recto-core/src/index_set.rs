//! A persistent sorted set of log indices.

use sum_tree::{Item, SumTree, Summary};

use crate::LogIndex;

/// A member of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Member(LogIndex);

impl Item for Member {
    type Summary = Bounds;

    fn add_to(&self, bounds: &mut Bounds) {
        bounds.count += 1;
        bounds.max = self.0.0;
    }
}

/// Number of members, and the largest one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bounds {
    count: u32,
    max: u32,
}

impl Summary for Bounds {
    fn add(&mut self, later: &Self) {
        if later.count > 0 {
            self.count += later.count;
            self.max = later.max;
        }
    }

    fn count(&self) -> usize {
        self.count as usize
    }
}

/// A sorted set. A clone costs O(1), adding or removing a member O(log n).
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

    /// Number of members below `index`, and whether `index` is a member.
    fn rank(&self, index: LogIndex) -> (usize, bool) {
        match self.0.find(|bounds| bounds.max >= index.0, |member| member.0 >= index) {
            Some((rank, found)) => (rank, found.0 == index),
            None => (self.len(), false),
        }
    }

    pub(crate) fn contains(&self, index: LogIndex) -> bool {
        self.rank(index).1
    }

    /// Adds an index that is above all members.
    pub(crate) fn push(&mut self, index: LogIndex) {
        self.0.push(Member(index));
    }

    /// The members below an index.
    pub(crate) fn below(&self, index: LogIndex) -> IndexSet {
        IndexSet(self.0.slice(..self.rank(index).0))
    }

    /// The set with all of `indices` (sorted, without duplicates).
    pub(crate) fn union(&self, indices: &[LogIndex]) -> IndexSet {
        if self.is_small_change(indices) {
            let mut set = self.clone();
            for &index in indices {
                if let (rank, false) = set.rank(index) {
                    set.0.splice(rank..rank, [Member(index)]);
                }
            }
            return set;
        }
        let mut all: Vec<LogIndex> = self.iter().chain(indices.iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        IndexSet(all.into_iter().map(Member).collect())
    }

    /// The set without `indices` (sorted).
    pub(crate) fn without(&self, indices: &[LogIndex]) -> IndexSet {
        if self.is_small_change(indices) {
            let mut set = self.clone();
            for &index in indices {
                if let (rank, true) = set.rank(index) {
                    set.0.splice(rank..=rank, []);
                }
            }
            return set;
        }
        let rest = self.iter().filter(|index| indices.binary_search(index).is_err());
        IndexSet(rest.map(Member).collect())
    }

    /// The members that `other` does not have, in order. The cost depends on the difference.
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
