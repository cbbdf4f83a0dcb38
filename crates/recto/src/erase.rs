//! Permanent erasure of a message.

use recto_core::{LogIndex, Message, Version};
use recto_store::{Entry, PageKind, Rewrite, pack_entries};
use tracing::Instrument;

use crate::apply::check_expected;
use crate::attempts::Attempts;
use crate::loaded::read_message;
use crate::row_reader::{damaged, unpack_commit};
use crate::{Conversation, Error};

/// The result of an erasure.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErasedMessage {
    /// The erased entry.
    pub index: LogIndex,
    /// The SHA-256 of the original message. It stays in the chain of hashes, so the chain stays valid,
    /// and a copy of the message elsewhere can be proved to be the original.
    pub hash: [u8; 32],
    /// The number of overwritten bytes.
    pub bytes: usize,
    /// Whether the message had been erased or pruned before.
    pub was_gone: bool,
}

impl Conversation {
    /// Overwrites a message permanently, in this conversation and in all forks that share it: in the store's
    /// file, its write-ahead log and its search index. The entry keeps its index, its role, its tokens and
    /// the ids and names of its tool calls.
    ///
    /// Other processes and other `Recto` values that have the conversation open do not use the message in
    /// any request that starts after this one has returned. Values that they returned before, and earlier
    /// backups, still contain it. Reasons of requests are not messages and are not erased. The hash is
    /// kept, so a guess of a short message can be checked with it.
    ///
    /// Refused with `storage` if unpacked rows of the conversation are damaged, because they may contain the
    /// message: [salvage](crate::Recto::salvage) the conversation, erase in the copy, and
    /// [remove](crate::Recto::remove) the damaged one.
    pub async fn erase(&self, index: LogIndex) -> Result<ErasedMessage, Error> {
        self.erase_if(index, None).await
    }

    /// [`erase`](Self::erase), which fails with `version_conflict` if `expected_version` is not the newest
    /// version. `None` erases at any version.
    pub async fn erase_if(
        &self,
        index: LogIndex,
        expected_version: impl Into<Option<Version>>,
    ) -> Result<ErasedMessage, Error> {
        let span = tracing::info_span!("erase", conversation = %self.id, index = index.0);
        let erased = self.erase_at(index, expected_version.into()).instrument(span).await;
        erased.map_err(advise_salvage)
    }

    async fn erase_at(
        &self,
        index: LogIndex,
        expected_version: Option<Version>,
    ) -> Result<ErasedMessage, Error> {
        let slot = self.recto.shared.open.slot(self.id);
        let mut open = slot.writer.lock().await;
        let mut attempts = Attempts::default();
        let (erased, done) = loop {
            let loaded = self.newest(&slot, &mut open).await?;
            check_expected(loaded, expected_version)?;
            let len = loaded.conversation.log_len();
            if index.as_usize() >= len {
                return Err(recto_core::Error::IndexOutOfRange { index, len }.into());
            }
            let reader = &loaded.reader;
            let owner = reader.owner(index.0);
            let commits = reader.store.commits(owner, None).await?;
            let at = commits.last().map_or(0, |newest| newest.head.version);
            attempts.begin(owner, (at, reader.rewrites)).await?;
            let mut rewrite = Rewrite { forget: vec![index.0], ..Rewrite::default() };
            let mut erased = None;
            for row in commits {
                let (first, mut body) = unpack_commit(owner, &row)?;
                let place = index.0.checked_sub(first).map(|place| place as usize);
                if let Some(entry) = place.and_then(|place| body.entries.get_mut(place)) {
                    let message = read_message(reader, &entry.body)?;
                    erased = Some(overwrite(index, entry, &message.erased()));
                    rewrite.replace_commit(&row, body.pack());
                }
            }
            let numbers = index.0..index.0 + 1;
            for page in reader.store.pages(owner, PageKind::Entries, numbers, true).await? {
                let mut entries = page.entries().map_err(|error| damaged(owner, error))?;
                let entry = &mut entries[(index.0 - page.first) as usize];
                let message = read_message(reader, &entry.body)?;
                erased = Some(overwrite(index, entry, &message.erased()));
                rewrite.replace_page(&page, pack_entries(page.first, &entries));
            }
            let erased =
                erased.ok_or_else(|| damaged(owner, format!("log entry {index} is missing")))?;
            // The rows are written even if the message was erased before, because an interrupted erasure may
            // have left copies.
            match reader.store.rewrite(owner, at, rewrite).await {
                // Another process has committed, packed the row, or erased another message in it.
                Err(error) if error.is_conflict() => {}
                done => break (erased, done),
            }
        };
        // The message may be erased even if the store returned an error.
        *open = None;
        drop(open);
        self.recto.shared.open.close_all().await;
        done?;
        Ok(erased)
    }
}

/// Adds to an error about damaged rows what to do. A damaged row may contain the message, so nothing is
/// erased in a conversation with one.
fn advise_salvage(error: Error) -> Error {
    match error {
        Error::Store(recto_store::Error::Damaged { conversation, reason }) => {
            let advice = "salvage the conversation, erase in the copy, and remove the damaged one";
            damaged(conversation, format!("{reason}; {advice}"))
        }
        error => error,
    }
}

/// Replaces a message by a placeholder, unless it is one already.
pub(crate) fn overwrite(
    index: LogIndex,
    entry: &mut Entry,
    placeholder: &Message,
) -> ErasedMessage {
    let was_gone = entry.meta.gone.is_some();
    let hash = entry.body_hash();
    let bytes = if was_gone { 0 } else { entry.body.len() };
    if !was_gone {
        entry.meta.gone = Some(hash);
        entry.body = placeholder.json().to_owned();
    }
    ErasedMessage { index, hash, bytes, was_gone }
}
