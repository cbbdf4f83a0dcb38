//! Packing of older commits into pages. The request that finds enough of them stores the pages too.
//!
//! ```text
//!   commits  0 … 62 63        enough: the request of version 64 packs 0 to 63
//!                      64     one transaction stores the pages, deletes the rows 0 to 63, and
//!                             inserts the row 64
//! ```
//!
//! Packing takes about a millisecond, which every 64th append waits for. The store compares the
//! packed rows with the stored ones: if another process has packed or rewritten some of them, it
//! refuses the commit with `RowsChanged`, and the conversation is loaded again.

use std::sync::Arc;

use recto_store::{Entry, Page, Seal, pack_entries, pack_records};

use crate::loaded::LoadedConversation;
use crate::row_reader::{Body, OpenCommit};

/// Number of commits that are packed together.
const MAX_UNPACKED_COMMITS: usize = 64;
/// Commits are packed earlier if they and the new one have this many bytes.
const MAX_UNPACKED_BYTES: usize = 128 * 1024;
/// Maximum number of entries in a page, and of their bytes unless a single entry is longer.
const MAX_PAGE_ENTRIES: usize = 64;
const MAX_PAGE_BYTES: usize = 128 * 1024;

impl LoadedConversation {
    /// The pages to store together with a new commit, if there are enough older commits. The entries
    /// of a large new commit are moved into pages too.
    pub(crate) fn seal(&self, new: &mut OpenCommit) -> Option<Seal> {
        let unpacked = &self.reader.unpacked;
        let bytes = unpacked.byte_len() + new.byte_len();
        // A damaged row stays where it is: packing it would need its content.
        let is_damaged = || unpacked.iter().any(|commit| commit.damage.is_some());
        if unpacked.len() < MAX_UNPACKED_COMMITS && bytes < MAX_UNPACKED_BYTES || is_damaged() {
            return None;
        }
        let _span = tracing::debug_span!("pack", rows = unpacked.len()).entered();
        let mut seal = packed(unpacked);
        if new.byte_len() >= MAX_UNPACKED_BYTES / 2 {
            seal.pages.extend(entry_pages(&numbered(new).collect::<Vec<_>>()));
            new.entries.clear();
        }
        Some(seal)
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

/// The versions and entries below these numbers as pages. Reads the rows of the conversation and of its
/// ancestors.
pub(crate) async fn pages_below(
    reader: &crate::row_reader::RowReader,
    versions: u32,
    entries: u32,
) -> Result<Vec<Page>, crate::Error> {
    let mut pages = Vec::new();
    let mut version = 0;
    while version < versions {
        let mut records = reader.records(version).await?;
        records.retain(|(number, _)| *number < versions);
        pages.push(pack_records(
            version,
            records.iter().map(|(_, record)| (&*record.json, record.link)),
        ));
        version += records.len() as u32;
    }
    for first in (0..entries).step_by(MAX_PAGE_ENTRIES) {
        let end = entries.min(first + MAX_PAGE_ENTRIES as u32);
        let read = reader.entries(first..end).await?;
        let numbered: Vec<_> = (first..).zip(&read).collect();
        pages.extend(entry_pages(&numbered));
    }
    Ok(pages)
}

fn numbered(commit: &OpenCommit) -> impl Iterator<Item = (u32, &Entry<Body>)> {
    commit.range().zip(&commit.entries)
}

/// Pages of entries with consecutive indexes.
fn entry_pages<B: AsRef<str>>(entries: &[(u32, &Entry<B>)]) -> Vec<Page> {
    let mut pages = Vec::new();
    let mut rest = entries;
    while let Some((first, _)) = rest.first() {
        let mut bytes = 0;
        let fits = |(offset, (index, entry)): &(usize, &(u32, &Entry<B>))| {
            bytes += entry.body.as_ref().len();
            let is_next = *index == first + *offset as u32;
            *offset == 0 || *offset < MAX_PAGE_ENTRIES && bytes <= MAX_PAGE_BYTES && is_next
        };
        let count = rest.iter().enumerate().take_while(fits).count();
        let (page, behind) = rest.split_at(count);
        pages.push(pack_entries(*first, page.iter().map(|(_, entry)| *entry)));
        rest = behind;
    }
    pages
}
