//! The size of an agent run with one version per message, and how many of a sample of versions read as written.

use recto::{Conversation, Message, Settings, Version};

use crate::bench::{Bench, Search, bytes_on_disk, messages, note};
use crate::table::{Bar, Row, Table, Unit};

/// The number of versions that are read again in addition to the newest one.
const SAMPLE: usize = 200;

pub(crate) fn measure(bench: &Bench, table: &mut Table) {
    table.part("An agent run, one version a message: bytes on disk");
    let sizes = [bench.messages / 10, bench.messages * 3 / 10, bench.messages];
    for (search, name, limit) in
        [(Search::Off, "without search index", 0.5), (Search::On, "with search index", 0.9)]
    {
        let mut per_message = Vec::new();
        for size in sizes {
            note(&format!("size: {size} messages {name}"));
            let run: Vec<Message> = messages(size).collect();
            let json: usize = run.iter().map(|message| message.json().len() + 1).sum();
            let path = bench.path(&format!("size-{size}-{search:?}.db"));
            bench.runtime.block_on(write(&path, search, &run));
            let bytes = bytes_on_disk(&path) as f64;
            let row = Row::new(format!("{size} messages, {name}"), Unit::Bytes, bytes);
            let row = row.beside("of JSON", json as f64);
            table.row(if size == bench.messages { row.bar(Bar::AtMost(limit)) } else { row });
            per_message.push(bytes / size as f64);
            if size == bench.messages && search == Search::Off {
                let same = bench.runtime.block_on(versions_as_written(&path, &run));
                let of = (SAMPLE + 1) as f64;
                let row = Row::new("  versions that read as they were written", Unit::Count, same);
                table.row(row.beside("of them read", of).bar(Bar::Same));
            }
        }
        let row = Row::new("  a message of the longest run", Unit::Bytes, per_message[2]);
        table.row(row.beside("in the shortest", per_message[0]).bar(Bar::AtMost(1.1)));
    }
}

async fn write(path: &std::path::Path, search: Search, run: &[Message]) {
    let recto = Bench::open(path, search).await;
    let conversation = recto.create("run", Settings::default()).await.expect("the name is new");
    for message in run {
        conversation.append([message.clone()]).await.expect("the message can be appended");
    }
}

/// The number of versions that equal what was written, of the newest one and a sample of all.
async fn versions_as_written(path: &std::path::Path, run: &[Message]) -> f64 {
    let recto = Bench::open(path, Search::Off).await;
    let conversation = recto.conversation("run").await.expect("the conversation was created");
    let mut same = 0;
    for number in 0..SAMPLE {
        // The step and the length have no common divisor, so no version is read twice.
        let version = (number * 7_919 + 1) % (run.len() + 1);
        same += usize::from(is_as_written(&conversation, version, run).await);
    }
    same += usize::from(is_as_written(&conversation, run.len(), run).await);
    same as f64
}

async fn is_as_written(conversation: &Conversation, version: usize, run: &[Message]) -> bool {
    let read =
        conversation.messages_at(Version(version as u32)).await.expect("every version is there");
    let read = read.iter().map(|entry| entry.message.json());
    read.eq(run[..version].iter().map(Message::json))
}
