//! What every store can do.

use std::fmt::Debug;
use std::ops::Range;
use std::path::Path;

use crate::{
    Answer, Commit, CommitRow, ConversationId, ConversationRow, Hit, IdempotencyKey,
    NewConversation, Page, PageKind, Rewrite, StoredRows, Tenant,
};

/// A place where conversations are kept. Rows go in and come out as they are.
///
/// What always holds, whatever fails and whoever else writes:
/// - an `Ok` means durable, and nothing is visible before;
/// - a method does all of what it says or nothing, and nothing if its answer is dropped before it is
///   awaited;
/// - rows move from commits to pages, never back: who looks for a version or an entry in the
///   commits first and in the pages after that, finds it.
pub trait Store: Debug + Send + Sync {
    /// Creates a conversation. Refused if the tenant has one of that name, if the id is taken, or if
    /// an ancestor is gone or another tenant's.
    ///
    /// A name has 1 to [`MAX_NAME`](crate::MAX_NAME) bytes, and any characters but U+0000.
    fn create(&self, new: NewConversation) -> Answer<'_, ()>;

    /// Finds a conversation by its name.
    fn find<'a>(&'a self, tenant: &'a Tenant, name: &'a str)
    -> Answer<'a, Option<ConversationRow>>;

    /// A conversation of a tenant by what it is known by. None if it was removed, even if its rows are
    /// kept for its forks.
    fn get<'a>(
        &'a self,
        tenant: &'a Tenant,
        id: ConversationId,
    ) -> Answer<'a, Option<ConversationRow>>;

    /// Conversations in the order of the bytes of their names: those behind the name `after`, at most `limit`.
    fn list<'a>(
        &'a self,
        tenant: &'a Tenant,
        after: Option<&'a str>,
        limit: usize,
    ) -> Answer<'a, Vec<ConversationRow>>;

    /// Gives a conversation another name. Refused if the tenant has one of that name.
    fn rename<'a>(&'a self, tenant: &'a Tenant, from: &'a str, to: &'a str) -> Answer<'a, ()>;

    /// Sets what is wanted of a conversation: a text that the store does not look into.
    fn set_policy<'a>(
        &'a self,
        tenant: &'a Tenant,
        name: &'a str,
        policy: Option<String>,
    ) -> Answer<'a, ()>;

    /// Takes a conversation away: its name at once, its rows unless forks share them. It takes no
    /// more requests; what forks share can still be read and rewritten. Copies
    /// may be left in free space until somebody [cleans](Self::clean).
    fn remove<'a>(&'a self, tenant: &'a Tenant, name: &'a str) -> Answer<'a, ()> {
        self.remove_at(tenant, name, None)
    }

    /// [Removes](Self::remove) a conversation, provided that its newest version still is `at`.
    fn remove_at<'a>(
        &'a self,
        tenant: &'a Tenant,
        name: &'a str,
        at: Option<u32>,
    ) -> Answer<'a, ()>;

    /// The commits above version `above` that are not packed, in order; there is always at least
    /// the newest, unless `above` is that one.
    fn commits(
        &self,
        conversation: ConversationId,
        above: Option<u32>,
    ) -> Answer<'_, Vec<CommitRow>>;

    /// The pages that hold some of these numbers, in order. Pages of a kind do not overlap.
    fn pages(
        &self,
        conversation: ConversationId,
        kind: PageKind,
        numbers: Range<u32>,
        bodies: bool,
    ) -> Answer<'_, Vec<Page>>;

    /// Accepts a request, if its version is the one after the newest and its key is new. Its own row
    /// cannot be among those that it packs.
    fn commit(&self, commit: Commit) -> Answer<'_, ()>;

    /// Keeps a key for a request that changed nothing.
    fn remember(&self, conversation: ConversationId, key: IdempotencyKey) -> Answer<'_, ()>;

    /// What a key stood for.
    fn key<'a>(
        &'a self,
        conversation: ConversationId,
        key: &'a str,
    ) -> Answer<'a, Option<IdempotencyKey>>;

    /// Log entries that have all these words, those of a conversation together and its newest first,
    /// at most `limit`. Which conversation comes first is up to the store. `within` gives the
    /// conversations to look in, and how much of each log. No words find nothing.
    fn search<'a>(
        &'a self,
        tenant: &'a Tenant,
        words: &'a [String],
        within: Option<&'a [(ConversationId, u32)]>,
        limit: usize,
    ) -> Answer<'a, Vec<Hit>>;

    /// Puts rows in the place of others, provided that the newest version still is `at`, that all of
    /// the others are there ([`RowsChanged`](crate::Error::RowsChanged) if not: they may have been
    /// packed), and that there is no fork that was not asked. What was there before is gone for good
    /// when this returns: no copy is left in free space, in the journal or in the search index.
    fn rewrite(&self, conversation: ConversationId, at: u32, rewrite: Rewrite) -> Answer<'_, ()>;

    /// Leaves no copy behind of what was rewritten or removed before: it writes the whole store
    /// anew. To be asked for after removing, and after [`CopiesLeft`](crate::Error::CopiesLeft).
    fn clean(&self) -> Answer<'_, ()>;

    /// The forks that share rows of a conversation, directly or through others, by name.
    fn forks(&self, conversation: ConversationId) -> Answer<'_, Vec<ConversationRow>>;

    /// Whose conversations there are, in order.
    fn tenants(&self) -> Answer<'_, Vec<Tenant>>;

    /// All rows of a conversation, as they were at one moment.
    fn rows(&self, conversation: ConversationId) -> Answer<'_, StoredRows>;

    /// Creates a conversation with rows that another store had. Its ancestors must be there.
    fn restore(&self, new: NewConversation, rows: StoredRows) -> Answer<'_, ()>;

    /// Copies everything into a new file at once, if the store has a way of its own to do that;
    /// `false` if it has none. Refused if there is a file of that name.
    fn copy_to<'a>(&'a self, _path: &'a Path) -> Answer<'a, bool> {
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Whether it keeps words for the search.
    fn keeps_words(&self) -> bool;

    /// Looks for damage below the rows: what the database itself can check.
    fn check(&self) -> Answer<'_, Vec<String>>;

    /// How many bytes it takes on the disk, if it is on one.
    fn size(&self) -> Answer<'_, Option<u64>>;
}
