//! The operations: what can be asked of a conversation. One file each.
//!
//! Every operation is plain data, so it can be written as a literal:
//!
//! ```
//! use recto_core::{Role, Truncate};
//!
//! let keep_the_last_questions =
//!     Truncate { role: Some(Role::User), keep_last: Some(5), keep_others: true, ..Default::default() };
//! # let _ = keep_the_last_questions;
//! ```
//!
//! `check` tests the shape of an operation without a conversation; `perform` does the work on a
//! [`Draft`], which is thrown away if anything goes wrong.

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

/// Which entries an operation or a query starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The entries that the model reads now, in the view's order.
    #[default]
    Visible,
    /// The whole log, in log order: hidden entries come back if they are chosen.
    All,
}

/// Takes back the newest request that has not been taken back. Stands alone in its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Undo;

/// Puts back what [`Undo`] took back. Stands alone in its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Redo;

/// Declares the operations once: the enum, its kinds, and the conversions.
macro_rules! operations {
    ($($(#[$doc:meta])* $variant:ident($name:literal),)*) => {
        /// One operation.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Operation {
            $($(#[$doc])* $variant($variant),)*
        }

        /// Which operation it was.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
            /// Which operation it is.
            pub fn kind(&self) -> OperationKind {
                match self {
                    $(Operation::$variant(_) => OperationKind::$variant,)*
                }
            }
        }

        impl OperationKind {
            /// The name as it is written in JSON.
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
            /// Gives the reason for the operation; it is kept with the version and shown by
            /// `blame`.
            pub fn because(self, description: impl Into<String>) -> Step {
                Operation::from(self).because(description)
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
    /// Adds messages at a place.
    Insert("INSERT"),
    /// Puts a message in the place of another.
    Replace("REPLACE"),
    /// Puts messages in the place of log entries.
    ReplaceEntries("REPLACE_ENTRIES"),
    /// Hides entries.
    Delete("DELETE"),
    /// Hides entries behind a summary.
    Compress("COMPRESS"),
    /// Keeps a stretch.
    Truncate("TRUNCATE"),
    /// Keeps what matches.
    Filter("FILTER"),
    /// Empties the view.
    Clear("CLEAR"),
    /// Sets the view to a list of entries.
    Arrange("ARRANGE"),
    /// Brings hidden entries back.
    Restore("RESTORE"),
    /// Keeps what fits a token budget.
    Fit("FIT"),
    /// Opens a batch.
    BatchStart("BATCH_START"),
    /// Goes back to a batch and may carry messages along.
    BatchEnd("BATCH_END"),
    /// Goes back to a batch or version.
    Rollback("ROLLBACK"),
    /// Labels entries.
    Mark("MARK"),
    /// Takes a label off.
    Unmark("UNMARK"),
    /// Takes the newest request back.
    Undo("UNDO"),
    /// Puts it back.
    Redo("REDO"),
}

impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Operation {
    /// Gives the reason for the operation; it is kept with the version and shown by `blame`.
    pub fn because(self, description: impl Into<String>) -> Step {
        Step { description: Some(description.into()), ..Step::from(self) }
    }

    /// Tests everything that can be tested without a conversation.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self {
            Operation::Append(append) => append.check(),
            Operation::Insert(insert) => insert.check(),
            Operation::ReplaceEntries(replace) => replace.check(),
            Operation::Delete(delete) => check_indices(&delete.indices),
            Operation::Compress(compress) => check_indices(&compress.indices),
            Operation::Truncate(truncate) => truncate.check(),
            Operation::Filter(filter) => filter.check(),
            Operation::Restore(restore) => check_indices(&restore.indices),
            Operation::BatchEnd(batch_end) => batch_end.check(),
            Operation::Mark(mark) => mark.check(),
            Operation::Unmark(unmark) => unmark.check(),
            Operation::Replace(_)
            | Operation::Arrange(_)
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
            Operation::Undo(_) | Operation::Redo(_) => Err(stands_alone(self.kind())),
        }
    }

    /// What the operation does, in a few words, for where no reason was given.
    pub(crate) fn describe(&self) -> String {
        let entries = |indices: &[LogIndex]| counted(indices.len(), "entry", "entries");
        match self {
            Operation::Append(append) => describe_append(append.messages.len()),
            Operation::Insert(insert) => {
                let messages = counted(insert.messages.len(), "message", "messages");
                format!("INSERT {messages} at {}", insert.position)
            }
            Operation::Replace(replace) => format!("REPLACE the entry at {}", replace.index),
            Operation::ReplaceEntries(replace) => {
                let messages = counted(replace.messages.len(), "message", "messages");
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
    format!("APPEND {}", counted(messages, "message", "messages"))
}

fn counted(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// An operation, and why it is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What to do.
    pub operation: Operation,
    /// Why. Where it is missing, one is made from the operation.
    pub description: Option<String>,
    /// What only the modification form can express.
    pub(crate) modification: Option<Modification>,
}

/// What only the modification form can express.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Modification {
    /// `delete` or `compress` without indices: it does nothing.
    Nothing,
    /// `insert` with indices, which mean nothing there.
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

    /// Why the operation is asked for: as the caller says, or made from the operation.
    pub(crate) fn reason(&self) -> Arc<str> {
        match &self.description {
            Some(description) => description.as_str().into(),
            None => self.operation.describe().into(),
        }
    }
}

impl<T: Into<Operation>> From<T> for Step {
    fn from(operation: T) -> Self {
        Step { operation: operation.into(), description: None, modification: None }
    }
}

/// One atomic request: operations that are applied in order, all or none, and make one version.
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
    /// Tests the shape of every operation, in order, before anything is done.
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
        let travels = matches!(step.operation, Operation::Undo(_) | Operation::Redo(_));
        if travels && self.steps.len() > 1 {
            return Err(stands_alone(step.operation.kind()));
        }
        Ok(())
    }
}

pub(crate) fn stands_alone(kind: OperationKind) -> Error {
    Error::operation(format!("{kind} stands alone; send it as a request of its own"))
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
    Ok(())
}

/// In order and each once.
fn sorted(indices: &[LogIndex]) -> Vec<LogIndex> {
    let mut sorted = indices.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted
}
