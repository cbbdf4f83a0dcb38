//! The next version of a conversation as a row. `packing.rs` says when rows are packed into pages.

use recto_core::{Conversation, LogIndex};
use recto_store::{
    Commit, CommitRow, Entry, EntryMeta, Head, IdempotencyKey, Words, WordsOf, pack_commit,
};

use crate::opened::Opened;
use crate::row_reader::{Body, OpenCommit, WRITTEN_BY_ENGINE};

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
        let mut open = OpenCommit { head, record, entries, packed: Vec::new() };
        let seal = self.seal(&mut open);
        let row = CommitRow { head, body: pack_commit(&open.record, &open.entries) };
        open.packed.clone_from(&row.body);
        let commit = Commit { conversation: self.reader.id, row, key, words, seal };
        Prepared { commit, open }
    }
}

/// The log entries from one on, as they are stored.
pub(crate) fn entries_of(conversation: &Conversation, from: u32) -> Vec<Entry<Body>> {
    let end = conversation.log().len() as u32;
    let measures = conversation.measures(from..end);
    (from..end)
        .zip(measures)
        .map(|(number, measure)| Entry {
            meta: EntryMeta {
                role: measure.role.number() as u8
                    | if measure.is_written_by_engine { WRITTEN_BY_ENGINE } else { 0 },
                tokens: measure.tokens as u32,
                timestamp: measure.timestamp,
                edges: measure.edges,
                gone: None,
            },
            body: conversation
                .message(LogIndex(number))
                .map_or_else(|| Body::Read(String::new()), |message| Body::Of(message.clone())),
        })
        .collect()
}

/// The head after one more version.
pub(crate) fn head_of(before: Head, record: &str, entries: &[Entry<Body>], committed: i64) -> Head {
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
