//! The engine of Recto: a versioned view over an append-only log of messages.
//!
//! The conversation of an agent outgrows the context window of its model. Recto keeps every message in an
//! append-only [log](MessageLog), and a [view](View) of the messages that the model reads. A
//! [request](Request) changes the view with one or more [operations](Operation) and makes a
//! [version](Version). Any version can be read, compared, explained and restored.
//!
//! Start with [`Conversation`]. It is an immutable value: [`Conversation::apply`] returns the next one.
//!
//! ```
//! use recto_core::{Approx, Conversation, Fit, LogIndex, Message, Rollback, Settings, Version};
//!
//! let start = Conversation::new(Settings::counting_with(Approx), 0)?;
//! let (conversation, _) = start.append(
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
//! // FIT keeps the newest messages that fit, and never separates a tool call from its result.
//! let (cut, outcome) = conversation.apply(Fit::within(30), 2_000)?;
//! assert_eq!(cut.view().iter().collect::<Vec<_>>(), [0, 4].map(LogIndex));
//! assert!(outcome.warnings().is_empty());
//!
//! // Blame explains why a message is hidden.
//! let blame = cut.blame(LogIndex(1))?;
//! assert_eq!(blame.last().unwrap().reason, "FIT into 30 tokens");
//!
//! // Hidden messages are not lost.
//! let (back, _) = cut.apply(Rollback::ToVersion(Version(1)), 3_000)?;
//! assert_eq!(back.view().len(), 5);
//! # Ok::<(), recto_core::Error>(())
//! ```
//!
//! The crate has no clock, no I/O, no async and no randomness: the caller passes the time, and stores what
//! [`Conversation::save`] returns.
//!
//! | to find | look at |
//! |---|---|
//! | what an operation does | `operation/`, one file per operation or group of operations |
//! | how JSON is read | `wire/`: three input forms, queries |
//! | what a version is | `history.rs`, `state.rs`, `live_path.rs` |
//! | how the view is stored | `view.rs` and the crate `sum-tree` |
//! | how tool calls and results are paired | `tool_exchange.rs` |
//! | how a store loads a part of a conversation | `partial.rs`, `saved/` |
//! | which files a new operation needs | `ARCHITECTURE.md` of the repository |

mod blame;
mod conversation;
mod counter;
mod diff;
mod draft;
mod edges;
mod error;
mod history;
mod index_set;
mod limits;
mod live_path;
mod marks;
mod matcher;
mod message;
mod message_log;
mod missing;
mod note;
mod number;
mod operation;
mod outcome;
mod partial;
mod query;
mod role;
mod saved;
mod settings;
mod snapshot;
mod state;
mod tool_exchange;
mod tools;
mod verify;
mod view;
mod wire;
mod word_search;

/// Lossless JSON reading, for programs that read messages as the engine does.
pub use recto_json as json;

pub use blame::{Blame, Effect, MarkBlame};
pub use conversation::{Conversation, VersionInfo, VisibleEntry};
#[cfg(feature = "bpe")]
pub use counter::Bpe;
pub use counter::{Approx, Counter};
pub use diff::{Diff, Entries, MessageTotals};
pub use error::{Code, Error};
pub use limits::Limits;
pub use marks::{Marks, PINNED};
pub use message::{Message, ToolCall};
#[doc(hidden)]
pub use message_log::EntryMeta;
pub use message_log::{LogEntry, MessageLog};
pub use missing::{Missing, StoredPath};
pub use note::Note;
pub use number::{BatchIndex, LogIndex, Position, Timestamp, Version};
pub use operation::{
    Append, Arrange, BatchEnd, BatchStart, Carry, Clear, Compress, Delete, Filter, Fit, Insert,
    Mark, Operation, OperationKind, Redo, Replace, ReplaceEntries, Request, Restore, Rollback,
    Scope, Step, Truncate, Undo, Unmark,
};
pub use outcome::{Outcome, SharedPrefix, Stats, Warning, WarningCode, WithoutLists};
#[doc(hidden)]
pub use partial::PartialConversation;
pub use query::{Hit, Pick, Query, QueryAt};
pub use role::{Role, RoleSet};
#[doc(hidden)]
pub use saved::{BatchWalk, SavedState, SavedVersion, SavedVersions, Saver, ShownEntries};
pub use saved::{SAVED_FORMAT, SavedConversation, SavedSettings};
pub use settings::Settings;
pub use snapshot::{ArrayState, BatchSnapshot};
pub use tools::{DEFAULT_HEADING, Tool, ToolSet};
pub use verify::Inconsistency;
pub use view::{MAX_MESSAGE_TOKENS, View};
pub use wire::{MarkMap, TypeIndices};
