//! The tree of the records of a session.

use std::collections::{HashMap, HashSet};

use recto_core::LogIndex;

/// Maximum number of records that compactions and replacements examine, for each record of the file. The
/// limit keeps the cost of a malicious file linear.
const MAX_EXAMINED_PER_RECORD: usize = 64;

/// The records of a session, each with its parent.
#[derive(Default)]
pub(super) struct RecordTree {
    pub(super) nodes: Vec<Node>,
    ids: HashMap<Box<str>, usize>,
    /// Number of records that were examined so far.
    examined: usize,
}

/// A record in the tree.
pub(super) struct Node {
    pub(super) parent: Option<usize>,
    /// Version at which the view ends with this record.
    pub(super) version: u32,
    pub(super) first_log: u32,
    pub(super) log_count: u32,
    pub(super) is_system: bool,
    pub(super) is_visible: bool,
    /// For a compaction, the first record in front of it that stays visible, if there is one.
    pub(super) compaction: Option<Option<usize>>,
}

impl RecordTree {
    /// The record with this id.
    pub(super) fn find(&self, id: &str) -> Option<usize> {
        self.ids.get(id).copied()
    }

    /// Makes an id the id of a record.
    pub(super) fn set_id(&mut self, id: &str, node: usize) {
        self.ids.insert(id.into(), node);
    }

    /// Version at which the view ends with this record; 0 without a record.
    pub(super) fn version_of(&self, node: Option<usize>) -> u32 {
        node.map_or(0, |node| self.nodes[node].version)
    }

    /// Adds a record, and returns its number.
    pub(super) fn add(
        &mut self,
        parent: Option<usize>,
        version: u32,
        logs: std::ops::Range<usize>,
        is_system: bool,
    ) -> usize {
        self.nodes.push(Node {
            parent,
            version,
            first_log: logs.start as u32,
            log_count: logs.len() as u32,
            is_system,
            is_visible: true,
            compaction: None,
        });
        self.nodes.len() - 1
    }

    /// Counts an examined record. Returns false if there were too many of them.
    pub(super) fn may_examine(&mut self) -> bool {
        self.examined += 1;
        self.examined < self.nodes.len() * MAX_EXAMINED_PER_RECORD + 4096
    }

    /// The visible log entries that a compaction after `parent` hides: those in front of the first kept
    /// record, and earlier compactions behind it.
    pub(super) fn hidden_before(
        &mut self,
        parent: Option<usize>,
        first_kept: Option<usize>,
        keeps_system: bool,
    ) -> Vec<LogIndex> {
        let mut hidden = Vec::new();
        let mut next = parent;
        let mut is_kept = first_kept.is_some_and(|kept| self.is_ancestor(kept, parent));
        let mut last = None;
        while let Some(at) = next
            && self.may_examine()
        {
            let node = &self.nodes[at];
            let is_hidden = !is_kept || node.compaction.is_some();
            if is_hidden && node.is_visible && !(keeps_system && node.is_system) {
                let logs = node.first_log..node.first_log + node.log_count;
                hidden.extend(logs.rev().map(LogIndex));
            }
            if Some(at) == first_kept {
                is_kept = false;
            }
            // In front of a compaction, only what it has kept is visible.
            match node.compaction {
                Some(None) if !keeps_system => break,
                Some(Some(kept)) if last.is_none() => last = Some(kept),
                _ => {}
            }
            if Some(at) == last {
                break;
            }
            next = node.parent;
        }
        hidden.reverse();
        hidden
    }

    /// True if a record is on the path from the root to another one. False if too many were examined.
    pub(super) fn is_ancestor(&mut self, ancestor: usize, of: Option<usize>) -> bool {
        let mut next = of;
        while let Some(at) = next
            && at >= ancestor
            && self.may_examine()
        {
            if at == ancestor {
                return true;
            }
            next = self.nodes[at].parent;
        }
        false
    }

    /// The visible log entries of the records with these ids on the path to `parent`. Marks these records
    /// as hidden.
    pub(super) fn hidden_of(
        &mut self,
        parent: Option<usize>,
        ids: &HashSet<String>,
    ) -> Vec<LogIndex> {
        let mut forgotten: Vec<usize> =
            ids.iter().filter_map(|id| self.ids.get(&**id).copied()).collect();
        forgotten.sort_unstable();
        let mut hidden = Vec::new();
        for at in forgotten {
            if !self.nodes[at].is_visible || !self.is_ancestor(at, parent) {
                continue;
            }
            let node = &mut self.nodes[at];
            node.is_visible = false;
            hidden.extend((node.first_log..node.first_log + node.log_count).map(LogIndex));
        }
        hidden
    }
}
