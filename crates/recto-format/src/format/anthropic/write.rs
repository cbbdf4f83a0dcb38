//! Export of messages as messages of Anthropic.

use recto_core::Role;

use super::{read, with_content};
use crate::format::message_list::{Draft, unsupported_part};
use crate::json::{self, Str};
use crate::media::{MediaBody, MediaKind};
use crate::parts::{MessageParts, Part};
use crate::{Format, Media};

/// Writes system messages as the value of the field `system`.
pub(super) fn system(messages: &[MessageParts<'_>], out: &mut String) {
    let is_text = |part: &Part<'_>| matches!(part, Part::Text { .. });
    if let [only] = messages
        && only.parts.iter().all(is_text)
        && (only.is_string || only.source.is_none_or(|it| it.is_from(Format::Anthropic.name())))
        && let Some(content) = json::get(only.json, "content")
    {
        out.push_str(content);
        return;
    }
    out.push('[');
    let start = out.len();
    for part in messages.iter().flat_map(|message| &message.parts) {
        if let Part::Text { .. } = part {
            json::push_item(start, out, |out| write_block(part, false, out, &mut Vec::new()));
        }
    }
    out.push(']');
}

/// Writes pieces of one message as messages separated by commas. Consecutive pieces of one role are one
/// message.
pub(super) fn messages(pieces: &[MessageParts<'_>], out: &mut String, warnings: &mut Vec<String>) {
    if let [only] = pieces
        && matches!(only.role, Role::User | Role::Assistant)
        && only.source.is_none()
        && read(only.json).is_ok_and(|message| matches!(message.drafts[..], [Draft::Unchanged]))
    {
        out.push_str(only.json);
        return;
    }
    let mut rest = pieces;
    while let [first, ..] = rest {
        let role = role_of(first.role);
        let len = rest.iter().take_while(|piece| role_of(piece.role) == role).count();
        if rest.len() < pieces.len() {
            out.push(',');
        }
        write_message(role, &rest[..len], out, warnings);
        rest = &rest[len..];
    }
}

fn role_of(role: Role) -> &'static str {
    match role {
        Role::Assistant => "assistant",
        Role::User | Role::Tool | Role::System => "user",
    }
}

fn write_message(
    role: &str,
    pieces: &[MessageParts<'_>],
    out: &mut String,
    warnings: &mut Vec<String>,
) {
    out.push_str("{\"role\":\"");
    out.push_str(role);
    out.push_str("\",\"content\":");
    if pieces.iter().any(|piece| piece.role == Role::System) {
        warnings.push("a system message is written as a message of the user".into());
    }
    match pieces {
        [only] if only.is_string => {
            if only.role == Role::Tool {
                warnings.push(
                    "a tool message without a call is written as a message of the user".into(),
                );
            }
            out.push_str(only.parts.first().map_or("\"\"", |part| part.json()));
        }
        _ => {
            out.push('[');
            let start = out.len();
            for piece in pieces {
                let is_imported = piece.source.is_none_or(|source| {
                    source.is_from(Format::Anthropic.name())
                        || source.is_from(Format::ClaudeCode.name())
                });
                for part in &piece.parts {
                    json::push_item(start, out, |out| {
                        write_block(part, is_imported, out, warnings)
                    });
                }
            }
            out.push(']');
        }
    }
    out.push('}');
}

/// Writes a part as a block. Returns false, with a warning, if the format has no such block. `is_imported` is
/// false for messages that were imported from another format.
fn write_block(
    part: &Part<'_>,
    is_imported: bool,
    out: &mut String,
    warnings: &mut Vec<String>,
) -> bool {
    match *part {
        Part::Text { json, .. } if Str::of(json).is_some() => {
            out.push_str(r#"{"type":"text","text":"#);
            out.push_str(json);
            out.push('}');
        }
        Part::Text { text, json, .. } => match is_imported {
            true => out.push_str(json),
            false => {
                out.push_str(r#"{"type":"text","text":"#);
                json::push_str(text, out);
                json::push_fields(json, &["cache_control", "citations"], out);
                out.push('}');
            }
        },
        Part::Thinking { text, json, .. } => {
            out.push_str(r#"{"type":"thinking","thinking":"#);
            json::push_str(text, out);
            match is_imported {
                true => json::push_other_fields(json, &["type", "text"], out),
                false => json::push_fields(json, &["signature"], out),
            }
            out.push('}');
        }
        Part::Media(media) => return write_media(media, out, warnings),
        Part::ToolUse { id, name, input, json, .. } => {
            if is_imported {
                out.push_str(json);
                return true;
            }
            out.push_str(r#"{"type":"tool_use","id":"#);
            json::push_str(id, out);
            out.push_str(r#","name":"#);
            json::push_str(name, out);
            out.push_str(r#","input":"#);
            out.push_str(input);
            json::push_fields(json, &["cache_control"], out);
            out.push('}');
            if !json::is_object(input) {
                warnings.push(format!("the input of {} is not an object", name.text()));
            }
        }
        Part::ToolResult { id, content, is_error, json, .. } => {
            if is_imported {
                match content.filter(|content| has_documents(content)) {
                    None => out.push_str(json),
                    Some(content) => {
                        let mut written = String::new();
                        write_result(content, true, &mut written, warnings);
                        out.push_str(&with_content(json, &written));
                    }
                }
                return true;
            }
            out.push_str(r#"{"type":"tool_result","tool_use_id":"#);
            json::push_str(id, out);
            if let Some(content) = content {
                out.push_str(",\"content\":");
                write_result(content, false, out, warnings);
            }
            if is_error {
                out.push_str(",\"is_error\":true");
            }
            json::push_fields(json, &["cache_control"], out);
            out.push('}');
        }
        Part::Other { json, .. } if is_imported => out.push_str(json),
        Part::Other { kind, .. } => {
            warnings.push(unsupported_part(kind));
            return false;
        }
    }
    true
}

/// True if a result contains media that Anthropic and Recto write in different forms.
fn has_documents(content: &str) -> bool {
    let is_other = |part: &Part<'_>| match part {
        Part::Media(media) => {
            media.kind != MediaKind::Image || matches!(media.body, MediaBody::FileId { .. })
        }
        _ => false,
    };
    json::is_list(content) && Part::list(content).iter().any(is_other)
}

fn write_result(content: &str, is_imported: bool, out: &mut String, warnings: &mut Vec<String>) {
    if Str::of(content).is_some() {
        out.push_str(content);
        return;
    }
    out.push('[');
    let start = out.len();
    for part in Part::list(content) {
        json::push_item(start, out, |out| write_block(&part, is_imported, out, warnings));
    }
    out.push(']');
}

fn write_media(media: Media<'_>, out: &mut String, warnings: &mut Vec<String>) -> bool {
    let kind = match media.kind {
        MediaKind::Image => "image",
        MediaKind::File => "document",
        MediaKind::Audio => {
            warnings.push("audio is not supported".into());
            return false;
        }
    };
    let start = out.len();
    out.push_str(r#"{"type":""#);
    out.push_str(kind);
    out.push_str(r#"","source":"#);
    match media.body {
        MediaBody::Base64 { media_type, data } => {
            out.push_str(r#"{"type":"base64","media_type":"#);
            json::push_str(media_type, out);
            out.push_str(r#","data":"#);
            json::push_str(data, out);
        }
        MediaBody::Url(url) => {
            out.push_str(r#"{"type":"url","url":"#);
            json::push_str(url, out);
        }
        MediaBody::Text(text) => {
            out.push_str(r#"{"type":"text","media_type":"text/plain","data":"#);
            json::push_str(text, out);
        }
        MediaBody::FileId { id, .. } => {
            out.push_str(r#"{"type":"file","file_id":"#);
            json::push_str(id, out);
        }
        MediaBody::Unknown => {
            out.truncate(start);
            warnings.push(format!("the source of the {kind} is unknown"));
            return false;
        }
    }
    out.push('}');
    if let Some(name) = media.name {
        out.push_str(",\"title\":");
        json::push_str(name, out);
    }
    json::push_fields(media.json, &["cache_control", "citations", "context"], out);
    out.push('}');
    true
}
