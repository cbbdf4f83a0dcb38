//! Erasing a message for good.

use recto_core::{LogIndex, Message, Version};
use recto_store::{Entry, PageKind, Rewrite, pack_entries};

use crate::apply::check_expected;
use crate::opened::read_message;
use crate::shelf::{damaged, unpack_commit};
use crate::{Error, StoredConversation};

/// What was erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The entry.
    pub index: LogIndex,
    /// The SHA-256 of what it was. It stays in the chain, so the chain still holds, and whoever has
    /// the message elsewhere can show that this is what stood here.
    pub hash: [u8; 32],
    /// How many bytes were overwritten.
    pub bytes: usize,
    /// Whether it had been erased before.
    pub was_gone: bool,
}

impl StoredConversation {
    /// Overwrites the body of a message for good, here and in all forks that share it: in the
    /// store's file, its journal and its search index. The entry keeps its number, its role, its
    /// count of tokens and the names of its tool calls; everything else is gone.
    ///
    /// Backups that were made before still have it, and so have other `Recto` values and processes
    /// that have it open. Reasons that were given for requests are not messages, and stay. The hash
    /// stays too: whoever can guess a short message can test the guess with it.
    pub async fn erase(&self, index: LogIndex) -> Result<Receipt, Error> {
        self.erase_with(index, None).await
    }

    /// [`erase`](Self::erase), refused if the version that the caller has seen is not the newest.
    pub async fn erase_with(
        &self,
        index: LogIndex,
        expected_version: Option<Version>,
    ) -> Result<Receipt, Error> {
        let slot = self.recto.shared.open.slot(self.id);
        let mut open = slot.writer.lock().await;
        let (receipt, done) = loop {
            let opened = self.newest(&slot, &mut open).await?;
            check_expected(opened, expected_version)?;
            let len = opened.conversation.log_len();
            if index.as_usize() >= len {
                return Err(recto_core::Error::IndexOutOfRange { index, len }.into());
            }
            let shelf = &opened.shelf;
            let owner = shelf.owner(index.0);
            let commits = shelf.store.commits(owner, None).await?;
            let at = commits.last().map_or(0, |newest| newest.head.version);
            let mut rewrite = Rewrite { forget: vec![index.0], ..Rewrite::default() };
            let mut receipt = None;
            for row in commits {
                let (first, mut body) = unpack_commit(owner, &row)?;
                let place = index.0.checked_sub(first).map(|place| place as usize);
                if let Some(entry) = place.and_then(|place| body.entries.get_mut(place)) {
                    let message = read_message(shelf, &entry.body)?;
                    receipt = Some(overwrite(index, entry, &message.erased()));
                    rewrite.replace_commit(&row, body.pack());
                }
            }
            let numbers = index.0..index.0 + 1;
            for page in shelf.store.pages(owner, PageKind::Entries, numbers, true).await? {
                let mut entries = page.entries().map_err(|error| damaged(owner, error))?;
                let entry = &mut entries[(index.0 - page.first) as usize];
                let message = read_message(shelf, &entry.body)?;
                receipt = Some(overwrite(index, entry, &message.erased()));
                rewrite.replace_page(&page, pack_entries(page.first, &entries));
            }
            let receipt =
                receipt.ok_or_else(|| damaged(owner, format!("log entry {index} is missing")))?;
            // Also if it was gone before: then an earlier erasure may have left copies behind.
            match shelf.store.rewrite(owner, at, rewrite).await {
                // Somebody wrote meanwhile, or packed the row, or erased something else in it.
                Err(
                    recto_store::Error::VersionConflict { .. } | recto_store::Error::RowsChanged,
                ) => {}
                done => break (receipt, done),
            }
        };
        // It may be erased even if that could not be done to the end.
        *open = None;
        drop(open);
        self.recto.shared.open.close_all().await;
        done?;
        Ok(receipt)
    }
}

/// Puts a placeholder in the place of a message, unless one is there already.
pub(crate) fn overwrite(index: LogIndex, entry: &mut Entry, placeholder: &Message) -> Receipt {
    let was_gone = entry.meta.gone.is_some();
    let hash = entry.body_hash();
    let bytes = if was_gone { 0 } else { entry.body.len() };
    if !was_gone {
        entry.meta.gone = Some(hash);
        entry.body = placeholder.json().to_owned();
    }
    Receipt { index, hash, bytes, was_gone }
}
