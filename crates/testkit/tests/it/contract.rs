//! Sentences of the contract that the conformance cases leave out.

use serde_json::{Value, json};
use testkit::{Model, Outcome, Settings, Tool};

fn model() -> Model {
    Model::new(Settings::default(), 1_000)
}

fn model_with_tools(tools: &Value) -> Model {
    let tools = Tool::read_list(tools).unwrap();
    Model::new(Settings { tools, ..Settings::default() }, 1_000)
}

fn apply(model: &mut Model, op: Value) -> Outcome {
    model.apply(&json!({"op": op}), 2_000).unwrap()
}

fn refused(model: &mut Model, op: Value) -> &'static str {
    model.apply(&json!({"op": op}), 2_000).unwrap_err().code
}

fn append(model: &mut Model, contents: &[&str]) -> Outcome {
    let messages: Vec<Value> =
        contents.iter().map(|content| json!({"role": "user", "content": content})).collect();
    apply(model, json!({"operation": "APPEND", "messages": messages}))
}

fn search() -> Value {
    json!([{"name": "search", "description": "find pages"}])
}

fn read() -> Value {
    json!([{"name": "read", "description": "open a page"}])
}

#[test]
fn other_tools_replace_the_visible_stale_description_in_a_new_batch() {
    let mut model = model_with_tools(&search());
    append(&mut model, &["a"]);
    let outcome = model.set_tools(&read(), 2_000).unwrap();
    assert_eq!((outcome.view, outcome.batch, outcome.added), (vec![2, 1], 1, vec![2]));
    assert_eq!(model.text(2), "可用工具:\n- read: open a page");
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
    // Nothing is left to be hidden.
    let outcome = model.set_tools(&json!([]), 2_000).unwrap();
    assert_eq!((outcome.view, outcome.batch), (vec![1], 1));
    apply(&mut model, json!({"operation": "UNDO"}));
    apply(&mut model, json!({"operation": "UNDO"}));
    assert_eq!((model.tools()[0].name.as_str(), model.view()), ("search", &[0, 1][..]));
    apply(&mut model, json!({"operation": "MARK", "indices": [0], "mark": "pinned"}));
    let outcome = model.set_tools(&json!([]), 2_000).unwrap();
    assert_eq!((outcome.view, outcome.batch), (vec![0, 1], 0));
}

#[test]
fn undo_takes_back_the_tools_and_rollback_to_a_version_does_not() {
    let mut model = model_with_tools(&search());
    model.set_tools(&read(), 2_000).unwrap();
    apply(&mut model, json!({"operation": "UNDO"}));
    assert_eq!(model.tools()[0].name, "search");
    apply(&mut model, json!({"operation": "REDO"}));
    assert_eq!(model.tools()[0].name, "read");
    apply(&mut model, json!({"operation": "ROLLBACK", "targetVersion": 0}));
    assert_eq!((model.tools()[0].name.as_str(), model.view()), ("read", &[0][..]));
    // What is visible now is stale, and CLEAR mends it.
    assert_eq!(apply(&mut model, json!({"operation": "CLEAR"})).view, [1]);
}

#[test]
fn a_fit_with_nothing_to_do_makes_no_version_alone_and_no_batch_in_a_list() {
    let mut model = model();
    append(&mut model, &["a", "b"]);
    let fit = json!({"operation": "FIT", "maxTokens": 100});
    let alone = model.apply(&json!({"ops": [fit]}), 2_000).unwrap();
    assert_eq!((alone.changed, alone.version, alone.shared_prefix_messages), (false, 1, 2));
    let listed = model.apply(&json!({"ops": [fit, fit]}), 2_000).unwrap();
    assert_eq!((listed.changed, listed.version, listed.batches), (true, 2, 1));
}

#[test]
fn redo_outlives_refused_and_unchanged_requests() {
    let mut model = model();
    append(&mut model, &["a"]);
    append(&mut model, &["b"]);
    apply(&mut model, json!({"operation": "UNDO"}));
    assert_eq!(
        refused(&mut model, json!({"operation": "DELETE", "indices": [9]})),
        "index_out_of_range"
    );
    assert!(!apply(&mut model, json!({"operation": "FIT", "maxTokens": 100})).changed);
    assert_eq!(apply(&mut model, json!({"operation": "REDO"})).view, [0, 1]);
}

#[test]
fn nothing_is_carried_to_the_current_batch_for_it_was_not_left() {
    let mut model = model();
    append(&mut model, &["a"]);
    apply(&mut model, json!({"operation": "BATCH_START"}));
    append(&mut model, &["b"]);
    let end = json!({"operation": "BATCH_END", "targetBatchIndex": 1, "carry": "all"});
    assert_eq!(apply(&mut model, end).view, [0, 1]);
    let end = json!({"operation": "BATCH_END", "targetBatchIndex": 0, "carry": "all"});
    assert_eq!(apply(&mut model, end).view, [0, 1]);
}

#[test]
fn what_an_operation_added_when_it_left_a_batch_is_carried_too() {
    let mut model = model();
    append(&mut model, &["a", "b"]);
    let message = json!({"role": "user", "content": "x"});
    apply(&mut model, json!({"operation": "INSERT", "position": 0, "messages": [message]}));
    let end = json!({"operation": "BATCH_END", "targetBatchIndex": 0, "carry": "all"});
    assert_eq!(apply(&mut model, end).view, [0, 1, 2]);
}

#[test]
fn a_pending_call_is_not_torn_and_a_hidden_result_tears_its_call() {
    let mut model = model();
    let call = json!([{"type": "tool_use", "id": "c", "name": "n", "input": {}}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "c", "content": "ok"}]);
    let message = |role: &str, content: &Value| json!({"role": role, "content": content});
    let calling = json!({"operation": "APPEND", "messages": [message("assistant", &call)]});
    assert!(apply(&mut model, calling).torn_calls.is_empty());
    let answering = json!({"operation": "APPEND", "messages": [message("tool", &result)]});
    let whole = apply(&mut model, answering);
    assert_eq!((whole.torn_calls, whole.torn_results), (vec![], vec![]));
    let hidden_result = apply(&mut model, json!({"operation": "DELETE", "indices": [1]}));
    assert_eq!((hidden_result.torn_calls, hidden_result.torn_results), (vec![0], vec![]));
    apply(&mut model, json!({"operation": "UNDO"}));
    let hidden_call = apply(&mut model, json!({"operation": "DELETE", "indices": [0]}));
    assert_eq!((hidden_call.torn_calls, hidden_call.torn_results), (vec![], vec![1]));
}

#[test]
fn fit_is_stopped_by_a_call_that_is_dropped_but_not_by_one_that_is_pinned() {
    let call = json!({"role": "assistant", "content":
        [{"type": "tool_use", "id": "c", "name": "n", "input": {}}]});
    let result = json!({"role": "tool", "content":
        [{"type": "tool_result", "tool_use_id": "c", "content": "ok"}]});
    let last = json!({"role": "user", "content": "a"});
    let mut model = model();
    apply(&mut model, json!({"operation": "APPEND", "messages": [call, result, last]}));
    let fit = json!({"operation": "FIT", "maxTokens": model.tokens() - 1});
    assert_eq!(apply(&mut model, fit).view, [2]);
    apply(&mut model, json!({"operation": "UNDO"}));
    apply(&mut model, json!({"operation": "MARK", "indices": [0], "mark": "pinned"}));
    let fit = json!({"operation": "FIT", "maxTokens": model.tokens() - 1});
    assert_eq!(apply(&mut model, fit).view, [0, 2], "the result does not fit beside the last");
}

#[test]
fn a_snapshot_tells_when_and_why_its_batch_was_opened() {
    let mut model = model();
    append(&mut model, &["a"]);
    apply(&mut model, json!({"operation": "CLEAR", "description": "fresh start"}));
    append(&mut model, &["b"]);
    let first = model.snapshot(0).unwrap();
    assert_eq!((first.timestamp, first.description, first.messages), (1_000, None, vec![0]));
    let second = model.snapshot(1).unwrap();
    assert_eq!((second.timestamp, second.message_count), (2_000, 1));
    assert_eq!(second.description.as_deref(), Some("fresh start"));
    assert_eq!(model.snapshot(2).unwrap_err().code, "batch_not_found");
}

#[test]
fn with_scope_all_the_order_is_the_logs_and_only_visible_pins_stay() {
    let mut model = model();
    append(&mut model, &["a", "b", "c"]);
    let message = json!({"role": "user", "content": "first"});
    apply(&mut model, json!({"operation": "INSERT", "position": 0, "messages": [message]}));
    apply(&mut model, json!({"operation": "DELETE", "indices": [1]}));
    apply(&mut model, json!({"operation": "MARK", "indices": [1, 3], "mark": "pinned"}));
    let truncate = json!({"operation": "TRUNCATE", "keepFirst": 1, "scope": "all"});
    assert_eq!(apply(&mut model, truncate).view, [0, 3]);
}

#[test]
fn numbers_are_whole_numbers_from_0() {
    let mut model = model();
    append(&mut model, &["a"]);
    for wrong in [json!(2.0), json!(-1), json!("2"), json!(1e3), json!(true), json!([1])] {
        let op = json!({"operation": "TRUNCATE", "keepLast": wrong});
        assert_eq!(refused(&mut model, op), "invalid_operation", "{wrong}");
    }
    let largest = json!({"operation": "TRUNCATE", "keepLast": u64::MAX});
    assert_eq!(apply(&mut model, largest).view, [0]);
}

#[test]
fn every_entry_of_an_answer_has_its_position_in_the_asked_view() {
    let mut model = model();
    append(&mut model, &["a", "b", "c"]);
    apply(&mut model, json!({"operation": "DELETE", "indices": [0]}));
    let all = model.ask_positions(&json!({"scope": "all"})).unwrap();
    assert_eq!(all, [(0, None), (1, Some(0)), (2, Some(1))]);
    let then = model.ask_positions(&json!({"version": 1, "last": 1})).unwrap();
    assert_eq!(then, [(2, Some(2))]);
}
