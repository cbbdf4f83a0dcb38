//! `diff`: the entries that differ between two versions.

use recto_core::Version;
use serde_json::json;

use crate::conversations::{after, append, fresh, view};
use crate::driver::numbers;

#[test]
fn a_diff_lists_kept_hidden_shown_and_moved_entries_with_their_tokens() {
    let conversation = after(
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
    let diff = conversation.diff(Version(1), Version(3)).expect("both exist");
    assert_eq!(
        serde_json::to_value(&diff).expect("it can be written"),
        json!({
            "kept": {"messages": 2, "tokens": 8},
            "hidden": {"indices": [1], "tokens": 7},
            "shown": {"indices": [3], "tokens": 5},
            "moved": {"indices": [], "tokens": 0},
        })
    );
    let back = conversation.diff(Version(3), Version(1)).expect("both exist");
    assert_eq!((back.hidden, back.shown), (diff.shown, diff.hidden));
    assert_eq!(back.kept, diff.kept);
}

#[test]
fn a_version_does_not_differ_from_itself() {
    let conversation = after(fresh(), &[&append(100), r#"{"operation":"TRUNCATE","keepLast":50}"#]);
    for version in 0..=2 {
        let diff = conversation.diff(Version(version), Version(version)).expect("it exists");
        assert_eq!((diff.hidden, diff.shown, diff.moved), Default::default());
        let at = conversation.at(Version(version)).expect("it exists");
        assert_eq!(diff.kept.messages, at.view().len());
        assert_eq!(diff.kept.tokens, at.view().tokens());
    }
}

#[test]
fn an_entry_that_is_restored_elsewhere_is_moved() {
    // Entry 4 is inserted before 0. RESTORE puts it after 3.
    let insert =
        r#"{"operation":"INSERT","position":0,"messages":[{"role":"user","content":"x"}]}"#;
    let conversation = after(
        fresh(),
        &[
            &append(4),
            insert,
            r#"{"operation":"DELETE","indices":[4]}"#,
            r#"{"operation":"RESTORE","indices":[4]}"#,
        ],
    );
    assert_eq!(view(&conversation), [0, 1, 2, 3, 4]);
    let diff = conversation.diff(Version(2), Version(4)).expect("both exist");
    assert_eq!(numbers(diff.moved.indices), [4], "the smallest set of entries");
    assert_eq!(diff.moved.tokens, 4);
    assert_eq!((diff.hidden, diff.shown), Default::default());
    assert_eq!(diff.kept.messages, 5);
}

#[test]
fn the_shorter_of_two_swapped_ranges_is_moved() {
    let conversation = after(
        fresh(),
        &[
            &append(300),
            r#"{"operation":"TRUNCATE","keepLast":100}"#,
            r#"{"operation":"INSERT","position":0,"messages":[{"role":"user","content":"x"}]}"#,
            r#"{"operation":"TRUNCATE","removeFirst":1}"#,
            r#"{"operation":"RESTORE","indices":[300]}"#,
        ],
    );
    let diff = conversation.diff(Version(3), Version(5)).expect("both exist");
    assert_eq!(numbers(diff.moved.indices), [300]);
    let whole = conversation.diff(Version(1), Version(5)).expect("both exist");
    assert_eq!(whole.hidden.indices.len(), 200);
    assert_eq!(numbers(whole.shown.indices), [300]);
    assert_eq!(whole.moved, Default::default());
}
