//! `recto backup` and `recto restore-backup`: copy a whole store, and copy it back.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use recto::Progress;
use serde::Serialize;

use crate::advice;
use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::{bytes, counted};
use crate::output::CommandResult;
use crate::page::{BAD, FAINT, Line, Page, STRONG};
use crate::printable::argument;
use crate::session::Session;
use crate::store_location::StoreLocation;

/// Copy the store into a new SQLite file.
///
/// Other processes can write to the store during the copy. The file is a store itself: `--store sqlite:FILE`
/// opens it. Only its owner can read it. Every row is checked first; if one is damaged, the backup fails
/// unless --keep-going is given.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto backup monday.db
  recto list --store sqlite:monday.db")]
pub(crate) struct Backup {
    /// File to create; it must not exist
    file: PathBuf,

    /// Copy a damaged store as far as possible, and list the damage
    #[arg(long)]
    keep_going: bool,
}

/// Copy the conversations of a backup into the store.
///
/// Every conversation is verified first. Damaged ones are listed and not copied; the exit code is then 3.
/// A conversation that the store already has is not copied, also if it has changed since the backup: to
/// return to the state of the backup, use `recto rollback`.
/// Nothing is copied if the store has another conversation of the same name, or the same one under another
/// name. Each conversation is copied completely or not at all: after an interruption, the same command
/// copies the rest.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto restore-backup monday.db
  recto restore-backup monday.db --store sqlite:copy.db    # into another store
  recto restore-backup monday.db --store postgres://localhost/recto?sslmode=disable")]
pub(crate) struct RestoreBackup {
    /// File of the backup
    file: PathBuf,
}

impl Backup {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let session = context.session()?;
        self.check_target()?;
        let size = session.recto.wait(session.recto.store().size())?;
        let mut bar = context.bar(format!("copying to {}", self.file.display()));
        let partial = with_suffix(&self.file, ".partial");
        let done = AtomicBool::new(false);
        let mut report = |progress| bar.update(progress);
        let copied = match size {
            // SQLite copies a file without reporting progress, so the size of the copy is polled.
            Some(all) => std::thread::scope(|scope| {
                let (partial, done, report) = (&partial, &done, &mut report);
                scope.spawn(move || report_size(partial, all, done, report));
                let copied = context.wait(&session, self.copy(&session, &mut |_| {}));
                done.store(true, Ordering::Relaxed);
                copied
            }),
            None => context.wait(&session, self.copy(&session, &mut report)),
        };
        drop(bar);
        if matches!(copied, Err(Failure::Interrupted)) {
            // The copying thread may still write the file; it ends with this process.
            remove_file(&partial);
        }
        let damage = copied?;
        let size = std::fs::metadata(&self.file).map_or(0, |metadata| metadata.len());
        let is_sound = damage.is_empty();
        let file = self.file.display().to_string();
        context.print(&Copied { file, bytes: size, damage })?;
        match is_sound {
            true => Ok(()),
            false if context.output.is_json() => Err(Failure::Reported(3)),
            false => Err(Failure::Unsound("the store is damaged, and so is the copy".to_owned())),
        }
    }

    /// Copies the store, and returns the damage if the command keeps going.
    async fn copy(
        &self,
        session: &Session,
        progress: recto::ProgressFn<'_>,
    ) -> Result<Vec<String>, recto::Error> {
        let recto = session.recto.inner();
        match self.keep_going {
            true => Ok(recto.backup_damaged(&self.file, progress).await?.damage),
            false => recto.backup_with_progress(&self.file, progress).await.map(|()| Vec::new()),
        }
    }

    /// Checks that the file does not exist and that its folder does.
    fn check_target(&self) -> Result<(), Failure> {
        let file = self.file.display();
        if self.file.exists() {
            let reason = "a backup does not overwrite files; choose a new name";
            return Err(Failure::Usage(format!("{file} already exists: {reason}")));
        }
        let folder = self.file.parent().filter(|folder| !folder.as_os_str().is_empty());
        match folder.filter(|folder| !folder.is_dir()) {
            Some(_) => Err(Failure::writing(&self.file, &std::io::ErrorKind::NotFound.into())),
            None => Ok(()),
        }
    }
}

/// Reports the size of a growing file until `done` is set.
fn report_size(file: &Path, all: u64, done: &AtomicBool, report: &mut impl FnMut(Progress)) {
    while !done.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(20));
        let copied = std::fs::metadata(file).map_or(0, |metadata| metadata.len());
        report(Progress::new(copied, all));
    }
}

fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

impl RestoreBackup {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        if !self.file.is_file() {
            let file = self.file.display().to_string();
            return Err(Failure::Input { file, reason: "the file does not exist".to_owned() });
        }
        let location = StoreLocation::find(context.general, context.environment)?;
        let new_store = location.file().filter(|file| !file.exists());
        let session = context.new_session()?;
        let mut bar = context.bar(format!("restoring {}", self.file.display()));
        let mut report = |progress| bar.update(progress);
        let restored = context
            .wait(&session, session.recto.inner().restore_with_progress(&self.file, &mut report));
        drop(bar);
        if let (Err(_), Some(file)) = (&restored, new_store) {
            remove_if_empty(session, file);
        }
        let restored = restored.map_err(advice::of_restoration)?;
        let is_sound = restored.damaged.is_empty();
        context.print(&RestoreReport {
            conversations: restored.conversations,
            messages: restored.entries,
            already_there: restored.already_there,
            newer: restored
                .newer
                .into_iter()
                .map(|newer| Newer {
                    name: newer.name,
                    version: newer.version.0,
                    backup_version: newer.backup_version.0,
                })
                .collect(),
            file: self.file.display().to_string(),
            damaged: restored
                .damaged
                .into_iter()
                .map(|damaged| DamagedConversation { name: damaged.name, fault: damaged.fault })
                .collect(),
            renamed: restored
                .renamed
                .into_iter()
                .map(|renamed| Renamed { from: renamed.from, to: renamed.to })
                .collect(),
        })?;
        match is_sound {
            true => Ok(()),
            false if context.output.is_json() => Err(Failure::Reported(3)),
            false => Err(Failure::Unsound(
                "the backup is damaged; `recto salvage --store sqlite:BACKUP` copies what can be read"
                    .to_owned(),
            )),
        }
    }
}

/// Removes the store that a failed restore created, if it is empty.
fn remove_if_empty(session: Session, file: &Path) {
    if !session.recto.list(None, 1).is_ok_and(|all| all.is_empty()) {
        return;
    }
    drop(session);
    for suffix in ["", "-wal", "-shm"] {
        // If this fails, an empty store is left.
        remove_file(&with_suffix(file, suffix));
    }
}

/// Removes a file if it exists. A failure is only logged: the file is not needed.
fn remove_file(file: &Path) {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(%error, "cannot remove a temporary file");
        }
        _ => {}
    }
}

#[derive(Serialize)]
struct Copied {
    file: String,
    bytes: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    damage: Vec<String>,
}

impl CommandResult for Copied {
    fn show(&self, page: &mut Page) {
        let line = Line::new().text("copied the store to ").styled(STRONG, &self.file);
        page.line(line.text(format!(", {}", bytes(self.bytes))));
        for fault in &self.damage {
            page.line(Line::wrapping().styled(BAD, "damaged  ").text(fault));
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RestoreReport {
    conversations: usize,
    messages: u64,
    #[serde(skip_serializing_if = "is_zero")]
    already_there: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    newer: Vec<Newer>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    damaged: Vec<DamagedConversation>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    renamed: Vec<Renamed>,
    #[serde(skip)]
    file: String,
}

/// A conversation that the store has with more versions than the backup, so it was not copied.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Newer {
    name: String,
    version: u32,
    backup_version: u32,
}

/// A conversation that got another name, because its name is no longer allowed.
#[derive(Serialize)]
struct Renamed {
    from: String,
    to: String,
}

/// A conversation that was not restored, because it is damaged.
#[derive(Serialize)]
struct DamagedConversation {
    name: String,
    fault: String,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl CommandResult for RestoreReport {
    fn show(&self, page: &mut Page) {
        let conversations = counted(self.conversations as u64, "conversation");
        page.line(format!("{conversations} with {} restored", counted(self.messages, "message")));
        let unchanged = self.already_there - self.newer.len();
        if unchanged > 0 {
            let count = counted(unchanged as u64, "conversation");
            page.line(format!("{count} already in this store, as in the backup"));
        }
        for Newer { name, version, backup_version } in &self.newer {
            let text = format!(
                ": already in this store at v{version} (the backup has v{backup_version}); nothing was copied"
            );
            page.line(Line::wrapping().styled(STRONG, name).text(text));
        }
        if let Some(Newer { name, backup_version, .. }) = self.newer.first() {
            let address = format!("sqlite:{}", self.file);
            let (name, file) = (argument(name), argument(&address));
            page.line(Line::wrapping().styled(
                FAINT,
                format!(
                    "`recto show -c {name} --store {file}` reads the backup, \
                 `recto rollback -c {name} --to-version {backup_version}` returns to its state"
                ),
            ));
        }
        for Renamed { from, to } in &self.renamed {
            let line = Line::wrapping().styled(STRONG, to);
            page.line(line.text(format!("  had the name {from:?}, which is not allowed")));
        }
        for DamagedConversation { name, fault } in &self.damaged {
            let line = Line::wrapping().styled(BAD, "damaged  ").styled(STRONG, name);
            page.line(line.text(format!("  {fault}")));
        }
    }
}
