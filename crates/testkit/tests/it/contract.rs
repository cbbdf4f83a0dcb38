//! Rules of the contract that the conformance cases do not test.

mod forms;
mod tools;
mod warnings;

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

fn append_system(model: &mut Model, contents: &[&str]) -> Outcome {
    let messages: Vec<Value> =
        contents.iter().map(|content| json!({"role": "system", "content": content})).collect();
    apply(model, json!({"operation": "APPEND", "messages": messages}))
}

fn search() -> Value {
    json!([{"name": "search", "description": "find pages"}])
}

fn read() -> Value {
    json!([{"name": "read", "description": "open a page"}])
}

#[test]
fn a_request_whose_operations_change_nothing_makes_no_version() {
    let mut model = model();
    append(&mut model, &["a", "b"]);
    let fit = json!({"operation": "FIT", "maxTokens": 100});
    let delete = json!({"operation": "delete", "indices": []});
    let compress = json!({"operation": "compress", "indices": []});
    for ops in [json!([fit]), json!([fit, fit]), json!([delete, fit, compress])] {
        let outcome = model.apply(&json!({"ops": ops}), 2_000).unwrap();
        assert_eq!(
            (outcome.changed, outcome.version, outcome.shared_prefix_messages),
            (false, 1, 2)
        );
    }
    let mark = json!({"operation": "MARK", "indices": [0], "mark": "m"});
    let outcome = model.apply(&json!({"ops": [fit, mark, delete]}), 2_000).unwrap();
    assert_eq!((outcome.changed, outcome.version, outcome.batches), (true, 2, 1));
}

#[test]
fn every_other_operation_makes_a_version_even_if_the_view_stays_the_same() {
    let mut model = model();
    append(&mut model, &["a"]);
    apply(&mut model, json!({"operation": "MARK", "indices": [0], "mark": "m"}));
    let mut version = model.version();
    for op in [
        json!({"operation": "MARK", "indices": [0], "mark": "m"}),
        json!({"operation": "UNMARK", "indices": [0], "mark": "other"}),
        json!({"operation": "ROLLBACK", "targetBatchIndex": 0}),
        json!({"operation": "BATCH_END", "targetBatchIndex": 0, "carry": "all"}),
        json!({"operation": "ROLLBACK", "targetVersion": 5}),
        json!({"operation": "ARRANGE", "indices": [0]}),
        json!({"operation": "RESTORE", "indices": [0]}),
        json!({"operation": "TRUNCATE", "keepLast": 9}),
    ] {
        version += 1;
        let outcome = apply(&mut model, op.clone());
        assert_eq!((outcome.changed, outcome.version), (true, version), "{op}");
    }
    assert_eq!(model.batches(), 4, "shaping opens a batch");
}

#[test]
fn arrange_checks_existence_before_pins_and_may_list_a_hidden_pin() {
    let mut model = model();
    append(&mut model, &["a", "b", "c"]);
    apply(&mut model, json!({"operation": "DELETE", "indices": [0]}));
    apply(&mut model, json!({"operation": "MARK", "indices": [0, 1], "mark": "pinned"}));
    let arrange = |indices: Value| json!({"operation": "ARRANGE", "indices": indices});
    assert_eq!(refused(&mut model, arrange(json!([2, 3]))), "index_out_of_range");
    assert_eq!(refused(&mut model, arrange(json!([2]))), "pinned");
    // A hidden pinned entry may be left out.
    assert_eq!(apply(&mut model, arrange(json!([2, 1, 2]))).view, [2, 1]);
    assert_eq!(apply(&mut model, arrange(json!([1, 0]))).view, [1, 0]);
    assert_eq!(
        refused(&mut model, json!({"operation": "arrange", "indices": []})),
        "invalid_operation"
    );
}

#[test]
fn batch_end_without_a_target_uses_only_the_live_path() {
    let mut model = model();
    append(&mut model, &["a"]);
    apply(&mut model, json!({"operation": "BATCH_START"}));
    apply(&mut model, json!({"operation": "ROLLBACK", "targetBatchIndex": 0}));
    apply(&mut model, json!({"operation": "DELETE", "indices": [0]}));
    assert_eq!(refused(&mut model, json!({"operation": "BATCH_END"})), "batch_not_found");
    apply(&mut model, json!({"operation": "ROLLBACK", "targetVersion": 2}));
    let back = apply(&mut model, json!({"operation": "BATCH_END", "targetBatchIndex": null}));
    assert_eq!((back.batch, back.view), (0, vec![0]));
}

#[test]
fn type_indices_follow_the_view_or_list_the_whole_log() {
    let mut model = model();
    append(&mut model, &["a", "b", "c"]);
    append_system(&mut model, &["s"]);
    apply(&mut model, json!({"operation": "ARRANGE", "indices": [2, 0]}));
    let types = |map: Value| map["typeIndices"].clone();
    let visible = json!({"system": [], "user": [2, 0], "assistant": [], "tool": []});
    assert_eq!(types(model.mark_map()), visible);
    let mut all = model.mark_map_of_all();
    assert_eq!(
        all["typeIndices"],
        json!({"system": [3], "user": [0, 1, 2], "assistant": [], "tool": []})
    );
    all["typeIndices"] = visible;
    assert_eq!(all, model.mark_map(), "nothing else differs");
}

#[test]
fn the_state_counts_visible_messages_and_has_a_snapshot_of_each_batch_below_the_current_one() {
    let mut model = model();
    append(&mut model, &["a", "b"]);
    apply(&mut model, json!({"operation": "DELETE", "indices": [0]}));
    let message = |text: &str| json!({"role": "user", "content": text});
    assert_eq!(
        model.state(),
        json!({
            "messages": [message("b")],
            "batchSnapshots": [{"batchIndex": 0, "timestamp": 1_000, "messageCount": 2,
                "messages": [message("a"), message("b")]}],
            "currentBatchIndex": 1,
            "totalMessageCount": 1,
        })
    );
}

#[test]
fn the_error_of_a_small_budget_names_the_smallest_budget_that_succeeds() {
    let mut model = model();
    append_system(&mut model, &["be brief"]);
    append(&mut model, &["12345678", "1234", "12345678"]);
    assert_eq!(model.tokens(), 5 + 5 + 4 + 5);
    let needed = |model: &mut Model, fit: Value| {
        let refusal = model.apply(&json!({"op": fit}), 2_000).unwrap_err();
        assert_eq!(refusal.code, "budget_too_small");
        refusal.details.unwrap()["needed"].as_u64().unwrap()
    };
    let fit = |max: u64| json!({"operation": "FIT", "maxTokens": max});
    assert_eq!(needed(&mut model, fit(9)), 10);
    assert_eq!(needed(&mut model, fit(0)), 10);
    // No run starts with an assistant message, so only a budget for the whole view succeeds.
    let assistant = json!({"operation": "FIT", "maxTokens": 18, "startOn": "assistant"});
    assert_eq!(needed(&mut model, assistant), 19);
    apply(&mut model, json!({"operation": "MARK", "indices": [1, 2, 3], "mark": "pinned"}));
    assert_eq!(needed(&mut model, fit(18)), 19, "all must stay");
    assert!(!apply(&mut model, fit(19)).changed);
}

#[test]
fn the_needed_budget_respects_tool_exchanges() {
    let call = json!({"role": "assistant", "content":
        [{"type": "tool_use", "tool_use": {"id": "c", "name": "n", "input": {}}}]});
    let result = json!({"role": "tool", "content":
        [{"type": "tool_result", "tool_use_id": "c", "content": "ok"}]});
    let mut model = model();
    append(&mut model, &["a"]);
    apply(&mut model, json!({"operation": "APPEND", "messages": [call, result]}));
    let fit = json!({"op": {"operation": "FIT", "maxTokens": 4}});
    let refusal = model.apply(&fit, 2_000).unwrap_err();
    let exchange = model.entry_tokens(1) + model.entry_tokens(2);
    assert_eq!(refusal.details.as_deref(), Some(&json!({"needed": exchange})));
    let fit = json!({"operation": "FIT", "maxTokens": exchange});
    assert_eq!(apply(&mut model, fit).view, [1, 2]);
}

#[test]
fn thinking_is_counted_like_text_and_not_searched() {
    let mut model = model();
    let parts = |second: Value| json!([{"type": "text", "text": "1234"}, second]);
    let thinking = json!({"type": "thinking", "text": "12345678"});
    let text = json!({"type": "text", "text": "12345678"});
    let result = json!({"type": "tool_result", "tool_use_id": "c", "content": [thinking]});
    for part in [thinking, text, result] {
        let message = json!({"role": "user", "content": parts(part)});
        apply(&mut model, json!({"operation": "APPEND", "messages": [message]}));
    }
    // 4 + 1 + 8 bytes for every kind of part.
    assert_eq!((0..3).map(|index| model.entry_tokens(index)).collect::<Vec<_>>(), [7, 7, 7]);
    assert_eq!(model.text(0), "1234");
    assert_eq!(model.query(&json!({"contains": "5678"})).unwrap(), [1]);
    let filter = json!({"operation": "FILTER", "contentContains": ["5678"]});
    assert_eq!(apply(&mut model, filter).view, [1]);
}

#[test]
fn hidden_and_shown_are_ascending_for_any_order_of_the_view() {
    let mut model = model();
    append(&mut model, &["a", "b", "c", "d"]);
    apply(&mut model, json!({"operation": "ARRANGE", "indices": [3, 1, 2, 0]}));
    let hidden = apply(&mut model, json!({"operation": "ARRANGE", "indices": []}));
    assert_eq!(hidden.hidden, [0, 1, 2, 3]);
    let shown = apply(&mut model, json!({"operation": "ARRANGE", "indices": [3, 1, 2, 0]}));
    assert_eq!(shown.shown, [0, 1, 2, 3]);
}

#[test]
fn replace_and_insert_past_the_end_of_the_view_have_different_codes() {
    let mut model = model();
    append(&mut model, &["a"]);
    let message = json!({"role": "user", "content": "x"});
    let replace = json!({"operation": "REPLACE", "index": 1, "message": message});
    assert_eq!(refused(&mut model, replace), "index_out_of_range");
    let insert = json!({"operation": "INSERT", "position": 2, "messages": [message]});
    assert_eq!(refused(&mut model, insert), "position_out_of_range");
}

#[test]
fn redo_is_possible_after_refused_and_unchanged_requests() {
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
fn nothing_is_carried_to_the_current_batch() {
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
fn entries_added_by_the_operation_that_left_a_batch_are_carried_too() {
    let mut model = model();
    append(&mut model, &["a", "b"]);
    let message = json!({"role": "user", "content": "x"});
    apply(&mut model, json!({"operation": "INSERT", "position": 0, "messages": [message]}));
    let end = json!({"operation": "BATCH_END", "targetBatchIndex": 0, "carry": "all"});
    assert_eq!(apply(&mut model, end).view, [0, 1, 2]);
}

#[test]
fn a_run_of_fit_may_start_after_a_pinned_call_but_not_after_a_hidden_one() {
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
    assert_eq!(
        apply(&mut model, fit).view,
        [0, 2],
        "the result does not fit in addition to the last message"
    );
}

#[test]
fn a_snapshot_has_the_time_and_reason_of_its_batch() {
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
fn scope_all_uses_log_order_and_keeps_only_visible_pins() {
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
fn every_found_entry_has_its_position_in_the_queried_view() {
    let mut model = model();
    append(&mut model, &["a", "b", "c"]);
    apply(&mut model, json!({"operation": "DELETE", "indices": [0]}));
    let all = model.query_positions(&json!({"scope": "all"})).unwrap();
    assert_eq!(all, [(0, None), (1, Some(0)), (2, Some(1))]);
    let then = model.query_positions(&json!({"version": 1, "last": 1})).unwrap();
    assert_eq!(then, [(2, Some(2))]);
}
