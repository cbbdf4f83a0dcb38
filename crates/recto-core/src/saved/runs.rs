//! A view as runs of log entries, without a tree, for reading single versions.

use super::{Part, SavedView};
use crate::LogIndex;

/// An ordered list of log entries as runs of consecutive indices: the first index and the length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs(Vec<(u32, u32)>);

impl Runs {
    /// The runs in order: the first index and the length of each.
    pub(crate) fn iter(
        &self,
    ) -> impl DoubleEndedIterator<Item = (LogIndex, u32)> + ExactSizeIterator {
        self.0.iter().map(|&(first, len)| (LogIndex(first), len))
    }

    /// The entries in order.
    pub(crate) fn indices(&self) -> impl Iterator<Item = LogIndex> {
        self.0.iter().flat_map(|&(first, len)| (first..first + len).map(LogIndex))
    }

    /// Number of entries.
    pub(crate) fn entry_count(&self) -> usize {
        self.0.iter().map(|&(_, len)| len as usize).sum()
    }

    /// Number of runs.
    pub(super) fn run_count(&self) -> usize {
        self.0.len()
    }

    /// Adds a run. A run that continues the previous one is joined with it.
    pub(super) fn push(&mut self, first: u32, len: u32) {
        match self.0.last_mut() {
            Some((start, before)) if u64::from(*start) + u64::from(*before) == u64::from(first) => {
                *before += len;
            }
            _ if len == 0 => {}
            _ => self.0.push((first, len)),
        }
    }

    pub(super) fn of(indices: impl Iterator<Item = LogIndex>) -> Runs {
        let mut runs = Runs::default();
        indices.for_each(|index| runs.push(index.0, 1));
        runs
    }

    pub(super) fn as_parts(&self) -> Vec<Part> {
        self.0.iter().map(|&(first, len)| Part::Add(first, len)).collect()
    }

    /// The view that is saved as a change of this one; `None` if a part is not in this view.
    pub(super) fn changed_by(&self, saved: &SavedView) -> Option<Runs> {
        self.made_of(&saved.parts()?)
    }

    /// The view that these parts make from this one; `None` if a part is not in this view.
    pub(super) fn made_of(&self, parts: &[Part]) -> Option<Runs> {
        let mut ends = Vec::with_capacity(self.0.len());
        let mut end = 0_usize;
        ends.extend(self.0.iter().map(|&(_, len)| {
            end += len as usize;
            end
        }));
        let mut changed = Runs::default();
        for part in parts {
            match *part {
                Part::Add(first, len) => {
                    first.checked_add(len)?;
                    changed.push(first, len);
                }
                Part::Keep(start, len) => {
                    if start.checked_add(len)? > end {
                        return None;
                    }
                    let (mut at, mut rest) = (start, len);
                    let mut run = ends.partition_point(|&end| end <= at);
                    while rest > 0 {
                        let (first, run_len) = self.0[run];
                        let into = at - (ends[run] - run_len as usize);
                        let taken = rest.min(run_len as usize - into);
                        changed.push(first + into as u32, taken as u32);
                        at += taken;
                        rest -= taken;
                        run += 1;
                    }
                }
            }
        }
        Some(changed)
    }

    /// Whether all entries are in a log of this length, and none occurs twice.
    pub(super) fn is_valid(&self, log_len: usize) -> bool {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let end = |&(first, len): &(u32, u32)| first as usize + len as usize;
        sorted.is_sorted_by(|a, b| end(a) <= b.0 as usize)
            && sorted.last().is_none_or(|last| end(last) <= log_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_runs_are_cut_at_the_ends_of_runs() {
        let runs = Runs(vec![(0, 4), (10, 3), (20, 1)]);
        let parts = [Part::Keep(2, 4), Part::Add(30, 2), Part::Keep(7, 1), Part::Keep(0, 1)];
        let changed = runs.changed_by(&SavedView::made_of(None, &parts)).unwrap();
        assert_eq!(changed, Runs(vec![(2, 2), (10, 2), (30, 2), (20, 1), (0, 1)]));
        assert_eq!(changed.entry_count(), 8);
        let too_far = SavedView::made_of(None, &[Part::Keep(7, 2)]);
        assert_eq!(runs.changed_by(&too_far), None);
    }
}
