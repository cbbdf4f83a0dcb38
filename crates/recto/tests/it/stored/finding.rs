//! Searching, listing and naming conversations.

use recto::{Message, Tenant, Version};

use super::{say, settings};
use crate::meddled::Meddled;
use crate::places::{Place, memory, on_every_store};

on_every_store! {
    search_finds_words_in_hidden_messages_too
    search_finds_what_forks_share_with_a_removed_conversation
    tenants_do_not_see_each_other
    names_are_unique_and_can_change
    a_conversation_is_removed_only_at_the_version_that_is_expected
    what_is_wanted_of_a_conversation_can_change
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

#[tokio::test]
async fn a_store_in_memory_can_do_without_search() {
    let options = recto::Options { search: false, ..Default::default() };
    let recto = recto::Recto::open_with("memory:", options).await.unwrap();
    let talk = recto.create("a", settings()).await.unwrap();
    talk.append([say(1)]).await.unwrap();
    assert_eq!(recto.search("message", 9).await.unwrap_err().code(), "invalid_operation");
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
    let talk = recto.create("a", settings()).await.unwrap();
    talk.append([say(0)]).await.unwrap();
    let refused = recto.remove_at("a", Some(Version(0))).await.unwrap_err();
    assert_eq!(refused.code(), "version_conflict");
    talk.append([say(1)]).await.unwrap();
    recto.remove_at("a", Some(Version(2))).await.unwrap();
    assert_eq!(recto.conversation("a").await.unwrap_err().code(), "conversation_not_found");
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
