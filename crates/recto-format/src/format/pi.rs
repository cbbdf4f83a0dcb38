//! Codec of pi sessions, which OpenClaw also writes: JSON lines that form a tree by `id` and `parentId`.
//! Lines of the first version have no ids and follow each other.
//!
//! | in the file | conversion |
//! |---|---|
//! | `message` of role `user`, `assistant` | a message |
//! | `message` of role `toolResult` | a message of role `tool` |
//! | `message` of role `bashExecution` | a message of the user with the command and its output |
//! | `message` of role `custom`, `hookMessage` | a message of the user |
//! | `message` of role `branchSummary`, `compactionSummary` | a message of the user |
//! | `custom_message`, `branch_summary` | a message of the user |
//! | `compaction` | COMPRESS of the messages before `firstKeptEntryId` |
//! | all other lines | stored with the next message, for export |

use recto_core::Role;

use super::message_list::{Draft, FieldError};
use super::new_parts::{NewParts, kind_of};
use super::session::{
    Effect, Place, Record, SessionCodec, SessionState, plain_text, push_text, text_of,
};
use super::{Head, Likelihood};
use crate::Format;
use crate::json::{self, Str};
use crate::media::{MediaBody, MediaKind};
use crate::parts::{MessageParts, Part};

pub(crate) struct Pi;

impl SessionCodec for Pi {
    fn format(&self) -> Format {
        Format::Pi
    }

    fn recognise(&self, head: &Head) -> Likelihood {
        let mut best = Likelihood::No;
        for line in head.objects() {
            let kind = json::get_str(line, "type").map(Str::escaped).unwrap_or_default();
            let has = |key: &str| json::get(line, key).is_some();
            let role = json::get(line, "message").and_then(|it| json::get_str(it, "role"));
            let found = match kind {
                "session" if has("id") && has("timestamp") && has("cwd") => Likelihood::Certain,
                "message" if role.is_some_and(|role| role.escaped() == "toolResult") => {
                    Likelihood::Certain
                }
                "message" if role.is_some() && has("timestamp") => Likelihood::Likely,
                // Droid writes lines like these after a different header.
                "session_start" => return Likelihood::No,
                _ => Likelihood::No,
            };
            best = best.max(found);
        }
        best
    }

    fn parent_field(&self) -> Option<&'static str> {
        Some("parentId")
    }

    fn read<'a>(&self, line: &'a str, state: &mut SessionState) -> Result<Record<'a>, FieldError> {
        let fields = json::Object::of(line);
        let mut record = Record::without_message(line).with_ids(&fields, "id", "parentId");
        let kind = fields.get_str("type").map(Str::text).unwrap_or_default();
        let text = |field: &str| fields.get(field).filter(|text| Str::of(text).is_some());
        match &*kind {
            "session" => {
                record.session = fields.get_str("id");
                Ok(record)
            }
            "message" => match fields.get("message") {
                Some(message) => read_message(record, message),
                None => Err(FieldError::new("message", "the message is missing")),
            },
            "custom_message" => match fields.get("content") {
                Some(content) => Ok(record.message(Role::User, content_of(content))),
                None => Ok(record),
            },
            "branch_summary" => match text("summary") {
                Some(summary) => Ok(record.unchanged(Role::User, summary)),
                None => Ok(record),
            },
            "compaction" => match text("summary") {
                Some(summary) => {
                    let first_kept = fields.get_str("firstKeptEntryId");
                    record.effect = Effect::Compaction { first_kept, keeps_system: false };
                    Ok(record.unchanged(Role::User, summary))
                }
                None => Err(FieldError::new("summary", "the compaction has no summary")),
            },
            "model_change" | "thinking_level_change" | "custom" | "label" | "session_info" => {
                Ok(record)
            }
            other => {
                state.unknown_kind("type", other);
                Ok(record)
            }
        }
    }

    fn write(
        &self,
        message: &MessageParts<'_>,
        place: &Place<'_>,
        out: &mut String,
        warnings: &mut Vec<String>,
    ) {
        let time = place.timestamp();
        let mut records: Vec<String> = Vec::new();
        let mut parent = place.parent_field("parentId", 0);
        if place.number == 0 {
            let id = place.session();
            records.push(format!(
                r#"{{"type":"session","version":3,"id":{id},"timestamp":{time},"cwd":""}}"#
            ));
        }
        for (number, message) in foreign_messages(message, place, warnings).iter().enumerate() {
            let id = place.id(number);
            records.push(format!(
                r#"{{"type":"message","id":"{id}",{parent}"timestamp":{time},"message":{message}}}"#
            ));
            parent = place.parent_field("parentId", number + 1);
        }
        out.push_str(&records.join(","));
    }
}

fn read_message<'a>(record: Record<'a>, message: &'a str) -> Result<Record<'a>, FieldError> {
    let fields = json::Object::of(message);
    let role = fields.get_str("role").map(Str::text).unwrap_or_default();
    let content = fields.get("content");
    let record = Record { foreign: message, ..record };
    match (&*role, content) {
        ("user" | "custom" | "hookMessage", Some(content)) => match is_unchanged(content) {
            true => Ok(record.unchanged(Role::User, content)),
            false => Ok(record.message(Role::User, content_of(content))),
        },
        // A request that was aborted before the first token.
        ("assistant", None | Some("[]" | "\"\"")) => Ok(record),
        ("assistant", Some(content)) => Ok(assistant(record, &fields, content)),
        ("toolResult", content) => {
            let id = fields.get_str("toolCallId").ok_or_else(|| {
                FieldError::new("message.toolCallId", "the id of the call is missing")
            })?;
            let mut extra = String::new();
            if let Some(name) = fields.get_str("toolName") {
                extra.push_str(",\"name\":");
                json::push_str(name, &mut extra);
            }
            let mut parts = NewParts::default();
            let content = content.map(result_content);
            parts.result(id, content.as_deref(), fields.is_true("isError"), &extra);
            Ok(record.message(Role::Tool, parts.finish()))
        }
        ("bashExecution", _) => {
            if fields.is_true("excludeFromContext") {
                return Ok(record);
            }
            let command = fields.get_str("command").map(Str::text).unwrap_or_default();
            let output = fields.get_str("output").map(Str::text).unwrap_or_default();
            let text = format!("Ran `{command}`\n```\n{output}\n```");
            Ok(record.message(Role::User, json::string(&text)))
        }
        ("branchSummary" | "compactionSummary", _) => match fields.get("summary") {
            Some(summary) if Str::of(summary).is_some() => {
                Ok(record.unchanged(Role::User, summary))
            }
            _ => Ok(record),
        },
        (other, None) => Err(FieldError::new(
            "message.content",
            format!("the message of role {other} has no content"),
        )),
        (other, _) => Err(FieldError::new(
            "message.role",
            format!("role must be user, assistant or toolResult, not {other:?}"),
        )),
    }
}

/// True if a content is also Recto's: a text, or texts without further fields.
fn is_unchanged(content: &str) -> bool {
    let is_text = |part: &json::Object<'_>| {
        part.has_only(&["type", "text"])
            && part.get_str("type").is_some_and(|kind| kind.escaped() == "text")
            && part.get_str("text").is_some()
    };
    match Str::of(content) {
        Some(text) => !text.is_empty(),
        None => content != "[]" && json::objects(content).all(|(_, part)| is_text(&part)),
    }
}

/// Converts a content to a string or a list of parts.
fn content_of(content: &str) -> String {
    if Str::of(content).is_some_and(|text| !text.is_empty()) {
        return content.to_owned();
    }
    let mut parts = NewParts::with_capacity(content.len());
    for (part, fields) in json::objects(content) {
        read_part(part, &fields, &mut parts);
    }
    parts.finish()
}

/// Converts the content of a result. A list with a single text becomes a string.
fn result_content(content: &str) -> String {
    if Str::of(content).is_some() {
        return content.to_owned();
    }
    let texts: Vec<Option<&str>> = json::objects(content)
        .map(|(_, part)| part.get("text").filter(|text| Str::of(text).is_some()))
        .collect();
    match texts[..] {
        [] => "\"\"".to_owned(),
        [Some(text)] => text.to_owned(),
        _ => content_of(content),
    }
}

/// Converts a part. Returns true if only the model that produced it accepts it.
fn read_part(part: &str, fields: &json::Object<'_>, parts: &mut NewParts) -> bool {
    let signature = |name: &str| match fields.get_str(name).filter(|it| !it.is_empty()) {
        Some(signature) => format!(",\"signature\":\"{}\"", signature.escaped()),
        None => String::new(),
    };
    let kind = fields.get_str("type").map(Str::text).unwrap_or_default();
    match &*kind {
        "text" => push_text(fields.get_str("text"), parts),
        "thinking" => {
            let signature = signature("thinkingSignature");
            let text = fields.get_str("thinking").unwrap_or(Str::plain(""));
            parts.thinking(text, &signature);
            return !signature.is_empty();
        }
        "toolCall" => {
            if let (Some(id), Some(name)) = (fields.get_str("id"), fields.get_str("name")) {
                let signature = signature("thoughtSignature");
                let input = fields.get("arguments").unwrap_or("{}");
                parts.call(id, name, input, &signature);
                return !signature.is_empty();
            }
            parts.raw(super::message_list::UNREADABLE_PART);
        }
        "image" => {
            if let (Some(media_type), Some(data)) =
                (fields.get_str("mimeType"), fields.get_str("data"))
            {
                let kind = kind_of(&media_type.text());
                parts.media(kind, MediaBody::Base64 { media_type, data }, None, "");
            }
        }
        _ if json::is_object(part) && !kind.is_empty() => parts.raw(part),
        _ => parts.raw(super::message_list::UNREADABLE_PART),
    }
    false
}

fn assistant<'a>(record: Record<'a>, fields: &json::Object<'a>, content: &'a str) -> Record<'a> {
    let model = fields.get_str("model").map(|model| model.escaped().to_owned());
    let provider = fields.get_str("provider").map(Str::text).unwrap_or_default();
    let api = fields.get_str("api").map(Str::text).unwrap_or_default();
    let provider = match (&*provider, &*api) {
        (_, "anthropic-messages") | ("anthropic", _) => Some("anthropic"),
        (_, "google-generative-ai") | ("google", _) => Some("google"),
        ("openai", _) => Some("openai"),
        _ => None,
    };
    let mut parts = NewParts::with_capacity(content.len());
    match Str::of(content) {
        Some(text) => parts.text(text, ""),
        None => {
            for (part, fields) in json::objects(content) {
                read_part(part, &fields, &mut parts);
            }
        }
    }
    let mut record = record;
    record.drafts.push(Draft::Converted {
        role: Role::Assistant,
        content: parts.finish(),
        fields: String::new(),
        provider: provider.map(str::to_owned),
        model,
    });
    record
}

/// The messages of pi that represent a message.
fn foreign_messages(
    message: &MessageParts<'_>,
    place: &Place<'_>,
    warnings: &mut Vec<String>,
) -> Vec<String> {
    let time = place.time.unwrap_or(0);
    let mut messages = Vec::new();
    for part in &message.parts {
        if let Part::ToolResult { id, content, is_error, .. } = *part {
            let mut out = String::from(r#"{"role":"toolResult","toolCallId":"#);
            json::push_str(id, &mut out);
            if let Some(name) = place.names.of(id) {
                out.push_str(",\"toolName\":");
                json::push_str(name, &mut out);
            }
            let text = text_of(content);
            out.push_str(&format!(
                r#","content":[{{"type":"text","text":{text}}}],"isError":{is_error},"timestamp":{time}}}"#
            ));
            messages.push(out);
        }
    }
    let others: Vec<&Part<'_>> =
        message.parts.iter().filter(|part| !matches!(part, Part::ToolResult { .. })).collect();
    if others.is_empty() {
        return messages;
    }
    if message.role == Role::Assistant {
        let mut parts = NewParts::default();
        for part in others {
            write_part(part, message, &mut parts, warnings);
        }
        let content = parts.finish_list();
        messages.push(format!(r#"{{"role":"assistant","content":{content},"timestamp":{time}}}"#));
        return messages;
    }
    if message.role == Role::System {
        warnings.push("a system message is written as a message of the user".into());
    }
    let mut parts = NewParts::default();
    for part in others {
        write_part(part, message, &mut parts, warnings);
    }
    let content = match message.is_string {
        true => plain_text(message, warnings).unwrap_or_else(|| "\"\"".to_owned()),
        false => parts.finish(),
    };
    messages.push(format!(r#"{{"role":"user","content":{content},"timestamp":{time}}}"#));
    messages
}

fn write_part(
    part: &Part<'_>,
    message: &MessageParts<'_>,
    parts: &mut NewParts,
    warnings: &mut Vec<String>,
) {
    match *part {
        Part::Text { text, .. } => parts.text(text, ""),
        Part::Thinking { text, signature, .. } => {
            let mut out = String::from(r#"{"type":"thinking","thinking":"#);
            json::push_str(text, &mut out);
            if let Some(signature) = signature.filter(|_| message.source.is_some()) {
                out.push_str(",\"thinkingSignature\":");
                json::push_str(signature, &mut out);
            }
            out.push('}');
            parts.raw(&out);
        }
        Part::ToolUse { id, name, input, .. } => {
            let mut out = String::from(r#"{"type":"toolCall","id":"#);
            json::push_str(id, &mut out);
            out.push_str(",\"name\":");
            json::push_str(name, &mut out);
            out.push_str(",\"arguments\":");
            out.push_str(input);
            out.push('}');
            parts.raw(&out);
        }
        Part::Media(media) => match (media.kind, media.body) {
            (MediaKind::Image, MediaBody::Base64 { media_type, data }) => {
                let mut out = String::from(r#"{"type":"image","data":"#);
                json::push_str(data, &mut out);
                out.push_str(",\"mimeType\":");
                json::push_str(media_type, &mut out);
                out.push('}');
                parts.raw(&out);
            }
            _ => warnings.push("an image, audio or file is not supported".into()),
        },
        Part::Other { kind, .. } => {
            warnings.push(super::message_list::unsupported_part(kind));
        }
        Part::ToolResult { .. } => {}
    }
}
