//! The view of one chain of a session: which log entries are visible after each of its lines. It contains
//! only ids and numbers, no messages.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use recto_core::LogIndex;

use super::compaction::Boundary;

/// No entry.
const NONE: u32 = u32::MAX;

/// A line of the tree, and the state of its chain after it.
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) chain: usize,
    /// The version after the line.
    pub(super) version: u32,
    /// The turn of the model to which the line belongs.
    pub(super) turn: u32,
    pub(super) is_result: bool,
    /// Range of its messages in the log; may be empty.
    logs: (u32, u32),
    /// The last visible entry after the line.
    entry: u32,
    /// Hash of its content.
    pub(super) content_hash: u64,
}

impl Node {
    pub(super) fn logs(&self) -> Range<u32> {
        self.logs.0..self.logs.1
    }

    pub(super) fn with_content_hash(self, content_hash: u64) -> Node {
        Node { content_hash, ..self }
    }

    /// A child of this line that has no messages.
    pub(super) fn without_messages(self) -> Node {
        Node { logs: (0, 0), ..self }
    }
}

/// A visible log entry, linked to the entry before it. Views share prefixes, so the last entry identifies
/// a view, and switching between branches takes constant time.
struct Entry {
    log: u32,
    before: u32,
    /// An entry further back (a skip pointer), so that any entry is reached in logarithmic time.
    jump: u32,
    /// Length of the view that ends with this entry.
    len: u32,
}

/// A chain of lines: its state after the last line.
#[derive(Default)]
pub(super) struct Chain {
    pub(super) version: u32,
    pub(super) turn: u32,
    turns: u32,
    /// `message.id` of the response with which the turn started.
    pub(super) response: Option<String>,
    /// Position in the view after the pieces of that response.
    pub(super) response_end: usize,
    pub(super) boundary: Option<Boundary>,
    /// Log indices of the replacements of an entry, by its original log index.
    pub(super) replaced: HashMap<u32, Vec<u32>>,
    /// Version before a replacement → version after it. Both are the version after the same line.
    later: HashMap<u32, u32>,
    entries: Vec<Entry>,
    /// The last visible entry; see [`tip`](Self::tip).
    tip: Option<u32>,
    /// The newest entry of each log index.
    entry_of: HashMap<u32, u32>,
}

impl Chain {
    /// The node of the last line, whose messages are at `logs`.
    pub(super) fn node(&self, chain: usize, is_result: bool, logs: Range<u32>) -> Node {
        Node {
            chain,
            version: self.version,
            turn: self.turn,
            is_result,
            logs: (logs.start, logs.end),
            entry: self.tip(),
            content_hash: 0,
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

    /// Number of visible entries.
    pub(super) fn len(&self) -> usize {
        self.len_of(self.tip()) as usize
    }

    fn len_of(&self, entry: u32) -> u32 {
        self.entries.get(entry as usize).map_or(0, |entry| entry.len)
    }

    fn jump_of(&self, entry: u32) -> u32 {
        self.entries.get(entry as usize).map_or(NONE, |entry| entry.jump)
    }

    /// Appends a log entry to the view.
    pub(super) fn push(&mut self, log: u32) {
        let before = self.tip();
        // If the last two jumps have the same length, the new jump spans both (a skew-binary list).
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

    /// The visible entry at which the first `len` entries of the view end.
    fn at_len(&self, len: u32) -> u32 {
        let mut at = self.tip();
        while let Some(entry) = self.entries.get(at as usize).filter(|entry| entry.len > len) {
            at = if self.len_of(entry.jump) >= len { entry.jump } else { entry.before };
        }
        at
    }

    /// The log entries of the view from a position on.
    fn entries_from(&self, position: usize) -> Vec<u32> {
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

    /// Inserts log entries at a position of the view.
    pub(super) fn insert(&mut self, position: usize, logs: &[u32]) {
        let rest = self.entries_from(position);
        self.tip = Some(self.at_len(position as u32));
        logs.iter().chain(&rest).for_each(|log| self.push(*log));
    }

    pub(super) fn clear(&mut self) {
        self.tip = None;
    }

    /// Restores the view after a line, or the empty view.
    pub(super) fn rewind(&mut self, to: Option<Node>) {
        self.tip = to.map(|node| node.entry);
        self.turn = to.map_or(0, |node| node.turn);
        self.response = None;
    }

    /// Position of a log entry in the view.
    pub(super) fn position(&self, log: u32) -> Option<usize> {
        let entry = *self.entry_of.get(&log)?;
        let len = self.len_of(entry);
        (len > 0 && self.at_len(len) == entry).then(|| len as usize - 1)
    }

    /// The visible log entries from one line to another, both included. `None` if one of them is not visible.
    pub(super) fn between(&self, head: &Node, tail: &Node) -> Option<Vec<u32>> {
        // A line without messages is after the last entry of its view.
        let end_of = |node: &Node| match node.logs().next_back() {
            Some(log) => self.position(log).map(|position| position + 1),
            None => {
                let len = self.len_of(node.entry);
                (self.at_len(len) == node.entry).then_some(len as usize)
            }
        };
        let start = match head.logs().next() {
            Some(log) => self.position(log),
            None => end_of(head),
        };
        let (start, end) = (start?, end_of(tail)?);
        let mut logs = self.entries_from(start);
        logs.truncate(end.saturating_sub(start));
        Some(logs)
    }

    /// The visible entries in `kept`, and the log indices of all others with their replacements.
    pub(super) fn split(&self, kept: &HashSet<u32>) -> (Vec<u32>, Vec<LogIndex>) {
        let (mut stay, mut go) = (Vec::new(), Vec::new());
        for log in self.entries_from(0) {
            if kept.contains(&log) {
                stay.push(log);
                continue;
            }
            go.push(LogIndex(log));
            go.extend(self.replaced.get(&log).into_iter().flatten().map(|new| LogIndex(*new)));
        }
        (stay, go)
    }

    /// Maps a version to the present one, after a replacement.
    pub(super) fn renumber(&mut self, old: u32) {
        self.later.insert(old, self.version);
    }

    /// True if the version of a line is the present one, apart from replacements.
    pub(super) fn is_present(&mut self, node: &Node) -> bool {
        let mut version = node.version;
        while let Some(&next) = self.later.get(&version) {
            version = next;
        }
        if version != node.version {
            self.later.insert(node.version, version); // shortens the path for the next lookup
        }
        version == self.version
    }
}
