//! Labels on log entries. The mark `pinned` protects an entry.

use std::sync::Arc;

use crate::LogIndex;
use crate::index_set::IndexSet;

/// The mark that protects an entry from TRUNCATE, FILTER, CLEAR, FIT and BATCH_START.
pub const PINNED: &str = "pinned";

/// All labels of a conversation. Cloning them costs O(1).
#[derive(Clone, Debug, Default)]
pub struct Marks(Option<Arc<Vec<Mark>>>);

#[derive(Clone, Debug)]
struct Mark {
    label: Arc<str>,
    entries: IndexSet,
}

impl Marks {
    fn marks(&self) -> &[Mark] {
        self.0.as_ref().map_or(&[], |marks| marks)
    }

    fn find(&self, label: &str) -> Result<usize, usize> {
        self.marks().binary_search_by(|mark| (*mark.label).cmp(label))
    }

    fn entries(&self, label: &str) -> Option<&IndexSet> {
        let at = self.find(label).ok()?;
        Some(&self.marks()[at].entries)
    }

    /// All labels that stand on some entry, in alphabetical order.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.marks().iter().map(|mark| &*mark.label)
    }

    /// The entries with this label, in log order.
    pub fn with(&self, label: &str) -> impl DoubleEndedIterator<Item = LogIndex> {
        self.entries(label).into_iter().flat_map(IndexSet::iter)
    }

    /// Whether an entry has this label.
    pub fn has(&self, index: LogIndex, label: &str) -> bool {
        self.entries(label).is_some_and(|entries| entries.contains(index))
    }

    /// Whether an entry is pinned.
    pub fn is_pinned(&self, index: LogIndex) -> bool {
        self.has(index, PINNED)
    }

    pub(crate) fn pins(&self) -> Option<&IndexSet> {
        self.entries(PINNED).filter(|pins| !pins.is_empty())
    }

    pub(crate) fn set(&mut self, indices: &[LogIndex], label: &str) {
        let mut marks = self.marks().to_vec();
        match self.find(label) {
            Ok(at) => marks[at].entries = marks[at].entries.union(indices),
            Err(at) => {
                let entries = IndexSet::default().union(indices);
                marks.insert(at, Mark { label: label.into(), entries });
            }
        }
        self.0 = Some(Arc::new(marks));
    }

    pub(crate) fn unset(&mut self, indices: &[LogIndex], label: &str) {
        let Ok(at) = self.find(label) else { return };
        let mut marks = self.marks().to_vec();
        marks[at].entries = marks[at].entries.without(indices);
        if marks[at].entries.is_empty() {
            marks.remove(at);
        }
        self.0 = (!marks.is_empty()).then(|| Arc::new(marks));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.marks().is_empty()
    }

    /// What was set and unset since `earlier`, by label.
    pub(crate) fn changes_since(
        &self,
        earlier: &Marks,
    ) -> Vec<(String, Vec<LogIndex>, Vec<LogIndex>)> {
        let nothing = IndexSet::default();
        let mut labels: Vec<&str> = self.labels().chain(earlier.labels()).collect();
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

    /// Tells two values apart by where they are, so that equal ones need not be compared.
    pub(crate) fn address(&self) -> usize {
        self.0.as_ref().map_or(0, |marks| Arc::as_ptr(marks).addr())
    }

    pub(crate) fn check(&self, log_len: usize) -> Result<(), String> {
        for mark in self.marks() {
            mark.entries.check()?;
            if mark.entries.iter().next_back().is_none_or(|last| last.as_usize() >= log_len) {
                return Err(format!("the mark {:?} stands on no entry of the log", mark.label));
            }
        }
        Ok(())
    }
}
