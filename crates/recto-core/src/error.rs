//! The error type of the crate, with the codes of the contract.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

use crate::{BatchIndex, LogIndex, Missing, Position, Version};

/// Why a request or a query was refused. A refused request changes nothing.
///
/// [`code`](Error::code) is the code of the contract, for programs. The text says what was wrong, where,
/// and what is allowed. An error in a list of operations is [`InList`](Error::InList); match on
/// [`root`](Error::root) to get the error of the operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not JSON.
    #[error("this is not JSON: {reason}")]
    InvalidJson {
        /// What the parser found, with line and column.
        reason: String,
    },
    /// An operation, a query or one of their fields is unknown or wrong.
    #[error("{reason}")]
    InvalidOperation {
        /// What is wrong and what is allowed.
        reason: String,
        /// The field that is wrong, if it is a single one.
        field: Option<String>,
    },
    /// A message lacks something or has a malformed part.
    #[error("{reason}")]
    InvalidMessage {
        /// What is wrong and what is allowed.
        reason: String,
        /// The field that is wrong, such as `messages[2].role`.
        field: Option<String>,
    },
    /// A message has no content.
    #[error("the message of role {role} has no content; {}", empty_content_advice(*.is_foreign))]
    EmptyContent {
        /// The role of the message; only `tool` messages may be empty.
        role: crate::Role,
        /// Whether the message has tool calls in a field of another format.
        is_foreign: bool,
        /// The path of the message in the request.
        field: Option<String>,
    },
    /// INSERT at a position after the end of the view.
    #[error("position {position} is past the view's end; use 0 to {len}")]
    PositionOutOfRange {
        /// The value in the request.
        position: Position,
        /// Length of the view.
        len: usize,
    },
    /// REPLACE at a position after the end of the view.
    #[error("there is no entry at position {position} of the view; {}", allowed_numbers(*.len))]
    NoEntryAtPosition {
        /// The value in the request.
        position: Position,
        /// Length of the view.
        len: usize,
    },
    /// A log entry does not exist.
    #[error("there is no log entry {index}; {}", allowed_numbers(*.len))]
    IndexOutOfRange {
        /// The value in the request.
        index: LogIndex,
        /// Length of the log.
        len: usize,
    },
    /// A boundary after the end of the log.
    #[error("boundary {boundary} is past the log's end; use 0 to {len}")]
    BoundaryOutOfRange {
        /// The value in the request.
        boundary: LogIndex,
        /// Length of the log.
        len: usize,
    },
    /// An entry that must be visible is hidden.
    #[error("log entry {index} is hidden; name a visible one, or show it with RESTORE first")]
    NotVisible {
        /// The entry.
        index: LogIndex,
    },
    /// A range that ends before it starts.
    #[error(
        "the range starts at {start} and ends before it, at {end}; start must not be above end"
    )]
    InvalidRange {
        /// The start of the range.
        start: usize,
        /// The end of the range.
        end: usize,
    },
    /// A batch is not on the live path.
    #[error("there is no batch {batch} on the live path; use 0 to {current}")]
    BatchNotFound {
        /// The value in the request.
        batch: BatchIndex,
        /// The current batch, which is the highest.
        current: BatchIndex,
        /// The field of the request.
        field: &'static str,
    },
    /// BATCH_END without a target and without a BATCH_START.
    #[error(
        "there is no BATCH_START on the live path to return from; start a batch first, or name the \
         batch to return to"
    )]
    NoBatchStarted,
    /// The number of the new batch is not the expected one.
    #[error(
        "the new batch would get the number {actual}, not {expected}; the batches have changed"
    )]
    UnexpectedBatch {
        /// The number that the caller expects.
        expected: BatchIndex,
        /// The number that the new batch would get.
        actual: BatchIndex,
    },
    /// A version does not exist yet.
    #[error("there is no version {version} yet; use 0 to {current}")]
    VersionNotFound {
        /// The value in the request.
        version: Version,
        /// The newest version.
        current: Version,
        /// The field of the request.
        field: &'static str,
    },
    /// The request would hide a pinned entry.
    #[error("log entry {index} is pinned; remove the mark with UNMARK first")]
    Pinned {
        /// The entry.
        index: LogIndex,
        /// The field of the request.
        field: &'static str,
    },
    /// COMPRESS with a summary, although none of the entries is visible.
    #[error(
        "none of the entries is visible, so the summary has no position; leave the summary out or name visible entries"
    )]
    NothingToCompress,
    /// UNDO without a request that can be undone.
    #[error("there is no request left to undo")]
    NothingToUndo,
    /// REDO without an UNDO right before it.
    #[error("there is nothing to redo: REDO must follow UNDO without another request between them")]
    NothingToRedo,
    /// FIT with a budget into which no run fits.
    #[error(
        "no run of messages fits into {max_tokens} tokens in addition to the entries that must stay; \
         set maxTokens to {needed} or more, unpin entries or set keepSystem to false"
    )]
    BudgetTooSmall {
        /// The smallest budget with which this FIT succeeds.
        needed: u64,
        /// The budget.
        max_tokens: u64,
    },
    /// A limit is exceeded.
    #[error("{what} is {size}, over the limit of {limit}; split it, or raise the limit")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The size.
        size: usize,
        /// The limit.
        limit: usize,
        /// The path of the message, if it is a single one.
        field: Option<String>,
    },
    /// An error of one operation of a list.
    #[error("ops[{number}]: {error}")]
    InList {
        /// The number of the operation, from 0.
        number: usize,
        /// The error of the operation.
        #[source]
        error: Box<Error>,
    },
    /// The counter of a saved conversation is not built in.
    #[error(
        "the conversation was counted by {name:?}, which is not built in; pass that counter to load_with"
    )]
    UnknownCounter {
        /// The counter's name.
        name: String,
    },
    /// A saved conversation is loaded with a counter of another name.
    #[error(
        "the conversation was counted by {saved:?}, not by {given:?}; pass the counter with that name"
    )]
    OtherCounter {
        /// The counter of the conversation.
        saved: String,
        /// The given counter.
        given: String,
    },
    /// A saved conversation has a format that this build does not read.
    #[error("the saved conversation has format {found}; this build reads {reads}")]
    UnknownFormat {
        /// Its format.
        found: u32,
        /// The format that this build reads.
        reads: u32,
    },
    /// Something is not loaded from the store; see [`Missing`].
    #[error("not loaded: {0:?}; load it from the store and try again")]
    NotLoaded(Missing),
    /// A saved conversation is inconsistent.
    #[error("the saved conversation is damaged: {reason}")]
    Damaged {
        /// What is inconsistent.
        reason: String,
    },
}

impl From<recto_json::InvalidJson> for Error {
    fn from(error: recto_json::InvalidJson) -> Self {
        Error::InvalidJson { reason: error.reason }
    }
}

/// Advice for a message with tool calls in a field of another format.
pub(crate) const FOREIGN_ADVICE: &str = "its tool calls are in a field of another format, which is \
    kept but not read; write them as tool_use and tool_result parts, or convert the message with \
    `append` and its `format`";

fn empty_content_advice(is_foreign: bool) -> &'static str {
    match is_foreign {
        true => FOREIGN_ADVICE,
        false => "give it text or parts, or leave the message out",
    }
}

fn allowed_numbers(len: usize) -> String {
    match len {
        0 => "there is none yet".into(),
        len => format!("use 0 to {}", len - 1),
    }
}

/// Declares [`Code`] from one list.
macro_rules! codes {
    ($($code:ident($name:literal),)*) => {
        /// The error codes of the contract that the engine uses.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
        #[non_exhaustive]
        #[allow(missing_docs, reason = "each is explained at its error")]
        pub enum Code {
            $(#[serde(rename = $name)] $code,)*
        }

        impl Code {
            /// Every code that the engine uses.
            pub const ALL: &'static [Code] = &[$(Code::$code,)*];

            /// The code in JSON.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Code::$code => $name,)*
                }
            }
        }
    };
}

codes! {
    InvalidJson("invalid_json"),
    InvalidOperation("invalid_operation"),
    InvalidMessage("invalid_message"),
    EmptyContent("empty_content"),
    PositionOutOfRange("position_out_of_range"),
    IndexOutOfRange("index_out_of_range"),
    NotVisible("not_visible"),
    InvalidRange("invalid_range"),
    BatchNotFound("batch_not_found"),
    VersionNotFound("version_not_found"),
    Pinned("pinned"),
    NothingToCompress("nothing_to_compress"),
    NothingToUndo("nothing_to_undo"),
    NothingToRedo("nothing_to_redo"),
    BudgetTooSmall("budget_too_small"),
    TooLarge("too_large"),
    Storage("storage"),
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Error {
    /// The code of the error.
    pub fn code(&self) -> Code {
        match self {
            Error::InvalidJson { .. } => Code::InvalidJson,
            Error::InvalidOperation { .. } => Code::InvalidOperation,
            Error::InvalidMessage { .. } => Code::InvalidMessage,
            Error::EmptyContent { .. } => Code::EmptyContent,
            Error::PositionOutOfRange { .. } => Code::PositionOutOfRange,
            Error::NoEntryAtPosition { .. }
            | Error::IndexOutOfRange { .. }
            | Error::BoundaryOutOfRange { .. } => Code::IndexOutOfRange,
            Error::NotVisible { .. } => Code::NotVisible,
            Error::InvalidRange { .. } => Code::InvalidRange,
            Error::UnexpectedBatch { .. } => Code::InvalidOperation,
            Error::BatchNotFound { .. } | Error::NoBatchStarted => Code::BatchNotFound,
            Error::VersionNotFound { .. } => Code::VersionNotFound,
            Error::Pinned { .. } => Code::Pinned,
            Error::NothingToCompress => Code::NothingToCompress,
            Error::NothingToUndo => Code::NothingToUndo,
            Error::NothingToRedo => Code::NothingToRedo,
            Error::BudgetTooSmall { .. } => Code::BudgetTooSmall,
            Error::TooLarge { .. } => Code::TooLarge,
            Error::InList { error, .. } => error.code(),
            Error::NotLoaded(_)
            | Error::Damaged { .. }
            | Error::UnknownCounter { .. }
            | Error::OtherCounter { .. }
            | Error::UnknownFormat { .. } => Code::Storage,
        }
    }

    /// The error of the operation if this is [`InList`](Error::InList), otherwise the error itself.
    pub fn root(&self) -> &Error {
        match self {
            Error::InList { error, .. } => error.root(),
            error => error,
        }
    }

    /// The field that is wrong, if it is a single one, such as `ops[1].messages[0].role`.
    pub fn field(&self) -> Option<Cow<'_, str>> {
        let field = match self {
            Error::InList { number, error } => {
                return Some(match error.field() {
                    Some(field) => format!("ops[{number}].{field}").into(),
                    None => format!("ops[{number}]").into(),
                });
            }
            Error::InvalidOperation { field, .. }
            | Error::InvalidMessage { field, .. }
            | Error::EmptyContent { field, .. }
            | Error::TooLarge { field, .. } => field.as_deref()?,
            Error::BatchNotFound { field, .. }
            | Error::VersionNotFound { field, .. }
            | Error::Pinned { field, .. } => field,
            Error::PositionOutOfRange { .. } => "position",
            Error::NoEntryAtPosition { .. } => "index",
            Error::IndexOutOfRange { .. } | Error::NotVisible { .. } => "indices",
            Error::BoundaryOutOfRange { .. } => "boundary",
            Error::UnexpectedBatch { .. } => "batch",
            Error::NoBatchStarted => "targetBatchIndex",
            Error::InvalidRange { .. } => "range",
            Error::BudgetTooSmall { .. } => "maxTokens",
            _ => return None,
        };
        Some(field.into())
    }

    /// The error in the form of the contract: `{error: {code, message, field?, details?}}`.
    pub fn to_json(&self) -> Value {
        let mut error = json!({ "code": self.code().as_str(), "message": self.to_string() });
        if let Some(field) = self.field() {
            error["field"] = (*field).into();
        }
        if let Some(details) = self.details() {
            error["details"] = details;
        }
        json!({ "error": error })
    }

    fn details(&self) -> Option<Value> {
        Some(match self {
            Error::PositionOutOfRange { position, len }
            | Error::NoEntryAtPosition { position, len } => {
                json!({ "position": position, "viewLength": len })
            }
            Error::IndexOutOfRange { index, len } => json!({ "index": index, "logLength": len }),
            Error::BoundaryOutOfRange { boundary, len } => {
                json!({ "boundary": boundary, "logLength": len })
            }
            Error::NotVisible { index } | Error::Pinned { index, .. } => json!({ "index": index }),
            Error::InvalidRange { start, end } => json!({ "start": start, "end": end }),
            Error::BatchNotFound { batch, current, .. } => {
                json!({ "batch": batch, "currentBatch": current })
            }
            Error::UnexpectedBatch { expected, actual } => {
                json!({ "expected": expected, "actual": actual })
            }
            Error::VersionNotFound { version, current, .. } => {
                json!({ "version": version, "currentVersion": current })
            }
            Error::BudgetTooSmall { needed, max_tokens } => {
                json!({ "needed": needed, "maxTokens": max_tokens })
            }
            Error::TooLarge { what, size, limit, .. } => {
                json!({ "what": what, "size": size, "limit": limit })
            }
            Error::InList { error, .. } => return error.details(),
            _ => return None,
        })
    }

    pub(crate) fn too_large(what: &'static str, size: usize, limit: usize) -> Error {
        Error::TooLarge { what, size, limit, field: None }
    }

    /// Wraps the error of operation `number` of a list.
    pub(crate) fn in_list(self, number: usize) -> Error {
        Error::InList { number, error: Box::new(self) }
    }

    pub(crate) fn operation(reason: impl Into<String>) -> Error {
        Error::InvalidOperation { reason: reason.into(), field: None }
    }

    pub(crate) fn operation_field(field: impl Into<String>, reason: impl Into<String>) -> Error {
        Error::InvalidOperation { reason: reason.into(), field: Some(field.into()) }
    }

    pub(crate) fn message(reason: impl Into<String>) -> Error {
        Error::InvalidMessage { reason: reason.into(), field: None }
    }

    pub(crate) fn message_field(field: impl Into<String>, reason: impl Into<String>) -> Error {
        Error::InvalidMessage { reason: reason.into(), field: Some(field.into()) }
    }

    /// Prefixes the path of the wrong field with `path`.
    pub(crate) fn within(mut self, path: &str) -> Error {
        if let Error::InvalidMessage { field, .. }
        | Error::EmptyContent { field, .. }
        | Error::TooLarge { field, .. } = &mut self
        {
            *field = Some(match field.take() {
                Some(inner) => format!("{path}.{inner}"),
                None => path.to_owned(),
            });
        }
        self
    }
}
