//! Versions as a graph: which version each goes on from, and where the way parts.
//!
//! Versions come newest first. A lane is a line downwards that waits for a version. Where two lanes wait
//! for the same one, the right one runs into the left.

use recto::Version;

/// The lanes that are open.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// The version that each lane waits for.
    lanes: Vec<Option<Version>>,
}

/// How a version is drawn.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rows {
    /// In front of the version.
    pub(super) node: String,
    /// Lines below it.
    pub(super) below: Vec<String>,
}

impl Graph {
    /// Draws a version that goes on from another.
    pub(super) fn rows(&mut self, version: Version, parent: Option<Version>) -> Rows {
        let lane = self.lane_of(version);
        let node = self.draw(lane);
        let other = self.lanes.iter().position(|waits| parent.is_some() && *waits == parent);
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

    /// The lane that waits for a version, or a new one: then nothing newer leads here.
    fn lane_of(&mut self, version: Version) -> usize {
        if let Some(lane) = self.lanes.iter().position(|waits| *waits == Some(version)) {
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
        let signs = self.lanes.iter().enumerate().map(|(at, waits)| match waits {
            _ if at == node => "●",
            Some(_) => "│",
            None => " ",
        });
        signs.collect::<Vec<_>>().join(" ")
    }

    /// One lane runs into another.
    fn join(&self, left: usize, right: usize) -> String {
        let mut row = String::new();
        for (at, waits) in self.lanes.iter().enumerate() {
            let is_between = (left..right).contains(&at);
            row.push(match (at, waits) {
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

    /// Draws versions from 1 on, each given by the one that it goes on from, on version 0.
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
    fn versions_that_nobody_went_back_from_are_one_line() {
        assert_eq!(drawn(&[0, 1, 2]), "● 3\n● 2\n● 1\n● 0");
    }

    #[test]
    fn what_was_left_is_a_branch() {
        assert_eq!(drawn(&[0, 1, 2, 1, 4]), "● 5\n● 4\n│ ● 3\n│ ● 2\n├─╯\n● 1\n● 0");
    }

    #[test]
    fn branches_lie_beside_each_other() {
        // 4 is left for 2, which is left for 1.
        let expected = "● 6\n│ ● 5\n│ │ ● 4\n│ │ ● 3\n│ ├─╯\n│ ● 2\n├─╯\n● 1\n● 0";
        assert_eq!(drawn(&[0, 1, 2, 3, 2, 1]), expected);
    }

    #[test]
    fn what_was_taken_back_and_put_back_goes_on_at_the_left() {
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
