//! Conversations in PostgreSQL, shared by any number of processes on any number of machines.
//!
//! ```text
//!   recto_format          the format number, and whether words are stored for the search
//!   recto_conversations   one row per conversation; a row without a name is kept only for its forks
//!   recto_parents         the direct ancestor of each fork, as in `lineage`, with an index
//!   recto_rewrites        how often rows of a tenant were rewritten
//!   recto_commits         recto_pages   recto_keys   recto_words      as in every store
//! ```
//!
//! Invariants:
//! - A request is accepted by inserting its row. The statement also selects and locks the row of the
//!   previous version. Removing and rewriting a conversation lock its newest row too. So exactly one of
//!   two writers that start from the same version succeeds, and no row is inserted after a removal or
//!   during a rewrite.
//! - Packing deletes the packed rows, and compares them with what was packed, before it stores their
//!   pages.
//! - The usual append is one statement: one round trip, one flush of the server's log.
//! - Requests find rows by keys that start with the tenant, and lock only rows. So the tables can be
//!   distributed over machines by tenant. There are two exceptions: the id of a conversation is looked up
//!   in all tenants; and erasing, pruning and cleaning lock whole tables.
//! - A commit contains an id of the write that inserted it (`attempt`). If the connection breaks, the write
//!   is repeated on another one: it succeeds, or the stored rows show that an earlier attempt has
//!   succeeded.
//! - Names and keys are bytes, so that every store accepts and orders the same ones.
//!
//! Error texts consist of this crate's words and a SQLSTATE, never of the server's message, which can
//! quote rows. Start with `commits.rs`; `attempts.rs` decides what is retried, `connections.rs` has the
//! pool.

mod attempts;
mod check;
mod commits;
mod connections;
mod conversations;
mod copies;
mod encryption;
mod fault;
mod keys;
mod numbers;
mod packing;
mod pages;
mod parameters;
mod remove;
mod rewrite;
mod schema;
mod search;
mod tenants;

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use crate::{
    Commit, ConversationId, ConversationRow, Error, Hit, IdempotencyKey, NewConversation, Page,
    PageKind, RestoredConversation, Rewrite, RewriteOf, Store, StoreFuture, StoredRows,
    SurveyedConversation, Tenant, Unpacked, WordSums,
};
use connections::Connections;
pub use fault::SqlStateCode;
use parameters::Parameters;
use tenants::Tenants;

/// A store that keeps conversations in a PostgreSQL database.
///
/// ```no_run
/// # async fn example() -> Result<(), recto_store::Error> {
/// use recto_store::{PostgresOptions, PostgresStore};
///
/// let store = PostgresStore::open("postgres://localhost/conversations", PostgresOptions::default()).await?;
/// # Ok(())
/// # }
/// ```
pub struct PostgresStore {
    connections: Connections,
    tenants: Tenants,
    /// Whether words are stored for the search.
    search: bool,
    erase_wait: Duration,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresStore({:?})", self.connections)
    }
}

/// Options of a PostgreSQL store. Fields may be added: construct it with `..PostgresOptions::default()`.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// Maximum number of connections. Default: 8.
    pub connections: usize,
    /// How long a request waits for a free connection before it fails. Default: 5 seconds.
    pub wait: Duration,
    /// How long erasing waits for older transactions that can still see the erased rows. After it,
    /// erasing returns [`CopiesLeft`](Error::CopiesLeft). Default: 10 seconds.
    pub erase_wait: Duration,
    /// How long a statement waits for a lock that another session holds. After it, the request fails and
    /// changes nothing. Default: 10 seconds.
    pub lock_timeout: Duration,
    /// How long the server may work on a statement. After it, the request fails and changes nothing.
    /// Erasing, verifying and opening work on whole tables and have no such limit. Default: 60 seconds.
    pub statement_timeout: Duration,
    /// How long a request waits for a server that does not answer, for example because it is stopped. After
    /// it, a read fails, and the [outcome of a write is unknown](Error::UnknownOutcome). It should be longer
    /// than `statement_timeout`, so that the server answers first if it can. Default: 90 seconds.
    pub answer_timeout: Duration,
    /// Whether a new store has a search index. Default: true. An existing store keeps what it was
    /// created with.
    pub search: bool,
}

impl Default for PostgresOptions {
    fn default() -> PostgresOptions {
        PostgresOptions {
            connections: 8,
            wait: Duration::from_secs(5),
            erase_wait: Duration::from_secs(10),
            lock_timeout: Duration::from_secs(10),
            statement_timeout: Duration::from_secs(60),
            answer_timeout: Duration::from_secs(90),
            search: true,
        }
    }
}

impl PostgresStore {
    /// Opens the store in a database. Creates its tables if they are missing, and migrates older ones.
    ///
    /// Parameters in the address override fields of the options:
    /// `postgres://localhost/conversations?lock_timeout=2s&statement_timeout=30s`. They are `connections`,
    /// `wait`, `erase_wait`, `lock_timeout`, `statement_timeout` and `answer_timeout`. A time has a unit:
    /// `ms`, `s` or `min`. If the address has `statement_timeout` and no `answer_timeout`, the latter is 30
    /// seconds longer.
    pub async fn open(address: &str, options: PostgresOptions) -> Result<PostgresStore, Error> {
        let Parameters { address, encryption, options } = Parameters::read(address, options)?;
        let connections = Connections::new(&address, encryption, &options)?;
        connections.check().await?;
        let search = schema::prepare(&connections, options.search).await?;
        let (tenants, erase_wait) = (Tenants::default(), options.erase_wait);
        Ok(PostgresStore { connections, tenants, search, erase_wait })
    }
}

impl crate::sealed::Sealed for PostgresStore {}

impl Store for PostgresStore {
    fn create(&self, new: NewConversation) -> StoreFuture<'_, ()> {
        Box::pin(self.create_conversation(new))
    }

    fn find<'a>(
        &'a self,
        tenant: &'a Tenant,
        name: &'a str,
    ) -> StoreFuture<'a, Option<ConversationRow>> {
        Box::pin(self.find_conversation(tenant, name))
    }

    fn get_all<'a>(
        &'a self,
        tenant: &'a Tenant,
        ids: Vec<ConversationId>,
    ) -> StoreFuture<'a, Vec<ConversationRow>> {
        Box::pin(self.get_conversations(tenant, ids))
    }

    fn list<'a>(
        &'a self,
        tenant: &'a Tenant,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<ConversationRow>> {
        Box::pin(self.list_conversations(tenant, after, limit))
    }

    fn rename<'a>(&'a self, tenant: &'a Tenant, from: &'a str, to: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(self.rename_conversation(tenant, from, to))
    }

    fn set_policy<'a>(
        &'a self,
        tenant: &'a Tenant,
        name: &'a str,
        policy: Option<String>,
    ) -> StoreFuture<'a, ()> {
        Box::pin(self.set_policy_of(tenant, name, policy))
    }

    fn remove_with<'a>(
        &'a self,
        tenant: &'a Tenant,
        name: &'a str,
        rewrites: Vec<RewriteOf>,
    ) -> StoreFuture<'a, ()> {
        Box::pin(self.remove_conversation(tenant, name, rewrites))
    }

    fn unpacked(&self, id: ConversationId, above: Option<u32>) -> StoreFuture<'_, Unpacked> {
        let attempt = move || self.read_commits(id, above);
        Box::pin(self.connections.read("reading commits", attempt))
    }

    fn pages(
        &self,
        id: ConversationId,
        kind: PageKind,
        numbers: Range<u32>,
        bodies: bool,
    ) -> StoreFuture<'_, Vec<Page>> {
        let attempt = move || self.read_pages(id, kind, numbers.clone(), bodies);
        Box::pin(self.connections.read("reading pages", attempt))
    }

    fn pages_of(
        &self,
        parts: Vec<(ConversationId, Range<u32>)>,
        kind: PageKind,
        bodies: bool,
    ) -> StoreFuture<'_, Vec<Vec<Page>>> {
        Box::pin(async move {
            let read = || self.read_pages_of(&parts, kind, bodies);
            self.connections.read("reading pages", read).await
        })
    }

    fn unpacked_of(&self, ids: Vec<ConversationId>) -> StoreFuture<'_, Vec<Unpacked>> {
        Box::pin(async move {
            self.connections.read("reading commits", || self.read_commits_of(&ids)).await
        })
    }

    fn commit(&self, commit: Commit) -> StoreFuture<'_, ()> {
        Box::pin(self.accept(commit))
    }

    fn commit_all(&self, commits: Vec<Commit>) -> StoreFuture<'_, ()> {
        Box::pin(self.accept_all(commits))
    }

    fn remember(&self, id: ConversationId, key: IdempotencyKey) -> StoreFuture<'_, ()> {
        Box::pin(self.keep_key(id, key))
    }

    fn key<'a>(
        &'a self,
        id: ConversationId,
        key: &'a str,
    ) -> StoreFuture<'a, Option<IdempotencyKey>> {
        let attempt = move || self.find_key(id, key);
        Box::pin(self.connections.read("looking for an idempotency key", attempt))
    }

    fn search<'a>(
        &'a self,
        tenant: &'a Tenant,
        words: &'a [String],
        limit: usize,
    ) -> StoreFuture<'a, Vec<Hit>> {
        Box::pin(self.find_words(tenant, words, limit))
    }

    fn rewrite(&self, id: ConversationId, at: u32, rewrite: Rewrite) -> StoreFuture<'_, ()> {
        Box::pin(self.replace_rows(RewriteOf { conversation: id, at, rewrite }))
    }

    fn clean(&self) -> StoreFuture<'_, ()> {
        Box::pin(self.clean_tables())
    }

    fn forks(&self, id: ConversationId) -> StoreFuture<'_, Vec<ConversationRow>> {
        Box::pin(self.find_forks(id))
    }

    fn survey(&self) -> StoreFuture<'_, Vec<SurveyedConversation>> {
        Box::pin(self.survey_conversations())
    }

    fn indexed_words<'a>(&'a self, tenant: &'a Tenant) -> StoreFuture<'a, WordSums> {
        Box::pin(self.read_index(tenant))
    }

    fn rows(&self, id: ConversationId) -> StoreFuture<'_, StoredRows> {
        Box::pin(self.connections.read("reading rows", move || self.read_rows(id)))
    }

    fn restore(&self, conversations: Vec<RestoredConversation>) -> StoreFuture<'_, ()> {
        Box::pin(self.restore_conversations(conversations))
    }

    fn keeps_words(&self) -> bool {
        self.search
    }

    fn check(&self) -> StoreFuture<'_, Vec<String>> {
        Box::pin(self.check_tables())
    }

    fn size(&self) -> StoreFuture<'_, Option<u64>> {
        Box::pin(self.database_size())
    }
}
