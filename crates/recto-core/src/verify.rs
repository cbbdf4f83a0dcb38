//! Tests the invariants of a conversation.

use std::collections::{HashMap, HashSet};

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
        self.check_all_loaded().map_err(|error| Inconsistency(error.to_string()))?;
        self.log.check_nodes().map_err(Inconsistency)?;
        self.history.check().map_err(Inconsistency)?;
        self.verify_versions(Version(0), 0, StateChecker::new(&self.log))
    }

    /// Tests the invariants of the versions and log entries that were added to `base`, an earlier value of
    /// this conversation that was tested before. The cost depends on what was added, not on the whole
    /// conversation.
    pub fn verify_since(&self, base: &Conversation) -> Result<(), Inconsistency> {
        let checker = StateChecker::after(&self.log, base);
        let first = Version(base.history.current_version().0 + 1);
        self.verify_versions(first, base.log.len(), checker)
    }

    /// Tests the versions from `first` on and the log entries from `log_len` on.
    fn verify_versions(
        &self,
        first: Version,
        mut log_len: usize,
        mut checker: StateChecker<'_>,
    ) -> Result<(), Inconsistency> {
        self.log.check_from(log_len).map_err(Inconsistency)?;
        for version in (first.0..=self.history.current_version().0).map(Version) {
            let fault = |what: String| Inconsistency(format!("version {version}: {what}"));
            let record = self.history.get(version).filter(|record| record.has_steps());
            let record = record.ok_or_else(|| fault("it is not loaded".into()))?;
            let len = record.log_len as usize;
            if len < log_len || len > self.log.len() {
                return Err(fault(format!("its log has {len} entries")));
            }
            log_len = len;
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
    /// The nodes of the tested views. `None`: the structure of views is not tested.
    nodes: Option<KnownNodes>,
    /// Tested marks and left batches, by address.
    seen: HashSet<usize>,
    /// The first version to test. Batches that earlier versions opened were tested before.
    first: Version,
    /// A view that was tested before.
    base: View,
    /// The last tested view.
    view: View,
    /// Whether that view has an entry, for the entries in which it may differ from `base`.
    entries: HashMap<LogIndex, bool>,
}

impl<'a> StateChecker<'a> {
    fn new(log: &'a MessageLog) -> StateChecker<'a> {
        StateChecker {
            log,
            nodes: Some(KnownNodes::default()),
            seen: HashSet::new(),
            first: Version(0),
            base: View::default(),
            view: View::default(),
            entries: HashMap::new(),
        }
    }

    /// A checker of versions that follow the newest one of a conversation.
    fn after(log: &'a MessageLog, conversation: &Conversation) -> StateChecker<'a> {
        let state = conversation.state();
        StateChecker {
            // Finding the nodes that were tested before would take as long as testing them.
            nodes: None,
            seen: HashSet::from([state.marks.address()]),
            first: Version(conversation.history.current_version().0 + 1),
            base: state.view.clone(),
            view: state.view.clone(),
            ..StateChecker::new(log)
        }
    }

    fn state(&mut self, state: &State, log_len: usize) -> Result<(), String> {
        if state.marks.needed_log_len() > log_len {
            return Err("it marks entries that were added later".into());
        }
        if self.seen.insert(state.marks.address()) {
            state.marks.check(log_len)?;
        }
        let mut above = &state.path.current;
        while let Some(left) = above.below().filter(|_| above.origin.version >= self.first) {
            if !self.seen.insert(std::sync::Arc::as_ptr(left).addr()) {
                break;
            }
            above = &left.batch;
            if left.log_len > log_len {
                return Err("a batch was left when the log was longer than now".into());
            }
            self.view(&left.view, left.log_len)?;
        }
        self.view(&state.view, log_len)
    }

    fn view(&mut self, view: &View, log_len: usize) -> Result<(), String> {
        if let Some(nodes) = &mut self.nodes {
            view.0.check_except(nodes).map_err(|fault| format!("view: {fault}"))?;
        }
        if !view.is_within(log_len) {
            let late = view.iter().find(|index| index.as_usize() >= log_len);
            let late = late.map_or(String::new(), |index| format!(" {index}"));
            return Err(format!("the view contains entry{late}, which was added later"));
        }
        let before = std::mem::replace(&mut self.view, view.clone());
        let difference = before.0.difference(&view.0);
        for entry in difference.left.iter().flat_map(|block| block.items()) {
            self.entries.insert(entry.index(), false);
        }
        for entry in difference.right.iter().flat_map(|block| block.items()) {
            let index = entry.index();
            let had = self.entries.insert(index, true);
            if had.unwrap_or_else(|| self.base.contains(index)) {
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
