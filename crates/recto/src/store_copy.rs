//! Copies of conversations from one store to another: for backups, restorations and
//! [salvage](crate::Recto::salvage).
//!
//! One conversation is copied after the other, each in one transaction. A removed conversation whose rows
//! forks share is copied without a name, in the transaction of its first fork. So an interrupted copy
//! leaves complete conversations only, and the next one skips them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use recto_core::{Limits, LogIndex, Message, Version};
use recto_store::{
    CommitBody, ConversationId, ConversationRow, Entry, NewConversation, PageKind,
    RestoredConversation, Store, StoredRows, SurveyedConversation, Tenant, Words, WordsOf,
};

use crate::packing;
use crate::row_reader::{RowReader, damaged};
use crate::verify::is_damage;
use crate::{Error, Progress, ProgressFn, Recto};

/// A conversation that could not be copied because it is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DamagedConversation {
    /// The tenant.
    pub tenant: Tenant,
    /// The name.
    pub name: String,
    /// The first damage that was found.
    pub fault: String,
}

/// The result of a restoration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreReport {
    /// The number of restored conversations.
    pub conversations: usize,
    /// The number of their log entries.
    pub entries: u64,
    /// The number of conversations that the store already had, from an earlier restoration of the same
    /// backup, or because the backup was made of this store.
    pub already_there: usize,
    /// Those of them that have more versions in the store than in the backup. The store keeps them as they
    /// are.
    pub newer: Vec<NewerConversation>,
    /// The conversations that were not restored because their rows in the backup are damaged.
    pub damaged: Vec<DamagedConversation>,
    /// The conversations that got another name, because earlier releases allowed names that
    /// [`check_name`](crate::check_name) refuses.
    pub renamed: Vec<RenamedConversation>,
}

/// A conversation that has more versions in the store than in the backup.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewerConversation {
    /// The tenant.
    pub tenant: Tenant,
    /// The name.
    pub name: String,
    /// Its newest version in the store.
    pub version: Version,
    /// Its newest version in the backup.
    pub backup_version: Version,
}

/// A conversation that was restored under another name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RenamedConversation {
    /// The tenant.
    pub tenant: Tenant,
    /// The name in the backup.
    pub from: String,
    /// The name in the store: `restored ID`.
    pub to: String,
}

impl Recto {
    /// Copies the conversations of another store, each completely or not at all.
    pub(crate) async fn copy_from(&self, from: &Arc<dyn Store>) -> Result<(), Error> {
        let to = &self.shared.store;
        let present = to.survey().await?.into_iter().map(|present| present.id).collect();
        let source = Source { store: from, is_file: false };
        let mut copy = StoreCopy::new(source, to, present, self.shared.is_searched).await?;
        copy.copy_all(&mut |_| {}).await
    }
}

/// The store that is copied.
pub(crate) struct Source<'a> {
    pub(crate) store: &'a Arc<dyn Store>,
    /// Whether it is the file of a backup. An error of SQLite then means damage, because SQLite reports its
    /// damaged structures that way. A server fails for other reasons too.
    pub(crate) is_file: bool,
}

/// A copy of conversations from one store to another, ancestors before their forks.
pub(crate) struct StoreCopy<'a> {
    source: Source<'a>,
    to: &'a Arc<dyn Store>,
    is_searched: bool,
    /// The conversations of the source, ancestors before their forks.
    pub(crate) conversations: Vec<SurveyedConversation>,
    /// The conversations that the target has.
    done: BTreeSet<ConversationId>,
    /// Damaged conversations, which are not copied.
    skipped: BTreeSet<ConversationId>,
    pub(crate) report: RestoreReport,
}

impl<'a> StoreCopy<'a> {
    /// Lists the conversations of the source. `present` are the conversations of the target.
    pub(crate) async fn new(
        source: Source<'a>,
        to: &'a Arc<dyn Store>,
        present: BTreeSet<ConversationId>,
        is_searched: bool,
    ) -> Result<StoreCopy<'a>, Error> {
        let conversations = source.store.survey().await?;
        let damaged: Vec<_> =
            conversations.iter().filter(|found| found.row.is_err()).cloned().collect();
        let (skipped, report) = Default::default();
        let mut copy =
            StoreCopy { source, to, is_searched, conversations, done: present, skipped, report };
        for found in damaged {
            let fault = found.row.as_ref().err().map(ToString::to_string);
            copy.skip(&found, fault.unwrap_or_default());
        }
        Ok(copy)
    }

    /// The conversations of the source that have a name.
    pub(crate) fn named(&self) -> impl Iterator<Item = &SurveyedConversation> {
        self.conversations.iter().filter(|found| found.name.is_some())
    }

    /// Excludes a damaged conversation from the copy, and reports it if it has a name.
    pub(crate) fn skip(&mut self, found: &SurveyedConversation, fault: String) {
        self.skipped.insert(found.id);
        if let Some(name) = found.name.clone() {
            let tenant = found.tenant.clone();
            self.report.damaged.push(DamagedConversation { tenant, name, fault });
        }
    }

    /// Whether an error says that rows of the source are damaged.
    fn is_damage(&self, error: &Error) -> bool {
        if self.source.is_file { is_damage(error) } else { error.is_damage() }
    }

    /// Copies the conversations that are not skipped and that the target does not have.
    pub(crate) async fn copy_all(&mut self, progress: ProgressFn<'_>) -> Result<(), Error> {
        let total = self.named().count() as u64;
        let mut count = 0;
        for found in self.conversations.clone() {
            let Some(name) = &found.name else { continue };
            if let Ok(row) = &found.row
                && !self.skipped.contains(&found.id)
                && !self.done.contains(&found.id)
            {
                match self.with_ancestors(&found, name, row).await {
                    Err(error) if self.is_damage(&error) => {
                        self.skip(&found, error.to_string());
                    }
                    conversations => self.put(conversations?).await?,
                }
            }
            count += 1;
            progress(Progress::new(count, total));
        }
        Ok(())
    }

    /// A conversation, and before it the removed conversations that are only kept for their forks and
    /// that the target lacks.
    async fn with_ancestors(
        &self,
        found: &SurveyedConversation,
        name: &str,
        row: &ConversationRow,
    ) -> Result<Vec<RestoredConversation>, Error> {
        let mut conversations = Vec::new();
        for ancestor in row.lineage.iter().filter(|ancestor| !self.done.contains(&ancestor.id)) {
            let surveyed = self.conversations.iter().find(|found| found.id == ancestor.id);
            let surveyed = surveyed.filter(|_| !self.skipped.contains(&ancestor.id));
            let shared = match surveyed.map(|found| (found, &found.row)) {
                Some((found, Ok(row))) => {
                    self.read(&found.tenant, found.name.as_deref(), row).await
                }
                _ => Err(damaged(ancestor.id, "a conversation that shares its rows is damaged")),
            };
            match shared {
                Err(error) if self.is_damage(&error) => {
                    return Ok(vec![self.without_ancestors(&found.tenant, name, row).await?]);
                }
                shared => conversations.push(shared?),
            }
        }
        conversations.push(self.read(&found.tenant, Some(name), row).await?);
        Ok(conversations)
    }

    /// A fork of a damaged conversation, with a copy of the rows that it shares. It has the same versions,
    /// messages and links, and no ancestors.
    async fn without_ancestors(
        &self,
        tenant: &Tenant,
        name: &str,
        row: &ConversationRow,
    ) -> Result<RestoredConversation, Error> {
        let mut restored = self.read(tenant, Some(name), row).await?;
        let (store, lineage) = (self.source.store.clone(), row.lineage.clone());
        let reader = RowReader::new(store, row.id, lineage).await?;
        let (versions, entries) = reader.own_start();
        // The first own row of a fork is the version that it starts from.
        let pages = packing::pages_below(&reader, versions.saturating_sub(1), entries).await?;
        restored.rows.pages.splice(0..0, pages);
        restored.new.lineage.clear();
        if self.is_searched {
            restored.new.words = words(&self::entries(row.id, &restored.rows)?);
        }
        Ok(restored)
    }

    async fn read(
        &self,
        tenant: &Tenant,
        name: Option<&str>,
        row: &ConversationRow,
    ) -> Result<RestoredConversation, Error> {
        let rows = self.source.store.rows(row.id).await?;
        let first = rows.commits.first().ok_or_else(|| damaged(row.id, "it has no version"))?;
        // Every row is unpacked, which compares its checksums.
        for page in rows.pages.iter().filter(|page| page.kind == PageKind::Records) {
            page.records().map_err(|error| damaged(row.id, error))?;
        }
        let entries = entries(row.id, &rows)?;
        let words = if self.is_searched { words(&entries) } else { Vec::new() };
        let new = NewConversation {
            id: row.id,
            tenant: tenant.clone(),
            name: name.unwrap_or_default().to_owned(),
            created: row.created,
            settings: row.settings.clone(),
            policy: row.policy.clone(),
            lineage: row.lineage.to_vec(),
            first: first.clone(),
            words,
        };
        Ok(RestoredConversation { new, is_removed: name.is_none(), rows })
    }

    async fn put(&mut self, conversations: Vec<RestoredConversation>) -> Result<(), Error> {
        let mut entries_of_unit = 0;
        for restored in &conversations {
            self.done.insert(restored.new.id);
            let newest = restored.rows.commits.last().map_or(0, |newest| newest.head.entries);
            let shared = restored.new.lineage.last().map_or(0, |from| from.entries);
            entries_of_unit += u64::from(newest.saturating_sub(shared));
        }
        let last = conversations.last().map(|last| (last.new.tenant.clone(), last.new.id));
        let link = conversations.last().and_then(|last| Some(last.rows.commits.last()?.head.link));
        let named = conversations.iter().filter(|restored| !restored.is_removed).count();
        match self.to.restore(conversations).await {
            // A cancelled restoration may have stored it after the conversations were listed.
            Err(error @ recto_store::Error::ConversationExists { .. }) => {
                let present = match &last {
                    Some((tenant, id)) => self.to.get(tenant, *id).await?,
                    None => None,
                };
                if present.map(|present| present.head.link) != link {
                    return Err(error.into());
                }
                self.report.already_there += named;
            }
            restored => {
                restored?;
                self.report.conversations += named;
                self.report.entries += entries_of_unit;
            }
        }
        Ok(())
    }
}

/// All entries in the rows of a conversation.
pub(crate) fn entries(
    id: ConversationId,
    rows: &StoredRows,
) -> Result<BTreeMap<u32, Entry>, Error> {
    let mut entries = BTreeMap::new();
    for page in rows.pages.iter().filter(|page| page.kind == PageKind::Entries) {
        let found = page.entries().map_err(|error| damaged(id, error))?;
        entries.extend((page.first..).zip(found));
    }
    for row in &rows.commits {
        let body = CommitBody::unpack(&row.body).map_err(|error| damaged(id, error))?;
        let first = row.head.entries.saturating_sub(body.entries.len() as u32);
        entries.extend((first..).zip(body.entries));
    }
    Ok(entries)
}

fn words(entries: &BTreeMap<u32, Entry>) -> Vec<WordsOf> {
    let present = entries.iter().filter(|(_, entry)| entry.meta.gone.is_none());
    let words = present.filter_map(|(&number, entry)| {
        let message = Message::from_json_within(&entry.body, &Limits::NONE).ok()?;
        Some(WordsOf { entry: LogIndex(number).0, words: Words::of(&message.text()) })
    });
    words.collect()
}
