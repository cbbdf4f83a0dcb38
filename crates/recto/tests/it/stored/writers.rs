//! Writers: expected versions, idempotency keys, and refused requests.

use recto::{Delete, Error, LogIndex, Rollback, Truncate, Version, WriteOptions};

use super::{say, settings, texts};
use crate::places::{Place, on_every_store};

on_every_store! {
    a_writer_that_expects_an_old_version_is_refused
    many_writers_on_one_conversation_make_versions_without_gaps
    a_repeated_request_returns_the_first_outcome
    a_repeated_request_is_recognised_by_a_handle_at_an_older_version
    a_key_cannot_be_used_for_two_requests
    a_key_cannot_be_empty
    a_refused_request_changes_nothing
    a_preview_shows_what_a_request_would_do_and_stores_nothing
}

async fn a_writer_that_expects_an_old_version_is_refused(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    conversation.append([say(0)]).await.unwrap();
    let other = place.recto().conversation("a").await.unwrap();
    other.append([say(1)]).await.unwrap();
    let seen = |version| WriteOptions {
        expected_version: Some(Version(version)),
        ..WriteOptions::default()
    };
    let append = recto::Append { messages: vec![say(2)] };
    let refused = conversation.apply_with(append.clone(), seen(1)).await.unwrap_err();
    assert_eq!(refused.code(), "version_conflict");
    assert!(refused.to_string().contains("at version 2, not at 1"), "{refused}");
    conversation.apply_with(append, seen(2)).await.unwrap();
    assert_eq!(other.version().await.unwrap(), Version(3));
}

async fn many_writers_on_one_conversation_make_versions_without_gaps(place: Place) {
    place.recto().create("a", settings()).await.unwrap();
    let mut writers = Vec::new();
    for writer in 0..8 {
        let recto = place.recto();
        writers.push(tokio::spawn(async move {
            let conversation = recto.conversation("a").await.unwrap();
            let mut versions = Vec::new();
            for number in 0..10 {
                let outcome = conversation.append([say(writer * 100 + number)]).await.unwrap();
                versions.push(outcome.version.0);
            }
            versions
        }));
    }
    let mut all = Vec::new();
    for writer in writers {
        let versions = writer.await.unwrap();
        assert!(versions.is_sorted(), "a writer's requests keep their order");
        all.extend(versions);
    }
    all.sort_unstable();
    assert_eq!(all, (1..=80).collect::<Vec<u32>>());
    let conversation = place.recto().conversation("a").await.unwrap();
    let mut found = texts(&conversation).await;
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 80);
    assert!(conversation.verify().await.unwrap().is_sound());
}

async fn a_repeated_request_returns_the_first_outcome(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    conversation.append((0..4).map(say)).await.unwrap();
    let write = || WriteOptions { idempotency_key: Some("k1".into()), ..WriteOptions::default() };
    let cut = || Truncate { keep_last: Some(1), ..Default::default() };
    let first = conversation.apply_with(cut(), write()).await.unwrap();
    conversation.append([say(9)]).await.unwrap();
    let again = place.recto().conversation("a").await.unwrap();
    let second = again.apply_with(cut(), write()).await.unwrap();
    assert_eq!(second.to_json(), first.to_json());
    assert_eq!(again.version().await.unwrap(), Version(3), "nothing was done twice");
    // The key of a request that changes nothing is kept too.
    let idle = || recto::Fit::within(1_000_000);
    let write = || WriteOptions { idempotency_key: Some("k2".into()), ..WriteOptions::default() };
    let first = conversation.apply_with(idle(), write()).await.unwrap();
    assert!(!first.changed);
    conversation.append([say(10)]).await.unwrap();
    let second = conversation.apply_with(idle(), write()).await.unwrap();
    assert_eq!(second.to_json(), first.to_json());
}

async fn a_repeated_request_is_recognised_by_a_handle_at_an_older_version(place: Place) {
    let first = place.recto().create("a", settings()).await.unwrap();
    let second = place.recto().conversation("a").await.unwrap();
    assert_eq!(texts(&second).await, Vec::<String>::new());
    let write = WriteOptions { idempotency_key: Some("k".into()), ..WriteOptions::default() };
    let request = recto::Append { messages: vec![say(0)] };
    let done = first.apply_with(request.clone(), write.clone()).await.unwrap();
    let again = second.apply_with(request, write).await.unwrap();
    assert_eq!(again.to_json(), done.to_json());
    assert_eq!(texts(&second).await.len(), 1);
}

async fn a_key_cannot_be_used_for_two_requests(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    let write = || WriteOptions { idempotency_key: Some("k".into()), ..WriteOptions::default() };
    let append = |number| recto::Append { messages: vec![say(number)] };
    conversation.apply_with(append(1), write()).await.unwrap();
    let refused = conversation.apply_with(append(2), write()).await.unwrap_err();
    assert!(matches!(refused, Error::Store(recto_store::Error::KeyReused { .. })), "{refused}");
    assert_eq!(conversation.version().await.unwrap(), Version(1));
}

async fn a_key_cannot_be_empty(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    let write = WriteOptions { idempotency_key: Some(String::new()), ..WriteOptions::default() };
    let refused = conversation.apply_with(recto::Append { messages: vec![say(1)] }, write).await;
    assert_eq!(refused.unwrap_err().code(), "invalid_operation");
}

async fn a_refused_request_changes_nothing(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    conversation.append([say(0)]).await.unwrap();
    let before = place.store.commits(conversation.id(), None).await.unwrap();
    let refused = [
        conversation.apply(Rollback::ToVersion(Version(9))).await.unwrap_err().code(),
        conversation.apply(Delete { indices: vec![LogIndex(7)] }).await.unwrap_err().code(),
        conversation.append([]).await.unwrap_err().code(),
    ];
    assert_eq!(refused, ["version_not_found", "index_out_of_range", "invalid_operation"]);
    assert_eq!(place.store.commits(conversation.id(), None).await.unwrap(), before);
}

async fn a_preview_shows_what_a_request_would_do_and_stores_nothing(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    conversation.append((0..5).map(say)).await.unwrap();
    let replace = recto::Replace { index: recto::Position(4), message: say(9) };
    let cut = Truncate { keep_last: Some(2), ..Default::default() };
    let request: recto::Request =
        [recto::Operation::from(cut), replace.into()].into_iter().collect();
    let refused = conversation.preview(request).await.unwrap_err();
    assert_eq!(refused.code(), "index_out_of_range");

    let replace = recto::Replace { index: recto::Position(4), message: say(9) };
    let preview = conversation.preview(replace.clone()).await.unwrap();
    assert_eq!(preview.outcome.hidden(), [LogIndex(4)]);
    assert_eq!(preview.outcome.diff().shown.indices, [LogIndex(5)]);
    let [added] = &*preview.added else { panic!("one message is added") };
    assert_eq!((added.index, added.position), (LogIndex(5), Some(recto::Position(4))));
    assert_eq!(added.message.text(), "message number 9");
    assert_eq!(conversation.version().await.unwrap(), Version(1));
    assert_eq!(texts(&conversation).await.len(), 5);

    let seen = WriteOptions { expected_version: Some(Version(0)), ..WriteOptions::default() };
    assert!(conversation.preview_with(replace.clone(), seen).await.unwrap_err().is_conflict());
    // The request does what the preview shows.
    let done = conversation.apply(replace).await.unwrap();
    assert_eq!(done.to_json(), preview.outcome.to_json());
}
