//! Time of a fork. A fork is durable, so it takes at least as long as a commit of one row. The benchmark
//! measures such a commit for comparison.

use std::time::Instant;

use recto::Version;

use crate::bare::Bare;
use crate::bench::{Bench, Search, Times, note};
use crate::long;
use crate::table::{Bar, Row, Table, Unit};

const SAMPLES: usize = 200;

pub(crate) fn measure(bench: &Bench, table: &mut Table) {
    table.part("Forks");
    let scale = if bench.is_test { 100 } else { 1 };
    for messages in [1_000 / scale, 100_000 / scale] {
        let cuts = messages / 10;
        let path = long::conversation(bench, messages, cuts);
        let bare = Bare::new(&bench.path(&format!("bare-forks-{messages}.db")));
        note(&format!("forks: {messages} messages"));
        let [mut newest, mut random, mut row]: [Times; 3] = Default::default();
        bench.runtime.block_on(async {
            let recto = Bench::open(&path, Search::Off).await;
            let conversation = recto.conversation(long::NAME).await.expect("it is there");
            let last = conversation.version().await.expect("it has one").0;
            for number in 0..bench.rounds(SAMPLES) as u32 {
                let some = Version((number * 7_919) % last);
                for (at, times) in [(Version(last), &mut newest), (some, &mut random)] {
                    let name = format!("{number} at {at}");
                    let clock = Instant::now();
                    conversation.fork(&name, at).await.expect("the version is there");
                    times.push(clock);
                }
                let clock = Instant::now();
                bare.append("a fork stores a row with about as many bytes as this bare row");
                row.push(clock);
            }
        });
        let row = row.usual();
        for (name, mut times) in [("the newest", newest), ("a random", random)] {
            let name = format!("{messages} messages, at {name} version");
            let forked = Row::new(name, Unit::Seconds, times.usual());
            table.row(forked.beside("bare commit", row).bar(Bar::Under(1e-3)));
        }
    }
}
