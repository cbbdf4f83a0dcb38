//! The conversations of a store as plain lists: forks, erase, prune and remove (section 11).
//!
//! Every message has a number that is unique in the store. The log of a conversation is a list of these
//! numbers, and a fork begins with those of the conversation that it was forked from. So "the same message"
//! is a comparison of numbers, however deep the forks are.

use std::collections::{BTreeMap, BTreeSet};

use crate::Model;

/// The conversations of a store, by name.
#[derive(Default)]
pub struct StoreModel {
    conversations: BTreeMap<String, Stored>,
    messages: usize,
    /// The messages that were erased or pruned.
    lost: BTreeSet<usize>,
}

struct Stored {
    model: Model,
    /// The number of the message of each log entry.
    messages: Vec<usize>,
    /// How many entries at the front of its log belong to the conversation that it was forked from.
    inherited: usize,
}

impl Stored {
    /// The messages that a version shows.
    fn shown_at(&self, version: u64) -> impl Iterator<Item = usize> {
        let view = self.model.view_at(version).expect("the version exists");
        view.iter().map(|&index| self.messages[index])
    }
}

/// The versions that a prune keeps, besides the newest one: those that any of the fields selects.
#[derive(Clone, Debug, Default)]
pub struct Keep {
    /// The number of newest versions.
    pub last_versions: Option<u64>,
    /// Versions of this time or later.
    pub since: Option<i64>,
    /// These versions.
    pub versions: Vec<u64>,
}

impl Keep {
    fn keeps(&self, version: u64, model: &Model) -> bool {
        let newest = model.version();
        let timestamp = model.timestamp_at(version).expect("the version exists");
        version == newest
            || self.last_versions.is_some_and(|last| newest - version < last)
            || self.since.is_some_and(|since| timestamp >= since)
            || self.versions.contains(&version)
    }
}

impl StoreModel {
    /// Adds a conversation.
    pub fn create(&mut self, name: &str, model: Model) {
        self.insert(name, model, Vec::new());
    }

    /// The names of the conversations, in order.
    pub fn names(&self) -> Vec<String> {
        self.conversations.keys().cloned().collect()
    }

    /// A conversation.
    pub fn get(&self, name: &str) -> &Model {
        &self.conversations[name].model
    }

    /// Changes a conversation.
    pub fn change<T>(&mut self, name: &str, change: impl FnOnce(&mut Model) -> T) -> T {
        let stored = self.conversations.get_mut(name).expect("it exists");
        let changed = change(&mut stored.model);
        for _ in stored.messages.len()..stored.model.log_len() {
            stored.messages.push(self.messages);
            self.messages += 1;
        }
        changed
    }

    /// "Forking a conversation at any version copies no messages": the fork shows the same messages.
    pub fn fork(&mut self, of: &str, at: u64, name: &str) {
        let stored = &self.conversations[of];
        let fork = stored.model.fork(at).expect("the version exists");
        let shared = stored.messages[..fork.log_len()].to_vec();
        self.insert(name, fork, shared);
    }

    /// Removes a conversation.
    pub fn remove(&mut self, name: &str) {
        self.conversations.remove(name);
    }

    /// "Erase overwrites the body of one message", in every conversation that has it.
    pub fn erase(&mut self, name: &str, index: usize) {
        let message = self.conversations[name].messages[index];
        self.overwrite(message, "[erased]");
    }

    /// Whether the message of a log entry was erased or pruned.
    pub fn is_lost(&self, name: &str, index: usize) -> bool {
        self.lost.contains(&self.conversations[name].messages[index])
    }

    /// "Prune drops the bodies of the conversation's own log entries that no kept version shows, and that no
    /// version of a fork shows." Returns the log indices of what it overwrites.
    pub fn prune(&mut self, name: &str, keep: &Keep) -> Vec<usize> {
        let pruned = &self.conversations[name];
        let mut shown = BTreeSet::new();
        for (other, stored) in &self.conversations {
            for version in 0..=stored.model.version() {
                if other != name || keep.keeps(version, &stored.model) {
                    shown.extend(stored.shown_at(version));
                }
            }
        }
        let own = pruned.inherited..pruned.messages.len();
        let is_dropped = |index: &usize| {
            let message = pruned.messages[*index];
            !shown.contains(&message) && !self.lost.contains(&message)
        };
        let indices: Vec<usize> = own.filter(is_dropped).collect();
        let dropped: Vec<usize> = indices.iter().map(|&index| pruned.messages[index]).collect();
        dropped.into_iter().for_each(|message| self.overwrite(message, "[pruned]"));
        indices
    }

    fn insert(&mut self, name: &str, model: Model, shared: Vec<usize>) {
        let inherited = shared.len();
        let stored = Stored { model, messages: shared, inherited };
        assert!(self.conversations.insert(name.to_owned(), stored).is_none(), "{name} is new");
        self.change(name, |_| {});
    }

    fn overwrite(&mut self, message: usize, placeholder: &str) {
        if !self.lost.insert(message) {
            return;
        }
        for stored in self.conversations.values_mut() {
            if let Some(index) = stored.messages.iter().position(|&other| other == message) {
                stored.model.overwrite(index, placeholder);
            }
        }
    }
}
