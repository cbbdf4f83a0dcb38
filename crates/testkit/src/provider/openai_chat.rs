//! OpenAI's Chat Completions: the rules of `POST /v1/chat/completions` for `messages`.

use serde_json::{Map, Value};

use super::{
    Check, IMAGES, filled_list, filled_string, is_plain_base64, is_word, object, only_fields,
    refuse, string,
};

/// The names of the rules.
pub const RULES: &[&str] = &[
    "messages",
    "role",
    "field",
    "content",
    "part",
    "name",
    "tool_calls",
    "call_id",
    "function_name",
    "arguments",
    "unanswered_call",
    "unknown_result",
    "duplicate_call",
    "duplicate_result",
];

/// Maximum length of call ids, in characters.
const MAX_ID_CHARS: usize = 40;
/// Maximum length of function names, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Checks a request.
pub fn check(request: &Value) -> Check {
    let request = object(request, "messages", "request")?;
    let messages = filled_list(request.get("messages"), "messages", "messages")?;
    let mut open: Vec<&str> = Vec::new();
    let mut answered: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages[{index}]");
        let message = object(message, "messages", &at)?;
        let role = string(message, "role", "role", &at)?;
        check_fields(message, role, &at)?;
        if role == "tool" {
            let id = filled_string(message, "tool_call_id", "unknown_result", &at)?;
            if answered.contains(&id) {
                return refuse("duplicate_result", at, format!("{id} is answered already"));
            }
            let Some(position) = open.iter().position(|open| *open == id) else {
                return refuse("unknown_result", at, format!("no call {id} is open"));
            };
            answered.push(open.remove(position));
        } else {
            if let Some(id) = open.first() {
                return refuse("unanswered_call", at, format!("the call {id} is not answered"));
            }
            answered.clear();
        }
        check_content(message, role, &at)?;
        if let Some(calls) = message.get("tool_calls") {
            open = check_calls(calls, &format!("{at}.tool_calls"))?;
        }
        check_name(message, role, &at)?;
    }
    match open.first() {
        Some(id) => refuse(
            "unanswered_call",
            format!("messages[{}]", messages.len()),
            format!("the call {id} is not answered"),
        ),
        None => Ok(()),
    }
}

fn check_fields(message: &Map<String, Value>, role: &str, at: &str) -> Check {
    let known: &[&str] = match role {
        "system" | "developer" | "user" | "function" => &["role", "content", "name"],
        "assistant" => &[
            "role",
            "content",
            "name",
            "tool_calls",
            "refusal",
            "audio",
            "function_call",
            "annotations",
        ],
        "tool" => &["role", "content", "tool_call_id"],
        other => return refuse("role", at, format!("no role {other:?}")),
    };
    only_fields(message, known, "field", at)
}

fn check_content(message: &Map<String, Value>, role: &str, at: &str) -> Check {
    let at = format!("{at}.content");
    let has = |field: &str| message.get(field).is_some_and(|value| !value.is_null());
    let has_other_content = role == "assistant"
        && ["tool_calls", "function_call", "audio", "refusal"].iter().any(|field| has(field));
    match message.get("content") {
        None | Some(Value::Null) if has_other_content => Ok(()),
        None | Some(Value::Null) => {
            refuse("content", at, "missing, and no other field replaces it")
        }
        Some(Value::String(_)) => Ok(()),
        Some(Value::Array(parts)) if parts.is_empty() => refuse("content", at, "an empty list"),
        Some(Value::Array(parts))
            if parts.len() > 1 && parts.iter().any(|part| part["type"] == "refusal") =>
        {
            refuse("content", at, "a refusal must be the only part, or in the field refusal")
        }
        Some(Value::Array(parts)) => parts
            .iter()
            .enumerate()
            .try_for_each(|(index, part)| check_part(part, role, &format!("{at}[{index}]"))),
        Some(_) => refuse("content", at, "neither a string nor a list"),
    }
}

fn check_part(part: &Value, role: &str, at: &str) -> Check {
    let part = object(part, "part", at)?;
    let kind = string(part, "type", "part", at)?;
    let allowed: &[&str] = match role {
        "user" => &["text", "image_url", "input_audio", "file"],
        "assistant" => &["text", "refusal"],
        _ => &["text"],
    };
    if !allowed.contains(&kind) {
        return refuse("part", at, format!("{kind} in a message from {role}"));
    }
    match kind {
        "text" => {
            only_fields(part, &["type", "text"], "field", at)?;
            text_field(part, "text", at)
        }
        "refusal" => {
            only_fields(part, &["type", "refusal"], "field", at)?;
            text_field(part, "refusal", at)
        }
        "image_url" => {
            only_fields(part, &["type", "image_url"], "field", at)?;
            let image = inner(part, "image_url", at)?;
            only_fields(image, &["url", "detail"], "field", at)?;
            let url = filled_string(image, "url", "part", at)?;
            check_url(url, at)
        }
        "input_audio" => {
            only_fields(part, &["type", "input_audio"], "field", at)?;
            let audio = inner(part, "input_audio", at)?;
            let data = filled_string(audio, "data", "part", at)?;
            let format = string(audio, "format", "part", at)?;
            if !is_plain_base64(data) || !["wav", "mp3"].contains(&format) {
                return refuse("part", at, "audio is base64 of wav or mp3");
            }
            Ok(())
        }
        _ => {
            only_fields(part, &["type", "file"], "field", at)?;
            let file = inner(part, "file", at)?;
            only_fields(file, &["file_id", "file_data", "filename"], "field", at)?;
            if file.contains_key("file_id") == file.contains_key("file_data") {
                return refuse("part", at, "a file has file_id or file_data");
            }
            Ok(())
        }
    }
}

fn text_field(part: &Map<String, Value>, field: &str, at: &str) -> Check {
    string(part, field, "part", at).map(drop)
}

fn inner<'a>(part: &'a Map<String, Value>, field: &str, at: &str) -> Check<&'a Map<String, Value>> {
    match part.get(field) {
        Some(value) => object(value, "part", &format!("{at}.{field}")),
        None => refuse("part", format!("{at}.{field}"), "missing"),
    }
}

/// An image URL is an HTTP URL or a data URL.
fn check_url(url: &str, at: &str) -> Check {
    let embedded = url
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"))
        .is_some_and(|(kind, data)| IMAGES.contains(&kind) && is_plain_base64(data));
    if embedded || url.starts_with("https://") || url.starts_with("http://") {
        Ok(())
    } else {
        refuse("part", at, "an image is an http URL or a data URL with base64")
    }
}

fn check_calls<'a>(calls: &'a Value, at: &str) -> Check<Vec<&'a str>> {
    let mut ids = Vec::new();
    for (index, call) in filled_list(Some(calls), "tool_calls", at)?.iter().enumerate() {
        let at = format!("{at}[{index}]");
        let call = object(call, "tool_calls", &at)?;
        let id = filled_string(call, "id", "call_id", &at)?;
        if id.chars().count() > MAX_ID_CHARS {
            return refuse("call_id", at, format!("longer than {MAX_ID_CHARS}: {id}"));
        }
        if ids.contains(&id) {
            return refuse("duplicate_call", at, format!("{id} is used twice"));
        }
        ids.push(id);
        let kind = string(call, "type", "tool_calls", &at)?;
        let (field, text) = match kind {
            "function" => ("function", "arguments"),
            "custom" => ("custom", "input"),
            other => return refuse("tool_calls", at, format!("no call of type {other:?}")),
        };
        only_fields(call, &["id", "type", field], "field", &at)?;
        let Some(body) = call.get(field) else {
            return refuse("tool_calls", at, format!("no {field}"));
        };
        let body = object(body, "tool_calls", &at)?;
        only_fields(body, &["name", text], "field", &at)?;
        check_function_name(string(body, "name", "function_name", &at)?, &at)?;
        string(body, text, "arguments", &at)?;
    }
    Ok(ids)
}

fn check_function_name(name: &str, at: &str) -> Check {
    if is_word(name, "_-", MAX_NAME_CHARS) {
        Ok(())
    } else {
        refuse("function_name", at, format!("{name:?} does not match [a-zA-Z0-9_-]{{1,64}}"))
    }
}

/// The name of the author: no spaces and none of `<|\/>`.
fn check_name(message: &Map<String, Value>, role: &str, at: &str) -> Check {
    let at = format!("{at}.name");
    match message.get("name") {
        None if role == "function" => refuse("name", at, "a function message needs a name"),
        None => Ok(()),
        Some(Value::String(name))
            if !name.is_empty()
                && name.chars().count() <= MAX_NAME_CHARS
                && !name.chars().any(|c| c.is_whitespace() || "<|\\/>".contains(c)) =>
        {
            Ok(())
        }
        Some(name) => refuse("name", at, format!("{name} is not a valid name")),
    }
}
