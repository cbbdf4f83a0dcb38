//! The baseline: a list of messages, with a deep copy for every batch.
//!
//! This is the obvious implementation, and that of the design before Recto: an operation that shapes the list
//! pushes a copy of it and then edits it; a rollback copies a snapshot back. It has no avoidable overhead:
//! strings are cloned and not converted to JSON, tokens are counted once and stored with the message, and
//! scans stop early.

use std::collections::{HashMap, HashSet};

use recto_core::{Message, Role, RoleSet};

#[derive(Clone)]
pub(crate) struct PlainMessage {
    index: u32,
    role: Role,
    id: String,
    content: String,
    calls: Vec<String>,
    results: Vec<String>,
    tokens: u64,
}

impl PlainMessage {
    pub(crate) fn new(index: u32, message: &Message, tokens: u64) -> PlainMessage {
        PlainMessage {
            index,
            role: message.role(),
            id: format!("m{index}"),
            content: message.text().into_owned(),
            calls: message.tool_calls().map(|call| call.id.into()).collect(),
            results: message.tool_result_ids().map(Into::into).collect(),
            tokens,
        }
    }
}

/// An operation that shapes the list.
pub(crate) enum Shape {
    Insert { at: usize, message: PlainMessage },
    Replace { at: usize, message: PlainMessage },
    Delete { index: u32 },
    Restore { message: PlainMessage },
    KeepLast(usize),
    From { boundary: u32 },
    Compress { from: u32, to: u32, summary: PlainMessage },
    Roles(RoleSet),
    Containing(Vec<String>),
    Fit { max_tokens: u64 },
}

pub(crate) struct PlainList {
    pub(crate) messages: Vec<PlainMessage>,
    pub(crate) snapshots: Vec<Vec<PlainMessage>>,
}

impl PlainList {
    pub(crate) fn new(messages: Vec<PlainMessage>) -> PlainList {
        PlainList { messages, snapshots: Vec::new() }
    }

    pub(crate) fn append(&mut self, message: PlainMessage) {
        self.messages.push(message);
    }

    pub(crate) fn shape(&mut self, shape: Shape) {
        self.snapshots.push(self.messages.clone());
        let messages = &mut self.messages;
        match shape {
            Shape::Insert { at, message } => messages.insert(at, message),
            Shape::Replace { at, message } => messages[at] = message,
            Shape::Delete { index } => {
                if let Some(at) = messages.iter().position(|message| message.index == index) {
                    messages.remove(at);
                }
            }
            Shape::Restore { message } => {
                let nearest = messages
                    .iter()
                    .enumerate()
                    .filter(|(_, other)| other.index < message.index)
                    .max_by_key(|(_, other)| other.index);
                let at = nearest.map_or(0, |(at, _)| at + 1);
                messages.insert(at, message);
            }
            Shape::KeepLast(count) => drop(messages.drain(..messages.len() - count)),
            Shape::From { boundary } => messages.retain(|message| message.index >= boundary),
            Shape::Compress { from, to, summary } => {
                let is_old = |message: &PlainMessage| (from..to).contains(&message.index);
                let at = messages.iter().position(is_old).expect("they are visible");
                messages.retain(|message| !is_old(message));
                messages.insert(at, summary);
            }
            Shape::Roles(roles) => messages.retain(|message| roles.contains(message.role)),
            Shape::Containing(words) => {
                messages.retain(|message| words.iter().any(|word| message.content.contains(word)));
            }
            Shape::Fit { max_tokens } => fit(messages, max_tokens),
        }
    }

    /// Restores the newest snapshot and keeps it.
    pub(crate) fn roll_back(&mut self) {
        self.messages = self.snapshots.last().expect("a batch was left").clone();
    }

    /// Reverts the newest shaping operation without a copy. It is not measured.
    pub(crate) fn reset(&mut self) {
        self.messages = self.snapshots.pop().expect("a batch was left");
    }

    pub(crate) fn nth_of(&self, role: Role, nth: usize) -> Option<usize> {
        let of_role = self.messages.iter().enumerate().filter(|(_, message)| message.role == role);
        of_role.map(|(at, _)| at).nth(nth)
    }

    pub(crate) fn newest(&self, roles: RoleSet, count: usize) -> Vec<(u32, usize)> {
        let matching =
            self.messages.iter().enumerate().rev().filter(|(_, m)| roles.contains(m.role));
        matching.take(count).map(|(at, message)| (message.index, at)).collect()
    }

    pub(crate) fn count_of(&self, role: Role) -> usize {
        self.messages.iter().filter(|message| message.role == role).count()
    }

    pub(crate) fn tokens_in(&self, range: std::ops::Range<usize>) -> u64 {
        self.messages[range].iter().map(|message| message.tokens).sum()
    }

    pub(crate) fn position_of(&self, index: u32) -> Option<usize> {
        self.messages.iter().position(|message| message.index == index)
    }

    /// The ids that only the newest snapshot has, and those that only the list has.
    pub(crate) fn changes(&self) -> (Vec<&str>, Vec<&str>) {
        let before = self.snapshots.last().expect("a batch was left");
        let (old, new) = (ids(before), ids(&self.messages));
        (old.difference(&new).copied().collect(), new.difference(&old).copied().collect())
    }
}

fn ids(messages: &[PlainMessage]) -> HashSet<&str> {
    messages.iter().map(|message| &*message.id).collect()
}

/// System messages, and the longest run of the newest others that fits and tears no exchange.
fn fit(messages: &mut Vec<PlainMessage>, max_tokens: u64) {
    let system = messages.iter().filter(|message| message.role.is_system());
    let mut left = max_tokens - system.map(|message| message.tokens).sum::<u64>();
    let mut start = messages.len();
    for (at, message) in messages.iter().enumerate().rev() {
        if !message.role.is_system() {
            let Some(rest) = left.checked_sub(message.tokens) else { break };
            left = rest;
            start = at;
        }
    }
    let mut open: HashMap<&str, usize> = HashMap::new();
    for (at, message) in messages.iter().enumerate() {
        open.extend(message.calls.iter().map(|id| (&**id, at)));
        for id in &message.results {
            let called = open.remove(&**id);
            if called.is_some_and(|called| called < start) && at >= start {
                start = at + 1;
            }
        }
    }
    let mut at = 0;
    messages.retain(|message| {
        at += 1;
        at > start || message.role.is_system()
    });
}
