//! Operations whose fields have been checked (section 4), from any input form.

use super::message::Message;
use super::refusal::Refusal;
use super::role::Role;

/// A request.
pub(super) enum Request {
    /// UNDO, alone.
    Undo,
    /// REDO, alone.
    Redo,
    /// One operation or a list of them; never empty.
    Edit(Vec<Described>),
}

/// An operation with the description that the caller gave.
pub(super) struct Described {
    pub(super) operation: Operation,
    pub(super) description: Option<String>,
}

/// One operation. Lists of indices contain no index twice.
pub(super) enum Operation {
    Append {
        messages: Vec<Message>,
        /// The ignored indices of the modification form's insert.
        ignored_indices: Vec<usize>,
    },
    Insert {
        position: usize,
        messages: Vec<Message>,
    },
    Replace {
        position: usize,
        message: Message,
    },
    /// The modification form's replace: by log indices, with one message or more.
    ReplaceEntries {
        indices: Vec<usize>,
        messages: Vec<Message>,
    },
    /// Without indices it does nothing.
    Delete {
        indices: Vec<usize>,
    },
    /// Without indices it does nothing.
    Compress {
        indices: Vec<usize>,
        summary: Option<Message>,
    },
    Truncate(Truncate),
    Filter(Filter),
    Clear {
        keep_system_message: bool,
        scope: Scope,
    },
    Restore {
        indices: Vec<usize>,
    },
    Fit(Fit),
    Arrange {
        indices: Vec<usize>,
    },
    BatchStart {
        boundary: Option<usize>,
        with_tools: bool,
        /// The modification form's `batch`: the number that the new batch must get.
        expected_batch: Option<usize>,
    },
    BatchEnd {
        /// `None`: the batch that was current at the newest BATCH_START of the live path.
        target_batch: Option<usize>,
        carry: Carry,
    },
    RollbackToBatch {
        target_batch: usize,
    },
    RollbackToVersion {
        target_version: u64,
    },
    Mark {
        indices: Vec<usize>,
        mark: String,
    },
    Unmark {
        indices: Vec<usize>,
        mark: String,
    },
    Undo,
    Redo,
}

/// The entries that TRUNCATE, FILTER, CLEAR and queries select from, and that the
/// mark map lists.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Visible,
    All,
}

pub(super) struct Truncate {
    pub(super) keep_first: Option<usize>,
    pub(super) keep_last: Option<usize>,
    pub(super) remove_first: Option<usize>,
    pub(super) remove_last: Option<usize>,
    pub(super) range: Option<Range>,
    pub(super) role: Option<Role>,
    pub(super) keep_others: bool,
    pub(super) scope: Scope,
}

/// `[start, end)`.
#[derive(Clone, Copy)]
pub(super) struct Range {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Range {
    /// Start > end is `invalid_range`. In an operation this is tested when the operation is performed,
    /// after the fields of all operations of the request.
    pub(super) fn require_order(self) -> Result<(), Refusal> {
        if self.start > self.end {
            let message = format!("the start {} is after the end {}", self.start, self.end);
            return Err(Refusal::new("invalid_range", message));
        }
        Ok(())
    }

    /// The elements of a list in this range, which must be in order. It is cut at the end of the list.
    pub(super) fn of<T>(self, list: &[T]) -> &[T] {
        &list[self.start.min(list.len())..self.end.min(list.len())]
    }
}

pub(super) struct Filter {
    pub(super) roles: Option<Vec<Role>>,
    pub(super) content_contains: Option<Vec<String>>,
    pub(super) content_excludes: Option<Vec<String>>,
    pub(super) scope: Scope,
}

pub(super) struct Fit {
    pub(super) max_tokens: u64,
    pub(super) keep_system: bool,
    pub(super) start_on: Option<Role>,
}

pub(super) enum Carry {
    None,
    All,
    Roles(Vec<Role>),
}
