//! What a stored conversation promises beside the contract: forks, keys, conflicts, search, erasing,
//! pruning, verifying. Every test runs on every store.

use std::sync::Arc;

use recto::{
    Approx, Delete, Error, Keep, LogIndex, Message, Role, Rollback, Settings, StoredConversation,
    Tenant, Truncate, Undo, Version, Write,
};
use recto_store::{CommitBody, PageKind};

use crate::meddled::{Deed, Meddled};
use crate::places::{Place, memory, on_every_store, sqlite};

fn settings() -> Settings {
    Settings::counting_with(Approx)
}

fn say(number: usize) -> Message {
    Message::user(&format!("message number {number}"))
}

async fn texts(talk: &StoredConversation) -> Vec<String> {
    let entries = talk.messages().await.expect("they can be read");
    entries.iter().map(|entry| entry.message.text().into_owned()).collect()
}

on_every_store! {
    what_was_accepted_is_there_when_the_program_starts_again
    a_long_conversation_is_packed_and_every_version_stays_readable
    one_large_request_is_packed_at_once
    rows_are_packed_while_requests_go_on
    a_large_request_is_packed_at_once_even_while_others_are_being_packed
    what_is_erased_while_it_is_being_packed_does_not_come_back
    a_writer_who_has_seen_an_old_version_is_refused
    many_writers_on_one_conversation_make_dense_versions
    a_repeated_request_answers_what_the_first_one_answered
    a_key_cannot_stand_for_two_requests
    a_fork_shares_the_past_and_goes_its_own_way
    a_fork_of_a_fork_reads_through_both
    a_fork_outlives_what_it_was_forked_from
    an_erased_message_is_gone_everywhere_and_the_chain_holds
    erasing_in_a_fork_erases_in_the_original
    a_preview_says_what_a_request_would_do_and_keeps_nothing
    an_entry_comes_with_its_tokens_and_its_time
    labels_times_and_the_mark_map_are_those_of_a_version
    a_conversation_is_removed_only_at_the_version_that_is_expected
    versions_say_which_of_them_opened_their_batch
    long_work_tells_how_far_it_has_come
    half_a_backup_is_not_left_behind
    what_is_wanted_of_a_conversation_can_change
    a_prune_drops_what_no_kept_version_shows
    a_prune_leaves_what_forks_can_show
    a_fork_that_is_made_during_a_prune_loses_nothing
    search_finds_words_in_hidden_messages_too
    tenants_do_not_see_each_other
    refused_requests_leave_no_trace
    names_are_unique_and_can_change
    batches_below_are_found_after_a_restart
    a_backup_can_be_opened_and_restored
    a_damaged_backup_is_not_restored
    the_example_of_the_readme_prints_what_it_says
    a_counter_of_your_own_is_brought_along
    nothing_of_what_is_open_is_printed
    a_key_cannot_be_empty
    what_was_erased_does_not_come_back_with_a_program_that_had_it_open
    programs_that_take_turns_pack_every_row_once
    a_repeated_request_is_known_to_a_program_that_is_behind
    a_fork_never_shows_what_was_said_elsewhere_after_it
    search_finds_what_forks_share_with_a_removed_conversation
    a_backup_of_what_is_here_under_another_name_is_not_restored
}

async fn a_backup_of_what_is_here_under_another_name_is_not_restored(place: Place) {
    let recto = place.recto();
    for name in ["a", "b", "c"] {
        recto.create(name, settings()).await.unwrap().append([say(1)]).await.unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup.db");
    recto.backup(&path).await.unwrap();
    recto.remove("a").await.unwrap();
    recto.rename("b", "other").await.unwrap();
    recto.remove("c").await.unwrap();
    assert_eq!(recto.restore(&path).await.unwrap_err().code(), "conversation_exists");
    let names: Vec<String> =
        recto.list(None, 10).await.unwrap().into_iter().map(|info| info.name).collect();
    assert_eq!(names, ["other"], "nothing is copied");
}

#[tokio::test]
async fn copies_that_a_reader_held_up_are_gone_when_it_is_erased_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let recto = recto::Recto::open(&format!("sqlite:{}", path.display())).await.unwrap();
    let talk = recto.create("a", settings()).await.unwrap();
    talk.append([Message::user("hunter2")]).await.unwrap();
    let has_copies = || {
        let files = std::fs::read_dir(folder.path()).unwrap();
        files.into_iter().any(|file| {
            let content = std::fs::read(file.unwrap().path()).unwrap_or_default();
            content.windows(7).any(|bytes| bytes == b"hunter2")
        })
    };
    let reader = rusqlite::Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM commits").unwrap();
    let left = talk.erase(LogIndex(0)).await.unwrap_err();
    assert!(matches!(left, Error::Store(recto_store::Error::CopiesLeft { .. })), "{left}");
    assert!(has_copies());
    assert_eq!(texts(&talk).await, ["[erased]"]);
    drop(reader);
    assert!(talk.erase(LogIndex(0)).await.unwrap().was_gone);
    assert!(!has_copies());
}

/// Where a text stands among the stored messages of a conversation.
async fn copies(place: &Place, talk: &StoredConversation, text: &str) -> Vec<String> {
    let rows = place.store.rows(talk.id()).await.unwrap();
    let mut found = Vec::new();
    for row in &rows.commits {
        let body = CommitBody::unpack(&row.body).unwrap();
        if body.entries.iter().any(|entry| entry.body.contains(text)) {
            found.push(format!("version {}", row.head.version));
        }
    }
    for page in rows.pages.iter().filter(|page| page.kind == PageKind::Entries) {
        if page.entries().unwrap().iter().any(|entry| entry.body.contains(text)) {
            found.push(format!("page {}", page.first));
        }
    }
    found
}

async fn what_was_erased_does_not_come_back_with_a_program_that_had_it_open(place: Place) {
    let talk = place.recto().create("a", settings()).await.unwrap();
    talk.append([Message::user("secret"), say(1)]).await.unwrap();
    let elsewhere = place.recto().conversation("a").await.unwrap();
    elsewhere.erase(LogIndex(0)).await.unwrap();
    for number in 2..200 {
        talk.append([say(number)]).await.unwrap();
    }
    assert_eq!(copies(&place, &talk, "secret").await, Vec::<String>::new());
    assert_eq!(texts(&talk).await[0], "[erased]");
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

async fn a_repeated_request_is_known_to_a_program_that_is_behind(place: Place) {
    let first = place.recto().create("a", settings()).await.unwrap();
    let second = place.recto().conversation("a").await.unwrap();
    assert_eq!(texts(&second).await, Vec::<String>::new());
    let write = Write { key: Some("k".into()), ..Write::default() };
    let request = recto::Append { messages: vec![say(0)] };
    let done = first.apply_with(request.clone(), write.clone()).await.unwrap();
    let again = second.apply_with(request, write).await.unwrap();
    assert_eq!(again.to_json(), done.to_json());
    assert_eq!(texts(&second).await.len(), 1);
}

async fn a_fork_never_shows_what_was_said_elsewhere_after_it(place: Place) {
    let talk = place.recto().create("a", settings()).await.unwrap();
    for number in 0..200 {
        talk.append([say(number)]).await.unwrap();
    }
    let fork = talk.fork("b", Version(90)).await.unwrap();
    fork.append((0..5).map(|_| Message::user("of the fork"))).await.unwrap();
    // Enough requests to have its few messages packed.
    for number in 0..70 {
        let mark = recto::Mark { indices: vec![LogIndex(number)], mark: "m".into() };
        fork.apply(mark).await.unwrap();
    }
    let again = place.recto().conversation("b").await.unwrap();
    assert_eq!(texts(&again).await[90..], ["of the fork"; 5]);
    assert_eq!(texts(&again).await[89], "message number 89");
}

async fn search_finds_what_forks_share_with_a_removed_conversation(place: Place) {
    let recto = place.recto();
    let other = recto.create("other", settings()).await.unwrap();
    other.append([Message::user("needle")]).await.unwrap();
    let talk = recto.create("a", settings()).await.unwrap();
    talk.append([Message::user("needle one")]).await.unwrap();
    let fork = talk.fork("b", Version(1)).await.unwrap();
    talk.append((0..5).map(|_| Message::user("needle not shared"))).await.unwrap();
    fork.fork("c", Version(1)).await.unwrap();
    recto.remove("a").await.unwrap();
    let found = |limit| {
        let recto = recto.clone();
        async move {
            let found = recto.search("needle", limit).await.unwrap().into_iter();
            let mut found: Vec<String> = found.map(|found| found.conversation).collect();
            found.sort();
            found
        }
    };
    let store = Meddled::with(place.store.clone(), Box::new(|| Box::pin(async { Ok(()) })));
    let watched = recto::Recto::over(store.clone(), recto::Options::default());
    assert_eq!(watched.search("needle", 10).await.unwrap().len(), 2);
    assert_eq!(store.lists(), 0, "a search does not read the names of all conversations");
    assert_eq!(found(10).await, ["b", "other"]);
    assert_eq!(found(2).await, ["b", "other"]);
    assert_eq!(found(1).await.len(), 1);
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

async fn a_writer_who_has_seen_an_old_version_is_refused(place: Place) {
    let talk = place.recto().create("a", settings()).await.unwrap();
    talk.append([say(0)]).await.unwrap();
    let other = place.recto().conversation("a").await.unwrap();
    other.append([say(1)]).await.unwrap();
    let seen = |version| Write { expected_version: Some(Version(version)), key: None };
    let append = recto::Append { messages: vec![say(2)] };
    let refused = talk.apply_with(append.clone(), seen(1)).await.unwrap_err();
    assert_eq!(refused.code(), "version_conflict");
    assert!(refused.to_string().contains("at version 2, not at 1"), "{refused}");
    talk.apply_with(append, seen(2)).await.unwrap();
    assert_eq!(other.version().await.unwrap(), Version(3));
}

async fn many_writers_on_one_conversation_make_dense_versions(place: Place) {
    place.recto().create("a", settings()).await.unwrap();
    let mut writers = Vec::new();
    for writer in 0..8 {
        let recto = place.recto();
        writers.push(tokio::spawn(async move {
            let talk = recto.conversation("a").await.unwrap();
            let mut versions = Vec::new();
            for number in 0..10 {
                let outcome = talk.append([say(writer * 100 + number)]).await.unwrap();
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
    let talk = place.recto().conversation("a").await.unwrap();
    let mut said = texts(&talk).await;
    said.sort();
    said.dedup();
    assert_eq!(said.len(), 80);
    assert!(talk.verify().await.unwrap().is_sound());
}

async fn a_repeated_request_answers_what_the_first_one_answered(place: Place) {
    let talk = place.recto().create("a", settings()).await.unwrap();
    talk.append((0..4).map(say)).await.unwrap();
    let write = || Write { key: Some("k1".into()), ..Write::default() };
    let cut = || Truncate { keep_last: Some(1), ..Default::default() };
    let first = talk.apply_with(cut(), write()).await.unwrap();
    talk.append([say(9)]).await.unwrap();
    let again = place.recto().conversation("a").await.unwrap();
    let second = again.apply_with(cut(), write()).await.unwrap();
    assert_eq!(second.to_json(), first.to_json());
    assert_eq!(again.version().await.unwrap(), Version(3), "nothing was done twice");
    // A request that finds nothing to do is remembered too.
    let idle = || recto::Fit::into_tokens(1_000_000);
    let write = || Write { key: Some("k2".into()), ..Write::default() };
    let first = talk.apply_with(idle(), write()).await.unwrap();
    assert!(!first.changed);
    talk.append([say(10)]).await.unwrap();
    let second = talk.apply_with(idle(), write()).await.unwrap();
    assert_eq!(second.to_json(), first.to_json());
}

async fn a_key_cannot_stand_for_two_requests(place: Place) {
    let talk = place.recto().create("a", settings()).await.unwrap();
    let write = || Write { key: Some("k".into()), ..Write::default() };
    let append = |number| recto::Append { messages: vec![say(number)] };
    talk.apply_with(append(1), write()).await.unwrap();
    let refused = talk.apply_with(append(2), write()).await.unwrap_err();
    assert!(matches!(refused, Error::Store(recto_store::Error::KeyReused { .. })), "{refused}");
    assert_eq!(talk.version().await.unwrap(), Version(1));
}

async fn a_fork_shares_the_past_and_goes_its_own_way(place: Place) {
    let talk = place.recto().create("a", settings()).await.unwrap();
    for number in 0..100 {
        talk.append([say(number)]).await.unwrap();
    }
    let fork = talk.fork("b", Version(40)).await.unwrap();
    assert_eq!(texts(&fork).await.len(), 40);
    fork.append([Message::assistant("on its own")]).await.unwrap();
    talk.append([say(100)]).await.unwrap();
    assert_eq!(fork.version().await.unwrap(), Version(41));
    assert_eq!(texts(&fork).await.last().unwrap(), "on its own");
    assert_eq!(texts(&talk).await.len(), 101);
    let again = place.recto().conversation("b").await.unwrap();
    assert_eq!(again.messages_at(Version(7)).await.unwrap().len(), 7);
    assert_eq!(again.message(LogIndex(40)).await.unwrap().unwrap().text(), "on its own");
    assert!(again.message(LogIndex(41)).await.unwrap().is_none());
    assert!(again.verify().await.unwrap().is_sound());
    let info = place.recto().info("b").await.unwrap();
    assert_eq!(info.forked_from, Some((talk.id(), Version(40))));
    let refused = talk.fork("c", Version(500)).await.unwrap_err();
    assert_eq!(refused.code(), "version_not_found");
    assert_eq!(talk.fork("b", Version(0)).await.unwrap_err().code(), "conversation_exists");
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
        let talk = place.recto().conversation(name).await.unwrap();
        let expected: Vec<String> = (0..length).map(|n| format!("message number {n}")).collect();
        assert_eq!(texts(&talk).await, expected);
        assert!(talk.verify().await.unwrap().is_sound(), "{name}");
    }
}

async fn a_fork_outlives_what_it_was_forked_from(place: Place) {
    let recto = place.recto();
    let talk = recto.create("a", settings()).await.unwrap();
    talk.append((0..10).map(say)).await.unwrap();
    let fork = talk.fork("b", Version(1)).await.unwrap();
    recto.remove("a").await.unwrap();
    assert_eq!(recto.conversation("a").await.unwrap_err().code(), "conversation_not_found");
    let again = place.recto().conversation("b").await.unwrap();
    assert_eq!(texts(&again).await.len(), 10);
    // What was removed takes no more requests, also from those who have it open.
    for key in [None, Some("k".to_owned())] {
        let write = Write { key, ..Write::default() };
        let late = talk.apply_with(recto::Append { messages: vec![say(11)] }, write).await;
        assert_eq!(late.unwrap_err().code(), "conversation_not_found");
    }
    fork.append([say(10)]).await.unwrap();
    assert_eq!(texts(&again).await.len(), 11);
    recto.create("a", settings()).await.unwrap();
    recto.remove("b").await.unwrap();
    assert_eq!(recto.list(None, 10).await.unwrap().len(), 1);
}

async fn labels_times_and_the_mark_map_are_those_of_a_version(place: Place) {
    let talk = place.recto().create("a", settings()).await.unwrap();
    let mut maps = Vec::new();
    for number in 0..100 {
        let at = 1_000 + number as i64;
        let message = format!(r#"{{"role":"user","content":"{number}","timestamp":{at}}}"#);
        talk.append([Message::from_json(&message).unwrap()]).await.unwrap();
        maps.push(talk.mark_map().await.unwrap());
    }
    let mark = "pinned".to_owned();
    talk.apply(recto::Mark { indices: vec![LogIndex(7)], mark }).await.unwrap();
    talk.apply(Truncate { keep_last: Some(3), ..Truncate::default() }).await.unwrap();
    // Opened anew, nothing of the past is at hand.
    let again = place.recto().conversation("a").await.unwrap();
    for (version, map) in (1..).zip(&maps).step_by(9) {
        assert_eq!(&again.mark_map_at(Version(version)).await.unwrap(), map, "{version}");
    }
    let newest = again.mark_map().await.unwrap();
    assert_eq!(again.mark_map_at(Version(102)).await.unwrap(), newest);
    assert!(again.marks_at(Version(100)).await.unwrap().is_empty());
    let pinned = vec![("pinned".to_owned(), vec![LogIndex(7)])];
    assert_eq!(again.marks_at(Version(101)).await.unwrap(), pinned);
    assert!(again.marks_at(Version(103)).await.is_err());
    let asked = [LogIndex(99), LogIndex(0), LogIndex(50)];
    assert_eq!(again.times(&asked).await.unwrap(), [1_099, 1_000, 1_050]);
    assert!(again.times(&[]).await.unwrap().is_empty());
    assert_eq!(again.times(&[LogIndex(100)]).await.unwrap_err().code(), "index_out_of_range");
}

async fn a_conversation_is_removed_only_at_the_version_that_is_expected(place: Place) {
    let recto = place.recto();
    let talk = recto.create("a", settings()).await.unwrap();
    talk.append([say(0)]).await.unwrap();
    let refused = recto.remove_at("a", Some(Version(0))).await.unwrap_err();
    assert_eq!(refused.code(), "version_conflict");
    talk.append([say(1)]).await.unwrap();
    recto.remove_at("a", Some(Version(2))).await.unwrap();
    assert_eq!(recto.conversation("a").await.unwrap_err().code(), "conversation_not_found");
}

async fn an_erased_message_is_gone_everywhere_and_the_chain_holds(place: Place) {
    let recto = place.recto();
    let talk = recto.create("a", settings()).await.unwrap();
    // Long and random, so that it cannot be packed, and stands in the file as it is.
    let secret: String = (0..400_u64)
        .map(|n| char::from(b'a' + (n.wrapping_mul(6_364_136_223_846_793_005) >> 59) as u8 % 26))
        .collect();
    for number in 0..100 {
        let message = if number % 50 == 20 { Message::user(&secret) } else { say(number) };
        talk.append([message]).await.unwrap();
    }
    let before = talk.verify().await.unwrap();
    assert_eq!(recto.search(&secret, 10).await.unwrap().len(), 2);
    let word = &secret.as_bytes()[..recto_store::MAX_WORD];
    assert!(!place.is_file() || place.has(word), "the index has it");
    for index in [20, 70] {
        let receipt = talk.erase(LogIndex(index)).await.unwrap();
        assert!(!receipt.was_gone && receipt.bytes > secret.len());
        assert!(talk.erase(LogIndex(index)).await.unwrap().was_gone);
        let message = talk.message(LogIndex(index)).await.unwrap().unwrap();
        assert_eq!(message.text(), "[erased]");
    }
    let after = place.recto().conversation("a").await.unwrap().verify().await.unwrap();
    assert_eq!(after.faults, Vec::<String>::new());
    assert_eq!((after.erased, after.link), (2, before.link), "the chain is what it was");
    assert!(recto.search(&secret, 10).await.unwrap().is_empty());
    assert!(!place.has(word), "nothing is left in any file");
    assert_eq!(talk.erase(LogIndex(100)).await.unwrap_err().code(), "index_out_of_range");
}

async fn erasing_in_a_fork_erases_in_the_original(place: Place) {
    let talk = place.recto().create("a", settings()).await.unwrap();
    talk.append((0..10).map(say)).await.unwrap();
    let fork = talk.fork("b", Version(1)).await.unwrap();
    fork.append([say(10)]).await.unwrap();
    fork.erase(LogIndex(3)).await.unwrap();
    assert_eq!(talk.message(LogIndex(3)).await.unwrap().unwrap().text(), "[erased]");
    assert!(talk.verify().await.unwrap().is_sound());
    assert!(fork.verify().await.unwrap().is_sound());
}

async fn a_prune_drops_what_no_kept_version_shows(place: Place) {
    let talk = place.recto().create("a", settings()).await.unwrap();
    for number in 0..90 {
        talk.append([say(number)]).await.unwrap();
    }
    talk.apply(Delete { indices: vec![LogIndex(4), LogIndex(80)] }).await.unwrap();
    talk.apply(Truncate { keep_last: Some(5), ..Default::default() }).await.unwrap();
    let keep = Keep { versions: vec![Version(3)], ..Keep::default() };
    let pruned = talk.prune(&keep).await.unwrap();
    assert_eq!(pruned.entries, LogIndex::range(3..85));
    assert_eq!(texts(&talk).await.len(), 5);
    let kept = talk.messages_at(Version(3)).await.unwrap();
    assert!(kept.iter().all(|entry| entry.message.text().starts_with("message number")));
    let lost = talk.message(LogIndex(50)).await.unwrap().unwrap();
    assert_eq!((lost.role(), &*lost.text()), (Role::User, "[pruned]"));
    assert!(place.recto().conversation("a").await.unwrap().verify().await.unwrap().is_sound());
    let again = talk.prune(&keep).await.unwrap();
    assert!(again.entries.is_empty());
    assert_eq!(talk.prune(&Keep::default()).await.unwrap_err().code(), "invalid_operation");
    let batches = Keep { last_batches: Some(1), ..Keep::default() };
    assert_eq!(talk.prune(&batches).await.unwrap().entries, LogIndex::range(0..3));
}

async fn a_prune_leaves_what_forks_can_show(place: Place) {
    let talk = place.recto().create("a", settings()).await.unwrap();
    talk.append((0..20).map(say)).await.unwrap();
    let fork = talk.fork("b", Version(1)).await.unwrap();
    talk.append((20..30).map(say)).await.unwrap();
    talk.apply(Truncate { keep_last: Some(1), ..Default::default() }).await.unwrap();
    let keep = Keep { versions: vec![Version(3)], ..Keep::default() };
    let pruned = talk.prune(&keep).await.unwrap();
    assert_eq!(pruned.entries, LogIndex::range(20..29));
    assert_eq!(texts(&fork).await.len(), 20);
    assert!(texts(&fork).await.iter().all(|text| text != "[pruned]"));
}

async fn a_fork_that_is_made_during_a_prune_loses_nothing(place: Place) {
    let talk = place.recto().create("a", settings()).await.unwrap();
    for number in 0..80 {
        talk.append([say(number)]).await.unwrap();
    }
    talk.apply(Truncate { keep_last: Some(1), ..Default::default() }).await.unwrap();
    let elsewhere = talk.clone();
    let fork: Deed = Box::new(move || {
        Box::pin(async move {
            elsewhere.fork("b", Version(30)).await.unwrap();
            Ok(())
        })
    });
    let store = Meddled::with(place.store.clone(), fork);
    let late = recto::Recto::over(store, recto::Options::default());
    let pruned = late.conversation("a").await.unwrap().prune(&Keep::newest()).await.unwrap();
    assert_eq!(pruned.entries, LogIndex::range(30..79));
    let fork = place.recto().conversation("b").await.unwrap();
    let said: Vec<String> = (0..30).map(|number| format!("message number {number}")).collect();
    assert_eq!(texts(&fork).await, said);
}

async fn search_finds_words_in_hidden_messages_too(place: Place) {
    let recto = place.recto();
    let talk = recto.create("a", settings()).await.unwrap();
    talk.append([
        Message::user("The GATEWAY times out"),
        Message::tool_call("c1", "read_logs", &serde_json::json!({"service": "gateway"})),
        Message::tool_result("c1", "没有 错误"),
    ])
    .await
    .unwrap();
    talk.apply(recto::Clear::default()).await.unwrap();
    let found = |text: &'static str| {
        let recto = recto.clone();
        async move {
            let found = recto.search(text, 10).await.unwrap();
            found.into_iter().map(|found| found.index.0).collect::<Vec<u32>>()
        }
    };
    assert_eq!(found("gateway").await, [1, 0]);
    assert_eq!(found("times gateway").await, [0]);
    assert_eq!(found("错").await, [2]);
    assert_eq!(found("time").await, Vec::<u32>::new());
    assert_eq!(found(" ").await, Vec::<u32>::new());
}

async fn tenants_do_not_see_each_other(place: Place) {
    let ours = place.recto().for_tenant(Tenant("ours".into()));
    let theirs = place.recto().for_tenant(Tenant("theirs".into()));
    let talk = ours.create("a", settings()).await.unwrap();
    talk.append([Message::user("our secret")]).await.unwrap();
    assert_eq!(theirs.conversation("a").await.unwrap_err().code(), "conversation_not_found");
    assert!(theirs.list(None, 10).await.unwrap().is_empty());
    assert!(theirs.search("secret", 10).await.unwrap().is_empty());
    theirs.create("a", settings()).await.unwrap();
    assert_eq!(ours.search("secret", 10).await.unwrap().len(), 1);
}

async fn refused_requests_leave_no_trace(place: Place) {
    let talk = place.recto().create("a", settings()).await.unwrap();
    talk.append([say(0)]).await.unwrap();
    let before = place.store.commits(talk.id(), None).await.unwrap();
    let refused = [
        talk.apply(Rollback::ToVersion(Version(9))).await.unwrap_err().code(),
        talk.apply(Delete { indices: vec![LogIndex(7)] }).await.unwrap_err().code(),
        talk.append([]).await.unwrap_err().code(),
    ];
    assert_eq!(refused, ["version_not_found", "index_out_of_range", "invalid_operation"]);
    assert_eq!(place.store.commits(talk.id(), None).await.unwrap(), before);
}

async fn names_are_unique_and_can_change(place: Place) {
    let recto = place.recto();
    recto.create("b", settings()).await.unwrap();
    recto.create("a", settings()).await.unwrap();
    assert_eq!(recto.create("a", settings()).await.unwrap_err().code(), "conversation_exists");
    assert_eq!(recto.rename("a", "b").await.unwrap_err().code(), "conversation_exists");
    recto.rename("a", "c").await.unwrap();
    let names: Vec<String> =
        recto.list(None, 10).await.unwrap().into_iter().map(|info| info.name).collect();
    assert_eq!(names, ["b", "c"]);
    assert_eq!(recto.rename("a", "d").await.unwrap_err().code(), "conversation_not_found");
    assert_eq!(recto.remove("a").await.unwrap_err().code(), "conversation_not_found");
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

async fn a_backup_can_be_opened_and_restored(place: Place) {
    let recto = place.recto();
    let talk = recto.create("a", settings()).await.unwrap();
    for number in 0..150 {
        talk.append([say(number)]).await.unwrap();
    }
    let write = Write { key: Some("k".into()), ..Write::default() };
    let cut = Truncate { keep_last: Some(4), ..Default::default() };
    let first = talk.apply_with(cut.clone(), write.clone()).await.unwrap();
    talk.fork("b", Version(70)).await.unwrap().append([Message::user("only here")]).await.unwrap();
    let shared = recto.create("c", settings()).await.unwrap();
    shared.append([say(1)]).await.unwrap();
    shared.fork("d", Version(1)).await.unwrap();
    recto.remove("c").await.unwrap();
    let other = recto.for_tenant(Tenant("other".into()));
    other.create("a", settings()).await.unwrap().append([say(7)]).await.unwrap();

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup.db");
    recto.backup(&path).await.unwrap();
    assert_eq!(recto.backup(&path).await.unwrap_err().code(), "storage", "it is not overwritten");
    talk.append([say(999)]).await.unwrap();

    let fresh = sqlite().await;
    let restored = fresh.recto().restore(&path).await.unwrap();
    assert_eq!(restored.conversations, 4);
    let names: Vec<String> =
        fresh.recto().list(None, 10).await.unwrap().into_iter().map(|info| info.name).collect();
    assert_eq!(names, ["a", "b", "d"]);
    let again = fresh.recto().conversation("a").await.unwrap();
    assert_eq!(texts(&again).await.len(), 4);
    assert_eq!(again.apply_with(cut, write).await.unwrap().to_json(), first.to_json());
    for name in ["a", "b", "d"] {
        let talk = fresh.recto().conversation(name).await.unwrap();
        assert!(talk.verify().await.unwrap().is_sound(), "{name}");
    }
    let found = fresh.recto().search("only here", 10).await.unwrap();
    assert_eq!(found.len(), 1);
    let refused = fresh.recto().restore(&path).await.unwrap_err();
    assert_eq!(refused.code(), "conversation_exists");
    let missing = fresh.recto().restore(folder.path().join("nothing.db")).await.unwrap_err();
    assert_eq!(missing.code(), "storage");
}

async fn a_damaged_backup_is_not_restored(place: Place) {
    let recto = place.recto();
    let talk = recto.create("a", settings()).await.unwrap();
    talk.append((0..200).map(say)).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup.db");
    recto.backup(&path).await.unwrap();
    // One bit in every page of the file but the first, where SQLite puts what is written first.
    let mut bytes = std::fs::read(&path).unwrap();
    for page in bytes.chunks_mut(4096).skip(1) {
        page[4_090] ^= 4;
    }
    std::fs::write(&path, bytes).unwrap();
    let fresh = memory().await;
    assert_eq!(fresh.recto().restore(&path).await.unwrap_err().code(), "storage");
    assert!(fresh.recto().list(None, 10).await.unwrap().is_empty());
}

async fn the_example_of_the_readme_prints_what_it_says(place: Place) {
    let recto = place.recto();
    let talk = recto.create("support", Settings::default()).await.unwrap();
    talk.append([
        Message::system("You are on call for a web shop."),
        Message::user("Why does checkout fail?"),
        Message::tool_call("c1", "read_logs", &serde_json::json!({"service": "checkout"})),
        Message::tool_result("c1", &"08:02 eu-1 ERROR no answer after 500 ms\n".repeat(30)),
        Message::assistant("The gateway times out since release 4.2."),
    ])
    .await
    .unwrap();
    let fit = recto::Fit::into_tokens(60).because("the model reads 60 tokens");
    let outcome = talk.apply(fit).await.unwrap();
    let stats = outcome.stats();
    assert_eq!((outcome.version, outcome.hidden().len(), stats.tokens), (Version(2), 3, 26));
    assert_eq!(talk.messages_at(Version(1)).await.unwrap().len(), 5);
    let fork = talk.fork("what if", Version(1)).await.unwrap();
    fork.append([Message::user("And in June?")]).await.unwrap();
    assert_eq!(recto.search("gateway", 10).await.unwrap().len(), 1);
}

async fn a_counter_of_your_own_is_brought_along(place: Place) {
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
        recto::Recto::over(place.store.clone(), options)
    };
    let talk = with().create("a", Settings::counting_with(Words)).await.unwrap();
    talk.append([Message::user("three little words")]).await.unwrap();
    let again = with().conversation("a").await.unwrap();
    assert_eq!(again.stats().await.unwrap().tokens, 6);
    assert!(again.verify().await.unwrap().is_sound());
    let without = place.recto().conversation("a").await.unwrap();
    assert!(matches!(without.stats().await.unwrap_err(), Error::UnknownCounter { .. }));
}

async fn nothing_of_what_is_open_is_printed(place: Place) {
    let recto = place.recto();
    let talk = recto.create("a", settings()).await.unwrap();
    talk.append([Message::user("hunter2")]).await.unwrap();
    for printed in [format!("{recto:?}"), format!("{talk:?}")] {
        assert!(!printed.contains("hunter2") && printed.len() < 200, "{printed}");
    }
}

async fn a_key_cannot_be_empty(place: Place) {
    let talk = place.recto().create("a", settings()).await.unwrap();
    let write = Write { key: Some(String::new()), ..Write::default() };
    let refused = talk.apply_with(recto::Append { messages: vec![say(1)] }, write).await;
    assert_eq!(refused.unwrap_err().code(), "invalid_operation");
}

async fn a_preview_says_what_a_request_would_do_and_keeps_nothing(place: Place) {
    let talk = place.recto().create("a", settings()).await.unwrap();
    talk.append((0..5).map(say)).await.unwrap();
    let replace = recto::Replace { index: recto::Position(4), message: say(9) };
    let cut = Truncate { keep_last: Some(2), ..Default::default() };
    let request: recto::Request =
        [recto::Operation::from(cut), replace.into()].into_iter().collect();
    let refused = talk.preview(request).await.unwrap_err();
    assert_eq!(refused.code(), "index_out_of_range");

    let replace = recto::Replace { index: recto::Position(4), message: say(9) };
    let preview = talk.preview(replace.clone()).await.unwrap();
    assert_eq!(preview.outcome.hidden(), [LogIndex(4)]);
    assert_eq!(preview.outcome.diff().shown.indices, [LogIndex(5)]);
    let [added] = &*preview.added else { panic!("one message is added") };
    assert_eq!((added.index, added.position), (LogIndex(5), Some(recto::Position(4))));
    assert_eq!(added.message.text(), "message number 9");
    assert_eq!(talk.version().await.unwrap(), Version(1));
    assert_eq!(texts(&talk).await.len(), 5);

    let seen = Write { expected_version: Some(Version(0)), ..Write::default() };
    assert!(talk.preview_with(replace.clone(), seen).await.unwrap_err().is_conflict());
    // What it said is what happens.
    let done = talk.apply(replace).await.unwrap();
    assert_eq!(done.to_json(), preview.outcome.to_json());
}

async fn an_entry_comes_with_its_tokens_and_its_time(place: Place) {
    let talk = place.recto().create("a", settings()).await.unwrap();
    let dated = r#"{"role":"user","content":"12345678","timestamp":77}"#;
    talk.append([Message::from_json(dated).unwrap(), say(1)]).await.unwrap();
    talk.apply(Delete { indices: vec![LogIndex(0)] }).await.unwrap();
    let query = recto::Query { scope: recto::Scope::All, ..Default::default() };
    for entries in [
        talk.ask(&query).await.unwrap(),
        place.recto().conversation("a").await.unwrap().messages_at(Version(1)).await.unwrap(),
    ] {
        assert_eq!((entries[0].tokens, entries[0].timestamp), (5, 77));
        assert!(entries[1].timestamp > 77);
    }
    let entries = talk.entries(&[LogIndex(1), LogIndex(0)]).await.unwrap();
    let found = entries.iter().map(|entry| (entry.index.0, entry.position, entry.tokens));
    assert_eq!(found.collect::<Vec<_>>(), [(1, Some(recto::Position(0)), 7), (0, None, 5)]);
    let missing = talk.entries(&[LogIndex(2)]).await.unwrap_err();
    assert_eq!(missing.code(), "index_out_of_range");
    assert_eq!(talk.log_tokens(&[0, 1, 2, 9]).await.unwrap(), [0, 5, 12, 12]);
}

async fn versions_say_which_of_them_opened_their_batch(place: Place) {
    let talk = place.recto().create("a", settings()).await.unwrap();
    talk.append([say(0)]).await.unwrap();
    let start = || recto::BatchStart::default();
    talk.apply(start()).await.unwrap();
    talk.append([say(1)]).await.unwrap();
    talk.apply(Rollback::ToBatch(recto::BatchIndex(0))).await.unwrap();
    talk.apply(start()).await.unwrap();
    let again = place.recto().conversation("a").await.unwrap();
    let versions = again.versions(0..6).await.unwrap();
    let batches: Vec<(usize, u32)> =
        versions.iter().map(|info| (info.batch.0, info.batch_opened_by.0)).collect();
    assert_eq!(batches, [(0, 0), (0, 0), (1, 2), (1, 2), (0, 0), (1, 5)]);
    assert_eq!(versions.iter().map(|info| info.log).collect::<Vec<_>>(), [0, 1, 1, 2, 2, 2]);
}

async fn long_work_tells_how_far_it_has_come(place: Place) {
    let recto = place.recto();
    for name in ["a", "b"] {
        let talk = recto.create(name, settings()).await.unwrap();
        // Enough for several pages.
        for number in 0..200 {
            talk.append([say(number)]).await.unwrap();
        }
    }
    let mut told = Vec::new();
    let talk = recto.conversation("a").await.unwrap();
    talk.verify_with(&mut |progress| told.push(progress)).await.unwrap();
    assert!(told.len() > 1 && told.is_sorted_by_key(|progress| progress.done));
    assert_eq!(told.last(), Some(&recto::Progress { done: 201, all: 201 }));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup.db");
    let mut told = Vec::new();
    recto.backup_with(&path, &mut |progress| told.push(progress)).await.unwrap();
    let ends = Some(&recto::Progress { done: 2, all: 2 });
    assert!(place.is_file() && told.is_empty() || told.last() == ends, "{told:?}");
    let mut told = Vec::new();
    let fresh = memory().await;
    fresh.recto().restore_with(&path, &mut |progress| told.push(progress)).await.unwrap();
    assert_eq!(told.iter().map(|progress| progress.done).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(told.iter().all(|progress| progress.all == 4));
}

async fn half_a_backup_is_not_left_behind(place: Place) {
    let recto = place.recto();
    recto.create("a", settings()).await.unwrap();
    recto.create("b", settings()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup.db");
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    {
        // Whoever waits for it gives up in the middle.
        let mut backup = std::pin::pin!(recto.backup(&path));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let _ = backup.as_mut().poll(&mut context);
    }
    // A file that copies itself goes on to the end in its own thread.
    let is_left = |_: &u32| files() > 0 && !place.is_file();
    let waited = (0..200).take_while(is_left).map(|_| std::thread::sleep(PAUSE)).count();
    assert!(waited < 200, "{} files", files());
    let second = folder.path().join("second.db");
    recto.backup(&second).await.unwrap();
    assert_eq!(memory().await.recto().restore(&second).await.unwrap().conversations, 2);
}

const PAUSE: std::time::Duration = std::time::Duration::from_millis(10);

#[tokio::test]
async fn a_store_in_memory_can_do_without_search() {
    let options = recto::Options { search: false, ..Default::default() };
    let recto = recto::Recto::open_with("memory:", options).await.unwrap();
    let talk = recto.create("a", settings()).await.unwrap();
    talk.append([say(1)]).await.unwrap();
    assert_eq!(recto.search("message", 9).await.unwrap_err().code(), "invalid_operation");
}

async fn what_is_wanted_of_a_conversation_can_change(place: Place) {
    let recto = place.recto();
    let talk = recto.create("a", settings()).await.unwrap();
    assert_eq!(recto.policy("a").await.unwrap(), recto::Policy::default());
    let text = r#"{"tokenLimit": 9000, "compression":
        {"enabled": true, "threshold": 8000, "targetTokens": 4000, "strategy": "keepRecent"}}"#;
    let policy = recto::Policy::from_json(text).unwrap();
    recto.set_policy("a", &policy).await.unwrap();
    assert_eq!(place.recto().policy("a").await.unwrap(), policy);
    assert_eq!(talk.version().await.unwrap(), Version(0), "it is no version");
    assert!(talk.verify().await.unwrap().is_sound());

    // Forks begin with it, backups have it, and a new name does not lose it.
    let again = recto.conversation("a").await.unwrap();
    again.fork("fork", Version(0)).await.unwrap().fork("of fork", Version(0)).await.unwrap();
    recto.rename("a", "b").await.unwrap();
    recto.set_policy("fork", &recto::Policy::default()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup.db");
    recto.backup(&path).await.unwrap();
    let restored = memory().await;
    restored.recto().restore(&path).await.unwrap();
    for recto in [recto, restored.recto()] {
        assert_eq!(recto.policy("b").await.unwrap(), policy);
        assert_eq!(recto.policy("of fork").await.unwrap(), policy);
        assert_eq!(recto.policy("fork").await.unwrap(), recto::Policy::default());
        let missing = recto.set_policy("a", &policy).await.unwrap_err();
        assert_eq!(missing.code(), "conversation_not_found");
    }
    for wrong in [
        r#"{"tokenlimit": 1}"#,
        r#"{"tokenLimit": -1}"#,
        r#"{"compression": {"enabled": true, "threshold": 1, "targetTokens": 2, "strategy": "x"}}"#,
        r#"{"compression": {"enabled": true, "threshold": 2, "targetTokens": 1, "strategy": ""}}"#,
        r#"{"compression": {"enabled": true}}"#,
    ] {
        let refused = recto::Policy::from_json(wrong).unwrap_err();
        assert_eq!(refused.code().as_str(), "invalid_operation", "{wrong}");
    }
}
