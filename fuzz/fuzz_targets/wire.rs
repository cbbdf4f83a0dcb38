//! Arbitrary bytes for the readers of requests, queries, messages and tools. Each must return a value or
//! a typed error.
//!
//! An accepted message must return its bytes, and a conversation must be consistent after an accepted
//! request. If the plain model can read the same JSON, both must give the same result.
#![cfg_attr(fuzzing, no_main)]

use std::sync::LazyLock;

use recto_core::{Approx, Conversation, Message, Query, Request, Settings, Tool};
use serde_json::{Value, json};
use testkit::Model;

const NOW: i64 = 1_000;

/// A short conversation with hidden entries, a pin, batches and a tool exchange.
static START: LazyLock<(Conversation, Model)> = LazyLock::new(|| {
    let requests = [
        json!({"op": {"operation": "APPEND", "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "c", "name": "search", "input": {"q": 1}}]},
            {"role": "tool", "content": [
                {"type": "tool_result", "tool_use_id": "c", "content": "b"}]},
            {"role": "user", "content": "c"}]}}),
        json!({"op": {"operation": "DELETE", "indices": [1]}}),
        json!({"op": {"operation": "MARK", "indices": [4], "mark": "pinned"}}),
        json!({"op": {"operation": "BATCH_START"}}),
        json!({"op": {"operation": "APPEND", "messages": [{"role": "user", "content": "d"}]}}),
        json!({"op": {"operation": "UNDO"}}),
    ];
    let mut engine = Conversation::new(Settings::counting_with(Approx), 0).expect("no tools");
    let mut model = Model::new(testkit::Settings::default(), 0);
    for request in requests {
        let parsed = Request::from_json(&request.to_string()).expect("it is well-formed");
        engine = engine.apply(parsed, NOW).expect("it is accepted").0;
        model.apply(&request, NOW).expect("it is accepted");
    }
    (engine, model)
});

recto_fuzz::target!(run);

fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    read_message(text);
    read_request(text);
    read_query(text);
    if let Ok(tools) = Tool::list_from_json(text) {
        let (next, _) = START.0.set_tools(tools, NOW).expect("tools that were read can be set");
        next.verify().expect("the conversation is consistent");
    }
}

fn read_message(text: &str) {
    let Ok(message) = Message::from_json(text) else { return };
    assert_eq!(message.json(), text.trim_matches([' ', '\t', '\n', '\r']));
    let (next, _) = START.0.append([message.clone()], NOW).expect("a message can be appended");
    next.verify().expect("the conversation is consistent");
    let appended = next.messages().next_back().expect("it was appended");
    assert_eq!(appended.json(), message.json());
    assert_eq!(appended.text(), message.text());
}

fn read_request(text: &str) {
    let (engine, model) = &*START;
    let actual = Request::from_json(text).and_then(|request| engine.apply(request, NOW));
    if let Ok((next, outcome)) = &actual {
        next.verify().expect("the conversation is consistent");
        outcome.to_json();
        next.mark_map(recto_core::Scope::All).unwrap();
    }
    let Some(value) = plain_value(text) else { return };
    let is_bare =
        value.get("operation").is_some() || value.get("op").or(value.get("ops")).is_none();
    let request = if is_bare { json!({ "op": value }) } else { value };
    let mut model = model.clone();
    let expected = model.apply(&request, NOW);
    match (actual, expected) {
        (Ok((next, _)), Ok(_)) => {
            let view: Vec<usize> = next.view().iter().map(|index| index.as_usize()).collect();
            assert_eq!(view, model.view());
            assert_eq!(next.log().len(), model.log_len());
        }
        (Err(error), Err(refusal)) => {
            assert_eq!(error.code().as_str(), refusal.code, "{error} | {}", refusal.message);
        }
        (Ok(_), Err(refusal)) => panic!("only the model refused: {refusal}"),
        (Err(error), Ok(_)) => panic!("only the engine refused: {error}"),
    }
}

fn read_query(text: &str) {
    let (engine, model) = &*START;
    let actual = Query::from_json(text).and_then(|query| engine.query(&query));
    let Some(value) = plain_value(text) else { return };
    match (actual, model.query(&value)) {
        (Ok(hits), Ok(expected)) => {
            let found: Vec<usize> = hits.iter().map(|hit| hit.index.as_usize()).collect();
            assert_eq!(found, expected);
        }
        (Err(error), Err(refusal)) => {
            assert_eq!(error.code().as_str(), refusal.code, "{error} | {}", refusal.message);
        }
        (actual, expected) => panic!("engine: {actual:?}, model: {expected:?}"),
    }
}

/// The JSON for the model; `None` if its plain values cannot represent it: numbers beyond 64 bits, minus
/// zero, half surrogate pairs, JSON that is too deep.
fn plain_value(text: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(text).ok()?;
    let digits = text.split(|c: char| !c.is_ascii_digit());
    let is_exact = digits.map(str::len).max().unwrap_or(0) < 19 && !text.contains("-0");
    (is_exact && depth(&value) < 60).then_some(value)
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
