//! The log entries that a set of versions shows.
//!
//! A version is saved as a change of another version. If that version was added before, only the change is
//! read. The cost of adding many versions is therefore their stored size, not versions × length.

use std::collections::{BTreeMap, HashSet};

use super::{Part, SavedVersion, SavedVersions};
use crate::{Error, LogIndex, Version};

/// The log entries of one conversation that at least one of the added versions shows. Versions of its forks
/// can be added too.
#[derive(Clone, Debug, Default)]
pub struct ShownEntries {
    /// Ranges that neither overlap nor touch: the end of each by its start.
    ranges: BTreeMap<u32, u32>,
    /// All versions below this one have been added.
    all_below: Version,
    /// The versions whose views have been added.
    views: HashSet<Version>,
    /// Entries from this one on belong to a fork and are ignored. `None`: all entries belong to the
    /// conversation.
    entries_below: Option<u32>,
}

impl ShownEntries {
    /// Adds the entries that a version shows. [`Error::NotLoaded`] names a version that `versions` lacks.
    pub fn add(&mut self, versions: &SavedVersions, version: Version) -> Result<(), Error> {
        self.add_view(versions, versions.saved(version)?, version)
    }

    /// Starts adding versions of a fork. The versions below `all_below` have been added, or show no entry of
    /// the conversation. The fork shares the entries below `entries_below` with the conversation; the indices
    /// of its other entries belong to other messages of the conversation.
    pub fn branch(&mut self, all_below: Version, entries_below: Option<u32>) {
        self.all_below = all_below;
        self.entries_below = entries_below;
        self.views.clear();
    }

    /// Whether an added version shows an entry.
    pub fn contains(&self, index: LogIndex) -> bool {
        let before = self.ranges.range(..=index.0).next_back();
        before.is_some_and(|(_, &end)| index.0 < end)
    }

    fn add_view(
        &mut self,
        versions: &SavedVersions,
        saved: &SavedVersion,
        version: Version,
    ) -> Result<(), Error> {
        let base = saved.view.of;
        if base.is_none_or(|of| of < self.all_below || self.views.contains(&of))
            && let Some(parts) = saved.view.parts()
        {
            for part in parts {
                if let Part::Add(first, len) = part {
                    self.insert(first, len);
                }
            }
        } else {
            let runs = versions.view(&saved.view, version, saved.log_len as usize)?.0;
            runs.iter().for_each(|(first, len)| self.insert(first.0, len));
        }
        // Other versions refer to the version that introduced the view.
        self.views.insert(saved.view.origin().unwrap_or(version));
        Ok(())
    }

    fn insert(&mut self, first: u32, len: u32) {
        let end = first.saturating_add(len);
        let (mut start, mut end) = (first, end.min(self.entries_below.unwrap_or(end)));
        if start >= end {
            return;
        }
        // Ranges that overlap or touch are joined.
        while let Some((&other, &other_end)) = self.ranges.range(..=end).next_back() {
            if other_end < start {
                break;
            }
            if other <= start && end <= other_end {
                return;
            }
            self.ranges.remove(&other);
            (start, end) = (start.min(other), end.max(other_end));
        }
        self.ranges.insert(start, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_joined() {
        let mut shown = ShownEntries::default();
        for (first, len) in [(10, 5), (0, 3), (20, 1), (3, 2), (8, 2), (30, 0), (12, 9), (2, 1)] {
            shown.insert(first, len);
        }
        assert_eq!(shown.ranges, BTreeMap::from([(0, 5), (8, 21)]));
        let inside: Vec<u32> = (0..40).filter(|&n| shown.contains(LogIndex(n))).collect();
        assert!(inside.into_iter().eq((0..5).chain(8..21)));
        shown.branch(Version(0), Some(25));
        for (first, len) in [(21, 2), (24, 9), (25, 1), (40, 1)] {
            shown.insert(first, len);
        }
        assert_eq!(shown.ranges, BTreeMap::from([(0, 5), (8, 23), (24, 25)]));
    }
}
