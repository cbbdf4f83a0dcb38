//! Tools and their descriptions (section 8).

use serde_json::json;
use testkit::{Model, Settings, Tool};

use super::{append, append_system, apply, model, model_with_tools, read, search};

#[test]
fn other_tools_replace_the_visible_stale_description_in_a_new_batch() {
    let mut model = model_with_tools(&search());
    append(&mut model, &["a"]);
    let outcome = model.set_tools(&read(), 2_000).unwrap();
    assert_eq!((outcome.view, outcome.batch, outcome.added), (vec![2, 1], 1, vec![2]));
    assert_eq!(model.text(2), "Available tools:\n- read: open a page");
    assert!(outcome.tools_changed && model.is_written_by_engine(2));
}

#[test]
fn the_first_tools_append_their_description() {
    let mut model = model();
    append(&mut model, &["a"]);
    let outcome = model.set_tools(&read(), 2_000).unwrap();
    assert_eq!((outcome.view, outcome.batch, outcome.version), (vec![0, 1], 0, 2));
}

#[test]
fn without_tools_no_description_is_visible_unless_it_is_pinned() {
    let mut model = model_with_tools(&search());
    append(&mut model, &["a"]);
    let outcome = model.set_tools(&json!([]), 2_000).unwrap();
    assert_eq!((outcome.view, outcome.batch, outcome.added), (vec![1], 1, vec![]));
    let outcome = model.set_tools(&json!([]), 2_000).unwrap();
    assert!(!outcome.changed && !outcome.tools_changed, "the same tools change nothing");
    apply(&mut model, json!({"operation": "UNDO"}));
    assert_eq!((model.tools()[0].name.as_str(), model.view()), ("search", &[0, 1][..]));
    apply(&mut model, json!({"operation": "MARK", "indices": [0], "mark": "pinned"}));
    let outcome = model.set_tools(&json!([]), 2_000).unwrap();
    assert_eq!((&outcome.view[..], outcome.batch, outcome.changed), (&[0, 1][..], 0, true));
    // Without tools nothing is stale, but a visible description that the engine wrote causes the warning.
    assert_eq!(outcome.warned("stale_tools"), Some(&[0][..]));
}

#[test]
fn setting_no_tools_without_a_visible_description_is_a_version_and_no_batch() {
    let mut model = model_with_tools(&search());
    append(&mut model, &["a"]);
    apply(&mut model, json!({"operation": "DELETE", "indices": [0]}));
    let outcome = model.set_tools(&json!([]), 2_000).unwrap();
    assert_eq!((outcome.version, outcome.batch, outcome.tools_changed), (3, 1, true));
}

#[test]
fn tools_that_differ_only_in_a_schema_are_other_tools_with_the_same_description() {
    let mut model = model_with_tools(&search());
    let with_schema = json!([{"name": "search", "description": "find pages", "input_schema": {"type": "object"}}]);
    let outcome = model.set_tools(&with_schema, 2_000).unwrap();
    assert_eq!((outcome.version, outcome.batch, outcome.log), (1, 0, 1));
    assert!(outcome.changed && outcome.tools_changed);
    assert_eq!(model.tools()[0].json, with_schema[0]);
}

#[test]
fn setting_other_tools_hides_every_stale_description_and_shows_a_hidden_present_one() {
    let mut model = model_with_tools(&search());
    append(&mut model, &["a"]);
    model.set_tools(&read(), 2_000).unwrap();
    append_system(&mut model, &["可用工具:\n- old: one"]);
    let outcome = model.set_tools(&search(), 2_000).unwrap();
    assert_eq!((outcome.view, outcome.hidden), (vec![0, 1], vec![2, 3]));
    assert_eq!((outcome.shown, outcome.added), (vec![0], vec![]));
}

#[test]
fn malformed_tools_are_refused_and_change_nothing() {
    let mut model = model_with_tools(&search());
    for tools in [json!(null), json!({}), json!(["a"]), json!([{"name": "a"}]), json!([{}])] {
        assert_eq!(model.set_tools(&tools, 2_000).unwrap_err().code, "invalid_operation");
    }
    assert_eq!((model.version(), model.tools()[0].name.as_str()), (0, "search"));
}

#[test]
fn rollback_to_a_version_undo_and_redo_restore_the_tools_and_report_it() {
    let mut model = model_with_tools(&search());
    model.set_tools(&read(), 2_000).unwrap();
    assert!(apply(&mut model, json!({"operation": "UNDO"})).tools_changed);
    assert_eq!(model.tools()[0].name, "search");
    assert!(apply(&mut model, json!({"operation": "REDO"})).tools_changed);
    assert_eq!(model.tools()[0].name, "read");
    let back = apply(&mut model, json!({"operation": "ROLLBACK", "targetVersion": 0}));
    assert_eq!((back.tools_changed, model.tools()[0].name.as_str()), (true, "search"));
    assert_eq!((model.view(), back.warned("stale_tools")), (&[0][..], None));
    let again = apply(&mut model, json!({"operation": "ROLLBACK", "targetVersion": 0}));
    assert!(again.changed && !again.tools_changed);
}

#[test]
fn operations_after_a_rollback_in_one_list_use_the_restored_tools() {
    let mut model = model_with_tools(&search());
    model.set_tools(&read(), 2_000).unwrap();
    let ops = json!([{"operation": "ROLLBACK", "targetVersion": 0}, {"operation": "CLEAR"}]);
    assert_eq!(model.apply(&json!({"ops": ops}), 2_000).unwrap().view, [0]);
}

#[test]
fn rollback_to_a_batch_keeps_the_tools_and_warns_about_pinned_stale_descriptions() {
    let mut model = model_with_tools(&search());
    apply(&mut model, json!({"operation": "BATCH_START"}));
    model.set_tools(&read(), 2_000).unwrap();
    apply(&mut model, json!({"operation": "MARK", "indices": [0], "mark": "pinned"}));
    let back = apply(&mut model, json!({"operation": "ROLLBACK", "targetBatchIndex": 0}));
    assert_eq!(
        (&back.view[..], back.tools_changed),
        (&[0][..], false),
        "no description is hidden or added"
    );
    assert_eq!(back.warned("stale_tools"), Some(&[0][..]));
}

#[test]
fn returning_to_a_batch_hides_every_stale_description_and_opens_no_batch() {
    let mut model = model_with_tools(&search());
    append_system(&mut model, &["be brief", "可用工具:\n- old: one"]);
    apply(&mut model, json!({"operation": "BATCH_START", "boundary": 3}));
    model.set_tools(&read(), 2_000).unwrap();
    let back = apply(&mut model, json!({"operation": "ROLLBACK", "targetBatchIndex": 0}));
    assert_eq!((back.view, back.batches), (vec![3, 1], 1));
    // The changed view is kept as the view of the batch.
    apply(&mut model, json!({"operation": "BATCH_START"}));
    let back = apply(&mut model, json!({"operation": "BATCH_END"}));
    assert_eq!((back.view, back.warnings), (vec![3, 1], vec![]));
}

#[test]
fn carry_skips_pinned_stale_descriptions_and_visible_entries() {
    let mut model = model_with_tools(&search());
    append(&mut model, &["a"]);
    apply(&mut model, json!({"operation": "BATCH_START"}));
    append_system(&mut model, &["Available tools:\n- old: one"]);
    apply(&mut model, json!({"operation": "MARK", "indices": [2], "mark": "pinned"}));
    model.set_tools(&read(), 2_000).unwrap();
    assert_eq!(model.view(), [3, 1, 2]);
    let back = apply(&mut model, json!({"operation": "BATCH_END", "carry": "all"}));
    assert_eq!(back.view, [3, 1], "3 replaced 0, so it is not carried");
}

#[test]
fn tool_descriptions_are_recognised_by_their_form() {
    let lists = ["Available tools:\n- a", "可用工具:\n- a: b\n- c", "Tools:\n- x"];
    let others = [
        "Available tools:",
        "Available tools:\n",
        "Available tools:\n- a\n",
        "Available tools:\n- a\n\nBe careful.",
        "Available tools:\n-a",
        "Available tools: \n- a",
        " Available tools:\n- a",
        "Other tools:\n- a",
        "- a",
    ];
    for (texts, is_description) in [(&lists[..], true), (&others[..], false)] {
        for text in texts {
            let tools = Tool::read_list(&search()).unwrap();
            let settings = Settings { tools, heading: "Tools:".to_owned(), ..Settings::default() };
            let mut model = Model::new(settings, 1_000);
            let warned = append_system(&mut model, &[text]).warned("stale_tools").is_some();
            assert_eq!(warned, is_description, "{text:?}");
            let kept = apply(&mut model, json!({"operation": "CLEAR"})).view;
            assert_eq!(kept == [0, 1], !is_description, "{text:?}");
        }
    }
}

#[test]
fn a_user_message_with_the_text_of_a_description_is_not_a_description() {
    let mut model = model_with_tools(&search());
    let text = model.tool_description().unwrap();
    apply(&mut model, json!({"operation": "DELETE", "indices": [0]}));
    append(&mut model, &[&text, "Available tools:\n- old: one"]);
    let outcome = apply(&mut model, json!({"operation": "BATCH_START", "withTools": true}));
    assert_eq!((outcome.view, outcome.warnings), (vec![0, 1, 2], vec![]));
}

#[test]
fn a_description_of_several_lines_is_recognised_only_if_it_is_present_or_written_by_the_engine() {
    let tools = json!([{"name": "shell", "description": "run\na command"}]);
    let mut model = model_with_tools(&tools);
    append_system(&mut model, &["可用工具:\n- shell: run\na command"]);
    apply(&mut model, json!({"operation": "DELETE", "indices": [0]}));
    assert_eq!(apply(&mut model, json!({"operation": "CLEAR"})).view, [1], "it is present");
    apply(&mut model, json!({"operation": "RESTORE", "indices": [0]}));
    // With other tools, its text does not make it a description.
    let outcome = model.set_tools(&search(), 2_000).unwrap();
    assert_eq!((&outcome.view[..], outcome.warned("stale_tools")), (&[2, 1][..], None));
}

#[test]
fn without_tools_a_hand_written_description_is_an_ordinary_system_message() {
    let mut model = model();
    let outcome = append_system(&mut model, &["Available tools:\n- old: one"]);
    assert!(outcome.warnings.is_empty());
    assert_eq!(apply(&mut model, json!({"operation": "CLEAR"})).view, [0]);
    let start = json!({"operation": "BATCH_START", "boundary": 1, "withTools": true});
    assert!(apply(&mut model, start).view.is_empty());
    let back = apply(&mut model, json!({"operation": "ROLLBACK", "targetBatchIndex": 1}));
    assert_eq!((back.view, back.warnings), (vec![0], vec![]));
}

#[test]
fn setting_no_tools_hides_hand_written_descriptions_too() {
    let mut model = model_with_tools(&search());
    append_system(&mut model, &["可用工具:\n- old: one", "Available tools:"]);
    assert_eq!(model.set_tools(&json!([]), 2_000).unwrap().view, [2]);
}

#[test]
fn messages_given_at_creation_are_visible_at_version_0_after_the_description() {
    let messages = json!([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]);
    let tools = Tool::read_list(&search()).unwrap();
    let settings = Settings { tools, ..Settings::default() };
    let model = Model::with_messages(settings.clone(), &messages, 1_000).unwrap();
    assert_eq!((model.view(), model.version(), model.batches()), (&[0, 1, 2][..], 0, 1));
    assert_eq!(
        (model.text(0), model.timestamp(1)),
        ("Available tools:\n- search: find pages", 1_000)
    );
    assert_eq!(model.initial_messages(), &messages);
    for text in ["Available tools:\n- search: find pages", "可用工具:\n- search: find pages"] {
        let messages =
            json!([{"role": "user", "content": "a"}, {"role": "system", "content": text}]);
        let model = Model::with_messages(settings.clone(), &messages, 1_000).unwrap();
        assert_eq!((model.view(), model.is_written_by_engine(1)), (&[0, 1][..], false));
    }
}

#[test]
fn batch_start_with_tools_keeps_every_present_description_at_its_position() {
    let mut model = model_with_tools(&search());
    append(&mut model, &["a"]);
    append_system(&mut model, &["可用工具:\n- search: find pages", "Available tools:\n- old: one"]);
    append(&mut model, &["b"]);
    let start = json!({"operation": "BATCH_START", "boundary": 4, "withTools": true});
    assert_eq!(apply(&mut model, start).view, [0, 2, 4]);
    let start = json!({"operation": "BATCH_START", "boundary": 5, "withTools": false});
    assert!(apply(&mut model, start).view.is_empty());
    let start = json!({"operation": "BATCH_START", "withTools": true});
    assert_eq!(apply(&mut model, start).view, [2], "the newest present description is shown");
}

#[test]
fn batch_start_with_tools_keeps_a_pinned_stale_description_among_the_leading_messages() {
    let mut model = model_with_tools(&search());
    append_system(&mut model, &["Available tools:\n- old: one"]);
    append(&mut model, &["a"]);
    apply(&mut model, json!({"operation": "MARK", "indices": [1], "mark": "pinned"}));
    apply(&mut model, json!({"operation": "DELETE", "indices": [0]}));
    let outcome = apply(&mut model, json!({"operation": "BATCH_START", "withTools": true}));
    assert_eq!(
        (&outcome.view[..], outcome.warned("stale_tools")),
        (&[1, 0, 2][..], Some(&[1][..]))
    );
}
