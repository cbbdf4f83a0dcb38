//! `recto backup` and `recto restore-backup`: copies of a whole store, and the way back.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use recto::Progress;
use serde::Serialize;

use crate::desk::Desk;
use crate::failure::Failure;
use crate::numbers::{bytes, counted};
use crate::output::Answer;
use crate::page::{Line, Page, STRONG};
use crate::place::Place;
use crate::session::Session;

/// Copy the whole store into a new SQLite file, while others go on writing.
///
/// The file is a store of its own: `--store sqlite:FILE` opens it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto backup monday.db
  recto list --store sqlite:monday.db")]
pub(crate) struct Backup {
    /// The file to be made; it must not be there yet
    file: PathBuf,
}

/// Copy the conversations of a backup into the store.
///
/// Everything in the backup is verified first. Nothing is copied if something in it does not hold,
/// or if a conversation of it is in the store already.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto restore-backup monday.db
  recto restore-backup monday.db --store postgres://localhost/recto?sslmode=disable")]
pub(crate) struct RestoreBackup {
    /// The backup
    file: PathBuf,
}

impl Backup {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let session = desk.session()?;
        self.check_place()?;
        let size = session.recto.wait(session.recto.inner().store().size())?;
        let mut bar = desk.bar(format!("copying to {}", self.file.display()));
        let partial = beside(&self.file, ".partial");
        let done = AtomicBool::new(false);
        let mut told = |progress| bar.tell(progress);
        let copied = match size {
            // A file that copies itself tells nothing: look how much of it is there.
            Some(all) => std::thread::scope(|scope| {
                let (partial, done, told) = (&partial, &done, &mut told);
                scope.spawn(move || watch(partial, all, done, told));
                let copied = desk.wait(&session, session.recto.inner().backup(&self.file));
                done.store(true, Ordering::Relaxed);
                copied
            }),
            None => desk
                .wait(&session, session.recto.inner().backup_with_progress(&self.file, &mut told)),
        };
        drop(bar);
        if matches!(copied, Err(Failure::Interrupted)) {
            // Its thread ends with this process.
            let _ = std::fs::remove_file(&partial);
        }
        copied?;
        let size = std::fs::metadata(&self.file).map_or(0, |metadata| metadata.len());
        desk.answer(&Copied { file: self.file.display().to_string(), bytes: size })
    }
}

impl Backup {
    /// The file is a new one, in a folder that is there.
    fn check_place(&self) -> Result<(), Failure> {
        let file = self.file.display();
        if self.file.exists() {
            let reason = "a backup is never written over something; choose a new name";
            return Err(Failure::Usage(format!("{file} is there already: {reason}")));
        }
        let folder = self.file.parent().filter(|folder| !folder.as_os_str().is_empty());
        match folder.filter(|folder| !folder.is_dir()) {
            Some(_) => Err(Failure::writing(&self.file, &std::io::ErrorKind::NotFound.into())),
            None => Ok(()),
        }
    }
}

/// Tells how large a file has become.
fn watch(file: &Path, all: u64, done: &AtomicBool, told: &mut impl FnMut(Progress)) {
    while !done.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(20));
        let copied = std::fs::metadata(file).map_or(0, |metadata| metadata.len());
        told(Progress::new(copied, all));
    }
}

fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

impl RestoreBackup {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        if !self.file.is_file() {
            let file = self.file.display().to_string();
            return Err(Failure::Input { file, reason: "there is no such file".to_owned() });
        }
        let place = Place::find(desk.general, desk.surroundings)?;
        let new_store = place.file().filter(|file| !file.exists());
        let session = desk.new_session()?;
        let mut bar = desk.bar(format!("restoring {}", self.file.display()));
        let mut told = |progress| bar.tell(progress);
        let restored =
            desk.wait(&session, session.recto.inner().restore_with_progress(&self.file, &mut told));
        drop(bar);
        if let (Err(_), Some(file)) = (&restored, new_store) {
            remove_if_empty(session, file);
        }
        let restored = restored?;
        desk.answer(&Restored { conversations: restored.conversations, messages: restored.entries })
    }
}

/// Takes a store away that was made for a backup and got nothing of it.
fn remove_if_empty(session: Session, file: &Path) {
    if !session.recto.list(None, 1).is_ok_and(|all| all.is_empty()) {
        return;
    }
    drop(session);
    for suffix in ["", "-wal", "-shm"] {
        // What cannot be removed is an empty store, which does no harm.
        let _ = std::fs::remove_file(beside(file, suffix));
    }
}

#[derive(Serialize)]
struct Copied {
    file: String,
    bytes: u64,
}

impl Answer for Copied {
    fn show(&self, page: &mut Page) {
        let line = Line::new().text("everything is copied to ").styled(STRONG, &self.file);
        page.line(line.text(format!(", {}", bytes(self.bytes))));
    }
}

#[derive(Serialize)]
struct Restored {
    conversations: usize,
    messages: u64,
}

impl Answer for Restored {
    fn show(&self, page: &mut Page) {
        let conversations = counted(self.conversations as u64, "conversation");
        page.line(format!("{conversations} with {} restored", counted(self.messages, "message")));
    }
}
