//! A preview returns the result that the request would have; a wrong expected version is refused.

use recto::{Keep, LogIndex, Message, Recto, Settings, Tool, Version};
use recto_core::Approx;

async fn conversation() -> (Recto, recto::Conversation) {
    let recto = Recto::open("memory:").await.unwrap();
    let conversation = recto.create("conversation", Settings::counting_with(Approx)).await.unwrap();
    conversation.append([Message::user("one"), Message::user("two")]).await.unwrap();
    conversation.apply(recto::Delete { indices: vec![LogIndex(0)] }).await.unwrap();
    (recto, conversation)
}

#[tokio::test]
async fn a_prune_can_be_previewed() {
    let (_recto, conversation) = conversation().await;
    let keep = Keep::newest();
    let preview = conversation.preview_prune_if(&keep, Version(2)).await.unwrap();
    assert_eq!((&*preview.entries, preview.kept_versions), (&[LogIndex(0)][..], 1));
    assert_eq!(conversation.message(LogIndex(0)).await.unwrap().unwrap().text(), "one");
    for expected in [0, 1, 3] {
        let expected = Version(expected);
        let refused = conversation.preview_prune_if(&keep, expected).await.unwrap_err();
        assert_eq!(refused.code(), "version_conflict");
        let refused = conversation.prune_if(&keep, expected).await.unwrap_err();
        assert_eq!(refused.code(), "version_conflict");
    }
    let refused = conversation.preview_prune(&Keep::default()).await.unwrap_err();
    assert_eq!(refused.code(), "invalid_operation");
    assert_eq!(conversation.prune_if(&keep, Version(2)).await.unwrap(), preview);
    assert!(conversation.verify().await.unwrap().is_sound());
}

#[tokio::test]
async fn an_erasure_with_a_wrong_expected_version_is_refused() {
    let (_recto, conversation) = conversation().await;
    let refused = conversation.erase_if(LogIndex(1), Version(1)).await.unwrap_err();
    assert_eq!(refused.code(), "version_conflict");
    assert_eq!(conversation.message(LogIndex(1)).await.unwrap().unwrap().text(), "two");
    conversation.erase_if(LogIndex(1), Version(2)).await.unwrap();
    assert_ne!(conversation.message(LogIndex(1)).await.unwrap().unwrap().text(), "two");
}

#[tokio::test]
async fn new_tools_can_be_previewed_and_every_version_has_its_tools() {
    let (_recto, conversation) = conversation().await;
    let tools = vec![Tool::new("ls", "lists")];
    let preview = conversation.preview_tools(tools.clone()).await.unwrap();
    assert!(preview.outcome.changed && preview.added[0].message.text().contains("ls: lists"));
    assert_eq!(conversation.version().await.unwrap(), Version(2));
    assert_eq!(conversation.tools().await.unwrap(), []);
    let done = conversation.set_tools(tools.clone()).await.unwrap();
    assert_eq!(done.to_json(), preview.outcome.to_json());
    assert_eq!(conversation.tools_at(Version(2)).await.unwrap(), []);
    assert_eq!(conversation.tools_at(Version(3)).await.unwrap(), tools);
    assert_eq!(conversation.tools_at(Version(4)).await.unwrap_err().code(), "version_not_found");
}

#[tokio::test]
async fn a_preview_lists_the_tool_descriptions_that_are_not_sent() {
    let (_recto, conversation) = conversation().await;
    let preview = conversation.preview_tools(vec![Tool::new("ls", "lists")]).await.unwrap();
    assert_eq!(preview.descriptions, [LogIndex(2)]);
    assert_eq!(preview.added[0].index, LogIndex(2));
    let preview =
        conversation.preview(recto::Append { messages: vec![Message::user("x")] }).await.unwrap();
    assert!(preview.descriptions.is_empty());
}

#[tokio::test]
async fn entries_are_counted_and_searched_without_an_index() {
    let (recto, conversation) = conversation().await;
    let all = recto::Query { scope: recto::Scope::All, ..recto::Query::default() };
    assert_eq!(conversation.count(&recto::Query::default()).await.unwrap(), 1);
    assert_eq!(conversation.count(&all).await.unwrap(), 2);
    conversation.append([Message::user("one more")]).await.unwrap();
    let newest = conversation.version().await.unwrap();
    let fork = conversation.fork("fork", newest).await.unwrap();
    fork.append([Message::user("one of the fork")]).await.unwrap();
    for text in ["One", "two", "none", "", "one two", "one more"] {
        let found = |found: Vec<recto::FoundMessage>| -> Vec<(String, LogIndex)> {
            found.into_iter().map(|found| (found.conversation, found.index)).collect()
        };
        for limit in [1, 2, 9] {
            let indexed = found(recto.search(text, limit).await.unwrap());
            let unindexed = found(recto.search_without_index(text, limit).await.unwrap());
            assert_eq!(unindexed, indexed, "{text}");
            assert_eq!(text == "One" && limit == 9, indexed.len() == 3, "{text} {indexed:?}");
        }
    }
}
