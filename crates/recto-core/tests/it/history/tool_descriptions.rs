//! Setting tools, and the tool description in the view.

use recto_core::{BatchIndex, Conversation, Rollback, Version};

use crate::talk::{after, append, fresh, tools, view, with_tools};

fn texts(talk: &Conversation) -> Vec<String> {
    talk.messages().map(|message| message.text().into_owned()).collect()
}

fn description(name: &str) -> String {
    format!("Available tools:\n- {name}: does it")
}

fn set(talk: &Conversation, names: &[&str]) -> Conversation {
    talk.set_tools(tools(names), 50).expect("it is accepted").0
}

#[test]
fn new_tools_take_the_place_of_a_stale_description_in_a_new_batch() {
    let talk = after(with_tools(&["old"]), &[&append(1)]);
    let next = set(&talk, &["new"]);
    assert_eq!(texts(&next), [description("new"), "x".into()]);
    assert_eq!(next.stats().current_batch_index, BatchIndex(1));
    assert_eq!(
        next.snapshot(BatchIndex(1)).map(|found| found.description),
        Ok("SET_TOOLS".into())
    );
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
fn new_tools_are_appended_where_no_description_is_visible() {
    let talk = after(fresh(), &[&append(1)]);
    let next = set(&talk, &["new"]);
    assert_eq!(texts(&next), ["x".into(), description("new")]);
    assert_eq!(next.stats().total_batches, 1, "appending opens no batch");
}

#[test]
fn a_pinned_stale_description_stays_and_the_new_one_is_appended() {
    let pin = r#"{"operation":"MARK","indices":[0],"mark":"pinned"}"#;
    let talk = after(with_tools(&["old"]), &[&append(1), pin]);
    let next = set(&talk, &["new"]);
    assert_eq!(texts(&next), [description("old"), "x".into(), description("new")]);
    let clear = after(next.clone(), &[r#"{"operation":"CLEAR"}"#]);
    assert_eq!(texts(&clear), [description("old"), description("new")]);
}

#[test]
fn setting_the_same_tools_changes_nothing() {
    let talk = after(with_tools(&["f"]), &[&append(1)]);
    let (next, outcome) = talk.set_tools(tools(&["f"]), 50).expect("it is accepted");
    assert_eq!((view(&next), next.log().len()), (view(&talk), talk.log().len()));
    assert_eq!((next.version(), outcome.changed), (talk.version(), false));
}

#[test]
fn a_conversation_that_gives_up_its_tools_describes_none_after_clear() {
    let talk = set(&after(with_tools(&["old"]), &[&append(1)]), &[]);
    assert!(talk.tools().is_none());
    let clear = after(talk, &[r#"{"operation":"CLEAR","keepSystemMessage":false}"#]);
    assert!(clear.view().is_empty());
}

#[test]
fn after_every_clear_the_present_description_is_visible_once() {
    let talk = set(&after(with_tools(&["old"]), &[&append(2)]), &["new"]);
    let clears = [
        r#"{"operation":"CLEAR"}"#,
        r#"{"operation":"CLEAR","keepSystemMessage":false}"#,
        r#"{"operation":"CLEAR","scope":"all"}"#,
        r#"{"operation":"CLEAR","scope":"all","keepSystemMessage":false}"#,
        r#"{"operation":"clear"}"#,
    ];
    for clear in clears {
        let next = after(talk.clone(), &[clear]);
        assert_eq!(texts(&next), [description("new")], "{clear}");
        assert_eq!(next.log().len(), talk.log().len(), "{clear}: the log has it already");
    }
}
