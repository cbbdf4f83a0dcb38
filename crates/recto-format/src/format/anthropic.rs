//! Codec of Anthropic's Messages: a list, a request with `messages`, responses with `content`, or JSON
//! lines of either.
//!
//! Anthropic puts tool results into messages of the user. They become messages of role `tool`, so a
//! message with results and a text becomes two. Blocks that only this provider supports (searches on
//! its servers, redacted thinking) stay unchanged, and the message records the provider.

mod recognise;
mod write;

use std::borrow::Cow;

use recto_core::Role;

use super::message_list::{CallNames, Draft, FieldError, MessageCodec, ReadState};
use super::new_parts;
use super::{Head, Likelihood};
use crate::Format;
use crate::json::{self, Str};
use crate::media::{self, MediaBody, MediaKind};
use crate::parts::MessageParts;

pub(crate) struct Anthropic;

/// True if the value of the field `thread` of a request continues messages that the provider stores.
pub(crate) fn continues_thread(value: &str) -> bool {
    json::get_str(value, "type").is_some_and(|kind| kind.is("continue"))
}

impl MessageCodec for Anthropic {
    fn recognise(&self, head: &Head) -> Likelihood {
        recognise::likelihood(head)
    }

    fn format(&self) -> Format {
        Format::Anthropic
    }

    fn list_keys(&self) -> &'static [&'static str] {
        &["messages"]
    }

    fn read(&self, foreign: &str, _memory: &mut ReadState) -> Result<Vec<Draft>, FieldError> {
        read(foreign).map(|message| message.drafts)
    }

    fn read_envelope(&self, key: &str, value: &str) -> Option<Result<Vec<Draft>, FieldError>> {
        match key {
            "system" if json::is_list(value) || Str::of(value).is_some() => {
                Some(Ok(vec![Draft::converted(Role::System, new_parts::content_of(value))]))
            }
            "system" => {
                Some(Err(FieldError::new("system", "system must be a string or a list of texts")))
            }
            "thread" if continues_thread(value) => Some(Err(FieldError::new(
                "thread",
                "the earlier messages are stored at the provider, not in the file",
            ))),
            _ => None,
        }
    }

    fn system_field(&self) -> Option<&'static str> {
        Some("system")
    }

    fn write_system(&self, messages: &[MessageParts<'_>], out: &mut String) {
        write::system(messages, out);
    }

    /// All results of a turn are in one message.
    fn joins(&self, last: &MessageParts<'_>, next: &MessageParts<'_>) -> bool {
        last.role == Role::Tool && next.role == Role::Tool
    }

    fn write(
        &self,
        pieces: &[MessageParts<'_>],
        _names: &CallNames<'_>,
        out: &mut String,
        warnings: &mut Vec<String>,
    ) {
        write::messages(pieces, out, warnings);
    }
}

/// A converted message.
pub(crate) struct ReadMessage<'a> {
    pub(crate) drafts: Vec<Draft>,
    pub(crate) role: Role,
    pub(crate) content: &'a str,
    pub(crate) id: Option<Str<'a>>,
}

/// Reads one message.
pub(crate) fn read(foreign: &str) -> Result<ReadMessage<'_>, FieldError> {
    let fields = json::Object::of(foreign);
    let role = match fields.get_str("role").map(Str::escaped) {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        _ => return Err(FieldError::new("role", "role must be user or assistant")),
    };
    let Some(content) = fields.get("content") else {
        return Err(FieldError::new(
            "content",
            "content is missing; it must be a string or a list of blocks",
        ));
    };
    // Only some models accept system messages in the list: the source records that this one did.
    let is_bare = fields.has_only(&["role", "content"]) && role != Role::System;
    let model = fields.get_str("model").map(|model| model.escaped().to_owned());
    let id = fields.get_str("id");
    let message = |drafts: Vec<Draft>| ReadMessage { drafts, role, content, id };
    if Str::of(content).is_some() {
        if is_bare {
            return Ok(message(vec![Draft::Unchanged]));
        }
        return Ok(message(vec![draft(role, content.to_owned(), false, model)]));
    }
    if !json::is_list(content) {
        return Err(FieldError::new("content", "content must be a string or a list of blocks"));
    }
    let blocks: Vec<Block<'_>> =
        json::objects(content).map(|(block, fields)| Block::read(block, &fields)).collect();
    // A system message without content changes the effort.
    if let Some(config) = fields.get("output_config").filter(|_| blocks.is_empty())
        && role == Role::System
    {
        let content = format!(r#"[{{"type":"output_config","output_config":{config}}}]"#);
        return Ok(message(vec![draft(role, content, true, model)]));
    }
    if blocks.is_empty() {
        return Err(FieldError::new("content", "the list of blocks is empty"));
    }
    let is_provider_specific = blocks.iter().any(|block| block.is_provider_specific);
    let is_same = blocks.iter().all(|block| matches!(block.json, Cow::Borrowed(_)));
    let has_results = blocks.iter().any(|block| block.is_result);
    if is_bare && is_same && !is_provider_specific && !has_results {
        return Ok(message(vec![Draft::Unchanged]));
    }
    let mut drafts = Vec::new();
    let mut rest = &blocks[..];
    while let [first, ..] = rest {
        let len = rest.iter().take_while(|block| block.is_result == first.is_result).count();
        let list: Vec<&str> = rest[..len].iter().map(|block| &*block.json).collect();
        let role = if first.is_result { Role::Tool } else { role };
        drafts.push(draft(
            role,
            format!("[{}]", list.join(",")),
            is_provider_specific,
            model.clone(),
        ));
        rest = &rest[len..];
    }
    Ok(message(drafts))
}

fn draft(role: Role, content: String, is_provider_specific: bool, model: Option<String>) -> Draft {
    let provider = (is_provider_specific || model.is_some()).then(|| "anthropic".to_owned());
    Draft::Converted { role, content, fields: String::new(), provider, model }
}

/// A block, converted to a part.
struct Block<'a> {
    json: Cow<'a, str>,
    is_result: bool,
    /// True if only this provider, or only the model that produced it, accepts the block.
    is_provider_specific: bool,
}

impl<'a> Block<'a> {
    fn read(block: &'a str, fields: &json::Object<'a>) -> Block<'a> {
        let unchanged =
            Block { json: Cow::Borrowed(block), is_result: false, is_provider_specific: false };
        let kind = fields.get_str("type").map(Str::text).unwrap_or_default();
        match &*kind {
            "text" | "tool_use" => unchanged,
            "tool_result" => Block::of_result(block, fields),
            "image" | "document" => match media_of(block) {
                Some(part) => Block { json: part, ..unchanged },
                None => Block { is_provider_specific: true, ..unchanged },
            },
            "thinking" => {
                let Some(text) = fields.get("thinking") else { return unchanged };
                let mut part = format!(r#"{{"type":"thinking","text":{text}"#);
                fields.push_others(&["type", "thinking"], &mut part);
                part.push('}');
                Block { json: Cow::Owned(part), is_provider_specific: true, ..unchanged }
            }
            _ => Block { is_provider_specific: true, ..unchanged },
        }
    }
}

impl<'a> Block<'a> {
    /// Converts a result, with its images and documents.
    fn of_result(block: &'a str, fields: &json::Object<'a>) -> Block<'a> {
        let mut result =
            Block { json: Cow::Borrowed(block), is_result: true, is_provider_specific: false };
        let content = fields.get("content");
        if let Some(value) = content.filter(|content| is_value(content)) {
            // Some clients send the value that the tool returned.
            result.json = Cow::Owned(with_content(block, &json::string(value)));
            return result;
        }
        let content = content.filter(|content| json::is_list(content));
        let mut list = Vec::new();
        for item in content.map(json::items).into_iter().flatten() {
            let kind = json::get_str(item, "type").map(Str::text).unwrap_or_default();
            let media = matches!(&*kind, "image" | "document").then(|| media_of(item)).flatten();
            result.is_provider_specific |=
                media.is_none() && !matches!(&*kind, "text" | "image" | "");
            list.push(media.unwrap_or(Cow::Borrowed(item)));
        }
        if list.iter().any(|item| matches!(item, Cow::Owned(_))) {
            result.json = Cow::Owned(with_content(block, &format!("[{}]", list.join(","))));
        }
        result
    }
}

/// True for a content that is neither a text nor a list, nor missing.
pub(crate) fn is_value(content: &str) -> bool {
    content != "null" && Str::of(content).is_none() && !json::is_list(content)
}

/// A result with its content replaced.
fn with_content(block: &str, content: &str) -> String {
    let mut out = String::with_capacity(block.len());
    for (key, value) in json::fields(block) {
        out.push(if out.is_empty() { '{' } else { ',' });
        json::push_str(key, &mut out);
        out.push(':');
        out.push_str(if key.text() == "content" { content } else { value });
    }
    out.push('}');
    out
}

/// Converts an image or document; `None` if Recto has no such media.
fn media_of(block: &str) -> Option<Cow<'_, str>> {
    let is_image = json::get_str(block, "type")?.escaped() == "image";
    let source = json::get(block, "source")?;
    let kind = json::get_str(source, "type")?.text();
    if is_image && matches!(&*kind, "base64" | "url") {
        return Some(Cow::Borrowed(block)); // Recto has the same form
    }
    let body = match &*kind {
        "base64" => MediaBody::Base64 {
            media_type: json::get_str(source, "media_type")?,
            data: json::get_str(source, "data")?,
        },
        "url" => MediaBody::Url(json::get_str(source, "url")?),
        "text" => MediaBody::Text(json::get_str(source, "data")?),
        "file" => MediaBody::FileId {
            id: json::get_str(source, "file_id")?,
            provider: Some(Str::plain("anthropic")),
        },
        _ => return None,
    };
    let mut extra = String::new();
    json::push_other_fields(block, &["type", "source", "title"], &mut extra);
    let media_kind = if is_image { MediaKind::Image } else { MediaKind::File };
    let mut part = String::new();
    media::write(media_kind, body, json::get_str(block, "title"), &extra, &mut part);
    Some(Cow::Owned(part))
}
