//! How older rows are packed into pages together with a request.

use recto::{Conversation, Keep, LogIndex, Message, Recto, Rollback, Truncate, Undo, Version};

use super::{copies, say, settings, texts};
use crate::interrupted_store::{InterruptedStore, Interruption};
use crate::places::{Place, on_every_store};

on_every_store! {
    accepted_requests_are_stored_when_the_program_restarts
    a_long_conversation_is_packed_and_every_version_stays_readable
    one_large_request_is_packed_at_once
    the_request_that_finds_sixty_four_rows_packs_them
    a_large_request_packs_the_rows_before_it_and_its_own_entries
    a_message_that_another_process_erased_before_the_packing_stays_erased
    rows_that_are_packed_during_an_erasure_or_a_prune_are_overwritten
    a_conversation_that_is_removed_or_forked_before_the_packing_is_complete_or_removed
    runtimes_that_end_after_a_packing_lose_nothing
    programs_that_write_once_each_pack_too
    programs_that_write_in_turns_pack_every_row_once
    batches_below_are_found_after_a_restart
}

async fn accepted_requests_are_stored_when_the_program_restarts(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    conversation.append((0..5).map(say)).await.unwrap();
    conversation.apply(Truncate { keep_last: Some(2), ..Default::default() }).await.unwrap();
    let again = place.recto().conversation("a").await.unwrap();
    assert_eq!(texts(&again).await, ["message number 3", "message number 4"]);
    assert_eq!(again.version().await.unwrap(), Version(2));
    again.apply(Undo).await.unwrap();
    assert_eq!(texts(&conversation).await.len(), 5, "the first program reads the new entries");
    assert!(conversation.verify().await.unwrap().is_sound());
}

async fn a_long_conversation_is_packed_and_every_version_stays_readable(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    for number in 0..300 {
        conversation.append([say(number)]).await.unwrap();
        if number % 40 == 39 {
            conversation
                .apply(Truncate { keep_last: Some(3), ..Default::default() })
                .await
                .unwrap();
        }
    }
    let rows = place.store.commits(conversation.id(), None).await.unwrap().len();
    assert!(rows <= 64, "{rows} rows are not packed");
    let again = place.recto().conversation("a").await.unwrap();
    let newest = again.version().await.unwrap();
    assert_eq!(newest, Version(307));
    let mut visible = 0;
    for (number, info) in again.versions(Version(0)..Version(308)).await.unwrap().iter().enumerate()
    {
        let entries = again.messages_at(Version(number as u32)).await.unwrap();
        visible = if info.reason.starts_with("APPEND") { visible + 1 } else { visible.min(3) };
        assert_eq!(entries.len(), visible, "version {number}: {}", info.reason);
        for entry in entries {
            assert_eq!(entry.message.text(), format!("message number {}", entry.index));
        }
    }
    assert!(again.verify().await.unwrap().is_sound());
}

async fn one_large_request_is_packed_at_once(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    conversation.append([say(0)]).await.unwrap();
    conversation.append((1..5_000).map(say)).await.unwrap();
    conversation.append([say(5_000)]).await.unwrap();
    let rows = place.store.commits(conversation.id(), None).await.unwrap();
    let bytes: usize = rows.iter().map(|row| row.body.len()).sum();
    assert!(bytes < 10_000, "{bytes} bytes are not packed into pages");
    let again = place.recto().conversation("a").await.unwrap();
    let middle = again.message(LogIndex(2_500)).await.unwrap().unwrap();
    assert_eq!(middle.text(), "message number 2500");
    assert_eq!(again.stats().await.unwrap().total_messages, 5_001);
    assert!(again.verify().await.unwrap().is_sound());
}

/// A conversation with 64 rows: the next request packs them.
async fn full(place: &Place) -> Conversation {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    for number in 0..63 {
        conversation.append([say(number)]).await.unwrap();
    }
    assert_eq!(place.store.commits(conversation.id(), None).await.unwrap().len(), 64);
    conversation
}

async fn the_request_that_finds_sixty_four_rows_packs_them(place: Place) {
    let conversation = full(&place).await;
    conversation.append([say(63)]).await.unwrap();
    let rows = place.store.commits(conversation.id(), None).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.head.version).collect::<Vec<_>>(), [64]);
    conversation.append([say(64)]).await.unwrap();
    assert_eq!(place.store.commits(conversation.id(), None).await.unwrap().len(), 2);
    let again = place.recto().conversation("a").await.unwrap();
    let expected: Vec<String> = (0..65).map(|n| format!("message number {n}")).collect();
    assert_eq!(texts(&again).await, expected);
    assert!(again.verify().await.unwrap().is_sound());
}

async fn a_large_request_packs_the_rows_before_it_and_its_own_entries(place: Place) {
    let conversation = full(&place).await;
    let first = conversation.stats().await.unwrap().total_messages;
    conversation.append((first..5_000).map(say)).await.unwrap();
    let rows = place.store.commits(conversation.id(), None).await.unwrap();
    let bytes: usize = rows.iter().map(|row| row.body.len()).sum();
    assert!(bytes < 10_000, "{bytes} bytes are not packed into pages");
    conversation.append([say(5_000)]).await.unwrap();
    let again = place.recto().conversation("a").await.unwrap();
    for number in [3, 63, 64, 4_999, 5_000] {
        let message = again.message(LogIndex(number)).await.unwrap().unwrap();
        assert_eq!(message.text(), format!("message number {number}"));
    }
    assert!(again.verify().await.unwrap().is_sound());
}

async fn a_message_that_another_process_erased_before_the_packing_stays_erased(place: Place) {
    let conversation = full(&place).await;
    let other = place.recto().conversation("a").await.unwrap();
    other.erase(LogIndex(7)).await.unwrap();
    conversation.append([say(63)]).await.unwrap();
    assert_eq!(
        place.store.commits(conversation.id(), None).await.unwrap().len(),
        1,
        "they are packed"
    );
    assert_eq!(copies(&place, &conversation, "message number 7\"").await, Vec::<String>::new());
    for conversation in [conversation, place.recto().conversation("a").await.unwrap()] {
        assert_eq!(texts(&conversation).await.len(), 64);
        assert_eq!(texts(&conversation).await[7], "[erased]");
        assert!(conversation.verify().await.unwrap().is_sound());
    }
}

/// Appends as another process would, which packs the rows if there are enough.
fn append(place: &Place, number: usize) -> Interruption {
    let recto = place.recto();
    Box::new(move || {
        Box::pin(async move {
            let conversation = recto.conversation("a").await.unwrap();
            conversation.append([say(number)]).await.unwrap();
            Ok(())
        })
    })
}

async fn rows_that_are_packed_during_an_erasure_or_a_prune_are_overwritten(place: Place) {
    let conversation = full(&place).await;
    let late = |interruption| {
        Recto::with_store(
            InterruptedStore::with(place.store.clone(), interruption),
            Default::default(),
        )
    };
    let late_talk = late(append(&place, 63)).conversation("a").await.unwrap();
    late_talk.erase(LogIndex(7)).await.unwrap();
    assert_eq!(
        place.store.commits(conversation.id(), None).await.unwrap().len(),
        1,
        "they were packed"
    );
    assert_eq!(copies(&place, &conversation, "message number 7\"").await, Vec::<String>::new());
    for number in 64..126 {
        late_talk.append([say(number)]).await.unwrap();
    }
    late_talk.apply(Truncate { keep_last: Some(1), ..Default::default() }).await.unwrap();
    assert_eq!(place.store.commits(conversation.id(), None).await.unwrap().len(), 64);
    let late_talk = late(append(&place, 126)).conversation("a").await.unwrap();
    let pruned = late_talk.prune(&Keep::newest()).await.unwrap();
    assert_eq!(
        place.store.commits(conversation.id(), None).await.unwrap().len(),
        1,
        "they were packed"
    );
    let expected: Vec<_> = (0..125).filter(|n| *n != 7).map(LogIndex).collect();
    assert_eq!(pruned.entries, expected);
    assert_eq!(copies(&place, &conversation, "message number 8\"").await, Vec::<String>::new());
    assert_eq!(copies(&place, &conversation, "message number 100\"").await, Vec::<String>::new());
    assert!(place.recto().conversation("a").await.unwrap().verify().await.unwrap().is_sound());
}

async fn a_conversation_that_is_removed_or_forked_before_the_packing_is_complete_or_removed(
    place: Place,
) {
    for is_forked in [true, false] {
        let conversation = full(&place).await;
        let other = place.recto().conversation("a").await.unwrap();
        if is_forked {
            other.fork("b", Version(60)).await.unwrap();
        }
        place.recto().remove("a").await.unwrap();
        for number in 0..70 {
            let late = conversation.append([say(number)]).await.unwrap_err();
            assert_eq!(late.code(), "conversation_not_found");
        }
        if is_forked {
            let fork = place.recto().conversation("b").await.unwrap();
            let appended: Vec<String> = (0..60).map(|n| format!("message number {n}")).collect();
            assert_eq!(texts(&fork).await, appended);
            assert!(fork.verify().await.unwrap().is_sound());
            place.recto().remove("b").await.unwrap();
        }
        assert!(place.store.rows(conversation.id()).await.is_err());
        assert_eq!(place.store.check().await.unwrap(), Vec::<String>::new());
    }
}

async fn runtimes_that_end_after_a_packing_lose_nothing(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    let mut appended = 0;
    for round in 0..5 {
        let (store, count) = (place.store.clone(), 66 + round);
        // A separate runtime, which ends directly after its last request.
        let ended = tokio::task::spawn_blocking(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async move {
                let conversation =
                    Recto::with_store(store, Default::default()).conversation("a").await.unwrap();
                for number in appended..appended + count {
                    conversation.append([say(number)]).await.unwrap();
                }
            });
        });
        let within = std::time::Duration::from_secs(60);
        tokio::time::timeout(within, ended).await.expect("it does not hang").unwrap();
        appended += count;
        let expected: Vec<String> = (0..appended).map(|n| format!("message number {n}")).collect();
        assert_eq!(texts(&conversation).await, expected);
    }
    for number in 0..appended {
        let copies = copies(&place, &conversation, &format!("message number {number}\"")).await;
        assert_eq!(copies.len(), 1, "message {number}: {copies:?}");
    }
    assert!(conversation.verify().await.unwrap().is_sound());
}

async fn programs_that_write_once_each_pack_too(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    for number in 0..140 {
        let once = place.recto().conversation("a").await.unwrap();
        once.append([say(number)]).await.unwrap();
    }
    let rows = place.store.commits(conversation.id(), None).await.unwrap().len();
    assert!(rows <= 64, "{rows} rows are not packed");
    let again = place.recto().conversation("a").await.unwrap();
    assert_eq!(texts(&again).await.len(), 140);
    assert!(again.verify().await.unwrap().is_sound());
}

async fn programs_that_write_in_turns_pack_every_row_once(place: Place) {
    let first = place.recto().create("a", settings()).await.unwrap();
    let second = place.recto().conversation("a").await.unwrap();
    for number in 0..150 {
        let conversation = [&first, &second][number / 3 % 2];
        conversation.append([Message::user(&format!("<{number}>"))]).await.unwrap();
    }
    for number in 0..150 {
        let copies = copies(&place, &first, &format!("<{number}>")).await;
        assert_eq!(copies.len(), 1, "message {number}: {copies:?}");
    }
    assert!(first.verify().await.unwrap().is_sound());
}

async fn batches_below_are_found_after_a_restart(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    conversation.append((0..50).map(say)).await.unwrap();
    for length in (1..40).rev() {
        conversation
            .apply(Truncate { keep_last: Some(length), ..Default::default() })
            .await
            .unwrap();
    }
    let again = place.recto().conversation("a").await.unwrap();
    let snapshot = again.snapshot(recto::BatchIndex(10)).await.unwrap();
    assert_eq!(snapshot.view.len(), 30);
    again.apply(Rollback::ToBatch(recto::BatchIndex(5))).await.unwrap();
    assert_eq!(texts(&again).await.len(), 35);
    let map = place
        .recto()
        .conversation("a")
        .await
        .unwrap()
        .mark_map(recto::Scope::Visible)
        .await
        .unwrap();
    assert_eq!(map.batch_boundaries.len(), 6);
    assert_eq!(again.blame(LogIndex(0)).await.unwrap().len(), 2);
}
