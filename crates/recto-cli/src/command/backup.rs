//! `recto backup` and `recto restore-backup`: copy a whole store, and copy it back.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use recto::Progress;
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::{bytes, counted};
use crate::output::CommandResult;
use crate::page::{Line, Page, STRONG};
use crate::session::Session;
use crate::store_location::StoreLocation;

/// Copy the store into a new SQLite file.
///
/// Other processes can write to the store meanwhile. The file is a store itself: `--store sqlite:FILE`
/// opens it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto backup monday.db
  recto list --store sqlite:monday.db")]
pub(crate) struct Backup {
    /// File to create; it must not exist
    file: PathBuf,
}

/// Copy the conversations of a backup into the store.
///
/// The backup is verified first. Nothing is copied if it is damaged, or if the store already has one of
/// its conversations.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto restore-backup monday.db
  recto restore-backup monday.db --store postgres://localhost/recto?sslmode=disable")]
pub(crate) struct RestoreBackup {
    /// File of the backup
    file: PathBuf,
}

impl Backup {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let session = context.session()?;
        self.check_target()?;
        let size = session.recto.wait(session.recto.inner().store().size())?;
        let mut bar = context.bar(format!("copying to {}", self.file.display()));
        let partial = beside(&self.file, ".partial");
        let done = AtomicBool::new(false);
        let mut report = |progress| bar.update(progress);
        let copied = match size {
            // SQLite copies a file without reporting progress, so the size of the copy is polled.
            Some(all) => std::thread::scope(|scope| {
                let (partial, done, report) = (&partial, &done, &mut report);
                scope.spawn(move || report_size(partial, all, done, report));
                let copied = context.wait(&session, session.recto.inner().backup(&self.file));
                done.store(true, Ordering::Relaxed);
                copied
            }),
            None => context.wait(
                &session,
                session.recto.inner().backup_with_progress(&self.file, &mut report),
            ),
        };
        drop(bar);
        if matches!(copied, Err(Failure::Interrupted)) {
            // The thread that writes it ends with this process.
            remove_file(&partial);
        }
        copied?;
        let size = std::fs::metadata(&self.file).map_or(0, |metadata| metadata.len());
        context.print(&Copied { file: self.file.display().to_string(), bytes: size })
    }
}

impl Backup {
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

fn beside(file: &Path, suffix: &str) -> PathBuf {
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
        let restored = restored?;
        context
            .print(&Restored { conversations: restored.conversations, messages: restored.entries })
    }
}

/// Removes a store that was created for a restore which failed.
fn remove_if_empty(session: Session, file: &Path) {
    if !session.recto.list(None, 1).is_ok_and(|all| all.is_empty()) {
        return;
    }
    drop(session);
    for suffix in ["", "-wal", "-shm"] {
        // If this fails, an empty store is left.
        remove_file(&beside(file, suffix));
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
}

impl CommandResult for Copied {
    fn show(&self, page: &mut Page) {
        let line = Line::new().text("copied the store to ").styled(STRONG, &self.file);
        page.line(line.text(format!(", {}", bytes(self.bytes))));
    }
}

#[derive(Serialize)]
struct Restored {
    conversations: usize,
    messages: u64,
}

impl CommandResult for Restored {
    fn show(&self, page: &mut Page) {
        let conversations = counted(self.conversations as u64, "conversation");
        page.line(format!("{conversations} with {} restored", counted(self.messages, "message")));
    }
}
