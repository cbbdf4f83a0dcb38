//! Power losses at any moment: writes that were not synced are lost, completely or in part.
//!
//! A child writes while the shim records its system calls. Then the test builds the files as they can be after
//! each call: all synced writes, and of the others none, all, or any part in pieces of 512 bytes. Every
//! acknowledged commit must be in each of them.

use std::path::Path;

use recto_store::{SqliteOptions, SqliteStore, Store};
use tempfile::TempDir;

use super::shim::{self, Call, Shim};
use super::{Dice, chain, child, note};

#[test]
fn no_acknowledged_commit_is_lost_by_a_power_loss() {
    let seed = super::setting("RECTO_SIM_SEED", 1);
    lose(seed, 200, Child::default());
    lose(seed, 40, Child { is_bulky: true, ..Child::default() });
}

#[test]
fn the_test_finds_losses_when_commits_are_not_synced() {
    let seed = super::setting("RECTO_SIM_SEED", 1);
    if let Some(losses) = losses(seed, 200, Child { is_unsynced: true, ..Child::default() }) {
        assert!(!losses.is_empty(), "seed {seed}: the test of power losses finds nothing");
    }
}

/// How the child writes.
#[derive(Clone, Copy, Default)]
struct Child {
    /// It does not sync its commits.
    is_unsynced: bool,
    /// It writes enough that the write-ahead log is truncated and started again.
    is_bulky: bool,
}

/// Simulates about `cuts` power losses.
pub(super) fn run(seed: u64, cuts: u32) {
    lose(seed, cuts, Child { is_bulky: seed.is_multiple_of(3), ..Child::default() });
}

fn lose(seed: u64, cuts: u32, child: Child) {
    note(&format!("power loss: seed {seed}"));
    let losses = losses(seed, cuts, child).unwrap_or_default();
    assert!(losses.is_empty(), "seed {seed}: {} losses, first: {}", losses.len(), losses[0]);
}

/// The losses: one text for every cut after which a commit is missing.
fn losses(seed: u64, cuts: u32, Child { is_unsynced, is_bulky }: Child) -> Option<Vec<String>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // In memory if possible, because thousands of files are created and opened.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let shim = Shim::build(folder.path())?;
    let file = folder.path().join("child.db");
    runtime.block_on(async {
        let store = SqliteStore::open(&file, SqliteOptions::default()).await.unwrap();
        chain::Chain::open(&store, 1).await.unwrap();
    });
    let start = std::fs::read(&file).unwrap();
    let log = folder.path().join("calls");
    let mut command = child::command("writes_and_ends_without_closing", &file);
    shim.between(&mut command, &file);
    command.env("SHIM_LOG", &log);
    command.env("RECTO_CHILD_UNSYNCED", u8::from(is_unsynced).to_string());
    command.env("RECTO_CHILD_BULKY", u8::from(is_bulky).to_string());
    assert!(command.output().unwrap().status.success());

    let calls = shim::calls(&log);
    let mut disk = Disk([File { durable: start, ..File::default() }, File::default()]);
    let mut dice = Dice(seed);
    let (mut promised, mut tried, mut losses) = (0, 0, Vec::new());
    let chance = u64::from(cuts).min(calls.len() as u64);
    for (number, call) in calls.iter().enumerate() {
        disk.see(call);
        if let Call::Print(text) = call {
            let versions = text.lines().filter_map(|line| line.strip_prefix("accepted 1 "));
            promised =
                versions.filter_map(|version| version.parse().ok()).max().unwrap_or(promised);
        }
        if dice.below(calls.len() as u64) >= chance {
            continue;
        }
        tried += 1;
        let left = disk.after_a_cut(&mut dice);
        if let Err(reason) = runtime.block_on(check(&left, promised)) {
            losses.push(format!("after call {number}: {reason}"));
        }
    }
    assert!(promised >= 40 && calls.len() > 200, "{promised} versions in {} calls", calls.len());
    note(&format!("{} calls, {tried} cuts, {} losses", calls.len(), losses.len()));
    Some(losses)
}

async fn check(folder: &TempDir, promised: usize) -> Result<(), String> {
    let file = folder.path().join("left.db");
    let store = SqliteStore::open(&file, SqliteOptions::default()).await;
    let store = store.map_err(|error| error.to_string())?;
    let said = chain::check(&store, 1).await?;
    if said.len() <= promised {
        return Err(format!("version {promised} was acknowledged, there are {}", said.len()));
    }
    let damage = store.check().await.map_err(|error| error.to_string())?;
    if damage.is_empty() { Ok(()) } else { Err(damage.join("; ")) }
}

/// The database and its log.
struct Disk([File; 2]);

/// The synced bytes, and the writes that may be lost.
#[derive(Default)]
struct File {
    durable: Vec<u8>,
    unsure: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Cut { len: usize },
}

impl Disk {
    fn see(&mut self, call: &Call) {
        match call {
            Call::Write { file, offset, bytes } => {
                let change = Change::Write { offset: *offset, bytes: bytes.clone() };
                self.0[*file].unsure.push(change);
            }
            Call::Cut { file, len } => self.0[*file].unsure.push(Change::Cut { len: *len }),
            Call::Sync { file } => {
                let File { durable, unsure } = &mut self.0[*file];
                unsure.drain(..).for_each(|change| change.apply(durable));
            }
            Call::Print(_) => {}
        }
    }

    /// The files as they may be after a power loss.
    fn after_a_cut(&self, dice: &mut Dice) -> TempDir {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let luck = dice.below(4);
        for (file, name) in self.0.iter().zip(["left.db", "left.db-wal"]) {
            let mut bytes = file.durable.clone();
            for change in &file.unsure {
                match luck {
                    0 => {}
                    1 => change.clone().apply(&mut bytes),
                    _ => change.torn(dice).for_each(|part| part.apply(&mut bytes)),
                }
            }
            write(&folder.path().join(name), &bytes);
        }
        folder
    }
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
}

impl Change {
    fn apply(self, file: &mut Vec<u8>) {
        match self {
            Change::Cut { len } => file.resize(len, 0),
            Change::Write { offset, bytes } => {
                let end = offset + bytes.len();
                file.resize(file.len().max(end), 0);
                file[offset..end].copy_from_slice(&bytes);
            }
        }
    }

    /// Some parts of the write: a disk writes sectors, in any order.
    fn torn(&self, dice: &mut Dice) -> impl Iterator<Item = Change> {
        let parts: Vec<Change> = match self {
            Change::Cut { .. } => vec![self.clone()],
            Change::Write { offset, bytes } => {
                let first = 512 - offset % 512;
                let (first, rest) = bytes.split_at(first.min(bytes.len()));
                let sectors = std::iter::once(first).chain(rest.chunks(512));
                let mut offset = *offset;
                let part = |sector: &[u8]| {
                    offset += sector.len();
                    Change::Write { offset: offset - sector.len(), bytes: sector.to_vec() }
                };
                sectors.map(part).collect()
            }
        };
        let mut kept = Vec::new();
        // Most often the whole write or none of it.
        let fate = dice.below(3);
        for part in parts {
            if fate == 0 || fate == 1 && dice.below(2) == 0 {
                kept.push(part);
            }
        }
        kept.into_iter()
    }
}
