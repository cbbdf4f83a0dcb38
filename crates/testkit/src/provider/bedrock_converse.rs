//! Amazon Bedrock's Converse: the rules of `POST /model/ID/converse` for `system`, `messages` and
//! `toolConfig`, with the rules of Claude for thinking.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{
    Check, filled_list, filled_string, is_plain_base64, is_word, object, only_fields, refuse,
    string,
};

/// The names of the rules.
pub const RULES: &[&str] = &[
    "messages",
    "role",
    "alternation",
    "field",
    "content",
    "block",
    "empty_text",
    "system",
    "tool_use_id",
    "tool_name",
    "input",
    "tool_config",
    "unanswered_call",
    "unknown_result",
    "duplicate_call",
    "duplicate_result",
    "error_result",
    "signature",
    "thinking_first",
    "last_thinking",
    "trailing_whitespace",
    "document_text",
    "document_name",
    "media",
];

/// Maximum length of ids and names of tools, in characters.
const MAX_ID_CHARS: usize = 64;
/// Maximum length of the name of a document, in characters.
const MAX_DOCUMENT_NAME_CHARS: usize = 200;
const IMAGES: &[&str] = &["png", "jpeg", "gif", "webp"];
const DOCUMENTS: &[&str] = &["pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"];

/// Checks a request.
pub fn check(request: &Value) -> Check {
    let request = object(request, "messages", "request")?;
    check_system(request.get("system"))?;
    let messages = filled_list(request.get("messages"), "messages", "messages")?;
    let mut state = State::default();
    let mut previous_role = "";
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages[{index}]");
        let message = object(message, "messages", &at)?;
        only_fields(message, &["role", "content"], "field", &at)?;
        let role = string(message, "role", "role", &at)?;
        if !["user", "assistant"].contains(&role) {
            return refuse("role", at, format!("no role {role:?}"));
        }
        if role == previous_role {
            return refuse("alternation", at, format!("a second message from {role} in a row"));
        }
        previous_role = role;
        let content = filled_list(message.get("content"), "content", &format!("{at}.content"))?;
        check_message(content, role, &mut state, &at)?;
    }
    let last = format!("messages[{}]", messages.len() - 1);
    if let Some(id) = state.open.first() {
        return refuse("unanswered_call", last, format!("the call {id} is not answered"));
    }
    if state.has_calls && !request.get("toolConfig").is_some_and(Value::is_object) {
        return refuse("tool_config", "toolConfig", "a request with calls must have tools");
    }
    let text = messages.last().filter(|message| message["role"] == "assistant");
    let text = text.and_then(|message| message["content"].as_array()?.last()?["text"].as_str());
    match text {
        Some(text) if text.ends_with(char::is_whitespace) => {
            refuse("trailing_whitespace", last, "the last message ends with whitespace")
        }
        _ => Ok(()),
    }
}

/// State from the messages before the current one.
#[derive(Default)]
struct State<'a> {
    /// Ids of calls without a result.
    open: Vec<&'a str>,
    has_calls: bool,
    /// Names of documents.
    documents: HashSet<&'a str>,
}

fn check_system(system: Option<&Value>) -> Check {
    let Some(system) = system else { return Ok(()) };
    for (index, block) in filled_list(Some(system), "system", "system")?.iter().enumerate() {
        let at = format!("system[{index}]");
        match single_field(block, &at)? {
            ("text", text) => check_text(text, &at)?,
            ("cachePoint" | "guardContent", _) => {}
            (kind, _) => return refuse("system", at, format!("{kind} in system")),
        }
    }
    Ok(())
}

/// The name and the value of a block, which has one field.
fn single_field<'a>(block: &'a Value, at: &str) -> Check<(&'a str, &'a Value)> {
    let block = object(block, "block", at)?;
    match block.iter().next() {
        Some((kind, value)) if block.len() == 1 => Ok((kind, value)),
        _ => refuse("block", at, "a block has one field"),
    }
}

fn check_text(text: &Value, at: &str) -> Check {
    match text.as_str() {
        Some(text) if !text.trim().is_empty() => Ok(()),
        Some(_) => refuse("empty_text", at, "the text is blank"),
        None => refuse("block", at, "text must be a string"),
    }
}

fn check_message<'a>(content: &'a [Value], role: &str, state: &mut State<'a>, at: &str) -> Check {
    let mut kinds = Vec::new();
    let mut given = Vec::new();
    let calls = std::mem::take(&mut state.open);
    for (index, block) in content.iter().enumerate() {
        let at = format!("{at}.content[{index}]");
        let (kind, value) = single_field(block, &at)?;
        kinds.push(kind);
        match (kind, role) {
            ("text", _) => check_text(value, &at)?,
            ("toolUse", "assistant") => {
                let id = check_call(value, &at)?;
                if state.open.contains(&id) {
                    return refuse("duplicate_call", at, format!("{id} was called already"));
                }
                state.open.push(id);
                state.has_calls = true;
            }
            ("toolResult", "user") => {
                let result = object(value, "block", &at)?;
                let id = filled_string(result, "toolUseId", "unknown_result", &at)?;
                if given.contains(&id) {
                    return refuse("duplicate_result", at, format!("{id} is answered twice"));
                }
                if !calls.contains(&id) {
                    return refuse("unknown_result", at, format!("no call {id} before it"));
                }
                given.push(id);
                check_result(result, state, &at)?;
            }
            ("reasoningContent", "assistant") => check_reasoning(value, &at)?,
            ("image", "user") => check_image(value, &at)?,
            ("document", "user") => check_document(value, state, &at)?,
            ("video" | "audio" | "guardContent" | "searchResult", "user") => {}
            ("cachePoint", _) | ("citationsContent", "assistant") => {}
            _ => return refuse("block", at, format!("{kind} in a message from {role}")),
        }
    }
    if let Some(id) = calls.iter().find(|id| !given.contains(id)) {
        return refuse("unanswered_call", at, format!("the call {id} is not answered"));
    }
    if kinds.contains(&"document") && !kinds.contains(&"text") {
        return refuse("document_text", at, "a message with a document must have a text");
    }
    let is_thinking = |kind: Option<&&str>| kind == Some(&"reasoningContent");
    if kinds.contains(&"reasoningContent") && !is_thinking(kinds.first()) {
        return refuse("thinking_first", at, "the message does not start with its thinking");
    }
    match is_thinking(kinds.last()) {
        true => refuse("last_thinking", at, "the message ends with thinking"),
        false => Ok(()),
    }
}

fn check_call<'a>(call: &'a Value, at: &str) -> Check<&'a str> {
    let call = object(call, "block", at)?;
    only_fields(call, &["toolUseId", "name", "input"], "field", at)?;
    let id = string(call, "toolUseId", "tool_use_id", at)?;
    if !is_word(id, "_-", MAX_ID_CHARS) {
        return refuse("tool_use_id", at, format!("{id:?} does not match [a-zA-Z0-9_-]{{1,64}}"));
    }
    let name = string(call, "name", "tool_name", at)?;
    if !is_word(name, "_-", MAX_ID_CHARS) {
        return refuse("tool_name", at, format!("{name:?} does not match [a-zA-Z0-9_-]{{1,64}}"));
    }
    match call.get("input") {
        Some(Value::Object(_)) => Ok(id),
        _ => refuse("input", format!("{at}.input"), "not an object"),
    }
}

fn check_result<'a>(result: &'a Map<String, Value>, state: &mut State<'a>, at: &str) -> Check {
    only_fields(result, &["toolUseId", "content", "status"], "field", at)?;
    let is_error = match result.get("status").map(Value::as_str) {
        None | Some(Some("success")) => false,
        Some(Some("error")) => true,
        Some(_) => return refuse("block", format!("{at}.status"), "must be success or error"),
    };
    let Some(Value::Array(content)) = result.get("content") else {
        return refuse("block", format!("{at}.content"), "not a list");
    };
    for (index, block) in content.iter().enumerate() {
        let at = format!("{at}.content[{index}]");
        match single_field(block, &at)? {
            ("text", text) => check_text(text, &at)?,
            ("json", Value::Object(_)) => {}
            ("image", image) if !is_error => check_image(image, &at)?,
            ("document", document) if !is_error => check_document(document, state, &at)?,
            ("video" | "searchResult", _) if !is_error => {}
            (kind, _) if is_error => {
                return refuse("error_result", at, format!("{kind} in an error"));
            }
            (kind, _) => return refuse("block", at, format!("{kind} in a result")),
        }
    }
    match is_error && content.is_empty() {
        true => refuse("error_result", at, "the content of an error is empty"),
        false => Ok(()),
    }
}

fn check_reasoning(reasoning: &Value, at: &str) -> Check {
    let reasoning = object(reasoning, "block", at)?;
    if reasoning.contains_key("redactedContent") {
        return Ok(());
    }
    let Some(text) = reasoning.get("reasoningText") else {
        return refuse("block", at, "must have reasoningText or redactedContent");
    };
    let text = object(text, "block", at)?;
    only_fields(text, &["text", "signature"], "field", at)?;
    string(text, "text", "block", at)?;
    filled_string(text, "signature", "signature", at).map(drop)
}

fn check_image(image: &Value, at: &str) -> Check {
    let image = object(image, "media", at)?;
    let format = string(image, "format", "media", at)?;
    check_source(image, IMAGES.contains(&format), at)
}

fn check_document<'a>(document: &'a Value, state: &mut State<'a>, at: &str) -> Check {
    let document = object(document, "media", at)?;
    let format = string(document, "format", "media", at)?;
    let name = filled_string(document, "name", "document_name", at)?;
    let is_valid = name.chars().all(|c| c.is_ascii_alphanumeric() || " -()[]".contains(c))
        && !name.contains("  ")
        && name.chars().count() <= MAX_DOCUMENT_NAME_CHARS;
    if !is_valid {
        return refuse("document_name", at, format!("{name:?} is not a valid name"));
    }
    if !state.documents.insert(name) {
        return refuse("document_name", at, format!("a second document {name:?}"));
    }
    check_source(document, DOCUMENTS.contains(&format), at)
}

fn check_source(media: &Map<String, Value>, is_known: bool, at: &str) -> Check {
    let source = media.get("source").and_then(Value::as_object);
    let is_valid = source.is_some_and(|source| match source.get("bytes") {
        Some(bytes) => bytes.as_str().is_some_and(is_plain_base64),
        None => source.contains_key("s3Location") || source.contains_key("text"),
    });
    match is_known && is_valid {
        true => Ok(()),
        false => refuse("media", at, "must have a supported format and a valid source"),
    }
}
