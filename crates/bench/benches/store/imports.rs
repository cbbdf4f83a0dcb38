//! How long the import of a session takes, compared with one commit per step in the same run.

use std::time::Instant;

use recto::format::{Collected, Container, ExportOptions, Format, Step, export};
use recto::{Append, ImportName, ImportOptions, Message, Settings};

use crate::bench::{self, Bench, Search, Times, note};
use crate::table::{Bar, Row, Table, Unit};

/// Number of lines of the session.
const LINES: usize = 500;
const SAMPLES: usize = 9;

pub(crate) fn measure(bench: &Bench, table: &mut Table) {
    table.part("Imports");
    let lines = if bench.is_test { 20 } else { LINES };
    let session = session(lines);
    note(&format!("imports: {lines} lines"));
    let [mut grouped, mut single]: [Times; 2] = Default::default();
    bench.runtime.block_on(async {
        let recto = Bench::open(&bench.path("imports.db"), Search::Off).await;
        for number in 0..bench.rounds(SAMPLES) {
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
            let conversation = recto.create(&name, Settings::default()).await.expect("it is new");
            for step in read.steps {
                if let Step::Append(messages) = step {
                    conversation.apply(Append { messages }).await.expect("they fit");
                }
            }
            single.push(clock);
        }
    });
    let row = Row::new(format!("{lines} lines"), Unit::Seconds, grouped.usual());
    let row = row.beside("one commit per step", single.usual());
    // A sync takes about 1 ms on a common disk. In memory there is nothing to save.
    table.row(row.bar(Bar::AtMost(0.2)));
}

/// A session of Claude Code with this number of lines.
fn session(lines: usize) -> Vec<u8> {
    let messages: Vec<Message> = bench::messages(lines).collect();
    let options = ExportOptions { container: Container::Lines, ..ExportOptions::default() };
    let mut file = Vec::new();
    export(&messages, Format::ClaudeCode, &options, &mut file).expect("it can be written");
    file
}
