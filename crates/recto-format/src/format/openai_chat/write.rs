//! Export of messages as messages of OpenAI's chat completions.

use recto_core::Role;

use super::arguments_of;
use crate::Format;
use crate::format::message_list::unsupported_part;
use crate::json::{self, Str};
use crate::media::{Media, MediaBody, MediaKind};
use crate::parts::{MessageParts, Part};
use crate::render::{REASONING_DETAILS, details};

/// Writes a message as one message of the format, or as several if it contains results.
pub(super) fn message(message: &MessageParts<'_>, out: &mut String, warnings: &mut Vec<String>) {
    let recto_fields = ["id", "timestamp", "metadata"];
    let is_recto_field = |key: Str<'_>| recto_fields.contains(&&*key.text());
    let is_text = |part: &Part<'_>| matches!(part, Part::Text { .. }) && !has_citations(part);
    let is_plain = message.role != Role::Tool
        && message.parts.iter().all(is_text)
        && !json::fields(message.json).any(|(key, _)| is_recto_field(key));
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
        write_result(message, part, out, warnings);
    }
    let others: Vec<&Part<'_>> = message.parts.iter().filter(|part| !is_result(part)).collect();
    if others.is_empty() && has_written {
        return;
    }
    if has_written {
        out.push(',');
    }
    // A message with the role `tool` that has no result part becomes a message of the user.
    let role = if message.role == Role::Tool { Role::User } else { message.role };
    out.push_str("{\"role\":\"");
    out.push_str(role.as_str());
    out.push_str("\",\"content\":");
    let calls: Vec<&&Part<'_>> =
        others.iter().filter(|part| matches!(part, Part::ToolUse { .. })).collect();
    write_content(message, &others, !calls.is_empty(), out, warnings);
    if let Some(name) = message.name {
        out.push_str(",\"name\":");
        json::push_str(name, out);
    }
    write_side_fields(&others, out);
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

/// Writes the content: a string if it is a single text, otherwise a list.
fn write_content(
    message: &MessageParts<'_>,
    parts: &[&Part<'_>],
    has_calls: bool,
    out: &mut String,
    warnings: &mut Vec<String>,
) {
    let mut contents = Vec::new();
    for part in parts {
        match part {
            Part::Text { text, .. } => {
                if has_citations(part) {
                    warnings.push("the citations of a text are not supported".into());
                }
                contents.push(Ok(*text));
            }
            Part::Media(_) => contents.push(Err(part)),
            Part::Other { json, .. } if is_refusal(part) && refusal_of(json).is_some() => {}
            Part::Other { kind, .. } if kind.is("openai_audio") || kind.is(REASONING_DETAILS) => {}
            Part::Other { .. } if is_from_openai(message) => contents.push(Err(part)),
            Part::Other { kind, .. } => warnings.push(unsupported_part(*kind)),
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
                    Err(Part::Media(media)) => write_media(media, out, warnings),
                    Err(other) => out.push_str(other.json()),
                }
            }
            out.push(']');
        }
    }
}

/// True if parts of types that the contract does not know can be written unchanged: the message comes from
/// this format or from OpenAI, or its origin is unknown.
fn is_from_openai(message: &MessageParts<'_>) -> bool {
    message.source.is_none_or(|source| match source.format {
        Some(format) => format.text() == Format::OpenAiChat.name(),
        None => source.provider.is_none_or(|provider| provider.text() == "openai"),
    })
}

/// True for a part with the field `citations`, which Anthropic adds to texts.
fn has_citations(part: &Part<'_>) -> bool {
    part.has_known_fields() && json::get(part.json(), "citations").is_some()
}

fn is_refusal(part: &Part<'_>) -> bool {
    matches!(part, Part::Other { kind, .. } if kind.text() == "refusal")
}

fn refusal_of(part: &str) -> Option<Str<'_>> {
    json::get_str(part, "refusal")
}

/// Writes the parts that are fields beside the content in this format: `reasoning_content`, `refusal`, `audio`
/// and `reasoning_details`.
fn write_side_fields(parts: &[&Part<'_>], out: &mut String) {
    for part in parts {
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
            Part::Other { kind, json } if kind.is(REASONING_DETAILS) => {
                out.push_str(&format!(",\"reasoning_details\":[{}]", details(json).unwrap_or("")));
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
    warnings: &mut Vec<String>,
) {
    let Part::ToolResult { id, content, is_error, .. } = *part else { return };
    if is_error {
        warnings.push("the error flag of a tool result is not supported".into());
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
                    && !is_from_openai(message)
                {
                    warnings.push(unsupported_part(*kind));
                    continue;
                }
                if out.len() > start {
                    out.push(',');
                }
                match part {
                    Part::Text { text, .. } => write_text(*text, out),
                    Part::Media(media) => write_media(media, out, warnings),
                    other => out.push_str(other.json()),
                }
            }
            out.push(']');
        }
    }
    out.push('}');
}

/// Writes an image, audio or file. Media that the format does not support stays unchanged.
pub(crate) fn write_media(media: &Media<'_>, out: &mut String, warnings: &mut Vec<String>) {
    if !try_write_media(media, out) {
        warnings.push("an image, audio or file is not supported, and is written unchanged".into());
        out.push_str(media.json);
    }
}

/// Writes media. Returns false, and writes nothing, if the format does not support it.
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

fn write_text(text: Str<'_>, out: &mut String) {
    out.push_str(r#"{"type":"text","text":"#);
    json::push_str(text, out);
    out.push('}');
}

/// Writes the URL of media as a JSON string. Inline content becomes a `data:` URL.
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
