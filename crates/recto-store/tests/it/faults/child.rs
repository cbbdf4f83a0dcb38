//! The tasks of the child process.

use std::ops::Range;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use recto_store::{Commit, Error, Link, Rewrite, SqliteOptions, SqliteStore, Store, hash_of};

use super::chain::Chain;
use super::setting;
use crate::sample::{commit, id, row_with_body};

/// Separator of the numbers that a child prints.
pub(super) const ACCEPTED: &str = "accepted ";
pub(super) const REFUSED: &str = "refused ";
pub(super) const UNKNOWN: &str = "unknown ";

/// The command that starts this test binary as a child which does `task` on a file.
pub(super) fn command(task: &str, file: &std::path::Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let test = format!("faults::child::{task}");
    command.args(["--exact", &test, "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("RECTO_CHILD_FILE", file).stdout(Stdio::piped()).stderr(Stdio::inherit());
    command
}

fn file() -> Option<PathBuf> {
    std::env::var_os("RECTO_CHILD_FILE").map(PathBuf::from)
}

async fn open(file: PathBuf) -> SqliteStore {
    let unsynced = setting("RECTO_CHILD_UNSYNCED", 0) == 1;
    let options = SqliteOptions { unsynced, ..SqliteOptions::default() };
    SqliteStore::open(file, options).await.unwrap()
}

#[allow(clippy::print_stdout, reason = "the parent reads it")]
fn print(text: &str) {
    // Starts with a line end, because the test harness leaves its last line open.
    println!("\n{text}");
}

/// Writes three conversations at the same time until it is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "is started by other tests"]
async fn writes_until_it_is_killed() {
    let Some(file) = file() else { return };
    let store = open(file).await;
    let write = async |number| {
        let mut chain = Chain::open(&store, number).await.unwrap();
        print(&format!("{ACCEPTED}{number} {}", chain.version()));
        loop {
            let text = format!("{number} {}", "text ".repeat(chain.version() as usize % 300));
            let version = chain.append(&text).await.unwrap();
            print(&format!("{ACCEPTED}{number} {version}"));
        }
    };
    tokio::join!(write(1), write(2), write(3));
}

/// Writes a number of versions and ends without closing the file. Meanwhile the write-ahead log is
/// truncated, by a rewrite or because it is long.
#[tokio::test]
#[ignore = "is started by other tests"]
async fn writes_and_ends_without_closing() {
    let Some(file) = file() else { return };
    let store = open(file).await;
    let mut chain = Chain::open(&store, 1).await.unwrap();
    let is_bulky = setting("RECTO_CHILD_BULKY", 0) == 1;
    let versions = if is_bulky { 110 } else { 40 };
    for number in 1..=versions {
        let text = match is_bulky {
            true => incompressible(number, 1_100),
            false => format!("text {number} {}", "text ".repeat(number as usize * 29 % 1_000)),
        };
        let version = chain.append(&text).await.unwrap();
        print(&format!("{ACCEPTED}1 {version}"));
        if !is_bulky && number == versions / 2 {
            store.rewrite(id(1), version, Rewrite::default()).await.unwrap();
        }
    }
    std::process::exit(0);
}

/// A text of `hashes` hashes, whose packed length is about half of its own.
pub(super) fn incompressible(number: u32, hashes: u32) -> String {
    let hash = |at: u32| Link(hash_of(&(number * 10_000 + at).to_le_bytes())).to_string();
    (0..hashes).map(hash).collect()
}

/// Makes a number of attempts, each of which may fail, and prints every outcome.
#[tokio::test]
#[ignore = "is started by other tests"]
async fn writes_on_a_failing_disk() {
    let Some(file) = file() else { return };
    let store = match SqliteStore::open(file, SqliteOptions::default()).await {
        Ok(store) => store,
        Err(error) => return print(&format!("{REFUSED}opening: {error}")),
    };
    let mut attempt = 0;
    for _ in 0..setting("RECTO_CHILD_VERSIONS", 30) {
        // After a failure, the stored rows are read again.
        let Ok(mut chain) = Chain::open(&store, 1).await else { continue };
        loop {
            attempt += 1;
            match chain
                .append(&format!("attempt {attempt} {}", "text ".repeat(attempt % 500)))
                .await
            {
                Ok(_) => print(&format!("{ACCEPTED}{attempt}")),
                Err(Error::UnknownOutcome) => print(&format!("{UNKNOWN}{attempt}")),
                Err(error) => print(&format!("{REFUSED}{attempt} {error}")),
            }
            if attempt % 5 == 0 {
                break;
            }
        }
    }
    print("finished");
}

/// Several writers on one conversation, which retry until the time is over and each has a commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "is started by other tests"]
async fn writes_against_others() {
    let Some(file) = file() else { return };
    let store = Arc::new(open(file).await);
    let time = Duration::from_millis(setting("RECTO_CHILD_MILLISECONDS", 1_000));
    let first = setting("RECTO_CHILD_WRITER", 0);
    for count in compete(&store, first..first + 2, time).await {
        print(&format!("{ACCEPTED}{count}"));
    }
}

/// Longest time in which a writer must have had its first commit while the others write.
const STARVED: Duration = Duration::from_secs(60);

/// Writers that retry until the time is over and each of them has had a commit accepted. Returns
/// the number of accepted commits of each. It is 0 for a writer that starved.
pub(super) async fn compete(
    store: &Arc<SqliteStore>,
    writers: Range<u64>,
    time: Duration,
) -> Vec<u64> {
    let race = Arc::new(Race {
        start: Instant::now(),
        time,
        without_commit: AtomicUsize::new(writers.clone().count()),
    });
    let start = |writer| tokio::spawn(write_until(store.clone(), writer, race.clone()));
    let mut counts = Vec::new();
    for writer in writers.map(start).collect::<Vec<_>>() {
        counts.push(writer.await.unwrap());
    }
    counts
}

struct Race {
    start: Instant,
    time: Duration,
    without_commit: AtomicUsize,
}

impl Race {
    fn goes_on(&self) -> bool {
        let passed = self.start.elapsed();
        passed < self.time || (self.without_commit.load(Relaxed) > 0 && passed < STARVED)
    }
}

async fn write_until(store: Arc<SqliteStore>, writer: u64, race: Arc<Race>) -> u64 {
    let (mut version, mut count) = (1, 0);
    while race.goes_on() {
        let row = row_with_body(version, &format!("{writer} {count}"));
        match store.commit(Commit { row, ..commit(id(1), version) }).await {
            Ok(()) => {
                if count == 0 {
                    race.without_commit.fetch_sub(1, Relaxed);
                }
                (version, count) = (version + 1, count + 1);
            }
            Err(Error::VersionConflict { current, .. }) => version = current + 1,
            Err(error) => panic!("{error}"),
        }
    }
    count
}
