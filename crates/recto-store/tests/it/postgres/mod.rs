//! Tests of PostgreSQL only: many writers, killed servers, broken connections.
//!
//! The tests start a server; see the crate `testserver`.

mod campaign;
mod encryption;
mod erase;
mod faults;
mod format;
mod pool;
mod rows;
mod writers;

use recto_store::{
    Commit, CommitRow, ConversationId, Head, IdempotencyKey, Link, NewConversation,
    PostgresOptions, PostgresStore, Store, Tenant, Words, WordsOf, hash_of,
};
use testserver::PostgresServer;

/// A store in a new database.
async fn store() -> PostgresStore {
    open(&PostgresServer::shared().database()).await
}

async fn open(address: &str) -> PostgresStore {
    PostgresStore::open(address, PostgresOptions::default()).await.unwrap()
}

fn tenant() -> Tenant {
    Tenant("acme".to_owned())
}

fn row(version: u32, text: &str) -> CommitRow {
    let head = Head {
        version,
        entries: version + 1,
        link: Link(hash_of(text.as_bytes())),
        committed: i64::from(version),
    };
    CommitRow { head, body: text.as_bytes().to_vec() }
}

fn words(entry: u32, text: &str) -> Vec<WordsOf> {
    vec![WordsOf { entry, words: Words::of(text) }]
}

fn commit(conversation: ConversationId, version: u32, text: &str) -> Commit {
    let (row, words) = (row(version, text), words(version, text));
    Commit { conversation, row, key: None, words, seal: None, rewrites: None }
}

/// A commit with its text as the idempotency key.
fn keyed(conversation: ConversationId, version: u32, text: &str) -> Commit {
    let key = IdempotencyKey {
        key: text.to_owned(),
        request: hash_of(text.as_bytes()),
        version,
        changed: true,
    };
    Commit { key: Some(key), ..commit(conversation, version, text) }
}

fn new(name: &str) -> NewConversation {
    NewConversation {
        id: ConversationId(recto_store::new_id(0)),
        tenant: tenant(),
        name: name.to_owned(),
        created: 7,
        settings: "{}".to_owned(),
        policy: None,
        lineage: Vec::new(),
        first: row(0, name),
        words: words(0, name),
    }
}

async fn create(store: &dyn Store, name: &str) -> ConversationId {
    let new = new(name);
    let id = new.id;
    store.create(new).await.unwrap();
    id
}

/// The newest version.
async fn version(store: &dyn Store, id: ConversationId) -> u32 {
    store.commits(id, None).await.unwrap().last().unwrap().head.version
}

/// The texts of all versions above 0. Checks that the versions have no gaps.
async fn texts(store: &dyn Store, id: ConversationId) -> Vec<String> {
    let rows = store.commits(id, Some(0)).await.unwrap();
    for (row, expected) in rows.iter().zip(1..) {
        assert_eq!(row.head.version, expected);
    }
    rows.into_iter().map(|row| String::from_utf8(row.body).unwrap()).collect()
}
