//! Marks on log entries. The mark `pinned` protects an entry from being hidden.

use std::cmp::Ordering;
use std::sync::Arc;

use sum_tree::{Item, Length, SumTree};

use crate::LogIndex;
use crate::index_set::IndexSet;

/// The mark that protects an entry. TRUNCATE, FILTER, CLEAR, FIT and BATCH_START keep a visible pinned
/// entry, and DELETE, COMPRESS, REPLACE and ARRANGE refuse to hide it. ROLLBACK, BATCH_END, UNDO and REDO
/// restore an earlier view, whether it shows pinned entries or not.
pub const PINNED: &str = "pinned";

/// All marks of a conversation. A clone costs O(1).
#[derive(Clone, Debug, Default)]
pub struct Marks(Option<Arc<SumTree<Mark>>>);

/// A mark and its entries, at least one.
#[derive(Clone, Debug)]
struct Mark {
    label: Arc<str>,
    entries: IndexSet,
}

impl Item for Mark {
    type Summary = Length;
    const LEAF: usize = 8;
    const FAN: usize = 24;

    fn add_to(&self, length: &mut Length) {
        length.0 += 1;
    }
}

impl Marks {
    fn marks(&self) -> impl Iterator<Item = &Mark> {
        self.0.iter().flat_map(|marks| marks.iter())
    }

    /// The position of a label in the order of UTF-8 bytes: `Ok` if it exists, otherwise `Err` with the
    /// position at which to insert it.
    fn find(&self, label: &str) -> Result<usize, usize> {
        let Some(marks) = &self.0 else { return Err(0) };
        let (mut from, mut to) = (0, marks.len());
        while from < to {
            let middle = from.midpoint(to);
            let mark = marks.get(middle).expect("the middle is inside");
            match (*mark.label).cmp(label) {
                Ordering::Equal => return Ok(middle),
                Ordering::Less => from = middle + 1,
                Ordering::Greater => to = middle,
            }
        }
        Err(from)
    }

    fn entries(&self, label: &str) -> Option<&IndexSet> {
        let at = self.find(label).ok()?;
        Some(&self.0.as_ref()?.get(at)?.entries)
    }

    /// Sets the entries of a label. `found` is the result of [`find`](Self::find). A label without entries
    /// is removed.
    fn put(&mut self, found: Result<usize, usize>, label: &str, entries: IndexSet) {
        let mut marks = self.0.as_deref().cloned().unwrap_or_default();
        let mark = (!entries.is_empty()).then(|| Mark { label: label.into(), entries });
        match found {
            Ok(at) => marks.splice(at..=at, mark),
            Err(at) => marks.splice(at..at, mark),
        }
        self.0 = (!marks.is_empty()).then(|| Arc::new(marks));
    }

    /// The labels of all marks, in the order of their UTF-8 bytes.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.marks().map(|mark| &*mark.label)
    }

    /// The entries with this mark, in log order.
    pub fn indices(&self, label: &str) -> impl DoubleEndedIterator<Item = LogIndex> {
        self.entries(label).into_iter().flat_map(IndexSet::iter)
    }

    /// Whether an entry has this mark.
    pub fn has(&self, index: LogIndex, label: &str) -> bool {
        self.entries(label).is_some_and(|entries| entries.contains(index))
    }

    /// Whether an entry is pinned.
    pub fn is_pinned(&self, index: LogIndex) -> bool {
        self.has(index, PINNED)
    }

    pub(crate) fn pins(&self) -> Option<&IndexSet> {
        self.entries(PINNED)
    }

    /// Sets a mark on entries (sorted, without duplicates).
    pub(crate) fn set(&mut self, indices: &[LogIndex], label: &str) {
        let entries = self.entries(label).cloned().unwrap_or_default().union(indices);
        self.put(self.find(label), label, entries);
    }

    /// Removes a mark from entries (sorted).
    pub(crate) fn unset(&mut self, indices: &[LogIndex], label: &str) {
        if let Some(entries) = self.entries(label) {
            let entries = entries.without(indices);
            self.put(self.find(label), label, entries);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The changes since `earlier`: for each label the entries that were set and unset.
    pub(crate) fn changes_since(
        &self,
        earlier: &Marks,
    ) -> Vec<(String, Vec<LogIndex>, Vec<LogIndex>)> {
        let nothing = IndexSet::default();
        let none = SumTree::new();
        let now = self.0.as_deref().unwrap_or(&none);
        let before = earlier.0.as_deref().unwrap_or(&none);
        // Shared nodes contain equal marks.
        let difference = now.difference(before);
        let blocks = difference.left.iter().chain(&difference.right);
        let mut labels: Vec<&str> =
            blocks.flat_map(|block| block.items()).map(|mark| &*mark.label).collect();
        labels.sort_unstable();
        labels.dedup();
        let change = |label: &str| {
            let now = self.entries(label).unwrap_or(&nothing);
            let before = earlier.entries(label).unwrap_or(&nothing);
            (label.to_owned(), now.missing_in(before), before.missing_in(now))
        };
        let changes = labels.into_iter().map(change);
        changes.filter(|(_, set, unset)| !set.is_empty() || !unset.is_empty()).collect()
    }

    /// Number of labels plus number of marked entries.
    pub(crate) fn size(&self) -> usize {
        self.marks().map(|mark| 1 + mark.entries.len()).sum()
    }

    /// Minimum length of a log that contains every marked entry.
    pub(crate) fn needed_log_len(&self) -> usize {
        let last = self.marks().filter_map(|mark| mark.entries.iter().next_back()).max();
        last.map_or(0, |last| last.as_usize() + 1)
    }

    /// The address of the value. Two values with the same address are equal.
    pub(crate) fn address(&self) -> usize {
        self.0.as_ref().map_or(0, |marks| Arc::as_ptr(marks).addr())
    }

    pub(crate) fn check(&self, log_len: usize) -> Result<(), String> {
        for mark in self.marks() {
            mark.entries.check()?;
            if mark.entries.iter().next_back().is_none_or(|last| last.as_usize() >= log_len) {
                return Err(format!(
                    "the mark {:?} is on an entry that the log does not have",
                    mark.label
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn marks_agree_with_a_map_of_sets(
            changes in prop::collection::vec((any::<bool>(), 0..40u32, 0..9u32), 0..200),
        ) {
            let mut marks = Marks::default();
            let mut plain: BTreeMap<String, BTreeSet<LogIndex>> = BTreeMap::new();
            for (is_set, label, index) in changes {
                let (label, index) = (format!("label {label}"), LogIndex(index));
                if is_set {
                    marks.set(&[index], &label);
                    plain.entry(label).or_default().insert(index);
                } else {
                    marks.unset(&[index], &label);
                    plain.entry(label).or_default().remove(&index);
                }
                plain.retain(|_, entries| !entries.is_empty());
            }
            prop_assert!(marks.labels().eq(plain.keys()));
            for (label, entries) in &plain {
                prop_assert!(marks.indices(label).eq(entries.iter().copied()));
            }
            prop_assert_eq!(marks.is_empty(), plain.is_empty());
        }
    }
}
