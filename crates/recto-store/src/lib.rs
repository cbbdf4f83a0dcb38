//! Stores of conversations: in memory, in a SQLite file, in PostgreSQL. All three behave alike.
//!
//! A store holds rows and does not interpret them: it has no operations, views or messages. The
//! crate `recto` writes the rows; `docs/format.md` describes them.
//!
//! ```text
//!   conversations   name, settings, and the conversation it was forked from
//!   commits         the newest accepted requests, one row each: the version and its new log entries
//!   pages           older versions and log entries, many per row, compressed
//!   keys            idempotency keys of requests
//!   words           words of log entries, for the search
//! ```
//!
//! An accepted request is one row of `commits`: the row of the next version. Writers use optimistic
//! concurrency: of two writers that start from one version, the insert succeeds for exactly one. So
//! versions have no gaps. The newest row of a conversation is never packed into a page, so the newest
//! version is always the greatest in `commits`.
//!
//! Start with [`Store`], the trait that the three stores implement, then read [`MemoryStore`], the
//! shortest of them. `ARCHITECTURE.md` of the repository lists the files that a new store needs.

mod address;
mod checks;
mod entry_meta;
mod error;
mod ids;
mod lineage;
mod link;
mod memory;
mod new_id;
mod pack;
#[cfg(feature = "postgres")]
mod postgres;
mod rows;
#[doc(hidden)]
pub mod sealed;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;
mod store_future;
mod words;

pub use address::Address;
pub use checks::{MAX_NAME, check_name};
pub use entry_meta::EntryMeta;
pub use error::{Cause, Error};
pub use ids::{ConversationId, Tenant};
pub use lineage::{Ancestor, Lineage};
pub use link::{Link, hash_of};
pub use memory::MemoryStore;
pub use new_id::new_id;
pub use pack::{CommitBody, Entry, Unreadable, pack_commit, pack_entries, pack_records};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresOptions, PostgresStore, SqlStateCode};
pub use rows::{
    Commit, CommitRow, ConversationRow, Head, IdempotencyKey, KnownRows, NewConversation, Page,
    PageKind, ReadCommit, RestoredConversation, Rewrite, RewriteOf, Seal, StoredRows,
    SurveyedConversation, Unpacked, WordsOf,
};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore};
pub use store::Store;
pub use store_future::StoreFuture;
pub use words::{Hit, MAX_WORD, WordSums, Words, words_of};
