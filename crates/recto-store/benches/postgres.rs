//! Durable appends in PostgreSQL, beside a bare one-row transaction of the same bytes over the same
//! driver. They take turns, so that both meet the same machine.
//!
//! Run it with `cargo bench -p recto-store --features postgres --bench postgres`. It starts a server
//! of its own.
#![allow(clippy::print_stdout)]

use std::time::{Duration, Instant};

use recto_store::{
    Commit, CommitBody, CommitRow, ConversationId, Entry, EntryMeta, Head, IdempotencyKey, Link,
    NewConversation, PostgresOptions, PostgresStore, Store, Tenant, Words, WordsOf, hash_of,
};
use testserver::PostgresServer;

const APPENDS: u32 = 3_000;
/// What the issue asks for.
const BAR: f64 = 0.8;

const BARE: &str = "INSERT INTO bare VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime starts").block_on(async {
        let plain = compare("append", false, false).await;
        compare("append with a key", false, true).await;
        compare("append with words for the search", true, false).await;
        compare("append with both", true, true).await;
        assert!(plain >= BAR, "an append reaches {plain:.2} of a bare transaction, not {BAR}");
    });
}

/// Prints both rates; returns their ratio.
async fn compare(what: &str, search: bool, keyed: bool) -> f64 {
    let address = PostgresServer::shared().database();
    let options = PostgresOptions { search, ..PostgresOptions::default() };
    let store = PostgresStore::open(&address, options).await.expect("the store opens");
    let id = create(&store).await;
    let bare = bare(&address).await;
    let insert = bare.prepare(BARE).await.expect("the table is there");

    let (mut bare_took, mut append_took) = (Vec::new(), Vec::new());
    for version in 1..=APPENDS {
        let commit = commit(id, version, keyed);
        let CommitRow { head, body } = &commit.row;
        let (version, entries) = (i64::from(head.version), i64::from(head.entries));
        let (tenant, link) = (b"acme".as_slice(), head.link.0.as_slice());
        let start = Instant::now();
        let inserted = bare
            .execute(
                &insert,
                &[&tenant, &id.0, &version, &entries, &link, &head.committed, &id.0, body],
            )
            .await;
        bare_took.push(start.elapsed());
        inserted.expect("the row is inserted");
        let start = Instant::now();
        store.commit(commit).await.expect("the request is accepted");
        append_took.push(start.elapsed());
    }
    let (bare, append) = (rate(bare_took), rate(append_took));
    let ratio = append / bare;
    println!("{what:<34} {append:>6.0}/s   bare transaction {bare:>6.0}/s   ratio {ratio:.2}");
    ratio
}

/// How many a second, going by the median: others may use the disk too. The first ones do not count:
/// they fill caches and make plans.
fn rate(took: Vec<Duration>) -> f64 {
    let mut took = took[took.len() / 5..].to_vec();
    took.sort();
    1.0 / took[took.len() / 2].as_secs_f64()
}

async fn bare(address: &str) -> tokio_postgres::Client {
    let (client, connection) =
        tokio_postgres::connect(address, tokio_postgres::NoTls).await.expect("the server is there");
    tokio::spawn(connection);
    let table = "CREATE TABLE bare (LIKE recto_commits INCLUDING ALL)";
    client.batch_execute(table).await.expect("the table is made");
    client
}

async fn create(store: &PostgresStore) -> ConversationId {
    let id = ConversationId(uuid::Uuid::now_v7());
    let new = NewConversation {
        id,
        tenant: Tenant("acme".to_owned()),
        name: "bench".to_owned(),
        created: 0,
        settings: "{}".to_owned(),
        policy: None,
        lineage: Vec::new(),
        first: commit(id, 0, false).row,
        words: Vec::new(),
    };
    store.create(new).await.expect("the conversation is created");
    id
}

/// A message of about 1.2 kB, as the agent run of the figures has on average.
fn commit(conversation: ConversationId, version: u32, keyed: bool) -> Commit {
    let noise = |n: u32| hash_of(&(version * 100 + n).to_le_bytes());
    let words: Vec<String> =
        (0..40).map(|n| format!("word{} of the message", noise(n)[0])).collect();
    let text = words.join(", ");
    let body = format!(r#"{{"role":"user","content":"{text}"}}"#);
    let meta = EntryMeta { tokens: 300, ..EntryMeta::default() };
    let body = CommitBody { record: "{}".to_owned(), entries: vec![Entry { meta, body }] };
    let link = Link(noise(99));
    let head = Head { version, entries: version + 1, link, committed: 0 };
    let key = keyed.then(|| IdempotencyKey {
        key: format!("request-{version}"),
        request: noise(98),
        version,
        changed: true,
    });
    let words = vec![WordsOf { entry: version, words: Words::of(&text) }];
    Commit {
        conversation,
        row: CommitRow { head, body: body.pack() },
        key,
        words,
        seal: None,
        rewrites: None,
    }
}
