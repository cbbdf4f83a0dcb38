//! Turns the next version of a conversation into a row. `packing.rs` decides when rows are packed into
//! pages.

use recto_core::{LogIndex, PartialConversation};
use recto_store::{
    Commit, CommitRow, Entry, EntryMeta, Head, IdempotencyKey, Words, WordsOf, pack_commit,
};

use crate::Error;
use crate::loaded::LoadedConversation;
use crate::row_reader::{Body, OpenCommit, WRITTEN_BY_ENGINE};

/// A version that is ready to be stored.
pub(crate) struct Prepared {
    pub(crate) commit: Commit,
    /// The same version in its loaded form.
    pub(crate) open: OpenCommit,
}

impl LoadedConversation {
    /// Prepares the version that the engine made after the newest one.
    pub(crate) fn prepare(
        &mut self,
        next: &PartialConversation,
        key: Option<IdempotencyKey>,
        is_searched: bool,
    ) -> Result<Prepared, Error> {
        let before = self.head();
        let entries = entries_of(next, before.entries)?;
        let saved = self.saver.newest(next);
        let record = serde_json::to_string(&saved).expect("plain data can be written");
        let head = head_of(before, &record, &entries, saved.timestamp());
        let words = if is_searched { words(next, before.entries)? } else { Vec::new() };
        let mut open = OpenCommit { head, record, entries, packed: Vec::new(), damage: None };
        let seal = self.seal(&mut open);
        let row = CommitRow { head, body: pack_commit(&open.record, &open.entries) };
        open.packed.clone_from(&row.body);
        let (conversation, rewrites) = (self.reader.id, Some(self.reader.rewrites));
        let commit = Commit { conversation, row, key, words, seal, rewrites };
        Ok(Prepared { commit, open })
    }
}

/// The stored form of the log entries from an index on.
pub(crate) fn entries_of(
    conversation: &PartialConversation,
    from: u32,
) -> Result<Vec<Entry<Body>>, Error> {
    let end = conversation.log_len() as u32;
    let entry = |(number, meta): (u32, recto_core::EntryMeta)| {
        Ok(Entry {
            meta: EntryMeta {
                role: meta.role.number() as u8
                    | if meta.is_written_by_engine { WRITTEN_BY_ENGINE } else { 0 },
                tokens: meta.tokens as u32,
                timestamp: meta.timestamp,
                edges: meta.edges,
                gone: None,
            },
            body: Body::Of(conversation.message(LogIndex(number))?.clone()),
        })
    };
    (from..end).zip(conversation.metadata(from..end)?).map(entry).collect()
}

/// The head of the version after `before`.
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

/// The words of the log entries from an index on, for the search index.
pub(crate) fn words(conversation: &PartialConversation, from: u32) -> Result<Vec<WordsOf>, Error> {
    let words_of = |entry| {
        let message = conversation.message(LogIndex(entry))?;
        Ok(WordsOf { entry, words: Words::of(&message.text()) })
    };
    (from..conversation.log_len() as u32).map(words_of).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use recto_core::{Approx, Conversation, Error as EngineError, Message, Saver, Settings};

    use super::*;

    #[test]
    fn a_message_that_is_not_loaded_is_an_error_and_not_a_message_without_words() {
        let settings = Settings::counting_with(Approx);
        let messages = [Message::user("one"), Message::user("two")];
        let whole = Conversation::with_messages(settings, &messages, 0).unwrap();
        let whole = PartialConversation::from(whole);
        assert_eq!(words(&whole, 1).unwrap(), [WordsOf { entry: 1, words: Words::of("two") }]);
        let saved = Saver::default().newest(&whole);
        let entries = whole.metadata(0..2).unwrap().into_iter().map(|meta| (None, meta));
        let settings = whole.saved_settings();
        let partial = PartialConversation::first(&settings, Arc::new(Approx), &saved, entries);
        let refused = words(&partial.unwrap(), 0).unwrap_err();
        assert!(matches!(refused, Error::Engine(EngineError::NotLoaded { .. })), "{refused:?}");
    }
}
