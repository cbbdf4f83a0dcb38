//! Messages: all roles, strings and parts, and tool exchanges that are often
//! proper.

use serde_json::{Value, json};

use super::choices::Choices;
use crate::model::Model;

const ROLES: [&str; 4] = ["user", "assistant", "system", "tool"];

const WORDS: [&str; 12] = [
    "a",
    "plan",
    "budget",
    "错误",
    "计划",
    "\"quoted\"",
    "line\nbreak",
    "tab\t\\slash",
    "🙂",
    "alpha",
    "deploy the cache and parse the file once more",
    "\u{0}\u{7f}é",
];

pub(super) fn role(choices: &mut Choices) -> &'static str {
    ROLES[choices.below(ROLES.len())]
}

/// A word that texts are made of.
pub(super) fn word(choices: &mut Choices) -> &'static str {
    WORDS[choices.below(WORDS.len())]
}

/// One or more messages to add: a few, a burst, or a tool exchange.
pub(super) fn messages(choices: &mut Choices, model: &Model) -> Vec<Value> {
    match choices.below(16) {
        0..=6 => vec![message(choices, model)],
        7..=9 => several(choices, model, 4),
        10..=14 => tool_exchange(choices, model),
        _ => several(choices, model, 14),
    }
}

fn several(choices: &mut Choices, model: &Model, most: usize) -> Vec<Value> {
    let count = 1 + choices.below(most);
    (0..count).map(|_| message(choices, model)).collect()
}

/// A proper message.
pub(super) fn message(choices: &mut Choices, model: &Model) -> Value {
    let role = role(choices);
    let content = content(choices, model, role);
    with_optional_fields(choices, json!({"role": role, "content": content}))
}

fn with_optional_fields(choices: &mut Choices, mut message: Value) -> Value {
    if choices.chance(6) {
        message["timestamp"] = json!(1_000 + choices.below(400));
    }
    if choices.chance(2) {
        let extras = [
            ("id", json!("m1")),
            ("name", json!("ada")),
            ("metadata", json!({"source": "测试", "depth": {"n": [1, 2.5, null]}})),
            ("colour", json!(["kept", "verbatim"])),
            ("timestamp", json!(null)),
            ("id", json!(null)),
        ];
        let (field, value) = choices.pick(&extras).clone();
        message[field] = value;
    }
    message
}

fn content(choices: &mut Choices, model: &Model, role: &str) -> Value {
    match choices.below(16) {
        0..=9 => json!(text(choices)),
        10 if role == "tool" => choices.pick(&[json!(""), json!([])]).clone(),
        10 => description(choices, model),
        _ => {
            let count = 1 + choices.below(3);
            Value::from_iter((0..count).map(|_| part(choices, model)))
        }
    }
}

/// Text that is, or looks like, a tool description.
fn description(choices: &mut Choices, model: &Model) -> Value {
    let heading = &model.settings().heading;
    let present = model.tool_description().unwrap_or_else(|| heading.clone());
    let texts = [format!("{heading}\n- old: gone"), present.clone(), format!("{present}.")];
    json!(choices.pick(&texts))
}

fn text(choices: &mut Choices) -> String {
    let count = 1 + choices.below(5);
    (0..count).map(|_| word(choices)).collect::<Vec<_>>().join(" ")
}

fn part(choices: &mut Choices, model: &Model) -> Value {
    match choices.below(12) {
        0..=2 => json!({"type": "text", "text": text(choices)}),
        3 => json!({"type": "text", "text": ""}),
        4 => json!({"type": "image", "image_url": {"url": "data:,"}}),
        5 => {
            let id = call_id(choices, model, 0);
            call(choices, &id)
        }
        6 | 7 => {
            let id = answered_id(choices, model);
            result(choices, &id)
        }
        8 => json!({"type": "thinking", "text": text(choices), "signature": "s"}),
        9 => choices.pick(&[json!({"type": "file"}), json!({"type": "audio", "data": ""})]).clone(),
        10 => json!({"type": "hologram", "text": "verbatim", "depth": 1.5}),
        _ => json!({"type": "thinking", "text": "", "signature": null}),
    }
}

/// An id for a call: mostly its own, sometimes one that others use too.
fn call_id(choices: &mut Choices, model: &Model, number: usize) -> String {
    if choices.chance(4) {
        return format!("shared{}", choices.below(3));
    }
    format!("c{}.{number}", model.log_len())
}

/// The id of some call in the log, or one that nobody called.
fn answered_id(choices: &mut Choices, model: &Model) -> String {
    let called: Vec<&String> =
        (0..model.log_len()).rev().flat_map(|index| model.calls(index)).collect();
    if called.is_empty() || choices.chance(2) {
        return "nobody".to_owned();
    }
    (*choices.pick(&called)).clone()
}

fn call(choices: &mut Choices, id: &str) -> Value {
    let inputs = [
        json!({}),
        json!({"q": word(choices)}),
        json!({"z": 1, "a": {"list": [1, -2, 2.5, null, true], "文": "\"\n\u{1}/"}}),
        json!("plain"),
        json!([1, 2]),
    ];
    json!({"type": "tool_use", "id": id, "name": "search", "input": choices.pick(&inputs)})
}

fn result(choices: &mut Choices, id: &str) -> Value {
    let mut result = json!({"type": "tool_result", "tool_use_id": id});
    match choices.below(12) {
        0..=6 => result["content"] = json!(text(choices)),
        7 => {
            result["content"] = json!([
                {"type": "text", "text": text(choices)},
                {"type": "image"},
                {"type": "text", "text": word(choices)},
            ])
        }
        8 => result["content"] = json!([{"type": "image"}]),
        9 => result["content"] = choices.pick(&[json!(""), json!([]), json!(null)]).clone(),
        10 => result["is_error"] = json!(true),
        _ => {
            result["content"] = json!([
                {"type": "tool_use", "id": "nested", "name": "n", "input": {}},
                {"type": "tool_result", "tool_use_id": "nested", "content": text(choices)},
            ])
        }
    }
    result
}

/// One message with calls, then their results: one by one, together, in another
/// order, some missing, or none. Sometimes the results alone.
fn tool_exchange(choices: &mut Choices, model: &Model) -> Vec<Value> {
    let count = 1 + choices.below(3);
    let ids: Vec<String> = (0..count).map(|number| call_id(choices, model, number)).collect();
    let calls = Value::from_iter(ids.iter().map(|id| call(choices, id)));
    let calling = with_optional_fields(choices, json!({"role": "assistant", "content": calls}));

    let mut results: Vec<Value> = ids.iter().map(|id| result(choices, id)).collect();
    if choices.chance(2) {
        results.reverse();
    }
    if choices.chance(3) {
        results.pop();
    }
    let together = choices.chance(5);
    let mut messages = vec![calling];
    if together && !results.is_empty() {
        messages.push(json!({"role": "user", "content": results}));
    } else {
        messages.extend(results.iter().map(|result| json!({"role": "tool", "content": [result]})));
    }
    match choices.below(16) {
        0..=11 => {}
        12 => messages.truncate(1),
        13 => {
            let id = answered_id(choices, model);
            messages[0] = json!({"role": "tool", "content": [result(choices, &id)]});
        }
        14 => messages.push(message(choices, model)),
        _ => messages.reverse(),
    }
    messages
}
