//! Codec of the model messages of Vercel's AI SDK (`ModelMessage`): `{role, content}`.
//!
//! | foreign | conversion |
//! |---|---|
//! | `text`, `reasoning`, `image`, `file` | text, thinking, image, media of the kind that `mediaType` names |
//! | `tool-call` | `tool_use` |
//! | `tool-result` | `tool_result` in a tool message; its text is the value of `output` |
//! | calls that the provider executed, with their results | unchanged parts: they need no result from a tool |
//! | approvals and every other part | unchanged parts |

use std::borrow::Cow;

use recto_core::Role;

use super::message_list::{
    CallNames, Draft, FieldError, MessageCodec, ReadState, unsupported_part,
};
use super::new_parts::{NewParts, content_of, kind_of};
use super::{Head, Likelihood};
use crate::Format;
use crate::json::{self, Object, Str};
use crate::media::{Media, MediaBody, MediaKind};
use crate::parts::{MessageParts, Part};

pub(crate) struct VercelModel;

impl MessageCodec for VercelModel {
    fn recognise(&self, head: &Head) -> Likelihood {
        let is_typical = |message: &str| {
            let mut parts = json::get(message, "content").map(json::items).into_iter().flatten();
            json::get(message, "role").is_some()
                && parts.any(|part| {
                    let kind = json::get_str(part, "type").map(Str::escaped).unwrap_or_default();
                    matches!(kind, "tool-call" | "tool-result")
                        && json::get_str(part, "toolCallId").is_some()
                })
        };
        let mut objects = head.objects().into_iter();
        match objects.any(|object| {
            let mut listed = json::get(object, "messages").map(json::items).into_iter().flatten();
            is_typical(object) || listed.any(is_typical)
        }) {
            true => Likelihood::Certain,
            false => Likelihood::No,
        }
    }

    fn format(&self) -> Format {
        Format::VercelModel
    }

    fn list_keys(&self) -> &'static [&'static str] {
        &["messages"]
    }

    fn read(&self, foreign: &str, _state: &mut ReadState) -> Result<Vec<Draft>, FieldError> {
        let fields = Object::of(foreign);
        let role = match fields.get_str("role").map(Str::escaped) {
            Some("system") => Role::System,
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            Some("tool") => Role::Tool,
            _ => {
                return Err(FieldError::new(
                    "role",
                    "role must be system, user, assistant or tool",
                ));
            }
        };
        let content = fields.get("content").unwrap_or("[]");
        if let Some(text) = Str::of(content) {
            let is_bare = fields.has_only(&["role", "content"]) && !text.is_empty();
            return Ok(vec![match is_bare && role != Role::Tool {
                true => Draft::Unchanged,
                false => Draft::converted(role, content_of(content)),
            }]);
        }
        if !json::is_list(content) {
            return Err(FieldError::new("content", "content must be a string or a list of parts"));
        }
        let mut parts = NewParts::with_capacity(content.len());
        for (part, fields) in json::objects(content) {
            if read_part(role, &fields, &mut parts).is_none() {
                parts.raw(part);
            }
        }
        Ok(vec![Draft::converted(role, parts.finish())])
    }

    fn write(
        &self,
        pieces: &[MessageParts<'_>],
        names: &CallNames<'_>,
        out: &mut String,
        warnings: &mut Vec<String>,
    ) {
        for (number, message) in pieces.iter().enumerate() {
            if number > 0 {
                out.push(',');
            }
            write_message(message, names, out, warnings);
        }
    }
}

/// Adds a part; `None` if Recto has no such part.
fn read_part(role: Role, fields: &Object<'_>, parts: &mut NewParts) -> Option<()> {
    match &*fields.get_str("type")?.text() {
        "text" => parts.text(fields.get_str("text")?, ""),
        "reasoning" => parts.thinking(fields.get_str("text")?, ""),
        "image" => parts.media(MediaKind::Image, media_body(fields, "image", "image/*")?, None, ""),
        "file" => {
            let media_type = fields.get_str("mediaType")?;
            let body = media_body(fields, "data", media_type.escaped())?;
            parts.media(kind_of(&media_type.text()), body, fields.get_str("filename"), "");
        }
        "tool-call" if !fields.is_true("providerExecuted") => {
            let input = fields.get("input").unwrap_or("{}");
            parts.call(fields.get_str("toolCallId")?, fields.get_str("toolName")?, input, "");
        }
        "tool-result" if role == Role::Tool => {
            let output = Object::of(fields.get("output").unwrap_or("{}"));
            let kind = output.get_str("type").map(Str::text).unwrap_or_default();
            let is_error = kind.starts_with("error") || kind == "execution-denied";
            let value = output.get("value").or_else(|| output.get("reason"));
            let content = value.map(|value| result_content(&kind, value));
            let name = fields.get_str("toolName").map_or(Str::plain(""), |name| name);
            let extra = format!(r#","name":"{}""#, name.escaped());
            parts.result(fields.get_str("toolCallId")?, content.as_deref(), is_error, &extra);
        }
        _ => return None,
    }
    Some(())
}

/// The media in a field. A string is a URL, a data URL or base64.
fn media_body<'a>(fields: &Object<'a>, key: &str, default: &'a str) -> Option<MediaBody<'a>> {
    let data = fields.get_str(key)?;
    let media_type = fields.get_str("mediaType").unwrap_or(Str::escaped_text(default));
    let is_url = data.escaped().starts_with("data:") || data.escaped().contains("://");
    Some(match is_url {
        true => MediaBody::of_url(data),
        false => MediaBody::Base64 { media_type, data },
    })
}

/// The content of a result: a string, or a list of parts.
fn result_content<'a>(kind: &str, value: &'a str) -> Cow<'a, str> {
    if Str::of(value).is_some() {
        return Cow::Borrowed(value);
    }
    if kind != "content" || !json::is_list(value) {
        return Cow::Owned(json::string(value));
    }
    let mut parts = NewParts::with_capacity(value.len());
    for (part, fields) in json::objects(value) {
        match fields.get_str("text") {
            Some(text) => parts.text(text, ""),
            None => parts.raw(part),
        }
    }
    Cow::Owned(parts.finish_list())
}

fn write_message(
    message: &MessageParts<'_>,
    names: &CallNames<'_>,
    out: &mut String,
    warnings: &mut Vec<String>,
) {
    out.push_str(&format!(r#"{{"role":"{}","content":"#, message.role.as_str()));
    // The content of a system message is a string.
    if message.role == Role::System || (message.is_string && message.role != Role::Tool) {
        let texts: Vec<&str> = message
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Text { text, .. } => Some(text.escaped()),
                _ => None,
            })
            .collect();
        out.push('"');
        out.push_str(&texts.join("\\n"));
        out.push_str("\"}");
        return;
    }
    out.push('[');
    let start = out.len();
    for part in &message.parts {
        json::push_item(start, out, |out| write_part(part, message, names, out, warnings));
    }
    out.push_str("]}");
}

/// Writes a part. Returns false if the format has no such part.
fn write_part(
    part: &Part<'_>,
    message: &MessageParts<'_>,
    names: &CallNames<'_>,
    out: &mut String,
    warnings: &mut Vec<String>,
) -> bool {
    match *part {
        Part::Text { text, .. } => {
            out.push_str(r#"{"type":"text","text":"#);
            json::push_str(text, out);
        }
        Part::Thinking { text, .. } => {
            out.push_str(r#"{"type":"reasoning","text":"#);
            json::push_str(text, out);
        }
        Part::ToolUse { id, name, input, .. } => {
            out.push_str(r#"{"type":"tool-call","toolCallId":"#);
            json::push_str(id, out);
            out.push_str(r#","toolName":"#);
            json::push_str(name, out);
            out.push_str(r#","input":"#);
            out.push_str(input);
        }
        Part::ToolResult { id, content, is_error, json, .. } => {
            let name = json::get_str(json, "name").or_else(|| names.of(id));
            out.push_str(r#"{"type":"tool-result","toolCallId":"#);
            json::push_str(id, out);
            out.push_str(r#","toolName":"#);
            json::push_str(name.unwrap_or(Str::plain("unknown")), out);
            let kind = if is_error { "error-text" } else { "text" };
            out.push_str(&format!(r#","output":{{"type":"{kind}","value":""#));
            let mut texts = Vec::new();
            for part in Part::of_result(content) {
                match part {
                    Part::Text { text, .. } => texts.push(text.escaped()),
                    _ => warnings.push("only the texts of a result are supported".into()),
                }
            }
            out.push_str(&texts.join("\\n"));
            out.push_str("\"}");
        }
        Part::Media(media) => return write_media(media, out, warnings),
        Part::Other { json, .. } if message.is_of(Format::VercelModel) => {
            out.push_str(json);
            return true;
        }
        Part::Other { kind, .. } => {
            warnings.push(unsupported_part(kind));
            return false;
        }
    }
    out.push('}');
    true
}

fn write_media(media: Media<'_>, out: &mut String, warnings: &mut Vec<String>) -> bool {
    let (media_type, data) = match media.body {
        MediaBody::Base64 { media_type, data } => (media_type, data),
        MediaBody::Url(url) => {
            let default = match media.kind {
                MediaKind::Image => "image/*",
                MediaKind::Audio => "audio/*",
                _ => "application/octet-stream",
            };
            (json::get_str(media.json, "media_type").unwrap_or(Str::plain(default)), url)
        }
        _ => {
            warnings.push("a file without content or URL is not supported".into());
            return false;
        }
    };
    out.push_str(r#"{"type":"file","mediaType":"#);
    json::push_str(media_type, out);
    out.push_str(r#","data":"#);
    json::push_str(data, out);
    if let Some(name) = media.name {
        out.push_str(r#","filename":"#);
        json::push_str(name, out);
    }
    out.push('}');
    true
}
