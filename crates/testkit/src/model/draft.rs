//! A copy of the newest state that the operations of one request edit in turn.
//! If one of them refuses, the draft is dropped.

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
    /// How long the log was before the operation that runs now.
    pub(super) log_len_before_operation: usize,
    /// The description of the operation that runs now.
    pub(super) description: Option<String>,
}

/// What an operation did.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Applied,
    /// A FIT whose budget holds everything already: no batch.
    FitsAlready,
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
        let description = None;
        Draft { settings, history, log, state, now, log_len_before_operation, description }
    }

    pub(super) fn finish(self) -> (State, Vec<Arc<Entry>>) {
        (self.state, self.log)
    }

    /// Runs one operation against what the ones before it left.
    pub(super) fn run(&mut self, step: &Described) -> Result<Effect, Refusal> {
        self.log_len_before_operation = self.log.len();
        self.description = step.description.clone();
        match &step.operation {
            Operation::Append { messages } => self.append(messages),
            Operation::Insert { position, messages } => self.insert(*position, messages)?,
            Operation::Replace { position, message } => self.replace(*position, message)?,
            Operation::ReplaceEntries { indices, messages } => {
                self.replace_entries(indices, messages)?;
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
            Operation::BatchStart { boundary } => self.batch_start(*boundary)?,
            Operation::BatchEnd { target_batch, carry } => self.batch_end(*target_batch, carry)?,
            Operation::RollbackToBatch { target_batch } => {
                self.state.return_to_batch(*target_batch)?;
            }
            Operation::RollbackToVersion { target_version } => {
                self.rollback_to_version(*target_version)?;
            }
            Operation::Mark { indices, mark } => self.mark(indices, mark)?,
            Operation::Unmark { indices, mark } => self.unmark(indices, mark)?,
            Operation::Undo | Operation::Redo => unreachable!("UNDO and REDO stand alone"),
        }
        Ok(Effect::Applied)
    }

    /// Adds messages to the log and answers their indices.
    pub(super) fn log_messages(&mut self, messages: &[Message]) -> Vec<usize> {
        let first = self.log.len();
        for message in messages {
            let entry = Entry::arrive(message.clone(), self.settings, self.now);
            self.log.push(Arc::new(entry));
        }
        (first..self.log.len()).collect()
    }

    /// Puts a view in a new batch, numbered one above the current one.
    pub(super) fn open_batch(&mut self, view: Vec<usize>) {
        let boundary = view.iter().copied().min().unwrap_or(self.log.len());
        let next = Batch {
            view,
            boundary,
            opened_at: self.now,
            description: self.description.clone(),
            left_at_log_len: None,
        };
        self.state.open_batch(next, self.log_len_before_operation);
    }

    /// Extends the view of the current batch.
    pub(super) fn extend_view(&mut self, indices: &[usize]) {
        self.state.current_mut().view.extend(indices);
    }
}
