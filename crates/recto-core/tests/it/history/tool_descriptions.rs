//! Setting tools, and the tool description in the view.

use recto_core::{BatchIndex, Conversation, Rollback, Version};

use crate::conversations::{after, append, fresh, tools, view, with_tools};

fn texts(conversation: &Conversation) -> Vec<String> {
    conversation.messages().map(|message| message.text().into_owned()).collect()
}

fn description(name: &str) -> String {
    format!("Available tools:\n- {name}: does it")
}

fn set(conversation: &Conversation, names: &[&str]) -> Conversation {
    conversation.set_tools(tools(names), 50).expect("it is accepted").0
}

#[test]
fn the_description_of_new_tools_replaces_a_stale_one_in_a_new_batch() {
    let conversation = after(with_tools(&["old"]), &[&append(1)]);
    let next = set(&conversation, &["new"]);
    assert_eq!(texts(&next), [description("new"), "x".into()]);
    assert_eq!(next.stats().current_batch_index, BatchIndex(1));
    assert_eq!(next.snapshot(BatchIndex(1)).map(|found| found.reason), Ok("SET_TOOLS".into()));
    let (back, outcome) = next.apply(Rollback::ToBatch(BatchIndex(0)), 51).expect("it exists");
    assert_eq!(texts(&back), [description("new"), "x".into()], "the tools are the new ones");
    assert!(!outcome.tools_changed());
    let (back, outcome) = next.apply(Rollback::ToVersion(Version(1)), 51).expect("it exists");
    assert_eq!(texts(&back)[0], description("old"));
    assert_eq!(back.tools().map(|tools| tools.tools()), Some(&*tools(&["old"])));
    assert!(outcome.tools_changed());
    assert_eq!(outcome.to_json()["toolsChanged"], true);
}

#[test]
fn the_description_of_new_tools_is_appended_if_none_is_visible() {
    let conversation = after(fresh(), &[&append(1)]);
    let next = set(&conversation, &["new"]);
    assert_eq!(texts(&next), ["x".into(), description("new")]);
    assert_eq!(next.stats().total_batches, 1, "appending opens no batch");
}

#[test]
fn a_pinned_stale_description_stays_and_the_new_one_is_appended() {
    let pin = r#"{"operation":"MARK","indices":[0],"mark":"pinned"}"#;
    let conversation = after(with_tools(&["old"]), &[&append(1), pin]);
    let next = set(&conversation, &["new"]);
    assert_eq!(texts(&next), [description("old"), "x".into(), description("new")]);
    let clear = after(next.clone(), &[r#"{"operation":"CLEAR"}"#]);
    assert_eq!(texts(&clear), [description("old"), description("new")]);
}

#[test]
fn setting_the_same_tools_changes_nothing() {
    let conversation = after(with_tools(&["f"]), &[&append(1)]);
    let (next, outcome) = conversation.set_tools(tools(&["f"]), 50).expect("it is accepted");
    assert_eq!((view(&next), next.log().len()), (view(&conversation), conversation.log().len()));
    assert_eq!((next.version(), outcome.changed), (conversation.version(), false));
}

#[test]
fn clear_shows_no_description_after_the_tools_were_removed() {
    let conversation = set(&after(with_tools(&["old"]), &[&append(1)]), &[]);
    assert!(conversation.tools().is_none());
    let clear = after(conversation, &[r#"{"operation":"CLEAR","keepSystemMessage":false}"#]);
    assert!(clear.view().is_empty());
}

#[test]
fn after_every_clear_the_present_description_is_visible_once() {
    let conversation = set(&after(with_tools(&["old"]), &[&append(2)]), &["new"]);
    let clears = [
        r#"{"operation":"CLEAR"}"#,
        r#"{"operation":"CLEAR","keepSystemMessage":false}"#,
        r#"{"operation":"CLEAR","scope":"all"}"#,
        r#"{"operation":"CLEAR","scope":"all","keepSystemMessage":false}"#,
        r#"{"operation":"clear"}"#,
    ];
    for clear in clears {
        let next = after(conversation.clone(), &[clear]);
        assert_eq!(texts(&next), [description("new")], "{clear}");
        assert_eq!(next.log().len(), conversation.log().len(), "{clear}: the log has it already");
    }
}
