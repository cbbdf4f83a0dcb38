//! The next version of a conversation as a row, and when older rows are packed into pages.

use recto_core::{Conversation, LogIndex};
use recto_store::{
    Commit, CommitRow, Entry, EntryMeta, Head, IdempotencyKey, Page, Seal, Words, WordsOf, hash_of,
    pack_commit, pack_entries, pack_records,
};

use crate::opened::Opened;
use crate::shelf::OpenCommit;

/// So many commits are packed together.
const MOST_COMMITS: usize = 64;
/// And as soon as they have so many bytes.
const MOST_BYTES: usize = 128 * 1024;
/// A page holds so many entries, unless they are long.
const PAGE_ENTRIES: usize = 64;

/// A version that is about to be stored.
pub(crate) struct Prepared {
    pub(crate) commit: Commit,
    /// The same, to go on from once it is stored.
    pub(crate) open: OpenCommit,
}

impl Opened {
    /// Prepares the version that the engine made on top of the newest one.
    pub(crate) fn prepare(
        &mut self,
        next: &Conversation,
        key: Option<IdempotencyKey>,
        is_searched: bool,
    ) -> Prepared {
        let before = self.head();
        let saved = self.saver.newest(next);
        let record = serde_json::to_string(&saved).expect("plain data can be written");
        let entries = entries_of(next, before.entries);
        let head = head_of(before, &record, &entries, saved.timestamp());
        let words = if is_searched { words(next, before.entries) } else { Vec::new() };
        let mut open = OpenCommit { head, record, entries, packed: [0; 32] };
        let seal = self.seal(&mut open);
        let row = CommitRow { head, body: pack_commit(&open.record, &open.entries) };
        open.packed = hash_of(&row.body);
        let commit = Commit { conversation: self.shelf.id, row, key, words, seal };
        Prepared { commit, open }
    }

    /// Packs the older commits, once they are enough. A commit that is large on its own has its
    /// entries packed at once.
    fn seal(&self, new: &mut OpenCommit) -> Option<Seal> {
        let tail = &self.shelf.tail;
        let bytes: usize = tail.iter().chain([&*new]).map(OpenCommit::weight).sum();
        if tail.len() < MOST_COMMITS && bytes < MOST_BYTES {
            return None;
        }
        let first = tail.first()?.head.version;
        let records = tail.iter().map(|commit| (&*commit.record, commit.head.link));
        let mut pages = vec![pack_records(first, records)];
        let mut pending: Vec<(u32, Entry)> = tail.iter().flat_map(numbered).collect();
        if new.weight() >= MOST_BYTES / 2 {
            pending.extend(numbered(new));
            new.entries.clear();
        }
        pages.extend(entry_pages(&pending));
        let rows = Some(Seal::hash(tail.iter().map(|commit| commit.packed)));
        Some(Seal { below: new.head.version, pages, rows })
    }
}

fn numbered(commit: &OpenCommit) -> impl Iterator<Item = (u32, Entry)> {
    commit.range().zip(commit.entries.iter().cloned())
}

/// Pages of neighbouring entries, none too large.
fn entry_pages(entries: &[(u32, Entry)]) -> Vec<Page> {
    let mut pages = Vec::new();
    let mut rest = entries;
    while let Some((first, _)) = rest.first() {
        let mut bytes = 0;
        let fits = |(place, (number, entry)): &(usize, &(u32, Entry))| {
            bytes += entry.body.len();
            *place == 0
                || *place < PAGE_ENTRIES && bytes <= MOST_BYTES && *number == first + *place as u32
        };
        let count = rest.iter().enumerate().take_while(fits).count();
        let (page, behind) = rest.split_at(count);
        let page: Vec<Entry> = page.iter().map(|(_, entry)| entry.clone()).collect();
        pages.push(pack_entries(*first, &page));
        rest = behind;
    }
    pages
}

/// The log entries from one on, as they are stored.
pub(crate) fn entries_of(conversation: &Conversation, from: u32) -> Vec<Entry> {
    let end = conversation.log().len() as u32;
    let measures = conversation.measures(from..end);
    (from..end)
        .zip(measures)
        .map(|(number, measure)| Entry {
            meta: EntryMeta {
                role: measure.role.number() as u8,
                tokens: measure.tokens as u32,
                timestamp: measure.timestamp,
                edges: measure.edges,
                gone: None,
            },
            body: conversation
                .message(LogIndex(number))
                .map_or_else(String::new, |message| message.json().to_owned()),
        })
        .collect()
}

/// The head after one more version.
pub(crate) fn head_of(before: Head, record: &str, entries: &[Entry], committed: i64) -> Head {
    let version = before.version + 1;
    let numbered = (before.entries..).zip(entries);
    let hashed = numbered.map(|(number, entry)| (number, &entry.meta, entry.body_hash()));
    Head {
        version,
        entries: before.entries + entries.len() as u32,
        link: before.link.next(version, record.as_bytes(), hashed),
        committed,
    }
}

/// The words of the log entries from one on.
pub(crate) fn words(conversation: &Conversation, from: u32) -> Vec<WordsOf> {
    let entries = from..conversation.log().len() as u32;
    entries
        .filter_map(|entry| {
            let message = conversation.message(LogIndex(entry))?;
            Some(WordsOf { entry, words: Words::of(&message.text()) })
        })
        .collect()
}
