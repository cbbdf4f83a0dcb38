//! Recto stores conversations of LLM agents: every message in an append-only log, and every version of
//! the view that the model reads.
//!
//! This crate connects the engine (`recto-core`, re-exported as [`engine`]) with a store: memory, one
//! SQLite file, or PostgreSQL.
//!
//! ```
//! # #[cfg(feature = "bpe")]
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use recto::{Fit, Message, Recto, Settings, Version};
//!
//! let recto = Recto::open("memory:").await?; // or "sqlite:conversations.db", or "postgres://…"
//! let conversation = recto.create("support", Settings::default()).await?;
//! let report = "Checkout fails in the European region since this morning!";
//! conversation.append([Message::system("You are on call."), Message::user(report)]).await?;
//! conversation.append([Message::assistant("Since when?")]).await?;
//!
//! // `Ok` means durable, and every version stays readable.
//! conversation.apply(Fit::within(16)).await?;
//! assert_eq!(conversation.messages().await?.len(), 2);
//! assert_eq!(conversation.messages_at(Version(2)).await?.len(), 3);
//!
//! let fork = conversation.fork("what if", Version(1)).await?; // copies no messages
//! fork.append([Message::assistant("Which error?")]).await?;
//! # Ok::<(), recto::Error>(())
//! # }).unwrap();
//! ```
//!
//! # Guide
//!
//! - [`Recto`] is an open store. It creates, finds, lists, renames, removes and searches conversations,
//!   and copies whole stores ([`Recto::backup`], [`Recto::restore`]).
//! - [`Conversation`] is a handle of one stored conversation. [`Conversation::apply`] performs a
//!   [`Request`]: one or more operations such as [`Append`], [`Truncate`], [`Compress`], [`Fit`],
//!   [`Rollback`] or [`Undo`]. [`Conversation::preview`] shows what a request would do.
//! - Reads load only the data that they need, from the newest version unless the method takes a
//!   [`Version`]: [`Conversation::messages`], [`Conversation::query`], [`Conversation::stats`],
//!   [`Conversation::versions`], [`Conversation::diff`], [`Conversation::blame`]. A read never waits for
//!   a write.
//! - Any number of tasks, processes and machines may write to the same conversation. Writers use
//!   optimistic concurrency: the insert of the next version succeeds for exactly one of them, and the
//!   others apply their request to the new version. [`WriteOptions`] sets the version that a writer
//!   expects, and an idempotency key.
//! - [`Conversation::with_temporary`] runs work in a scope whose messages leave the view afterwards.
//! - [`Conversation::erase`] and [`Conversation::prune`] overwrite messages permanently;
//!   [`Conversation::verify`] recomputes the chain of hashes over everything stored.
//! - `Recto::import` (feature `format`) imports a transcript of another program.
//! - `recto::blocking` (feature `blocking`) has every method for programs without async.
//! - [`Error`] has the code of the contract ([`Error::code`]) and its JSON form.
//!
//! # Features
//!
//! | feature | default | effect |
//! |---|---|---|
//! | `bpe` | yes | the exact counters `o200k_base` and `cl100k_base`, and `Settings::default` |
//! | `sqlite` | yes | stores in SQLite files, and backups |
//! | `blocking` | yes | the module `blocking`, which has its own runtime |
//! | `postgres` | no | stores in PostgreSQL |
//! | `format` | no | import of transcripts; `recto::format` is the crate `recto-format` |
//! | `zstd` | no | with `format`: import of files that are compressed with zstd |
//!
//! The crate reports to `tracing`: spans for opening, requests, commits and maintenance, and a warning
//! for every error that does not reach a caller. Events contain ids, versions, counts and error codes, and
//! never message content, idempotency keys or addresses of stores.
//!
//! # Source
//!
//! | topic | file |
//! |---|---|
//! | create, find, list, rename, remove | `recto.rs` |
//! | methods of one conversation | `conversation.rs` |
//! | how a request becomes a version | `apply.rs`, `commit.rs` |
//! | how data is loaded on demand | `loaded.rs`, `row_reader.rs` |
//! | which conversations are open in this process | `open_slots.rs` |
//! | import of transcripts | `import.rs`, `import/steps.rs` |

mod apply;
mod attempts;
#[cfg(feature = "sqlite")]
mod backup;
#[cfg(feature = "blocking")]
pub mod blocking;
#[cfg(feature = "format")]
mod bound_thinking;
mod clock;
mod commit;
mod conversation;
mod erase;
mod error;
mod examination;
mod fork;
mod holder;
#[cfg(feature = "format")]
mod import;
mod loaded;
mod name;
mod open_slots;
mod packing;
mod policy;
mod progress;
mod prune;
mod reading;
mod recto;
mod remove;
mod row_reader;
mod salvage;
mod search;
mod store_copy;
mod sync;
mod temporary;
mod verify;

/// The engine: conversations as immutable values, without a store.
///
/// [`engine::Conversation`] is the value; [`Conversation`] is the handle of a
/// stored one. This module re-exports all of `recto-core`, including what stores need to save and load
/// conversations.
pub mod engine {
    pub use recto_core::*;
}

#[cfg(feature = "format")]
#[doc(inline)]
pub use recto_format as format;

#[cfg(feature = "bpe")]
pub use recto_core::Bpe;
pub use recto_core::Error as EngineError;
pub use recto_core::{
    Append, Approx, Arrange, ArrayState, BatchEnd, BatchIndex, BatchSnapshot, BatchStart, Blame,
    Carry, Clear, Code, Compress, Counter, Delete, Diff, Effect, Entries, Filter, Fit, Insert,
    Limits, LogIndex, Mark, MarkBlame, MarkMap, Message, MessageTotals, Note, Operation,
    OperationKind, Outcome, PINNED, Pick, Position, Query, QueryAt, Redo, Replace, ReplaceEntries,
    Request, Restore, Role, RoleSet, Rollback, SavedSettings, Scope, Settings, SharedPrefix, Stats,
    Step, Timestamp, Tool, ToolCall, Truncate, TypeIndices, Undo, Unmark, Version, VersionInfo,
    View, Warning, WarningCode,
};
pub use recto_store::Error as StoreError;
pub use recto_store::{Address, ConversationId, Link, MemoryStore, Store, Tenant, hash_of};

pub use self::apply::{Preview, WriteOptions};
#[cfg(feature = "sqlite")]
pub use self::backup::BackupReport;
pub use self::clock::Clock;
pub use self::conversation::{Conversation, Entry};
pub use self::erase::ErasedMessage;
pub use self::error::Error;
pub use self::examination::ExaminedConversation;
#[cfg(feature = "format")]
pub use self::import::{
    CancelFlag, Import, ImportName, ImportOptions, Imported, ImportedTranscript,
};
pub use self::name::check_name;
pub use self::policy::{Compression, Policy};
pub use self::progress::{Progress, ProgressFn};
pub use self::prune::{Keep, PruneReport};
pub use self::recto::{ConversationInfo, Options, Recto};
pub use self::salvage::SalvageReport;
pub use self::search::FoundMessage;
pub use self::store_copy::{
    DamagedConversation, NewerConversation, RenamedConversation, RestoreReport,
};
pub use self::temporary::Temporary;
pub use self::verify::VerifyReport;

/// The examples of the README, as tests.
#[cfg(all(doctest, feature = "bpe", feature = "sqlite", feature = "format"))]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The examples of `docs/rust.md`, as tests.
#[cfg(all(doctest, feature = "bpe", feature = "sqlite", feature = "format"))]
#[doc = include_str!("../../../docs/rust.md")]
struct RustGuide;
