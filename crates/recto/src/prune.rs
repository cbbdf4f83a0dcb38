//! Permanent removal of messages that no kept version shows.

use std::collections::{BTreeMap, BTreeSet};

use recto_core::{BatchIndex, LogIndex, ShownEntries, Timestamp, Version};
use recto_store::{ConversationId, ConversationRow, Lineage, PageKind, Rewrite, pack_entries};
use tracing::Instrument;

use crate::apply::check_expected;
use crate::attempts::Attempts;
use crate::erase::overwrite;
use crate::loaded::{LoadedConversation, read_message, show_all};
use crate::row_reader::{RowReader, damaged, unpack_commit};
use crate::{Conversation, Error};

/// The versions that a prune keeps: those that any of the fields selects, and always the newest one.
/// `Keep::default()` selects nothing, and a prune with it is refused. Fields may be added: construct it with
/// `..Keep::default()`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// The number of newest versions to keep.
    pub last_versions: Option<u32>,
    /// A count of batches: all versions since the n-th newest batch of the live path was opened are kept.
    pub last_batches: Option<usize>,
    /// Versions of this time or later are kept.
    pub since: Option<Timestamp>,
    /// Versions to keep.
    pub versions: Vec<Version>,
}

/// The result of a prune.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PruneReport {
    /// The entries whose messages were overwritten.
    pub entries: Vec<LogIndex>,
    /// The number of overwritten bytes.
    pub bytes: usize,
    /// The number of kept versions. They show the same messages as before.
    pub kept_versions: u32,
}

impl Keep {
    /// Keeps only the newest version.
    pub fn newest() -> Keep {
        Keep { last_versions: Some(1), ..Keep::default() }
    }

    /// Keeps all versions since the oldest of the newest `batches` batches of the live path was opened.
    pub fn last_batches(batches: usize) -> Keep {
        Keep { last_batches: Some(batches), ..Keep::default() }
    }

    /// Keeps the versions of this time or later.
    pub fn since(time: Timestamp) -> Keep {
        Keep { since: Some(time), ..Keep::default() }
    }
}

impl Conversation {
    /// Overwrites permanently the messages that no kept version shows. Entries keep their indices, and
    /// versions that are not kept can still be listed, compared and explained; they show a placeholder
    /// for each overwritten message.
    ///
    /// A version shows the messages that are visible in it. A mark does not keep a hidden message, whatever
    /// its label is. Messages that belong to the conversation that this one was forked from are not
    /// overwritten, nor are messages that any version of a fork shows.
    pub async fn prune(&self, keep: &Keep) -> Result<PruneReport, Error> {
        self.prune_if(keep, None).await
    }

    /// [`prune`](Self::prune), refused with `version_conflict` if another version than this is the
    /// newest. `None` prunes at any version.
    pub async fn prune_if(
        &self,
        keep: &Keep,
        expected_version: impl Into<Option<Version>>,
    ) -> Result<PruneReport, Error> {
        let span = tracing::info_span!("prune", conversation = %self.id);
        self.prune_at(keep, expected_version.into()).instrument(span).await
    }

    async fn prune_at(
        &self,
        keep: &Keep,
        expected_version: Option<Version>,
    ) -> Result<PruneReport, Error> {
        let slot = self.recto.shared.open.slot(self.id);
        let mut open = slot.writer.lock().await;
        let mut attempts = Attempts::default();
        let pruned = loop {
            let loaded = self.newest(&slot, &mut open).await?;
            let found = (loaded.head().version, loaded.reader.rewrites);
            attempts.begin(self.id, found).await?;
            check_expected(loaded, expected_version)?;
            let (pruned, rewrite) = self.prunable(loaded, keep).await?;
            let (reader, version) = (&loaded.reader, loaded.head().version);
            // The rows are written even if nothing is left to overwrite, because an interrupted prune may
            // have left copies.
            match reader.store.rewrite(reader.id, version, rewrite).await {
                // Another process has committed, packed, erased or forked.
                Err(error) if error.is_conflict() => {}
                done => break done.map(|()| pruned),
            }
        };
        // Messages may be overwritten even if the store returned an error.
        *open = None;
        drop(open);
        self.recto.shared.open.close_all().await;
        Ok(pruned?)
    }

    /// What [`prune`](Self::prune) would overwrite. Nothing is changed.
    pub async fn preview_prune(&self, keep: &Keep) -> Result<PruneReport, Error> {
        self.preview_prune_if(keep, None).await
    }

    /// [`preview_prune`](Self::preview_prune), refused with `version_conflict` if another version than
    /// this is the newest.
    pub async fn preview_prune_if(
        &self,
        keep: &Keep,
        expected_version: impl Into<Option<Version>>,
    ) -> Result<PruneReport, Error> {
        let mut loaded = self.reading().await?;
        check_expected(&loaded, expected_version.into())?;
        Ok(self.prunable(&mut loaded, keep).await?.0)
    }

    /// The result of a prune, and the rows that it would replace.
    async fn prunable(
        &self,
        loaded: &mut LoadedConversation,
        keep: &Keep,
    ) -> Result<(PruneReport, Rewrite), Error> {
        if *keep == Keep::default() {
            let reason = "a prune must say what to keep: batches, a time or versions";
            let field = Some("keep".to_owned());
            return Err(recto_core::Error::InvalidOperation { reason: reason.into(), field }.into());
        }
        let kept = kept_versions(loaded, keep).await?;
        let reader = &loaded.reader;
        let forks = reader.store.forks(self.id).await?;
        let known_forks = forks.iter().map(|fork| fork.id).collect();
        let kept_versions = kept.len() as u32;
        let shown = shown(reader, kept, forks).await?;
        let (entries, bytes, rewrite) = without_hidden(reader, &shown, known_forks).await?;
        Ok((PruneReport { entries, bytes, kept_versions }, rewrite))
    }
}

/// The entries of a conversation that a kept version or any version of a fork shows. Each row of a fork is
/// read once, however many forks share it.
pub(crate) async fn shown(
    reader: &RowReader,
    kept: BTreeSet<Version>,
    forks: Vec<ConversationRow>,
) -> Result<ShownEntries, Error> {
    let id = reader.id;
    let mut shared = Shared::default();
    forks.iter().for_each(|fork| shared.add(id, &fork.lineage));
    let mut shown = ShownEntries::default();
    // Earlier versions show only entries of other conversations.
    let (start, _) = reader.own_start();
    shown.branch(Version(start), None);
    let kept_by_forks = shared.versions.get(&id).copied().unwrap_or(0).max(start);
    show_all(reader, (start..kept_by_forks).map(Version), &mut shown).await?;
    show_all(reader, kept.range(Version(kept_by_forks)..).copied(), &mut shown).await?;
    for fork in forks {
        let entries = shared.entries(id, &fork.lineage);
        let reader = RowReader::new(reader.store.clone(), fork.id, fork.lineage).await?;
        let (start, _) = reader.own_start();
        shown.branch(Version(start), entries);
        let own = start..reader.newest()?.version + 1;
        show_all(&reader, own.map(Version), &mut shown).await?;
        shared.versions.remove(&fork.id);
    }
    // The remaining conversations are removed forks whose rows other forks share.
    shared.versions.remove(&id);
    for (between, end) in shared.versions {
        let lineage = shared.lineages.remove(&between).unwrap_or_default();
        let entries = lineage.iter().find(|from| from.id == id).map(|from| from.entries);
        let reader = RowReader::new(reader.store.clone(), between, lineage).await?;
        let (start, _) = reader.own_start();
        shown.branch(Version(start), entries);
        show_all(&reader, (start..end).map(Version), &mut shown).await?;
    }
    Ok(shown)
}

/// The versions and entries that forks share with a conversation and with the forks between.
#[derive(Default)]
struct Shared {
    /// For each conversation, the end of the versions that forks share.
    versions: BTreeMap<ConversationId, u32>,
    lineages: BTreeMap<ConversationId, Lineage>,
}

impl Shared {
    /// Adds the versions and entries that a fork shares.
    fn add(&mut self, of: ConversationId, fork: &Lineage) {
        // From the direct ancestor up. The ancestors of a known ancestor are known too.
        let below = fork.iter().enumerate().rev();
        for (above, ancestor) in below {
            let end = self.versions.entry(ancestor.id).or_default();
            *end = (*end).max(ancestor.versions);
            if ancestor.id == of || self.lineages.contains_key(&ancestor.id) {
                break;
            }
            self.lineages.insert(ancestor.id, fork.up_to(above));
        }
    }

    /// The end of the entries that a fork shares of a conversation.
    fn entries(&self, of: ConversationId, fork: &Lineage) -> Option<u32> {
        fork.iter().find(|from| from.id == of).map(|from| from.entries)
    }
}

async fn kept_versions(
    loaded: &mut LoadedConversation,
    keep: &Keep,
) -> Result<BTreeSet<Version>, Error> {
    let current = loaded.conversation.version();
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
        let batch = loaded.conversation.stats().current_batch_index.0;
        let lowest = BatchIndex((batch + 1).saturating_sub(batches.max(1)));
        let first = loaded.opened_by(current, lowest).await?;
        kept.extend((first.0..=current.0).map(Version));
    }
    if let Some(since) = keep.since {
        for version in (0..=current.0).map(Version) {
            if loaded.saved_version(version).await?.timestamp() >= since {
                kept.insert(version);
            }
        }
    }
    Ok(kept)
}

/// The rows of a conversation with placeholders for the entries that are not shown, on condition that it
/// has no other forks than `known_forks`. Also returns the overwritten entries and the number of their
/// bytes.
pub(crate) async fn without_hidden(
    reader: &RowReader,
    shown: &ShownEntries,
    known_forks: Vec<ConversationId>,
) -> Result<(Vec<LogIndex>, usize, Rewrite), Error> {
    let (id, head) = (reader.id, reader.newest()?);
    let (_, first) = reader.own_start();
    let is_pruned = |index: u32| index >= first && !shown.contains(LogIndex(index));
    let (mut entries, mut bytes) = (Vec::new(), 0);
    let mut rewrite = Rewrite { forks: Some(known_forks), ..Rewrite::default() };
    let rows = reader.store.commits(id, None).await?;
    for row in rows {
        let (start, mut body) = unpack_commit(id, &row)?;
        let mut is_changed = false;
        for (index, entry) in (start..).zip(&mut body.entries) {
            if is_pruned(index) && entry.meta.gone.is_none() {
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
            if is_pruned(index) && entry.meta.gone.is_none() {
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
