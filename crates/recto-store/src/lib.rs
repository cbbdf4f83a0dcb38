//! Where conversations are kept: in memory, in a SQLite file, in PostgreSQL. All three behave alike.
//!
//! A store keeps rows and knows nothing of what is in them: which operations there are, what a view
//! is, how messages look. The crate `recto` writes the rows; `docs/format.md` draws them.
//!
//! ```text
//!   conversations   a name, its settings, and which other conversations it was forked from
//!   commits         the newest accepted requests, a row each: what the version is, what it adds
//!   pages           older ones, many in a row, packed together: records and log entries apart
//!   keys            which request an idempotency key stood for
//!   words           what the search finds
//! ```
//!
//! A request is one row. It is accepted when the row is durable, and there is one place for it: the
//! row of the next version. So versions are dense, and of two writers who saw the same version
//! exactly one wins. The newest row of a conversation is never packed into a page, so the newest
//! version is always the greatest in `commits`.
//!
//! Start with [`Store`], which the three stores implement, then read [`MemoryStore`], the shortest.

mod address;
mod answer;
mod checks;
mod error;
mod link;
mod memory;
mod pack;
#[cfg(feature = "postgres")]
mod postgres;
mod rows;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;
mod words;

pub use address::Address;
pub use answer::Answer;
pub use checks::MAX_NAME;
pub use error::Error;
pub use link::{Link, hash_of};
pub use memory::MemoryStore;
pub use pack::{CommitBody, Entry, EntryMeta, Unreadable, pack_commit, pack_entries, pack_records};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresOptions, PostgresStore};
pub use rows::{
    Ancestor, Commit, CommitRow, ConversationId, ConversationRow, Head, Hit, IdempotencyKey,
    KnownRows, NewConversation, Page, PageKind, Rewrite, Seal, StoredRows, Tenant, WordsOf,
};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore};
pub use store::Store;
pub use words::{MAX_WORD, Words, words_of};
