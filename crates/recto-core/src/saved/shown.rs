//! The log entries that a set of versions shows or marks.
//!
//! A version is saved as a change of another version. If that version was added before, only the change is
//! read. The cost of adding many versions is therefore their stored size, not versions × length.

use std::collections::{BTreeMap, HashSet};

use super::{Part, SavedVersion, SavedVersions};
use crate::{Error, LogIndex, Version};

/// Log entries that versions show or mark.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// Ranges that neither overlap nor touch: the end of each by its start.
    ranges: BTreeMap<u32, u32>,
    /// All versions below this one have been added.
    all_below: Version,
    /// The versions whose views have been added.
    views: HashSet<Version>,
    /// The versions whose marks have been added.
    marks: HashSet<Version>,
}

impl Shown {
    /// Adds the entries that a version shows or marks. [`Error::NotLoaded`] names a version that
    /// `versions` lacks.
    pub fn add(&mut self, versions: &SavedVersions, version: Version) -> Result<(), Error> {
        let saved = versions.saved(version)?;
        self.add_view(versions, saved, version)?;
        self.add_marks(versions, saved, version)
    }

    /// Continues with another conversation, such as a fork. It has the same versions below `all_below`, and
    /// all of those have been added.
    pub fn branch(&mut self, all_below: Version) {
        self.all_below = all_below;
        self.views.clear();
        self.marks.clear();
    }

    /// Whether an added version shows or marks an entry.
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

    fn add_marks(
        &mut self,
        versions: &SavedVersions,
        saved: &SavedVersion,
        version: Version,
    ) -> Result<(), Error> {
        if let Some(marks) = &saved.marks {
            if marks.of.is_none_or(|of| of < self.all_below || self.marks.contains(&of)) {
                let set = marks.changes.iter().flat_map(|change| &change.set);
                set.for_each(|index| self.insert(index.0, 1));
            } else {
                let (marks, ..) = versions.marks(saved, version)?;
                let marked = marks.labels().flat_map(|label| marks.with(label));
                marked.for_each(|index| self.insert(index.0, 1));
            }
        }
        let same = saved.marks.as_ref().filter(|marks| marks.changes.is_empty());
        self.marks.insert(same.and_then(|marks| marks.of).unwrap_or(version));
        Ok(())
    }

    fn insert(&mut self, first: u32, len: u32) {
        let (mut start, mut end) = (first, first.saturating_add(len));
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
        if start < end {
            self.ranges.insert(start, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_joined() {
        let mut shown = Shown::default();
        for (first, len) in [(10, 5), (0, 3), (20, 1), (3, 2), (8, 2), (30, 0), (12, 9), (2, 1)] {
            shown.insert(first, len);
        }
        assert_eq!(shown.ranges, BTreeMap::from([(0, 5), (8, 21)]));
        let inside: Vec<u32> = (0..40).filter(|&n| shown.contains(LogIndex(n))).collect();
        assert!(inside.into_iter().eq((0..5).chain(8..21)));
    }
}
