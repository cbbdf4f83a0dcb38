//! Erasing and pruning.

use recto::{
    Delete, Error, Filter, Keep, LogIndex, Mark, Message, Query, Role, Tool, Truncate, Undo,
    Version,
};

use super::{copies, say, settings, texts};
use crate::interrupted_store::{InterruptedStore, Interruption};
use crate::places::{Place, on_every_store};

on_every_store! {
    an_erased_message_is_unreadable_and_the_chain_stays_valid
    an_erased_tool_description_is_not_sent_after_a_restart
    erasing_in_a_fork_erases_in_the_original
    a_message_stays_erased_in_a_recto_that_had_loaded_it
    no_recto_returns_an_erased_or_pruned_message_in_its_next_request
    a_prune_overwrites_the_messages_that_no_kept_version_shows
    a_prune_keeps_the_messages_that_forks_show
    a_message_of_a_fork_does_not_keep_another_message_of_the_same_index
    a_mark_does_not_keep_a_hidden_message
    a_fork_created_during_a_prune_keeps_its_messages
    a_message_erased_during_another_erasure_or_prune_stays_erased
    a_removal_keeps_only_the_messages_that_forks_show
    the_last_fork_takes_messages_of_a_removed_ancestor_with_it
}

async fn an_erased_message_is_unreadable_and_the_chain_stays_valid(place: Place) {
    let recto = place.recto();
    let conversation = recto.create("a", settings()).await.unwrap();
    // Long and random, so that it is not compressible and its bytes are in the file.
    let secret: String = (0..400_u64)
        .map(|n| char::from(b'a' + (n.wrapping_mul(6_364_136_223_846_793_005) >> 59) as u8 % 26))
        .collect();
    for number in 0..100 {
        let message = if number % 50 == 20 { Message::user(&secret) } else { say(number) };
        conversation.append([message]).await.unwrap();
    }
    let before = conversation.verify().await.unwrap();
    assert_eq!(recto.search(&secret, 10).await.unwrap().len(), 2);
    let word = &secret.as_bytes()[..recto_store::MAX_WORD];
    assert!(!place.is_file() || place.has(word), "the index has it");
    for index in [20, 70] {
        let receipt = conversation.erase(LogIndex(index)).await.unwrap();
        assert!(!receipt.was_gone && receipt.bytes > secret.len());
        assert!(conversation.erase(LogIndex(index)).await.unwrap().was_gone);
        let message = conversation.message(LogIndex(index)).await.unwrap().unwrap();
        assert_eq!(message.text(), "[erased]");
    }
    let after = place.recto().conversation("a").await.unwrap().verify().await.unwrap();
    assert_eq!(after.faults, Vec::<String>::new());
    assert_eq!((after.erased, after.link), (2, before.link), "the chain is unchanged");
    assert!(recto.search(&secret, 10).await.unwrap().is_empty());
    assert!(!place.has(word), "no file contains the word");
    assert_eq!(conversation.erase(LogIndex(100)).await.unwrap_err().code(), "index_out_of_range");
}

/// The placeholder of an erased or pruned description has no form of one. It is a description because the
/// engine wrote it, also if the metadata of the whole log is not loaded.
async fn an_erased_tool_description_is_not_sent_after_a_restart(place: Place) {
    let recto = place.recto();
    for (name, is_pruned) in [("erased", false), ("pruned", true)] {
        let tools = vec![Tool::new("t", "d")];
        let with_tools = recto::Settings { tools, ..settings() };
        let conversation = recto.create(name, with_tools).await.unwrap();
        conversation.append([say(0)]).await.unwrap();
        match is_pruned {
            true => {
                conversation.set_tools(Vec::new()).await.unwrap();
                conversation.prune(&Keep::newest()).await.unwrap();
            }
            false => drop(conversation.erase(LogIndex(0)).await.unwrap()),
        }
        for number in 1..6 {
            conversation.append([say(number)]).await.unwrap();
        }
        conversation.apply(Truncate { keep_last: Some(1), ..Default::default() }).await.unwrap();
        for recto in [recto.clone(), place.recto()] {
            let conversation = recto.conversation(name).await.unwrap();
            for version in [Version(0), Version(1)] {
                let described = conversation.messages_at(version).await.unwrap();
                assert_eq!(described[0].message.text(), format!("[{name}]"));
                let sent = conversation.messages_to_send(version).await.unwrap();
                let indices = |entries: &[recto::Entry]| {
                    entries.iter().map(|entry| entry.index).collect::<Vec<_>>()
                };
                assert_eq!(indices(&sent), indices(&described[1..]), "{name} at {version}");
            }
        }
    }
}

async fn erasing_in_a_fork_erases_in_the_original(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    conversation.append((0..10).map(say)).await.unwrap();
    let fork = conversation.fork("b", Version(1)).await.unwrap();
    fork.append([say(10)]).await.unwrap();
    fork.erase(LogIndex(3)).await.unwrap();
    assert_eq!(conversation.message(LogIndex(3)).await.unwrap().unwrap().text(), "[erased]");
    assert!(conversation.verify().await.unwrap().is_sound());
    assert!(fork.verify().await.unwrap().is_sound());
}

async fn a_message_stays_erased_in_a_recto_that_had_loaded_it(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    conversation.append([Message::user("secret"), say(1)]).await.unwrap();
    let elsewhere = place.recto().conversation("a").await.unwrap();
    elsewhere.erase(LogIndex(0)).await.unwrap();
    for number in 2..200 {
        conversation.append([say(number)]).await.unwrap();
    }
    assert_eq!(copies(&place, &conversation, "secret").await, Vec::<String>::new());
    assert_eq!(texts(&conversation).await[0], "[erased]");
    assert!(conversation.verify().await.unwrap().is_sound());
}

async fn no_recto_returns_an_erased_or_pruned_message_in_its_next_request(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    conversation.append([Message::user("secret"), say(1), say(2)]).await.unwrap();
    let fork = conversation.fork("b", Version(1)).await.unwrap();
    conversation.apply(Delete { indices: vec![LogIndex(1)] }).await.unwrap();
    // In these handles everything is loaded, the messages of the original conversation too.
    let elsewhere = [place.recto(), place.recto()];
    let mut handles = Vec::new();
    for recto in &elsewhere {
        for name in ["a", "b"] {
            let handle = recto.conversation(name).await.unwrap();
            assert_eq!(texts(&handle).await[0], "secret");
            handle.message(LogIndex(1)).await.unwrap();
            handles.push(handle);
        }
    }
    conversation.erase(LogIndex(0)).await.unwrap();
    // Each of these is the first request of a handle after the erasure.
    let secret = Query { contains: Some(vec!["secret".into()]), ..Query::default() };
    assert_eq!(handles[0].count(&secret).await.unwrap(), 0);
    let sent = handles[1].messages_to_send(Version(1)).await.unwrap();
    assert_eq!(sent[0].message.text(), "[erased]");
    let filter = Filter { content_contains: Some(vec!["secret".into()]), ..Filter::default() };
    let outcome = handles[2].apply(filter).await.unwrap();
    assert_eq!(outcome.stats().current_batch_messages, 0, "nothing contains it");
    assert_eq!(texts(&handles[3]).await[0], "[erased]");
    place.recto().remove("b").await.unwrap();
    drop(fork);
    conversation.apply(Undo).await.unwrap();
    for handle in [&handles[0], &handles[2]] {
        assert_eq!(handle.message(LogIndex(1)).await.unwrap().unwrap().text(), say(1).text());
    }
    conversation.prune(&Keep::newest()).await.unwrap();
    for handle in [&handles[0], &handles[2]] {
        assert_eq!(handle.message(LogIndex(1)).await.unwrap().unwrap().text(), "[pruned]");
    }
}

#[tokio::test]
async fn a_repeated_erasure_removes_copies_that_an_open_read_transaction_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let wait = std::time::Duration::from_millis(100);
    let options = recto_store::SqliteOptions { wait, ..Default::default() };
    let store = recto_store::SqliteStore::open(&path, options).await.unwrap();
    let recto = recto::Recto::with_store(std::sync::Arc::new(store), recto::Options::default());
    let conversation = recto.create("a", settings()).await.unwrap();
    conversation.append([Message::user("hunter2")]).await.unwrap();
    let has_copies = || {
        let files = std::fs::read_dir(folder.path()).unwrap();
        files.into_iter().any(|file| {
            let content = std::fs::read(file.unwrap().path()).unwrap_or_default();
            content.windows(7).any(|bytes| bytes == b"hunter2")
        })
    };
    let reader = rusqlite::Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM commits").unwrap();
    let left = conversation.erase(LogIndex(0)).await.unwrap_err();
    assert!(matches!(left, Error::Store(recto_store::Error::CopiesLeft { .. })), "{left}");
    assert!(has_copies());
    assert_eq!(texts(&conversation).await, ["[erased]"]);
    drop(reader);
    assert!(conversation.erase(LogIndex(0)).await.unwrap().was_gone);
    assert!(!has_copies());
}

async fn a_prune_overwrites_the_messages_that_no_kept_version_shows(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    for number in 0..90 {
        conversation.append([say(number)]).await.unwrap();
    }
    conversation.apply(Delete { indices: vec![LogIndex(4), LogIndex(80)] }).await.unwrap();
    conversation.apply(Truncate { keep_last: Some(5), ..Default::default() }).await.unwrap();
    let keep = Keep { versions: vec![Version(3)], ..Keep::default() };
    let pruned = conversation.prune(&keep).await.unwrap();
    assert_eq!(pruned.entries, LogIndex::range(3..85));
    assert_eq!(texts(&conversation).await.len(), 5);
    let kept = conversation.messages_at(Version(3)).await.unwrap();
    assert!(kept.iter().all(|entry| entry.message.text().starts_with("message number")));
    let lost = conversation.message(LogIndex(50)).await.unwrap().unwrap();
    assert_eq!((lost.role(), &*lost.text()), (Role::User, "[pruned]"));
    assert!(place.recto().conversation("a").await.unwrap().verify().await.unwrap().is_sound());
    let again = conversation.prune(&keep).await.unwrap();
    assert!(again.entries.is_empty());
    assert_eq!(conversation.prune(&Keep::default()).await.unwrap_err().code(), "invalid_operation");
    let batches = Keep { last_batches: Some(1), ..Keep::default() };
    assert_eq!(conversation.prune(&batches).await.unwrap().entries, LogIndex::range(0..3));
}

async fn a_prune_keeps_the_messages_that_forks_show(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    conversation.append((0..20).map(say)).await.unwrap();
    let fork = conversation.fork("b", Version(1)).await.unwrap();
    conversation.append((20..30).map(say)).await.unwrap();
    conversation.apply(Truncate { keep_last: Some(1), ..Default::default() }).await.unwrap();
    let keep = Keep { versions: vec![Version(3)], ..Keep::default() };
    let pruned = conversation.prune(&keep).await.unwrap();
    assert_eq!(pruned.entries, LogIndex::range(20..29));
    assert_eq!(texts(&fork).await.len(), 20);
    assert!(texts(&fork).await.iter().all(|text| text != "[pruned]"));
}

async fn a_message_of_a_fork_does_not_keep_another_message_of_the_same_index(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    conversation.append([say(0)]).await.unwrap();
    let fork = conversation.fork("b", Version(1)).await.unwrap();
    fork.append([say(1)]).await.unwrap();
    let fork_of_fork = fork.fork("c", Version(2)).await.unwrap();
    fork_of_fork.append([say(2)]).await.unwrap();
    conversation.append([say(10), say(11)]).await.unwrap();
    let hidden = vec![LogIndex(0), LogIndex(1), LogIndex(2)];
    conversation.apply(Delete { indices: hidden }).await.unwrap();
    let pruned = conversation.prune(&Keep::newest()).await.unwrap();
    assert_eq!(pruned.entries, [LogIndex(1), LogIndex(2)]);
    assert!(!place.has(b"message number 10"));
    assert_eq!(texts(&fork).await, ["message number 0", "message number 1"]);
    assert_eq!(texts(&fork_of_fork).await.last().unwrap(), "message number 2");
    // The fork of the fork shows all messages of the fork.
    fork.apply(Delete { indices: vec![LogIndex(1)] }).await.unwrap();
    assert!(fork.prune(&Keep::newest()).await.unwrap().entries.is_empty());
}

async fn a_mark_does_not_keep_a_hidden_message(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    conversation.append((0..3).map(say)).await.unwrap();
    let marked = Mark { indices: vec![LogIndex(1), LogIndex(2)], mark: "seen".into() };
    conversation.apply(marked).await.unwrap();
    conversation.apply(Delete { indices: vec![LogIndex(1)] }).await.unwrap();
    let pruned = conversation.prune(&Keep::newest()).await.unwrap();
    assert_eq!(pruned.entries, [LogIndex(1)]);
    let marks = conversation.marks().await.unwrap();
    assert_eq!(marks, [("seen".to_owned(), vec![LogIndex(1), LogIndex(2)])]);
}

async fn a_fork_created_during_a_prune_keeps_its_messages(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    for number in 0..80 {
        conversation.append([say(number)]).await.unwrap();
    }
    conversation.apply(Truncate { keep_last: Some(1), ..Default::default() }).await.unwrap();
    let elsewhere = conversation.clone();
    let fork: Interruption = Box::new(move || {
        Box::pin(async move {
            elsewhere.fork("b", Version(30)).await.unwrap();
            Ok(())
        })
    });
    let store = InterruptedStore::with(place.store.clone(), fork);
    let late = recto::Recto::with_store(store, recto::Options::default());
    let pruned = late.conversation("a").await.unwrap().prune(&Keep::newest()).await.unwrap();
    assert_eq!(pruned.entries, LogIndex::range(30..79));
    let fork = place.recto().conversation("b").await.unwrap();
    let expected: Vec<String> = (0..30).map(|number| format!("message number {number}")).collect();
    assert_eq!(texts(&fork).await, expected);
}

/// An erasure by another process makes no version, and may change the same row.
async fn a_message_erased_during_another_erasure_or_prune_stays_erased(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    // Some entries are in pages, the others in one commit.
    for number in 0..130 {
        conversation.append([say(number)]).await.unwrap();
    }
    conversation.append((130..140).map(say)).await.unwrap();
    let erasing = |index: u32| -> recto::Recto {
        let elsewhere = place.recto();
        let erase: Interruption = Box::new(move || {
            Box::pin(async move {
                elsewhere.conversation("a").await.unwrap().erase(LogIndex(index)).await.unwrap();
                Ok(())
            })
        });
        let store = InterruptedStore::with(place.store.clone(), erase);
        recto::Recto::with_store(store, recto::Options::default())
    };
    for (early, late) in [(3, 4), (132, 133)] {
        let conversation = erasing(early).conversation("a").await.unwrap();
        assert!(!conversation.erase(LogIndex(late)).await.unwrap().was_gone);
    }
    conversation.fork("b", Version(131)).await.unwrap();
    let fork = erasing(135).conversation("b").await.unwrap();
    fork.erase(LogIndex(136)).await.unwrap();
    let read = |name: &'static str| {
        let recto = place.recto();
        async move { texts(&recto.conversation(name).await.unwrap()).await }
    };
    for (number, text) in read("a").await.iter().enumerate() {
        let is_erased = [3, 4, 132, 133, 135, 136].contains(&number);
        assert_eq!(text == "[erased]", is_erased, "{number}: {text}");
    }
    place.recto().remove("b").await.unwrap();
    conversation.apply(Truncate { keep_last: Some(1), ..Default::default() }).await.unwrap();
    let late = erasing(10).conversation("a").await.unwrap();
    let pruned = late.prune(&Keep::newest()).await.unwrap();
    assert!(!pruned.entries.contains(&LogIndex(10)), "that one was erased before");
    let again = place.recto().conversation("a").await.unwrap();
    let message = again.message(LogIndex(10)).await.unwrap().unwrap();
    assert_eq!(message.text(), "[erased]");
    assert!(again.verify().await.unwrap().is_sound());
    assert_eq!(copies(&place, &conversation, "message number 10\"").await, Vec::<String>::new());
}

/// A message with a word that occurs nowhere else.
fn with_word(word: &str) -> Message {
    Message::user(&format!("the word is {word}"))
}

async fn a_removal_keeps_only_the_messages_that_forks_show(place: Place) {
    let recto = place.recto();
    let conversation = recto.create("a", settings()).await.unwrap();
    conversation.append([with_word("visibleinfork")]).await.unwrap();
    let request = r#"{"ops":[
        {"operation":"APPEND","messages":[{"role":"user","content":"nevershownword"}]},
        {"operation":"DELETE","indices":[1]}]}"#;
    let hidden = recto::Request::from_json(request).unwrap();
    let at = conversation.apply(hidden).await.unwrap().version;
    let fork = conversation.fork("b", at).await.unwrap();
    // Enough requests that the first of them are packed.
    for number in 0..100 {
        conversation.append([with_word(&format!("laterword{number:03}"))]).await.unwrap();
    }
    assert_eq!(fork.message(LogIndex(1)).await.unwrap().unwrap().text(), "nevershownword");
    assert!(!place.is_file() || place.has(b"laterword099"));
    let newest = conversation.version().await.unwrap();
    let refused = recto.remove_if("a", Version(newest.0 - 1)).await.unwrap_err();
    assert_eq!(refused.code(), "version_conflict");
    assert_eq!(texts(&conversation).await.len(), 101, "nothing has changed");
    recto.remove("a").await.unwrap();
    assert_eq!(texts(&fork).await, ["the word is visibleinfork"]);
    // The entry is in the log of the fork, and no version shows it.
    assert_eq!(fork.message(LogIndex(1)).await.unwrap().unwrap().text(), "[pruned]");
    for word in ["nevershownword", "laterword000", "laterword050", "laterword099"] {
        assert!(!place.is_file() || !place.has(word.as_bytes()), "{word}");
        assert!(recto.search(word, 9).await.unwrap().is_empty(), "{word}");
    }
    assert_eq!(recto.search("visibleinfork", 9).await.unwrap().len(), 1);
    assert_eq!(fork.verify().await.unwrap().faults, Vec::<String>::new());
    assert_eq!(recto.check().await.unwrap(), Vec::<String>::new());
}

async fn the_last_fork_takes_messages_of_a_removed_ancestor_with_it(place: Place) {
    let recto = place.recto();
    let first = recto.create("a", settings()).await.unwrap();
    for word in ["wordforboth", "wordforlate", "wordfornone"] {
        first.append([with_word(word)]).await.unwrap();
    }
    let early = first.fork("early", Version(1)).await.unwrap();
    let late = first.fork("late", Version(2)).await.unwrap();
    late.append([with_word("wordoflate")]).await.unwrap();
    recto.remove("a").await.unwrap();
    let finds = async |word: &str| !recto.search(word, 9).await.unwrap().is_empty();
    assert!(finds("wordforboth").await && finds("wordforlate").await);
    assert!(!finds("wordfornone").await);
    assert_eq!(texts(&late).await.len(), 3);
    recto.remove("late").await.unwrap();
    assert!(finds("wordforboth").await);
    for word in ["wordforlate", "wordoflate", "wordfornone"] {
        assert!(!finds(word).await, "{word}");
        assert!(!place.is_file() || !place.has(word.as_bytes()), "{word}");
    }
    assert_eq!(texts(&early).await, ["the word is wordforboth"]);
    assert_eq!(early.verify().await.unwrap().faults, Vec::<String>::new());
    recto.remove("early").await.unwrap();
    assert!(!finds("wordforboth").await);
    assert!(!place.is_file() || !place.has(b"wordforboth"));
}
