//! The engine of Recto: a versioned view over an append-only log of messages.
//!
//! An agent's conversation outgrows the model's window, so something must be cut. Recto keeps every
//! message in a [log](MessageLog) and decides which of them the model reads: the [view](View). Every
//! change of the view is a small, named [operation](Operation) that makes a [version](Version); any
//! version can be read, compared, explained and brought back.
//!
//! Start with [`Conversation`]. It is a value: [`Conversation::apply`] returns the next one.
//!
//! ```
//! use recto_core::{Approx, Conversation, Fit, LogIndex, Message, Rollback, Settings, Version};
//!
//! let start = Conversation::new(Settings::counting_with(Approx), 0)?;
//! let (talk, _) = start.append(
//!     [
//!         Message::system("You plan trips."),
//!         Message::user("Find me a flight to Lisbon, leaving on Friday in the morning."),
//!         Message::tool_call("c1", "search", &serde_json::json!({"to": "LIS"})),
//!         Message::tool_result("c1", "TP 571, 07:05, 120 EUR"),
//!         Message::assistant("TP 571 leaves at 07:05."),
//!     ],
//!     1_000,
//! )?;
//!
//! // Too long for the model? FIT keeps what fits, and never tears a call from its result.
//! let (cut, outcome) = talk.apply(Fit::into_tokens(30), 2_000)?;
//! assert_eq!(cut.view().iter().collect::<Vec<_>>(), [0, 4].map(LogIndex));
//! assert!(outcome.warnings().is_empty());
//!
//! // What happened to the question, and why?
//! let blame = cut.blame(LogIndex(1))?;
//! assert_eq!(blame.last().unwrap().description, "FIT into 30 tokens");
//!
//! // Nothing was lost.
//! let (back, _) = cut.apply(Rollback::ToVersion(Version(1)), 3_000)?;
//! assert_eq!(back.view().len(), 5);
//! # Ok::<(), recto_core::Error>(())
//! ```
//!
//! The crate has no clock, no I/O, no async and no randomness: callers say what time it is, and
//! stores keep what [`Conversation::save`] gives.
//!
//! | to find | look at |
//! |---|---|
//! | what an operation does | `operation/`, one file each |
//! | how JSON is read | `wire/`: three input forms, queries |
//! | what a version is | `history.rs`, `state.rs`, `live_path.rs` |
//! | how the view is measured | `view.rs` and the crate `sum-tree` |
//! | how tool calls find their results | `tool_exchange.rs` |

mod blame;
mod conversation;
mod counter;
mod diff;
mod draft;
mod error;
mod gram_search;
mod history;
mod index_set;
pub mod json;
mod limits;
mod live_path;
mod marks;
mod matcher;
mod message;
mod message_log;
mod number;
mod opened;
mod operation;
mod outcome;
mod query;
mod role;
mod saved;
mod state;
mod tool_exchange;
mod tools;
mod verify;
mod view;
mod wire;

pub use blame::{Blame, Effect};
pub use conversation::{
    ArrayState, BatchSnapshot, Conversation, Settings, VersionInfo, VisibleEntry,
};
#[cfg(feature = "bpe")]
pub use counter::Bpe;
pub use counter::{Approx, Counter};
pub use diff::{Diff, Entries, Portion};
pub use error::{Code, Error};
pub use limits::Limits;
pub use live_path::StoredPath;
pub use marks::{Marks, PINNED};
pub use message::{Message, ToolCall};
pub use message_log::{LogEntry, MessageLog};
pub use number::{BatchIndex, LogIndex, Position, Timestamp, Version};
pub use opened::{Measure, Missing};
pub use operation::{
    Append, Arrange, BatchEnd, BatchStart, Carry, Clear, Compress, Delete, Filter, Fit, Insert,
    Mark, Operation, OperationKind, Redo, Replace, ReplaceEntries, Request, Restore, Rollback,
    Scope, Step, Truncate, Undo, Unmark,
};
pub use outcome::{Outcome, SharedPrefix, Stats, Warning, WarningCode};
pub use query::{Hit, Moment, Pick, Query};
pub use role::{Role, RoleSet};
pub use saved::{
    SAVED_FORMAT, SavedConversation, SavedSettings, SavedState, SavedVersion, SavedVersions, Saver,
    Shown,
};
pub use tools::{DEFAULT_HEADING, Tool, ToolSet};
pub use verify::Inconsistency;
pub use view::{MAX_MESSAGE_TOKENS, View};
pub use wire::{MarkMap, TypeIndices};
