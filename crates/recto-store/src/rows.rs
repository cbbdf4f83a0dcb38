//! The rows that stores keep.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::{Error, Link, Words, hash_of};

/// What a conversation is known by, for ever. Names can change; this does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConversationId(pub Uuid);

impl fmt::Display for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ConversationId {
    type Err = Error;

    /// Reads the form that `Display` writes: `8-4-4-4-12` hexadecimal digits, in either case.
    fn from_str(text: &str) -> Result<ConversationId, Error> {
        let id = Uuid::try_parse(text).ok().filter(|_| text.len() == 36);
        let reason =
            || "be written like this; use the form 8-4-4-4-12 of hexadecimal digits".into();
        id.map(ConversationId)
            .ok_or_else(|| Error::InvalidText { what: "conversation id", reason: reason() })
    }
}

/// Whose conversations they are. Names are unique for one tenant, and no tenant sees another's.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tenant(pub String);

/// A conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationRow {
    /// What it is known by.
    pub id: ConversationId,
    /// What people call it.
    pub name: String,
    /// When it was created or forked, in milliseconds since 1970.
    pub created: i64,
    /// How it is set up, as JSON. It never changes.
    pub settings: String,
    /// What is wanted of it, as JSON. It may change at any time.
    pub policy: Option<String>,
    /// The conversations that it was forked from, the oldest first.
    pub lineage: Vec<Ancestor>,
    /// Its newest version.
    pub head: Head,
}

/// A conversation whose first versions a fork shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Ancestor {
    /// Where their rows are.
    #[serde(with = "id_text")]
    pub id: ConversationId,
    /// The versions below this one are there, unless an older ancestor has them.
    pub versions: u32,
    /// The log entries below this one are there, unless an older ancestor has them.
    pub entries: u32,
}

mod id_text {
    //! An id as text, so that a lineage can be read by people.

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use super::ConversationId;

    pub(super) fn serialize<S: Serializer>(id: &ConversationId, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(id)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<ConversationId, D::Error> {
        let text = String::deserialize(d)?;
        text.parse().map(ConversationId).map_err(D::Error::custom)
    }
}

/// A version, as the conversation's newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its number.
    pub version: u32,
    /// How long the log is.
    pub entries: u32,
    /// What the chain has come to; see [`Link`].
    pub link: Link,
    /// When it was accepted, in milliseconds since 1970, by the clock of whoever wrote it.
    pub committed: i64,
}

/// An accepted request that is not packed into a page yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitRow {
    /// The version that it made.
    pub head: Head,
    /// What the version is and the log entries it adds; see [`CommitBody`](crate::CommitBody).
    pub body: Vec<u8>,
}

/// What a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PageKind {
    /// Versions.
    Records,
    /// Log entries.
    Entries,
}

/// Neighbouring versions or log entries, packed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// What it holds.
    pub kind: PageKind,
    /// The number of the first one.
    pub first: u32,
    /// How many.
    pub count: u32,
    /// What can be known without unpacking the body.
    pub meta: Vec<u8>,
    /// The packed records or messages; empty if it was not asked for.
    pub body: Vec<u8>,
}

impl Page {
    /// One past the last number.
    pub fn end(&self) -> u32 {
        self.first.saturating_add(self.count)
    }
}

/// A conversation to be created: version 0, or the version that a fork starts from.
#[derive(Clone, Debug)]
pub struct NewConversation {
    /// What it will be known by.
    pub id: ConversationId,
    /// Whose it is.
    pub tenant: Tenant,
    /// What people will call it.
    pub name: String,
    /// When.
    pub created: i64,
    /// How it is set up, as JSON.
    pub settings: String,
    /// What is wanted of it, as JSON.
    pub policy: Option<String>,
    /// The conversations that it is forked from, the oldest first.
    pub lineage: Vec<Ancestor>,
    /// Its first row.
    pub first: CommitRow,
    /// What the search will find in it.
    pub words: Vec<WordsOf>,
}

/// A request to be accepted: all of it, or nothing.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The conversation.
    pub conversation: ConversationId,
    /// The row of the version after the newest one.
    pub row: CommitRow,
    /// The key under which a repeat will be known.
    pub key: Option<IdempotencyKey>,
    /// What the search will find in the new log entries.
    pub words: Vec<WordsOf>,
    /// Older rows that go into pages at the same time.
    pub seal: Option<Seal>,
}

/// Older commits that are packed into pages.
#[derive(Clone, Debug)]
pub struct Seal {
    /// The rows of versions below this one go.
    pub below: u32,
    /// The pages that take their place.
    pub pages: Vec<Page>,
    /// What the writer has packed: the bodies of these rows as it knows them, in order. If others
    /// have packed or rewritten some of them meanwhile, all of it is refused, or what was erased
    /// would come back. None: whatever they are.
    pub rows: Option<Vec<Vec<u8>>>,
}

impl Seal {
    /// Tests that the rows to be packed, in order, are those that the writer knows.
    pub(crate) fn check<'a>(&self, bodies: impl Iterator<Item = &'a [u8]>) -> Result<(), Error> {
        match &self.rows {
            Some(known) if !bodies.eq(known.iter().map(|body| &**body)) => Err(Error::RowsChanged),
            _ => Ok(()),
        }
    }
}

/// What an idempotency key stood for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The key that the client chose.
    pub key: String,
    /// A hash of the request, so that another request under the same key is noticed.
    pub request: [u8; 32],
    /// The version that was newest afterwards.
    pub version: u32,
    /// Whether the request made it.
    pub changed: bool,
}

/// All rows of a conversation beside the conversation itself: to be copied into another store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredRows {
    /// The commits that are not packed, in order.
    pub commits: Vec<CommitRow>,
    /// The pages.
    pub pages: Vec<Page>,
    /// The idempotency keys.
    pub keys: Vec<IdempotencyKey>,
}

/// The words of one log entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordsOf {
    /// The entry.
    pub entry: u32,
    /// Its words. Others than those that [`Words::of`] makes may not be found.
    pub words: Words,
}

/// A log entry that the search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit {
    /// The conversation whose rows hold it; its forks may show it too.
    pub conversation: ConversationId,
    /// The entry.
    pub entry: u32,
}

/// Rows that take the place of others, when something is erased or pruned.
#[derive(Clone, Debug, Default)]
pub struct Rewrite {
    /// Commits in the place of those of the same version.
    pub commits: Vec<CommitRow>,
    /// Pages in the place of those of the same kind with the same first number.
    pub pages: Vec<Page>,
    /// Entries that the search must not find any more.
    pub forget: Vec<u32>,
    /// The forks that were asked what they show. If there is another one by now, the rewrite is
    /// refused, or what that one shows would be gone. None: it makes no difference.
    pub forks: Option<Vec<ConversationId>>,
    /// What the rows were that these were made of. If others are there by now, the rewrite is
    /// refused, or what was erased from those meanwhile would come back. None: it makes no difference.
    pub known: Option<KnownRows>,
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
    /// Adds a commit with another body in the place of one that was read.
    pub fn replace_commit(&mut self, read: &CommitRow, body: Vec<u8>) {
        let known = self.known.get_or_insert_default();
        known.commits.insert(read.head.version, hash_of(&read.body));
        self.commits.push(CommitRow { head: read.head, body });
    }

    /// Adds a page in the place of one that was read.
    pub fn replace_page(&mut self, read: &Page, page: Page) {
        let known = self.known.get_or_insert_default();
        known.pages.insert((read.kind, read.first), read.hash());
        self.pages.push(page);
    }

    /// Tests that a commit is there to be replaced, and that it is the one that was read, or has been
    /// replaced by this very rewrite.
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

    /// The same for a page.
    pub(crate) fn check_page(&self, new: &Page, found: Option<&Page>) -> Result<(), Error> {
        let found = found.ok_or(Error::RowsChanged)?;
        let Some(known) = &self.known else { return Ok(()) };
        let is_known = known.pages.get(&(new.kind, new.first)) == Some(&found.hash());
        if is_known || found == new { Ok(()) } else { Err(Error::RowsChanged) }
    }

    /// Tests that all forks that there are were asked.
    pub(crate) fn check_forks(
        &self,
        forks: impl IntoIterator<Item = ConversationId>,
    ) -> Result<(), Error> {
        let Some(asked) = &self.forks else { return Ok(()) };
        match forks.into_iter().all(|fork| asked.contains(&fork)) {
            true => Ok(()),
            false => Err(Error::Forked),
        }
    }
}
