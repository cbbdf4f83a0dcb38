//! Reads of a conversation and its versions.

use std::sync::Arc;
use std::time::Duration;

use recto::{
    Delete, Error, LogIndex, MemoryStore, Message, Options, Recto, Rollback, Settings, Truncate,
    Version,
};

use super::{say, settings};
use crate::interrupted_store::InterruptedStore;
use crate::places::{Place, on_every_store};

on_every_store! {
    the_example_of_the_readme_has_its_output
    an_entry_has_its_tokens_and_its_time
    marks_times_and_the_mark_map_are_those_of_a_version
    marks_stay_after_marks_without_effect
    a_version_names_the_version_that_opened_its_batch
    a_counter_of_the_caller_can_be_used
    debug_output_contains_no_messages
}

async fn the_example_of_the_readme_has_its_output(place: Place) {
    let recto = place.recto();
    let conversation = recto.create("support", Settings::default()).await.unwrap();
    conversation
        .append([
            Message::system("You are on call for a web shop."),
            Message::user("Why does checkout fail?"),
            Message::tool_call("c1", "read_logs", &serde_json::json!({"service": "checkout"})),
            Message::tool_result("c1", &"08:02 eu-1 ERROR no answer after 500 ms\n".repeat(30)),
            Message::assistant("The gateway times out since release 4.2."),
        ])
        .await
        .unwrap();
    let fit = recto::Fit::within(60).reason("the model reads 60 tokens");
    let outcome = conversation.apply(fit).await.unwrap();
    let stats = outcome.stats();
    assert_eq!((outcome.version, outcome.hidden().len(), stats.tokens), (Version(2), 3, 26));
    assert_eq!(conversation.messages_at(Version(1)).await.unwrap().len(), 5);
    let fork = conversation.fork("what if", Version(1)).await.unwrap();
    fork.append([Message::user("And in June?")]).await.unwrap();
    assert_eq!(recto.search("gateway", 10).await.unwrap().len(), 1);
}

async fn an_entry_has_its_tokens_and_its_time(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    let dated = r#"{"role":"user","content":"12345678","timestamp":77}"#;
    conversation.append([Message::from_json(dated).unwrap(), say(1)]).await.unwrap();
    conversation.apply(Delete { indices: vec![LogIndex(0)] }).await.unwrap();
    let query = recto::Query { scope: recto::Scope::All, ..Default::default() };
    for entries in [
        conversation.query(&query).await.unwrap(),
        place.recto().conversation("a").await.unwrap().messages_at(Version(1)).await.unwrap(),
    ] {
        assert_eq!((entries[0].tokens, entries[0].timestamp), (5, 77));
        assert!(entries[1].timestamp > 77);
    }
    let entries = conversation.entries(&[LogIndex(1), LogIndex(0)]).await.unwrap();
    let found = entries.iter().map(|entry| (entry.index.0, entry.position, entry.tokens));
    assert_eq!(found.collect::<Vec<_>>(), [(1, Some(recto::Position(0)), 7), (0, None, 5)]);
    let missing = conversation.entries(&[LogIndex(2)]).await.unwrap_err();
    assert_eq!(missing.code(), "index_out_of_range");
    assert_eq!(conversation.log_tokens(&[0, 1, 2, 9]).await.unwrap(), [0, 5, 12, 12]);
}

async fn marks_times_and_the_mark_map_are_those_of_a_version(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    let mut maps = Vec::new();
    for number in 0..100 {
        let at = 1_000 + number as i64;
        let message = format!(r#"{{"role":"user","content":"{number}","timestamp":{at}}}"#);
        conversation.append([Message::from_json(&message).unwrap()]).await.unwrap();
        maps.push(conversation.mark_map(recto::Scope::All).await.unwrap());
    }
    let mark = "pinned".to_owned();
    conversation.apply(recto::Mark { indices: vec![LogIndex(7)], mark }).await.unwrap();
    conversation.apply(Truncate { keep_last: Some(3), ..Truncate::default() }).await.unwrap();
    // In a new `Recto` no earlier version is loaded.
    let again = place.recto().conversation("a").await.unwrap();
    for (version, map) in (1..).zip(&maps).step_by(9) {
        assert_eq!(
            &again.mark_map_at(Version(version), recto::Scope::All).await.unwrap(),
            map,
            "{version}"
        );
    }
    let newest = again.mark_map(recto::Scope::All).await.unwrap();
    assert_eq!(again.mark_map_at(Version(102), recto::Scope::All).await.unwrap(), newest);
    assert!(again.marks_at(Version(100)).await.unwrap().is_empty());
    let pinned = vec![("pinned".to_owned(), vec![LogIndex(7)])];
    assert_eq!(again.marks_at(Version(101)).await.unwrap(), pinned);
    assert!(again.marks_at(Version(103)).await.is_err());
    let asked = [LogIndex(99), LogIndex(0), LogIndex(50)];
    assert_eq!(again.times(&asked).await.unwrap(), [1_099, 1_000, 1_050]);
    assert!(again.times(&[]).await.unwrap().is_empty());
    assert_eq!(again.times(&[LogIndex(100)]).await.unwrap_err().code(), "index_out_of_range");
}

/// The second MARK of the same entry makes a version without a change of the marks. The marks of the versions
/// before and after it stay.
async fn marks_stay_after_marks_without_effect(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    conversation.append((0..4).map(say)).await.unwrap();
    let mark = |index: u32, label: &str| recto::Mark {
        indices: vec![LogIndex(index)],
        mark: label.to_owned(),
    };
    for marked in [mark(0, "draft"), mark(0, "draft"), mark(1, "final")] {
        conversation.apply(marked).await.unwrap();
    }
    // In a new `Recto` the next version is written as a change of the loaded one.
    let again = place.recto().conversation("a").await.unwrap();
    again.append([say(4)]).await.unwrap();
    let label = |label: &str, index| (label.to_owned(), vec![LogIndex(index)]);
    let marks = [label("draft", 0), label("final", 1)];
    assert_eq!(again.marks().await.unwrap(), marks);
    let again = place.recto().conversation("a").await.unwrap();
    assert_eq!(again.marks().await.unwrap(), marks);
}

async fn a_version_names_the_version_that_opened_its_batch(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    conversation.append([say(0)]).await.unwrap();
    let start = || recto::BatchStart::default();
    conversation.apply(start()).await.unwrap();
    conversation.append([say(1)]).await.unwrap();
    conversation.apply(Rollback::ToBatch(recto::BatchIndex(0))).await.unwrap();
    conversation.apply(start()).await.unwrap();
    let again = place.recto().conversation("a").await.unwrap();
    let versions = again.versions(Version(0)..Version(6)).await.unwrap();
    let batches: Vec<(usize, u32)> =
        versions.iter().map(|info| (info.batch.0, info.batch_opened_by.0)).collect();
    assert_eq!(batches, [(0, 0), (0, 0), (1, 2), (1, 2), (0, 0), (1, 5)]);
    assert_eq!(versions.iter().map(|info| info.log).collect::<Vec<_>>(), [0, 1, 1, 2, 2, 2]);
}

async fn a_counter_of_the_caller_can_be_used(place: Place) {
    #[derive(Debug)]
    struct Words;
    impl recto::Counter for Words {
        fn name(&self) -> &str {
            "words"
        }
        fn count(&self, text: &str) -> u64 {
            text.split_whitespace().count() as u64
        }
    }
    let refused = place.recto().create("a", Settings::counting_with(Words)).await.unwrap_err();
    assert!(matches!(refused, Error::UnknownCounter { .. }), "{refused}");
    assert!(place.recto().list(None, 9).await.unwrap().is_empty(), "nothing was created");
    let counters: Vec<Arc<dyn recto::Counter>> = vec![Arc::new(Words)];
    let with = || {
        let options = recto::Options { counters: counters.clone(), ..Default::default() };
        recto::Recto::with_store(place.store.clone(), options)
    };
    let conversation = with().create("a", Settings::counting_with(Words)).await.unwrap();
    conversation.append([Message::user("three little words")]).await.unwrap();
    let again = with().conversation("a").await.unwrap();
    assert_eq!(again.stats().await.unwrap().tokens, 6);
    assert!(again.verify().await.unwrap().is_sound());
    let without = place.recto().conversation("a").await.unwrap();
    assert!(matches!(without.stats().await.unwrap_err(), Error::UnknownCounter { .. }));
}

async fn debug_output_contains_no_messages(place: Place) {
    let recto = place.recto();
    let conversation = recto.create("a", settings()).await.unwrap();
    conversation.append([Message::user("hunter2")]).await.unwrap();
    for printed in [format!("{recto:?}"), format!("{conversation:?}")] {
        assert!(!printed.contains("hunter2") && printed.len() < 200, "{printed}");
    }
}

#[tokio::test]
async fn a_read_does_not_wait_for_a_commit_of_the_same_conversation() {
    let store = InterruptedStore::counting(Arc::new(MemoryStore::default()));
    let recto = Recto::with_store(store.clone(), Options::default());
    let conversation = recto.create("a", settings()).await.unwrap();
    conversation.append([Message::user("one")]).await.unwrap();
    let commits = store.commits();
    let held = store.hold_commits().await;
    let writer = conversation.clone();
    let write = tokio::spawn(async move { writer.append([Message::user("two")]).await });
    while store.commits() == commits {
        tokio::task::yield_now().await;
    }
    let folder = tempfile::tempdir().unwrap();
    let read = async {
        recto.backup(folder.path().join("backup.db")).await.unwrap();
        (conversation.messages().await.unwrap(), conversation.stats().await.unwrap())
    };
    let read = tokio::time::timeout(Duration::from_secs(10), read).await;
    let (messages, stats) = read.expect("the reads and the backup end while the commit waits");
    assert_eq!(
        (messages.len(), stats.total_messages),
        (1, 1),
        "nothing is visible before it is stored"
    );
    drop(held);
    write.await.unwrap().unwrap();
    assert_eq!(conversation.messages().await.unwrap().len(), 2);
}
