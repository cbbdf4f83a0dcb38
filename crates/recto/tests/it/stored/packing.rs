//! How rows are packed while requests go on.

use recto::{LogIndex, Message, Rollback, StoredConversation, Truncate, Undo, Version};

use super::{copies, say, settings, texts};
use crate::places::{Place, on_every_store};

on_every_store! {
    what_was_accepted_is_there_when_the_program_starts_again
    a_long_conversation_is_packed_and_every_version_stays_readable
    one_large_request_is_packed_at_once
    rows_are_packed_while_requests_go_on
    a_large_request_is_packed_at_once_even_while_others_are_being_packed
    what_is_erased_while_it_is_being_packed_does_not_come_back
    programs_that_take_turns_pack_every_row_once
    batches_below_are_found_after_a_restart
}

async fn what_was_accepted_is_there_when_the_program_starts_again(place: Place) {
    let talk = place.recto().create("a", settings()).await.unwrap();
    talk.append((0..5).map(say)).await.unwrap();
    talk.apply(Truncate { keep_last: Some(2), ..Default::default() }).await.unwrap();
    let again = place.recto().conversation("a").await.unwrap();
    assert_eq!(texts(&again).await, ["message number 3", "message number 4"]);
    assert_eq!(again.version().await.unwrap(), Version(2));
    again.apply(Undo).await.unwrap();
    assert_eq!(texts(&talk).await.len(), 5, "the first program notices");
    assert!(talk.verify().await.unwrap().is_sound());
}

async fn a_long_conversation_is_packed_and_every_version_stays_readable(place: Place) {
    let talk = place.recto().create("a", settings()).await.unwrap();
    for number in 0..300 {
        talk.append([say(number)]).await.unwrap();
        if number % 40 == 39 {
            talk.apply(Truncate { keep_last: Some(3), ..Default::default() }).await.unwrap();
        }
    }
    let rows = place.store.commits(talk.id(), None).await.unwrap().len();
    assert!(rows <= 129, "{rows} rows are not packed");
    let again = place.recto().conversation("a").await.unwrap();
    let newest = again.version().await.unwrap();
    assert_eq!(newest, Version(307));
    let mut visible = 0;
    for (number, info) in again.versions(0..308).await.unwrap().iter().enumerate() {
        let entries = again.messages_at(Version(number as u32)).await.unwrap();
        visible = if info.description.starts_with("APPEND") { visible + 1 } else { visible.min(3) };
        assert_eq!(entries.len(), visible, "version {number}: {}", info.description);
        for entry in entries {
            assert_eq!(entry.message.text(), format!("message number {}", entry.index));
        }
    }
    assert!(again.verify().await.unwrap().is_sound());
}

async fn one_large_request_is_packed_at_once(place: Place) {
    let talk = place.recto().create("a", settings()).await.unwrap();
    talk.append([say(0)]).await.unwrap();
    talk.append((1..5_000).map(say)).await.unwrap();
    talk.append([say(5_000)]).await.unwrap();
    let rows = place.store.commits(talk.id(), None).await.unwrap();
    let bytes: usize = rows.iter().map(|row| row.body.len()).sum();
    assert!(bytes < 10_000, "{bytes} bytes are not packed into pages");
    let again = place.recto().conversation("a").await.unwrap();
    let middle = again.message(LogIndex(2_500)).await.unwrap().unwrap();
    assert_eq!(middle.text(), "message number 2500");
    assert_eq!(again.stats().await.unwrap().total_messages, 5_001);
    assert!(again.verify().await.unwrap().is_sound());
}

/// A conversation whose first 64 rows are being packed.
async fn packing(place: &Place) -> StoredConversation {
    let talk = place.recto().create("a", settings()).await.unwrap();
    for number in 0..64 {
        talk.append([say(number)]).await.unwrap();
    }
    assert_eq!(place.store.commits(talk.id(), None).await.unwrap().len(), 65, "none is waited for");
    talk
}

/// Appends until the rows that were being packed are in pages.
async fn until_packed(place: &Place, talk: &StoredConversation) -> usize {
    for number in 64..129 {
        talk.append([say(number)]).await.unwrap();
        let rows = place.store.commits(talk.id(), None).await.unwrap();
        if rows[0].head.version > 0 {
            return number + 1;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    panic!("requests wait for the packing once there are twice as many rows");
}

async fn rows_are_packed_while_requests_go_on(place: Place) {
    let talk = packing(&place).await;
    let count = until_packed(&place, &talk).await;
    let again = place.recto().conversation("a").await.unwrap();
    let expected: Vec<String> = (0..count).map(|n| format!("message number {n}")).collect();
    assert_eq!(texts(&again).await, expected);
    assert!(again.verify().await.unwrap().is_sound());
}

async fn a_large_request_is_packed_at_once_even_while_others_are_being_packed(place: Place) {
    let talk = packing(&place).await;
    talk.append((64..5_000).map(say)).await.unwrap();
    let rows = place.store.commits(talk.id(), None).await.unwrap();
    let bytes: usize = rows.iter().map(|row| row.body.len()).sum();
    assert!(bytes < 10_000, "{bytes} bytes are not packed into pages");
    talk.append([say(5_000)]).await.unwrap();
    let again = place.recto().conversation("a").await.unwrap();
    for number in [3, 63, 64, 4_999, 5_000] {
        let message = again.message(LogIndex(number)).await.unwrap().unwrap();
        assert_eq!(message.text(), format!("message number {number}"));
    }
    assert!(again.verify().await.unwrap().is_sound());
}

async fn what_is_erased_while_it_is_being_packed_does_not_come_back(place: Place) {
    let talk = packing(&place).await;
    let other = place.recto().conversation("a").await.unwrap();
    other.erase(LogIndex(7)).await.unwrap();
    let count = until_packed(&place, &talk).await;
    assert_eq!(copies(&place, &talk, "message number 7\"").await, Vec::<String>::new());
    assert_eq!(texts(&talk).await.len(), count);
    assert_eq!(texts(&talk).await[7], "[erased]");
    assert!(talk.verify().await.unwrap().is_sound());
}

async fn programs_that_take_turns_pack_every_row_once(place: Place) {
    let first = place.recto().create("a", settings()).await.unwrap();
    let second = place.recto().conversation("a").await.unwrap();
    for number in 0..150 {
        let talk = [&first, &second][number / 3 % 2];
        talk.append([Message::user(&format!("<{number}>"))]).await.unwrap();
    }
    for number in 0..150 {
        let copies = copies(&place, &first, &format!("<{number}>")).await;
        assert_eq!(copies.len(), 1, "message {number}: {copies:?}");
    }
    assert!(first.verify().await.unwrap().is_sound());
}

async fn batches_below_are_found_after_a_restart(place: Place) {
    let talk = place.recto().create("a", settings()).await.unwrap();
    talk.append((0..50).map(say)).await.unwrap();
    for length in (1..40).rev() {
        talk.apply(Truncate { keep_last: Some(length), ..Default::default() }).await.unwrap();
    }
    let again = place.recto().conversation("a").await.unwrap();
    let snapshot = again.snapshot(recto::BatchIndex(10)).await.unwrap();
    assert_eq!(snapshot.view.len(), 30);
    again.apply(Rollback::ToBatch(recto::BatchIndex(5))).await.unwrap();
    assert_eq!(texts(&again).await.len(), 35);
    let map = place.recto().conversation("a").await.unwrap().mark_map().await.unwrap();
    assert_eq!(map.batch_boundaries.len(), 6);
    assert_eq!(again.blame(LogIndex(0)).await.unwrap().len(), 2);
}
