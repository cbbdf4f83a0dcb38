//! Processes that are killed while they write.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use recto_store::{SqliteOptions, SqliteStore, Store};

use super::{Dice, chain, child, note};

#[test]
fn no_acknowledged_commit_is_lost_when_processes_are_killed() {
    run(super::setting("RECTO_SIM_SEED", 1), 40);
}

#[test]
fn a_file_whose_creation_was_interrupted_is_created_by_the_next_process() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut dice = Dice(super::setting("RECTO_SIM_SEED", 1));
    for number in 0..15 {
        let file = folder.path().join(format!("{number}.db"));
        let mut child = child::command("writes_until_it_is_killed", &file).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(2_000 + dice.below(15_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        let checked = runtime.block_on(async {
            let store = SqliteStore::open(&file, SqliteOptions::default()).await.unwrap();
            chain::Chain::open(&store, 1).await.unwrap().append("still here").await.unwrap();
            check(&store, &BTreeMap::from([(1, 1)])).await
        });
        checked.unwrap();
    }
}

/// Kills `kills` processes one after the other. All of them write to the same file.
pub(super) fn run(seed: u64, kills: u32) {
    note(&format!("kills: seed {seed}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kills.db");
    let mut dice = Dice(seed);
    let mut accepted: BTreeMap<u128, u32> = BTreeMap::new();
    for kill in 1..=kills {
        let mut child = child::command("writes_until_it_is_killed", &file).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut printed = String::new();
        // A quarter of the processes are killed soon after their start, perhaps while they open the file. The
        // others are killed after they have printed a version, so that they write on a slow machine too.
        let is_writing = dice.below(4) > 0;
        while is_writing && !printed.contains(child::ACCEPTED) {
            output.read_line(&mut printed).unwrap();
        }
        std::thread::sleep(Duration::from_millis(dice.below(25)));
        child.kill().unwrap();
        output.read_to_string(&mut printed).unwrap();
        child.wait().unwrap();
        note_accepted(&printed, &mut accepted);
        if kill % 25 == 0 || kill == kills {
            let checked = runtime.block_on(async {
                let store = SqliteStore::open(&file, SqliteOptions::default()).await.unwrap();
                check(&store, &accepted).await
            });
            checked.unwrap_or_else(|reason| panic!("seed {seed}, kill {kill}: {reason}"));
        }
    }
    let total: u32 = accepted.values().sum();
    assert!(total > 0, "no version was accepted before {kills} kills");
    note(&format!("{kills} kills, {total} versions"));
}

/// Records the acknowledged versions, which are in complete lines. Checks that no printed version of a
/// conversation is smaller than an earlier one: at its start, a child prints the version that it has found.
fn note_accepted(printed: &str, accepted: &mut BTreeMap<u128, u32>) {
    let whole = printed.rsplit_once('\n').map_or("", |(whole, _)| whole);
    for line in whole.lines().filter_map(|line| line.strip_prefix(child::ACCEPTED)) {
        let (number, version) = line.split_once(' ').unwrap();
        let (number, version) = (number.parse().unwrap(), version.parse().unwrap());
        let before = accepted.insert(number, version).unwrap_or(0);
        assert!(version >= before, "conversation {number} went from {before} back to {version}");
    }
}

async fn check(store: &dyn Store, accepted: &BTreeMap<u128, u32>) -> Result<(), String> {
    for (&number, &version) in accepted {
        let texts = chain::check(store, number).await?;
        if texts.len() <= version as usize {
            let stored = texts.len();
            return Err(format!(
                "conversation {number} has {stored} versions, and the accepted version {version} is lost"
            ));
        }
    }
    let damage = store.check().await.map_err(|error| error.to_string())?;
    if damage.is_empty() { Ok(()) } else { Err(damage.join("; ")) }
}
