//! One chain of a session as the model sees it: which log entries are visible, and how they were at
//! every line before. Ids and numbers only, no messages.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use recto_core::LogIndex;

use super::Boundary;
use crate::format::session_line::Before;

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
    /// Where its messages start and end in the log.
    logs: (u32, u32),
    /// The last visible entry right after it.
    entry: u32,
}

impl Node {
    pub(super) fn logs(&self) -> Range<u32> {
        self.logs.0..self.logs.1
    }
}

/// A visible log entry, and the one in front of it. Views share their fronts.
struct Entry {
    log: u32,
    before: u32,
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
    /// Lines that wait for the next message.
    pub(super) before: Before,
    /// What took the place of entries, each counted under the first.
    pub(super) replaced: HashMap<u32, Vec<u32>>,
    /// Versions that are another by now, since a replacement followed them.
    later: HashMap<u32, u32>,
    entries: Vec<Entry>,
    /// The visible entries, by their number in `entries`.
    pub(super) view: Vec<u32>,
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
            entry: self.view.last().copied().unwrap_or(NONE),
        }
    }

    pub(super) fn start_turn(&mut self, response: Option<String>) {
        self.turns += 1;
        self.turn = self.turns;
        self.response = response;
    }

    /// A log entry comes to the end of the view.
    pub(super) fn push(&mut self, log: u32) {
        let before = self.view.last().copied().unwrap_or(NONE);
        let entry = self.entries.len() as u32;
        self.entries.push(Entry { log, before, len: self.view.len() as u32 + 1 });
        self.entry_of.insert(log, entry);
        self.view.push(entry);
    }

    /// Log entries come to a place in the view.
    pub(super) fn insert(&mut self, position: usize, logs: &[u32]) {
        let behind = self.view.split_off(position.min(self.view.len()));
        logs.iter().for_each(|log| self.push(*log));
        for entry in behind {
            let log = self.entries[entry as usize].log;
            self.push(log);
        }
    }

    pub(super) fn clear(&mut self) {
        self.view.clear();
    }

    /// The view is again as it was at a line, or empty.
    pub(super) fn go_back(&mut self, to: Option<Node>) {
        let mut missing = Vec::new();
        let mut entry = to.map_or(NONE, |node| node.entry);
        loop {
            let Some(found) = self.entries.get(entry as usize) else {
                self.view.clear();
                break;
            };
            let len = found.len as usize;
            if self.view.get(len - 1) == Some(&entry) {
                self.view.truncate(len);
                break;
            }
            missing.push(entry);
            entry = found.before;
        }
        self.view.extend(missing.into_iter().rev());
        self.turn = to.map_or(0, |node| node.turn);
        self.response = None;
    }

    /// Where a log entry stands in the view.
    pub(super) fn position(&self, log: u32) -> Option<usize> {
        let entry = *self.entry_of.get(&log)?;
        let position = self.entries.get(entry as usize)?.len as usize - 1;
        (self.view.get(position) == Some(&entry)).then_some(position)
    }

    /// The visible entries that are among `kept`, and the log indices of all others with what took
    /// their place.
    pub(super) fn split(&self, kept: &HashSet<u32>) -> (Vec<u32>, Vec<LogIndex>) {
        let (mut stay, mut go) = (Vec::new(), Vec::new());
        for entry in &self.view {
            let log = self.entries[*entry as usize].log;
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
