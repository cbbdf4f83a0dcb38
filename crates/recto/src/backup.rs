//! Backups of a whole store, and their restoration.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use recto_core::{Limits, LogIndex, Message};
use recto_store::{
    CommitBody, ConversationId, ConversationRow, Entry, NewConversation, PageKind, Store,
    StoredRows, Tenant, Words, WordsOf,
};
use tracing::Instrument;

use crate::recto::Options;
use crate::row_reader::damaged;
use crate::{Error, Progress, ProgressFn, Recto};

/// The result of a restoration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// The number of restored conversations.
    pub conversations: usize,
    /// The number of their log entries.
    pub entries: u64,
}

impl Recto {
    /// Copies the conversations of all tenants into a new SQLite file, while reads and writes continue.
    /// The file is a store that `sqlite:PATH` opens. Refused if the file exists.
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
        self.backup_to(path.as_ref(), progress).instrument(span).await
    }

    async fn backup_to(&self, path: &Path, progress: ProgressFn<'_>) -> Result<(), Error> {
        if self.shared.store.copy_to(path).await? {
            return Ok(());
        }
        if path.exists() {
            let reason = "there is a file of that name";
            let doing = "making a backup";
            return Err(
                recto_store::Error::Failed { doing, reason: reason.into(), source: None }.into()
            );
        }
        let options =
            recto_store::SqliteOptions { search: self.shared.is_searched, ..Default::default() };
        // Under another name until it is complete, so that half a backup is not taken for a whole one.
        let partial = Partial::beside(path)?;
        let store = recto_store::SqliteStore::open(partial.path(), options).await?;
        let copy: Arc<dyn Store> = Arc::new(store);
        copy_all(&self.shared.store, &copy, self.shared.is_searched, progress).await?;
        // Closing the store moves everything from its journal into the file.
        drop(copy);
        partial.finish(path)
    }

    /// Copies the conversations of a backup into this store, with their names and tenants. The backup is
    /// verified first. Nothing is copied if it is damaged, or if this store already has one of its
    /// names or conversations.
    pub async fn restore(&self, path: impl AsRef<Path>) -> Result<Restored, Error> {
        self.restore_with_progress(path, &mut |_| {}).await
    }

    /// [`restore`](Self::restore) with a progress callback that counts verified and copied conversations.
    pub async fn restore_with_progress(
        &self,
        path: impl AsRef<Path>,
        progress: ProgressFn<'_>,
    ) -> Result<Restored, Error> {
        let span = tracing::info_span!("restore");
        self.restore_from(path.as_ref(), progress).instrument(span).await
    }

    async fn restore_from(&self, path: &Path, progress: ProgressFn<'_>) -> Result<Restored, Error> {
        if !path.exists() {
            let reason = "there is no such file";
            let doing = "reading a backup";
            return Err(
                recto_store::Error::Failed { doing, reason: reason.into(), source: None }.into()
            );
        }
        let options = recto_store::SqliteOptions::default();
        let backup: Arc<dyn Store> = Arc::new(recto_store::SqliteStore::open(path, options).await?);
        let recto = Recto::with_store(backup.clone(), Options::default());
        let total = number_of_conversations(&backup).await?;
        let mut verified = 0;
        for tenant in backup.tenants().await? {
            let of_tenant = recto.for_tenant(tenant.clone());
            for row in backup.list(&tenant, None, usize::MAX).await? {
                let report = of_tenant.conversation(&row.name).await?.verify().await?;
                if let Some(fault) = report.faults.first() {
                    return Err(damaged(row.id, fault));
                }
                crate::check_name(&row.name)?;
                if self.shared.store.find(&tenant, &row.name).await?.is_some() {
                    return Err(recto_store::Error::ConversationExists { name: row.name }.into());
                }
                // The conversation may exist under another name, or without a name for its forks.
                for id in row.lineage.iter().map(|from| from.id).chain([row.id]) {
                    match self.shared.store.commits(id, Some(u32::MAX)).await {
                        Err(recto_store::Error::ConversationNotFound { .. }) => {}
                        Err(error) => return Err(error.into()),
                        Ok(_) => {
                            let name = id.to_string();
                            return Err(recto_store::Error::ConversationExists { name }.into());
                        }
                    }
                }
                verified += 1;
                progress(Progress::new(verified, total * 2));
            }
        }
        let copied = &mut |copied: Progress| {
            progress(Progress::new(copied.total + copied.done, copied.total * 2));
        };
        copy_all(&backup, &self.shared.store, self.shared.is_searched, copied).await
    }
}

async fn number_of_conversations(store: &Arc<dyn Store>) -> Result<u64, Error> {
    let mut total = 0;
    for tenant in store.tenants().await? {
        total += store.list(&tenant, None, usize::MAX).await?.len() as u64;
    }
    Ok(total)
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
    recto_store::Error::Failed { doing: "making a backup", reason, source: None }
}

/// Copies every conversation, ancestors before their forks.
async fn copy_all(
    from: &Arc<dyn Store>,
    to: &Arc<dyn Store>,
    is_searched: bool,
    progress: ProgressFn<'_>,
) -> Result<Restored, Error> {
    let total = number_of_conversations(from).await?;
    let mut restored = Restored::default();
    for tenant in from.tenants().await? {
        let rows = from.list(&tenant, None, usize::MAX).await?;
        let by_id: BTreeMap<ConversationId, &ConversationRow> =
            rows.iter().map(|row| (row.id, row)).collect();
        let mut done = BTreeSet::new();
        // A removed conversation is kept without a name for its forks. It gets a name while it is
        // copied, and is removed again afterwards.
        let mut nameless = Vec::new();
        for row in &rows {
            for place in 0..=row.lineage.len() {
                let ancestor = row.lineage.get(place);
                let id = ancestor.map_or(row.id, |ancestor| ancestor.id);
                if !done.insert(id) {
                    continue;
                }
                let known = by_id.get(&id).copied();
                let name =
                    known.map_or_else(|| format!("\u{1}removed {id}"), |row| row.name.clone());
                if known.is_none() {
                    nameless.push(name.clone());
                }
                let lineage = known.map_or(&row.lineage[..place], |row| &row.lineage);
                let about = known.unwrap_or(row);
                let copied = Copied { tenant: &tenant, id, name, lineage, about };
                restored.entries += copied.copy(from, to, is_searched).await?;
                restored.conversations += usize::from(known.is_some());
                progress(Progress::new(restored.conversations as u64, total));
            }
        }
        for name in nameless {
            to.remove(&tenant, &name).await?;
        }
    }
    Ok(restored)
}

/// A conversation to copy.
struct Copied<'a> {
    tenant: &'a Tenant,
    id: ConversationId,
    name: String,
    lineage: &'a [recto_store::Ancestor],
    about: &'a ConversationRow,
}

impl Copied<'_> {
    /// Copies it, and returns the number of its own log entries.
    async fn copy(
        self,
        from: &Arc<dyn Store>,
        to: &Arc<dyn Store>,
        is_searched: bool,
    ) -> Result<u64, Error> {
        let rows = from.rows(self.id).await?;
        let first = rows.commits.first().ok_or_else(|| damaged(self.id, "it has no version"))?;
        let entries = entries(self.id, &rows)?;
        let new = NewConversation {
            id: self.id,
            tenant: self.tenant.clone(),
            name: self.name,
            created: self.about.created,
            settings: self.about.settings.clone(),
            policy: self.about.policy.clone(),
            lineage: self.lineage.to_vec(),
            first: first.clone(),
            words: if is_searched { words(&entries) } else { Vec::new() },
        };
        to.restore(new, rows).await?;
        Ok(entries.len() as u64)
    }
}

/// All entries in the rows of a conversation.
fn entries(id: ConversationId, rows: &StoredRows) -> Result<BTreeMap<u32, Entry>, Error> {
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
