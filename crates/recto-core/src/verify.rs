//! Tests the invariants of a conversation.

use std::collections::HashSet;

use sum_tree::KnownNodes;

use crate::number::OptVersion;
use crate::state::State;
use crate::view::View;
use crate::{Conversation, LogIndex, MessageLog, Version};

/// A violated invariant: a defect of the engine, or of loaded data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Inconsistency(String);

impl Conversation {
    /// Tests all invariants of the log, the versions and the relations between them. Reads the whole
    /// conversation.
    pub fn verify(&self) -> Result<(), Inconsistency> {
        self.verify_since(Version(0))
    }

    /// Tests the invariants of the log and of the versions from `first` on. Earlier versions were tested before.
    pub fn verify_since(&self, first: Version) -> Result<(), Inconsistency> {
        self.check_all_loaded().map_err(|error| Inconsistency(error.to_string()))?;
        self.log.check().map_err(Inconsistency)?;
        self.history.check().map_err(Inconsistency)?;
        let mut checker = StateChecker::new(&self.log);
        let mut log_len = 0;
        for (version, record) in self.history.iter() {
            let fault = |what: String| Inconsistency(format!("version {version}: {what}"));
            let len = record.log_len as usize;
            if len < log_len || len > self.log.len() {
                return Err(fault(format!("its log has {len} entries")));
            }
            log_len = len;
            if version < first {
                continue;
            }
            for other in [record.undo, record.redo].into_iter().filter_map(OptVersion::get) {
                if other >= version {
                    return Err(fault(format!(
                        "its undo or redo refers to the later version {other}"
                    )));
                }
            }
            checker.state(self.history.state_of(record), len).map_err(fault)?;
        }
        if log_len != self.log.len() {
            let len = self.log.len();
            return Err(Inconsistency(format!(
                "only {log_len} of {len} log entries belong to a version"
            )));
        }
        Ok(())
    }
}

/// Tests states. Versions share most of their nodes, and each node is tested once.
struct StateChecker<'a> {
    log: &'a MessageLog,
    nodes: KnownNodes,
    /// Tested marks and left batches, by address.
    seen: HashSet<usize>,
    /// The last tested view.
    view: View,
    /// The entries of that view.
    entries: HashSet<LogIndex>,
}

impl<'a> StateChecker<'a> {
    fn new(log: &'a MessageLog) -> StateChecker<'a> {
        let (nodes, seen) = (KnownNodes::default(), HashSet::new());
        StateChecker { log, nodes, seen, view: View::default(), entries: HashSet::new() }
    }

    fn state(&mut self, state: &State, log_len: usize) -> Result<(), String> {
        if state.marks.needed_log_len() > log_len {
            return Err("it marks entries that were added later".into());
        }
        if self.seen.insert(state.marks.address()) {
            state.marks.check(log_len)?;
        }
        for left in state.path.left_batches() {
            if !self.seen.insert(std::sync::Arc::as_ptr(left).addr()) {
                break;
            }
            if left.log_len > log_len {
                return Err("a batch was left when the log was longer than now".into());
            }
            self.view(&left.view, left.log_len)?;
        }
        self.view(&state.view, log_len)
    }

    fn view(&mut self, view: &View, log_len: usize) -> Result<(), String> {
        view.0.check_except(&mut self.nodes).map_err(|fault| format!("view: {fault}"))?;
        if !view.is_within(log_len) {
            let late = view.iter().find(|index| index.as_usize() >= log_len);
            let late = late.map_or(String::new(), |index| format!(" {index}"));
            return Err(format!("the view contains entry{late}, which was added later"));
        }
        let before = std::mem::replace(&mut self.view, view.clone());
        let difference = before.0.difference(&view.0);
        for entry in difference.left.iter().flat_map(|block| block.items()) {
            self.entries.remove(&entry.index());
        }
        for entry in difference.right.iter().flat_map(|block| block.items()) {
            let index = entry.index();
            if !self.entries.insert(index) {
                return Err(format!("the view contains entry {index} twice"));
            }
            if entry != self.log.view_entry(index) {
                let fault = "with other metadata than the log";
                return Err(format!("the view contains entry {index} {fault}"));
            }
        }
        Ok(())
    }
}
