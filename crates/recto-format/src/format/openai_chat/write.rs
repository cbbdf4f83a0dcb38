//! Messages as chat completions have them.

use recto_core::Role;

use super::{arguments_of, write_text};
use crate::Format;
use crate::json::{self, Str};
use crate::media::{Media, MediaBody, MediaKind};
use crate::parts::{MessageParts, Part};

/// Writes one Recto message as one foreign message, or as several if it holds results.
pub(super) fn message(message: &MessageParts<'_>, out: &mut String, remarks: &mut Vec<String>) {
    let own = ["id", "timestamp", "metadata"];
    let is_own = |key: Str<'_>| own.contains(&&*key.text());
    let is_text = |part: &Part<'_>| matches!(part, Part::Text { .. }) && !has_citations(part);
    let is_plain = message.role != Role::Tool
        && message.parts.iter().all(is_text)
        && !json::fields(message.json).any(|(key, _)| is_own(key));
    if is_plain {
        out.push_str(message.json);
        return;
    }
    let is_result = |part: &&Part<'_>| matches!(part, Part::ToolResult { .. });
    let results = message.parts.iter().filter(is_result);
    let mut has_written = false;
    for part in results {
        if std::mem::replace(&mut has_written, true) {
            out.push(',');
        }
        write_result(message, part, out, remarks);
    }
    let said: Vec<&Part<'_>> = message.parts.iter().filter(|part| !is_result(part)).collect();
    if said.is_empty() && has_written {
        return;
    }
    if has_written {
        out.push(',');
    }
    // A tool's answer that names no call has no form of its own.
    let role = if message.role == Role::Tool { Role::User } else { message.role };
    out.push_str("{\"role\":\"");
    out.push_str(role.as_str());
    out.push_str("\",\"content\":");
    let calls: Vec<&&Part<'_>> =
        said.iter().filter(|part| matches!(part, Part::ToolUse { .. })).collect();
    write_said(message, &said, !calls.is_empty(), out, remarks);
    if let Some(name) = message.name {
        out.push_str(",\"name\":");
        json::push_str(name, out);
    }
    write_asides(&said, out);
    if !calls.is_empty() {
        out.push_str(",\"tool_calls\":");
        for (number, part) in calls.into_iter().enumerate() {
            out.push(if number == 0 { '[' } else { ',' });
            write_tool_call(part, out);
        }
        out.push(']');
    }
    out.push('}');
}

/// The content: a string if it was one text from this format, else a list.
fn write_said(
    message: &MessageParts<'_>,
    said: &[&Part<'_>],
    has_calls: bool,
    out: &mut String,
    remarks: &mut Vec<String>,
) {
    let mut contents = Vec::new();
    for part in said {
        match part {
            Part::Text { text, .. } => {
                if has_citations(part) {
                    remarks.push("the citations of a text have no place".into());
                }
                contents.push(Ok(*text));
            }
            Part::Media(_) => contents.push(Err(part)),
            Part::Other { json, .. } if is_refusal(part) && refusal_of(json).is_some() => {}
            Part::Other { kind, .. } if kind.text() == "openai_audio" => {}
            Part::Other { .. } if is_from_here(message) => contents.push(Err(part)),
            Part::Other { kind, .. } => remarks.push(no_place(*kind)),
            Part::Thinking { .. } | Part::ToolUse { .. } | Part::ToolResult { .. } => {}
        }
    }
    match contents[..] {
        [] if has_calls || message.role == Role::Assistant => out.push_str("null"),
        [] => out.push_str("\"\""),
        [Ok(text)] => json::push_str(text, out),
        _ => {
            for (number, content) in contents.into_iter().enumerate() {
                out.push(if number == 0 { '[' } else { ',' });
                match content {
                    Ok(text) => write_text(text, out),
                    Err(Part::Media(media)) => write_media(media, out, remarks),
                    Err(other) => out.push_str(other.json()),
                }
            }
            out.push(']');
        }
    }
}

/// Whether whatever a message holds was said in this format, or here.
fn is_from_here(message: &MessageParts<'_>) -> bool {
    message.source.is_none_or(|source| match source.format {
        Some(format) => format.text() == Format::OpenAiChat.name(),
        None => source.provider.is_none_or(|provider| provider.text() == "openai"),
    })
}

fn no_place(kind: Str<'_>) -> String {
    format!("a part of type {} has no place", kind.text())
}

/// Whether it is a text that says where it is from, as Anthropic's do.
fn has_citations(part: &Part<'_>) -> bool {
    part.has_more() && json::get(part.json(), "citations").is_some()
}

fn is_refusal(part: &Part<'_>) -> bool {
    matches!(part, Part::Other { kind, .. } if kind.text() == "refusal")
}

fn refusal_of(part: &str) -> Option<Str<'_>> {
    json::get_str(part, "refusal")
}

/// What stands beside the content: a refusal, thoughts, the audio of an answer.
fn write_asides(said: &[&Part<'_>], out: &mut String) {
    for part in said {
        match part {
            Part::Thinking { text, .. } => {
                out.push_str(",\"reasoning_content\":");
                json::push_str(*text, out);
            }
            Part::Other { json, .. } if is_refusal(part) => {
                if let Some(refusal) = refusal_of(json) {
                    out.push_str(",\"refusal\":");
                    json::push_str(refusal, out);
                }
            }
            Part::Other { kind, json } if kind.text() == "openai_audio" => {
                out.push_str(",\"audio\":");
                out.push_str(json::get(json, "audio").unwrap_or("null"));
            }
            _ => {}
        }
    }
}

fn write_tool_call(part: &Part<'_>, out: &mut String) {
    let Part::ToolUse { id, name, input, .. } = *part else { return };
    out.push_str("{\"id\":");
    json::push_str(id, out);
    if part.is_custom_call() {
        out.push_str(",\"type\":\"custom\",\"custom\":{\"name\":");
        json::push_str(name, out);
        out.push_str(",\"input\":\"");
    } else {
        out.push_str(",\"type\":\"function\",\"function\":{\"name\":");
        json::push_str(name, out);
        out.push_str(",\"arguments\":\"");
    }
    arguments_of(input, out);
    out.push_str("\"}}");
}

fn write_result(
    message: &MessageParts<'_>,
    part: &Part<'_>,
    out: &mut String,
    remarks: &mut Vec<String>,
) {
    let Part::ToolResult { id, content, is_error, .. } = *part else { return };
    if is_error {
        remarks.push("a tool result has no is_error here".into());
    }
    out.push_str("{\"role\":\"tool\",\"tool_call_id\":");
    json::push_str(id, out);
    out.push_str(",\"content\":");
    match content {
        None => out.push_str("\"\""),
        Some(content) if Str::of(content).is_some() => out.push_str(content),
        Some(content) => {
            out.push('[');
            let start = out.len();
            for part in &Part::list(content) {
                if let Part::Other { kind, .. } = part
                    && !is_from_here(message)
                {
                    remarks.push(no_place(*kind));
                    continue;
                }
                if out.len() > start {
                    out.push(',');
                }
                match part {
                    Part::Text { text, .. } => write_text(*text, out),
                    Part::Media(media) => write_media(media, out, remarks),
                    other => out.push_str(other.json()),
                }
            }
            out.push(']');
        }
    }
    out.push('}');
}

/// Writes an image, audio or file the way that chat completions have it.
pub(crate) fn write_media(media: &Media<'_>, out: &mut String, remarks: &mut Vec<String>) {
    if !try_write_media(media, out) {
        remarks.push("an image, audio or file has no form here, and is kept as it is".into());
        out.push_str(media.json);
    }
}

/// Writes media if there is a form for it; else nothing is written.
pub(crate) fn try_write_media(media: &Media<'_>, out: &mut String) -> bool {
    match (media.kind, media.body) {
        (MediaKind::Image, MediaBody::Base64 { .. } | MediaBody::Url(_)) => {
            out.push_str(r#"{"type":"image_url","image_url":{"url":"#);
            write_url(media.body, out);
            if let Some(detail) = json::get(media.json, "detail") {
                out.push_str(",\"detail\":");
                out.push_str(detail);
            }
            out.push_str("}}");
        }
        (MediaKind::Audio, MediaBody::Base64 { media_type, data }) => {
            let Some(form) = media_type.escaped().strip_prefix("audio/") else { return false };
            out.push_str(r#"{"type":"input_audio","input_audio":{"data":"#);
            json::push_str(data, out);
            out.push_str(",\"format\":");
            json::push_str(Str::escaped_text(form), out);
            out.push_str("}}");
        }
        (MediaKind::File, MediaBody::Base64 { .. }) => {
            out.push_str(r#"{"type":"file","file":{"#);
            if let Some(name) = media.name {
                out.push_str("\"filename\":");
                json::push_str(name, out);
                out.push(',');
            }
            out.push_str("\"file_data\":");
            write_url(media.body, out);
            out.push_str("}}");
        }
        (MediaKind::File, MediaBody::FileId { id, provider })
            if provider.is_none_or(|provider| provider.text() == "openai") =>
        {
            out.push_str(r#"{"type":"file","file":{"file_id":"#);
            json::push_str(id, out);
            out.push_str("}}");
        }
        _ => return false,
    }
    true
}

/// The address of media as a JSON string; bytes become a `data:` URL.
pub(crate) fn write_url(body: MediaBody<'_>, out: &mut String) {
    out.push('"');
    match body {
        MediaBody::Url(url) => out.push_str(url.escaped()),
        MediaBody::Base64 { media_type, data } => {
            out.push_str("data:");
            out.push_str(media_type.escaped());
            out.push_str(";base64,");
            out.push_str(data.escaped());
        }
        _ => {}
    }
    out.push('"');
}
