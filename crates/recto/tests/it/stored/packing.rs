//! How rows are packed while requests go on.

use recto::{Conversation, Keep, LogIndex, Message, Recto, Rollback, Truncate, Undo, Version};
use recto_store::{CommitBody, Seal, pack_entries, pack_records};

use super::{copies, say, settings, texts};
use crate::meddled::{Deed, Meddled};
use crate::places::{Place, on_every_store};

on_every_store! {
    what_was_accepted_is_there_when_the_program_starts_again
    a_long_conversation_is_packed_and_every_version_stays_readable
    one_large_request_is_packed_at_once
    rows_are_packed_while_requests_go_on
    a_large_request_is_packed_at_once_even_while_others_are_being_packed
    what_is_erased_while_it_is_being_packed_does_not_come_back
    what_is_packed_while_it_is_being_erased_or_pruned_goes_all_the_same
    a_conversation_that_is_removed_or_forked_while_it_is_packed_is_whole_or_gone
    a_program_that_ends_while_it_packs_loses_nothing
    programs_that_write_once_each_pack_too
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

/// A conversation whose first 64 rows are being packed, or have just been.
async fn packing(place: &Place) -> Conversation {
    let talk = place.recto().create("a", settings()).await.unwrap();
    for number in 0..64 + usize::from(place.store.packs_beside_requests()) {
        talk.append([say(number)]).await.unwrap();
    }
    let rows = place.store.commits(talk.id(), None).await.unwrap().len();
    assert!(rows == 65 || place.store.packs_beside_requests(), "none is waited for: {rows}");
    talk
}

/// Appends until the rows that were being packed are in pages.
async fn until_packed(place: &Place, talk: &Conversation) -> usize {
    let first = talk.stats().await.unwrap().total_messages;
    for number in first..130 {
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
    let first = talk.stats().await.unwrap().total_messages;
    talk.append((first..5_000).map(say)).await.unwrap();
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
    if !place.store.packs_beside_requests() {
        assert_eq!(texts(&talk).await[7], "[erased]");
    }
    // Where it may have been packed before, that program still has it open; nobody else sees it.
    let again = place.recto().conversation("a").await.unwrap();
    assert_eq!(texts(&again).await.len(), count);
    assert_eq!(texts(&again).await[7], "[erased]");
    assert!(again.verify().await.unwrap().is_sound());
}

/// Packs what is there but the newest row, as another program would.
fn pack(place: &Place, talk: &Conversation) -> Deed {
    let (store, id) = (place.store.clone(), talk.id());
    Box::new(move || {
        Box::pin(async move {
            let rows = store.commits(id, None).await?;
            let (newest, older) = rows.split_last().unwrap();
            let bodies: Vec<_> =
                older.iter().map(|row| CommitBody::unpack(&row.body).unwrap()).collect();
            let records =
                bodies.iter().zip(older).map(|(body, row)| (&*body.record, row.head.link));
            let entries: Vec<_> = bodies.iter().flat_map(|body| &body.entries).cloned().collect();
            let pages = vec![
                pack_records(older[0].head.version, records),
                pack_entries(older.last().unwrap().head.entries - entries.len() as u32, &entries),
            ];
            let rows = Some(older.iter().map(|row| row.body.clone()).collect());
            store.pack(id, Seal { below: newest.head.version, pages, rows }).await
        })
    })
}

async fn what_is_packed_while_it_is_being_erased_or_pruned_goes_all_the_same(place: Place) {
    let talk = place.recto().create("a", settings()).await.unwrap();
    for number in 0..20 {
        talk.append([say(number)]).await.unwrap();
    }
    let late =
        |deed| Recto::with_store(Meddled::with(place.store.clone(), deed), Default::default());
    let late_talk = late(pack(&place, &talk)).conversation("a").await.unwrap();
    late_talk.erase(LogIndex(7)).await.unwrap();
    assert_eq!(place.store.commits(talk.id(), None).await.unwrap().len(), 1, "they were packed");
    assert_eq!(copies(&place, &talk, "message number 7\"").await, Vec::<String>::new());
    for number in 20..40 {
        late_talk.append([say(number)]).await.unwrap();
    }
    late_talk.apply(Truncate { keep_last: Some(1), ..Default::default() }).await.unwrap();
    let late_talk = late(pack(&place, &talk)).conversation("a").await.unwrap();
    let pruned = late_talk.prune(&Keep::newest()).await.unwrap();
    let expected: Vec<_> = (0..39).filter(|n| *n != 7).map(LogIndex).collect();
    assert_eq!(pruned.entries, expected);
    assert_eq!(copies(&place, &talk, "message number 8\"").await, Vec::<String>::new());
    assert_eq!(copies(&place, &talk, "message number 30\"").await, Vec::<String>::new());
    assert!(place.recto().conversation("a").await.unwrap().verify().await.unwrap().is_sound());
}

async fn a_conversation_that_is_removed_or_forked_while_it_is_packed_is_whole_or_gone(
    place: Place,
) {
    for is_forked in [true, false] {
        let talk = packing(&place).await;
        let other = place.recto().conversation("a").await.unwrap();
        if is_forked {
            other.fork("b", Version(60)).await.unwrap();
        }
        place.recto().remove("a").await.unwrap();
        for number in 0..70 {
            let late = talk.append([say(number)]).await.unwrap_err();
            assert_eq!(late.code(), "conversation_not_found");
        }
        if is_forked {
            let fork = place.recto().conversation("b").await.unwrap();
            let said: Vec<String> = (0..60).map(|n| format!("message number {n}")).collect();
            assert_eq!(texts(&fork).await, said);
            assert!(fork.verify().await.unwrap().is_sound());
            place.recto().remove("b").await.unwrap();
        }
        // Nothing is left of it, whatever was still on its way.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        assert!(place.store.rows(talk.id()).await.is_err());
        assert_eq!(place.store.check().await.unwrap(), Vec::<String>::new());
    }
}

async fn a_program_that_ends_while_it_packs_loses_nothing(place: Place) {
    let talk = place.recto().create("a", settings()).await.unwrap();
    let mut said = 0;
    for round in 0..5 {
        let (store, count) = (place.store.clone(), 66 + round);
        // A runtime of its own, which ends in the middle, and the store with it where it has one.
        let ended = tokio::task::spawn_blocking(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async move {
                let talk =
                    Recto::with_store(store, Default::default()).conversation("a").await.unwrap();
                for number in said..said + count {
                    talk.append([say(number)]).await.unwrap();
                }
            });
        });
        let within = std::time::Duration::from_secs(60);
        tokio::time::timeout(within, ended).await.expect("it does not hang").unwrap();
        said += count;
        let expected: Vec<String> = (0..said).map(|n| format!("message number {n}")).collect();
        assert_eq!(texts(&talk).await, expected);
    }
    for number in 0..said {
        let copies = copies(&place, &talk, &format!("message number {number}\"")).await;
        assert_eq!(copies.len(), 1, "message {number}: {copies:?}");
    }
    assert!(talk.verify().await.unwrap().is_sound());
}

async fn programs_that_write_once_each_pack_too(place: Place) {
    let talk = place.recto().create("a", settings()).await.unwrap();
    for number in 0..140 {
        let once = place.recto().conversation("a").await.unwrap();
        once.append([say(number)]).await.unwrap();
    }
    let rows = place.store.commits(talk.id(), None).await.unwrap().len();
    assert!(rows <= 130, "{rows} rows are not packed");
    let again = place.recto().conversation("a").await.unwrap();
    assert_eq!(texts(&again).await.len(), 140);
    assert!(again.verify().await.unwrap().is_sound());
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
