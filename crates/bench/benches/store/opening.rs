//! Time and memory for opening a long conversation and reading the view of its newest or an earlier version.
//! Each sample opens the store again; only the operating system's file cache is warm.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use recto::{Conversation, Message, Version};

use crate::bench::{Bench, Search, Times, bytes_on_disk, note};
use crate::long::{self, VIEW};
use crate::table::{Bar, Row, Table, Unit};

const SAMPLES: usize = 100;

pub(crate) fn measure(bench: &Bench, table: &mut Table) {
    let scale = if bench.is_test { 100 } else { 1 };
    let (messages, batches) = (100_000 / scale, 10_000 / scale);
    table.part(format!("Opening a conversation of {messages} messages in {batches} batches"));
    let path = long::conversation(bench, messages, batches);
    let mut opener = Opener { bench, path, newest: 2 * batches as u32 + 1 };
    let (usual, late) = opener.times(|conversation, _| async move {
        assert_eq!(conversation.messages().await.expect("it is there").len(), VIEW);
    });
    table.row(Row::new("open, read its view of 50", Unit::Seconds, usual).bar(Bar::Under(5e-3)));
    table.row(Row::new("  95 of 100 take less than", Unit::Seconds, late));
    let newest = opener.newest;
    let (usual, late) = opener.times(|conversation, number| async move {
        let version = Version(2 + (number as u32 * 7_919) % (newest - 1));
        assert!(!conversation.messages_at(version).await.expect("it is there").is_empty());
    });
    table.row(Row::new("open, read any past version", Unit::Seconds, usual).bar(Bar::Under(20e-3)));
    table.row(Row::new("  95 of 100 take less than", Unit::Seconds, late));
    let (usual, _) = opener.times(|conversation, _| async move {
        conversation.append([Message::user("go on")]).await.expect("it can be appended");
    });
    table.row(Row::new("open, append one message", Unit::Seconds, usual));

    let messages = 1_000_000 / scale;
    table.part(format!("Opening a conversation of {messages} messages"));
    let path = long::conversation(bench, messages, messages / 1_000);
    table.row(Row::new("its file", Unit::Bytes, bytes_on_disk(&path) as f64));
    opener = Opener { bench, path, newest: 0 };
    let (usual, _) = opener.times(|conversation, _| async move {
        assert_eq!(conversation.messages().await.expect("it is there").len(), VIEW);
    });
    table.row(Row::new("open, read its view of 50", Unit::Seconds, usual).bar(Bar::Under(5e-3)));
    let empty = long::conversation(bench, VIEW, 1);
    let row = Row::new("  peak memory of a process for this", Unit::Bytes, memory(&opener.path));
    table.row(row.beside("for 50 messages", memory(&empty)));
}

struct Opener<'a> {
    bench: &'a Bench,
    path: PathBuf,
    newest: u32,
}

impl Opener<'_> {
    /// The 25th and the 95th percentile of the times, in seconds.
    fn times<F: Future<Output = ()>>(
        &self,
        mut read: impl FnMut(Conversation, usize) -> F,
    ) -> (f64, f64) {
        note("opening");
        let mut times = Times::default();
        for number in 0..self.bench.rounds(SAMPLES) {
            self.bench.runtime.block_on(async {
                let clock = Instant::now();
                let recto = Bench::open(&self.path, Search::Off).await;
                let conversation = recto.conversation(long::NAME).await.expect("it is there");
                read(conversation, number).await;
                times.push(clock);
            });
        }
        (times.usual(), times.percentile(95))
    }
}

/// The first argument of a child process that opens a file, reads, and prints its peak memory.
pub(crate) const CHILD: &str = "--read-as-child";

fn memory(path: &Path) -> f64 {
    let program = std::env::current_exe().expect("it is running");
    let output = Command::new(program).arg(CHILD).arg(path).output().expect("it can be started");
    let printed = String::from_utf8_lossy(&output.stdout);
    printed.trim().parse().unwrap_or(f64::NAN)
}

pub(crate) fn read_as_child(arguments: &[String]) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("threads can be started").block_on(async {
        let recto = Bench::open(Path::new(&arguments[0]), Search::Off).await;
        let conversation = recto.conversation(long::NAME).await.expect("it is there");
        assert_eq!(conversation.messages().await.expect("it can be read").len(), VIEW);
    });
    println!("{}", most_memory().unwrap_or(f64::NAN));
}

/// The peak memory of this process in bytes, if the system reports it.
pub(crate) fn most_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024.0)
}
