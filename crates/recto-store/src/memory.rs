//! A store in the memory of this process. It shows in plain code what the other stores do with a
//! database.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::{Bound, Range};
use std::sync::{Mutex, MutexGuard};

use crate::checks;
use crate::lineage::Lineages;
use crate::{
    Ancestor, Commit, CommitRow, ConversationId, ConversationRow, Error, Hit, IdempotencyKey,
    Lineage, NewConversation, Page, PageKind, RestoredConversation, Rewrite, RewriteOf, Seal,
    Store, StoreFuture, StoredRows, SurveyedConversation, Tenant, Unpacked, WordSums, Words,
    WordsOf,
};

/// A store that keeps conversations in memory until it is dropped.
#[derive(Default)]
pub struct MemoryStore {
    tables: Mutex<Tables>,
    has_no_search: bool,
}

impl fmt::Debug for MemoryStore {
    /// Shows no stored data.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryStore")
    }
}

#[derive(Default)]
struct Tables {
    names: BTreeMap<(Tenant, String), ConversationId>,
    /// Includes removed conversations whose rows forks share.
    conversations: BTreeMap<ConversationId, Rows>,
    rewrites: u64,
}

struct Rows {
    tenant: Tenant,
    /// Without its lineage. Its head is that of the first commit; the newest one is in `commits`.
    row: ConversationRow,
    /// The direct ancestor.
    parent: Option<Ancestor>,
    commits: BTreeMap<u32, CommitRow>,
    pages: BTreeMap<(PageKind, u32), Page>,
    keys: BTreeMap<String, IdempotencyKey>,
    words: BTreeMap<u32, Words>,
}

impl Rows {
    fn head(&self) -> crate::Head {
        self.commits.last_key_value().expect("the newest commit is always there").1.head
    }

    fn pack(&mut self, seal: Seal) {
        self.commits.retain(|&version, _| version >= seal.below);
        self.pages.extend(seal.pages.into_iter().map(|page| ((page.kind, page.first), page)));
    }

    fn index(&mut self, words: Vec<WordsOf>) {
        let words = words.into_iter().map(|of| (of.entry, of.words));
        self.words.extend(words);
    }
}

fn unknown(id: ConversationId) -> Error {
    Error::ConversationNotFound { name: id.to_string() }
}

impl Tables {
    fn rows(&self, id: ConversationId) -> Result<&Rows, Error> {
        self.conversations.get(&id).ok_or_else(|| unknown(id))
    }

    fn rows_mut(&mut self, id: ConversationId) -> Result<&mut Rows, Error> {
        self.conversations.get_mut(&id).ok_or_else(|| unknown(id))
    }

    /// A conversation with its lineage and its newest version.
    fn row(&self, id: ConversationId, lineages: &mut Lineages) -> Result<ConversationRow, Error> {
        let rows = self.rows(id)?;
        let lineage = lineages.of(id, rows.parent, |id| Ok::<_, Error>(self.rows(id)?.parent))?;
        Ok(ConversationRow { head: rows.head(), lineage, ..rows.row.clone() })
    }

    fn id(&self, tenant: &Tenant, name: &str) -> Result<ConversationId, Error> {
        let found = self.names.get(&(tenant.clone(), name.to_owned())).copied();
        found.ok_or_else(|| Error::ConversationNotFound { name: name.to_owned() })
    }

    fn create(&mut self, new: NewConversation) -> Result<(), Error> {
        let NewConversation { id, tenant, name, created, settings, policy, lineage, first, words } =
            new;
        let named = (tenant.clone(), name.clone());
        if self.names.contains_key(&named) {
            return Err(Error::ConversationExists { name });
        }
        if self.conversations.contains_key(&id) {
            return Err(Error::ConversationExists { name: id.to_string() });
        }
        let parent = lineage.last().copied();
        if let Some(parent) = parent
            // A conversation whose rows were deleted, or that belongs to another tenant, cannot be forked.
            && self.rows(parent.id)?.tenant != tenant
        {
            return Err(unknown(parent.id));
        }
        let (head, lineage) = (first.head, Lineage::default());
        let row = ConversationRow { id, name, created, settings, policy, lineage, head };
        let mut rows = Rows {
            tenant,
            row,
            parent,
            commits: BTreeMap::from([(first.head.version, first)]),
            pages: BTreeMap::new(),
            keys: BTreeMap::new(),
            words: BTreeMap::new(),
        };
        rows.index(words);
        self.names.insert(named, id);
        self.conversations.insert(id, rows);
        Ok(())
    }

    fn restore(&mut self, restored: Vec<RestoredConversation>) -> Result<(), Error> {
        let mut created = Vec::new();
        for restored in restored {
            let id = restored.new.id;
            if let Err(error) = self.restore_one(restored) {
                // All of them or none.
                self.names.retain(|_, id| !created.contains(id));
                self.conversations.retain(|id, _| !created.contains(id));
                return Err(error);
            }
            created.push(id);
        }
        // A program may have a conversation in memory as it was before it was removed.
        self.rewrites += 1;
        Ok(())
    }

    fn restore_one(&mut self, restored: RestoredConversation) -> Result<(), Error> {
        let RestoredConversation { mut new, is_removed, rows: stored } = restored;
        let id = new.id;
        if is_removed {
            // A name that no conversation can have.
            new.name = String::new();
        }
        let named = (new.tenant.clone(), new.name.clone());
        self.create(new)?;
        if is_removed {
            self.names.remove(&named);
        }
        let rows = self.rows_mut(id)?;
        let StoredRows { commits, pages, keys } = stored;
        rows.commits.extend(commits.into_iter().map(|row| (row.head.version, row)));
        rows.pages.extend(pages.into_iter().map(|page| ((page.kind, page.first), page)));
        rows.keys.extend(keys.into_iter().map(|key| (key.key.clone(), key)));
        Ok(())
    }

    fn rename(&mut self, tenant: &Tenant, from: &str, to: &str) -> Result<(), Error> {
        let id = self.id(tenant, from)?;
        let renamed = (tenant.clone(), to.to_owned());
        if from != to && self.names.contains_key(&renamed) {
            return Err(Error::ConversationExists { name: to.to_owned() });
        }
        self.names.remove(&(tenant.clone(), from.to_owned()));
        self.names.insert(renamed, id);
        self.rows_mut(id)?.row.name = to.to_owned();
        Ok(())
    }

    fn remove(
        &mut self,
        tenant: &Tenant,
        name: &str,
        rewrites: Vec<RewriteOf>,
    ) -> Result<(), Error> {
        let id = self.id(tenant, name)?;
        for RewriteOf { conversation, at, rewrite } in &rewrites {
            self.check_rewrite(*conversation, *at, rewrite)?;
        }
        // Nothing after these checks can fail.
        for RewriteOf { conversation, at, rewrite } in rewrites {
            self.rewrite(conversation, at, rewrite)?;
        }
        self.names.remove(&(tenant.clone(), name.to_owned()));
        self.drop_unused();
        debug_assert!(!self.names.values().any(|other| *other == id));
        Ok(())
    }

    /// Drops the rows of conversations that have neither a name nor a fork with a name.
    fn drop_unused(&mut self) {
        let mut used = BTreeSet::new();
        for &id in self.names.values() {
            let mut next = Some(id);
            while let Some(id) = next.filter(|id| used.insert(*id)) {
                next = self.conversations[&id].parent.map(|parent| parent.id);
            }
        }
        self.conversations.retain(|id, _| used.contains(id));
    }

    /// The rows of a conversation that was not removed.
    fn named_rows_mut(&mut self, id: ConversationId) -> Result<&mut Rows, Error> {
        let row = &self.rows(id)?;
        let named = (row.tenant.clone(), row.row.name.clone());
        match self.names.get(&named) == Some(&id) {
            true => self.rows_mut(id),
            false => Err(unknown(id)),
        }
    }

    fn commit(&mut self, commit: Commit) -> Result<(), Error> {
        let rewrites = self.rewrites;
        let rows = self.named_rows_mut(commit.conversation)?;
        let version = commit.row.head.version;
        checks::check_next(rows.head().version, version)?;
        if commit.rewrites.is_some_and(|known| known != rewrites) {
            return Err(Error::RowsChanged);
        }
        if let Some(seal) = &commit.seal {
            seal.check(rows.commits.range(..seal.below).map(|(_, row)| &*row.body))?;
        }
        if let Some(key) = commit.key {
            keep_key(rows, key)?;
        }
        rows.commits.insert(version, commit.row);
        rows.index(commit.words);
        if let Some(seal) = commit.seal {
            rows.pack(seal);
        }
        Ok(())
    }

    /// The forks that share rows of a conversation, ordered by name.
    fn forks(&self, id: ConversationId) -> impl Iterator<Item = ConversationId> {
        let mut forks: BTreeMap<ConversationId, Vec<ConversationId>> = BTreeMap::new();
        for (&fork, rows) in &self.conversations {
            if let Some(parent) = rows.parent {
                forks.entry(parent.id).or_default().push(fork);
            }
        }
        let mut below = BTreeSet::new();
        let mut next = vec![id];
        while let Some(id) = next.pop() {
            let forks = forks.get(&id).into_iter().flatten();
            next.extend(forks.copied().filter(|fork| below.insert(*fork)));
        }
        self.names.values().copied().filter(move |id| below.contains(id))
    }

    fn check_rewrite(&self, id: ConversationId, at: u32, rewrite: &Rewrite) -> Result<(), Error> {
        let rows = self.rows(id)?;
        rewrite.check_forks(self.forks(id))?;
        let current = rows.head().version;
        if current != at {
            return Err(Error::VersionConflict { expected: at, current });
        }
        for row in &rewrite.commits {
            rewrite.check_commit(row, rows.commits.get(&row.head.version))?;
        }
        for page in &rewrite.pages {
            rewrite.check_page(page, rows.pages.get(&(page.kind, page.first)))?;
        }
        Ok(())
    }

    fn rewrite(&mut self, id: ConversationId, at: u32, rewrite: Rewrite) -> Result<(), Error> {
        self.check_rewrite(id, at, &rewrite)?;
        let rows = self.rows_mut(id)?;
        for commit in rewrite.commits {
            rows.commits.insert(commit.head.version, commit);
        }
        rows.pages.extend(rewrite.pages.into_iter().map(|page| ((page.kind, page.first), page)));
        for entry in rewrite.forget {
            rows.words.remove(&entry);
        }
        self.rewrites += 1;
        Ok(())
    }

    fn search(&self, tenant: &Tenant, words: &[String], limit: usize) -> Vec<Hit> {
        if words.is_empty() {
            return Vec::new();
        }
        let mine = self.conversations.iter().rev().filter(|(_, rows)| rows.tenant == *tenant);
        let hits = mine.flat_map(|(&conversation, rows)| {
            let found = rows.words.iter().rev();
            let found = found.filter(|(_, has)| words.iter().all(|word| has.contains(word)));
            found.map(move |(&entry, _)| Hit { conversation, entry })
        });
        hits.take(limit).collect()
    }
}

fn keep_key(rows: &mut Rows, key: IdempotencyKey) -> Result<(), Error> {
    if rows.keys.contains_key(&key.key) {
        return Err(Error::KeyReused { key: key.key });
    }
    rows.keys.insert(key.key.clone(), key);
    Ok(())
}

impl MemoryStore {
    /// Creates a store without a search index, which needs less memory and time.
    pub fn without_search() -> MemoryStore {
        MemoryStore { has_no_search: true, ..MemoryStore::default() }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().expect("no method panics while it holds the tables")
    }

    /// Runs `work` when the future is awaited, so that a dropped future changes nothing.
    fn answer<'a, T: Send + 'static>(
        &'a self,
        work: impl FnOnce(&mut Tables) -> Result<T, Error> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move { work(&mut self.tables()) })
    }
}

impl crate::sealed::Sealed for MemoryStore {}

impl Store for MemoryStore {
    fn create(&self, new: NewConversation) -> StoreFuture<'_, ()> {
        self.answer(move |tables| checks::check_new(&new).and_then(|()| tables.create(new)))
    }

    fn find<'a>(
        &'a self,
        tenant: &'a Tenant,
        name: &'a str,
    ) -> StoreFuture<'a, Option<ConversationRow>> {
        self.answer(move |tables| {
            let id = tables.id(tenant, name).ok();
            id.map(|id| tables.row(id, &mut Lineages::default())).transpose()
        })
    }

    fn get_all<'a>(
        &'a self,
        tenant: &'a Tenant,
        mut ids: Vec<ConversationId>,
    ) -> StoreFuture<'a, Vec<ConversationRow>> {
        self.answer(move |tables| {
            let mut lineages = Lineages::default();
            // Forks before their ancestors, so that they share one lineage.
            ids.sort_unstable_by_key(|id| Reverse(*id));
            let is_named = |id: &ConversationId| {
                tables.rows(*id).is_ok_and(|rows| {
                    tables.names.get(&(tenant.clone(), rows.row.name.clone())) == Some(id)
                })
            };
            let named = ids.into_iter().filter(is_named);
            named.map(|id| tables.row(id, &mut lineages)).collect()
        })
    }

    fn list<'a>(
        &'a self,
        tenant: &'a Tenant,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<ConversationRow>> {
        self.answer(move |tables| {
            let from = (tenant.clone(), after.unwrap_or("").to_owned());
            let named = tables.names.range(from..).take_while(|((other, _), _)| other == tenant);
            let named = named.filter(|((_, name), _)| after != Some(name)).take(limit);
            let mut lineages = Lineages::default();
            named.map(|(_, id)| tables.row(*id, &mut lineages)).collect()
        })
    }

    fn rename<'a>(&'a self, tenant: &'a Tenant, from: &'a str, to: &'a str) -> StoreFuture<'a, ()> {
        self.answer(move |tables| {
            checks::check_name(to).and_then(|()| tables.rename(tenant, from, to))
        })
    }

    fn set_policy<'a>(
        &'a self,
        tenant: &'a Tenant,
        name: &'a str,
        policy: Option<String>,
    ) -> StoreFuture<'a, ()> {
        self.answer(move |tables| {
            let id = tables.id(tenant, name)?;
            tables.rows_mut(id)?.row.policy = policy;
            Ok(())
        })
    }

    fn remove_with<'a>(
        &'a self,
        tenant: &'a Tenant,
        name: &'a str,
        rewrites: Vec<RewriteOf>,
    ) -> StoreFuture<'a, ()> {
        self.answer(move |tables| tables.remove(tenant, name, rewrites))
    }

    fn unpacked(&self, id: ConversationId, above: Option<u32>) -> StoreFuture<'_, Unpacked> {
        self.answer(move |tables| {
            let (rows, rewrites) = (tables.rows(id)?, tables.rewrites);
            let above = (above.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
            let commits = rows.commits.range(above);
            let commits = commits.map(|(&version, row)| (version, Ok(row.clone()))).collect();
            Ok(Unpacked { commits, rewrites })
        })
    }

    fn pages(
        &self,
        id: ConversationId,
        kind: PageKind,
        numbers: Range<u32>,
        bodies: bool,
    ) -> StoreFuture<'_, Vec<Page>> {
        self.answer(move |tables| {
            let pages = tables.rows(id)?.pages.values();
            let asked = pages.filter(|page| {
                let is_asked = page.first < numbers.end && page.end() > numbers.start;
                page.kind == kind && !numbers.is_empty() && is_asked
            });
            let hand_out = |page: &Page| Page {
                body: if bodies { page.body.clone() } else { Vec::new() },
                meta: page.meta.clone(),
                ..*page
            };
            Ok(asked.map(hand_out).collect())
        })
    }

    fn commit(&self, commit: Commit) -> StoreFuture<'_, ()> {
        self.answer(move |tables| {
            checks::check_commit(&commit).and_then(|()| tables.commit(commit))
        })
    }

    fn remember(&self, id: ConversationId, key: IdempotencyKey) -> StoreFuture<'_, ()> {
        self.answer(move |tables| {
            checks::check_key(&key)?;
            keep_key(tables.named_rows_mut(id)?, key)
        })
    }

    fn key<'a>(
        &'a self,
        id: ConversationId,
        key: &'a str,
    ) -> StoreFuture<'a, Option<IdempotencyKey>> {
        self.answer(move |tables| Ok(tables.rows(id)?.keys.get(key).cloned()))
    }

    fn search<'a>(
        &'a self,
        tenant: &'a Tenant,
        words: &'a [String],
        limit: usize,
    ) -> StoreFuture<'a, Vec<Hit>> {
        self.answer(move |tables| Ok(tables.search(tenant, words, limit)))
    }

    fn rewrite(&self, id: ConversationId, at: u32, rewrite: Rewrite) -> StoreFuture<'_, ()> {
        self.answer(move |tables| tables.rewrite(id, at, rewrite))
    }

    fn clean(&self) -> StoreFuture<'_, ()> {
        self.answer(|_| Ok(()))
    }

    fn forks(&self, id: ConversationId) -> StoreFuture<'_, Vec<ConversationRow>> {
        self.answer(move |tables| {
            tables.rows(id)?;
            let mut lineages = Lineages::default();
            tables.forks(id).map(|fork| tables.row(fork, &mut lineages)).collect()
        })
    }

    fn rows(&self, id: ConversationId) -> StoreFuture<'_, StoredRows> {
        self.answer(move |tables| {
            let rows = tables.rows(id)?;
            Ok(StoredRows {
                commits: rows.commits.values().cloned().collect(),
                pages: rows.pages.values().cloned().collect(),
                keys: rows.keys.values().cloned().collect(),
            })
        })
    }

    fn survey(&self) -> StoreFuture<'_, Vec<SurveyedConversation>> {
        self.answer(|tables| {
            let mut lineages = Lineages::default();
            let surveyed = |rows: &Rows| {
                let (id, tenant) = (rows.row.id, rows.tenant.clone());
                let name = rows.row.name.clone();
                let is_named = tables.names.get(&(tenant.clone(), name.clone())) == Some(&id);
                SurveyedConversation {
                    id,
                    tenant,
                    name: is_named.then_some(name),
                    row: tables.row(id, &mut lineages),
                }
            };
            let mut all: Vec<_> = tables.conversations.values().map(surveyed).collect();
            all.sort_by_key(|found| found.row.as_ref().map_or(0, |row| row.lineage.len()));
            Ok(all)
        })
    }

    fn indexed_words<'a>(&'a self, tenant: &'a Tenant) -> StoreFuture<'a, WordSums> {
        self.answer(move |tables| {
            let mut sums = WordSums::default();
            for (&conversation, rows) in
                tables.conversations.iter().filter(|(_, rows)| rows.tenant == *tenant)
            {
                for (&entry, words) in &rows.words {
                    let words = words.iter().map(str::as_bytes);
                    sums.replace(Hit { conversation, entry }, words);
                }
            }
            Ok(sums)
        })
    }

    fn restore(&self, conversations: Vec<RestoredConversation>) -> StoreFuture<'_, ()> {
        self.answer(|tables| {
            checks::check_restored(&conversations)?;
            tables.restore(conversations)
        })
    }

    fn keeps_words(&self) -> bool {
        !self.has_no_search
    }

    fn check(&self) -> StoreFuture<'_, Vec<String>> {
        self.answer(|_| Ok(Vec::new()))
    }

    fn size(&self) -> StoreFuture<'_, Option<u64>> {
        self.answer(|_| Ok(None))
    }
}
