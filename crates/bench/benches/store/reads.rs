//! Reads of a long conversation: alone, while a writer appends to it, and while it is verified. Reads use
//! a published snapshot and do not wait for a commit or for `verify`, so the 99th percentile of their times
//! has a limit during both.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use recto::{Conversation, Message, Query};

use crate::bench::{Bench, Search, Times, note};
use crate::long;
use crate::table::{Bar, Row, Table, Unit};

/// Maximum ratio of the 99th percentile of reads during other work to that of reads alone.
const MAX_RATIO: f64 = 3.0;
/// The number of messages of a page.
const PAGE: usize = 20;

/// Rounds in which reads are measured beside each kind of work, so that changes of the machine affect all.
const ROUNDS: usize = 3;

/// The work that runs during the reads.
#[derive(Clone, Copy)]
enum Background {
    Nothing,
    Writer,
    Verify,
}

const BACKGROUNDS: [Background; 3] = [Background::Nothing, Background::Writer, Background::Verify];

/// The times of `stats` and of reading a page.
type ReadTimes = [Times; 2];

pub(crate) fn measure(bench: &Bench, table: &mut Table) {
    let scale = if bench.is_test { 100 } else { 1 };
    let (messages, batches) = (100_000 / scale, 1_000 / scale);
    table.part(format!("Reads of a conversation of {messages} messages, 99 of 100 take less than"));
    let path = long::conversation(bench, messages, batches);
    let conversation = bench.runtime.block_on(async {
        let recto = Bench::open(&path, Search::Off).await;
        recto.conversation(long::NAME).await.expect("it is there")
    });
    let duration = Duration::from_millis(if bench.is_test { 5 } else { 2_000 });
    let mut times: [ReadTimes; 3] = Default::default();
    note("reading alone, while a writer appends, and during verify");
    for _ in 0..ROUNDS {
        for (background, times) in BACKGROUNDS.into_iter().zip(&mut times) {
            read(bench, &conversation, background, duration, times);
        }
    }
    let [alone, with_writer, with_verify] =
        times.map(|times| times.map(|mut times| times.percentile(99)));
    for (name, figures) in [("while a writer appends", with_writer), ("during verify", with_verify)]
    {
        for ((read, alone), figure) in
            ["stats", "messages of a page"].iter().zip(alone).zip(figures)
        {
            let row = Row::new(format!("{read}, {name}"), Unit::Seconds, figure);
            table.row(row.beside("alone", alone).bar(Bar::AtMost(MAX_RATIO)));
        }
    }
}

fn read(
    bench: &Bench,
    conversation: &Conversation,
    background: Background,
    duration: Duration,
    times: &mut ReadTimes,
) {
    let is_done = Arc::new(AtomicBool::new(false));
    let work = bench.runtime.spawn(work(conversation.clone(), background, is_done.clone()));
    bench.runtime.block_on(async {
        let page = Query::last(PAGE);
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
}

async fn work(conversation: Conversation, background: Background, is_done: Arc<AtomicBool>) {
    while !is_done.load(Ordering::Relaxed) {
        match background {
            Background::Nothing => return,
            Background::Writer => {
                conversation.append([Message::user("go on")]).await.expect("it is accepted");
            }
            Background::Verify => {
                assert!(conversation.verify().await.expect("it can be read").is_sound());
            }
        }
    }
}
