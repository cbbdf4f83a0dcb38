//! A conversation of 1,000,000 messages in 100,000 batches: built, opened, read and edited by child
//! processes, which print their time and their peak memory.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use recto::{Approx, Delete, LogIndex, Message, Options, Recto, Settings, Truncate, Version};
use recto_store::{SqliteOptions, SqliteStore};

use crate::bench::{Bench, Search, bytes_on_disk, messages, note};
use crate::long::{NAME, VIEW};
use crate::table::{Bar, Row, Table, Unit};

/// The first argument of a child process.
pub(crate) const CHILD: &str = "--million-as-child";

/// Maximum memory of a child process, in bytes. The messages alone have more than a gigabyte.
const MAX_MEMORY_BYTES: f64 = 512.0 * 1024.0 * 1024.0;

pub(crate) fn measure(bench: &Bench, table: &mut Table) {
    let scale = if bench.is_test { 1_000 } else { 1 };
    let (count, batches) = (1_000_000 / scale, 100_000 / scale);
    table.part(format!("A conversation of {count} messages in {batches} batches"));
    note(&format!("making a conversation of {count} messages in {batches} batches"));
    let path = bench.path("million.db");
    let (seconds, memory) = measured(&path, &["build", &count.to_string(), &batches.to_string()]);
    // The single requests are not durable: `appends.rs` measures durable ones.
    table.row(Row::new("build it", Unit::Seconds, seconds));
    let most = |memory| {
        Row::new("  most memory of that process", Unit::Bytes, memory)
            .bar(Bar::Under(MAX_MEMORY_BYTES))
    };
    table.row(most(memory));
    table.row(Row::new("its file", Unit::Bytes, bytes_on_disk(&path) as f64));
    for (what, name, bar) in [
        ("tail", "open, read its view of 50", Some(Bar::Under(5e-3))),
        ("past", "open, read the view in the middle", Some(Bar::Under(20e-3))),
        ("append", "open, append one message", None),
        ("edit", "open, delete a message of the view", None),
        ("again", "  and another one", Some(Bar::Under(20e-3))),
        ("rollback", "open, go back to the middle", None),
    ] {
        note(what);
        let rounds: Vec<(f64, f64)> =
            (0..bench.rounds(5)).map(|_| measured(&path, &[what])).collect();
        let least = rounds.iter().map(|round| round.0).fold(f64::INFINITY, f64::min);
        let row = Row::new(name, Unit::Seconds, least);
        table.row(match bar {
            Some(bar) => row.bar(bar),
            None => row,
        });
        table.row(most(rounds.iter().map(|round| round.1).fold(0.0, f64::max)));
    }
}

/// The figures that a child process prints: seconds, and bytes of memory.
fn measured(path: &Path, arguments: &[&str]) -> (f64, f64) {
    let program = std::env::current_exe().expect("it is running");
    let output = Command::new(program).arg(CHILD).arg(path).args(arguments).output();
    let output = output.expect("it can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8_lossy(&output.stdout);
    let mut numbers = printed.split_whitespace().map(|number| number.parse().unwrap_or(f64::NAN));
    (numbers.next().unwrap_or(f64::NAN), numbers.next().unwrap_or(f64::NAN))
}

pub(crate) fn work_as_child(arguments: &[String]) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let path = Path::new(&arguments[0]);
    let seconds = runtime.expect("threads can be started").block_on(async {
        match &*arguments[1] {
            "build" => {
                let number = |at: usize| arguments[at].parse().expect("it is a number");
                build(path, number(2), number(3)).await
            }
            what => work(path, what).await,
        }
    });
    println!("{seconds} {}", crate::opening::most_memory().unwrap_or(f64::NAN));
}

async fn build(path: &Path, count: usize, batches: usize) -> f64 {
    let clock = Instant::now();
    let options = SqliteOptions { search: false, unsynced: true, ..SqliteOptions::default() };
    let store = SqliteStore::open(path, options).await.expect("the file can be made");
    let recto = Recto::with_store(std::sync::Arc::new(store), Options::default());
    let conversation =
        recto.create(NAME, Settings::counting_with(Approx)).await.expect("it is new");
    let mut messages = messages(count);
    for _ in 0..batches {
        let cut = Truncate { keep_last: Some(VIEW - 10), ..Truncate::default() };
        conversation.apply(cut).await.expect("it can be cut");
        let more: Vec<Message> = messages.by_ref().take(count / batches).collect();
        conversation.append(more).await.expect("it can be appended");
    }
    let cut = Truncate { keep_last: Some(VIEW), ..Truncate::default() };
    conversation.apply(cut).await.expect("it can be cut");
    clock.elapsed().as_secs_f64()
}

/// Opens the file, and performs one operation on the conversation.
async fn work(path: &Path, what: &str) -> f64 {
    let mut clock = Instant::now();
    let recto = Bench::open(path, Search::Off).await;
    let conversation = recto.conversation(NAME).await.expect("it is there");
    let last = async || {
        let shown = conversation.messages().await.expect("they can be read");
        shown.last().map_or(LogIndex(0), |entry| entry.index)
    };
    let delete = |index| Delete { indices: vec![index] };
    match what {
        "tail" => drop(conversation.messages().await.expect("they can be read")),
        "past" => {
            let newest = conversation.version().await.expect("it is there");
            let middle = Version(newest.0 / 2);
            assert!(!conversation.messages_at(middle).await.expect("they can be read").is_empty());
        }
        "append" => {
            drop(conversation.append([Message::user("go on")]).await.expect("it is accepted"))
        }
        "rollback" => {
            let newest = conversation.version().await.expect("it is there");
            let back = recto::Rollback::ToVersion(Version(newest.0 / 2));
            conversation.apply(back).await.expect("it is accepted");
            conversation.apply(recto::Undo).await.expect("it is accepted");
        }
        _ => {
            conversation.apply(delete(last().await)).await.expect("it is accepted");
            if what == "again" {
                let index = last().await;
                clock = Instant::now();
                conversation.apply(delete(index)).await.expect("it is accepted");
            }
        }
    }
    clock.elapsed().as_secs_f64()
}
