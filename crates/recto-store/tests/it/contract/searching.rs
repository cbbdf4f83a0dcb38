//! The search for words.

use std::collections::BTreeMap;

use recto_store::{Commit, Hit, NewConversation, Store, Tenant, WordsOf, words_of};

use crate::sample::{commit, id, new, tenant, words};

async fn conversation(store: &dyn Store, number: u128, texts: &[&str]) {
    let indexed = (0..).zip(texts).map(|(entry, text)| words(entry, text)).collect();
    let name = number.to_string();
    store.create(NewConversation { words: indexed, ..new(id(number), &name) }).await.unwrap();
}

async fn found(store: &dyn Store, text: &str) -> Vec<u32> {
    let hits = store.search(&tenant(), &words_of(text), 1_000).await.unwrap();
    hits.into_iter().map(|hit| hit.entry).collect()
}

pub(super) async fn an_entry_is_found_if_it_has_all_words(store: &dyn Store) {
    conversation(store, 1, &["red and blue", "Blue.", "red", ""]).await;
    let words = vec![words(4, "red or blue")];
    store.commit(Commit { words, ..commit(id(1), 1) }).await.unwrap();
    assert_eq!(found(store, "red blue").await, [4, 0]);
    assert_eq!(found(store, "RED").await, [4, 2, 0]);
    assert_eq!(found(store, "red green").await, [0; 0]);
    assert_eq!(found(store, "re").await, [0; 0]);
    assert_eq!(found(store, "").await, [0; 0]);
    // A string that is not one of the words that `words_of` makes finds nothing, and is no error.
    for odd in [
        "red blue",
        "\"",
        "red\"",
        "*",
        "re*",
        "red OR green",
        "NOT",
        "^red",
        "words:red",
        "Red",
        "",
    ] {
        let hits = store.search(&tenant(), &[odd.to_owned()], 9).await;
        assert_eq!(hits, Ok(vec![]), "{odd:?}");
    }
    for key_word in ["or", "and", "not", "near"] {
        let hits = store.search(&tenant(), &[key_word.to_owned()], 9).await.unwrap();
        assert_eq!(hits.len(), usize::from(key_word == "or") + usize::from(key_word == "and"));
    }
}

pub(super) async fn the_newest_entry_is_first_and_the_limit_applies(store: &dyn Store) {
    for number in 1..=3 {
        conversation(store, number, &["x 0", "x 1", "y 2", "x 3"]).await;
    }
    let all = store.search(&tenant(), &["x".into()], 100).await.unwrap();
    assert_eq!(all.len(), 9);
    for (conversation, newest) in all.chunks(3).zip([3, 2, 1]) {
        assert_eq!(conversation[0].conversation, id(newest));
        let expected = [3, 1, 0].map(|entry| Hit { entry, ..conversation[0] });
        assert_eq!(conversation, expected);
    }
    for limit in 0..12 {
        let some = store.search(&tenant(), &["x".into()], limit).await.unwrap();
        assert_eq!(some, all[..limit.min(9)]);
    }
    assert_eq!(store.search(&tenant(), &["x".into()], usize::MAX).await, Ok(all));
}

pub(super) async fn another_tenants_words_are_not_found(store: &dyn Store) {
    let other = Tenant("other".into());
    conversation(store, 1, &["x"]).await;
    let indexed = vec![words(0, "x y")];
    let new = NewConversation { tenant: other.clone(), words: indexed, ..new(id(2), "2") };
    store.create(new).await.unwrap();
    let conversations = async |tenant: &Tenant| {
        let hits = store.search(tenant, &["x".into()], 9).await.unwrap();
        hits.into_iter().map(|hit| hit.conversation).collect::<Vec<_>>()
    };
    assert_eq!(conversations(&tenant()).await, [id(1)]);
    assert_eq!(conversations(&other).await, [id(2)]);
}

/// Letters and digits of every kind, alone and inside of words.
pub(super) async fn every_script_has_words(store: &dyn Store) {
    let letters =
        (1..=0x10ffff).filter_map(char::from_u32).filter(|letter| letter.is_alphanumeric());
    // Every 61st letter, because all of them would take long. Each large script has some of these.
    let texts: Vec<String> =
        letters.step_by(61).map(|letter| format!("{letter} a{letter}b")).collect();
    let mut indexed: Vec<WordsOf> =
        (0..).zip(&texts).map(|(entry, text)| words(entry, text)).collect();
    let more =
        ["İstanbul", "e\u{301}te\u{301}", "٣٤", "नमस्ते", "ⓐ", "x\u{200d}y", "ſ s", "K k", "ß ss"];
    indexed.extend((indexed.len() as u32..).zip(more).map(|(entry, text)| words(entry, text)));
    store.create(NewConversation { words: indexed.clone(), ..new(id(1), "a") }).await.unwrap();
    // SQLite moves entries to the index many at a time. After this commit some are only in the index, and some
    // in the table of waiting entries.
    store.commit(Commit { words: indexed[..9].to_vec(), ..commit(id(1), 1) }).await.unwrap();
    let mut expected: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for of in indexed.iter().rev() {
        for word in of.words.iter() {
            expected.entry(word).or_default().push(of.entry);
        }
    }
    for (word, entries) in expected {
        let hits = store.search(&tenant(), &[word.to_owned()], usize::MAX).await;
        let hits: Vec<u32> = hits.unwrap().into_iter().map(|hit| hit.entry).collect();
        assert_eq!(hits, entries, "{word:?}");
    }
}

pub(super) async fn entries_are_found_also_while_they_wait_for_the_index(store: &dyn Store) {
    conversation(store, 1, &["all n0"]).await;
    for version in 1..=700 {
        let words = vec![words(version, &format!("all n{version} k{}", version % 7))];
        store.commit(Commit { words, ..commit(id(1), version) }).await.unwrap();
    }
    assert_eq!(found(store, "all").await, Vec::from_iter((0..=700).rev()));
    assert_eq!(found(store, "all k3").await.len(), 100);
    for entry in [0, 1, 255, 256, 257, 511, 512, 700] {
        assert_eq!(found(store, &format!("n{entry} all")).await, [entry]);
    }
}

pub(super) async fn a_removed_conversation_is_not_found(store: &dyn Store) {
    conversation(store, 1, &["x"; 300]).await;
    store.commit(Commit { words: vec![words(300, "x")], ..commit(id(1), 1) }).await.unwrap();
    conversation(store, 2, &["x"]).await;
    store.remove(&tenant(), "1").await.unwrap();
    let hits = store.search(&tenant(), &["x".into()], 999).await;
    assert_eq!(hits, Ok(vec![Hit { conversation: id(2), entry: 0 }]));
    conversation(store, 3, &["y"]).await;
    assert_eq!(found(store, "x").await, [0]);
    assert_eq!(found(store, "y").await, [0]);
}
