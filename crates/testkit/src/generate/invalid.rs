//! Operations and queries that are changed at random. Most of the changed ones are invalid.

use serde_json::{Value, json};

use super::choices::Choices;
use super::message::messages;
use crate::model::Model;

/// The operation; about one in twelve is replaced by a changed one, which is usually invalid.
pub(super) fn maybe_invalid(choices: &mut Choices, model: &Model, operation: Value) -> Value {
    if choices.below(12) < 11 {
        return operation;
    }
    match choices.below(9) {
        0 => with_unknown_field(operation),
        1 => with_wrong_name(choices, operation),
        2 => without_field(choices, operation),
        3 | 4 => with_wrong_value(choices, operation),
        5 => with_invalid_message(choices, model, operation),
        6 => out_of_range(choices, model),
        7 => choices.pick(&[json!(null), json!("UNDO"), json!([]), json!(7)]).clone(),
        _ => misuse(choices),
    }
}

/// The query; about one in twelve is replaced by a changed one, which is usually invalid.
pub(super) fn maybe_invalid_query(choices: &mut Choices, query: Value) -> Value {
    if choices.below(12) < 11 {
        return query;
    }
    let wrong = [
        with_unknown_field(query.clone()),
        with_wrong_value(choices, query),
        json!({"role": "user", "roles": ["user"]}),
        json!({"first": 1, "last": 1}),
        json!({"range": {"start": 0, "end": 1}, "first": 1}),
        json!({"batchIndex": 0, "version": 0}),
        json!({"range": {"start": 2, "end": 1}}),
        json!({"range": {"start": 2}}),
        json!({"range": {"start": 0, "end": 1, "step": 1}}),
        json!({"role": "robot"}),
        json!({"roles": []}),
        json!({"contains": []}),
        json!({"contains": ""}),
        json!({"excludes": ["a", ""]}),
        json!({"mark": ""}),
        json!({"scope": "hidden"}),
        json!({"last": -1}),
        json!({"first": 2.0}),
        json!({"from": "1000"}),
        json!({"batchIndex": 99_999}),
        json!({"version": 99_999}),
        json!([]),
        json!(null),
    ];
    choices.pick(&wrong).clone()
}

fn with_unknown_field(mut object: Value) -> Value {
    object["keeplast"] = json!(1);
    object
}

fn with_wrong_name(choices: &mut Choices, mut operation: Value) -> Value {
    let names = ["NOPE", "append", "Truncate", "", "UNDO ", "restore", "batch_begin", "fit"];
    operation["operation"] = json!(choices.pick(&names));
    operation
}

fn field_names(object: &Value) -> Vec<String> {
    object.as_object().into_iter().flat_map(|fields| fields.keys().cloned()).collect()
}

fn without_field(choices: &mut Choices, mut operation: Value) -> Value {
    let name = choices.pick(&field_names(&operation)).clone();
    operation.as_object_mut().expect("an operation is an object").shift_remove(&name);
    operation
}

fn with_wrong_value(choices: &mut Choices, mut object: Value) -> Value {
    let wrong = [
        json!(null),
        json!(2.0),
        json!(-1),
        json!("2"),
        json!([]),
        json!(""),
        json!([""]),
        json!({}),
        json!(true),
        json!(1e300),
        json!([0, 1.5]),
        json!([0, "1"]),
        json!(["robot"]),
        json!("robot"),
        json!([null]),
        json!(u64::MAX),
        json!({"start": 1, "end": 0}),
        json!({"start": 1}),
    ];
    let names = field_names(&object);
    if !names.is_empty() {
        object[choices.pick(&names)] = choices.pick(&wrong).clone();
    }
    object
}

fn with_invalid_message(choices: &mut Choices, model: &Model, mut operation: Value) -> Value {
    let bad = invalid_message(choices);
    let mut list = messages(choices, model);
    list.insert(choices.below(list.len() + 1), bad.clone());
    if operation.get("messages").is_some() {
        operation["messages"] = json!(list);
    } else if operation.get("message").is_some() {
        operation["message"] = bad;
    } else if operation.get("data").is_some() {
        operation["data"] = choices.pick(&[bad, json!(list)]).clone();
    } else if operation.get("summary").is_some() {
        operation["summary"] = bad;
    } else {
        operation = json!({"operation": "APPEND", "messages": list});
    }
    operation
}

fn invalid_message(choices: &mut Choices) -> Value {
    let contents = [
        json!(""),
        json!([]),
        json!(null),
        json!(5),
        json!({"text": "x"}),
        json!(["text"]),
        json!([{"text": "x"}]),
        json!([{"type": "text"}]),
        json!([{"type": "text", "text": 1}]),
        json!([{"type": "tool_use", "id": "a", "name": "n"}]),
        json!([{"type": "tool_use", "id": 1, "name": "n", "input": {}}]),
        json!([{"type": "tool_use", "id": "a", "input": {}}]),
        json!([{"type": "tool_result", "content": "x"}]),
        json!([{"type": "tool_result", "tool_use_id": "a", "content": 1}]),
        json!([{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text"}]}]),
        json!([{"type": "tool_result", "tool_use_id": "a", "is_error": "no"}]),
        json!([{"type": "thinking"}]),
        json!([{"type": "thinking", "text": "x", "signature": 1}]),
        json!([{"type": "tool_use", "tool_use": {"id": "a", "name": "n"}}]),
        json!([{"type": "tool_use", "tool_use": {"id": "a", "name": "n", "input": 1}, "id": "a"}]),
        json!([{"type": "tool_result", "tool_result": {"content": "x"}}]),
        json!([{"type": "tool_result", "tool_result": {"tool_use_id": "a"}, "content": "x"}]),
        json!([{"type": "tool_result", "tool_result": {"tool_use_id": "a", "is_error": 1}}]),
    ];
    match choices.below(16) {
        0..=8 => json!({"role": "user", "content": choices.pick(&contents)}),
        9 => json!({"role": "user"}),
        10 => json!({"role": "robot", "content": "x"}),
        11 => json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c"}]}),
        12 => json!({"content": "x"}),
        13 => json!({"role": "user", "content": "x", "timestamp": "noon"}),
        14 => json!({"role": "user", "content": "x", "timestamp": 1.5}),
        _ => choices.pick(&[json!("x"), json!(null), json!([]), json!(3)]).clone(),
    }
}

/// A well-formed operation with an entry, position, batch or version that does not exist, or a reversed range.
fn out_of_range(choices: &mut Choices, model: &Model) -> Value {
    let message = json!({"role": "user", "content": "x"});
    let past_log = model.log_len() + choices.below(3);
    let past_view = model.view().len() + choices.below(3);
    let wrong = [
        json!({"operation": "INSERT", "position": past_view + 1, "messages": [message]}),
        json!({"operation": "REPLACE", "index": past_view, "message": message}),
        json!({"operation": "DELETE", "indices": [0, past_log]}),
        json!({"operation": "COMPRESS", "indices": [past_log], "summary": message}),
        json!({"operation": "RESTORE", "indices": [past_log]}),
        json!({"operation": "MARK", "indices": [past_log], "mark": "pinned"}),
        json!({"operation": "UNMARK", "indices": [past_log], "mark": "pinned"}),
        json!({"operation": "ARRANGE", "indices": [past_log, 0]}),
        json!({"operation": "BATCH_START", "boundary": past_log + 1}),
        json!({"operation": "batch_start", "indices": [past_log + 1], "batch": 0}),
        json!({"operation": "BATCH_END", "targetBatchIndex": model.batches(), "carry": "all"}),
        json!({"operation": "ROLLBACK", "targetBatchIndex": model.batches() + 3}),
        json!({"operation": "ROLLBACK", "targetVersion": model.version() + 9}),
        json!({"operation": "replace", "indices": [past_log], "data": message}),
        json!({"operation": "batch_end", "indices": [model.batches()]}),
        json!({"operation": "batch_end", "indices": [], "batch": model.batches()}),
        json!({"operation": "TRUNCATE", "range": {"start": 2, "end": 1}}),
        json!({"operation": "truncate", "truncate": {"range": {"start": 9, "end": 0}}}),
    ];
    choices.pick(&wrong).clone()
}

/// An operation with missing, wrong or contradicting fields.
fn misuse(choices: &mut Choices) -> Value {
    let message = json!({"role": "user", "content": "x"});
    let wrong = [
        json!({"operation": "TRUNCATE"}),
        json!({"operation": "TRUNCATE", "scope": "all"}),
        json!({"operation": "TRUNCATE", "keepLast": 2, "keepOthers": true}),
        json!({"operation": "TRUNCATE", "keepLast": 2.0}),
        json!({"operation": "TRUNCATE", "range": {"start": 0, "end": 2, "step": 1}}),
        json!({"operation": "TRUNCATE", "range": [0, 2]}),
        json!({"operation": "FILTER"}),
        json!({"operation": "FILTER", "roles": []}),
        json!({"operation": "FILTER", "contentContains": [""]}),
        json!({"operation": "FILTER", "contentContains": "a"}),
        json!({"operation": "CLEAR", "keepSystemMessage": "yes"}),
        json!({"operation": "FIT"}),
        json!({"operation": "FIT", "maxTokens": -1}),
        json!({"operation": "FIT", "maxTokens": 50, "startOn": "robot"}),
        json!({"operation": "BATCH_END", "targetBatchIndex": 0, "carry": "some"}),
        json!({"operation": "BATCH_END", "targetBatchIndex": 0, "carry": []}),
        json!({"operation": "BATCH_END", "carry": ["robot"]}),
        json!({"operation": "BATCH_START", "withTools": "yes"}),
        json!({"operation": "BATCH_START", "batch": 1}),
        json!({"operation": "ARRANGE"}),
        json!({"operation": "ARRANGE", "indices": null}),
        json!({"operation": "ARRANGE", "indices": [-1]}),
        json!({"operation": "arrange", "indices": []}),
        json!({"operation": "DELETE", "indices": []}),
        json!({"operation": "COMPRESS", "indices": []}),
        json!({"operation": "ROLLBACK"}),
        json!({"operation": "ROLLBACK", "targetBatchIndex": 0, "targetVersion": 0}),
        json!({"operation": "MARK", "indices": [0], "mark": ""}),
        json!({"operation": "UNDO", "steps": 2}),
        json!({"operation": "APPEND", "messages": []}),
        json!({"operation": "APPEND", "messages": message}),
        json!({"operation": "INSERT", "position": -1, "messages": [message]}),
        json!({"operation": "insert", "insert": {"position": -2, "messages": [message]}}),
        json!({"operation": "insert", "insert": {"messages": [message]}}),
        json!({"operation": "insert", "indices": [], "data": []}),
        json!({"operation": "insert", "indices": ["0"], "data": message}),
        json!({"operation": "insert", "insert": null, "indices": [], "data": message}),
        json!({"operation": "insert", "indices": []}),
        json!({"operation": "insert", "data": message}),
        json!({"operation": "replace", "indices": [], "data": message}),
        json!({"operation": "delete", "indices": [0], "data": message}),
        json!({"operation": "compress"}),
        json!({"operation": "batch_start", "indices": []}),
        json!({"operation": "batch_start", "indices": [0, 1]}),
        json!({"operation": "batch_start", "indices": [0], "withTools": true}),
        json!({"operation": "batch_start", "indices": [0], "batch": "1"}),
        json!({"operation": "batch_end", "indices": [0, 0]}),
        json!({"operation": "batch_end", "indices": [0], "batch": 1}),
        json!({"operation": "batch_end", "batch": 0}),
        json!({"operation": "delete", "indices": [0], "batch": 0}),
        json!({"operation": "truncate", "truncate": null}),
        json!({"operation": "truncate", "truncate": {"keepLast": 1}, "delete": null}),
        json!({"operation": "truncate", "truncate": {"keepLast": 1}, "filter": {"roles": ["user"]}}),
        json!({"operation": "truncate"}),
        json!({"operation": "truncate", "filter": {"roles": ["user"]}}),
        json!({"operation": "truncate", "truncate": {}}),
        json!({"operation": "clear", "clear": {"keepSystem": true}}),
        json!({"operation": "clear", "clear": []}),
    ];
    choices.pick(&wrong).clone()
}
