//! A test of everything that always holds.

use std::collections::HashSet;

use crate::history::Jump;
use crate::state::State;
use crate::view::View;
use crate::{Conversation, MessageLog};

/// Something in a conversation does not hold together: a defect of the engine, or of what was
/// loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Inconsistency(String);

impl Conversation {
    /// Tests the log, every version, and everything that the one says of the other. It reads the
    /// whole conversation, so it takes a while for a long one.
    pub fn verify(&self) -> Result<(), Inconsistency> {
        let is_whole = self.history.check_whole();
        let is_whole = is_whole.and_then(|()| self.state().path.check_whole());
        let is_whole = is_whole.and_then(|()| self.log.check_measured());
        is_whole.map_err(|error| Inconsistency(error.to_string()))?;
        self.log.check().map_err(Inconsistency)?;
        self.history.check().map_err(Inconsistency)?;
        let mut seen = HashSet::new();
        let mut log_len = 0;
        for (version, record) in self.history.iter() {
            let fault = |what: String| Inconsistency(format!("version {version}: {what}"));
            let len = record.log_len as usize;
            if len < log_len || len > self.log.len() {
                return Err(fault(format!("its log has {len} entries")));
            }
            log_len = len;
            for other in [record.undo, record.redo].into_iter().filter_map(Jump::target) {
                if other >= version {
                    return Err(fault(format!("it points forward, to version {other}")));
                }
            }
            check_state(self.history.state_of(record), &self.log, len, &mut seen).map_err(fault)?;
        }
        if log_len != self.log.len() {
            let len = self.log.len();
            return Err(Inconsistency(format!("{log_len} of {len} log entries have a version")));
        }
        Ok(())
    }
}

/// `seen` holds the views and live paths that were tested before: most are shared by many versions.
fn check_state(
    state: &State,
    log: &MessageLog,
    log_len: usize,
    seen: &mut HashSet<usize>,
) -> Result<(), String> {
    if state.marks.needed_log_len() > log_len {
        return Err("it marks entries that came later".into());
    }
    if seen.insert(state.marks.address()) {
        state.marks.check(log_len)?;
    }
    check_view(&state.view, log, log_len)?;
    for left in state.path.left_batches() {
        if !seen.insert(std::sync::Arc::as_ptr(left).addr()) {
            break;
        }
        if left.log_len > log_len {
            return Err("a batch was left when the log was longer than now".into());
        }
        check_view(&left.view, log, left.log_len)?;
    }
    Ok(())
}

fn check_view(view: &View, log: &MessageLog, log_len: usize) -> Result<(), String> {
    view.0.check().map_err(|fault| format!("view: {fault}"))?;
    let mut seen = HashSet::with_capacity(view.len());
    for entry in view.0.iter() {
        let index = entry.index();
        if index.as_usize() >= log_len {
            return Err(format!("the view holds entry {index}, which came later"));
        }
        if !seen.insert(index) {
            return Err(format!("the view holds entry {index} twice"));
        }
        if entry != log.placed(index) {
            return Err(format!("the view holds entry {index} with other measures than the log"));
        }
    }
    Ok(())
}
