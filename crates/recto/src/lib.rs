//! The front door of Recto: conversations of LLM agents that survive.
//!
//! Recto keeps every message of a conversation in an append-only log and decides which of them the
//! model reads. This crate ties the engine (`recto-core`, re-exported here) to a store: memory, a
//! SQLite file, or PostgreSQL.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use recto::{Fit, Message, Recto, Settings, Version};
//!
//! let recto = Recto::open("memory:").await?; // or "sqlite:talks.db", or "postgres://…"
//! let talk = recto.create("support", Settings::default()).await?;
//! let report = "Checkout fails in the European region since this morning!";
//! talk.append([Message::system("You are on call."), Message::user(report)]).await?;
//! talk.append([Message::assistant("Since when?")]).await?;
//!
//! // What was acknowledged is durable, and every version can be read again.
//! talk.apply(Fit::within(16)).await?;
//! assert_eq!(talk.messages().await?.len(), 2);
//! assert_eq!(talk.messages_at(Version(2)).await?.len(), 3);
//!
//! let fork = talk.fork("what if", Version(1)).await?; // copies no messages
//! fork.append([Message::assistant("Which error?")]).await?;
//! # Ok::<(), recto::Error>(())
//! # }).unwrap();
//! ```
//!
//! | to find | look at |
//! |---|---|
//! | opening, creating, listing, searching | `recto.rs` |
//! | what can be done with one conversation | `stored.rs` |
//! | how a request is accepted | `apply.rs`, `commit.rs` |
//! | how only what is asked for is read | `opened.rs`, `shelf.rs` |
//! | transcripts into a store (feature `format`) | `import.rs` |

mod apply;
mod backup;
pub mod blocking;
mod clock;
mod commit;
mod erase;
mod error;
mod fork;
mod holder;
#[cfg(feature = "format")]
mod import;
mod open_slots;
mod opened;
mod packing;
mod policy;
mod progress;
mod prune;
mod recto;
mod shelf;
mod stored;
mod sync;
mod temporary;
mod verify;

pub use recto_core::Error as EngineError;
pub use recto_core::*;
pub use recto_store::Error as StoreError;
pub use recto_store::{Address, ConversationId, Link, MemoryStore, Store, Tenant, hash_of};

pub use self::apply::{Preview, Write};
pub use self::backup::Restored;
pub use self::clock::Clock;
pub use self::erase::Receipt;
pub use self::error::Error;
#[cfg(feature = "format")]
pub use self::import::{Import, Imported, Naming};
pub use self::policy::{Compression, Policy};
pub use self::progress::{Progress, Watcher};
pub use self::prune::{Keep, Pruned};
pub use self::recto::{ConversationInfo, FoundMessage, Options, Recto};
pub use self::stored::{Entry, StoredConversation};
pub use self::temporary::{Temporary, end_all, end_expired, with_temporary};
pub use self::verify::Report;

/// The README's examples, as tests.
#[cfg(all(doctest, feature = "sqlite", feature = "format"))]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The examples of `docs/rust.md`, as tests.
#[cfg(all(doctest, feature = "sqlite", feature = "format"))]
#[doc = include_str!("../../../docs/rust.md")]
struct RustGuide;
