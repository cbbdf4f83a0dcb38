//! Backups of a whole store, and their restoration.
//!
//! A restoration copies one conversation after the other, each in one transaction. A removed conversation
//! whose rows forks share is copied without a name, in the transaction of its first fork. So an
//! interrupted restoration leaves complete conversations only, and the next one skips them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use recto_core::{Limits, LogIndex, Message, Version};
use recto_store::{
    CommitBody, ConversationId, ConversationRow, Entry, NewConversation, PageKind,
    RestoredConversation, Store, StoredRows, SurveyedConversation, Tenant, Words, WordsOf,
};
use tracing::Instrument;

use crate::packing;
use crate::recto::Options;
use crate::row_reader::{RowReader, damaged};
use crate::verify::{Verification, is_damage};
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

/// The result of a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// Descriptions of the damage in the store. A backup of a SQLite file contains the damaged rows as
    /// they are; other backups lack the conversations with damaged rows.
    pub damage: Vec<String>,
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
    /// Copies the conversations of all tenants into a new SQLite file, while reads and writes continue.
    /// The file is a store that `sqlite:PATH` opens. Refused if the file exists, or if rows of the store
    /// are damaged.
    pub async fn backup(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.backup_with_progress(path, &mut |_| {}).await
    }

    /// [`backup`](Self::backup) with a progress callback that counts conversations. A SQLite store copies
    /// itself in one step and does not call it.
    pub async fn backup_with_progress(
        &self,
        path: impl AsRef<Path>,
        progress: ProgressFn<'_>,
    ) -> Result<(), Error> {
        let span = tracing::info_span!("backup");
        self.backup_to(path.as_ref(), false, progress).instrument(span).await.map(drop)
    }

    /// [`backup_with_progress`](Self::backup_with_progress) of a store that may be damaged: what can be
    /// copied is copied, and the result lists the damage.
    pub async fn backup_damaged(
        &self,
        path: impl AsRef<Path>,
        progress: ProgressFn<'_>,
    ) -> Result<BackupReport, Error> {
        let span = tracing::info_span!("backup");
        self.backup_to(path.as_ref(), true, progress).instrument(span).await
    }

    async fn backup_to(
        &self,
        path: &Path,
        keeps_going: bool,
        progress: ProgressFn<'_>,
    ) -> Result<BackupReport, Error> {
        if path.exists() {
            Partial::remove_leftover(path);
            return Err(failure("making a backup", "there is a file of that name"));
        }
        let mut damage = self.shared.store.check().await?;
        if !damage.is_empty() {
            tracing::warn!(faults = damage.len(), "the store is damaged");
            if !keeps_going {
                return Err(recto_store::Error::DamagedStore { damage }.into());
            }
        }
        if self.shared.store.copy_to(path).await? {
            return Ok(BackupReport { damage });
        }
        let options =
            recto_store::SqliteOptions { search: self.shared.is_searched, ..Default::default() };
        // The file has another name until it is complete, so that an incomplete backup is not used.
        let partial = Partial::beside(path)?;
        let store = recto_store::SqliteStore::open(partial.path(), options).await?;
        let copy: Arc<dyn Store> = Arc::new(store);
        let mut copying = Copying::new(&self.shared.store, &copy, self.shared.is_searched).await?;
        copying.copy_all(progress).await?;
        let lost = copying.restored.damaged.iter();
        damage.extend(
            lost.map(|lost| format!("{:?} is not in the backup: {}", lost.name, lost.fault)),
        );
        if !keeps_going && !damage.is_empty() {
            return Err(recto_store::Error::DamagedStore { damage }.into());
        }
        // Closing the store moves everything from its journal into the file.
        drop(copy);
        partial.finish(path)?;
        Ok(BackupReport { damage })
    }

    /// Copies the conversations of a backup into this store, with their names and tenants. Each is
    /// verified first; a damaged one is not copied, and the result names it. A fork of a damaged
    /// conversation is copied if what it shares is sound; it then has its own copy of those messages.
    ///
    /// Nothing is copied if this store has another conversation of the same name, or the same
    /// conversation under another name. A name that is not allowed any more is replaced, and the result
    /// says by which. Conversations that an earlier, interrupted restoration has copied
    /// are skipped, so repeating the call completes it. A conversation that this store has with more versions
    /// than the backup is not changed, and the result names it.
    pub async fn restore(&self, path: impl AsRef<Path>) -> Result<RestoreReport, Error> {
        self.restore_with_progress(path, &mut |_| {}).await
    }

    /// [`restore`](Self::restore) with a progress callback that counts verified and copied conversations.
    pub async fn restore_with_progress(
        &self,
        path: impl AsRef<Path>,
        progress: ProgressFn<'_>,
    ) -> Result<RestoreReport, Error> {
        let span = tracing::info_span!("restore");
        self.restore_from(path.as_ref(), progress).instrument(span).await
    }

    async fn restore_from(
        &self,
        path: &Path,
        progress: ProgressFn<'_>,
    ) -> Result<RestoreReport, Error> {
        if !path.exists() {
            return Err(failure("reading a backup", "there is no such file"));
        }
        let options = recto_store::SqliteOptions::default();
        let backup: Arc<dyn Store> = Arc::new(recto_store::SqliteStore::open(path, options).await?);
        let recto = Recto::with_store(backup.clone(), Options::default());
        let store = &self.shared.store;
        let mut copying = Copying::new(&backup, store, self.shared.is_searched).await?;
        copying.reads_file = true;
        copying.replace_refused_names();
        let total = copying.named().count() as u64;
        let mut verified = 0;
        let named: Vec<_> = copying.named().cloned().collect();
        let mut verification = Verification::of(named.iter().filter_map(|it| it.row.as_ref().ok()));
        for surveyed in &named {
            verified += 1;
            let Ok(row) = &surveyed.row else { continue };
            let conversation = recto.for_tenant(surveyed.tenant.clone()).handle_of(row.clone());
            let report = verification.verify(&conversation, &mut |_| {}).await?;
            match report.faults.into_iter().next() {
                Some(fault) => copying.skip(surveyed, fault),
                None if self.has(&surveyed.tenant, row, &mut copying).await? => {}
                None => copying.check_free(surveyed, row)?,
            }
            progress(Progress::new(verified, total * 2));
        }
        let copied = &mut |copied: Progress| {
            progress(Progress::new(copied.total + copied.done, copied.total * 2));
        };
        copying.copy_all(copied).await?;
        Ok(copying.restored)
    }

    /// Copies the conversations of another store, each completely or not at all.
    pub(crate) async fn copy_from(&self, from: &Arc<dyn Store>) -> Result<(), Error> {
        let mut copying = Copying::new(from, &self.shared.store, self.shared.is_searched).await?;
        copying.copy_all(&mut |_| {}).await
    }

    /// Whether this store has a conversation of the backup, at the version of the backup or later.
    async fn has(
        &self,
        tenant: &Tenant,
        row: &ConversationRow,
        copying: &mut Copying<'_>,
    ) -> Result<bool, Error> {
        let Some(present) = copying.present.get(&row.id) else { return Ok(false) };
        let is_same = |present: &&SurveyedConversation| {
            present.tenant == *tenant && present.name.as_deref() == Some(&row.name)
        };
        let Some(Ok(present)) = Some(present).filter(is_same).map(|present| &present.row) else {
            return Ok(false);
        };
        let is_there = match present.head.version.cmp(&row.head.version) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal => present.head.link == row.head.link,
            // Versions were added since.
            std::cmp::Ordering::Greater => {
                let handle = self.for_tenant(tenant.clone()).handle_of(present.clone());
                let records = handle.load().await?.reader.records(row.head.version).await?;
                records.iter().any(|(number, record)| {
                    *number == row.head.version && record.link == row.head.link
                })
            }
        };
        copying.restored.already_there += usize::from(is_there);
        if is_there && present.head.version > row.head.version {
            copying.restored.newer.push(NewerConversation {
                tenant: tenant.clone(),
                name: row.name.clone(),
                version: Version(present.head.version),
                backup_version: Version(row.head.version),
            });
        }
        Ok(is_there)
    }
}

fn failure(action: &'static str, reason: &str) -> Error {
    recto_store::Error::Failed { action, reason: reason.to_owned(), source: None }.into()
}

/// An incomplete file. Dropping the value removes it.
struct Partial(PathBuf);

impl Partial {
    fn beside(path: &Path) -> Result<Partial, Error> {
        let mut name = path.as_os_str().to_owned();
        name.push(".partial");
        let partial = Partial(name.into());
        partial.remove().map_err(failed)?;
        Ok(partial)
    }

    /// Removes the other name of a complete backup. It is left if the process was killed after it had given
    /// the file its name.
    fn remove_leftover(path: &Path) {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let mut name = path.as_os_str().to_owned();
            name.push(".partial");
            let file = |path: &Path| std::fs::metadata(path).ok().map(|it| (it.dev(), it.ino()));
            if file(path) == file(Path::new(&name)) {
                // If it cannot be removed, it is another name of a complete backup.
                if let Err(error) = std::fs::remove_file(name) {
                    let error = error.kind().to_string();
                    tracing::warn!(error, "the second name of a backup could not be removed");
                }
            }
        }
        #[cfg(not(unix))]
        let _ = path;
    }

    fn path(&self) -> &Path {
        &self.0
    }

    fn remove(&self) -> std::io::Result<()> {
        for suffix in ["", "-wal", "-shm"] {
            let mut name = self.0.as_os_str().to_owned();
            name.push(suffix);
            match std::fs::remove_file(&name) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Gives the file its name. Fails if a file of that name exists by now.
    fn finish(self, path: &Path) -> Result<(), Error> {
        Ok(std::fs::hard_link(&self.0, path).map_err(failed)?)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // The next backup of that name removes the file too.
        if let Err(error) = self.remove() {
            let error = error.kind().to_string();
            tracing::warn!(error, "an incomplete backup file could not be removed");
        }
    }
}

fn failed(error: std::io::Error) -> recto_store::Error {
    let reason = error.kind().to_string();
    recto_store::Error::Failed { action: "making a backup", reason, source: None }
}

/// Copies conversations from one store to another, ancestors before their forks.
struct Copying<'a> {
    from: &'a Arc<dyn Store>,
    to: &'a Arc<dyn Store>,
    is_searched: bool,
    /// Whether the source is a file: a backup.
    reads_file: bool,
    /// The conversations of the source, ancestors before their forks.
    source: Vec<SurveyedConversation>,
    /// The conversations of the target before the copy.
    present: BTreeMap<ConversationId, SurveyedConversation>,
    /// The names in the target before the copy.
    taken: BTreeSet<(Tenant, String)>,
    /// The conversations that the target has.
    done: BTreeSet<ConversationId>,
    /// Damaged conversations, which are not copied.
    skipped: BTreeSet<ConversationId>,
    restored: RestoreReport,
}

impl<'a> Copying<'a> {
    async fn new(
        from: &'a Arc<dyn Store>,
        to: &'a Arc<dyn Store>,
        is_searched: bool,
    ) -> Result<Copying<'a>, Error> {
        let source = from.survey().await?;
        let present: BTreeMap<_, _> =
            to.survey().await?.into_iter().map(|present| (present.id, present)).collect();
        let done = present.keys().copied().collect();
        let taken = present
            .values()
            .filter_map(|present| Some((present.tenant.clone(), present.name.clone()?)));
        let taken = taken.collect();
        let (skipped, restored) = Default::default();
        let reads_file = false;
        let mut copying = Copying {
            from,
            to,
            is_searched,
            reads_file,
            source,
            present,
            taken,
            done,
            skipped,
            restored,
        };
        let damaged: Vec<_> =
            copying.source.iter().filter(|found| found.row.is_err()).cloned().collect();
        for found in damaged {
            let fault = found.row.as_ref().err().map(ToString::to_string);
            copying.skip(&found, fault.unwrap_or_default());
        }
        Ok(copying)
    }

    /// Gives another name to the conversations whose name is not allowed any more. It follows from the id,
    /// so that a repeated restoration finds the conversation.
    fn replace_refused_names(&mut self) {
        for found in &mut self.source {
            let Some(name) = found.name.as_mut().filter(|name| crate::check_name(name).is_err())
            else {
                continue;
            };
            let to = format!("restored {}", found.id);
            let from = std::mem::replace(name, to.clone());
            if let Ok(row) = &mut found.row {
                row.name.clone_from(&to);
            }
            let tenant = found.tenant.clone();
            self.restored.renamed.push(RenamedConversation { tenant, from, to });
        }
    }

    /// The conversations of the source that have a name.
    fn named(&self) -> impl Iterator<Item = &SurveyedConversation> {
        self.source.iter().filter(|found| found.name.is_some())
    }

    /// Does not copy a conversation because it is damaged.
    fn skip(&mut self, found: &SurveyedConversation, fault: String) {
        self.skipped.insert(found.id);
        if let Some(name) = found.name.clone() {
            let tenant = found.tenant.clone();
            self.restored.damaged.push(DamagedConversation { tenant, name, fault });
        }
    }

    /// Whether an error says that rows of the source are damaged. For a file, an error of SQLite also counts,
    /// because SQLite reports its damaged structures that way. A server fails for other reasons too.
    fn is_damage(&self, error: &Error) -> bool {
        if self.reads_file { is_damage(error) } else { error.is_damage() }
    }

    /// Fails if the target has the conversation, or another one of its name.
    fn check_free(&self, found: &SurveyedConversation, row: &ConversationRow) -> Result<(), Error> {
        let name = (found.tenant.clone(), row.name.clone());
        match self.present.contains_key(&row.id) || self.taken.contains(&name) {
            true => Err(recto_store::Error::ConversationExists { name: row.name.clone() }.into()),
            false => Ok(()),
        }
    }

    async fn copy_all(&mut self, progress: ProgressFn<'_>) -> Result<(), Error> {
        let total = self.named().count() as u64;
        let mut count = 0;
        for found in self.source.clone() {
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
            let surveyed = self.source.iter().find(|found| found.id == ancestor.id);
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
        let (store, lineage) = (self.from.clone(), row.lineage.clone());
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
        let rows = self.from.rows(row.id).await?;
        let first = rows.commits.first().ok_or_else(|| damaged(row.id, "it has no version"))?;
        let words = if self.is_searched { words(&entries(row.id, &rows)?) } else { Vec::new() };
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
            entries_of_unit += entries(restored.new.id, &restored.rows)?.len() as u64;
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
                self.restored.already_there += named;
            }
            restored => {
                restored?;
                self.restored.conversations += named;
                self.restored.entries += entries_of_unit;
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
