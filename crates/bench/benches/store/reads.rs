//! Reads of a long conversation: alone, while a writer appends to it, and while it is verified. Reads use
//! a published snapshot and do not wait for a commit or for `verify`, so the 99th percentile of their times
//! has a limit during both.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use recto::{Conversation, Message, Pick, Query};

use crate::bench::{Bench, Search, Times, note};
use crate::long;
use crate::table::{Bar, Row, Table, Unit};

/// Maximum ratio of the 99th percentile of reads during other work to that of reads alone.
const MAX_RATIO: f64 = 3.0;
/// The number of messages of a page.
const PAGE: usize = 20;

/// The work that runs during the reads.
#[derive(Clone, Copy)]
enum Beside {
    Nothing,
    Writer,
    Verify,
}

pub(crate) fn measure(bench: &Bench, table: &mut Table) {
    let scale = if bench.is_test { 100 } else { 1 };
    let (messages, batches) = (100_000 / scale, 1_000 / scale);
    table.part(format!("Reads of a conversation of {messages} messages, 99 of 100 take less than"));
    let path = long::conversation(bench, messages, batches);
    let conversation = bench.runtime.block_on(async {
        let recto = Bench::open(&path, Search::Off).await;
        recto.conversation(long::NAME).await.expect("it is there")
    });
    let duration = Duration::from_millis(if bench.is_test { 20 } else { 5_000 });
    let alone = p99(bench, &conversation, Beside::Nothing, duration);
    for (beside, name) in
        [(Beside::Writer, "while a writer appends"), (Beside::Verify, "during verify")]
    {
        let figures = p99(bench, &conversation, beside, duration);
        for ((read, alone), figure) in
            ["stats", "messages of a page"].iter().zip(alone).zip(figures)
        {
            let row = Row::new(format!("{read}, {name}"), Unit::Seconds, figure);
            table.row(row.beside("alone", alone).bar(Bar::AtMost(MAX_RATIO)));
        }
    }
}

/// The 99th percentiles of `stats` and of reading a page, in seconds.
fn p99(bench: &Bench, conversation: &Conversation, beside: Beside, duration: Duration) -> [f64; 2] {
    note(match beside {
        Beside::Nothing => "reading alone",
        Beside::Writer => "reading while a writer appends",
        Beside::Verify => "reading during verify",
    });
    let is_done = Arc::new(AtomicBool::new(false));
    let work = bench.runtime.spawn(work(conversation.clone(), beside, is_done.clone()));
    let mut times = [Times::default(), Times::default()];
    bench.runtime.block_on(async {
        let page = Query { pick: Pick::Last(PAGE), ..Query::default() };
        let start = Instant::now();
        while start.elapsed() < duration {
            let clock = Instant::now();
            conversation.stats().await.expect("it can be read");
            times[0].push(clock);
            let clock = Instant::now();
            assert_eq!(conversation.query(&page).await.expect("it can be read").len(), PAGE);
            times[1].push(clock);
        }
        is_done.store(true, Ordering::Relaxed);
        work.await.expect("it does not panic");
    });
    times.map(|mut times| times.percentile(99))
}

async fn work(conversation: Conversation, beside: Beside, is_done: Arc<AtomicBool>) {
    while !is_done.load(Ordering::Relaxed) {
        match beside {
            Beside::Nothing => return,
            Beside::Writer => {
                conversation.append([Message::user("go on")]).await.expect("it is accepted");
            }
            Beside::Verify => {
                assert!(conversation.verify().await.expect("it can be read").is_sound());
            }
        }
    }
}
