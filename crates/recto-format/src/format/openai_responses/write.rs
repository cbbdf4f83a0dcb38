//! Export of messages as items of OpenAI's Responses.

use recto_core::Role;

use super::item_of;
use crate::format::message_list::unsupported_part;
use crate::format::openai_chat::{arguments_of, write_url};
use crate::json::{self, Str};
use crate::media::{MediaBody, MediaKind};
use crate::parts::{MessageParts, Part};
use crate::{Format, Media};

/// How a message with only a role and a text is written. The API accepts both forms.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlainMessages {
    /// Without change: `{"role":"user","content":"…"}`.
    Unchanged,
    /// As an item, whose content is a list.
    AsItems,
}

/// Writes messages as items, separated by commas.
pub(crate) fn write_items(
    pieces: &[MessageParts<'_>],
    plain: PlainMessages,
    out: &mut String,
    warnings: &mut Vec<String>,
) {
    let mut items = Items { out, is_first: true, plain, warnings };
    for message in pieces {
        items.message(message);
    }
}

/// Writer of a list of items.
struct Items<'a> {
    out: &'a mut String,
    is_first: bool,
    plain: PlainMessages,
    warnings: &'a mut Vec<String>,
}

impl Items<'_> {
    fn add(&mut self) -> &mut String {
        if !std::mem::replace(&mut self.is_first, false) {
            self.out.push(',');
        }
        self.out
    }

    fn message(&mut self, message: &MessageParts<'_>) {
        let is_unchanged = self.plain == PlainMessages::Unchanged
            && message.is_string
            && message.source.is_none()
            && message.role != Role::Tool
            && json::fields(message.json)
                .all(|(key, _)| matches!(&*key.text(), "role" | "content"));
        if is_unchanged {
            let json = message.json;
            self.add().push_str(json);
            return;
        }
        // Content parts since the last item that is not a message.
        let mut parts: Vec<&Part<'_>> = Vec::new();
        for part in &message.parts {
            match *part {
                Part::Text { .. } | Part::Media(_) => parts.push(part),
                Part::Other { kind, .. } if kind.text() == "refusal" => parts.push(part),
                Part::Thinking { .. } => self.warnings.push("thinking is not supported".into()),
                _ => {
                    self.message_item(message.role, &mut parts);
                    self.item(message, part);
                }
            }
        }
        self.message_item(message.role, &mut parts);
    }

    /// Writes content parts as one item of type `message`.
    fn message_item(&mut self, role: Role, parts: &mut Vec<&Part<'_>>) {
        if parts.is_empty() {
            return;
        }
        let role = if role == Role::Tool { Role::User } else { role };
        let mut content = String::new();
        let id = parts.iter().find_map(|part| match part {
            Part::Text { json, has_known_fields: true, .. } => json::get_str(json, "item_id"),
            _ => None,
        });
        for part in parts.drain(..) {
            if !json::push_item(0, &mut content, |out| write_part(part, role, out)) {
                self.warnings.push("an image, audio or file is not supported".into());
            }
        }
        let out = self.add();
        out.push_str(r#"{"type":"message","#);
        if let Some(id) = id.filter(|_| role == Role::Assistant) {
            out.push_str(r#""id":"#);
            json::push_str(id, out);
            out.push(',');
        }
        out.push_str(r#""role":""#);
        out.push_str(role.as_str());
        out.push_str(r#"","content":["#);
        out.push_str(&content);
        out.push_str("]}");
    }

    fn item(&mut self, message: &MessageParts<'_>, part: &Part<'_>) {
        if let Some(item) = item_of(part) {
            self.add().push_str(item);
            return;
        }
        match *part {
            Part::ToolUse { id, name, input, json, .. } => {
                let (kind, field) = match part.is_custom_call() {
                    true => ("custom_tool_call", "input"),
                    false => ("function_call", "arguments"),
                };
                let out = self.add();
                out.push_str(&format!(r#"{{"type":"{kind}""#));
                if let Some(item_id) =
                    json::get_str(json, "item_id").filter(|_| part.has_known_fields())
                {
                    out.push_str(r#","id":"#);
                    json::push_str(item_id, out);
                }
                out.push_str(r#","call_id":"#);
                json::push_str(id, out);
                out.push_str(r#","name":"#);
                json::push_str(name, out);
                out.push_str(&format!(r#","{field}":""#));
                arguments_of(input, out);
                out.push_str("\"}");
            }
            Part::ToolResult { id, content, is_error, json, .. } => {
                if is_error {
                    self.warnings.push("the error flag of a tool result is not supported".into());
                }
                let is_custom =
                    json::get_str(json, "kind").is_some_and(|kind| kind.escaped() == "custom");
                let kind =
                    if is_custom { "custom_tool_call_output" } else { "function_call_output" };
                let mut output = String::new();
                match content {
                    None => output.push_str("\"\""),
                    Some(content) if Str::of(content).is_some() => output.push_str(content),
                    Some(content) => {
                        for part in &Part::list(content) {
                            let before = output.len();
                            output.push(if before == 0 { '[' } else { ',' });
                            if !write_part(part, Role::User, &mut output) {
                                output.truncate(before);
                                self.warnings.push("a part of a result is not supported".into());
                            }
                        }
                        output.push_str(if output.is_empty() { "[]" } else { "]" });
                    }
                }
                let out = self.add();
                out.push_str(&format!(r#"{{"type":"{kind}","call_id":"#));
                json::push_str(id, out);
                out.push_str(r#","output":"#);
                out.push_str(&output);
                out.push('}');
            }
            Part::Other { kind, json } => {
                let is_from_openai = message.source.is_none_or(|source| {
                    let provider = source.provider.map(Str::text);
                    provider.as_deref() == Some("openai")
                        || source.is_from(Format::OpenAiResponses.name())
                        || source.is_from(Format::Codex.name())
                });
                match is_from_openai {
                    true => self.add().push_str(json),
                    false => self.warnings.push(unsupported_part(kind)),
                }
            }
            Part::Text { .. } | Part::Thinking { .. } | Part::Media(_) => {}
        }
    }
}

/// Writes a part of a message or of a result. Returns false if the format has no such part.
fn write_part(part: &Part<'_>, role: Role, out: &mut String) -> bool {
    match *part {
        Part::Text { text, json, .. } => {
            out.push_str(match role {
                Role::Assistant => r#"{"type":"output_text","text":"#,
                _ => r#"{"type":"input_text","text":"#,
            });
            json::push_str(text, out);
            if role == Role::Assistant {
                json::push_fields(json, &["annotations", "logprobs"], out);
            }
            out.push('}');
            true
        }
        Part::Media(media) => write_media(media, out),
        Part::Other { json, .. } => {
            out.push_str(json);
            true
        }
        _ => false,
    }
}

fn write_media(media: Media<'_>, out: &mut String) -> bool {
    match (media.kind, media.body) {
        (MediaKind::Image, MediaBody::Url(_) | MediaBody::Base64 { .. }) => {
            out.push_str(r#"{"type":"input_image","image_url":"#);
            write_url(media.body, out);
            json::push_fields(media.json, &["detail"], out);
        }
        (MediaKind::Image, MediaBody::FileId { id, .. }) => {
            out.push_str(r#"{"type":"input_image","file_id":"#);
            json::push_str(id, out);
            json::push_fields(media.json, &["detail"], out);
        }
        (MediaKind::File, body) => {
            out.push_str(r#"{"type":"input_file","#);
            if let Some(name) = media.name {
                out.push_str("\"filename\":");
                json::push_str(name, out);
                out.push(',');
            }
            match body {
                MediaBody::Base64 { .. } => {
                    out.push_str("\"file_data\":");
                    write_url(body, out);
                }
                MediaBody::Url(_) => {
                    out.push_str("\"file_url\":");
                    write_url(body, out);
                }
                MediaBody::FileId { id, .. } => {
                    out.push_str("\"file_id\":");
                    json::push_str(id, out);
                }
                MediaBody::Text(_) | MediaBody::Unknown => return false,
            }
        }
        _ => return false,
    }
    out.push('}');
    true
}
