//! Transcripts of agents, complete or damaged by edits: parallel,
//! nested, unanswered, repeated and misplaced tool exchanges, thinking of several
//! providers, media in every form, empty texts and results, unusual ids and names.
//!
//! Every message is a valid Recto message. The sequence of messages may be invalid for a provider.

use serde_json::{Value, json};

use super::choices::Choices;
use crate::tool_form;

const IDS: [&str; 12] = [
    "call_1",
    "toolu_01",
    "c2",
    "call.3",
    "",
    "计算",
    "a b/c",
    "call_1_2",
    "a-very-long-id-that-no-provider-would-make-but-some-proxies-do-make-0123456789",
    "\u{0}\"\\",
    "x",
    "fc_1",
];

const NAMES: [&str; 8] = ["search", "read_file", "", "网页", "ns.tool:run", "a b", "9lives", "-x"];

const TEXTS: [&str; 10] = [
    "hello",
    "",
    " ",
    "\n\t",
    "line\nbreak \"quoted\" \\ and é 🙂",
    "trailing \n",
    "{\"output\": 1}",
    "[no result]",
    "\u{a0}",
    "a longer text that says a little more than the others do",
];

/// Providers and models that made messages.
const SOURCES: [(&str, Option<&str>); 6] = [
    ("anthropic", Some("claude-a")),
    ("openai", Some("gpt-b")),
    ("google", Some("gemini-3-pro")),
    ("anthropic", None),
    ("google", None),
    ("openai", None),
];

/// A transcript of 1 to `max` messages; a single text for a stream of zeros. The last exchange may exceed
/// `max`, and damage may remove all messages.
pub fn transcript(choices: &mut Choices, max: usize) -> Vec<Value> {
    let count = 1 + choices.below(max);
    let mut messages = Vec::new();
    while messages.len() < count {
        match choices.below(12) {
            0 | 1 => messages.push(message(choices, "user")),
            2 => messages.push(message(choices, "assistant")),
            3 => messages.push(message(choices, "system")),
            4 => messages.push(message(choices, "tool")),
            _ => exchange(choices, &mut messages),
        }
    }
    damage(choices, &mut messages);
    messages
}

/// A message with this role.
pub fn message(choices: &mut Choices, role: &str) -> Value {
    let content = match choices.below(6) {
        0..=2 => {
            let text = TEXTS[choices.below(TEXTS.len())];
            json!(if text.is_empty() && role != "tool" { "hi" } else { text })
        }
        _ => {
            let count = 1 + choices.below(4);
            Value::from_iter((0..count).map(|_| part(choices)))
        }
    };
    with_optional_fields(choices, json!({"role": role, "content": content}))
}

/// Adds a source, a name or unknown fields to some messages.
fn with_optional_fields(choices: &mut Choices, mut message: Value) -> Value {
    if choices.chance(8) {
        let (provider, model) = SOURCES[choices.below(SOURCES.len())];
        message["metadata"] = json!({"source": {"provider": provider}});
        if let Some(model) = model {
            message["metadata"]["source"]["model"] = json!(model);
        }
    }
    if choices.chance(2) {
        message["name"] = json!(*choices.pick(&["ada", "a b", "", "<x>", "李"]));
    }
    if choices.chance(1) {
        message["timestamp"] = json!(5);
        message["colour"] = json!(["kept"]);
    }
    message
}

fn text(choices: &mut Choices) -> &'static str {
    TEXTS[choices.below(TEXTS.len())]
}

/// A part of any type.
fn part(choices: &mut Choices) -> Value {
    match choices.below(16) {
        0..=3 => {
            let mut part = json!({"type": "text", "text": text(choices)});
            if choices.chance(3) {
                part["cache_control"] = json!({"type": "ephemeral"});
            }
            if choices.chance(2) {
                part["signature"] = json!(*choices.pick(&["c2ln", "not base64!", ""]));
            }
            if choices.chance(2) {
                part["item_id"] = json!(*choices.pick(&["msg_1", "msg_2", "fc_1", ""]));
            }
            part
        }
        4 | 5 => media(choices),
        6 | 7 => thinking(choices),
        8 | 9 => call(choices, None),
        10 | 11 => result(choices, None),
        12 => json!({"type": "refusal", "refusal": text(choices)}),
        13 => provider_part(choices),
        14 => json!({"type": "hologram", "text": "verbatim", "depth": 1.5}),
        _ => json!({"type": "text", "text": text(choices)}),
    }
}

fn thinking(choices: &mut Choices) -> Value {
    let mut part = json!({"type": "thinking", "text": text(choices)});
    if choices.chance(12) {
        part["signature"] = json!(*choices.pick(&["c2lnbmVk", "not base64!", ""]));
    }
    part
}

/// Parts that only one provider supports, complete or malformed.
fn provider_part(choices: &mut Choices) -> Value {
    let parts = [
        json!({"type": "redacted_thinking", "data": "b3BhcXVl"}),
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}),
        json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}),
        json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "eA=="}),
        json!({"type": "reasoning", "id": "rs_2", "summary": []}),
        json!({"type": "reasoning", "summary": "broken"}),
        json!({"type": "web_search_call", "id": "ws_1", "status": "completed"}),
        json!({"type": "gemini_part", "part": {"executableCode": {"code": "1", "language": "PYTHON"}}}),
        json!({"type": "gemini_part", "part": {"functionCall": {"name": "f", "args": {}}}}),
        json!({"type": "redacted_thinking"}),
        json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}),
        json!({"type": "openai_audio", "audio": {"id": "a"}}),
    ];
    choices.pick(&parts).clone()
}

fn media(choices: &mut Choices) -> Value {
    let kind = *choices.pick(&["image", "file", "audio"]);
    let types = [
        "image/png",
        "application/pdf",
        "audio/wav",
        "image/tiff",
        "audio/mpeg",
        "odd",
        "",
        "IMAGE/JPG",
    ];
    let source = match choices.below(10) {
        0..=2 => {
            let data = *choices.pick(&["AA==", "", "not base64!", "AAAA", "A-_A", "AA"]);
            json!({"type": "base64", "media_type": choices.pick(&types), "data": data})
        }
        3 | 4 => {
            let urls = ["https://a/b.png", "data:,", "gs://a/b", "file:///etc/passwd", ""];
            json!({"type": "url", "url": choices.pick(&urls)})
        }
        5 => json!({"type": "file_id", "file_id": "f1", "provider": SOURCES[choices.below(6)].0}),
        6 => json!({"type": "file_id", "file_id": *choices.pick(&["f1", ""])}),
        7 => json!({"type": "text", "text": text(choices)}),
        8 => return json!({"type": kind, "image_url": {"url": "data:image/png;base64,AA=="}}),
        _ => return json!({"type": kind}),
    };
    let mut part = json!({"type": kind, "source": source});
    if choices.chance(3) {
        part["name"] = json!("a.pdf");
    }
    if choices.chance(2) {
        part["citations"] = json!({"enabled": choices.chance(8)});
    }
    if choices.chance(1) {
        part["context"] = json!(text(choices));
    }
    if choices.chance(3) {
        part["detail"] = json!(*choices.pick(&["low", "odd"]));
    }
    if choices.chance(2) {
        part["cache_control"] = json!({"type": *choices.pick(&["ephemeral", "odd"])});
    }
    part
}

fn id(choices: &mut Choices) -> &'static str {
    IDS[choices.below(IDS.len())]
}

fn call(choices: &mut Choices, with: Option<&str>) -> Value {
    let id = with.unwrap_or_else(|| id(choices)).to_owned();
    let inputs = [
        json!({}),
        json!({"q": "x"}),
        json!("{\"cut\": "),
        json!(null),
        json!([1, 2.5]),
        json!(7),
        json!({"deep": {"list": [1, -2, null, true], "文": "\"\n\u{1}/"}}),
    ];
    let name = NAMES[choices.below(NAMES.len())];
    let mut part =
        json!({"type": "tool_use", "id": id, "name": name, "input": choices.pick(&inputs)});
    if choices.chance(2) {
        part["kind"] = json!("custom");
    }
    if choices.chance(3) {
        part["item_id"] = json!(*choices.pick(&["fc_1", "fc_2", "ctc_1", "call_1", "fc 3", ""]));
    }
    if choices.chance(2) {
        part["signature"] = json!(*choices.pick(&["c2ln", "no!"]));
    }
    if choices.chance(1) {
        part["cache_control"] = json!({"type": "ephemeral", "ttl": *choices.pick(&["5m", "9d"])});
    }
    maybe_nested(choices, part)
}

/// A tool part, sometimes in the nested form.
fn maybe_nested(choices: &mut Choices, part: Value) -> Value {
    if choices.chance(3) { tool_form::nested_part(&part) } else { part }
}

fn result(choices: &mut Choices, with: Option<&str>) -> Value {
    let id = with.unwrap_or_else(|| id(choices)).to_owned();
    let mut part = json!({"type": "tool_result", "tool_use_id": id});
    match choices.below(8) {
        0..=2 => part["content"] = json!(text(choices)),
        3 => {}
        4 => part["content"] = json!([]),
        5 => part["content"] = json!([{"type": "text", "text": text(choices)}, media(choices)]),
        6 => part["content"] = json!([media(choices)]),
        _ => {
            let nested = json!({"type": "tool_result", "tool_use_id": "n", "content": [
                {"type": "text", "text": text(choices)}, thinking(choices), provider_part(choices)]});
            let quoted = json!({"type": "tool_use", "id": "q", "name": "n", "input": {}});
            let refusal = json!({"type": "refusal", "refusal": text(choices)});
            part["content"] = json!([quoted, nested, refusal]);
        }
    }
    if choices.chance(3) {
        part["is_error"] = json!(true);
    }
    if choices.chance(1) {
        part["cache_control"] = json!({"type": "ephemeral"});
    }
    maybe_nested(choices, part)
}

/// A message with calls, then results: in order or reversed, complete, with one missing or repeated, or
/// none, in one message or several.
fn exchange(choices: &mut Choices, messages: &mut Vec<Value>) {
    let count = 1 + choices.below(4);
    let ids: Vec<&str> = (0..count).map(|_| id(choices)).collect();
    let mut calling = Vec::new();
    if choices.chance(6) {
        calling.push(thinking(choices));
    }
    if choices.chance(3) {
        calling.push(json!({"type": "reasoning", "id": "rs_3", "summary": []}));
    }
    if choices.chance(6) {
        calling.push(json!({"type": "text", "text": text(choices)}));
    }
    calling.extend(ids.iter().map(|id| call(choices, Some(id))));
    if choices.chance(2) {
        calling.push(part(choices));
    }
    let calling = with_optional_fields(choices, json!({"role": "assistant", "content": calling}));
    messages.push(calling);
    if choices.chance(2) {
        nested_exchange(choices, messages);
    }
    let mut results: Vec<Value> = ids.iter().map(|id| result(choices, Some(id))).collect();
    match choices.below(10) {
        0..=4 => {}
        5 => results.reverse(),
        6 => drop(results.pop()),
        7 => results.push(results[0].clone()),
        8 => results.clear(),
        _ => messages.push(message(choices, "user")),
    }
    match choices.below(4) {
        0 | 1 => {
            let alone = |result: Value| json!({"role": "tool", "content": [result]});
            messages.extend(results.into_iter().map(alone));
        }
        2 if !results.is_empty() => messages.push(json!({"role": "tool", "content": results})),
        _ => {
            results.push(part(choices));
            messages.push(json!({"role": "user", "content": results}));
        }
    }
}

/// An exchange between the calls and the results of another one.
fn nested_exchange(choices: &mut Choices, messages: &mut Vec<Value>) {
    let id = id(choices);
    messages.push(json!({"role": "assistant", "content": [call(choices, Some(id))]}));
    messages.push(json!({"role": "tool", "content": [result(choices, Some(id))]}));
}

/// Changes the messages as edits change a view: removes, moves or cuts off messages.
fn damage(choices: &mut Choices, messages: &mut Vec<Value>) {
    for _ in 0..choices.below(5) {
        if messages.is_empty() {
            return;
        }
        let at = choices.below(messages.len());
        match choices.below(5) {
            0 | 1 => drop(messages.remove(at)),
            2 => {
                let moved = messages.remove(at);
                messages.insert(choices.below(messages.len() + 1), moved);
            }
            3 => messages.drain(..at).for_each(drop),
            _ => messages.truncate(at + 1),
        }
    }
}
