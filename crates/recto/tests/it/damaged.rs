//! Forged rows: they are refused, or `verify` reports them, and no call takes long.

use std::sync::Arc;
use std::time::Duration;

use recto::{
    Approx, BatchIndex, Conversation, ConversationId, Delete, Keep, LogIndex, MemoryStore, Message,
    Options, Recto, Settings, Tenant, Version,
};
use recto_store::{
    Commit, CommitBody, CommitRow, Entry, Head, Link, NewConversation, Rewrite, hash_of,
};

use crate::interrupted_store::InterruptedStore;
use crate::places::{Place, memory};

const START: &str = r#"{"operation":"APPEND","timestamp":0,"logLen":0,"view":{"parts":[]},
    "figures":[0,0],"batch":[0,0],"batchNumber":0,
    "batches":[{"timestamp":0,"description":"start","boundary":0}]}"#;

/// A conversation whose versions have these records and log lengths.
async fn forged(versions: &[(&str, u32)]) -> Conversation {
    forged_from(0, versions, Vec::new()).await
}

/// Like [`forged`], with `first` as the first version and these entries in each row.
async fn forged_from(
    first: u32,
    versions: &[(&str, u32)],
    entries_of_each: Vec<Entry>,
) -> Conversation {
    let Place { store, .. } = memory().await;
    let conversation = ConversationId(uuid::Uuid::from_bytes([1; 16]));
    let mut rows =
        (first..=u32::MAX).zip(versions).map(|(version, &(record, entries))| CommitRow {
            head: Head { version, entries, link: Link([0; 32]), committed: 0 },
            body: CommitBody { record: record.to_owned(), entries: entries_of_each.clone() }.pack(),
        });
    let new = NewConversation {
        id: conversation,
        tenant: Tenant::default(),
        name: "a".into(),
        created: 0,
        settings: r#"{"counter":"approx","mediaTokens":1000,"heading":"tools"}"#.into(),
        policy: None,
        lineage: Vec::new(),
        first: rows.next().expect("there is a first version"),
        words: Vec::new(),
    };
    store.create(new).await.unwrap();
    for row in rows {
        let (words, rewrites) = (Vec::new(), None);
        let commit = Commit { conversation, row, key: None, words, seal: None, rewrites };
        store.commit(commit).await.unwrap();
    }
    let recto = recto::Recto::with_store(store, recto::Options::default());
    recto.conversation("a").await.unwrap()
}

#[tokio::test]
async fn batches_that_point_to_each_other_are_refused_quickly() {
    let circle = r#"{"operation":"CLEAR","description":"","timestamp":0,"logLen":0,
        "view":{"parts":[]},"figures":[0,0],"batch":[1,0],"batchNumber":4000000000,"batches":[
        {"timestamp":0,"description":"","boundary":0,
         "left":{"batch":[1,1],"view":{"of":0},"logLen":0}},
        {"ordinal":1,"timestamp":0,"description":"","boundary":0,
         "left":{"batch":[1,0],"view":{"of":0},"logLen":0}}]}"#;
    let conversation = forged(&[(START, 0), (circle, 0)]).await;
    assert_eq!(conversation.mark_map(recto::Scope::Visible).await.unwrap_err().code(), "storage");
    assert_eq!(conversation.snapshot(BatchIndex(0)).await.unwrap_err().code(), "storage");
    assert!(!conversation.verify().await.unwrap().is_sound());
}

#[tokio::test]
async fn a_version_that_claims_a_longer_log_is_refused_quickly() {
    let long = START.replace("\"logLen\":0", "\"logLen\":4000000000");
    let long = long.replace("[]}", "[-1,4000000000]}").replace("[0,0],\"b", "[4000000000,0],\"b");
    let conversation = forged(&[(&long, 0)]).await;
    assert_eq!(conversation.messages().await.unwrap_err().code(), "storage");
    assert!(!conversation.verify().await.unwrap().is_sound());
}

#[tokio::test]
async fn a_forged_placeholder_of_an_erased_message_is_detected() {
    let place = memory().await;
    let conversation = place.recto().create("a", Settings::counting_with(Approx)).await.unwrap();
    conversation.append([Message::user("said"), Message::user("erased")]).await.unwrap();
    conversation.erase(LogIndex(1)).await.unwrap();
    assert!(conversation.verify().await.unwrap().is_sound());
    let mut rows = place.store.commits(conversation.id(), None).await.unwrap();
    let mut row = rows.remove(1);
    let mut body = CommitBody::unpack(&row.body).unwrap();
    let entry = &mut body.entries[0];
    entry.meta.gone = Some(hash_of(entry.body.as_bytes()));
    entry.body = entry.body.replace("said", "forged");
    row.body = body.pack();
    let rewrite = Rewrite { commits: vec![row], ..Rewrite::default() };
    place.store.rewrite(conversation.id(), 1, rewrite).await.unwrap();
    assert_eq!(conversation.verify().await.unwrap().faults.len(), 1);
}

/// Calls every read and write. Each returns a result or an error.
async fn call_everything(conversation: &Conversation) {
    let keeps = [
        Keep::newest(),
        Keep::last_batches(usize::MAX),
        Keep { last_versions: Some(2), ..Keep::default() },
    ];
    for keep in keeps {
        let _ = conversation.prune(&keep).await;
    }
    let _ = conversation.erase(LogIndex(0)).await;
    let _ = conversation.erase(LogIndex(u32::MAX)).await;
    let _ = conversation.fork("fork", Version(u32::MAX)).await;
    let _ = conversation.versions(Version(u32::MAX - 1)..Version(u32::MAX)).await;
    let _ = conversation.version_info(Version(u32::MAX)).await;
    let _ = conversation.messages().await;
    let _ = conversation.message(LogIndex(u32::MAX - 1)).await;
    let _ = conversation.stats().await;
    let _ = conversation.set_tools(Vec::new()).await;
}

#[tokio::test]
async fn the_largest_numbers_cause_no_overflow() {
    let start =
        |version: u32| START.replace("\"batch\":[0,0]", &format!("\"batch\":[{version},0]"));
    let conversation = forged_from(u32::MAX, &[(&start(u32::MAX), 0)], Vec::new()).await;
    call_everything(&conversation).await;
    assert_eq!(conversation.append([Message::user("x")]).await.unwrap_err().code(), "storage");
    // The largest version: it can be read, and no version can follow it.
    let conversation = forged_from(u32::MAX - 1, &[(&start(u32::MAX - 1), 0)], Vec::new()).await;
    assert_eq!(conversation.version().await.unwrap(), Version(u32::MAX - 1));
    assert_eq!(conversation.append([Message::user("x")]).await.unwrap_err().code(), "too_large");
    let pruned = conversation.prune(&Keep { last_versions: Some(1), ..Keep::default() }).await;
    assert_eq!(pruned.unwrap().kept_versions, 1);
    call_everything(&conversation).await;
    let long =
        START.replace("\"logLen\":0", "\"logLen\":4294967295").replace("[]}", "[-4294967295,1]}");
    let long = long.replace("[0,0],\"b", "[1,0],\"b");
    let conversation = forged(&[(&long, u32::MAX)]).await;
    assert_eq!(conversation.messages().await.unwrap_err().code(), "storage");
    call_everything(&conversation).await;
}

#[tokio::test]
async fn a_row_with_more_entries_than_the_log_is_refused() {
    let entry = Entry { meta: Default::default(), body: r#"{"role":"user","content":"x"}"#.into() };
    let conversation = forged_from(0, &[(START, 0)], vec![entry; 3]).await;
    call_everything(&conversation).await;
    assert_eq!(conversation.prune(&Keep::newest()).await.unwrap_err().code(), "storage");
}

/// A store in a file whose conversation `a` has 100 messages in versions of their own, and whose newest page
/// of messages is damaged. With `length_unknown`, so is the row of the conversation.
async fn with_damaged_newest_page(folder: &std::path::Path, length_unknown: bool) -> recto::Recto {
    let file = folder.join("a.db");
    let address = format!("sqlite:{}", file.display());
    {
        let recto = recto::Recto::open(&address).await.unwrap();
        let conversation = recto.create("a", Settings::counting_with(Approx)).await.unwrap();
        for number in 0..100 {
            conversation.append([Message::user(&format!("message {number}"))]).await.unwrap();
        }
    }
    let db = rusqlite::Connection::open(&file).unwrap();
    // Pages of messages have the kind 1, in the bits below the number of the conversation.
    let newest = "SELECT max(place) FROM pages";
    let changed = format!("UPDATE pages SET checksum = checksum + 1 WHERE place = ({newest})");
    assert_eq!(db.execute(&changed, []).unwrap(), 1);
    if length_unknown {
        let damage = "UPDATE conversations SET settings = settings || ' '";
        assert_eq!(db.execute(damage, []).unwrap(), 1);
        let damage = "UPDATE commits SET body = x'00'";
        assert!(db.execute(damage, []).unwrap() > 0);
    }
    drop(db);
    recto::Recto::open(&address).await.unwrap()
}

#[tokio::test]
async fn salvage_ends_if_the_newest_page_is_damaged() {
    for length_unknown in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let recto = with_damaged_newest_page(folder.path(), length_unknown).await;
        let limit = std::time::Duration::from_secs(60);
        let salvaged = tokio::time::timeout(limit, recto.salvage("a", "copy")).await;
        let salvaged = salvaged.expect("salvage ends").unwrap();
        assert!(!salvaged.faults.is_empty());
        if length_unknown {
            assert_eq!(salvaged.messages, 0);
            continue;
        }
        let missing = salvaged.missing_messages.len();
        assert!((1..100).contains(&missing), "{salvaged:?}");
        assert_eq!(salvaged.messages, 100 - missing);
        let copy = recto.conversation("copy").await.unwrap();
        let first = copy.messages().await.unwrap()[0].message.text().into_owned();
        assert_eq!(first, format!("message {missing}"));
    }
}

#[tokio::test]
async fn a_request_that_conflicts_with_a_row_that_cannot_be_read_ends() {
    let store = InterruptedStore::counting(Arc::new(MemoryStore::default()));
    let recto = Recto::with_store(store.clone(), Options::default());
    let conversation = recto.create("a", Settings::counting_with(Approx)).await.unwrap();
    conversation.append([Message::user("one"), Message::user("two")]).await.unwrap();
    conversation.apply(Delete { indices: vec![LogIndex(0)] }).await.unwrap();
    store.conflict();
    let keep = Keep { last_versions: Some(1), ..Keep::default() };
    let requests = async {
        [
            conversation.append([Message::user("three")]).await.map(drop),
            conversation.erase(LogIndex(0)).await.map(drop),
            conversation.prune(&keep).await.map(drop),
            recto.remove("a").await,
        ]
    };
    let refused = tokio::time::timeout(Duration::from_secs(120), requests).await;
    for refused in refused.expect("no request is repeated without an end") {
        let refused = refused.unwrap_err();
        assert!(refused.to_string().contains("cannot be read"), "{refused}");
    }
    assert_eq!(conversation.messages().await.unwrap().len(), 1);
}
