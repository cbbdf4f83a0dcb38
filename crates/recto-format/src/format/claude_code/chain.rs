//! One chain of a session as the model sees it: which log entries are visible, and how they were at
//! every line before. Ids and numbers only, no messages.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use recto_core::LogIndex;

use super::compaction::Boundary;

/// No entry.
const NONE: u32 = u32::MAX;

/// A line of the tree.
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) chain: usize,
    /// The version right after it.
    pub(super) version: u32,
    /// The turn of the model that it belongs to.
    pub(super) turn: u32,
    pub(super) is_result: bool,
    /// Where its messages start and end in the log; it may have none.
    logs: (u32, u32),
    /// The last visible entry right after it.
    entry: u32,
    /// What it says, as a hash.
    pub(super) said: u64,
}

impl Node {
    pub(super) fn logs(&self) -> Range<u32> {
        self.logs.0..self.logs.1
    }

    /// With what it says, as a hash.
    pub(super) fn saying(self, said: u64) -> Node {
        Node { said, ..self }
    }

    /// A line without messages that hangs on this one.
    pub(super) fn aside(self) -> Node {
        Node { logs: (0, 0), ..self }
    }
}

/// A visible log entry, and the one in front of it. Views share their fronts, so that a view is known
/// by its last entry, and going from one branch to another costs nothing.
struct Entry {
    log: u32,
    before: u32,
    /// An entry further in front: the way to any of them is short.
    jump: u32,
    /// How many entries the view has up to this one.
    len: u32,
}

/// A chain of lines, as it is after the last one.
#[derive(Default)]
pub(super) struct Chain {
    pub(super) version: u32,
    pub(super) turn: u32,
    turns: u32,
    /// The answer that the turn started with, by its `message.id`.
    pub(super) response: Option<String>,
    /// Where the pieces of that answer end in the view.
    pub(super) response_end: usize,
    pub(super) boundary: Option<Boundary>,
    /// What took the place of entries, each counted under the first.
    pub(super) replaced: HashMap<u32, Vec<u32>>,
    /// Versions that are another by now, since a replacement followed them.
    later: HashMap<u32, u32>,
    entries: Vec<Entry>,
    /// The last visible entry, and behind it all others; see [`tip`](Self::tip).
    tip: Option<u32>,
    /// The newest entry of each log index.
    entry_of: HashMap<u32, u32>,
}

impl Chain {
    /// The node of the line that was placed last, with its `logs`.
    pub(super) fn node(&self, chain: usize, is_result: bool, logs: Range<u32>) -> Node {
        Node {
            chain,
            version: self.version,
            turn: self.turn,
            is_result,
            logs: (logs.start, logs.end),
            entry: self.tip(),
            said: 0,
        }
    }

    pub(super) fn start_turn(&mut self, response: Option<String>) {
        self.turns += 1;
        self.turn = self.turns;
        self.response = response;
    }

    /// The last visible entry.
    fn tip(&self) -> u32 {
        self.tip.unwrap_or(NONE)
    }

    /// How many entries are visible.
    pub(super) fn len(&self) -> usize {
        self.len_of(self.tip()) as usize
    }

    fn len_of(&self, entry: u32) -> u32 {
        self.entries.get(entry as usize).map_or(0, |entry| entry.len)
    }

    fn jump_of(&self, entry: u32) -> u32 {
        self.entries.get(entry as usize).map_or(NONE, |entry| entry.jump)
    }

    /// A log entry comes to the end of the view.
    pub(super) fn push(&mut self, log: u32) {
        let before = self.tip();
        // Jumps double where two of the same length meet: from each entry, a few jumps lead anywhere.
        let near = self.jump_of(before);
        let far = self.jump_of(near);
        let is_even =
            self.len_of(before) - self.len_of(near) == self.len_of(near) - self.len_of(far);
        let jump = if is_even && before != NONE { far } else { before };
        let entry = self.entries.len() as u32;
        self.entries.push(Entry { log, before, jump, len: self.len_of(before) + 1 });
        self.entry_of.insert(log, entry);
        self.tip = Some(entry);
    }

    /// The visible entry at which the view has this length.
    fn at_len(&self, len: u32) -> u32 {
        let mut at = self.tip();
        while let Some(entry) = self.entries.get(at as usize).filter(|entry| entry.len > len) {
            at = if self.len_of(entry.jump) >= len { entry.jump } else { entry.before };
        }
        at
    }

    /// The log entries behind a place in the view.
    fn behind(&self, position: usize) -> Vec<u32> {
        let mut logs = Vec::new();
        let mut at = self.tip();
        while let Some(entry) =
            self.entries.get(at as usize).filter(|it| it.len as usize > position)
        {
            logs.push(entry.log);
            at = entry.before;
        }
        logs.reverse();
        logs
    }

    /// Log entries come to a place in the view.
    pub(super) fn insert(&mut self, position: usize, logs: &[u32]) {
        let behind = self.behind(position);
        self.tip = Some(self.at_len(position as u32));
        logs.iter().chain(&behind).for_each(|log| self.push(*log));
    }

    pub(super) fn clear(&mut self) {
        self.tip = None;
    }

    /// The view is again as it was at a line, or empty.
    pub(super) fn go_back(&mut self, to: Option<Node>) {
        self.tip = to.map(|node| node.entry);
        self.turn = to.map_or(0, |node| node.turn);
        self.response = None;
    }

    /// Where a log entry stands in the view.
    pub(super) fn position(&self, log: u32) -> Option<usize> {
        let entry = *self.entry_of.get(&log)?;
        let len = self.len_of(entry);
        (len > 0 && self.at_len(len) == entry).then(|| len as usize - 1)
    }

    /// The visible log entries from one line to another, both included.
    pub(super) fn between(&self, head: &Node, tail: &Node) -> Option<Vec<u32>> {
        // A line without messages stands behind the entry that was the last one then.
        let behind = |node: &Node| match node.logs().next_back() {
            Some(log) => self.position(log).map(|position| position + 1),
            None => {
                let len = self.len_of(node.entry);
                (self.at_len(len) == node.entry).then_some(len as usize)
            }
        };
        let start = match head.logs().next() {
            Some(log) => self.position(log),
            None => behind(head),
        };
        let (start, end) = (start?, behind(tail)?);
        let mut logs = self.behind(start);
        logs.truncate(end.saturating_sub(start));
        Some(logs)
    }

    /// The visible entries that are among `kept`, and the log indices of all others with what took
    /// their place.
    pub(super) fn split(&self, kept: &HashSet<u32>) -> (Vec<u32>, Vec<LogIndex>) {
        let (mut stay, mut go) = (Vec::new(), Vec::new());
        for log in self.behind(0) {
            if kept.contains(&log) {
                stay.push(log);
                continue;
            }
            go.push(LogIndex(log));
            go.extend(self.replaced.get(&log).into_iter().flatten().map(|new| LogIndex(*new)));
        }
        (stay, go)
    }

    /// The lines of a version belong to the present one: nothing but a replacement came between.
    pub(super) fn renumber(&mut self, old: u32) {
        self.later.insert(old, self.version);
    }

    /// Whether a line's version is the present one, replacements aside.
    pub(super) fn is_present(&mut self, node: &Node) -> bool {
        let mut version = node.version;
        while let Some(&next) = self.later.get(&version) {
            version = next;
        }
        if version != node.version {
            self.later.insert(node.version, version); // the next one need not go all the way
        }
        version == self.version
    }
}
