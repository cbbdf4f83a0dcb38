//! Backups of a whole store in a SQLite file, and their restoration.
//!
//! [`StoreCopy`] copies each conversation in one transaction. An interrupted restoration therefore leaves
//! only complete conversations, and the next one skips them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use recto_core::Version;
use recto_store::{ConversationId, ConversationRow, Store, SurveyedConversation, Tenant};
use tracing::Instrument;

use crate::recto::Options;
use crate::row_reader::RowReader;
use crate::store_copy::{NewerConversation, RenamedConversation, RestoreReport, Source, StoreCopy};
use crate::verify::Verification;
use crate::{Error, Progress, ProgressFn, Recto};

/// The result of a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// Descriptions of the damage in the store. A backup of a SQLite file contains the damaged rows as
    /// they are; other backups lack the conversations with damaged rows.
    pub damage: Vec<String>,
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
        let source = Source { store: &self.shared.store, is_file: false };
        let (present, is_searched) = (BTreeSet::new(), self.shared.is_searched);
        let mut copying = StoreCopy::new(source, &copy, present, is_searched).await?;
        copying.copy_all(progress).await?;
        let lost = copying.report.damaged.iter();
        damage.extend(
            lost.map(|lost| format!("{:?} is not in the backup: {}", lost.name, lost.fault)),
        );
        if !keeps_going && !damage.is_empty() {
            return Err(recto_store::Error::DamagedStore { damage }.into());
        }
        // Closing the store moves everything from its write-ahead log into the file.
        drop(copy);
        partial.finish(path)?;
        Ok(BackupReport { damage })
    }

    /// Copies the conversations of a backup into this store, with their names and tenants. Each is
    /// verified first; a damaged one is not copied, and the result names it. A fork of a damaged
    /// conversation is copied if what it shares is sound; it then has its own copy of those messages.
    ///
    /// Nothing is copied if this store has another conversation of the same name, or the same conversation
    /// under another name, with fewer versions or with other versions. A name that is not allowed any more is
    /// replaced, and the result contains the old and the new name. Conversations that an earlier, interrupted
    /// restoration has copied are skipped, so repeating the call completes it. A conversation that this store
    /// has with more versions than the backup is not changed, and the result names it.
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
        let (to, is_searched) = (&self.shared.store, self.shared.is_searched);
        let present = Present::of(to).await?;
        let source = Source { store: &backup, is_file: true };
        let mut copying = StoreCopy::new(source, to, present.ids(), is_searched).await?;
        replace_refused_names(&mut copying);
        let named: Vec<_> = copying.named().cloned().collect();
        let total = named.len() as u64;
        let mut verification = Verification::of(named.iter().filter_map(|it| it.row.as_ref().ok()));
        for (surveyed, verified) in named.iter().zip(1..) {
            let Ok(row) = &surveyed.row else { continue };
            let conversation = recto.for_tenant(surveyed.tenant.clone()).handle_of(row.clone());
            let report = verification.verify(&conversation, &mut |_| {}).await?;
            match report.faults.into_iter().next() {
                Some(fault) => copying.skip(surveyed, fault),
                None if self.has(&surveyed.tenant, row, &present, &mut copying.report).await? => {}
                None => present.check_free(&surveyed.tenant, row)?,
            }
            progress(Progress::new(verified, total * 2));
        }
        let copied = &mut |copied: Progress| {
            progress(Progress::new(copied.total + copied.done, copied.total * 2));
        };
        copying.copy_all(copied).await?;
        Ok(copying.report)
    }

    /// Whether this store has a conversation of the backup, at the version of the backup or later.
    async fn has(
        &self,
        tenant: &Tenant,
        row: &ConversationRow,
        present: &Present,
        report: &mut RestoreReport,
    ) -> Result<bool, Error> {
        let Some(present) = present.conversations.get(&row.id) else { return Ok(false) };
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
                let (store, lineage) = (self.shared.store.clone(), present.lineage.clone());
                let reader = RowReader::new(store, present.id, lineage).await?;
                let records = reader.records(row.head.version).await?;
                records.iter().any(|(number, record)| {
                    *number == row.head.version && record.link == row.head.link
                })
            }
        };
        report.already_there += usize::from(is_there);
        if is_there && present.head.version > row.head.version {
            report.newer.push(NewerConversation {
                tenant: tenant.clone(),
                name: row.name.clone(),
                version: Version(present.head.version),
                backup_version: Version(row.head.version),
            });
        }
        Ok(is_there)
    }
}

/// The conversations of the target before a restoration.
struct Present {
    conversations: BTreeMap<ConversationId, SurveyedConversation>,
    names: BTreeSet<(Tenant, String)>,
}

impl Present {
    async fn of(store: &Arc<dyn Store>) -> Result<Present, Error> {
        let surveyed = store.survey().await?;
        let name = |it: &SurveyedConversation| Some((it.tenant.clone(), it.name.clone()?));
        let names = surveyed.iter().filter_map(name).collect();
        let conversations = surveyed.into_iter().map(|present| (present.id, present)).collect();
        Ok(Present { conversations, names })
    }

    fn ids(&self) -> BTreeSet<ConversationId> {
        self.conversations.keys().copied().collect()
    }

    /// Fails if the target has the conversation, or another one of its name.
    fn check_free(&self, tenant: &Tenant, row: &ConversationRow) -> Result<(), Error> {
        let name = (tenant.clone(), row.name.clone());
        match self.conversations.contains_key(&row.id) || self.names.contains(&name) {
            true => Err(recto_store::Error::ConversationExists { name: row.name.clone() }.into()),
            false => Ok(()),
        }
    }
}

/// Gives another name to the conversations whose name is not allowed any more. The new name contains the id,
/// so that a repeated restoration finds the conversation.
fn replace_refused_names(copying: &mut StoreCopy<'_>) {
    for found in &mut copying.conversations {
        let Some(name) = found.name.as_mut().filter(|name| crate::check_name(name).is_err()) else {
            continue;
        };
        let to = format!("restored {}", found.id);
        let from = std::mem::replace(name, to.clone());
        if let Ok(row) = &mut found.row {
            row.name.clone_from(&to);
        }
        let tenant = found.tenant.clone();
        copying.report.renamed.push(RenamedConversation { tenant, from, to });
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

    /// Removes the `.partial` name of a complete backup. That name remains if the process was killed after it
    /// had given the file its final name.
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
    recto_store::Error::Failed { action: "making a backup", reason, source: Some(error.into()) }
}
