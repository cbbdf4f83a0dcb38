//! Long conversations that other parts of the benchmark open.

use std::path::PathBuf;

use recto::{Approx, Message, Settings, Truncate};

use crate::bench::{Bench, Search, messages, note};

/// The name of the only conversation in a file.
pub(crate) const NAME: &str = "long";

/// The length of the view at the end.
pub(crate) const VIEW: usize = 50;

/// A file with a conversation of `count` messages. `cuts` times, a TRUNCATE keeps 40 messages and an APPEND
/// adds `count / cuts`. A last TRUNCATE keeps [`VIEW`] messages.
pub(crate) fn conversation(bench: &Bench, count: usize, cuts: usize) -> PathBuf {
    let path = bench.path(&format!("long-{count}-{cuts}.db"));
    if path.exists() {
        return path;
    }
    note(&format!("making a conversation of {count} messages in {cuts} batches"));
    bench.runtime.block_on(async {
        let recto = Bench::open(&path, Search::Off).await;
        let settings = Settings::counting_with(Approx);
        let conversation = recto.create(NAME, settings).await.expect("the name is new");
        let mut messages = messages(count);
        for _ in 0..cuts {
            let cut = Truncate { keep_last: Some(VIEW - 10), ..Truncate::default() };
            conversation.apply(cut).await.expect("it can be cut");
            let more: Vec<Message> = messages.by_ref().take(count / cuts).collect();
            conversation.append(more).await.expect("it can be appended");
        }
        let cut = Truncate { keep_last: Some(VIEW), ..Truncate::default() };
        conversation.apply(cut).await.expect("it can be cut");
    });
    path
}
