//! When older commits are packed into pages, and where: on another thread, while requests go on.
//!
//! ```text
//!   commits  … 62 63 64          enough: 0 to 63 are packed elsewhere, and 64 is stored as usual
//!                    64 65 66    the pages are there: they are stored with 67, and 0 to 63 go
//! ```
//!
//! Packing takes longer than a request, and nobody has to wait for it unless requests come quicker
//! than they can be packed. If the pages are lost on the way, they are made again: the commits stay
//! until the pages are stored. The store tests that the commits still are what was packed.

use std::sync::Arc;

use recto_store::{Entry, Page, Seal, pack_entries, pack_records};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::opened::Opened;
use crate::shelf::OpenCommit;

/// So many commits are packed together.
const MOST_COMMITS: usize = 64;
/// And as soon as they have so many bytes.
const MOST_BYTES: usize = 128 * 1024;
/// If there are so many times as many commits, requests wait for the packing.
const PATIENCE: usize = 2;
/// A page holds so many entries, unless they are long.
const PAGE_ENTRIES: usize = 64;

/// Older commits that are being packed.
#[derive(Debug)]
pub(crate) struct Packing(JoinHandle<Seal>);

impl Opened {
    /// The pages that are stored together with a new commit. May begin to pack others, for one of
    /// the next commits. What is large on its own has its entries packed at once.
    pub(crate) async fn seal(&mut self, new: &mut OpenCommit) -> Option<Seal> {
        let tail = &self.shelf.tail;
        let bytes = tail.weight() + new.weight();
        let is_more_than =
            |times: usize| tail.len() >= times * MOST_COMMITS || bytes >= times * MOST_BYTES;
        let (is_much, is_too_much) = (is_more_than(1), is_more_than(PATIENCE));
        let is_large = is_much && new.weight() >= MOST_BYTES / 2;
        let mut seal = match self.packing.take() {
            Some(packing) if is_large || is_too_much || packing.0.is_finished() => {
                packing.0.await.ok()
            }
            packing => {
                self.packing = packing;
                None
            }
        };
        if seal.is_none() && self.packing.is_none() && is_much {
            let commits = self.shelf.tail.to_vec();
            match Handle::try_current() {
                Ok(runtime) if !is_large => {
                    self.packing = Some(Packing(runtime.spawn_blocking(move || packed(&commits))));
                }
                _ => seal = Some(packed(&commits)),
            }
        }
        if let Some(seal) = &mut seal
            && is_large
        {
            seal.pages.extend(entry_pages(&numbered(new).collect::<Vec<_>>()));
            new.entries.clear();
        }
        seal
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

fn numbered(commit: &OpenCommit) -> impl Iterator<Item = (u32, &Entry)> {
    commit.range().zip(&commit.entries)
}

/// Pages of neighbouring entries, none too large.
fn entry_pages(entries: &[(u32, &Entry)]) -> Vec<Page> {
    let mut pages = Vec::new();
    let mut rest = entries;
    while let Some((first, _)) = rest.first() {
        let mut bytes = 0;
        let fits = |(place, (number, entry)): &(usize, &(u32, &Entry))| {
            bytes += entry.body.len();
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
