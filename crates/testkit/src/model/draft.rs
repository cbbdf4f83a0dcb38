//! A copy of the newest state that the operations of one request edit in turn.
//! If one of them refuses, the draft is dropped.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::message::{Entry, Message};
use super::operation::{Described, Operation};
use super::refusal::Refusal;
use super::settings::Settings;
use super::state::{Batch, State, Version};

/// The state and the log while a request runs.
pub(super) struct Draft<'a> {
    pub(super) settings: &'a Settings,
    pub(super) history: &'a [Arc<Version>],
    pub(super) log: Vec<Arc<Entry>>,
    pub(super) state: State,
    pub(super) now: i64,
    /// Length of the log before the present operation.
    pub(super) log_len_before_operation: usize,
    /// The description of the present operation.
    pub(super) description: Option<String>,
    /// Indices that the operations ignored.
    pub(super) ignored_indices: BTreeSet<usize>,
}

/// Whether an operation had an effect.
///
/// Exactly three operations can do nothing: a FIT whose view fits already, and
/// `delete` and `compress` of the modification form with empty `indices`.
/// Setting the same tools, which is not an operation, changes nothing either.
/// Every other accepted operation makes a version, even if the state after it
/// equals the state before it: ROLLBACK and BATCH_END to the current batch,
/// ROLLBACK to the current version, MARK of a marked entry, UNMARK of an
/// unmarked one, and shaping that does not change the view, which opens a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Applied,
    Nothing,
}

/// The result of the operations of an accepted request.
pub(super) struct Finished {
    pub(super) state: State,
    pub(super) log: Vec<Arc<Entry>>,
    pub(super) ignored_indices: BTreeSet<usize>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(
        settings: &'a Settings,
        history: &'a [Arc<Version>],
        log: Vec<Arc<Entry>>,
        state: State,
        now: i64,
    ) -> Draft<'a> {
        let log_len_before_operation = log.len();
        Draft {
            settings,
            history,
            log,
            state,
            now,
            log_len_before_operation,
            description: None,
            ignored_indices: BTreeSet::new(),
        }
    }

    pub(super) fn finish(self) -> Finished {
        Finished { state: self.state, log: self.log, ignored_indices: self.ignored_indices }
    }

    /// Performs one operation on the result of the previous ones.
    pub(super) fn run(&mut self, step: &Described) -> Result<Effect, Refusal> {
        self.log_len_before_operation = self.log.len();
        self.description = step.description.clone();
        match &step.operation {
            Operation::Append { messages, ignored_indices } => {
                self.ignored_indices.extend(ignored_indices);
                self.append(messages);
            }
            Operation::Insert { position, messages } => self.insert(*position, messages)?,
            Operation::Replace { position, message } => self.replace(*position, message)?,
            Operation::ReplaceEntries { indices, messages } => {
                self.replace_entries(indices, messages)?;
            }
            Operation::Delete { indices } | Operation::Compress { indices, .. }
                if indices.is_empty() =>
            {
                return Ok(Effect::Nothing);
            }
            Operation::Delete { indices } => self.delete(indices)?,
            Operation::Compress { indices, summary } => self.compress(indices, summary.as_ref())?,
            Operation::Truncate(truncate) => self.truncate(truncate)?,
            Operation::Filter(filter) => self.filter(filter),
            Operation::Clear { keep_system_message, scope } => {
                self.clear(*keep_system_message, *scope);
            }
            Operation::Restore { indices } => self.restore(indices)?,
            Operation::Fit(fit) => return self.fit(fit),
            Operation::Arrange { indices } => self.arrange(indices)?,
            Operation::BatchStart { boundary, with_tools, expected_batch } => {
                self.batch_start(*boundary, *with_tools, *expected_batch)?;
            }
            Operation::BatchEnd { target_batch, carry } => self.batch_end(*target_batch, carry)?,
            Operation::RollbackToBatch { target_batch } => {
                self.return_to_batch(*target_batch)?;
            }
            Operation::RollbackToVersion { target_version } => {
                self.rollback_to_version(*target_version)?;
            }
            Operation::Mark { indices, mark } => self.mark(indices, mark)?,
            Operation::Unmark { indices, mark } => self.unmark(indices, mark)?,
            Operation::Undo | Operation::Redo => unreachable!("UNDO and REDO are not in lists"),
        }
        Ok(Effect::Applied)
    }

    /// Adds messages to the log and returns their indices.
    pub(super) fn log_messages(&mut self, messages: &[Message]) -> Vec<usize> {
        let first = self.log.len();
        for message in messages {
            let entry = Entry::new(message.clone(), self.settings, self.now);
            self.log.push(Arc::new(entry));
        }
        (first..self.log.len()).collect()
    }

    /// Opens the next batch with this view.
    pub(super) fn open_batch(&mut self, view: Vec<usize>) {
        let boundary = view.iter().copied().min().unwrap_or(self.log.len());
        let next = Batch {
            view,
            boundary,
            opened_at: self.now,
            opened_by: self.history.len(),
            description: self.description.clone(),
            is_started: false,
            left_at_log_len: None,
        };
        self.state.open_batch(next, self.log_len_before_operation);
    }

    /// Extends the view of the current batch.
    pub(super) fn extend_view(&mut self, indices: &[usize]) {
        self.state.current_mut().view.extend(indices);
    }
}
