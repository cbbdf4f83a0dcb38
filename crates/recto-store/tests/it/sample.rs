//! Example rows.

use recto_store::{
    Ancestor, Commit, CommitRow, ConversationId, Head, IdempotencyKey, Link, NewConversation, Page,
    PageKind, Rewrite, RewriteOf, Store, Tenant, WordsOf, hash_of,
};
use uuid::Uuid;

pub(crate) fn tenant() -> Tenant {
    Tenant::default()
}

pub(crate) fn id(number: u128) -> ConversationId {
    ConversationId(Uuid::from_u128(number))
}

/// The row of a version, with one log entry for each version.
pub(crate) fn row(version: u32) -> CommitRow {
    row_with_body(version, &format!("row {version}"))
}

pub(crate) fn row_with_body(version: u32, body: &str) -> CommitRow {
    let head = Head {
        version,
        entries: version.saturating_add(1),
        link: Link(hash_of(&version.to_le_bytes())),
        committed: i64::from(version) - 3,
    };
    CommitRow { head, body: body.as_bytes().to_vec() }
}

pub(crate) fn new(id: ConversationId, name: &str) -> NewConversation {
    NewConversation {
        id,
        tenant: tenant(),
        name: name.to_owned(),
        created: -5,
        settings: r#"{"a":1}"#.to_owned(),
        policy: None,
        lineage: Vec::new(),
        first: row(0),
        words: Vec::new(),
    }
}

/// A fork that shares everything below this version.
pub(crate) fn fork(
    id: ConversationId,
    name: &str,
    lineage: &[ConversationId],
    version: u32,
) -> NewConversation {
    let ancestor = |&id| Ancestor { id, versions: version, entries: version };
    NewConversation {
        lineage: lineage.iter().map(ancestor).collect(),
        first: row(version),
        ..new(id, name)
    }
}

pub(crate) fn commit(conversation: ConversationId, version: u32) -> Commit {
    Commit {
        conversation,
        row: row(version),
        key: None,
        words: Vec::new(),
        seal: None,
        rewrites: None,
    }
}

pub(crate) fn key(key: &str, version: u32) -> IdempotencyKey {
    IdempotencyKey { key: key.to_owned(), request: hash_of(key.as_bytes()), version, changed: true }
}

pub(crate) fn words(entry: u32, words: &str) -> WordsOf {
    WordsOf { entry, words: recto_store::Words::of(words) }
}

pub(crate) fn page(kind: PageKind, first: u32, count: u32) -> Page {
    let meta = format!("meta {kind:?} {first}").into_bytes();
    Page { kind, first, count, meta, body: vec![first as u8; 6_000] }
}

/// Creates a conversation and commits versions up to this one.
pub(crate) async fn grown(store: &dyn Store, number: u128, name: &str, version: u32) {
    store.create(new(id(number), name)).await.unwrap();
    for version in 1..=version {
        store.commit(commit(id(number), version)).await.unwrap();
    }
}

/// The condition that this version is the newest one, for a removal.
pub(crate) fn only_at(conversation: ConversationId, at: u32) -> Vec<RewriteOf> {
    vec![RewriteOf { conversation, at, rewrite: Rewrite::default() }]
}
