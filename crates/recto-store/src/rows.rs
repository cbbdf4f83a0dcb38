//! The rows of a store.

use std::collections::BTreeMap;

use crate::{Ancestor, ConversationId, Error, Lineage, Link, Tenant, Words, hash_of};

/// A conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationRow {
    /// The permanent id.
    pub id: ConversationId,
    /// The name.
    pub name: String,
    /// When it was created or forked, in milliseconds since 1970.
    pub created: i64,
    /// The settings, as JSON. They never change.
    pub settings: String,
    /// The policy, as JSON. It can change at any time.
    pub policy: Option<String>,
    /// The conversations that it was forked from, the oldest first.
    pub lineage: Lineage,
    /// Its newest version.
    pub head: Head,
}

/// A version of a conversation, without its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The version number.
    pub version: u32,
    /// Number of log entries.
    pub entries: u32,
    /// The hash chain up to this version; see [`Link`].
    pub link: Link,
    /// Commit time in milliseconds since 1970, by the writer's clock.
    pub committed: i64,
}

/// An accepted request that is not packed into a page yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitRow {
    /// The version that the request created.
    pub head: Head,
    /// The record of the version and its new log entries; see [`CommitBody`](crate::CommitBody).
    pub body: Vec<u8>,
}

/// A commit with its version, or the damage of its row.
pub type ReadCommit = (u32, Result<CommitRow, Error>);

/// The commits that are not packed, and how often rows of the store were rewritten before they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unpacked {
    /// The commits with their versions, in order. A damaged one is an error.
    pub commits: Vec<ReadCommit>,
    /// Increases with every [rewrite](crate::Store::rewrite) and every
    /// [restoration](crate::Store::restore) of a conversation of the same tenant. Rows that were read when it
    /// was lower may hold messages that are erased or pruned by now.
    pub rewrites: u64,
}

/// The content of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PageKind {
    /// Versions.
    Records,
    /// Log entries.
    Entries,
}

/// Consecutive versions or log entries, compressed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Whether it holds versions or log entries.
    pub kind: PageKind,
    /// The number of the first version or entry.
    pub first: u32,
    /// Number of versions or entries.
    pub count: u32,
    /// Links of the versions, or metadata of the entries, readable without the body.
    pub meta: Vec<u8>,
    /// The compressed records or messages; empty if the body was not requested.
    pub body: Vec<u8>,
}

impl Page {
    /// One past the last number.
    pub fn end(&self) -> u32 {
        self.first.saturating_add(self.count)
    }
}

/// A new conversation, with version 0 or the version that a fork starts from.
#[derive(Clone, Debug)]
pub struct NewConversation {
    /// The permanent id.
    pub id: ConversationId,
    /// The tenant.
    pub tenant: Tenant,
    /// The name.
    pub name: String,
    /// Creation time in milliseconds since 1970.
    pub created: i64,
    /// The settings, as JSON.
    pub settings: String,
    /// The policy, as JSON.
    pub policy: Option<String>,
    /// The conversations that it is forked from, the oldest first. All except the last one must be the
    /// lineage of the last one, because only the last one is stored.
    pub lineage: Vec<Ancestor>,
    /// Its first commit.
    pub first: CommitRow,
    /// The words of its log entries, for the search.
    pub words: Vec<WordsOf>,
}

/// An accepted request to store. It is stored completely or not at all.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The conversation.
    pub conversation: ConversationId,
    /// The row of the version after the newest one.
    pub row: CommitRow,
    /// The idempotency key.
    pub key: Option<IdempotencyKey>,
    /// The words of the new log entries, for the search.
    pub words: Vec<WordsOf>,
    /// Older rows that are packed into pages in the same transaction.
    pub seal: Option<Seal>,
    /// The number of rewrites when the writer read the rows. If it has changed, the commit fails with
    /// `RowsChanged`, because the request may depend on a message that is erased by now. `None` skips the
    /// check.
    pub rewrites: Option<u64>,
}

/// Older commits, packed into pages.
#[derive(Clone, Debug)]
pub struct Seal {
    /// The rows of the versions below this one are deleted.
    pub below: u32,
    /// The pages that replace them.
    pub pages: Vec<Page>,
    /// The bodies of the packed rows as the writer has read them, in order. If another writer has
    /// packed or rewritten some of them since, the commit fails with `RowsChanged`, because it could restore
    /// erased messages. `None` skips the check.
    pub rows: Option<Vec<Vec<u8>>>,
}

impl Seal {
    /// Checks that the stored rows, in order, are those that the writer has read.
    pub(crate) fn check<'a>(&self, bodies: impl Iterator<Item = &'a [u8]>) -> Result<(), Error> {
        match &self.rows {
            Some(known) if !bodies.eq(known.iter().map(|body| &**body)) => Err(Error::RowsChanged),
            _ => Ok(()),
        }
    }
}

/// An idempotency key with the request that used it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The key, chosen by the caller.
    pub key: String,
    /// Hash of the request. It detects another request with the same key.
    pub request: [u8; 32],
    /// The newest version after the request.
    pub version: u32,
    /// Whether the request created that version.
    pub changed: bool,
}

/// All rows of a conversation except its conversation row, for a copy in another store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredRows {
    /// The commits that are not packed, in order.
    pub commits: Vec<CommitRow>,
    /// The pages.
    pub pages: Vec<Page>,
    /// The idempotency keys.
    pub keys: Vec<IdempotencyKey>,
}

/// A conversation to restore: its row, and all its other rows.
#[derive(Clone, Debug)]
pub struct RestoredConversation {
    /// The conversation row and the first commit.
    pub new: NewConversation,
    /// Whether the conversation was removed and its rows are kept for its forks. Then it gets no name.
    pub is_removed: bool,
    /// Its rows.
    pub rows: StoredRows,
}

/// A conversation as a survey of the store finds it.
#[derive(Clone, Debug)]
pub struct SurveyedConversation {
    /// The id. If the row is damaged, it may be wrong.
    pub id: ConversationId,
    /// The tenant. If the row is damaged, it may be wrong.
    pub tenant: Tenant,
    /// The name; `None` if the conversation was removed and its rows are kept for its forks. If the row
    /// is damaged, it may be wrong.
    pub name: Option<String>,
    /// The row, or its damage.
    pub row: Result<ConversationRow, Error>,
}

/// The words of one log entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordsOf {
    /// The entry.
    pub entry: u32,
    /// Its words, made by [`Words::of`]. The search may not find words that were made in another way.
    pub words: Words,
}

/// Rows that replace others, to erase or prune messages.
#[derive(Clone, Debug, Default)]
pub struct Rewrite {
    /// Commits; each replaces the one of the same version.
    pub commits: Vec<CommitRow>,
    /// Pages; each replaces the one of the same kind with the same first number.
    pub pages: Vec<Page>,
    /// Entries to remove from the search index.
    pub forget: Vec<u32>,
    /// The forks whose views were checked. If another fork exists, the rewrite fails with `Forked`, because
    /// that fork could lose messages. `None` skips the check.
    pub forks: Option<Vec<ConversationId>>,
    /// Hashes of the rows that these were made from. If the stored rows differ, the rewrite fails with
    /// `RowsChanged`, because it could restore messages that were erased since. `None` skips the check.
    pub known: Option<KnownRows>,
}

/// A rewrite of a conversation whose newest version is `at`.
#[derive(Clone, Debug)]
pub struct RewriteOf {
    /// The conversation.
    pub conversation: ConversationId,
    /// Its newest version. The rewrite fails with `VersionConflict` if it is another one.
    pub at: u32,
    /// The rows to replace.
    pub rewrite: Rewrite,
}

/// Hashes of rows as they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownRows {
    commits: BTreeMap<u32, [u8; 32]>,
    pages: BTreeMap<(PageKind, u32), [u8; 32]>,
}

impl Page {
    fn hash(&self) -> [u8; 32] {
        let length = (self.meta.len() as u64).to_le_bytes();
        hash_of(&[&length[..], &self.meta, &self.body].concat())
    }
}

impl Rewrite {
    /// Adds a commit that replaces one that was read.
    pub fn replace_commit(&mut self, read: &CommitRow, body: Vec<u8>) {
        let known = self.known.get_or_insert_default();
        known.commits.insert(read.head.version, hash_of(&read.body));
        self.commits.push(CommitRow { head: read.head, body });
    }

    /// Adds a page that replaces one that was read.
    pub fn replace_page(&mut self, read: &Page, page: Page) {
        let known = self.known.get_or_insert_default();
        known.pages.insert((read.kind, read.first), read.hash());
        self.pages.push(page);
    }

    /// Checks that the commit to replace exists, and that it is the one that was read or already is the
    /// new one, which happens when an attempt is repeated.
    pub(crate) fn check_commit(
        &self,
        new: &CommitRow,
        found: Option<&CommitRow>,
    ) -> Result<(), Error> {
        let found = found.ok_or(Error::RowsChanged)?;
        let Some(known) = &self.known else { return Ok(()) };
        let is_known = known.commits.get(&new.head.version) == Some(&hash_of(&found.body));
        if is_known || found.body == new.body { Ok(()) } else { Err(Error::RowsChanged) }
    }

    /// Checks a page to replace in the same way.
    pub(crate) fn check_page(&self, new: &Page, found: Option<&Page>) -> Result<(), Error> {
        let found = found.ok_or(Error::RowsChanged)?;
        let Some(known) = &self.known else { return Ok(()) };
        let is_known = known.pages.get(&(new.kind, new.first)) == Some(&found.hash());
        if is_known || found == new { Ok(()) } else { Err(Error::RowsChanged) }
    }

    /// Checks that the rewrite takes all forks into account.
    pub(crate) fn check_forks(
        &self,
        forks: impl IntoIterator<Item = ConversationId>,
    ) -> Result<(), Error> {
        let Some(known) = &self.forks else { return Ok(()) };
        match forks.into_iter().all(|fork| known.contains(&fork)) {
            true => Ok(()),
            false => Err(Error::Forked),
        }
    }
}
