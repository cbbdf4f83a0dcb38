//! OpenAI's Responses: the rules of `POST /v1/responses` for `input`.
//!
//! Items are a flat list. Calls and their outputs are paired by `call_id`. Responses that the
//! server has stored are unknown here, so a request is checked without them.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::{
    Check, IMAGES, filled_list, filled_string, is_plain_base64, is_word, object, only_fields,
    refuse, string,
};

/// The names of the rules.
pub const RULES: &[&str] = &[
    "input",
    "item",
    "role",
    "field",
    "content",
    "part",
    "item_id",
    "call_id",
    "function_name",
    "arguments",
    "output",
    "unanswered_call",
    "unknown_result",
    "duplicate_call",
    "duplicate_result",
    "reasoning",
    "reasoning_alone",
    "not_stored",
    "duplicate_item",
    "instructions",
];

/// Maximum length of ids, in characters.
const MAX_ID_CHARS: usize = 64;

/// Calls, with the type of the item that answers them.
const CALLS: &[(&str, &str)] = &[
    ("function_call", "function_call_output"),
    ("custom_tool_call", "custom_tool_call_output"),
    ("computer_call", "computer_call_output"),
    ("local_shell_call", "local_shell_call_output"),
    ("shell_call", "shell_call_output"),
    ("apply_patch_call", "apply_patch_call_output"),
];

/// Items that the model makes, in addition to messages, reasoning and [`CALLS`].
const MODEL_ITEMS: &[&str] = &[
    "file_search_call",
    "web_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_list_tools",
    "mcp_call",
    "mcp_approval_request",
    "compaction",
    "tool_search_call",
    "program",
];

/// Items that the model does not make.
const OTHER_ITEMS: &[&str] = &[
    "mcp_approval_response",
    "item_reference",
    "tool_search_output",
    "program_output",
    "additional_tools",
];

/// Checks a request.
pub fn check(request: &Value) -> Check {
    let request = object(request, "input", "request")?;
    match request.get("instructions") {
        None | Some(Value::Null | Value::String(_)) => {}
        Some(_) => return refuse("instructions", "instructions", "not a string"),
    }
    if let Some(Value::String(_)) = request.get("input") {
        return Ok(());
    }
    let stored = request.get("store") != Some(&Value::Bool(false));
    let continues = request.get("previous_response_id").is_some_and(Value::is_string)
        || request.get("conversation").is_some_and(|it| it.is_string() || it.is_object());
    // A request that continues a stored response or conversation may add nothing to it.
    if continues && request.get("input").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        return Ok(());
    }
    let items = filled_list(request.get("input"), "input", "input")?;
    let mut calls = Calls::default();
    let mut ids = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let at = format!("input[{index}]");
        let item = object(item, "item", &at)?;
        let kind = kind_of(item, &at)?;
        check_id(item, kind, &at)?;
        check_unique_id(item, kind, &mut ids, &at)?;
        match kind {
            "message" => {
                check_message(item, &at)?;
                if item.get("role").and_then(Value::as_str) != Some("assistant") {
                    calls.all_answered(&at)?;
                }
            }
            "reasoning" => check_reasoning(item, items.get(index + 1), stored, &at)?,
            "item_reference" if !stored => {
                return refuse("not_stored", at, "store is false, so there is nothing to refer to");
            }
            _ => {
                if let Some((_, answer)) = CALLS.iter().find(|(call, _)| *call == kind) {
                    check_call(item, kind, &at)?;
                    calls.open(call_id(item, &at)?, answer, &at)?;
                } else if CALLS.iter().any(|(_, answer)| *answer == kind) {
                    check_output(item, kind, &at)?;
                    calls.answer(call_id(item, &at)?, kind, continues, &at)?;
                } else if !MODEL_ITEMS.contains(&kind) && !OTHER_ITEMS.contains(&kind) {
                    return refuse("item", at, format!("no item of type {kind:?}"));
                }
            }
        }
    }
    calls.all_answered(&format!("input[{}]", items.len()))
}

/// The calls so far, each with the type of its output item, or `None` after that
/// item.
#[derive(Default)]
struct Calls<'a> {
    by_id: HashMap<&'a str, Option<&'static str>>,
    order: Vec<&'a str>,
}

impl<'a> Calls<'a> {
    fn open(&mut self, id: &'a str, answer: &'static str, at: &str) -> Check {
        if self.by_id.insert(id, Some(answer)).is_some() {
            return refuse("duplicate_call", at, format!("{id} was called already"));
        }
        self.order.push(id);
        Ok(())
    }

    fn answer(&mut self, id: &'a str, kind: &str, continues: bool, at: &str) -> Check {
        match self.by_id.get_mut(id) {
            Some(waits) if *waits == Some(kind) => {
                *waits = None;
                self.order.retain(|open| *open != id);
                Ok(())
            }
            Some(None) => refuse("duplicate_result", at, format!("{id} is answered already")),
            Some(Some(other)) => refuse("unknown_result", at, format!("{id} waits for {other}")),
            // The call may be in the response that the request continues.
            None if continues => {
                self.by_id.insert(id, None);
                Ok(())
            }
            None => refuse("unknown_result", at, format!("there is no call {id} before it")),
        }
    }

    fn all_answered(&self, at: &str) -> Check {
        match self.order.first() {
            Some(id) => refuse("unanswered_call", at, format!("the call {id} is not answered")),
            None => Ok(()),
        }
    }
}

fn kind_of<'a>(item: &'a Map<String, Value>, at: &str) -> Check<&'a str> {
    match item.get("type") {
        Some(Value::String(kind)) => Ok(kind),
        None if item.contains_key("role") => Ok("message"),
        _ => refuse("item", at, "no type"),
    }
}

/// An id that the server made starts with a prefix for the type of the item.
fn check_id(item: &Map<String, Value>, kind: &str, at: &str) -> Check {
    let prefix = match kind {
        "message" => "msg",
        "reasoning" => "rs",
        "function_call" => "fc",
        "custom_tool_call" => "ctc",
        "web_search_call" => "ws",
        _ => "",
    };
    match item.get("id") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(id)) if id.starts_with(prefix) && is_word(id, "_-", MAX_ID_CHARS) => {
            Ok(())
        }
        Some(id) => refuse(
            "item_id",
            format!("{at}.id"),
            format!("{id} does not start with {prefix:?} or is longer than {MAX_ID_CHARS}"),
        ),
    }
}

/// Whether the model made the item.
fn is_model_item(item: &Map<String, Value>, kind: &str) -> bool {
    let is_answer =
        kind == "message" && item.get("role").and_then(Value::as_str) == Some("assistant");
    is_answer || CALLS.iter().any(|(call, _)| *call == kind) || MODEL_ITEMS.contains(&kind)
}

/// The id of a call or of an assistant message is used once.
fn check_unique_id<'a>(
    item: &'a Map<String, Value>,
    kind: &str,
    ids: &mut HashSet<&'a str>,
    at: &str,
) -> Check {
    let is_model_output = ["function_call", "custom_tool_call"].contains(&kind)
        || (kind == "message" && is_model_item(item, kind));
    let Some(id) = item.get("id").and_then(Value::as_str).filter(|_| is_model_output) else {
        return Ok(());
    };
    match ids.insert(id) {
        true => Ok(()),
        false => refuse("duplicate_item", at, format!("{id} is used twice")),
    }
}

fn call_id<'a>(item: &'a Map<String, Value>, at: &str) -> Check<&'a str> {
    let id = filled_string(item, "call_id", "call_id", at)?;
    match id.chars().count() > MAX_ID_CHARS {
        true => refuse("call_id", at, format!("longer than {MAX_ID_CHARS}: {id}")),
        false => Ok(id),
    }
}

fn check_message(item: &Map<String, Value>, at: &str) -> Check {
    only_fields(item, &["type", "role", "content", "id", "status", "phase"], "field", at)?;
    let role = string(item, "role", "role", at)?;
    if !["user", "assistant", "system", "developer"].contains(&role) {
        return refuse("role", at, format!("no role {role:?}"));
    }
    let at = format!("{at}.content");
    match item.get("content") {
        Some(Value::String(_)) => Ok(()),
        content => {
            let allowed: &[&str] = match role {
                "assistant" => &["output_text", "refusal"],
                "user" => &["input_text", "input_image", "input_file", "input_audio"],
                _ => &["input_text"],
            };
            check_parts(filled_list(content, "content", &at)?, allowed, &at)
        }
    }
}

fn check_parts(parts: &[Value], allowed: &[&str], at: &str) -> Check {
    for (index, part) in parts.iter().enumerate() {
        let at = format!("{at}[{index}]");
        let part = object(part, "part", &at)?;
        let kind = string(part, "type", "part", &at)?;
        if !allowed.contains(&kind) {
            return refuse("part", at, format!("{kind:?} is none of {allowed:?}"));
        }
        let known: &[&str] = match kind {
            "output_text" => &["type", "text", "annotations", "logprobs"],
            "input_text" => &["type", "text"],
            "refusal" => &["type", "refusal"],
            "input_image" => &["type", "image_url", "file_id", "detail"],
            "input_file" => &["type", "file_id", "file_data", "file_url", "filename"],
            _ => &["type", "input_audio"],
        };
        only_fields(part, known, "field", &at)?;
        match kind {
            "output_text" | "input_text" | "refusal" => {
                let field = if kind == "refusal" { "refusal" } else { "text" };
                string(part, field, "part", &at)?;
            }
            "input_image" | "input_file" => {
                let given = ["image_url", "file_id", "file_data", "file_url"];
                if given.iter().filter(|field| part.contains_key(**field)).count() != 1 {
                    return refuse("part", at, "one of file_id, a URL or the data");
                }
                if let Some(url) = part.get("image_url") {
                    check_url(url, &at)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_url(url: &Value, at: &str) -> Check {
    let is_valid = |url: &str| {
        let embedded = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
        embedded.is_some_and(|(kind, data)| IMAGES.contains(&kind) && is_plain_base64(data))
            || ["https://", "http://"].iter().any(|start| url.starts_with(start))
    };
    match url.as_str() {
        Some(url) if is_valid(url) => Ok(()),
        _ => refuse("part", at, "image_url is a string: an http URL or a data URL"),
    }
}

fn check_call(item: &Map<String, Value>, kind: &str, at: &str) -> Check {
    let text = match kind {
        "function_call" => "arguments",
        "custom_tool_call" => "input",
        _ => return Ok(()),
    };
    only_fields(
        item,
        &["type", "id", "call_id", "name", "namespace", "status", text],
        "field",
        at,
    )?;
    let name = string(item, "name", "function_name", at)?;
    if !is_word(name, "_-", 64) {
        return refuse(
            "function_name",
            at,
            format!("{name:?} does not match [a-zA-Z0-9_-]{{1,64}}"),
        );
    }
    string(item, text, "arguments", at)?;
    Ok(())
}

fn check_output(item: &Map<String, Value>, kind: &str, at: &str) -> Check {
    if !["function_call_output", "custom_tool_call_output"].contains(&kind) {
        return Ok(());
    }
    only_fields(item, &["type", "id", "call_id", "output", "status"], "field", at)?;
    let at = format!("{at}.output");
    match item.get("output") {
        // The output may be empty.
        Some(Value::String(_)) => Ok(()),
        Some(Value::Array(parts)) if !parts.is_empty() => {
            check_parts(parts, &["input_text", "input_image", "input_file"], &at)
        }
        _ => refuse("output", at, "neither a string nor a list of parts"),
    }
}

/// Reasoning must be followed by the item to which it belongs: an item that the model made.
fn check_reasoning(
    item: &Map<String, Value>,
    next: Option<&Value>,
    stored: bool,
    at: &str,
) -> Check {
    only_fields(
        item,
        &["type", "id", "summary", "content", "encrypted_content", "status"],
        "field",
        at,
    )?;
    if !item.get("encrypted_content").is_some_and(Value::is_string) {
        string(item, "id", "reasoning", at)?;
    }
    if !item.get("summary").is_some_and(Value::is_array) {
        return refuse("reasoning", format!("{at}.summary"), "not a list");
    }
    if !stored && !item.get("encrypted_content").is_some_and(Value::is_string) {
        return refuse("not_stored", at, "store is false, and encrypted_content is missing");
    }
    let is_model_item = next.and_then(Value::as_object).is_some_and(|next| {
        let role = next.get("role").and_then(Value::as_str);
        match next.get("type").and_then(Value::as_str) {
            None | Some("message") => role == Some("assistant"),
            Some("reasoning") => true,
            Some(kind) => {
                CALLS.iter().any(|(call, _)| *call == kind) || MODEL_ITEMS.contains(&kind)
            }
        }
    });
    match is_model_item {
        true => Ok(()),
        false => refuse("reasoning_alone", at, "no item of the model follows"),
    }
}
