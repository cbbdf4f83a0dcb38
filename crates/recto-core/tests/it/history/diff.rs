//! `diff`: the entries that differ between two versions.

use recto_core::{Version};
use serde_json::json;

use crate::driver::{numbers};
use crate::talk::{after, append, fresh, view};

#[test]
fn a_diff_tells_what_is_kept_hidden_shown_and_moved_with_tokens() {
    let talk = after(
        fresh(),
        &[
            r#"{"operation":"APPEND","messages":[
                {"role":"user","content":"a"},
                {"role":"user","content":"four and more"},
                {"role":"user","content":"c"}]}"#,
            r#"{"operation":"DELETE","indices":[1]}"#,
            r#"{"operation":"APPEND","messages":[{"role":"user","content":"eight by"}]}"#,
        ],
    );
    let diff = talk.diff(Version(1), Version(3)).expect("both exist");
    assert_eq!(
        serde_json::to_value(&diff).expect("it can be written"),
        json!({
            "kept": {"messages": 2, "tokens": 8},
            "hidden": {"indices": [1], "tokens": 7},
            "shown": {"indices": [3], "tokens": 5},
            "moved": {"indices": [], "tokens": 0},
        })
    );
    let back = talk.diff(Version(3), Version(1)).expect("both exist");
    assert_eq!((back.hidden, back.shown), (diff.shown, diff.hidden));
    assert_eq!(back.kept, diff.kept);
}

#[test]
fn a_version_does_not_differ_from_itself() {
    let talk = after(fresh(), &[&append(100), r#"{"operation":"TRUNCATE","keepLast":50}"#]);
    for version in 0..=2 {
        let diff = talk.diff(Version(version), Version(version)).expect("it exists");
        assert_eq!((diff.hidden, diff.shown, diff.moved), Default::default());
        let at = talk.at(Version(version)).expect("it exists");
        assert_eq!(diff.kept.messages, at.view().len());
        assert_eq!(diff.kept.tokens, at.view().tokens());
    }
}

#[test]
fn an_entry_that_comes_back_elsewhere_is_moved() {
    // Entry 4 stands before 0; restored, 2 comes right behind 0 or 1, but 4 stays in front.
    let insert =
        r#"{"operation":"INSERT","position":0,"messages":[{"role":"user","content":"x"}]}"#;
    let talk = after(
        fresh(),
        &[
            &append(4),
            insert,
            r#"{"operation":"DELETE","indices":[4]}"#,
            r#"{"operation":"RESTORE","indices":[4]}"#,
        ],
    );
    assert_eq!(view(&talk), [0, 1, 2, 3, 4]);
    let diff = talk.diff(Version(2), Version(4)).expect("both exist");
    assert_eq!(numbers(diff.moved.indices), [4], "as few entries as explain it");
    assert_eq!(diff.moved.tokens, 4);
    assert_eq!((diff.hidden, diff.shown), Default::default());
    assert_eq!(diff.kept.messages, 5);
}

#[test]
fn of_two_stretches_that_change_places_the_shorter_one_is_moved() {
    let talk = after(
        fresh(),
        &[
            &append(300),
            r#"{"operation":"TRUNCATE","keepLast":100}"#,
            r#"{"operation":"INSERT","position":0,"messages":[{"role":"user","content":"x"}]}"#,
            r#"{"operation":"TRUNCATE","removeFirst":1}"#,
            r#"{"operation":"RESTORE","indices":[300]}"#,
        ],
    );
    let diff = talk.diff(Version(3), Version(5)).expect("both exist");
    assert_eq!(numbers(diff.moved.indices), [300]);
    let whole = talk.diff(Version(1), Version(5)).expect("both exist");
    assert_eq!(whole.hidden.indices.len(), 200);
    assert_eq!(numbers(whole.shown.indices), [300]);
    assert_eq!(whole.moved, Default::default());
}
