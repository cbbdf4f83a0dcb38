//! Anthropic's Messages: the rules of `POST /v1/messages` for `system` and `messages`.
//!
//! Two rules are stricter than those of the provider. The provider joins consecutive
//! messages of one role before it pairs calls with results, and accepts a last assistant
//! message without content. Here results must be in the next message, and no message
//! may be empty.

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
    "empty_text",
    "block",
    "system",
    "call_id",
    "tool_name",
    "input",
    "unanswered_call",
    "unknown_result",
    "duplicate_call",
    "duplicate_result",
    "results_first",
    "error_result",
    "signature",
    "last_thinking",
    "trailing_whitespace",
    "cache_control",
    "server_result",
    "thinking_first",
    "citations",
];

/// Maximum length of tool names in messages, in characters.
const MAX_NAME_CHARS: usize = 200;
/// Maximum number of blocks with `cache_control`.
const MAX_CACHE_MARKS: usize = 4;

/// Blocks in messages from the user.
const USER_BLOCKS: &[&str] =
    &["text", "image", "document", "search_result", "tool_result", "container_upload"];
/// Blocks in messages from the assistant.
const ASSISTANT_BLOCKS: &[&str] = &[
    "text",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "advisor_tool_result",
    "mcp_tool_use",
    "mcp_tool_result",
    "container_upload",
    "compaction",
    "fallback",
];

/// Checks a request.
pub fn check(request: &Value) -> Check {
    let request = object(request, "messages", "request")?;
    check_system(request.get("system"))?;
    let messages = filled_list(request.get("messages"), "messages", "messages")?;
    let mut open_calls: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages[{index}]");
        let message = object(message, "messages", &at)?;
        let role = string(message, "role", "role", &at)?;
        let fields: &[&str] = match role {
            "system" => &["role", "content", "output_config", "clear_at"],
            _ => &["role", "content"],
        };
        only_fields(message, fields, "field", &at)?;
        // A system message without content changes the effort. Its position is free.
        let is_empty = message.get("content").and_then(Value::as_array).is_some_and(Vec::is_empty);
        let changes_effort = role == "system" && is_empty && message.contains_key("output_config");
        if changes_effort && open_calls.is_empty() && accepts_listed_system(request) {
            continue;
        }
        // Newer models accept a system message between the user, or the result of a tool that the provider
        // ran, and the assistant.
        let role_at =
            |index: usize| messages.get(index).and_then(|message| message["role"].as_str());
        let ends_with_result = |index: usize| {
            let last = messages[index]["content"].as_array().and_then(|blocks| blocks.last());
            last.and_then(|block| block["type"].as_str())
                .is_some_and(|kind| kind.ends_with("_tool_result"))
        };
        let is_between = index > 0
            && (role_at(index - 1) == Some("user") || ends_with_result(index - 1))
            && role_at(index + 1).is_none_or(|role| role == "assistant");
        let is_accepted = is_between && open_calls.is_empty() && accepts_listed_system(request);
        if role == "system" && is_accepted {
            check_system(message.get("content"))?;
            continue;
        }
        if !["user", "assistant"].contains(&role) {
            return refuse("role", at, format!("no role {role:?}"));
        }
        let blocks = blocks_of(message, &at)?;
        check_results(blocks, &open_calls, &at)?;
        open_calls = check_blocks(blocks, role, &at, index + 1 == messages.len())?;
    }
    let last = format!("messages[{}]", messages.len() - 1);
    if let Some(id) = open_calls.first() {
        return refuse("unanswered_call", last, format!("the call {id} is not answered"));
    }
    check_last(messages, &last)?;
    check_cache_marks(request)?;
    check_citations(messages)?;
    check_thinking_first(request, messages)
}

/// True unless the request names a model before Claude 4.8, which has no role system in its messages.
fn accepts_listed_system(request: &Map<String, Value>) -> bool {
    const OLDER: [&str; 7] = ["claude-2", "claude-3", "-4-0", "-4-1", "-4-5", "-4-6", "-4-7"];
    let model = request.get("model").and_then(Value::as_str).unwrap_or_default();
    !OLDER.iter().any(|older| model.contains(older))
}

/// The blocks of a message. A string has none; it is checked here.
fn blocks_of<'a>(message: &'a Map<String, Value>, at: &str) -> Check<&'a [Value]> {
    let at = format!("{at}.content");
    match message.get("content") {
        Some(Value::String(text)) if text.trim().is_empty() => {
            refuse("empty_text", at, "only whitespace")
        }
        Some(Value::String(_)) => Ok(&[]),
        content => filled_list(content, "content", &at),
    }
}

fn check_system(system: Option<&Value>) -> Check {
    match system {
        None => Ok(()),
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(()),
        Some(Value::String(_)) => refuse("empty_text", "system", "only whitespace"),
        list => {
            for (index, block) in filled_list(list, "system", "system")?.iter().enumerate() {
                let at = format!("system[{index}]");
                let block = object(block, "system", &at)?;
                if string(block, "type", "system", &at)? != "text" {
                    return refuse("system", at, "only text");
                }
                check_text(block, &at)?;
            }
            Ok(())
        }
    }
}

/// The results at the start of a message belong to exactly the calls of the message before.
fn check_results(blocks: &[Value], open_calls: &[&str], at: &str) -> Check {
    let kind = |block: &Value| block.get("type").and_then(Value::as_str) == Some("tool_result");
    let mut given = Vec::new();
    let mut others = false;
    for (index, block) in blocks.iter().enumerate() {
        if !kind(block) {
            others = true;
            continue;
        }
        let at = format!("{at}.content[{index}]");
        let block = object(block, "block", &at)?;
        let id = filled_string(block, "tool_use_id", "unknown_result", &at)?;
        if given.contains(&id) {
            return refuse("duplicate_result", at, format!("{id} is answered twice"));
        }
        if !open_calls.contains(&id) {
            return refuse("unknown_result", at, format!("the message before has no call {id}"));
        }
        if others {
            return refuse("results_first", at, "another block is before a result");
        }
        given.push(id);
    }
    match open_calls.iter().find(|id| !given.contains(id)) {
        Some(id) => refuse("unanswered_call", at, format!("the call {id} is not answered")),
        None => Ok(()),
    }
}

/// Checks each block. Returns the calls to which the next message must have results.
fn check_blocks<'a>(blocks: &'a [Value], role: &str, at: &str, last: bool) -> Check<Vec<&'a str>> {
    let mut open_calls = Vec::new();
    let mut open_server_calls = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let at = format!("{at}.content[{index}]");
        let block = object(block, "block", &at)?;
        let kind = string(block, "type", "block", &at)?;
        let allowed = if role == "user" { USER_BLOCKS } else { ASSISTANT_BLOCKS };
        if !allowed.contains(&kind) {
            return refuse("block", at, format!("{kind} in a message from {role}"));
        }
        match kind {
            "text" => check_text(block, &at)?,
            "image" => check_image(block, &at)?,
            "tool_result" => check_result(block, &at)?,
            "thinking" => {
                only_fields(block, &["type", "thinking", "signature"], "field", &at)?;
                string(block, "thinking", "block", &at)?;
                filled_string(block, "signature", "signature", &at)?;
            }
            "redacted_thinking" => {
                only_fields(block, &["type", "data"], "field", &at)?;
                filled_string(block, "data", "signature", &at)?;
            }
            "tool_use" => {
                let id = check_call(block, &at)?;
                // A later message may use the id again.
                if open_calls.contains(&id) {
                    return refuse("duplicate_call", at, format!("{id} was called already"));
                }
                open_calls.push(id);
            }
            "server_tool_use" | "mcp_tool_use" => {
                open_server_calls.push(filled_string(block, "id", "call_id", &at)?);
            }
            _ if kind.ends_with("_tool_result") => {
                let id = filled_string(block, "tool_use_id", "server_result", &at)?;
                let Some(position) = open_server_calls.iter().position(|open| *open == id) else {
                    return refuse("server_result", at, format!("there is no call {id} before it"));
                };
                open_server_calls.remove(position);
            }
            _ => {}
        }
    }
    // A last message may end with a call that the server continues.
    match open_server_calls.first() {
        Some(id) if !last => refuse("server_result", at, format!("{id} has no result")),
        _ => Ok(open_calls),
    }
}

fn check_text(block: &Map<String, Value>, at: &str) -> Check {
    only_fields(block, &["type", "text", "cache_control", "citations"], "field", at)?;
    match string(block, "text", "block", at)?.trim() {
        "" => refuse("empty_text", at, "only whitespace"),
        _ => Ok(()),
    }
}

fn check_image(block: &Map<String, Value>, at: &str) -> Check {
    only_fields(block, &["type", "source", "cache_control"], "field", at)?;
    let at = format!("{at}.source");
    let Some(source) = block.get("source") else {
        return refuse("block", at, "missing");
    };
    let source = object(source, "block", &at)?;
    match string(source, "type", "block", &at)? {
        "base64" => {
            let kind = string(source, "media_type", "block", &at)?;
            let data = filled_string(source, "data", "block", &at)?;
            match IMAGES.contains(&kind) && is_plain_base64(data) {
                true => Ok(()),
                false => refuse("block", at, "base64 of a JPEG, PNG, GIF or WebP"),
            }
        }
        "url" => filled_string(source, "url", "block", &at).map(drop),
        "file" => filled_string(source, "file_id", "block", &at).map(drop),
        other => refuse("block", at, format!("no source {other:?}")),
    }
}

fn check_call<'a>(block: &'a Map<String, Value>, at: &str) -> Check<&'a str> {
    only_fields(block, &["type", "id", "name", "input", "cache_control", "caller"], "field", at)?;
    let id = string(block, "id", "call_id", at)?;
    if !is_word(id, "_-", usize::MAX) {
        return refuse("call_id", at, format!("{id:?} does not match ^[a-zA-Z0-9_-]+$"));
    }
    let name = string(block, "name", "tool_name", at)?;
    if !is_word(name, "_-", MAX_NAME_CHARS) {
        return refuse("tool_name", at, format!("{name:?} does not match [a-zA-Z0-9_-]{{1,200}}"));
    }
    match block.get("input") {
        Some(Value::Object(_)) => Ok(id),
        _ => refuse("input", format!("{at}.input"), "not an object"),
    }
}

fn check_result(block: &Map<String, Value>, at: &str) -> Check {
    only_fields(
        block,
        &["type", "tool_use_id", "content", "is_error", "cache_control"],
        "field",
        at,
    )?;
    let is_error = match block.get("is_error") {
        None => false,
        Some(Value::Bool(is_error)) => *is_error,
        Some(_) => return refuse("block", format!("{at}.is_error"), "not a boolean"),
    };
    let at = format!("{at}.content");
    let empty = match block.get("content") {
        None => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(parts)) => {
            for (index, part) in parts.iter().enumerate() {
                let at = format!("{at}[{index}]");
                let part = object(part, "block", &at)?;
                match string(part, "type", "block", &at)? {
                    "text" => check_text(part, &at)?,
                    other if is_error => {
                        return refuse("error_result", at, format!("{other} in an error"));
                    }
                    "image" => check_image(part, &at)?,
                    "document" | "search_result" | "tool_reference" => {}
                    other => return refuse("block", at, format!("{other} in a result")),
                }
            }
            parts.is_empty()
        }
        Some(_) => return refuse("block", at, "neither a string nor a list"),
    };
    match is_error && empty {
        true => refuse("error_result", at, "the content of an error is empty"),
        false => Ok(()),
    }
}

/// No message ends with thinking, and a last message from the assistant does not end with whitespace.
fn check_last(messages: &[Value], last: &str) -> Check {
    for (index, message) in messages.iter().enumerate() {
        let block = message.get("content").and_then(Value::as_array).and_then(|list| list.last());
        let kind = block.and_then(|block| block.get("type")).and_then(Value::as_str);
        if kind.is_some_and(|kind| kind == "thinking" || kind == "redacted_thinking") {
            return refuse("last_thinking", format!("messages[{index}]"), "it ends with thinking");
        }
    }
    let Some(message) = messages.last().filter(|message| message["role"] == "assistant") else {
        return Ok(());
    };
    let text = match &message["content"] {
        Value::Array(blocks) => blocks.last().and_then(|block| block.get("text")),
        content => Some(content),
    };
    match text.and_then(Value::as_str) {
        Some(text) if text.ends_with(char::is_whitespace) => {
            refuse("trailing_whitespace", last, "the last message ends with whitespace")
        }
        _ => Ok(()),
    }
}

fn check_cache_marks(request: &Map<String, Value>) -> Check {
    let (mut marks, mut has_short) = (0, false);
    // In reverse order: the tools are before the system prompt, and that is before the messages.
    let mut waiting: Vec<&Value> =
        [request.get("messages"), request.get("system"), request.get("tools")]
            .into_iter()
            .flatten()
            .collect();
    while let Some(value) = waiting.pop() {
        match value {
            Value::Array(list) => waiting.extend(list.iter().rev()),
            Value::Object(map) => {
                match map.get("cache_control") {
                    None | Some(Value::Null) => {}
                    Some(mark) if mark["type"] != "ephemeral" => {
                        return refuse("cache_control", "request", "its type must be ephemeral");
                    }
                    Some(mark) if mark["ttl"] == "1h" && has_short => {
                        let reason = "a mark of one hour is after a mark of five minutes";
                        return refuse("cache_control", "request", reason);
                    }
                    Some(mark) => {
                        has_short |= mark["ttl"] != "1h";
                        marks += 1;
                    }
                }
                waiting.extend(map.get("content"));
            }
            _ => {}
        }
    }
    match marks > MAX_CACHE_MARKS {
        true => {
            refuse("cache_control", "request", format!("{marks} blocks have it; the maximum is 4"))
        }
        false => Ok(()),
    }
}

/// Citations are enabled for all documents or for none.
fn check_citations(messages: &[Value]) -> Check {
    let mut first = None;
    let mut waiting: Vec<&Value> = messages.iter().rev().collect();
    while let Some(value) = waiting.pop() {
        if value["type"] == "document" {
            let cited = value["citations"]["enabled"] == true;
            if *first.get_or_insert(cited) != cited {
                return refuse("citations", "messages", "some documents have them, others not");
            }
        }
        waiting.extend(value["content"].as_array().into_iter().flatten().rev());
    }
    Ok(())
}

/// With thinking enabled, a turn that uses tools starts with thinking.
fn check_thinking_first(request: &Map<String, Value>, messages: &[Value]) -> Check {
    let enabled = request.get("thinking").is_some_and(|thinking| thinking["type"] == "enabled");
    let [.., assistant, results] = messages else {
        return Ok(());
    };
    let kind = |message: &Value| {
        let first = message.get("content").and_then(Value::as_array).and_then(|list| list.first());
        first.and_then(|block| block.get("type")).and_then(Value::as_str).map(str::to_owned)
    };
    let in_turn = kind(results).as_deref() == Some("tool_result");
    let thinks = kind(assistant).is_some_and(|kind| kind.ends_with("thinking"));
    match enabled && in_turn && !thinks {
        true => refuse(
            "thinking_first",
            format!("messages[{}]", messages.len() - 2),
            "thinking is enabled, and the message does not start with it",
        ),
        false => Ok(()),
    }
}
