//! Costs at depth: conversations of many edits, forks of forks, and long words in a search. Each row is
//! compared with the same at half the size: twice as much may take about twice as long.
//!
//! Times are processor time of the whole process where the system tells it: other work of the machine makes
//! other times longer, and not in proportion.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use recto::{
    Approx, BatchIndex, BatchStart, Keep, Message, Query, Recto, Rollback, Scope, Settings,
};

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

/// Measures processor time, or time if the system does not tell it.
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
        // A thread that has ended in between takes its time with it.
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

/// One row per figure and size; every size after the first is compared with the one before.
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
        let mut least = [f64::INFINITY; 3];
        for _ in 0..bench.rounds(SAMPLES) {
            let times = bench.runtime.block_on(async {
                let mut times = Vec::new();
                for part in 0..3 {
                    let recto = Bench::open(&path, Search::Off).await;
                    let conversation = recto.conversation(NAME).await.expect("it is there");
                    conversation.stats().await.expect("it can be opened");
                    let clock = Clock::start();
                    match part {
                        0 => {
                            conversation.mark_map(Scope::Visible).await.expect("it can be made");
                        }
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
            });
            for (least, time) in least.iter_mut().zip(times) {
                *least = least.min(time);
            }
        }
        (size, least.to_vec())
    });
    grow(table, Unit::Seconds, &names, &figures, "edits");
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
        let mut least = [f64::INFINITY; 4];
        for sample in 0..bench.rounds(3) {
            let restored = bench.path(&format!("restored-{depth}-{sample}.db"));
            let found = bench.runtime.block_on(work(&path, &restored, depth));
            for (least, time) in least.iter_mut().zip(found) {
                *least = least.min(time);
            }
        }
        times.push((depth, least.to_vec()));
    }
    grow(table, Unit::Bytes, &["size of the file"], &sizes, "forks");
    let names = ["opening the deepest", "prune of the first", "verify", "restore"];
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

/// The times of opening the deepest fork, pruning the first conversation, verifying the store and restoring it.
async fn work(path: &Path, restored: &Path, depth: usize) -> [f64; 4] {
    let open = async || Bench::open(path, Search::Off).await;
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
    let other = Bench::open(restored, Search::Off).await;
    let clock = Clock::start();
    other.restore(path).await.expect("it is sound");
    let restoring = clock.elapsed();
    [opening, pruning, verifying, restoring].map(|time| time.as_secs_f64())
}

async fn verify(recto: &Recto) {
    let reports = recto.verify_all(&mut |_, _| {}).await.expect("it can be read");
    assert!(reports.iter().all(|(_, report)| report.is_sound()));
}

/// A search for twenty long words whose prefixes occur in a text. Its time must be linear in the text and the
/// words.
fn search(bench: &Bench, table: &mut Table) {
    table.part("Long words");
    let sizes = if bench.is_test { [1_000, 2_000] } else { [1_000_000, 2_000_000] };
    let figures = sizes.map(|size| {
        note(&format!("a text of {size} bytes, 20 words of {} bytes", size / 40));
        let least = bench.runtime.block_on(async {
            let recto = Recto::open("memory:").await.expect("it can be opened");
            let settings = Settings::counting_with(Approx);
            let conversation = recto.create(NAME, settings).await.expect("the name is new");
            conversation.append([Message::user(&"a".repeat(size))]).await.expect("it is short");
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
    grow(table, Unit::Seconds, &["20 words of a fortieth"], &figures, "bytes");
}
