//! Searching, listing and naming conversations.

use recto::{Message, Tenant, Version};

use super::{say, settings};
use crate::interrupted_store::InterruptedStore;
use crate::places::{Place, memory, on_every_store, sqlite};

on_every_store! {
    search_finds_words_in_hidden_messages_too
    search_finds_what_forks_share_with_a_removed_conversation
    tenants_do_not_see_each_other
    names_are_unique_and_can_change
    a_conversation_is_removed_only_at_the_version_that_is_expected
    a_policy_can_change_and_makes_no_version
    a_fork_starts_with_the_policy_that_another_handle_has_set
    a_conversation_is_found_by_its_id
}

async fn search_finds_words_in_hidden_messages_too(place: Place) {
    let recto = place.recto();
    let conversation = recto.create("a", settings()).await.unwrap();
    conversation
        .append([
            Message::user("The GATEWAY times out"),
            Message::tool_call("c1", "read_logs", &serde_json::json!({"service": "gateway"})),
            Message::tool_result("c1", "没有 错误"),
        ])
        .await
        .unwrap();
    conversation.apply(recto::Clear::default()).await.unwrap();
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

async fn search_finds_what_forks_share_with_a_removed_conversation(place: Place) {
    let recto = place.recto();
    let other = recto.create("other", settings()).await.unwrap();
    other.append([Message::user("needle")]).await.unwrap();
    let conversation = recto.create("a", settings()).await.unwrap();
    conversation.append([Message::user("needle one")]).await.unwrap();
    let fork = conversation.fork("b", Version(1)).await.unwrap();
    conversation.append((0..5).map(|_| Message::user("needle not shared"))).await.unwrap();
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
    let store =
        InterruptedStore::with(place.store.clone(), Box::new(|| Box::pin(async { Ok(()) })));
    let watched = recto::Recto::with_store(store.clone(), recto::Options::default());
    assert_eq!(watched.search("needle", 10).await.unwrap().len(), 2);
    assert_eq!(store.lists(), 0, "a search does not read the names of all conversations");
    assert_eq!(found(10).await, ["b", "other"]);
    assert_eq!(found(2).await, ["b", "other"]);
    assert_eq!(found(1).await.len(), 1);
}

#[tokio::test]
async fn a_damaged_search_index_finds_no_message_under_a_wrong_word_or_in_a_wrong_conversation() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let recto = recto::Recto::open(&format!("sqlite:{}", path.display())).await.unwrap();
    let conversation = recto.create("a", settings()).await.unwrap();
    conversation.append([Message::user("needle one"), Message::user("needle two")]).await.unwrap();
    conversation.fork("b", Version(1)).await.unwrap();
    let found = async |word: &str| {
        let found = recto.search(word, 10).await.unwrap().into_iter();
        found.map(|found| (found.conversation, found.index.0)).collect::<Vec<_>>()
    };
    assert_eq!(found("needle").await, [("a".to_owned(), 1), ("a".to_owned(), 0)]);
    let change = |statement: &str| {
        let db = rusqlite::Connection::open(&path).unwrap();
        assert_eq!(db.execute(statement, []).unwrap(), 1);
    };
    // The words of the second message become others.
    change("UPDATE waiting SET words = replace(words, 'two', 'six') WHERE words LIKE '%two%'");
    assert_eq!(found("six").await, []);
    // The words of the first message become those of an entry that the fork shares.
    let number = "(SELECT number FROM conversations WHERE name = 'b')";
    change(&format!("UPDATE waiting SET place = {number} << 32 WHERE words LIKE '%one%'"));
    assert_eq!(found("needle").await, [("a".to_owned(), 1)]);
    assert!(!recto.check().await.unwrap().is_empty(), "verify reports it");
}

#[tokio::test]
async fn a_store_in_memory_can_have_no_search_index() {
    let options = recto::Options { search: false, ..Default::default() };
    let recto = recto::Recto::open_with("memory:", options).await.unwrap();
    let conversation = recto.create("a", settings()).await.unwrap();
    conversation.append([say(1)]).await.unwrap();
    assert_eq!(recto.search("message", 9).await.unwrap_err().code(), "invalid_operation");
}

async fn tenants_do_not_see_each_other(place: Place) {
    let ours = place.recto().for_tenant(Tenant("ours".into()));
    let theirs = place.recto().for_tenant(Tenant("theirs".into()));
    let conversation = ours.create("a", settings()).await.unwrap();
    conversation.append([Message::user("our secret")]).await.unwrap();
    assert_eq!(theirs.conversation("a").await.unwrap_err().code(), "conversation_not_found");
    assert!(theirs.list(None, 10).await.unwrap().is_empty());
    assert!(theirs.search("secret", 10).await.unwrap().is_empty());
    theirs.create("a", settings()).await.unwrap();
    assert_eq!(ours.search("secret", 10).await.unwrap().len(), 1);
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

async fn a_conversation_is_removed_only_at_the_version_that_is_expected(place: Place) {
    let recto = place.recto();
    let conversation = recto.create("a", settings()).await.unwrap();
    conversation.append([say(0)]).await.unwrap();
    let refused = recto.remove_if("a", Version(0)).await.unwrap_err();
    assert_eq!(refused.code(), "version_conflict");
    conversation.append([say(1)]).await.unwrap();
    recto.remove_if("a", Version(2)).await.unwrap();
    assert_eq!(recto.conversation("a").await.unwrap_err().code(), "conversation_not_found");
}

async fn a_policy_can_change_and_makes_no_version(place: Place) {
    let recto = place.recto();
    let conversation = recto.create("a", settings()).await.unwrap();
    assert_eq!(conversation.policy().await.unwrap(), recto::Policy::default());
    let text = r#"{"tokenLimit": 9000, "compression":
        {"enabled": true, "threshold": 8000, "targetTokens": 4000, "strategy": "keepRecent"}}"#;
    let policy = recto::Policy::from_json(text).unwrap();
    conversation.set_policy(&policy).await.unwrap();
    let again = place.recto().conversation("a").await.unwrap();
    assert_eq!(again.policy().await.unwrap(), policy);
    assert_eq!(conversation.version().await.unwrap(), Version(0), "it makes no version");
    assert!(conversation.verify().await.unwrap().is_sound());

    // Forks start with it, backups contain it, and renaming keeps it.
    let fork = again.fork("fork", Version(0)).await.unwrap();
    fork.fork("of fork", Version(0)).await.unwrap();
    recto.rename("a", "b").await.unwrap();
    fork.set_policy(&recto::Policy::default()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup.db");
    recto.backup(&path).await.unwrap();
    let restored = memory().await;
    restored.recto().restore(&path).await.unwrap();
    for recto in [recto.clone(), restored.recto()] {
        for (name, expected) in
            [("b", &policy), ("of fork", &policy), ("fork", &recto::Policy::default())]
        {
            let found = recto.conversation(name).await.unwrap().policy().await.unwrap();
            assert_eq!(found, *expected, "{name}");
        }
    }
    // A handle follows the new name, and fails after the conversation was removed.
    conversation.set_policy(&policy).await.unwrap();
    recto.remove("b").await.unwrap();
    let missing = conversation.set_policy(&policy).await.unwrap_err();
    assert_eq!(missing.code(), "conversation_not_found");
    assert_eq!(conversation.policy().await.unwrap_err().code(), "conversation_not_found");
    for wrong in [
        r#"{"tokenlimit": 1}"#,
        r#"{"tokenLimit": -1}"#,
        r#"{"compression": {"enabled": true, "threshold": 1, "targetTokens": 2, "strategy": "x"}}"#,
        r#"{"compression": {"enabled": true, "threshold": 2, "targetTokens": 1, "strategy": ""}}"#,
        r#"{"compression": {"enabled": true}}"#,
        r#"{"tokenLimit": 1, "compression": {"enabled": true, "threshold": 2, "targetTokens": 1, "strategy": "x"}}"#,
    ] {
        let refused = recto::Policy::from_json(wrong).unwrap_err();
        assert_eq!(refused.code().as_str(), "invalid_operation", "{wrong}");
    }
}

async fn a_fork_starts_with_the_policy_that_another_handle_has_set(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    let policy = recto::Policy { token_limit: Some(7), ..recto::Policy::default() };
    place.recto().conversation("a").await.unwrap().set_policy(&policy).await.unwrap();
    let fork = conversation.fork("b", Version(0)).await.unwrap();
    assert_eq!(fork.policy().await.unwrap(), policy);
}

async fn a_conversation_is_found_by_its_id(place: Place) {
    let recto = place.recto();
    let conversation = recto.create("a", settings()).await.unwrap();
    conversation.append([say(0)]).await.unwrap();
    recto.rename("a", "b").await.unwrap();
    let id = conversation.id();
    let store =
        InterruptedStore::with(place.store.clone(), Box::new(|| Box::pin(async { Ok(()) })));
    let watched = recto::Recto::with_store(store.clone(), recto::Options::default());
    let found = watched.conversation_by_id(id).await.unwrap();
    assert_eq!((found.id(), found.version().await.unwrap()), (id, Version(1)));
    assert_eq!(watched.info_by_id(id).await.unwrap(), recto.info("b").await.unwrap());
    assert_eq!(store.lists(), 0, "no list of all conversations is read");
    let other = recto.for_tenant(Tenant("other".into()));
    assert_eq!(other.info_by_id(id).await.unwrap_err().code(), "conversation_not_found");
    recto.remove("b").await.unwrap();
    let removed = recto.conversation_by_id(id).await.unwrap_err();
    assert_eq!(removed.code(), "conversation_not_found");
    assert!(removed.to_string().contains(&id.to_string()), "{removed}");
}

#[tokio::test]
async fn a_check_reports_that_messages_could_not_be_read() {
    let store = InterruptedStore::counting(memory().await.store);
    let recto = recto::Recto::with_store(store.clone(), recto::Options::default());
    recto.create("a", settings()).await.unwrap().append([say(1)]).await.unwrap();
    assert_eq!(recto.check().await.unwrap(), Vec::<String>::new());
    store.fail_reads(usize::MAX);
    let error = recto.check().await.unwrap_err();
    assert!(error.to_string().contains("the connection was lost"), "{error}");
    assert!(error.code() == "storage" && !error.reports_damage(), "a lost connection is no damage");
}

#[tokio::test]
async fn a_sound_search_index_is_kept_if_the_messages_cannot_be_read() {
    let place = sqlite().await;
    let store = InterruptedStore::counting(place.store.clone());
    let recto = recto::Recto::with_store(store.clone(), recto::Options::default());
    recto.create("a", settings()).await.unwrap().append([say(1)]).await.unwrap();
    store.fail_reads(usize::MAX);
    let error = recto.clean().await.unwrap_err();
    assert!(error.to_string().contains("the connection was lost"), "{error}");
    assert_eq!(place.recto().check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_search_index_that_could_not_be_filled_is_an_error_and_filled_by_the_next_attempt() {
    let place = sqlite().await;
    let store = InterruptedStore::counting(place.store.clone());
    let recto = recto::Recto::with_store(store.clone(), recto::Options::default());
    recto.create("a", settings()).await.unwrap().append([say(1)]).await.unwrap();
    assert!(place.store.clear_words().await.unwrap());
    store.fail_after_clearing();
    let error = recto.clean().await.unwrap_err();
    assert!(error.to_string().contains("the connection was lost"), "{error}");
    recto.clean().await.unwrap();
    assert_eq!(place.recto().check().await.unwrap(), Vec::<String>::new());
    assert_eq!(recto.search(&say(1).text(), 9).await.unwrap().len(), 1);
}
