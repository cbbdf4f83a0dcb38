//! The conversations of a store as plain lists: forks, erase, prune, remove, backup and restore
//! (section 11).
//!
//! Every conversation, version and message has a number that is unique in the store and in its backups. The
//! log of a conversation is a list of numbers of messages, and a fork begins with those of the conversation
//! that it was forked from. So "the same message" is a comparison of numbers, however deep the forks are.
//!
//! A backup is a clone of the model.

use std::collections::{BTreeMap, BTreeSet};

use crate::Model;
use crate::model::LogEntry;

/// The conversations of a store, by name.
#[derive(Clone, Default)]
pub struct StoreModel {
    conversations: BTreeMap<String, Stored>,
    /// The number of numbers that were given to conversations, versions and messages.
    numbers: usize,
    /// The conversation to which a message belongs, and its log entry: the message or its placeholder.
    messages: BTreeMap<usize, (usize, LogEntry)>,
    /// The messages that were erased or pruned.
    lost: BTreeSet<usize>,
}

#[derive(Clone)]
struct Stored {
    id: usize,
    /// The conversations that have its first versions, the oldest first, and the number of versions up to
    /// the end of each.
    ancestors: Vec<(usize, u64)>,
    model: Model,
    /// The number of each version.
    versions: Vec<usize>,
    /// The number of the message of each log entry.
    messages: Vec<usize>,
    /// How many entries at the front of its log belong to the conversation that it was forked from.
    inherited: usize,
}

impl Stored {
    /// Whether this is the same conversation, with the version of the other or later ones.
    fn has(&self, other: &Stored) -> bool {
        let newest = other.versions.len() - 1;
        self.id == other.id && self.versions.get(newest) == other.versions.last()
    }

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
    /// The number of newest batches of the live path: the versions since the first of them was opened.
    pub last_batches: Option<usize>,
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
            || self.last_batches.is_some_and(|last| {
                let first = (model.batch() + 1).saturating_sub(last.max(1));
                version >= model.opened_by(first).expect("it is on the live path")
            })
            || self.since.is_some_and(|since| timestamp >= since)
            || self.versions.contains(&version)
    }
}

impl StoreModel {
    /// Adds a conversation.
    pub fn create(&mut self, name: &str, model: Model) {
        let id = self.number();
        let (ancestors, versions, messages) = Default::default();
        self.insert(name, Stored { id, ancestors, model, versions, messages, inherited: 0 });
    }

    fn number(&mut self) -> usize {
        self.numbers += 1;
        self.numbers
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
        for index in stored.messages.len()..stored.model.log_len() {
            self.numbers += 1;
            stored.messages.push(self.numbers);
            let entry = (stored.id, stored.model.log_entry(index));
            self.messages.insert(self.numbers, entry);
        }
        for _ in stored.versions.len()..=stored.model.version() as usize {
            self.numbers += 1;
            stored.versions.push(self.numbers);
        }
        changed
    }

    /// "Forking a conversation at any version copies no messages": the fork shows the same messages.
    pub fn fork(&mut self, of: &str, at: u64, name: &str) {
        let stored = &self.conversations[of];
        let model = stored.model.fork(at).expect("the version exists");
        let messages = stored.messages[..model.log_len()].to_vec();
        let versions = stored.versions[..=at as usize].to_vec();
        // A version of an ancestor is forked from that ancestor.
        let mut ancestors = stored.ancestors.clone();
        ancestors.push((stored.id, at + 1));
        let owner = ancestors.iter().position(|(_, versions)| *versions > at);
        ancestors.truncate(owner.expect("the version exists") + 1);
        let (inherited, id) = (messages.len(), self.number());
        self.insert(name, Stored { id, ancestors, model, versions, messages, inherited });
    }

    /// "Remove deletes the messages of a conversation, except those that versions of its forks show." If no
    /// fork of it is left, the same holds for the removed conversation above it, and so on.
    pub fn remove(&mut self, name: &str) {
        let removed = &self.conversations[name];
        let others = || self.conversations.iter().filter(|(other, _)| *other != name);
        // The conversation, or the nearest one above it that still has a name or a fork.
        let above = removed.ancestors.iter().rev().map(|(id, _)| *id);
        let stays = [removed.id].into_iter().chain(above).find(|id| {
            let has = |stored: &Stored| {
                stored.id == *id || stored.ancestors.iter().any(|(above, _)| above == id)
            };
            others().any(|(_, stored)| has(stored))
        });
        let has_name = |id: usize| others().any(|(_, stored)| stored.id == id);
        if let Some(owner) = stays.filter(|id| !has_name(*id)) {
            let shown: BTreeSet<usize> = others()
                .flat_map(|(_, stored)| {
                    (0..=stored.model.version()).flat_map(|version| stored.shown_at(version))
                })
                .collect();
            let all = self.conversations.values().flat_map(|stored| &stored.messages);
            let hidden: BTreeSet<usize> = all
                .filter(|message| self.messages[message].0 == owner && !shown.contains(message))
                .copied()
                .collect();
            hidden.into_iter().for_each(|message| self.overwrite(message, "[pruned]"));
        }
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

    /// "A restoration of a backup copies each conversation completely or not at all": those that the store
    /// has already are skipped. Nothing is copied if another conversation has the name of one of them, or if
    /// the store has one of them in another state. Returns how many were copied and how many skipped.
    pub fn restore(&mut self, backup: &StoreModel) -> Result<[usize; 2], &'static str> {
        let mut new = Vec::new();
        for (name, stored) in &backup.conversations {
            match self.conversations.get(name) {
                Some(present) if present.has(stored) => {}
                None if !self.has_rows(stored.id) => new.push((name, stored)),
                _ => return Err("conversation_exists"),
            }
        }
        let present: BTreeSet<usize> = self
            .conversations
            .values()
            .flat_map(|stored| stored.ancestors.iter().map(|(id, _)| *id).chain([stored.id]))
            .collect();
        let restored = [new.len(), backup.conversations.len() - new.len()];
        for (name, stored) in new {
            let mut stored = stored.clone();
            for (index, message) in stored.messages.iter().enumerate() {
                let (owner, entry) = &backup.messages[message];
                // Messages of an ancestor that the store has are as they are there.
                if present.contains(owner) {
                    stored.model.put_log_entry(index, &self.messages[message].1);
                    continue;
                }
                self.messages.insert(*message, (*owner, entry.clone()));
                match backup.lost.contains(message) {
                    true => self.lost.insert(*message),
                    false => self.lost.remove(message),
                };
            }
            self.insert(name, stored);
        }
        Ok(restored)
    }

    /// A copy with some of the conversations.
    pub fn only(&self, is_kept: impl Fn(&str) -> bool) -> StoreModel {
        let mut copy = self.clone();
        copy.conversations.retain(|name, _| is_kept(name));
        copy
    }

    /// Whether the store has a conversation: with a name, or only for its forks.
    fn has_rows(&self, id: usize) -> bool {
        let mut all = self.conversations.values();
        all.any(|other| other.id == id || other.ancestors.iter().any(|(above, _)| *above == id))
    }

    fn insert(&mut self, name: &str, stored: Stored) {
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
                let entry = (self.messages[&message].0, stored.model.log_entry(index));
                self.messages.insert(message, entry);
            }
        }
    }
}
