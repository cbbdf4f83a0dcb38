//! How long the import of a session takes, compared with one commit per step in the same run: on this disk,
//! and on a disk whose sync takes 1 ms.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use recto::format::{Collected, Container, ExportOptions, Format, Step, export};
use recto::{Append, ImportName, ImportOptions, Message, Settings};
use tokio::runtime::Runtime;

use crate::bench::{self, Bench, Search, Times, note};
use crate::table::{Bar, Row, Table, Unit};

/// Number of lines of the session.
const LINES: usize = 500;
const SAMPLES: usize = 9;
/// First argument of the process that imports with slow syncs.
pub(crate) const CHILD: &str = "import-as-child";

pub(crate) fn measure(bench: &Bench, table: &mut Table) {
    table.part("Imports");
    let lines = if bench.is_test { 20 } else { LINES };
    let rounds = bench.rounds(SAMPLES);
    note(&format!("imports: {lines} lines"));
    let here = Imports::measured(&bench.runtime, &bench.path("imports.db"), lines, rounds);
    table.row(here.row(format!("{lines} lines")));
    if let Some(library) = slow_syncs(bench) {
        note(&format!("imports: {lines} lines, 1 ms per sync"));
        let program = std::env::current_exe().expect("the program has a path");
        let mut child = Command::new(program);
        child.arg(CHILD).arg(bench.path("slow.db")).args([lines, rounds].map(|it| it.to_string()));
        let printed = child.env("LD_PRELOAD", library).output().expect("the program can be run");
        let text = String::from_utf8_lossy(&printed.stdout);
        let seconds: Vec<f64> = text.split_whitespace().flat_map(str::parse).collect();
        let [grouped, single] = seconds[..] else {
            panic!("{text}{}", String::from_utf8_lossy(&printed.stderr))
        };
        let slow = Imports { grouped, single };
        // In memory there is nothing to save, so only this row has a limit.
        table.row(slow.row(format!("{lines} lines, 1 ms per sync")).bar(Bar::AtMost(0.2)));
    }
}

/// Imports in a process of its own and prints the seconds.
pub(crate) fn import_as_child(arguments: &[String]) {
    let [path, lines, rounds] = arguments else { panic!("path, lines and rounds") };
    let number = |text: &str| text.parse::<usize>().expect("it is a number");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("threads can be started");
    let found = Imports::measured(&runtime, Path::new(path), number(lines), number(rounds));
    println!("{} {}", found.grouped, found.single);
}

/// The library that makes every sync take 1 ms; `None`, with a note, if it cannot be built.
fn slow_syncs(bench: &Bench) -> Option<PathBuf> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/store/slow_sync.c");
    let library = bench.path("slow_sync.so");
    let mut compiler = Command::new("cc");
    let built = compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status();
    if cfg!(target_os = "linux") && built.is_ok_and(|status| status.success()) {
        return Some(library);
    }
    note("imports with slow syncs: skipped, because they need Linux and a C compiler called cc");
    None
}

/// Seconds to import a session.
struct Imports {
    grouped: f64,
    /// With one commit per step.
    single: f64,
}

impl Imports {
    fn measured(runtime: &Runtime, path: &Path, lines: usize, rounds: usize) -> Imports {
        let session = session(lines);
        let [mut grouped, mut single]: [Times; 2] = Default::default();
        runtime.block_on(async {
            let recto = Bench::open(path, Search::Off).await;
            for number in 0..rounds {
                let options = |kind: &str| {
                    let naming = ImportName::Exactly(format!("{kind} {number}"));
                    ImportOptions::new(naming, Settings::default())
                };
                let clock = Instant::now();
                let imported = recto.import(session.clone(), options("grouped")).await;
                imported.expect("the session can be imported");
                grouped.push(clock);

                let clock = Instant::now();
                let mut read = Collected::default();
                let options = recto::format::ImportOptions::default();
                recto::format::import(&session, None, &options, &mut read).expect("it can be read");
                let name = format!("single {number}");
                let created = recto.create(&name, Settings::default()).await;
                let conversation = created.expect("it is new");
                for step in read.steps {
                    if let Step::Append(messages) = step {
                        conversation.apply(Append { messages }).await.expect("they fit");
                    }
                }
                single.push(clock);
            }
        });
        Imports { grouped: grouped.usual(), single: single.usual() }
    }

    fn row(&self, name: String) -> Row {
        let row = Row::new(name, Unit::Seconds, self.grouped);
        row.beside("one commit per step", self.single)
    }
}

/// A session of Claude Code with this number of lines.
fn session(lines: usize) -> Vec<u8> {
    let messages: Vec<Message> = bench::messages(lines).collect();
    let options = ExportOptions { container: Container::Lines, ..ExportOptions::default() };
    let mut file = Vec::new();
    export(&messages, Format::ClaudeCode, &options, &mut file).expect("it can be written");
    file
}
