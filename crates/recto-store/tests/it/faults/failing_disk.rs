//! Disks whose writes or syncs fail, full disks, and read-only disks.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use recto_store::{Error, SqliteOptions, SqliteStore, Store};

use super::shim::Shim;
use super::{Dice, chain, child, note};

const EIO: u64 = 5;
const ENOSPC: u64 = 28;

#[test]
fn a_failed_call_acknowledges_nothing_and_the_process_continues() {
    run(super::setting("RECTO_SIM_SEED", 1), 12);
}

/// Makes the n-th write or sync fail, for `ways` values of n.
pub(super) fn run(seed: u64, ways: u32) {
    note(&format!("failing disk: seed {seed}"));
    let folder = tempfile::tempdir().unwrap();
    let Some(shim) = Shim::build(folder.path()) else { return };
    let mut dice = Dice(seed);
    let mut seen = Outcomes::default();
    for way in 0..ways {
        let error = if dice.below(2) == 0 { EIO } else { ENOSPC };
        let count = 1 + dice.below(6);
        let fail = match dice.below(3) {
            0 => format!("sync:{}:{EIO}:{count}", 1 + dice.below(60)),
            _ => format!("write:{}:{error}:{count}", 1 + dice.below(400)),
        };
        let file = folder.path().join(format!("{way}.db"));
        prepare(&file);
        let mut command = child::command("writes_on_a_failing_disk", &file);
        shim.between(&mut command, &file);
        command.env("SHIM_FAIL", &fail);
        let outcomes = Outcomes::of(&mut command);
        outcomes.check(&file, &format!("seed {seed}, {fail}"));
        if fail.starts_with("sync") && !outcomes.refused.is_empty() {
            assert!(outcomes.is_read_only, "{fail}: a failed sync must be the last write");
        }
        seen.accepted.extend(&outcomes.accepted);
        seen.refused.extend(&outcomes.refused);
        seen.unknown.extend(&outcomes.unknown);
    }
    assert!(!seen.accepted.is_empty() && !seen.refused.is_empty());
    note(&format!("{ways} ways; unknown outcomes: {:?}", seen.unknown));
}

fn prepare(file: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = SqliteStore::open(file, SqliteOptions::default()).await.unwrap();
        chain::Chain::open(&store, 1).await.unwrap();
    });
}

/// The outcomes that a child printed.
#[derive(Default)]
struct Outcomes {
    accepted: BTreeSet<u32>,
    refused: BTreeSet<u32>,
    unknown: BTreeSet<u32>,
    is_read_only: bool,
    printed: String,
}

impl Outcomes {
    fn of(command: &mut Command) -> Outcomes {
        let output = command.output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{command:?}: {printed}");
        let attempts = |prefix: &str| {
            let lines = printed.lines().filter_map(|line| line.strip_prefix(prefix));
            lines.filter_map(|line| line.split(' ').next()?.parse().ok()).collect()
        };
        Outcomes {
            accepted: attempts(child::ACCEPTED),
            refused: attempts(child::REFUSED),
            unknown: attempts(child::UNKNOWN),
            is_read_only: printed.contains("the store is read-only"),
            printed,
        }
    }

    /// Checks that accepted commits are stored and refused ones are not.
    fn check(&self, file: &Path, fault: &str) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let said = runtime.block_on(async {
            let store = SqliteStore::open(file, SqliteOptions::default()).await.unwrap();
            let said =
                chain::check(&store, 1).await.unwrap_or_else(|error| panic!("{fault}: {error}"));
            // Without the fault the file can be written again.
            chain::Chain::open(&store, 1).await.unwrap().append("again").await.unwrap();
            assert_eq!(store.check().await, Ok(vec![]), "{fault}");
            said
        });
        let attempt =
            |text: &String| text.strip_prefix("attempt ")?.split(' ').next()?.parse().ok();
        let stored: BTreeSet<u32> = said.iter().filter_map(attempt).collect();
        let lost: Vec<_> = self.accepted.difference(&stored).collect();
        assert!(lost.is_empty(), "{fault}: accepted and lost {lost:?}\n{}", self.printed);
        let made_up: Vec<_> = self.refused.intersection(&stored).collect();
        assert!(made_up.is_empty(), "{fault}: refused and stored {made_up:?}\n{}", self.printed);
    }
}

#[test]
fn a_file_at_its_size_limit_acknowledges_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    prepare(&file);
    let writer = child::command("writes_on_a_failing_disk", &file);
    // The signal is ignored, because it would end the process.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 400; exec \"$0\" \"$@\""]);
    command.arg(writer.get_program()).args(writer.get_args());
    command.env("RECTO_CHILD_FILE", &file);
    let outcomes = Outcomes::of(&mut command);
    assert!(!outcomes.accepted.is_empty() && !outcomes.refused.is_empty(), "{}", outcomes.printed);
    outcomes.check(&file, "file size limit");
}

#[test]
fn a_file_that_cannot_be_written_is_refused_and_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    prepare(&file);
    let before = std::fs::read(&file).unwrap();
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&file, 0o444);
    mode(folder.path(), 0o555);
    let mut command = child::command("writes_on_a_failing_disk", &file);
    if is_root(folder.path()) {
        // Root can write every file, so an ordinary user opens it.
        command.uid(65_534).gid(65_534);
    }
    let outcomes = Outcomes::of(&mut command);
    mode(folder.path(), 0o755);
    assert!(outcomes.accepted.is_empty(), "{}", outcomes.printed);
    assert!(outcomes.printed.contains(child::REFUSED), "{}", outcomes.printed);
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

/// A small disk in memory, unmounted when it is dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None` for an ordinary user, who cannot mount anything.
    fn mount() -> Option<SmallDisk> {
        let folder = tempfile::tempdir().unwrap();
        if !is_root(folder.path()) {
            note("skipped: only root can mount a small disk");
            return None;
        }
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(folder.path());
        let mounted = mount.output().unwrap();
        assert!(mounted.status.success(), "{}", String::from_utf8_lossy(&mounted.stderr));
        Some(SmallDisk(folder))
    }

    /// Writes a file that takes all the free space.
    fn fill(&self) -> PathBuf {
        let path = self.0.path().join("filler");
        let mut file = std::fs::File::create(&path).unwrap();
        while file.write_all(&[1; 512]).is_ok() {}
        path
    }
}

/// Whether the user who has created a folder is root.
fn is_root(folder: &Path) -> bool {
    std::fs::metadata(folder).unwrap().uid() == 0
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[tokio::test]
async fn a_full_disk_refuses_writes_until_it_has_space() {
    let Some(disk) = SmallDisk::mount() else { return };
    let file = disk.0.path().join("a.db");
    let store = SqliteStore::open(&file, SqliteOptions::default()).await.unwrap();
    let mut chain = chain::Chain::open(&store, 1).await.unwrap();
    let ballast = disk.0.path().join("ballast");
    std::fs::write(&ballast, vec![1; 400 << 10]).unwrap();
    let mut accepted = 0;
    let refused = loop {
        match chain.append(&format!("{accepted} {}", "text ".repeat(accepted % 700))).await {
            Ok(_) => accepted += 1,
            Err(error) => break error,
        }
    };
    let is_full = |error: &Error| error.to_string().contains("disk full (SQLITE_FULL");
    assert!(is_full(&refused), "{refused}");
    assert!(is_full(&chain.append(&"x".repeat(9_000)).await.unwrap_err()));
    // Reads work, and writes work again when there is space.
    assert_eq!(chain::check(&store, 1).await.unwrap().len(), accepted + 1);
    std::fs::remove_file(ballast).unwrap();
    chain.append("again").await.unwrap();
    assert_eq!(chain::check(&store, 1).await.unwrap().len(), accepted + 2);
    assert_eq!(store.check().await, Ok(vec![]));
    // There is no space for a write-ahead log: the file is opened for reading.
    drop(store);
    let filler = disk.fill();
    let store = SqliteStore::open(&file, SqliteOptions::default()).await.unwrap();
    assert_eq!(chain::check(&store, 1).await.unwrap().len(), accepted + 2);
    let refused = chain::Chain::open(&store, 1).await.unwrap().append("late").await.unwrap_err();
    assert!(refused.to_string().contains("the disk is full"), "{refused}");
    drop(store);
    std::fs::remove_file(filler).unwrap();
    let store = SqliteStore::open(&file, SqliteOptions::default()).await.unwrap();
    chain::Chain::open(&store, 1).await.unwrap().append("late").await.unwrap();
}
