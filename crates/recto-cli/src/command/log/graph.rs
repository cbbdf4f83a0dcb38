//! Versions as a graph: which batch each belongs to, and where batches branch off.
//!
//! Versions come newest first. A lane is a line downwards that waits for an older version of a
//! batch. Where a batch was opened, its lane goes on as that of the batch below it; if there is
//! such a lane already, because versions came back to that batch later, the two meet.

use recto::{Version, VersionInfo};

/// The lanes that are open.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// The batch that each lane waits for, known by the version that opened it.
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
    /// Draws a version; `before` is the version before it, if it is listed.
    pub(super) fn rows(&mut self, info: &VersionInfo, before: Option<&VersionInfo>) -> Rows {
        let batch = info.batch_opened_by;
        let lane = self.lane_of(batch);
        let node = self.draw(|at| (at == lane).then_some('●'));
        let mut below = Vec::new();
        let is_opening = info.version == batch && info.version.0 > 0;
        if let Some(before) = before.filter(|_| is_opening) {
            let parent = before.batch_opened_by;
            let other = self.lanes.iter().position(|waits| *waits == Some(parent));
            self.lanes[lane] = match other {
                None => Some(parent),
                Some(other) => {
                    below.push(self.join(lane, other));
                    None
                }
            };
            while self.lanes.last() == Some(&None) {
                self.lanes.pop();
            }
        }
        Rows { node, below }
    }

    /// The lane that waits for a batch, or a new one: then nothing newer leads here.
    fn lane_of(&mut self, batch: Version) -> usize {
        if let Some(lane) = self.lanes.iter().position(|waits| *waits == Some(batch)) {
            return lane;
        }
        let free = self.lanes.iter().position(Option::is_none);
        let lane = free.unwrap_or_else(|| {
            self.lanes.push(None);
            self.lanes.len() - 1
        });
        self.lanes[lane] = Some(batch);
        lane
    }

    fn draw(&self, special: impl Fn(usize) -> Option<char>) -> String {
        let lanes = self.lanes.iter().enumerate();
        let signs = lanes.map(|(at, waits)| {
            special(at).unwrap_or(if waits.is_some() { '│' } else { ' ' }).to_string()
        });
        signs.collect::<Vec<_>>().join(" ")
    }

    /// One lane runs into another.
    fn join(&self, from: usize, to: usize) -> String {
        let (left, right) = (from.min(to), from.max(to));
        let mut row = String::new();
        for (at, waits) in self.lanes.iter().enumerate() {
            row.push(match at {
                _ if at == to && to < from => '├',
                _ if at == to => '┤',
                _ if at == from && to < from => '╯',
                _ if at == from => '╰',
                _ if (left..right).contains(&at) => {
                    if waits.is_some() {
                        '┼'
                    } else {
                        '─'
                    }
                }
                _ if waits.is_some() => '│',
                _ => ' ',
            });
            row.push(if (left..right).contains(&at) { '─' } else { ' ' });
        }
        row.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use recto::{BatchIndex, OperationKind};

    use super::*;

    /// Draws versions that are given by the version that opened their batch, oldest first.
    fn drawn(opened_by: &[u32]) -> String {
        let infos: Vec<VersionInfo> = opened_by
            .iter()
            .enumerate()
            .map(|(version, &opened_by)| VersionInfo {
                version: Version(version as u32),
                operation: OperationKind::Append,
                description: String::new(),
                timestamp: 0,
                messages: 0,
                tokens: 0,
                batch: BatchIndex(0),
                batch_opened_by: Version(opened_by),
                log: 0,
            })
            .rev()
            .collect();
        let mut graph = Graph::default();
        let mut lines = Vec::new();
        for (number, info) in infos.iter().enumerate() {
            let rows = graph.rows(info, infos.get(number + 1));
            lines.push(format!("{} {}", rows.node, info.version));
            lines.extend(rows.below);
        }
        lines.join("\n")
    }

    #[test]
    fn batches_that_nobody_came_back_from_are_one_line() {
        assert_eq!(drawn(&[0, 0, 2, 3, 3]), "● 4\n● 3\n● 2\n● 1\n● 0");
    }

    #[test]
    fn a_batch_that_was_rolled_back_is_a_branch() {
        assert_eq!(drawn(&[0, 0, 2, 2, 0, 0]), "● 5\n● 4\n│ ● 3\n│ ● 2\n├─╯\n● 1\n● 0");
    }

    #[test]
    fn branches_lie_beside_each_other() {
        // Batch 1 is opened, and on it batch 2, which is left for 1, which is left for 0.
        let expected = "● 6\n│ ● 5\n│ │ ● 4\n│ │ ● 3\n│ ├─╯\n│ ● 2\n├─╯\n● 1\n● 0";
        assert_eq!(drawn(&[0, 0, 2, 3, 3, 2, 0]), expected);
    }

    #[test]
    fn a_list_that_begins_in_the_middle_has_open_lanes() {
        let mut graph = Graph::default();
        let info = VersionInfo {
            version: Version(9),
            operation: OperationKind::Append,
            description: String::new(),
            timestamp: 0,
            messages: 0,
            tokens: 0,
            batch: BatchIndex(1),
            batch_opened_by: Version(9),
            log: 0,
        };
        assert_eq!(graph.rows(&info, None), Rows { node: "●".into(), below: Vec::new() });
    }
}
