//! Codec of the items of the OpenAI Agents SDK for JavaScript (`AgentInputItem`): a list, or JSON lines.
//!
//! | foreign | conversion |
//! |---|---|
//! | `message`, or an item with a role | a message |
//! | `function_call` | an assistant message with a `tool_use` part; `callId` becomes its id |
//! | `function_call_result` | a tool message with one `tool_result` |
//! | `computer_call`, `shell_call`, `apply_patch_call`, `program_call` and their results | as for functions |
//! | `reasoning` and every other item | a part with the unchanged item, for this format only |

use std::borrow::Cow;

use recto_core::Role;

use super::message_list::{
    CallNames, Draft, FieldError, MessageCodec, ReadState, unsupported_part,
};
use super::new_parts::{NewParts, content_of};
use super::openai_chat::{arguments_of, input_of, write_url};
use super::{Head, Likelihood};
use crate::Format;
use crate::json::{self, Object, Str};
use crate::media::{Media, MediaBody, MediaKind};
use crate::parts::{MessageParts, Part};

pub(crate) struct OpenAiAgentsJs;

/// Calls of built-in tools: type of the call, field with its input, type of the result.
const BUILT_IN: [(&str, &str, &str); 4] = [
    ("computer_call", "action", "computer_call_result"),
    ("shell_call", "action", "shell_call_output"),
    ("apply_patch_call", "operation", "apply_patch_call_output"),
    ("program_call", "code", "program_output"),
];

impl MessageCodec for OpenAiAgentsJs {
    fn recognise(&self, head: &Head) -> Likelihood {
        let is_typical = |item: &str| {
            let kind = json::get_str(item, "type").map(Str::escaped).unwrap_or_default();
            let is_call = kind == "function_call" || kind == "function_call_result";
            is_call && json::get_str(item, "callId").is_some()
        };
        let mut objects = head.objects().into_iter();
        match objects.any(|object| {
            is_typical(object)
                || json::get(object, "input").map(json::items).into_iter().flatten().any(is_typical)
        }) {
            true => Likelihood::Certain,
            false => Likelihood::No,
        }
    }

    fn format(&self) -> Format {
        Format::OpenAiAgentsJs
    }

    fn list_keys(&self) -> &'static [&'static str] {
        &["input"]
    }

    /// The input of a call may also be a list, so an object with a type is not an envelope.
    fn is_envelope(&self, object: &str) -> bool {
        json::get(object, "type").is_none()
            && json::get(object, "role").is_none()
            && json::get(object, "input").is_some_and(json::is_list)
    }

    fn read(&self, foreign: &str, _state: &mut ReadState) -> Result<Vec<Draft>, FieldError> {
        let fields = Object::of(foreign);
        let needed = |field: &str| {
            let value = fields.get_str(field);
            value.ok_or_else(|| FieldError::new(field, format!("{field} is missing")))
        };
        let kind = fields.get_str("type").map(Str::text);
        let mut parts = NewParts::with_capacity(foreign.len());
        let role = match kind.as_deref() {
            Some("message") => return read_message(&fields),
            None if fields.get("role").is_some() => return read_message(&fields),
            None => return Err(FieldError::new("type", "type is missing")),
            Some("function_call") => {
                let arguments = fields.get_str("arguments").unwrap_or(Str::plain("{}"));
                parts.call(needed("callId")?, needed("name")?, &input_of(arguments), "");
                Role::Assistant
            }
            Some("function_call_result") => {
                let output = fields.get("output").map(result_content);
                parts.result(needed("callId")?, output.as_deref(), false, &name_field(&fields));
                Role::Tool
            }
            Some(kind) => match (called_by(kind), answered_by(kind), fields.get_str("callId")) {
                (Some((name, input)), _, Some(id)) => {
                    parts.call(id, Str::plain(name), fields.get(input).unwrap_or("{}"), "");
                    Role::Assistant
                }
                (_, true, Some(id)) => {
                    let output = fields.get("output").map(json_text);
                    parts.result(id, output.as_deref(), false, "");
                    Role::Tool
                }
                _ => {
                    parts.raw(foreign);
                    Role::Assistant
                }
            },
        };
        Ok(vec![Draft::converted(role, parts.finish())])
    }

    fn write(
        &self,
        pieces: &[MessageParts<'_>],
        names: &CallNames<'_>,
        out: &mut String,
        warnings: &mut Vec<String>,
    ) {
        let mut items = Vec::new();
        for piece in pieces {
            write_items(piece, names, &mut items, warnings);
        }
        out.push_str(&items.join(","));
    }
}

fn called_by(kind: &str) -> Option<(&'static str, &'static str)> {
    let tool = BUILT_IN.iter().find(|(call, ..)| *call == kind);
    tool.map(|(call, input, _)| (call.strip_suffix("_call").unwrap_or(call), *input))
}

fn answered_by(kind: &str) -> bool {
    BUILT_IN.iter().any(|(_, _, result)| *result == kind)
}

/// The name of the tool, as a field of the result: this format writes it with the result.
fn name_field(fields: &Object<'_>) -> String {
    let name = fields.get_str("name");
    name.map_or(String::new(), |name| format!(r#","name":"{}""#, name.escaped()))
}

/// Returns a string unchanged, and any other value as a string that contains its JSON.
fn json_text(value: &str) -> Cow<'_, str> {
    match Str::of(value) {
        Some(_) => Cow::Borrowed(value),
        None => Cow::Owned(json::string(value)),
    }
}

/// The content of a result: a string, an object with a text, or a list of parts.
fn result_content(output: &str) -> Cow<'_, str> {
    if Str::of(output).is_some() {
        return Cow::Borrowed(output);
    }
    let mut parts = NewParts::with_capacity(output.len());
    match json::is_list(output) {
        true => read_parts(output, &mut parts),
        false => read_part(output, &Object::of(output), &mut parts),
    }
    Cow::Owned(parts.finish_list())
}

fn read_message(fields: &Object<'_>) -> Result<Vec<Draft>, FieldError> {
    let role = match fields.get_str("role").map(Str::escaped) {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        _ => return Err(FieldError::new("role", "role must be user, assistant or system")),
    };
    let content = fields.get("content").unwrap_or("[]");
    if let Some(text) = Str::of(content) {
        let is_bare = fields.has_only(&["role", "content"]) && !text.is_empty();
        return Ok(vec![match is_bare {
            true => Draft::Unchanged,
            false => Draft::converted(role, content_of(content)),
        }]);
    }
    if !json::is_list(content) {
        return Err(FieldError::new("content", "content must be a string or a list of parts"));
    }
    let mut parts = NewParts::with_capacity(content.len());
    read_parts(content, &mut parts);
    Ok(vec![Draft::converted(role, parts.finish())])
}

fn read_parts(list: &str, parts: &mut NewParts) {
    for (part, fields) in json::objects(list) {
        read_part(part, &fields, parts);
    }
}

/// Adds a part. A part of a type that Recto does not have is added unchanged.
fn read_part(part: &str, fields: &Object<'_>, parts: &mut NewParts) {
    let kind = fields.get_str("type").map(Str::text).unwrap_or_default();
    let body = |field: &str| {
        let value = fields.get(field)?;
        let provider = Some(Str::plain("openai"));
        let file = json::get_str(value, "id").or_else(|| json::get_str(value, "fileId"));
        Str::of(value)
            .or_else(|| json::get_str(value, "url"))
            .map(MediaBody::of_url)
            .or_else(|| file.map(|id| MediaBody::FileId { id, provider }))
    };
    let text = fields.get_str("text");
    match (&*kind, text, body("image"), body("file")) {
        ("input_text" | "output_text" | "text", Some(text), ..) => parts.text(text, ""),
        ("input_image" | "image", _, Some(body), _) => {
            let mut extra = String::new();
            fields.push_some(&["detail"], &mut extra);
            parts.media(MediaKind::Image, body, None, &extra);
        }
        ("input_file" | "file", .., Some(body)) => {
            parts.media(MediaKind::File, body, fields.get_str("filename"), "");
        }
        _ => parts.raw(part),
    }
}

/// Writes the items of a message: consecutive texts and media in one item, each call and each result in a
/// separate item.
fn write_items(
    message: &MessageParts<'_>,
    names: &CallNames<'_>,
    items: &mut Vec<String>,
    warnings: &mut Vec<String>,
) {
    let mut content = Vec::new();
    for part in &message.parts {
        if let Some(part) = content_part(part, message) {
            content.push(part);
            continue;
        }
        let mut item = String::new();
        match *part {
            Part::ToolUse { id, name, input, .. } => {
                item.push_str(r#"{"type":"function_call","callId":"#);
                json::push_str(id, &mut item);
                item.push_str(r#","name":"#);
                json::push_str(name, &mut item);
                item.push_str(r#","status":"completed","arguments":""#);
                arguments_of(input, &mut item);
                item.push_str("\"}");
            }
            Part::ToolResult { id, content, is_error, json, .. } => {
                if is_error {
                    warnings.push("the error flag of a tool result is not supported".into());
                }
                let name = json::get_str(json, "name").or_else(|| names.of(id));
                item.push_str(r#"{"type":"function_call_result","name":"#);
                json::push_str(name.unwrap_or(Str::plain("unknown")), &mut item);
                item.push_str(r#","callId":"#);
                json::push_str(id, &mut item);
                item.push_str(r#","status":"completed","output":"#);
                write_output(content, message, &mut item, warnings);
                item.push('}');
            }
            Part::Other { json, .. } if message.is_of(Format::OpenAiAgentsJs) => {
                item.push_str(json);
            }
            Part::Other { kind, .. } => {
                warnings.push(unsupported_part(kind));
                continue;
            }
            // Thinking of another format, audio, or media without a URL, data or file id.
            _ => {
                warnings.push("a part is not supported".into());
                continue;
            }
        }
        write_message(message.role, &mut content, items);
        items.push(item);
    }
    write_message(message.role, &mut content, items);
}

fn write_message(role: Role, content: &mut Vec<String>, items: &mut Vec<String>) {
    if content.is_empty() {
        return;
    }
    let parts = std::mem::take(content);
    items.push(match role {
        Role::Assistant => format!(
            r#"{{"type":"message","role":"assistant","status":"completed","content":[{}]}}"#,
            parts.join(",")
        ),
        // The content of a system message is a string.
        Role::System => {
            let texts: Vec<&str> = parts
                .iter()
                .filter_map(|part| json::get_str(part, "text"))
                .map(Str::escaped)
                .collect();
            format!(r#"{{"type":"message","role":"system","content":"{}"}}"#, texts.join("\\n"))
        }
        Role::User | Role::Tool => {
            format!(r#"{{"type":"message","role":"user","content":[{}]}}"#, parts.join(","))
        }
    });
}

fn write_output(
    content: Option<&str>,
    message: &MessageParts<'_>,
    out: &mut String,
    warnings: &mut Vec<String>,
) {
    let Some(content) = content else { return out.push_str("\"\"") };
    if Str::of(content).is_some() {
        return out.push_str(content);
    }
    let mut written = Vec::new();
    for part in &Part::list(content) {
        match content_part(part, message) {
            Some(part) => {
                written.push(part.replace("\"type\":\"output_text\"", "\"type\":\"input_text\""))
            }
            None => warnings.push("a part of a result is not supported".into()),
        }
    }
    out.push('[');
    out.push_str(&written.join(","));
    out.push(']');
}

/// Writes a part for the content of a message. `None` if the part is written as a separate item, or if the
/// format has no such part.
fn content_part(part: &Part<'_>, message: &MessageParts<'_>) -> Option<String> {
    let mut out = String::new();
    match *part {
        Part::Text { text, .. } => {
            let is_output = message.role == Role::Assistant;
            let kind = if is_output { "output_text" } else { "input_text" };
            out.push_str(&format!(r#"{{"type":"{kind}","text":"#));
            json::push_str(text, &mut out);
            out.push('}');
        }
        Part::Media(media) => write_media(media, &mut out)?,
        Part::Other { kind, json } => {
            let is_content =
                matches!(&*kind.text(), "refusal" | "audio" | "image" | "reasoning_text");
            if !is_content || !message.is_of(Format::OpenAiAgentsJs) {
                return None;
            }
            out.push_str(json);
        }
        _ => return None,
    }
    Some(out)
}

fn write_media(media: Media<'_>, out: &mut String) -> Option<()> {
    let (kind, field) = match media.kind {
        MediaKind::Image => ("input_image", "image"),
        MediaKind::File => ("input_file", "file"),
        _ => return None,
    };
    out.push_str(&format!(r#"{{"type":"{kind}","{field}":"#));
    match media.body {
        MediaBody::Url(_) | MediaBody::Base64 { .. } => write_url(media.body, out),
        MediaBody::FileId { id, .. } => {
            out.push_str(r#"{"id":"#);
            json::push_str(id, out);
            out.push('}');
        }
        _ => return None,
    }
    if let Some(name) = media.name {
        out.push_str(r#","filename":"#);
        json::push_str(name, out);
    }
    json::push_fields(media.json, &["detail"], out);
    out.push('}');
    Some(())
}
