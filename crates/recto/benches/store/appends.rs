//! How many single messages become durable in a second: beside bare rows, and by several writers.
//!
//! All ways take turns in short rounds, and ratios are those of the median round: so what else the
//! machine does in the meantime hits all of them alike.

use std::time::Instant;

use recto::{Message, Settings, StoredConversation};

use crate::bare::Bare;
use crate::bench::{Bench, Search, median, messages, note};
use crate::table::{Bar, Row, Table, Unit};

const ROUNDS: usize = 24;
/// More than are packed together at a time.
const A_ROUND: usize = 100;
const WRITERS: usize = 8;

pub(crate) fn measure(bench: &Bench, table: &mut Table) {
    table.part("Durable appends of one message");
    let rounds = bench.rounds(ROUNDS);
    let run: Vec<Message> = messages(A_ROUND * rounds).collect();
    let bare = Bare::new(&bench.path("bare.db"));
    let mut ways = Ways::default();
    let runtime = &bench.runtime;
    let plain = runtime.block_on(Bench::open(&bench.path("plain.db"), Search::Off));
    let searched = runtime.block_on(Bench::open(&bench.path("searched.db"), Search::On));
    let create = |recto: &recto::Recto, name: String| {
        runtime.block_on(recto.create(&name, Settings::default())).expect("the name is new")
    };
    let (one, found) = (create(&plain, "one".into()), create(&searched, "one".into()));
    let many: Vec<_> = (0..WRITERS).map(|n| create(&plain, format!("writer {n}"))).collect();
    for (round, messages) in run.chunks(A_ROUND).enumerate() {
        note(&format!("appends: round {} of {rounds}", round + 1));
        ways.bare.push(per_second(A_ROUND, || messages.iter().for_each(|m| bare.append(m.json()))));
        let append = |talk: &StoredConversation| runtime.block_on(append_all(talk, messages));
        ways.single.push(per_second(A_ROUND, || append(&one)));
        ways.searched.push(per_second(A_ROUND, || append(&found)));
        ways.eight.push(per_second(A_ROUND * WRITERS, || {
            runtime.block_on(append_side_by_side(&many, messages));
        }));
    }
    ways.report(table);
}

/// Rates of each way, round by round.
#[derive(Default)]
struct Ways {
    bare: Vec<f64>,
    single: Vec<f64>,
    searched: Vec<f64>,
    eight: Vec<f64>,
}

impl Ways {
    fn report(&self, table: &mut Table) {
        let row = |name: &str, rates: &[f64], what, beside: &[f64]| {
            let ratios = rates.iter().zip(beside).map(|(rate, beside)| rate / beside);
            Row::new(name, Unit::PerSecond, median(rates.to_vec()))
                .beside(what, median(beside.to_vec()))
                .ratio(median(ratios.collect()))
        };
        let bare = "bare insert + commit";
        let single = row("one writer", &self.single, bare, &self.bare);
        table.row(single.bar(Bar::AtLeast(0.8)));
        table.row(row("one writer, with search index", &self.searched, bare, &self.bare));
        let eight = row("8 writers on 8 conversations", &self.eight, "one writer", &self.single);
        table.row(eight.bar(Bar::AtLeast(3.0)));
    }
}

fn per_second(count: usize, work: impl FnOnce()) -> f64 {
    let clock = Instant::now();
    work();
    count as f64 / clock.elapsed().as_secs_f64()
}

async fn append_all(talk: &StoredConversation, messages: &[Message]) {
    for message in messages {
        talk.append([message.clone()]).await.expect("it can be appended");
    }
}

async fn append_side_by_side(talks: &[StoredConversation], messages: &[Message]) {
    let tasks = talks.iter().cloned().map(|talk| {
        let messages = messages.to_vec();
        tokio::spawn(async move { append_all(&talk, &messages).await })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("no writer fails");
    }
}
