//! Costs of conversations with many edits, of forks of forks, and of searches for long words. Each value is
//! compared with the value at half the size, and may be at most [`MAX_GROWTH`] times as large.
//!
//! Times are processor time of the whole process, if the system reports it, because elapsed times are longer
//! while other programs run. Times of stored conversations are measured in a child process, because the process
//! that made the file has more in memory than a command that opens it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use recto::{
    Approx, BatchIndex, BatchStart, Keep, Message, Query, Recto, Rollback, Scope, Settings,
};

use tempfile::TempDir;

use crate::bench::{Bench, Search, bytes_on_disk, note};
use crate::table::{Bar, Row, Table, Unit};

/// Maximum growth of a figure when the size doubles.
const MAX_GROWTH: f64 = 2.3;
/// Each time is the shortest of several, because other work of the machine only makes times longer.
const SAMPLES: usize = 5;
const NAME: &str = "deep";

pub(crate) fn measure(bench: &Bench, table: &mut Table) {
    edits(bench, table);
    forks(bench, table);
    search(bench, table);
}

/// Measures processor time, or elapsed time if the system does not report processor time.
struct Clock {
    start: Instant,
    used: Option<Duration>,
}

impl Clock {
    fn start() -> Clock {
        Clock { start: Instant::now(), used: processor_time() }
    }

    fn elapsed(&self) -> Duration {
        let used = processor_time().zip(self.used);
        // The time of a thread that has ended is not counted any more, so the sum may have become smaller.
        let used = used.and_then(|(end, start)| end.checked_sub(start));
        used.unwrap_or_else(|| self.start.elapsed())
    }
}

/// The processor time of all threads of this process, on Linux.
fn processor_time() -> Option<Duration> {
    let mut sum = 0;
    for thread in std::fs::read_dir("/proc/self/task").ok()? {
        let statistics = std::fs::read_to_string(thread.ok()?.path().join("schedstat"));
        let Ok(statistics) = statistics else { continue };
        sum += statistics.split(' ').next()?.parse::<u64>().ok()?;
    }
    Some(Duration::from_nanos(sum))
}

/// One row per figure and size, except for the first size. Each size is compared with the one before it.
fn grow(table: &mut Table, unit: Unit, names: &[&str], figures: &[(usize, Vec<f64>)], of: &str) {
    for (at, name) in names.iter().enumerate() {
        for pair in figures.windows(2) {
            let [(_, half), (size, whole)] = pair else { continue };
            let row = Row::new(format!("{size} {of}, {name}"), unit, whole[at]);
            table.row(row.beside("at half the size", half[at]).bar(Bar::AtMost(MAX_GROWTH)));
        }
    }
}

fn edits(bench: &Bench, table: &mut Table) {
    table.part("Edits");
    let sizes = if bench.is_test { [20, 40, 80] } else { [20_000, 40_000, 80_000] };
    let names = ["mark map", "batch 0", "rollback to batch 0"];
    let figures = sizes.map(|size| {
        let path = edited(bench, size);
        note(&format!("edits: {size}"));
        let least = least_in_children(bench.rounds(SAMPLES), EDITS, &path);
        (size, least)
    });
    grow(table, Unit::Seconds, &names, &figures, "edits");
}

/// The first argument of a child process that measures, and prints its times.
pub(crate) const CHILD: &str = "--measure-depth-as-child";

/// What a child process measures.
const EDITS: &str = "edits";
const FORKS: &str = "forks";

/// The shortest of the times that child processes measure.
fn least_in_children(samples: usize, what: &str, path: &Path) -> Vec<f64> {
    let mut least: Vec<f64> = Vec::new();
    for _ in 0..samples {
        let program = std::env::current_exe().expect("it is running");
        let mut child = Command::new(program);
        let output = child.arg(CHILD).arg(what).arg(path).output().expect("it can be started");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        let printed = String::from_utf8_lossy(&output.stdout);
        let times = printed.split_whitespace().map(|time| time.parse().expect("it is a time"));
        least = match least.is_empty() {
            true => times.collect(),
            false => least.into_iter().zip(times).map(|(least, time)| least.min(time)).collect(),
        };
    }
    least
}

/// Measures in a process that has not made the file.
pub(crate) fn measure_as_child(arguments: &[String]) {
    let path = Path::new(&arguments[1]);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let times = runtime.expect("threads can be started").block_on(async {
        match arguments[0].as_str() {
            EDITS => reach_lower_batches(path).await,
            _ => work_on_forks(path).await,
        }
    });
    times.iter().for_each(|time| println!("{time}"));
}

/// The times of a mark map, of reading batch 0 and of the preview of a rollback to it, each after the newest
/// version of the conversation was loaded, and nothing else.
async fn reach_lower_batches(path: &Path) -> Vec<f64> {
    let mut times = Vec::new();
    for part in 0..3 {
        let recto = Bench::open(path, Search::Off).await;
        let conversation = recto.conversation(NAME).await.expect("it is there");
        conversation.stats().await.expect("it can be opened");
        let clock = Clock::start();
        match part {
            0 => drop(conversation.mark_map(Scope::Visible).await.expect("it can be made")),
            1 => {
                let at = recto::QueryAt::Batch(BatchIndex(0));
                let query = Query { at, ..Query::default() };
                conversation.query(&query).await.expect("it can be read");
            }
            // The preview stores nothing, so the next sample has the same path.
            _ => {
                let rollback = Rollback::ToBatch(BatchIndex(0));
                conversation.preview(rollback).await.expect("it exists");
            }
        }
        times.push(clock.elapsed().as_secs_f64());
    }
    times
}

/// A file with a conversation of 100 messages and this many edits, each of which opens a batch.
fn edited(bench: &Bench, count: usize) -> PathBuf {
    let path = bench.path(&format!("edits-{count}.db"));
    note(&format!("making a conversation of {count} edits"));
    bench.runtime.block_on(async {
        let recto = Bench::open(&path, Search::Off).await;
        let settings = Settings::counting_with(Approx);
        let conversation = recto.create(NAME, settings).await.expect("the name is new");
        let messages = (0..100).map(|number| Message::user(&format!("message {number}")));
        conversation.append(messages).await.expect("it can be appended");
        for _ in 0..count {
            conversation.apply(BatchStart::default()).await.expect("it can be edited");
        }
    });
    path
}

fn forks(bench: &Bench, table: &mut Table) {
    table.part("Forks of forks");
    let depths = if bench.is_test { [5, 10, 20] } else { [200, 400, 800] };
    let mut sizes = Vec::new();
    let mut times = Vec::new();
    for depth in depths {
        note(&format!("forks of forks: {depth}"));
        let path = bench.path(&format!("forks-{depth}.db"));
        bench.runtime.block_on(nest(&path, depth));
        sizes.push((depth, vec![bytes_on_disk(&path) as f64]));
        times.push((depth, least_in_children(bench.rounds(3), FORKS, &path)));
    }
    grow(table, Unit::Bytes, &["size of the file"], &sizes, "forks");
    let names = ["reading the deepest", "preview of a prune of the first", "verify", "restore"];
    grow(table, Unit::Seconds, &names, &times, "forks");
}

/// A chain of forks, each with one more message.
async fn nest(path: &Path, depth: usize) {
    let recto = Bench::open(path, Search::Off).await;
    let settings = Settings::counting_with(Approx);
    let mut at = recto.create("fork 0", settings).await.expect("the name is new");
    for number in 1..=depth {
        let message = Message::user(&format!("message {number}"));
        let version = at.append([message]).await.expect("it can be appended").version;
        at = at.fork(&format!("fork {number}"), version).await.expect("it can be forked");
    }
}

/// The times of reading the deepest fork, of the preview of a prune of the first conversation, of verifying the
/// store, and of restoring it into another file.
async fn work_on_forks(path: &Path) -> Vec<f64> {
    let open = async || Bench::open(path, Search::Off).await;
    let recto = open().await;
    let depth = recto.list(None, usize::MAX).await.expect("they can be listed").len() - 1;
    let recto = open().await;
    let clock = Clock::start();
    let deepest = recto.conversation(&format!("fork {depth}")).await.expect("it is there");
    assert_eq!(deepest.messages().await.expect("it can be read").len(), depth);
    let opening = clock.elapsed();
    let recto = open().await;
    let first = recto.conversation("fork 0").await.expect("it is there");
    let clock = Clock::start();
    first.preview_prune(&Keep::newest()).await.expect("it can be pruned");
    let pruning = clock.elapsed();
    let recto = open().await;
    let clock = Clock::start();
    verify(&recto).await;
    let verifying = clock.elapsed();
    drop(recto);
    let folder = path.parent().expect("it is in a folder");
    let restored = TempDir::new_in(folder).expect("the folder can be written");
    let other = Bench::open(&restored.path().join("restored.db"), Search::Off).await;
    let clock = Clock::start();
    other.restore(path).await.expect("it is sound");
    let restoring = clock.elapsed();
    [opening, pruning, verifying, restoring].map(|time| time.as_secs_f64()).to_vec()
}

async fn verify(recto: &Recto) {
    let reports = recto.verify_all(&mut |_, _| {}).await.expect("it can be read");
    assert!(reports.iter().all(|(_, report)| report.is_sound()));
}

/// A search for twenty long words whose prefixes occur in a text. Its time must be linear in the text and the
/// words.
fn search(bench: &Bench, table: &mut Table) {
    table.part("Long words");
    let sizes = if bench.is_test { [1_000, 2_000] } else { [4_000_000, 8_000_000] };
    let figures = sizes.map(|size| {
        note(&format!("a text of {size} bytes, 20 words of {} bytes", size / 40));
        let least = bench.runtime.block_on(async {
            let recto = Recto::open("memory:").await.expect("it can be opened");
            let settings = Settings::counting_with(Approx);
            let conversation = recto.create(NAME, settings).await.expect("the name is new");
            conversation
                .append([Message::user(&"a".repeat(size))])
                .await
                .expect("the message is within the limits");
            let word = |number: usize| format!("{}b", "a".repeat(size / 40 + number));
            let contains = Some((0..20).map(word).collect());
            let query = Query { contains, ..Query::default() };
            let mut least = f64::INFINITY;
            for _ in 0..bench.rounds(SAMPLES) {
                let clock = Clock::start();
                assert_eq!(conversation.count(&query).await.expect("it is valid"), 0);
                least = f64::min(least, clock.elapsed().as_secs_f64());
            }
            least
        });
        (size, vec![least])
    });
    grow(table, Unit::Seconds, &["search for 20 words of a fortieth of these"], &figures, "bytes");
}
