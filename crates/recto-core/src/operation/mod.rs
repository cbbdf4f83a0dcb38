//! The operations. Each file has one operation, or a group of related ones. `conversation.rs` performs UNDO
//! and REDO.
//!
//! An operation is plain data. It has constructors for common cases, and can be written as a literal;
//! end the literal with `..Default::default()`, because later versions may add fields:
//!
//! ```
//! use recto_core::{Role, Truncate};
//!
//! let last = Truncate::keep_last(5);
//! let last_questions = Truncate { role: Some(Role::User), keep_others: true, ..last };
//! # let _ = last_questions;
//! ```
//!
//! `check` tests an operation without a conversation. `perform` performs it on a [`Draft`], which is
//! dropped if an operation fails.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::draft::Draft;
use crate::message::shorten;
use crate::{BatchIndex, Error, LogIndex, Message};

mod append;
mod arrange;
mod batch;
mod clear;
mod compress;
mod delete;
mod filter;
mod fit;
mod insert;
mod mark;
mod replace;
mod restore;
mod rollback;
mod truncate;

pub use append::Append;
pub use arrange::Arrange;
pub use batch::{BatchEnd, BatchStart, Carry};
pub use clear::Clear;
pub use compress::Compress;
pub use delete::Delete;
pub use filter::Filter;
pub use fit::Fit;
pub use insert::Insert;
pub use mark::{Mark, Unmark};
pub use replace::{Replace, ReplaceEntries};
pub use restore::Restore;
pub use rollback::Rollback;
pub use truncate::Truncate;

/// The entries that an operation or a query selects from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scope {
    /// The visible entries, in view order.
    #[default]
    Visible,
    /// The whole log, in log order. Hidden entries that an operation selects become visible.
    All,
}

/// Undoes the newest request that is not undone. Must be the only operation of its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Undo;

/// Reverts the newest [`Undo`] that is not reverted yet. Must be the only operation of its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Redo;

/// Declares [`Operation`], [`OperationKind`] and the conversions from one list.
macro_rules! operations {
    ($($(#[$doc:meta])* $variant:ident($name:literal),)*) => {
        /// One operation.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Operation {
            $($(#[$doc])* $variant($variant),)*
        }

        /// The kinds of operations, and of other changes that make a version.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum OperationKind {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
            /// The tools were set.
            #[serde(rename = "SET_TOOLS")]
            SetTools,
            /// Several operations in one request.
            #[serde(rename = "LIST")]
            List,
            /// The conversation was created.
            #[serde(rename = "CREATE")]
            Create,
        }

        impl Operation {
            /// The kind of the operation.
            pub fn kind(&self) -> OperationKind {
                match self {
                    $(Operation::$variant(_) => OperationKind::$variant,)*
                }
            }
        }

        impl OperationKind {
            /// The kinds of operations.
            pub const OPERATIONS: &'static [OperationKind] = &[$(OperationKind::$variant,)*];

            /// The name in JSON.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(OperationKind::$variant => $name,)*
                    OperationKind::SetTools => "SET_TOOLS",
                    OperationKind::List => "LIST",
                    OperationKind::Create => "CREATE",
                }
            }
        }

        $(impl From<$variant> for Operation {
            fn from(operation: $variant) -> Self {
                Operation::$variant(operation)
            }
        })*

        $(impl $variant {
            /// The operation with a reason, which is stored with the version and shown by `blame`.
            pub fn reason(self, reason: impl Into<String>) -> Step {
                Operation::from(self).reason(reason)
            }
        })*

        $(impl From<$variant> for Request {
            fn from(operation: $variant) -> Self {
                Operation::$variant(operation).into()
            }
        })*
    };
}

operations! {
    /// Adds messages to the end.
    Append("APPEND"),
    /// Adds messages at a position.
    Insert("INSERT"),
    /// Replaces an entry by a message.
    Replace("REPLACE"),
    /// Replaces log entries by messages.
    ReplaceEntries("REPLACE_ENTRIES"),
    /// Hides entries.
    Delete("DELETE"),
    /// Replaces entries by a summary.
    Compress("COMPRESS"),
    /// Keeps a range of entries.
    Truncate("TRUNCATE"),
    /// Keeps the entries that match.
    Filter("FILTER"),
    /// Empties the view.
    Clear("CLEAR"),
    /// Sets the view to a list of entries.
    Arrange("ARRANGE"),
    /// Shows hidden entries.
    Restore("RESTORE"),
    /// Keeps the newest entries that fit a token budget.
    Fit("FIT"),
    /// Opens a batch.
    BatchStart("BATCH_START"),
    /// Returns to a batch and may carry entries along.
    BatchEnd("BATCH_END"),
    /// Returns to a batch or version.
    Rollback("ROLLBACK"),
    /// Sets a mark on entries.
    Mark("MARK"),
    /// Removes a mark from entries.
    Unmark("UNMARK"),
    /// Undoes the newest request that is not undone.
    Undo("UNDO"),
    /// Reverts the newest UNDO that is not reverted yet.
    Redo("REDO"),
}

impl OperationKind {
    /// Whether the operation restores an earlier view: ROLLBACK, BATCH_END, UNDO and REDO.
    pub fn restores_view(self) -> bool {
        use OperationKind::{BatchEnd, Redo, Rollback, Undo};
        matches!(self, BatchEnd | Redo | Rollback | Undo)
    }
}

impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Operation {
    /// The operation with a reason, which is stored with the version and shown by `blame`.
    pub fn reason(self, reason: impl Into<String>) -> Step {
        Step { reason: Some(reason.into()), ..Step::from(self) }
    }

    /// Tests the operation without a conversation.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self {
            Operation::Append(append) => append.check(),
            Operation::Insert(insert) => insert.check(),
            Operation::ReplaceEntries(replace) => replace.check(),
            Operation::Delete(delete) => check_indices(&delete.indices),
            Operation::Compress(compress) => compress.check(),
            Operation::Truncate(truncate) => truncate.check(),
            Operation::Filter(filter) => filter.check(),
            Operation::Restore(restore) => check_indices(&restore.indices),
            Operation::BatchEnd(batch_end) => batch_end.check(),
            Operation::Mark(mark) => mark.check(),
            Operation::Unmark(unmark) => unmark.check(),
            Operation::Replace(replace) => replace.check(),
            Operation::Arrange(_)
            | Operation::Clear(_)
            | Operation::Fit(_)
            | Operation::BatchStart(_)
            | Operation::Rollback(_)
            | Operation::Undo(_)
            | Operation::Redo(_) => Ok(()),
        }
    }

    pub(crate) fn perform(&self, draft: &mut Draft<'_>) -> Result<(), Error> {
        match self {
            Operation::Append(append) => append.perform(draft),
            Operation::Insert(insert) => insert.perform(draft),
            Operation::Replace(replace) => replace.perform(draft),
            Operation::ReplaceEntries(replace) => replace.perform(draft),
            Operation::Delete(delete) => delete.perform(draft),
            Operation::Compress(compress) => compress.perform(draft),
            Operation::Truncate(truncate) => truncate.perform(draft),
            Operation::Filter(filter) => filter.perform(draft),
            Operation::Clear(clear) => clear.perform(draft),
            Operation::Arrange(arrange) => arrange.perform(draft),
            Operation::Restore(restore) => restore.perform(draft),
            Operation::Fit(fit) => fit.perform(draft),
            Operation::BatchStart(start) => start.perform(draft),
            Operation::BatchEnd(end) => end.perform(draft),
            Operation::Rollback(rollback) => rollback.perform(draft),
            Operation::Mark(mark) => mark.perform(draft),
            Operation::Unmark(unmark) => unmark.perform(draft),
            Operation::Undo(_) | Operation::Redo(_) => Err(only_operation_error(self.kind())),
        }
    }

    /// A short description of the operation. It is the reason of an operation for which the caller gives
    /// none.
    ///
    /// ```
    /// use recto_core::{Fit, Operation};
    ///
    /// assert_eq!(Operation::from(Fit::within(900)).describe(), "FIT into 900 tokens");
    /// ```
    pub fn describe(&self) -> String {
        let entries = |indices: &[LogIndex]| with_unit(sorted(indices).len(), "entry", "entries");
        match self {
            Operation::Append(append) => describe_append(append.messages.len()),
            Operation::Insert(insert) => {
                let messages = with_unit(insert.messages.len(), "message", "messages");
                format!("INSERT {messages} at {}", insert.position)
            }
            Operation::Replace(replace) => {
                format!("REPLACE the entry at position {}", replace.index)
            }
            Operation::ReplaceEntries(replace) => {
                let messages = with_unit(replace.messages.len(), "message", "messages");
                format!("REPLACE {} by {messages}", entries(&replace.indices))
            }
            Operation::Delete(delete) => format!("DELETE {}", entries(&delete.indices)),
            Operation::Compress(compress) => {
                let what = entries(&compress.indices);
                let how = if compress.summary.is_some() { " into a summary" } else { "" };
                format!("COMPRESS {what}{how}")
            }
            Operation::Truncate(truncate) => truncate.describe(),
            Operation::Filter(filter) => filter.describe(),
            Operation::Clear(clear) if clear.keep_system_message => "CLEAR, keep system".into(),
            Operation::Clear(_) => "CLEAR".into(),
            Operation::Arrange(arrange) => format!("ARRANGE {}", entries(&arrange.indices)),
            Operation::Restore(restore) => format!("RESTORE {}", entries(&restore.indices)),
            Operation::Fit(fit) => format!("FIT into {} tokens", fit.max_tokens),
            Operation::BatchStart(start) => {
                let from = start.boundary.map(|boundary| format!(" from entry {boundary}"));
                let tools = if start.with_tools { " with tools" } else { "" };
                format!("BATCH_START{}{tools}", from.unwrap_or_default())
            }
            Operation::BatchEnd(end) => match end.target {
                Some(target) => format!("BATCH_END to batch {target}"),
                None => "BATCH_END".into(),
            },
            Operation::Rollback(Rollback::ToBatch(batch)) => format!("ROLLBACK to batch {batch}"),
            Operation::Rollback(Rollback::ToVersion(version)) => {
                format!("ROLLBACK to version {version}")
            }
            Operation::Mark(mark) => {
                format!("MARK {} {:?}", entries(&mark.indices), shorten(&mark.mark))
            }
            Operation::Unmark(unmark) => {
                format!("UNMARK {} {:?}", entries(&unmark.indices), shorten(&unmark.mark))
            }
            Operation::Undo(_) => "UNDO".into(),
            Operation::Redo(_) => "REDO".into(),
        }
    }
}

pub(crate) fn describe_append(messages: usize) -> String {
    format!("APPEND {}", with_unit(messages, "message", "messages"))
}

fn with_unit(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// An operation and its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The operation.
    pub operation: Operation,
    /// Why the operation is applied. Default: a short description of the operation.
    pub reason: Option<String>,
    /// Data that only the modification form can express.
    pub(crate) modification: Option<Modification>,
}

/// Data that only the modification form can express.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Modification {
    /// `delete` or `compress` without indices: it does nothing.
    Nothing,
    /// `insert` with indices, which have no meaning there.
    IgnoredIndices(Vec<LogIndex>),
    /// `batch_start` with the number that the new batch must get.
    ExpectedBatch(BatchIndex),
}

impl Step {
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.modification {
            Some(Modification::Nothing) => Ok(()),
            _ => self.operation.check(),
        }
    }

    pub(crate) fn perform(&self, draft: &mut Draft<'_>) -> Result<(), Error> {
        match self.modification {
            Some(Modification::Nothing) => {
                draft.is_idle = true;
                return Ok(());
            }
            Some(Modification::ExpectedBatch(expected)) => {
                let actual = BatchIndex(draft.state.path.len());
                if expected != actual {
                    return Err(Error::UnexpectedBatch { expected, actual });
                }
            }
            Some(Modification::IgnoredIndices(_)) | None => {}
        }
        self.operation.perform(draft)
    }

    /// The given reason, or else a description of the operation.
    pub(crate) fn reason_text(&self) -> Arc<str> {
        match &self.reason {
            Some(reason) => reason.as_str().into(),
            None => self.operation.describe().into(),
        }
    }
}

impl<T: Into<Operation>> From<T> for Step {
    fn from(operation: T) -> Self {
        Step { operation: operation.into(), reason: None, modification: None }
    }
}

/// An atomic request: operations that are applied in order, all or none, and make at most one version.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The operations in order.
    pub steps: Vec<Step>,
}

impl From<Operation> for Request {
    fn from(operation: Operation) -> Self {
        Step::from(operation).into()
    }
}

impl From<Step> for Request {
    fn from(step: Step) -> Self {
        Request { steps: vec![step] }
    }
}

impl<T: Into<Step>> FromIterator<T> for Request {
    fn from_iter<I: IntoIterator<Item = T>>(steps: I) -> Self {
        Request { steps: steps.into_iter().map(Into::into).collect() }
    }
}

impl Request {
    /// Tests every operation, in order, without a conversation.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.steps.is_empty() {
            return Err(Error::operation_field("ops", "a request has at least one operation"));
        }
        let is_list = self.steps.len() > 1;
        for (number, step) in self.steps.iter().enumerate() {
            let checked = self.check_step(step);
            checked.map_err(|error| if is_list { error.in_list(number) } else { error })?;
        }
        Ok(())
    }

    fn check_step(&self, step: &Step) -> Result<(), Error> {
        step.check()?;
        let must_be_alone = matches!(step.operation, Operation::Undo(_) | Operation::Redo(_));
        if must_be_alone && self.steps.len() > 1 {
            return Err(only_operation_error(step.operation.kind()));
        }
        Ok(())
    }
}

/// The error of an operation that must be the only one of its request.
pub(crate) fn only_operation_error(kind: OperationKind) -> Error {
    Error::operation(format!("{kind} must be the only operation of its request"))
}

fn check_indices(indices: &[LogIndex]) -> Result<(), Error> {
    if indices.is_empty() {
        return Err(Error::operation_field(
            "indices",
            "indices is empty; name at least one log entry",
        ));
    }
    Ok(())
}

fn check_messages(messages: &[Message]) -> Result<(), Error> {
    if messages.is_empty() {
        return Err(Error::operation_field(
            "messages",
            "messages is empty; give at least one message",
        ));
    }
    for (number, message) in messages.iter().enumerate() {
        let checked = message.check_content();
        checked.map_err(|error| error.within(&format!("messages[{number}]")))?;
    }
    Ok(())
}

/// The indices, sorted and without duplicates.
fn sorted(indices: &[LogIndex]) -> Vec<LogIndex> {
    let mut sorted = indices.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted
}
