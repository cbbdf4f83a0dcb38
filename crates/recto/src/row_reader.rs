//! Reads versions and entries of one conversation from the rows that hold them: its own, or those of
//! a conversation it was forked from.
//!
//! Rows move from commits to pages, never back. A reader that does not find a version or an entry in
//! the pages looks into the commits, and then into the pages again.

use std::ops::{Deref, Range};
use std::sync::Arc;

use recto_core::{Message, Role};
use recto_store::{
    Ancestor, CommitBody, CommitRow, ConversationId, Entry, EntryMeta, Head, Lineage, Link, Page,
    PageKind, ReadCommit, Store, Unpacked, Unreadable,
};
use serde::{Serialize, Serializer};

use crate::Error;

/// A decoded commit.
#[derive(Clone, Debug)]
pub(crate) struct OpenCommit {
    pub(crate) head: Head,
    pub(crate) record: String,
    /// Empty if the commit's entries are in pages.
    pub(crate) entries: Vec<Entry<Body>>,
    /// The body of its row, as stored.
    pub(crate) packed: Vec<u8>,
    /// The damage of its row. If it is `Some`, only the version of the head is known.
    pub(crate) damage: Option<recto_store::Error>,
}

/// The body of an entry: a text that was read, or a message that is in memory already.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Read(String),
    Of(Message),
}

impl AsRef<str> for Body {
    fn as_ref(&self) -> &str {
        match self {
            Body::Read(body) => body,
            Body::Of(message) => message.json(),
        }
    }
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_ref())
    }
}

impl OpenCommit {
    /// A commit whose row cannot be read.
    fn damaged(version: u32, damage: recto_store::Error) -> OpenCommit {
        let head = Head { version, entries: 0, link: Link([0; 32]), committed: 0 };
        let (record, entries, packed) = Default::default();
        OpenCommit { head, record, entries, packed, damage: Some(damage) }
    }

    /// Fails if its row is damaged.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.damage.clone().map_or(Ok(()), |damage| Err(damage.into()))
    }

    /// The indexes of its entries.
    pub(crate) fn range(&self) -> Range<u32> {
        self.head.entries - self.entries.len() as u32..self.head.entries
    }

    fn numbered_record(&self) -> (u32, Record) {
        (self.head.version, Record { json: self.record.clone(), link: self.head.link })
    }

    /// Size of its record and messages in bytes.
    pub(crate) fn byte_len(&self) -> usize {
        let bodies = self.entries.iter().map(|entry| entry.body.as_ref().len());
        self.record.len() + bodies.sum::<usize>()
    }
}

/// Commits that are not packed, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnpackedCommits {
    commits: Vec<Arc<OpenCommit>>,
    byte_len: usize,
}

impl UnpackedCommits {
    /// Sum of their [sizes](OpenCommit::byte_len), in bytes.
    pub(crate) fn byte_len(&self) -> usize {
        self.byte_len
    }

    pub(crate) fn push(&mut self, commit: Arc<OpenCommit>) {
        self.byte_len += commit.byte_len();
        self.commits.push(commit);
    }

    /// Drops the versions below one.
    pub(crate) fn drop_below(&mut self, version: u32) {
        let count = self.commits.partition_point(|commit| commit.head.version < version);
        for commit in self.commits.drain(..count) {
            self.byte_len -= commit.byte_len();
        }
    }
}

impl Deref for UnpackedCommits {
    type Target = [Arc<OpenCommit>];

    fn deref(&self) -> &[Arc<OpenCommit>] {
        &self.commits
    }
}

impl From<Vec<Arc<OpenCommit>>> for UnpackedCommits {
    fn from(commits: Vec<Arc<OpenCommit>>) -> UnpackedCommits {
        let byte_len = commits.iter().map(|commit| commit.byte_len()).sum();
        UnpackedCommits { commits, byte_len }
    }
}

/// Reads the rows of a conversation.
#[derive(Clone, Debug)]
pub(crate) struct RowReader {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) id: ConversationId,
    pub(crate) lineage: Lineage,
    /// Its unpacked commits, in order, as far as this process has read or written them.
    pub(crate) unpacked: UnpackedCommits,
    /// The number of rewrites of the store before the commits were read.
    pub(crate) rewrites: u64,
}

impl RowReader {
    /// A reader with the unpacked commits of the conversation.
    pub(crate) async fn new(
        store: Arc<dyn Store>,
        id: ConversationId,
        lineage: Lineage,
    ) -> Result<RowReader, Error> {
        let Unpacked { commits, rewrites } = store.unpacked(id, None).await?;
        let unpacked = open_commits(id, commits).into();
        Ok(RowReader { store, id, lineage, unpacked, rewrites })
    }

    /// Reads the unpacked commits of this conversation above a version, and the number of rewrites.
    pub(crate) async fn newer_commits(
        &self,
        above: u32,
    ) -> Result<(Vec<Arc<OpenCommit>>, u64), Error> {
        let Unpacked { commits, rewrites } = self.store.unpacked(self.id, Some(above)).await?;
        Ok((open_commits(self.id, commits), rewrites))
    }

    /// Reads the unpacked commits of this conversation or an ancestor above a version.
    pub(crate) async fn commits_of(
        &self,
        id: ConversationId,
        above: Option<u32>,
    ) -> Result<Vec<Arc<OpenCommit>>, Error> {
        Ok(open_commits(id, self.store.unpacked(id, above).await?.commits))
    }

    /// The head of the newest version in `unpacked`.
    pub(crate) fn newest(&self) -> Result<Head, Error> {
        let newest = self.unpacked.last().ok_or_else(|| damaged(self.id, "it has no version"))?;
        newest.check()?;
        Ok(newest.head)
    }

    /// The first version and the first entry that are in the conversation's own rows.
    pub(crate) fn own_start(&self) -> (u32, u32) {
        self.lineage.last().map_or((0, 0), |from| (from.versions, from.entries))
    }

    /// The ancestor whose rows hold a version.
    fn ancestor_of_version(&self, version: u32) -> Option<&Ancestor> {
        self.lineage.get(self.lineage.partition_point(|from| from.versions <= version))
    }

    /// The ancestor whose rows hold an entry.
    fn ancestor_of_entry(&self, entry: u32) -> Option<&Ancestor> {
        self.lineage.get(self.lineage.partition_point(|from| from.entries <= entry))
    }

    /// Reads the record of a version, and with it the other records of the same page, or the later ones of
    /// the commits.
    pub(crate) async fn records(&self, version: u32) -> Result<Vec<(u32, Record)>, Error> {
        let has = |commits: &[Arc<OpenCommit>]| {
            let mut commits = commits.iter().skip_while(|commit| commit.head.version < version);
            let Some(first) = commits.next().filter(|first| first.head.version == version) else {
                return Ok(None);
            };
            first.check()?;
            // A damaged record is an error only if it is needed.
            let rest = commits.take_while(|commit| commit.damage.is_none());
            let records = [first].into_iter().chain(rest);
            Ok::<_, Error>(Some(records.map(|commit| commit.numbered_record()).collect::<Vec<_>>()))
        };
        if let Some(records) = has(&self.unpacked)? {
            return Ok(records);
        }
        let ancestor = self.ancestor_of_version(version);
        let (id, end) = ancestor.map_or((self.id, u32::MAX), |from| (from.id, from.versions));
        let mut records = self.page_of_records(id, version).await?;
        if records.is_empty() {
            let commits = self.commits_of(id, version.checked_sub(1)).await?;
            records = has(&commits)?.unwrap_or_default();
        }
        if records.is_empty() {
            records = self.page_of_records(id, version).await?;
        }
        records.retain(|&(number, _)| number < end);
        match records.is_empty() {
            true => Err(damaged(id, format!("version {version} is missing"))),
            false => Ok(records),
        }
    }

    async fn page_of_records(
        &self,
        id: ConversationId,
        version: u32,
    ) -> Result<Vec<(u32, Record)>, Error> {
        let numbers = version..version.saturating_add(1);
        let pages = self.store.pages(id, PageKind::Records, numbers, true).await?;
        let Some(page) = pages.first() else { return Ok(Vec::new()) };
        let records = page.records().map_err(|error| damaged(id, error))?;
        let records = records.into_iter().map(|(json, link)| Record { json, link });
        Ok((page.first..).zip(records).collect())
    }

    /// Reads the metadata of a range of entries, in order.
    pub(crate) async fn measures(
        &self,
        range: Range<u32>,
    ) -> Result<Vec<recto_core::EntryMeta>, Error> {
        let of_page = |page: &Page| page.metas()?.into_iter().map(measure).collect();
        self.gather(range, false, of_page, |entry| measure(entry.meta.clone())).await
    }

    /// Reads a range of entries, in order.
    pub(crate) async fn entries(&self, range: Range<u32>) -> Result<Vec<Entry>, Error> {
        let of_entry = |Entry { meta, body }: &Entry<Body>| {
            Ok(Entry { meta: meta.clone(), body: body.as_ref().to_owned() })
        };
        self.gather(range, true, Page::entries, of_entry).await
    }

    /// Collects a value for each entry of a range, with `of_page` from pages and `of_entry` from commits.
    async fn gather<T>(
        &self,
        range: Range<u32>,
        bodies: bool,
        of_page: impl Fn(&Page) -> Result<Vec<T>, Unreadable>,
        of_entry: impl Fn(&Entry<Body>) -> Result<T, Unreadable>,
    ) -> Result<Vec<T>, Error> {
        let mut parts = Vec::new();
        for (id, range) in self.parts(range) {
            let mut places = RowLocations::of(range);
            if id == self.id {
                places
                    .put_commits(&self.unpacked, &of_entry)
                    .map_err(|error| damaged(id, error))?;
            }
            parts.push(Part { id, places, damage: None });
        }
        // Pages first, because they have most entries; then commits; then pages again, for entries that
        // were packed between the two reads. Each call reads rows of all conversations that lack entries.
        self.put_pages(&mut parts, bodies, &of_page).await?;
        self.put_commits(&mut parts, &of_entry).await?;
        self.put_pages(&mut parts, bodies, &of_page).await?;
        let mut all = Vec::new();
        for Part { id, places, damage } in parts {
            if let Some(gap) = places.gap() {
                if let Some(damage) = damage {
                    return Err(damage.into());
                }
                return Err(damaged(id, format!("log entry {} is missing", gap.start)));
            }
            all.push(places.found.into_iter().flatten().collect());
        }
        Ok(match <[Vec<T>; 1]>::try_from(all) {
            Ok([all]) => all,
            Err(parts) => parts.into_iter().flatten().collect(),
        })
    }

    /// Adds what is in pages to the parts that lack entries.
    async fn put_pages<T>(
        &self,
        parts: &mut [Part<T>],
        bodies: bool,
        of_page: impl Fn(&Page) -> Result<Vec<T>, Unreadable>,
    ) -> Result<(), Error> {
        let gaps: Vec<_> = parts.iter().filter_map(Part::gap).collect();
        if gaps.is_empty() {
            return Ok(());
        }
        let found = self.store.pages_of(gaps, PageKind::Entries, bodies).await?;
        let incomplete = parts.iter_mut().filter(|part| part.gap().is_some());
        for (part, pages) in incomplete.zip(found) {
            for page in pages {
                let found = of_page(&page).map_err(|error| damaged(part.id, error))?;
                let numbered = (page.first..).zip(found);
                numbered.for_each(|(number, found)| part.places.put(number, found));
            }
        }
        Ok(())
    }

    /// Adds what is in unpacked commits to the parts that lack entries.
    async fn put_commits<T>(
        &self,
        parts: &mut [Part<T>],
        of_entry: impl Fn(&Entry<Body>) -> Result<T, Unreadable>,
    ) -> Result<(), Error> {
        let ids: Vec<_> = parts.iter().filter_map(Part::gap).map(|(id, _)| id).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let found = self.store.unpacked_of(ids).await?;
        let incomplete = parts.iter_mut().filter(|part| part.gap().is_some());
        for (part, unpacked) in incomplete.zip(found) {
            let commits = open_commits(part.id, unpacked.commits);
            let put = part.places.put_commits(&commits, &of_entry);
            put.map_err(|error| damaged(part.id, error))?;
            part.damage = commits.iter().find_map(|commit| commit.damage.clone());
        }
        Ok(())
    }

    /// Splits a range of entries by the conversation that holds them.
    fn parts(&self, range: Range<u32>) -> Vec<(ConversationId, Range<u32>)> {
        let mut parts = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let ancestor = self.ancestor_of_entry(at);
            let (id, end) = ancestor.map_or((self.id, u32::MAX), |from| (from.id, from.entries));
            let end = end.min(range.end);
            parts.push((id, at..end));
            at = end;
        }
        parts
    }

    /// The conversation whose rows hold an entry.
    pub(crate) fn owner(&self, entry: u32) -> ConversationId {
        self.ancestor_of_entry(entry).map_or(self.id, |from| from.id)
    }
}

/// A record with its link of the hash chain.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) json: String,
    pub(crate) link: Link,
}

/// The entries of a range that are in the rows of one conversation.
struct Part<T> {
    id: ConversationId,
    places: RowLocations<T>,
    /// The damage of one of its commits, which may contain a missing entry.
    damage: Option<recto_store::Error>,
}

impl<T> Part<T> {
    /// The conversation, and the range of the missing entries.
    fn gap(&self) -> Option<(ConversationId, Range<u32>)> {
        Some((self.id, self.places.gap()?))
    }
}

/// The values found so far for a range of entries.
struct RowLocations<T> {
    first: u32,
    found: Vec<Option<T>>,
}

impl<T> RowLocations<T> {
    fn of(range: Range<u32>) -> RowLocations<T> {
        RowLocations { first: range.start, found: range.map(|_| None).collect() }
    }

    fn put(&mut self, number: u32, found: T) {
        let place = number.checked_sub(self.first).map(|place| place as usize);
        if let Some(place) = place.and_then(|place| self.found.get_mut(place)) {
            *place = Some(found);
        }
    }

    fn put_commits(
        &mut self,
        commits: &[Arc<OpenCommit>],
        of_entry: impl Fn(&Entry<Body>) -> Result<T, Unreadable>,
    ) -> Result<(), Unreadable> {
        let wanted = self.first..self.first + self.found.len() as u32;
        let entries = commits.iter().flat_map(|commit| commit.range().zip(&commit.entries));
        for (number, entry) in entries.filter(|(number, _)| wanted.contains(number)) {
            self.put(number, of_entry(entry)?);
        }
        Ok(())
    }

    /// The range from the first missing entry to the last.
    fn gap(&self) -> Option<Range<u32>> {
        let first = self.found.iter().position(Option::is_none)?;
        let last = self.found.iter().rposition(Option::is_none)?;
        Some(self.first + first as u32..self.first + last as u32 + 1)
    }
}

/// The bit of a stored role that marks an entry written by the engine: a tool description.
pub(crate) const WRITTEN_BY_ENGINE: u8 = 4;

/// Converts stored metadata to the engine's form.
pub(crate) fn measure(meta: EntryMeta) -> Result<recto_core::EntryMeta, Unreadable> {
    let EntryMeta { role, tokens, timestamp, edges, gone: _ } = meta;
    let unknown = || Unreadable("a role is unknown".to_owned());
    let is_written_by_engine = role & WRITTEN_BY_ENGINE != 0;
    let role = Role::ALL.get(usize::from(role & !WRITTEN_BY_ENGINE)).copied();
    let role = role.ok_or_else(unknown)?;
    let tokens = u64::from(tokens);
    Ok(recto_core::EntryMeta { role, tokens, timestamp, edges, is_written_by_engine })
}

/// Decodes the body of a row. Also returns the index of its first entry.
pub(crate) fn unpack_commit(
    id: ConversationId,
    row: &CommitRow,
) -> Result<(u32, CommitBody), Error> {
    let body = CommitBody::unpack(&row.body).map_err(|error| damaged(id, error))?;
    match row.head.entries.checked_sub(body.entries.len() as u32) {
        Some(first) => Ok((first, body)),
        None => Err(damaged(id, "a commit has more entries than the log")),
    }
}

/// Unpacks commits. A damaged one fails when it is needed.
fn open_commits(id: ConversationId, rows: Vec<ReadCommit>) -> Vec<Arc<OpenCommit>> {
    let open = |(version, row): ReadCommit| {
        let opened = row.map_err(Error::from).and_then(|row| open_commit(id, row));
        Arc::new(match opened {
            Ok(commit) => commit,
            Err(Error::Store(damage)) => OpenCommit::damaged(version, damage),
            Err(error) => OpenCommit::damaged(version, damage_of(id, error)),
        })
    };
    rows.into_iter().map(open).collect()
}

fn open_commit(id: ConversationId, row: CommitRow) -> Result<OpenCommit, Error> {
    let (_, body) = unpack_commit(id, &row)?;
    let CommitRow { head, body: packed } = row;
    let entries = body.entries.into_iter();
    let entries = entries.map(|Entry { meta, body }| Entry { meta, body: Body::Read(body) });
    let (record, entries) = (body.record, entries.collect());
    Ok(OpenCommit { head, record, entries, packed, damage: None })
}

fn damage_of(conversation: ConversationId, error: Error) -> recto_store::Error {
    recto_store::Error::Damaged { conversation, reason: error.to_string() }
}

pub(crate) fn damaged(conversation: ConversationId, reason: impl ToString) -> Error {
    recto_store::Error::Damaged { conversation, reason: reason.to_string() }.into()
}
