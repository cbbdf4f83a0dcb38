//! Draws the graph of versions: the parent of each version, and the branches.
//!
//! Versions come newest first. A lane is a vertical line that leads down to the parent of a version. When
//! two lanes lead to the same parent, the right one joins the left one.

use recto::Version;

/// The open lanes.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// The version that each lane leads to.
    lanes: Vec<Option<Version>>,
}

/// The drawing of a version.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rows {
    /// The text before the version.
    pub(super) node: String,
    /// Lines below it.
    pub(super) below: Vec<String>,
}

impl Graph {
    /// Draws a version with its parent.
    pub(super) fn rows(&mut self, version: Version, parent: Option<Version>) -> Rows {
        let lane = self.lane_of(version);
        let node = self.draw(lane);
        let other = self.lanes.iter().position(|target| parent.is_some() && *target == parent);
        let mut below = Vec::new();
        self.lanes[lane] = parent;
        if let Some(other) = other {
            let (left, right) = (lane.min(other), lane.max(other));
            below.push(self.join(left, right));
            self.lanes[right] = None;
        }
        while self.lanes.last() == Some(&None) {
            self.lanes.pop();
        }
        Rows { node, below }
    }

    /// The lane that leads to a version, or a new lane if it has no child.
    fn lane_of(&mut self, version: Version) -> usize {
        if let Some(lane) = self.lanes.iter().position(|target| *target == Some(version)) {
            return lane;
        }
        let free = self.lanes.iter().position(Option::is_none);
        let lane = free.unwrap_or_else(|| {
            self.lanes.push(None);
            self.lanes.len() - 1
        });
        self.lanes[lane] = Some(version);
        lane
    }

    fn draw(&self, node: usize) -> String {
        let signs = self.lanes.iter().enumerate().map(|(at, target)| match target {
            _ if at == node => "●",
            Some(_) => "│",
            None => " ",
        });
        signs.collect::<Vec<_>>().join(" ")
    }

    /// The right lane joins the left one.
    fn join(&self, left: usize, right: usize) -> String {
        let mut row = String::new();
        for (at, target) in self.lanes.iter().enumerate() {
            let is_between = (left..right).contains(&at);
            row.push(match (at, target) {
                _ if at == left => '├',
                _ if at == right => '╯',
                (_, Some(_)) if is_between => '┼',
                (_, None) if is_between => '─',
                (_, Some(_)) => '│',
                (_, None) => ' ',
            });
            row.push(if is_between { '─' } else { ' ' });
        }
        row.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws version 0 and the versions with these parents.
    fn drawn(parents: &[u32]) -> String {
        let mut graph = Graph::default();
        let mut lines = Vec::new();
        let parents = std::iter::once(None).chain(parents.iter().map(|parent| Some(*parent)));
        let versions: Vec<(u32, Option<u32>)> = (0..).zip(parents).collect();
        for (version, parent) in versions.into_iter().rev() {
            let rows = graph.rows(Version(version), parent.map(Version));
            lines.push(format!("{} {version}", rows.node));
            lines.extend(rows.below);
        }
        assert!(graph.lanes.is_empty(), "{graph:?}");
        lines.join("\n")
    }

    #[test]
    fn versions_without_branches_are_one_line() {
        assert_eq!(drawn(&[0, 1, 2]), "● 3\n● 2\n● 1\n● 0");
    }

    #[test]
    fn abandoned_versions_are_a_branch() {
        assert_eq!(drawn(&[0, 1, 2, 1, 4]), "● 5\n● 4\n│ ● 3\n│ ● 2\n├─╯\n● 1\n● 0");
    }

    #[test]
    fn branches_lie_beside_each_other() {
        // Version 5 returns to 2, version 6 returns to 1.
        let expected = "● 6\n│ ● 5\n│ │ ● 4\n│ │ ● 3\n│ ├─╯\n│ ● 2\n├─╯\n● 1\n● 0";
        assert_eq!(drawn(&[0, 1, 2, 3, 2, 1]), expected);
    }

    #[test]
    fn a_redone_version_continues_at_the_left() {
        assert_eq!(drawn(&[0, 1, 1, 2]), "● 4\n│ ● 3\n● │ 2\n├─╯\n● 1\n● 0");
    }

    #[test]
    fn a_lane_crosses_those_between() {
        let expected = "● 6\n│ ● 5\n│ │ ● 4\n├─┼─╯\n│ ● 3\n│ ● 2\n├─╯\n● 1\n● 0";
        assert_eq!(drawn(&[0, 1, 2, 1, 3, 1]), expected);
    }

    #[test]
    fn a_list_that_ends_early_has_open_lanes() {
        let mut graph = Graph::default();
        let rows = graph.rows(Version(9), Some(Version(4)));
        assert_eq!(rows, Rows { node: "●".into(), below: Vec::new() });
        assert_eq!(graph.rows(Version(8), Some(Version(7))).node, "│ ●");
    }
}
