//! Forks share the versions before them and change independently.

use std::sync::Arc;

use recto::{LogIndex, Message, Options, Recto, Store, Version, WriteOptions};

use super::{say, settings, texts};
use crate::interrupted_store::InterruptedStore;
use crate::places::{Place, on_every_store};

on_every_store! {
    a_fork_shares_earlier_versions_and_changes_independently
    a_fork_of_a_fork_reads_through_both
    a_fork_stays_readable_after_its_origin_is_removed
    a_fork_never_shows_later_messages_of_its_origin
    rows_that_forks_share_are_verified_once_and_their_faults_are_reported_for_each
    an_examination_has_the_warnings_of_every_conversation
}

/// A chain of forks, each with one more message.
async fn nested(recto: &recto::Recto, depth: usize) {
    let mut at = recto.create("fork 0", settings()).await.unwrap();
    for number in 0..depth {
        let version = at.append([say(number)]).await.unwrap().version;
        at = at.fork(&format!("fork {}", number + 1), version).await.unwrap();
    }
}

#[tokio::test]
async fn a_fork_takes_the_same_space_at_any_depth() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let recto = recto::Recto::open(&format!("sqlite:{}", path.display())).await.unwrap();
    nested(&recto, 60).await;
    let deepest = recto.conversation("fork 60").await.unwrap();
    assert_eq!(texts(&deepest).await.len(), 60);
    let db = rusqlite::Connection::open(&path).unwrap();
    let longest = "SELECT max(length(lineage)), min(length(lineage)) FROM conversations
                   WHERE lineage <> '[]'";
    let longest = db.query_row(longest, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let (longest, shortest): (u32, u32) = longest;
    assert!(longest <= shortest + 4, "{shortest} to {longest} bytes");
}

/// A store in memory with nested forks, which counts reads.
async fn counting_store(depth: usize) -> Arc<InterruptedStore> {
    let store: Arc<dyn Store> = Arc::new(recto::MemoryStore::default());
    nested(&Recto::with_store(store.clone(), Options::default()), depth).await;
    InterruptedStore::counting(store)
}

#[tokio::test]
async fn a_fork_is_opened_with_the_same_number_of_reads_at_any_depth() {
    let mut reads = Vec::new();
    for depth in [20, 200] {
        let store = counting_store(depth).await;
        let recto = Recto::with_store(store.clone(), Options::default());
        let deepest = recto.conversation(&format!("fork {depth}")).await.unwrap();
        assert_eq!(texts(&deepest).await.len(), depth);
        reads.push(store.reads());
    }
    assert_eq!(reads[0], reads[1]);
}

#[tokio::test]
async fn an_examination_reads_the_rows_that_forks_share_once() {
    const READS_OF_EACH: usize = 8;
    for depth in [50, 200] {
        let store = counting_store(depth).await;
        let recto = Recto::with_store(store.clone(), Options::default());
        assert_eq!(recto.examine().await.unwrap().len(), depth + 1);
        let read = store.row_sets();
        assert!(read <= READS_OF_EACH * (depth + 1), "{depth} forks of forks: {read} row sets");
    }
}

#[tokio::test]
async fn a_search_looks_up_the_conversations_of_all_hits_together() {
    for depth in [50, 200] {
        let store = counting_store(depth).await;
        let recto = Recto::with_store(store.clone(), Options::default());
        let found = recto.search("message", 1_000).await.unwrap();
        assert_eq!(found.len(), depth);
        assert_eq!(store.lookups(), 1, "{depth} forks of forks");
        for hit in &found {
            // Each fork has added the message after the shared ones.
            assert_eq!(hit.conversation, format!("fork {}", hit.index.0));
        }
    }
}

async fn an_examination_has_the_warnings_of_every_conversation(place: Place) {
    let recto = place.recto();
    nested(&recto, 4).await;
    let torn = recto.conversation("fork 4").await.unwrap();
    torn.append([Message::tool_call("c1", "ls", &serde_json::json!({}))]).await.unwrap();
    torn.append([Message::tool_result("c1", "done")]).await.unwrap();
    let version = torn.apply(recto::Delete { indices: vec![LogIndex(4)] }).await.unwrap().version;
    let below = torn.fork("fork 5", version).await.unwrap();
    below.append([say(9)]).await.unwrap();
    below.fork("whole", Version(version.0 - 1)).await.unwrap();
    recto.remove("fork 4").await.unwrap();
    recto.remove("fork 1").await.unwrap();
    let examined = place.recto().examine().await.unwrap();
    let names: Vec<&str> = examined.iter().map(|found| &*found.info.name).collect();
    assert_eq!(names, ["fork 0", "fork 2", "fork 3", "fork 5", "whole"]);
    for found in examined {
        let name = &found.info.name;
        let warnings = found.warnings.unwrap();
        assert_eq!(warnings.len(), usize::from(name == "fork 5"), "{name}: {warnings:?}");
        let expected = recto.conversation(name).await.unwrap().warnings().await.unwrap();
        assert_eq!(warnings, expected, "{name}");
    }
}

async fn rows_that_forks_share_are_verified_once_and_their_faults_are_reported_for_each(
    place: Place,
) {
    let recto = place.recto();
    nested(&recto, 5).await;
    recto.remove("fork 2").await.unwrap();
    let early =
        recto.conversation("fork 3").await.unwrap().fork("early", Version(1)).await.unwrap();
    early.append([say(9)]).await.unwrap();
    let reports = recto.verify_all(&mut |_, _| {}).await.unwrap();
    let names: Vec<&str> = reports.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["early", "fork 0", "fork 1", "fork 3", "fork 4", "fork 5"]);
    for (name, report) in reports {
        let name = &*name;
        let conversation = recto.conversation(name).await.unwrap();
        assert_eq!(report, conversation.verify().await.unwrap(), "{name}");
        assert_eq!(report.faults, Vec::<String>::new(), "{name}");
        let info = recto.info(name).await.unwrap();
        assert_eq!((report.versions, report.entries), (info.version.0 + 1, info.messages));
        assert_eq!(report.link, info.link);
    }
    // Overwrites message 1, which "fork 1" has added: the forks of "fork 1" show the new text too.
    let owner = recto.conversation("fork 1").await.unwrap().id();
    let rows = place.store.commits(owner, None).await.unwrap();
    let mut rewrite = recto_store::Rewrite::default();
    for row in rows {
        let mut body = recto_store::CommitBody::unpack(&row.body).unwrap();
        for entry in &mut body.entries {
            entry.body = entry.body.replace("message number 1", "message number 7");
        }
        rewrite.commits.push(recto_store::CommitRow { body: body.pack(), ..row });
    }
    place.store.rewrite(owner, 2, rewrite).await.unwrap();
    for (name, report) in recto.verify_all(&mut |_, _| {}).await.unwrap() {
        let name = &*name;
        let conversation = recto.conversation(name).await.unwrap();
        let is_sound = ["early", "fork 0"].contains(&name);
        assert_eq!(report.is_sound(), is_sound, "{name}: {:?}", report.faults);
        assert_eq!(report, conversation.verify().await.unwrap(), "{name}");
    }
}

async fn a_fork_shares_earlier_versions_and_changes_independently(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    for number in 0..100 {
        conversation.append([say(number)]).await.unwrap();
    }
    let fork = conversation.fork("b", Version(40)).await.unwrap();
    assert_eq!(texts(&fork).await.len(), 40);
    fork.append([Message::assistant("on its own")]).await.unwrap();
    conversation.append([say(100)]).await.unwrap();
    assert_eq!(fork.version().await.unwrap(), Version(41));
    assert_eq!(texts(&fork).await.last().unwrap(), "on its own");
    assert_eq!(texts(&conversation).await.len(), 101);
    let again = place.recto().conversation("b").await.unwrap();
    assert_eq!(again.messages_at(Version(7)).await.unwrap().len(), 7);
    assert_eq!(again.message(LogIndex(40)).await.unwrap().unwrap().text(), "on its own");
    assert!(again.message(LogIndex(41)).await.unwrap().is_none());
    assert!(again.verify().await.unwrap().is_sound());
    let info = place.recto().info("b").await.unwrap();
    assert_eq!(info.forked_from, Some((conversation.id(), Version(40))));
    let refused = conversation.fork("c", Version(500)).await.unwrap_err();
    assert_eq!(refused.code(), "version_not_found");
    assert_eq!(conversation.fork("b", Version(0)).await.unwrap_err().code(), "conversation_exists");
}

async fn a_fork_of_a_fork_reads_through_both(place: Place) {
    let first = place.recto().create("1", settings()).await.unwrap();
    for number in 0..80 {
        first.append([say(number)]).await.unwrap();
    }
    let second = first.fork("2", Version(70)).await.unwrap();
    for number in 70..160 {
        second.append([say(number)]).await.unwrap();
    }
    let late = second.fork("3", Version(150)).await.unwrap();
    let early = second.fork("4", Version(30)).await.unwrap();
    late.append([say(150)]).await.unwrap();
    early.append([say(30)]).await.unwrap();
    for (name, length) in [("2", 160), ("3", 151), ("4", 31)] {
        let conversation = place.recto().conversation(name).await.unwrap();
        let expected: Vec<String> = (0..length).map(|n| format!("message number {n}")).collect();
        assert_eq!(texts(&conversation).await, expected);
        assert!(conversation.verify().await.unwrap().is_sound(), "{name}");
    }
}

async fn a_fork_stays_readable_after_its_origin_is_removed(place: Place) {
    let recto = place.recto();
    let conversation = recto.create("a", settings()).await.unwrap();
    conversation.append((0..10).map(say)).await.unwrap();
    let fork = conversation.fork("b", Version(1)).await.unwrap();
    recto.remove("a").await.unwrap();
    assert_eq!(recto.conversation("a").await.unwrap_err().code(), "conversation_not_found");
    let again = place.recto().conversation("b").await.unwrap();
    assert_eq!(texts(&again).await.len(), 10);
    // A removed conversation accepts no requests, also from handles that have it loaded.
    for key in [None, Some("k".to_owned())] {
        let write = WriteOptions { idempotency_key: key, ..WriteOptions::default() };
        let late = conversation.apply_with(recto::Append { messages: vec![say(11)] }, write).await;
        assert_eq!(late.unwrap_err().code(), "conversation_not_found");
    }
    fork.append([say(10)]).await.unwrap();
    assert_eq!(texts(&again).await.len(), 11);
    recto.create("a", settings()).await.unwrap();
    recto.remove("b").await.unwrap();
    assert_eq!(recto.list(None, 10).await.unwrap().len(), 1);
}

async fn a_fork_never_shows_later_messages_of_its_origin(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    for number in 0..200 {
        conversation.append([say(number)]).await.unwrap();
    }
    let fork = conversation.fork("b", Version(90)).await.unwrap();
    fork.append((0..5).map(|_| Message::user("of the fork"))).await.unwrap();
    // Enough requests that its few messages are packed.
    for number in 0..70 {
        let mark = recto::Mark { indices: vec![LogIndex(number)], mark: "m".into() };
        fork.apply(mark).await.unwrap();
    }
    let again = place.recto().conversation("b").await.unwrap();
    assert_eq!(texts(&again).await[90..], ["of the fork"; 5]);
    assert_eq!(texts(&again).await[89], "message number 89");
}
