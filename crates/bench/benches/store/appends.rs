//! Durable appends per second, one message each, by one writer and by several, compared with bare rows.
//!
//! In each round all variants run one after the other, and the median ratio of the rounds is reported, so
//! other work of the machine affects all variants alike. A round is long enough to warm the caches of the
//! processor again, and to include checkpoints of the write-ahead log.

use std::time::Instant;

use recto::{Approx, Conversation, Message, Recto, Settings};

use crate::bare::{Bare, BareGroups};
use crate::bench::{Bench, Search, median, messages, note};
use crate::table::{Bar, Row, Table, Unit};

pub(crate) const ROUNDS: usize = 12;
/// Appends per round: enough for several packings, which every 64th append waits for.
pub(crate) const A_ROUND: usize = 500;
const WRITERS: usize = 8;

pub(crate) fn measure(bench: &Bench, table: &mut Table) {
    table.part("Durable appends of one message to a file");
    let rounds = bench.rounds(ROUNDS);
    let run: Vec<Message> = messages(A_ROUND * rounds).collect();
    let bare = Bare::new(&bench.path("bare.db"));
    let bare_groups = BareGroups::new(&bench.path("bare-groups.db"));
    let runtime = &bench.runtime;
    // One file for each variant, as for the bare rows, so that no variant pays for the writes of another.
    let open = |file: &str, search| runtime.block_on(Bench::open(&bench.path(file), search));
    let create =
        |recto: &Recto, name: &str, settings| runtime.block_on(warm(recto, name, settings));
    let one = create(&open("one.db", Search::Off), "one", Settings::default());
    let roughly = open("approx.db", Search::Off);
    let roughly = create(&roughly, "one", Settings::counting_with(Approx));
    let found = create(&open("searched.db", Search::On), "one", Settings::default());
    let shared = open("many.db", Search::Off);
    let many: Vec<_> =
        (0..WRITERS).map(|n| create(&shared, &format!("{n}"), Settings::default())).collect();
    let [mut bare_rates, mut single, mut rough, mut with_search]: [Rates; 4] = Default::default();
    let [mut eight, mut bare_eight]: [Rates; 2] = Default::default();
    for (round, messages) in run.chunks(A_ROUND).enumerate() {
        note(&format!("appends: round {} of {rounds}", round + 1));
        let append =
            |conversation: &Conversation| runtime.block_on(append_all(conversation, messages));
        bare_rates.take(A_ROUND, || messages.iter().for_each(|m| bare.append(m.json())));
        single.take(A_ROUND, || append(&one));
        rough.take(A_ROUND, || append(&roughly));
        with_search.take(A_ROUND, || append(&found));
        eight.take(A_ROUND * WRITERS, || {
            runtime.block_on(append_concurrently(&many, messages));
        });
        bare_eight.take(A_ROUND * WRITERS, || {
            runtime.block_on(insert_concurrently(&bare_groups, round * A_ROUND, messages));
        });
    }
    let compared_with_bare =
        |name: &str, rates: &Rates| rates.row(name, "bare insert + commit", &bare_rates);
    table.row(compared_with_bare("one writer", &single).bar(Bar::AtLeast(0.6)));
    table.row(compared_with_bare("  tokens counted by `approx`", &rough));
    table.row(compared_with_bare("  with search index", &with_search));
    let row = eight.row("8 writers on 8 conversations", "one writer", &single);
    table.row(row.bar(Bar::AtLeast(3.0)));
    table.row(eight.row("  compared with 8 bare writers", "bare group commit", &bare_eight));
    table.row(bare_eight.row("  8 bare writers", "bare insert + commit", &bare_rates));
}

/// Appends per second, round by round.
#[derive(Default)]
pub(crate) struct Rates(Vec<f64>);

impl Rates {
    pub(crate) fn take(&mut self, count: usize, work: impl FnOnce()) {
        let clock = Instant::now();
        work();
        self.0.push(count as f64 / clock.elapsed().as_secs_f64());
    }

    pub(crate) fn row(&self, name: &str, what: &'static str, beside: &Rates) -> Row {
        let ratios = self.0.iter().zip(&beside.0).map(|(rate, beside)| rate / beside);
        Row::new(name, Unit::PerSecond, median(self.0.clone()))
            .beside(what, median(beside.0.clone()))
            .ratio(median(ratios.collect()))
    }
}

/// A conversation whose counter has loaded its vocabulary.
pub(crate) async fn warm(recto: &Recto, name: &str, settings: Settings) -> Conversation {
    let conversation = recto.create(name, settings).await.expect("the name is new");
    conversation.append([Message::user("Good morning.")]).await.expect("the append succeeds");
    conversation
}

pub(crate) async fn append_all(conversation: &Conversation, messages: &[Message]) {
    for message in messages {
        conversation.append([message.clone()]).await.expect("the message can be appended");
    }
}

async fn append_concurrently(conversations: &[Conversation], messages: &[Message]) {
    let tasks = conversations.iter().cloned().map(|conversation| {
        let messages = messages.to_vec();
        tokio::spawn(async move { append_all(&conversation, &messages).await })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("no writer fails");
    }
}

async fn insert_concurrently(bare: &BareGroups, first: usize, messages: &[Message]) {
    let tasks = (0..WRITERS).map(|writer| {
        let (bare, messages) = (bare.clone(), messages.to_vec());
        tokio::spawn(async move {
            for (number, message) in (first..).zip(&messages) {
                bare.append(writer, number, message.json()).await;
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("no writer fails");
    }
}
