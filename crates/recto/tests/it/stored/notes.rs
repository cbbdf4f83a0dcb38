//! Notes that are stored with versions.

use recto::{Append, Delete, Fit, LogIndex, Note, Undo, Version, WriteOptions};

use super::{say, settings};
use crate::places::{Place, on_every_store};

on_every_store! {
    a_note_is_stored_with_its_version_and_survives_packing
    a_request_without_a_version_stores_no_note
    a_key_belongs_to_a_request_with_its_note
}

fn note(json: &str) -> Note {
    Note::from_json(json).expect("it is a note")
}

fn noted(json: &str) -> WriteOptions {
    WriteOptions { note: Some(note(json)), ..WriteOptions::default() }
}

async fn a_note_is_stored_with_its_version_and_survives_packing(place: Place) {
    let recto = place.recto();
    let conversation = recto.create("a", settings()).await.unwrap();
    let text = r#"{"run": "r-17",  "step": 1.50}"#;
    let append = |number| Append { messages: vec![say(number)] };
    conversation.apply_with(append(0), noted(text)).await.unwrap();
    conversation.apply_with(Delete { indices: vec![LogIndex(0)] }, noted("7")).await.unwrap();
    conversation.apply_with(Undo, noted("[]")).await.unwrap();
    conversation.set_tools_with(Vec::new(), noted("true")).await.unwrap();
    for number in 1..150 {
        conversation.append([say(number)]).await.unwrap();
    }
    let fork = conversation.fork("b", Version(1)).await.unwrap();
    for conversation in [conversation, place.recto().conversation("a").await.unwrap()] {
        let mut found = Vec::new();
        let end = conversation.version().await.unwrap().0 + 1;
        for version in conversation.versions(Version(0)..Version(end)).await.unwrap() {
            let info = conversation.version_info(version.version).await.unwrap();
            assert_eq!(info, version);
            found.extend(version.note.map(|note| (version.version.0, note.json().to_owned())));
        }
        assert_eq!(found, [(1, text.to_owned()), (2, "7".into()), (3, "[]".into())]);
        assert!(conversation.verify().await.unwrap().is_sound());
    }
    let info = fork.version_info(Version(1)).await.unwrap();
    assert_eq!(info.note, Some(note(text)));
}

async fn a_request_without_a_version_stores_no_note(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    conversation.append([say(0)]).await.unwrap();
    let idle = conversation.apply_with(Fit::within(1_000), noted("7")).await.unwrap();
    assert!(!idle.changed);
    assert_eq!(conversation.version_info(Version(1)).await.unwrap().note, None);
    conversation.preview_with(Fit::within(1_000), noted("7")).await.unwrap();
    let refused = Delete { indices: vec![LogIndex(9)] };
    conversation.apply_with(refused, noted("7")).await.unwrap_err();
    assert_eq!(conversation.version().await.unwrap(), Version(1));
}

async fn a_key_belongs_to_a_request_with_its_note(place: Place) {
    let conversation = place.recto().create("a", settings()).await.unwrap();
    let write = |json: Option<&str>| WriteOptions {
        idempotency_key: Some("k".into()),
        note: json.map(note),
        ..WriteOptions::default()
    };
    let append = || Append { messages: vec![say(0)] };
    let first = conversation.apply_with(append(), write(Some("7"))).await.unwrap();
    let again = conversation.apply_with(append(), write(Some("7"))).await.unwrap();
    assert_eq!(first.version, again.version);
    for other in [Some("8"), None] {
        let refused = conversation.apply_with(append(), write(other)).await.unwrap_err();
        assert_eq!(refused.code(), "invalid_operation");
    }
}
