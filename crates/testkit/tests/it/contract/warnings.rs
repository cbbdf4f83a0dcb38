//! Warnings (section 7).

use serde_json::{Value, json};
use testkit::{Model, Settings};

use super::{append, apply, model};

#[test]
fn messages_given_at_creation_are_checked_and_cause_warnings() {
    let create = |messages: Value| Model::with_messages(Settings::default(), &messages, 1_000);
    assert!(create(json!([])).is_ok());
    let refused = |messages: Value| create(messages).map(|_| ()).unwrap_err().code;
    assert_eq!(refused(json!({})), "invalid_operation");
    assert_eq!(refused(json!([{"role": "user"}])), "invalid_message");
    assert_eq!(refused(json!([{"role": "user", "content": ""}])), "empty_content");
    let foreign = create(json!([{"role": "tool", "content": "x", "tool_call_id": "c"}])).unwrap();
    assert_eq!(foreign.creation_warnings(), [("foreign_message", vec![0])]);
    assert_eq!(create(json!([])).unwrap().creation_warnings(), [("view_empty", vec![])]);
}

#[test]
fn a_message_with_a_call_beside_its_content_is_foreign() {
    let mut model = model();
    let mut warned = |field: &str, value: Value| {
        let mut message = json!({"role": "assistant", "content": "x"});
        message[field] = value;
        let op = json!({"operation": "APPEND", "messages": [message]});
        apply(&mut model, op).warned("foreign_message").is_some()
    };
    for field in
        ["toolCalls", "toolCallId", "tool_calls", "tool_call_id", "function_call", "functionCall"]
    {
        assert!(warned(field, json!([{"id": "c"}])) && warned(field, json!("c")), "{field}");
        assert!(!warned(field, json!(null)) && !warned(field, json!([])), "{field}");
    }
    assert!(!warned("metadata", json!({"tool_calls": [1]})));
}

#[test]
fn only_the_request_that_adds_a_foreign_message_warns_about_it() {
    let mut model = model();
    append(&mut model, &["a"]);
    let foreign = json!({"role": "user", "content": "x", "tool_call_id": "c"});
    let ops = json!([
        {"operation": "APPEND", "messages": [foreign]}, {"operation": "DELETE", "indices": [1]}]);
    let outcome = model.apply(&json!({"ops": ops}), 2_000).unwrap();
    assert_eq!(outcome.warnings, [("foreign_message", vec![1])]);
    let outcome = apply(&mut model, json!({"operation": "RESTORE", "indices": [1]}));
    assert!(outcome.warnings.is_empty());
}

#[test]
fn an_empty_view_causes_a_warning() {
    let mut model = model();
    append(&mut model, &["a"]);
    let outcome = apply(&mut model, json!({"operation": "CLEAR"}));
    assert_eq!(outcome.warnings, [("view_empty", vec![])]);
    assert!(apply(&mut model, json!({"operation": "UNDO"})).warnings.is_empty());
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
