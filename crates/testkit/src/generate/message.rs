//! Messages: all roles, strings and parts, and tool exchanges, most of them complete.

use serde_json::{Value, json};

use super::choices::Choices;
use crate::model::{DEFAULT_HEADING, EARLIER_HEADING, Model};

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

/// One or more messages to add: one, a few, up to 14, a tool exchange, or a message like a tool
/// description.
pub(super) fn messages(choices: &mut Choices, model: &Model) -> Vec<Value> {
    match choices.below(16) {
        0..=5 => vec![message(choices, model)],
        6 => vec![description_message(choices, model)],
        7..=9 => several(choices, model, 4),
        10..=14 => tool_exchange(choices, model),
        _ => several(choices, model, 14),
    }
}

fn several(choices: &mut Choices, model: &Model, max: usize) -> Vec<Value> {
    let count = 1 + choices.below(max);
    (0..count).map(|_| message(choices, model)).collect()
}

/// A valid message.
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
    if choices.chance(1) {
        // Fields of other formats beside the content; the last four are empty.
        let extras = [
            ("tool_calls", json!([{"id": "c", "function": {"name": "f", "arguments": "{}"}}])),
            ("toolCalls", json!([{}])),
            ("toolCallId", json!("c")),
            ("tool_call_id", json!("")),
            ("function_call", json!({"name": "f"})),
            ("functionCall", json!({})),
            ("tool_calls", json!([])),
            ("toolCallId", json!(null)),
            ("function_call", json!([])),
            ("functionCall", json!(null)),
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
        10 => json!(description(choices, model)),
        _ => {
            let count = 1 + choices.below(3);
            Value::from_iter((0..count).map(|_| part(choices, model)))
        }
    }
}

/// A system message that is, or looks like, a tool description.
fn description_message(choices: &mut Choices, model: &Model) -> Value {
    let text = description(choices, model);
    let content = match choices.below(4) {
        0..=2 => json!(text),
        // The texts of parts are joined by a newline.
        _ => Value::from_iter(text.split('\n').map(|line| json!({"type": "text", "text": line}))),
    };
    with_optional_fields(choices, json!({"role": "system", "content": content}))
}

/// Text that is, or looks like, a tool description: of the present tools or of
/// others, under one of several headings.
fn description(choices: &mut Choices, model: &Model) -> String {
    let configured = model.settings().heading.as_str();
    let headings = [configured, configured, DEFAULT_HEADING, EARLIER_HEADING, "Other tools:"];
    let heading = *choices.pick(&headings);
    let present = model.tool_description();
    let present = present.as_deref().and_then(|text| text.strip_prefix(configured)).unwrap_or("");
    let below = match choices.below(10) {
        0..=2 => present.to_owned(),
        3 => "\n- old: gone".to_owned(),
        4 => "\n- old: gone\n- older: gone too".to_owned(),
        5 => "\n- search: find pages".to_owned(),
        6 => format!("{present}."),
        7 => format!("{present}\n"),
        8 => "\n- none\n\nYou are careful.".to_owned(),
        _ => String::new(),
    };
    format!("{heading}{below}")
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

/// An id for a call: mostly a unique one, sometimes one that other calls use too.
fn call_id(choices: &mut Choices, model: &Model, number: usize) -> String {
    if choices.chance(4) {
        return format!("shared{}", choices.below(3));
    }
    format!("c{}.{number}", model.log_len())
}

/// The id of a call in the log, or an id without a call.
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
    let call = json!({"id": id, "name": "search", "input": choices.pick(&inputs)});
    tool_part(choices, "tool_use", call)
}

/// A tool part in the flat or the nested form.
fn tool_part(choices: &mut Choices, kind: &str, mut fields: Value) -> Value {
    if choices.chance(4) {
        return json!({"type": kind, kind: fields});
    }
    fields["type"] = json!(kind);
    fields
}

fn result(choices: &mut Choices, id: &str) -> Value {
    let mut result = json!({"tool_use_id": id});
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
                {"type": "thinking", "text": text(choices)},
            ])
        }
    }
    tool_part(choices, "tool_result", result)
}

/// One message with calls, then their results: in one message each or in one together, in order or
/// reversed, complete or not. Sometimes only calls, or only results.
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
