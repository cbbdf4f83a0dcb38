//! When older commits are packed into pages, and where: on another thread, while requests go on.
//!
//! ```text
//!   commits  … 62 63 64          enough: 0 to 63 are packed elsewhere, and requests go on
//!                    64 65 66    they are stored as pages, and 0 to 63 go
//! ```
//!
//! Where a store [packs beside requests](recto_store::Store::packs_beside_requests), the pages are
//! stored as soon as they are made. Elsewhere (a file has one writer, and a sync is dear) they wait
//! for the next request and are stored together with it.
//!
//! Packing takes longer than a request, and nobody has to wait for it unless requests come quicker
//! than they can be packed. If the pages are lost on the way, they are made again: the commits stay
//! until the pages are stored. The store tests that the commits still are what was packed.

use std::sync::Arc;

use recto_store::{Entry, Page, Seal, pack_entries, pack_records};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::Error;
use crate::loaded::LoadedConversation;
use crate::shelf::{Body, OpenCommit};

/// So many commits are packed together.
const MOST_COMMITS: usize = 64;
/// And as soon as they have so many bytes.
const MOST_BYTES: usize = 128 * 1024;
/// If there are so many times as many commits, requests wait for the packing.
const PATIENCE: usize = 2;
/// A page holds so many entries, unless they are long.
const PAGE_ENTRIES: usize = 64;

/// Older commits that are being packed. Whoever lets go of it does not stop it.
#[derive(Debug)]
pub(crate) struct Packing(JoinHandle<Option<Packed>>);

/// What became of them.
#[derive(Debug)]
enum Packed {
    /// The pages, to be stored with a request.
    Pages(Seal),
    /// The commits below this version are in stored pages.
    Below(u32),
    /// Somebody else has packed or rewritten them.
    Outdated,
}

impl LoadedConversation {
    /// The pages that are stored together with a new commit. May begin to pack others. What is large
    /// on its own has its entries packed at once.
    ///
    /// `RowsChanged` if what is open here is not what is stored any more.
    pub(crate) async fn seal(&mut self, new: &mut OpenCommit) -> Result<Option<Seal>, Error> {
        let is_large = self.has_more_than(1, new) && new.weight() >= MOST_BYTES / 2;
        let is_too_much = self.has_more_than(PATIENCE, new);
        let mut seal = match &mut self.packing {
            Some(packing) if is_large || is_too_much || packing.0.is_finished() => {
                // Awaited where it is: if nobody waits for this request any more, it is still there.
                let packed = (&mut packing.0).await.ok().flatten();
                self.packing = None;
                self.take(packed)?
            }
            _ => None,
        };
        let is_much = is_large || self.has_more_than(1, new);
        if seal.is_none() && self.packing.is_none() && is_much {
            let at_once = is_large || self.has_more_than(PATIENCE, new);
            match Handle::try_current() {
                Ok(runtime) if !at_once => self.packing = self.begin_packing(&runtime),
                _ => seal = Some(packed(&self.shelf.tail)),
            }
        }
        if let Some(seal) = &mut seal
            && is_large
        {
            seal.pages.extend(entry_pages(&numbered(new).collect::<Vec<_>>()));
            new.entries.clear();
        }
        Ok(seal)
    }

    /// Whether so many times as many commits have come together as are packed at a time.
    fn has_more_than(&self, times: usize, new: &OpenCommit) -> bool {
        let bytes = self.shelf.tail.weight() + new.weight();
        self.ripe().len() >= times * MOST_COMMITS || bytes >= times * MOST_BYTES
    }

    /// The commits that can be packed now: where the pages do not wait for the next request, the
    /// newest one is not among them.
    fn ripe(&self) -> &[Arc<OpenCommit>] {
        let tail = &*self.shelf.tail;
        match self.shelf.store.packs_beside_requests() {
            true => tail.split_last().map_or(&[], |(_, older)| older),
            false => tail,
        }
    }

    fn begin_packing(&self, runtime: &Handle) -> Option<Packing> {
        let commits = self.ripe().to_vec();
        let below = commits.last()?.head.version + 1;
        let pages = move || packed(&commits);
        if !self.shelf.store.packs_beside_requests() {
            let pages = runtime.spawn_blocking(move || Some(Packed::Pages(pages())));
            return Some(Packing(pages));
        }
        let (store, id) = (self.shelf.store.clone(), self.shelf.id);
        let pages = runtime.spawn_blocking(pages);
        Some(Packing(runtime.spawn(async move {
            match store.pack(id, pages.await.ok()?).await {
                Ok(()) => Some(Packed::Below(below)),
                Err(recto_store::Error::RowsChanged) => Some(Packed::Outdated),
                // Tried again with one of the next requests.
                Err(_) => None,
            }
        })))
    }

    /// Goes on from what was packed; what is left to be stored is returned.
    fn take(&mut self, packed: Option<Packed>) -> Result<Option<Seal>, Error> {
        match packed {
            Some(Packed::Pages(seal)) => Ok(Some(seal)),
            Some(Packed::Below(version)) => {
                self.shelf.tail.drop_below(version);
                Ok(None)
            }
            Some(Packed::Outdated) => Err(recto_store::Error::RowsChanged.into()),
            None => Ok(None),
        }
    }
}

/// All of these commits as pages.
fn packed(commits: &[Arc<OpenCommit>]) -> Seal {
    let first = commits.first().map_or(0, |commit| commit.head.version);
    let records = commits.iter().map(|commit| (&*commit.record, commit.head.link));
    let mut pages = vec![pack_records(first, records)];
    let entries: Vec<_> = commits.iter().flat_map(|commit| numbered(commit)).collect();
    pages.extend(entry_pages(&entries));
    let rows = Some(commits.iter().map(|commit| commit.packed.clone()).collect());
    let below = commits.last().map_or(0, |commit| commit.head.version + 1);
    Seal { below, pages, rows }
}

fn numbered(commit: &OpenCommit) -> impl Iterator<Item = (u32, &Entry<Body>)> {
    commit.range().zip(&commit.entries)
}

/// Pages of neighbouring entries, none too large.
fn entry_pages(entries: &[(u32, &Entry<Body>)]) -> Vec<Page> {
    let mut pages = Vec::new();
    let mut rest = entries;
    while let Some((first, _)) = rest.first() {
        let mut bytes = 0;
        let fits = |(place, (number, entry)): &(usize, &(u32, &Entry<Body>))| {
            bytes += entry.body.as_ref().len();
            *place == 0
                || *place < PAGE_ENTRIES && bytes <= MOST_BYTES && *number == first + *place as u32
        };
        let count = rest.iter().enumerate().take_while(fits).count();
        let (page, behind) = rest.split_at(count);
        pages.push(pack_entries(*first, page.iter().map(|(_, entry)| *entry)));
        rest = behind;
    }
    pages
}
