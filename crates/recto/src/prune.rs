//! Dropping what no kept version shows.

use std::collections::BTreeSet;

use recto_core::{BatchIndex, LogIndex, Shown, Timestamp, Version};
use recto_store::{ConversationId, ConversationRow, PageKind, Rewrite, pack_entries};

use crate::apply::check_expected;
use crate::erase::overwrite;
use crate::opened::{Opened, read_message};
use crate::row_reader::{damaged, unpack_commit};
use crate::{Error, StoredConversation};

/// What a prune keeps. A version is kept if any of these keeps it, and the newest one always is. One
/// of them must be given: a prune that was not told what to keep is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// The last so many versions.
    pub last_versions: Option<u32>,
    /// The versions since the last so many batches of the live path were opened.
    pub last_batches: Option<usize>,
    /// The versions that were made at this time or later.
    pub since: Option<Timestamp>,
    /// These versions.
    pub versions: Vec<Version>,
}

/// What was pruned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pruned {
    /// The entries whose messages were dropped.
    pub entries: Vec<LogIndex>,
    /// How many bytes of messages that was.
    pub bytes: usize,
    /// How many versions were kept: they show what they showed.
    pub kept_versions: u32,
}

impl Keep {
    /// Only the newest version.
    pub fn newest() -> Keep {
        Keep { last_versions: Some(1), ..Keep::default() }
    }

    /// The versions since the last so many batches of the live path were opened.
    pub fn last_batches(batches: usize) -> Keep {
        Keep { last_batches: Some(batches), ..Keep::default() }
    }

    /// The versions that were made at this time or later.
    pub fn since(time: Timestamp) -> Keep {
        Keep { since: Some(time), ..Keep::default() }
    }
}

impl StoredConversation {
    /// Drops the messages that no kept version shows, for good. Entries keep their numbers, and
    /// versions that were not kept can still be listed, compared and explained; where they show a
    /// message that was dropped, a placeholder stands in its place.
    ///
    /// What the conversation shares with the one it was forked from belongs to that one and is left
    /// alone; and so is everything that a fork of this one can show, at any version.
    pub async fn prune(&self, keep: &Keep) -> Result<Pruned, Error> {
        self.prune_with(keep, None).await
    }

    /// [`prune`](Self::prune), refused if the version that the caller has seen is not the newest.
    pub async fn prune_with(
        &self,
        keep: &Keep,
        expected_version: Option<Version>,
    ) -> Result<Pruned, Error> {
        let slot = self.recto.shared.open.slot(self.id);
        let mut open = slot.writer.lock().await;
        let pruned = loop {
            let opened = self.newest(&slot, &mut open).await?;
            check_expected(opened, expected_version)?;
            let (pruned, rewrite) = self.prunable(opened, keep).await?;
            let (reader, version) = (&opened.reader, opened.head().version);
            // Also if nothing is left to be dropped: an earlier prune may have left copies behind.
            match reader.store.rewrite(reader.id, version, rewrite).await {
                // Somebody wrote, packed, erased or forked meanwhile.
                Err(
                    recto_store::Error::VersionConflict { .. }
                    | recto_store::Error::RowsChanged
                    | recto_store::Error::Forked,
                ) => {}
                done => break done.map(|()| pruned),
            }
        };
        // Messages may be dropped even if that could not be done to the end.
        *open = None;
        drop(open);
        self.recto.shared.open.close_all().await;
        Ok(pruned?)
    }

    /// What [`prune`](Self::prune) would drop. Nothing is changed.
    pub async fn preview_prune(
        &self,
        keep: &Keep,
        expected_version: Option<Version>,
    ) -> Result<Pruned, Error> {
        let mut opened = self.reading().await?;
        check_expected(&opened, expected_version)?;
        Ok(self.prunable(&mut opened, keep).await?.0)
    }

    /// What would be dropped, and how.
    async fn prunable(&self, opened: &mut Opened, keep: &Keep) -> Result<(Pruned, Rewrite), Error> {
        if *keep == Keep::default() {
            let reason = "a prune must say what to keep: batches, a time or versions";
            let field = Some("keep".to_owned());
            return Err(recto_core::Error::InvalidOperation { reason: reason.into(), field }.into());
        }
        let kept = kept_versions(opened, keep).await?;
        let forks = self.recto.shared.store.forks(self.id).await?;
        let asked = forks.iter().map(|fork| fork.id).collect();
        let shown = self.shown(opened, &kept, forks).await?;
        let (entries, bytes, rewrite) = without_hidden(opened, &shown, asked).await?;
        Ok((Pruned { entries, bytes, kept_versions: kept.len() as u32 }, rewrite))
    }

    /// What the kept versions show, and all versions of forks.
    async fn shown(
        &self,
        opened: &mut Opened,
        kept: &BTreeSet<Version>,
        forks: Vec<ConversationRow>,
    ) -> Result<Shown, Error> {
        let shared = |fork: &ConversationRow| {
            let own = fork.lineage.iter().find(|from| from.id == self.id);
            own.map_or(0, |from| from.versions)
        };
        // What forks share with this one is looked at once.
        let most_shared = forks.iter().map(shared).max().unwrap_or(0);
        let mut shown = Shown::default();
        for version in (0..most_shared).map(Version) {
            opened.show(version, &mut shown).await?;
        }
        for &version in kept.range(Version(most_shared)..) {
            opened.show(version, &mut shown).await?;
        }
        for fork in forks {
            let first = shared(&fork);
            shown.branch(Version(first));
            let mut fork =
                self.recto.handle(fork.id, fork.settings, fork.policy, fork.lineage).open().await?;
            for version in (first..=fork.conversation.version().0).map(Version) {
                fork.show(version, &mut shown).await?;
            }
        }
        Ok(shown)
    }
}

async fn kept_versions(opened: &mut Opened, keep: &Keep) -> Result<BTreeSet<Version>, Error> {
    let current = opened.conversation.version();
    let mut kept = BTreeSet::from([current]);
    if let Some(&version) = keep.versions.iter().find(|version| **version > current) {
        let field = "versions";
        return Err(recto_core::Error::VersionNotFound { version, current, field }.into());
    }
    kept.extend(&keep.versions);
    if let Some(last) = keep.last_versions {
        kept.extend(((current.0 + 1).saturating_sub(last)..=current.0).map(Version));
    }
    if let Some(batches) = keep.last_batches {
        let batch = opened.conversation.stats().current_batch_index.0;
        let lowest = BatchIndex((batch + 1).saturating_sub(batches.max(1)));
        let first = opened.opened_by(current, lowest).await?;
        kept.extend((first.0..=current.0).map(Version));
    }
    if let Some(since) = keep.since {
        for version in (0..=current.0).map(Version) {
            if opened.saved_version(version).await?.timestamp() >= since {
                kept.insert(version);
            }
        }
    }
    Ok(kept)
}

/// Rows without the messages of all entries that are not shown and belong to this conversation,
/// provided that it has no other forks than those that were asked. Answers also which entries and
/// how many bytes that is.
async fn without_hidden(
    opened: &Opened,
    shown: &Shown,
    asked: Vec<ConversationId>,
) -> Result<(Vec<LogIndex>, usize, Rewrite), Error> {
    let reader = &opened.reader;
    let (id, head) = (reader.id, opened.head());
    let first = reader.lineage.last().map_or(0, |from| from.entries);
    let goes = |index: u32| index >= first && !shown.contains(LogIndex(index));
    let (mut entries, mut bytes) = (Vec::new(), 0);
    let mut rewrite = Rewrite { forks: Some(asked), ..Rewrite::default() };
    let rows = reader.store.commits(id, None).await?;
    for row in rows {
        let (start, mut body) = unpack_commit(id, &row)?;
        let mut is_changed = false;
        for (index, entry) in (start..).zip(&mut body.entries) {
            if goes(index) && entry.meta.gone.is_none() {
                let message = read_message(reader, &entry.body)?;
                bytes += overwrite(LogIndex(index), entry, &message.pruned()).bytes;
                entries.push(LogIndex(index));
                is_changed = true;
            }
        }
        if is_changed {
            rewrite.replace_commit(&row, body.pack());
        }
    }
    for page in reader.store.pages(id, PageKind::Entries, 0..head.entries, true).await? {
        let mut packed = page.entries().map_err(|error| damaged(id, error))?;
        let mut is_changed = false;
        for (index, entry) in (page.first..).zip(&mut packed) {
            if goes(index) && entry.meta.gone.is_none() {
                let message = read_message(reader, &entry.body)?;
                bytes += overwrite(LogIndex(index), entry, &message.pruned()).bytes;
                entries.push(LogIndex(index));
                is_changed = true;
            }
        }
        if is_changed {
            rewrite.replace_page(&page, pack_entries(page.first, &packed));
        }
    }
    entries.sort_unstable();
    rewrite.forget = entries.iter().map(|index| index.0).collect();
    Ok((entries, bytes, rewrite))
}
