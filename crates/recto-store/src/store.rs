//! The trait that every store implements.

use std::fmt::Debug;
use std::ops::Range;
use std::path::Path;

use crate::{
    Commit, CommitRow, ConversationId, ConversationRow, Hit, IdempotencyKey, NewConversation, Page,
    PageKind, RestoredConversation, Rewrite, RewriteOf, StoreFuture, StoredRows,
    SurveyedConversation, Tenant, Unpacked, WordSums, WordsOf,
};

/// A store of conversations. It returns rows as they were written.
///
/// Invariants, also after failures and with other writers at the same time:
/// - `Ok` means durable; nothing is visible before.
/// - A method has all of its effects or none, and none if its future is never awaited.
/// - Rows move from commits to pages, never back. A reader that looks for a version or an entry in
///   the commits first and then in the pages finds it.
///
/// The trait is sealed: outside of this crate, only tests implement it.
pub trait Store: Debug + Send + Sync + crate::sealed::Sealed {
    /// Creates a conversation. Fails if the tenant has one of that name, if the id exists, or if its last
    /// ancestor was removed or belongs to another tenant.
    ///
    /// A name has 1 to [`MAX_NAME`](crate::MAX_NAME) bytes, and any characters except U+0000.
    fn create(&self, new: NewConversation) -> StoreFuture<'_, ()>;

    /// Finds a conversation by its name.
    fn find<'a>(
        &'a self,
        tenant: &'a Tenant,
        name: &'a str,
    ) -> StoreFuture<'a, Option<ConversationRow>>;

    /// Finds a conversation of a tenant by its id. `None` if it was removed, even if its rows remain
    /// for its forks.
    fn get<'a>(
        &'a self,
        tenant: &'a Tenant,
        id: ConversationId,
    ) -> StoreFuture<'a, Option<ConversationRow>> {
        Box::pin(async move { Ok(self.get_all(tenant, vec![id]).await?.pop()) })
    }

    /// [Finds](Self::get) several conversations of a tenant by their ids, each given once. Removed ones are not
    /// in the result, and the order is not defined. Ancestors that they share are read once.
    fn get_all<'a>(
        &'a self,
        tenant: &'a Tenant,
        ids: Vec<ConversationId>,
    ) -> StoreFuture<'a, Vec<ConversationRow>>;

    /// Lists at most `limit` conversations whose names follow `after`, ordered by the bytes of the name.
    fn list<'a>(
        &'a self,
        tenant: &'a Tenant,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<ConversationRow>>;

    /// Renames a conversation. Fails if the tenant has one of that name.
    fn rename<'a>(&'a self, tenant: &'a Tenant, from: &'a str, to: &'a str) -> StoreFuture<'a, ()>;

    /// Sets the policy of a conversation: a text that the store does not interpret.
    fn set_policy<'a>(
        &'a self,
        tenant: &'a Tenant,
        name: &'a str,
        policy: Option<String>,
    ) -> StoreFuture<'a, ()>;

    /// Removes a conversation: its name at once, its rows unless forks share them. It accepts no more
    /// requests; rows that forks share can still be read and rewritten. A SQLite store overwrites the
    /// deleted rows. PostgreSQL keeps copies in free space until the store is [cleaned](Self::clean).
    fn remove<'a>(&'a self, tenant: &'a Tenant, name: &'a str) -> StoreFuture<'a, ()> {
        self.remove_with(tenant, name, Vec::new())
    }

    /// [Removes](Self::remove) a conversation and replaces rows, all of it or nothing. The rewrites concern
    /// conversations whose rows stay for forks: the removed one and removed ancestors. If one of them fails,
    /// for example because its newest version is another one, nothing is removed.
    fn remove_with<'a>(
        &'a self,
        tenant: &'a Tenant,
        name: &'a str,
        rewrites: Vec<RewriteOf>,
    ) -> StoreFuture<'a, ()>;

    /// The commits above version `above` that are not packed, in order. They include the newest one,
    /// unless `above` is that one.
    fn commits(
        &self,
        conversation: ConversationId,
        above: Option<u32>,
    ) -> StoreFuture<'_, Vec<CommitRow>> {
        Box::pin(async move {
            let unpacked = self.unpacked(conversation, above).await?;
            unpacked.commits.into_iter().map(|(_, commit)| commit).collect()
        })
    }

    /// The [commits](Self::commits) above a version, and the number of rewrites before they were read. A
    /// damaged commit is an error in its place, and the others can be read. If the number has increased, a
    /// process must drop the rows that it holds in memory, because they may contain erased messages.
    fn unpacked(
        &self,
        conversation: ConversationId,
        above: Option<u32>,
    ) -> StoreFuture<'_, Unpacked>;

    /// The pages that contain some of these numbers, in order. Pages of one kind do not overlap.
    /// Without `bodies`, the bodies are empty.
    fn pages(
        &self,
        conversation: ConversationId,
        kind: PageKind,
        numbers: Range<u32>,
        bodies: bool,
    ) -> StoreFuture<'_, Vec<Page>>;

    /// The [pages](Self::pages) of several conversations of a tenant: for each, those that contain some of its
    /// numbers.
    fn pages_of(
        &self,
        parts: Vec<(ConversationId, Range<u32>)>,
        kind: PageKind,
        bodies: bool,
    ) -> StoreFuture<'_, Vec<Vec<Page>>> {
        Box::pin(async move {
            let mut found = Vec::with_capacity(parts.len());
            for (conversation, numbers) in parts {
                found.push(self.pages(conversation, kind, numbers, bodies).await?);
            }
            Ok(found)
        })
    }

    /// All [unpacked](Self::unpacked) commits of several conversations of a tenant.
    fn unpacked_of(&self, conversations: Vec<ConversationId>) -> StoreFuture<'_, Vec<Unpacked>> {
        Box::pin(async move {
            let mut found = Vec::with_capacity(conversations.len());
            for conversation in conversations {
                found.push(self.unpacked(conversation, None).await?);
            }
            Ok(found)
        })
    }

    /// Accepts a request if its version follows the newest one and its idempotency key is new. A
    /// commit can pack older rows, but not its own.
    fn commit(&self, commit: Commit) -> StoreFuture<'_, ()>;

    /// Accepts several requests in order, with as few syncs as the store can. After an error, some of the
    /// first ones may be stored.
    fn commit_all(&self, commits: Vec<Commit>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            for commit in commits {
                self.commit(commit).await?;
            }
            Ok(())
        })
    }

    /// Stores the idempotency key of a request that changed nothing.
    fn remember(&self, conversation: ConversationId, key: IdempotencyKey) -> StoreFuture<'_, ()>;

    /// Finds an idempotency key.
    fn key<'a>(
        &'a self,
        conversation: ConversationId,
        key: &'a str,
    ) -> StoreFuture<'a, Option<IdempotencyKey>>;

    /// Finds at most `limit` log entries that contain all these words: the entries of the newest conversation
    /// first, and of each conversation the newest entry first. An empty list of words finds nothing.
    fn search<'a>(
        &'a self,
        tenant: &'a Tenant,
        words: &'a [String],
        limit: usize,
    ) -> StoreFuture<'a, Vec<Hit>>;

    /// Replaces rows if the newest version is `at`, if all rows to be replaced exist
    /// ([`RowsChanged`](crate::Error::RowsChanged) otherwise: they may have been packed), and if the
    /// rewrite takes all forks into account. When it returns `Ok`, no copy of the old rows is left in
    /// free space, in the journal or in the search index.
    fn rewrite(
        &self,
        conversation: ConversationId,
        at: u32,
        rewrite: Rewrite,
    ) -> StoreFuture<'_, ()>;

    /// Writes the whole store again, so that no copy of rewritten or removed rows is left and free space
    /// is returned. Needed after removing conversations from PostgreSQL and after [`CopiesLeft`](crate::Error::CopiesLeft).
    fn clean(&self) -> StoreFuture<'_, ()>;

    /// Checks the structures of the search index, and returns the damage. By default none is found.
    fn check_words(&self) -> StoreFuture<'_, Vec<String>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Empties the search index, so that [`add_words`](Self::add_words) can fill it again. Returns whether it
    /// did: by default a store keeps its index.
    fn clear_words(&self) -> StoreFuture<'_, bool> {
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Adds the words of log entries to the search index, after [`clear_words`](Self::clear_words).
    fn add_words(
        &self,
        _conversation: ConversationId,
        _words: Vec<WordsOf>,
    ) -> StoreFuture<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Builds damaged indexes of conversations again, from their rows, so that conversations can be created.
    /// Does nothing by default. Fails if the rows are damaged too.
    fn rebuild_indexes(&self) -> StoreFuture<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// The forks that share rows of a conversation, directly or through other forks, ordered by name.
    fn forks(&self, conversation: ConversationId) -> StoreFuture<'_, Vec<ConversationRow>>;

    /// All conversations of all tenants, ancestors before their forks. It includes damaged ones, and
    /// removed ones whose rows are kept for forks.
    fn survey(&self) -> StoreFuture<'_, Vec<SurveyedConversation>>;

    /// The words of all entries of a tenant that the search index contains. Empty without an index.
    fn indexed_words<'a>(&'a self, tenant: &'a Tenant) -> StoreFuture<'a, WordSums>;

    /// All rows of a conversation, read in one snapshot.
    fn rows(&self, conversation: ConversationId) -> StoreFuture<'_, StoredRows>;

    /// Creates conversations with rows of another store, all of them or none. The ancestors of each must
    /// exist or come before it.
    fn restore(&self, conversations: Vec<RestoredConversation>) -> StoreFuture<'_, ()>;

    /// Copies everything into a new file if the store supports that; returns `false` if it does not.
    /// Fails if the file exists.
    fn copy_to<'a>(&'a self, _path: &'a Path) -> StoreFuture<'a, bool> {
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Whether the store has a search index.
    fn keeps_words(&self) -> bool;

    /// Runs the checks of the database itself, and returns the damage it finds.
    fn check(&self) -> StoreFuture<'_, Vec<String>>;

    /// Size on disk in bytes, if the store is on a disk.
    fn size(&self) -> StoreFuture<'_, Option<u64>>;
}
