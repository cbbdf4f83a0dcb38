//! What would be done is what is done, and a version that was not seen is refused.

use recto::{Keep, LogIndex, Message, Recto, Settings, Tool, Version, Write};
use recto_core::Approx;

async fn talk() -> (Recto, recto::StoredConversation) {
    let recto = Recto::open("memory:").await.unwrap();
    let talk = recto.create("talk", Settings::counting_with(Approx)).await.unwrap();
    talk.append([Message::user("one"), Message::user("two")]).await.unwrap();
    talk.apply(recto::Delete { indices: vec![LogIndex(0)] }).await.unwrap();
    (recto, talk)
}

#[tokio::test]
async fn a_prune_is_foretold() {
    let (_recto, talk) = talk().await;
    let keep = Keep::newest();
    let would = talk.preview_prune(&keep, Some(Version(2))).await.unwrap();
    assert_eq!((&*would.entries, would.kept_versions), (&[LogIndex(0)][..], 1));
    assert_eq!(talk.message(LogIndex(0)).await.unwrap().unwrap().text(), "one");
    for expected in [0, 1, 3] {
        let expected = Some(Version(expected));
        let refused = talk.preview_prune(&keep, expected).await.unwrap_err();
        assert_eq!(refused.code(), "version_conflict");
        let refused = talk.prune_with(&keep, expected).await.unwrap_err();
        assert_eq!(refused.code(), "version_conflict");
    }
    let refused = talk.preview_prune(&Keep::default(), None).await.unwrap_err();
    assert_eq!(refused.code(), "invalid_operation");
    assert_eq!(talk.prune_with(&keep, Some(Version(2))).await.unwrap(), would);
    assert!(talk.verify().await.unwrap().is_sound());
}

#[tokio::test]
async fn an_erasure_may_insist_on_a_version() {
    let (_recto, talk) = talk().await;
    let refused = talk.erase_with(LogIndex(1), Some(Version(1))).await.unwrap_err();
    assert_eq!(refused.code(), "version_conflict");
    assert_eq!(talk.message(LogIndex(1)).await.unwrap().unwrap().text(), "two");
    talk.erase_with(LogIndex(1), Some(Version(2))).await.unwrap();
    assert_ne!(talk.message(LogIndex(1)).await.unwrap().unwrap().text(), "two");
}

#[tokio::test]
async fn other_tools_are_foretold_and_known_of_every_version() {
    let (_recto, talk) = talk().await;
    let tools = vec![Tool::new("ls", "lists")];
    let would = talk.preview_tools(tools.clone(), Write::default()).await.unwrap();
    assert!(would.outcome.changed && would.added[0].message.text().contains("ls: lists"));
    assert_eq!(talk.version().await.unwrap(), Version(2));
    assert_eq!(talk.tools().await.unwrap(), []);
    let done = talk.set_tools(tools.clone(), Write::default()).await.unwrap();
    assert_eq!(done.to_json(), would.outcome.to_json());
    assert_eq!(talk.tools_at(Version(2)).await.unwrap(), []);
    assert_eq!(talk.tools_at(Version(3)).await.unwrap(), tools);
    assert_eq!(talk.tools_at(Version(4)).await.unwrap_err().code(), "version_not_found");
}

#[tokio::test]
async fn a_preview_names_the_descriptions_of_tools_that_are_not_sent() {
    let (_recto, talk) = talk().await;
    let preview =
        talk.preview_tools(vec![Tool::new("ls", "lists")], Write::default()).await.unwrap();
    assert_eq!(preview.descriptions, [LogIndex(2)]);
    assert_eq!(preview.added[0].index, LogIndex(2));
    let preview = talk.preview(recto::Append { messages: vec![Message::user("x")] }).await.unwrap();
    assert!(preview.descriptions.is_empty());
}

#[tokio::test]
async fn entries_are_counted_and_searched_without_an_index() {
    let (recto, talk) = talk().await;
    let all = recto::Query { scope: recto::Scope::All, ..recto::Query::default() };
    assert_eq!(talk.count(&recto::Query::default()).await.unwrap(), 1);
    assert_eq!(talk.count(&all).await.unwrap(), 2);
    for text in ["One", "two", "none", "", "one two"] {
        let found = |found: Vec<recto::FoundMessage>| -> Vec<LogIndex> {
            found.into_iter().map(|found| found.index).collect()
        };
        let indexed = found(recto.search(text, 9).await.unwrap());
        assert_eq!(found(recto.search_without_index(text, 9).await.unwrap()), indexed, "{text}");
    }
}
