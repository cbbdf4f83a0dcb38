//! Codec of Amazon Bedrock's Converse API: a list of messages, a request with `messages`, responses with
//! `output`, or JSON lines.
//!
//! | foreign block | conversion |
//! |---|---|
//! | `text` | a text |
//! | `toolUse` | a `tool_use` part |
//! | `toolResult` | a `tool_result` part in a message of role `tool`; `status: "error"` becomes `is_error` |
//! | `reasoningContent` with a text | a `thinking` part with its signature |
//! | `image`, `document` with bytes | an image or file |
//! | every other block | a part of type `bedrock_NAME`, for Bedrock only |

use recto_core::Role;

use super::message_list::{
    CallNames, Draft, FieldError, MessageCodec, ReadState, TurnKeys, UNREADABLE_PART,
    unsupported_part, write_turns,
};
use super::new_parts::NewParts;
use super::{Head, Likelihood};
use crate::Format;
use crate::json::{self, Str};
use crate::media::{MediaBody, MediaKind};
use crate::parts::{MessageParts, Part};

pub(super) struct BedrockConverse;

/// Name of the provider in `metadata.source.provider`.
const PROVIDER: &str = "bedrock";
/// Start of the type of a part that only Bedrock supports.
pub(crate) const PREFIX: &str = "bedrock_";
/// The keys of blocks. A block has one of them and no type.
const BLOCKS: [&str; 12] = [
    "text",
    "toolUse",
    "toolResult",
    "reasoningContent",
    "image",
    "document",
    "video",
    "cachePoint",
    "guardContent",
    "searchResult",
    "audio",
    "citationsContent",
];

/// The likelihood that a message has this format: its content is a list of blocks without a type.
fn likelihood(message: &str) -> Likelihood {
    let role = json::get_str(message, "role").map(Str::escaped);
    if !matches!(role, Some("user" | "assistant")) {
        return Likelihood::No;
    }
    let blocks = json::get(message, "content").map(json::items).into_iter().flatten();
    let likelihoods = blocks.map(|block| match json::Object::of(block).only() {
        Some((key, value)) if key.is("text") && Str::of(value).is_some() => Likelihood::Likely,
        Some((key, value)) if BLOCKS[1..].iter().any(|known| key.is(known)) => {
            if json::is_object(value) { Likelihood::Certain } else { Likelihood::No }
        }
        _ => Likelihood::No,
    });
    likelihoods.max().unwrap_or(Likelihood::No)
}

/// The message of a response of the API.
fn response_message(object: &str) -> Option<&str> {
    let message = json::get(json::get(object, "output")?, "message")?;
    (json::get_str(message, "role").is_some() && json::get(message, "content").is_some())
        .then_some(message)
}

impl MessageCodec for BedrockConverse {
    fn recognise(&self, head: &Head) -> Likelihood {
        let mut best = Likelihood::No;
        for object in head.objects() {
            let fields = json::Object::of(object);
            // The model is in the address of a request, not in its body.
            if fields.get("model").is_some() {
                return Likelihood::No;
            }
            if response_message(object).is_some() && fields.get("stopReason").is_some() {
                best = best.max(Likelihood::Certain);
            }
            let list = fields.get("messages").filter(|list| json::is_list(list));
            let is_typical = |key: &&str| fields.get(key).is_some();
            if list.is_some() && ["toolConfig", "inferenceConfig"].iter().any(is_typical) {
                best = best.max(Likelihood::Certain);
            }
            // The blocks of Anthropic's `system` have a type.
            let system = fields.get("system").map(json::items).and_then(|mut blocks| blocks.next());
            let is_untyped = |block: &str| json::Object::of(block).has_only(&["text"]);
            if list.is_some() && system.is_some_and(is_untyped) {
                best = best.max(Likelihood::Certain);
            }
            let listed = list.map(json::items).into_iter().flatten();
            for message in std::iter::once(object).chain(listed) {
                best = best.max(likelihood(message));
            }
        }
        best
    }

    fn format(&self) -> Format {
        Format::BedrockConverse
    }

    fn list_keys(&self) -> &'static [&'static str] {
        &["messages"]
    }

    fn read(&self, foreign: &str, state: &mut ReadState) -> Result<Vec<Draft>, FieldError> {
        let fields = json::Object::of(response_message(foreign).unwrap_or(foreign));
        let role = match fields.get_str("role").map(Str::escaped) {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            _ => return Err(FieldError::new("role", "role must be user or assistant")),
        };
        let Some(content) = fields.get("content").filter(|content| json::is_list(content)) else {
            return Err(FieldError::new("content", "content must be a list of blocks"));
        };
        let mut drafts: Vec<(Role, NewParts)> = Vec::new();
        let mut is_provider_specific = false;
        for (number, block) in json::items(content).enumerate() {
            let is_result = json::get(block, "toolResult").is_some();
            let role = if is_result { Role::Tool } else { role };
            if drafts.last().is_none_or(|(before, _)| *before != role) {
                drafts.push((role, NewParts::with_capacity(block.len())));
            }
            let Some((_, parts)) = drafts.last_mut() else { continue };
            match read_block(block, parts) {
                Ok(is_specific) => is_provider_specific |= is_specific,
                Err(error) => {
                    state.unreadable_part(&format!("content[{number}]"), error);
                    parts.raw(UNREADABLE_PART);
                }
            }
        }
        if drafts.is_empty() {
            return Err(FieldError::new("content", "the list of blocks is empty"));
        }
        let provider = is_provider_specific.then(|| PROVIDER.to_owned());
        let made = drafts.into_iter().map(|(role, parts)| Draft::Converted {
            role,
            content: parts.finish(),
            fields: String::new(),
            provider: provider.clone(),
            model: None,
        });
        Ok(made.collect())
    }

    fn read_envelope(&self, key: &str, value: &str) -> Option<Result<Vec<Draft>, FieldError>> {
        if key != "system" {
            return None;
        }
        let mut parts = NewParts::default();
        for block in json::items(value) {
            match json::get_str(block, "text") {
                Some(text) => parts.text(text, ""),
                None => parts.typed(&format!("{PREFIX}system"), block),
            }
        }
        Some(Ok(vec![Draft::converted(Role::System, parts.finish())]))
    }

    fn system_field(&self) -> Option<&'static str> {
        Some("system")
    }

    fn write_system(&self, messages: &[MessageParts<'_>], out: &mut String) {
        out.push('[');
        let start = out.len();
        for part in messages.iter().flat_map(|message| &message.parts) {
            if let Part::Text { text, .. } = *part {
                if out.len() > start {
                    out.push(',');
                }
                write_text(text, out);
            }
        }
        out.push(']');
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
        let keys = TurnKeys { assistant: "assistant", list: "content" };
        let write =
            |_: &_, part: &_, out: &mut _, warnings: &mut _| write_part(part, out, warnings);
        write_turns(pieces, keys, write, out, warnings);
    }
}

/// Converts and adds a block. Returns true if only Bedrock, or only the model that produced it, accepts it.
fn read_block(block: &str, parts: &mut NewParts) -> Result<bool, FieldError> {
    let fields = json::Object::of(block);
    if let Some(text) = fields.get_str("text") {
        parts.text(text, "");
        return Ok(false);
    }
    if let Some(call) = fields.get("toolUse") {
        let call = json::Object::of(call);
        let needed = |field: &str| {
            let missing =
                || FieldError::new(format!("toolUse.{field}"), format!("{field} is missing"));
            call.get_str(field).ok_or_else(missing)
        };
        parts.call(needed("toolUseId")?, needed("name")?, call.get("input").unwrap_or("{}"), "");
        return Ok(false);
    }
    if let Some(result) = fields.get("toolResult") {
        return read_result(result, parts);
    }
    let reasoning = fields.get("reasoningContent").and_then(|it| json::get(it, "reasoningText"));
    if let Some(text) = reasoning.and_then(|reasoning| json::get_str(reasoning, "text")) {
        let mut extra = String::new();
        json::push_fields(reasoning.unwrap_or("{}"), &["signature"], &mut extra);
        parts.thinking(text, &extra);
        return Ok(true);
    }
    if read_media(&fields, parts).is_some() {
        return Ok(false);
    }
    match fields.only() {
        Some((key, value)) => {
            let value = format!("{{\"value\":{value}}}");
            parts.typed(&format!("{PREFIX}{}", key.text()), &value);
            Ok(true)
        }
        None => Err(FieldError::new("", "a block must be an object with one field")),
    }
}

fn read_result(result: &str, parts: &mut NewParts) -> Result<bool, FieldError> {
    let fields = json::Object::of(result);
    let id = fields.get_str("toolUseId");
    let missing = || FieldError::new("toolResult.toolUseId", "toolUseId is missing");
    let id = id.ok_or_else(missing)?;
    let mut list = NewParts::default();
    let mut is_specific = false;
    for item in fields.get("content").map(json::items).into_iter().flatten() {
        match json::get(item, "json") {
            // A `json` block becomes a text that contains the JSON, so that other providers accept it.
            Some(value) => {
                let text = json::string(value);
                list.text(Str::of(&text).unwrap_or(Str::plain("")), "");
            }
            None => is_specific |= read_block(item, &mut list)?,
        }
    }
    let is_error = fields.get_str("status").is_some_and(|status| status.is("error"));
    parts.result(id, Some(&list.finish_list()), is_error, "");
    Ok(is_specific)
}

/// Adds an image or document whose bytes are in the block.
fn read_media(fields: &json::Object<'_>, parts: &mut NewParts) -> Option<()> {
    let image = fields.get("image").map(|image| (MediaKind::Image, image));
    let (kind, media) = image.or_else(|| Some((MediaKind::File, fields.get("document")?)))?;
    let form = json::get_str(media, "format")?;
    let data = json::get_str(json::get(media, "source")?, "bytes")?;
    let media_type = match (kind, &*form.text()) {
        (MediaKind::Image, form) => format!("image/{form}"),
        (_, "pdf") => "application/pdf".to_owned(),
        (_, "txt") => "text/plain".to_owned(),
        (_, "md") => "text/markdown".to_owned(),
        (_, form @ ("csv" | "html")) => format!("text/{form}"),
        _ => return None,
    };
    let body = MediaBody::Base64 { media_type: Str::escaped_text(&media_type), data };
    parts.media(kind, body, json::get_str(media, "name"), "");
    Some(())
}

fn write_text(text: Str<'_>, out: &mut String) {
    out.push_str("{\"text\":");
    json::push_str(text, out);
    out.push('}');
}

/// Writes a part as a block. Returns false if the format has no such block.
fn write_part(part: &Part<'_>, out: &mut String, warnings: &mut Vec<String>) -> bool {
    match part {
        Part::Text { text, .. } => write_text(*text, out),
        Part::ToolUse { id, name, input, .. } => {
            out.push_str("{\"toolUse\":{\"toolUseId\":");
            json::push_str(*id, out);
            out.push_str(",\"name\":");
            json::push_str(*name, out);
            out.push_str(&format!(",\"input\":{input}}}}}"));
        }
        Part::ToolResult { id, content, is_error, .. } => {
            out.push_str("{\"toolResult\":{\"toolUseId\":");
            json::push_str(*id, out);
            out.push_str(",\"content\":[");
            write_result(content.unwrap_or("[]"), out, warnings);
            out.push(']');
            if *is_error {
                out.push_str(",\"status\":\"error\"");
            }
            out.push_str("}}");
        }
        Part::Thinking { text, signature, .. } => {
            out.push_str("{\"reasoningContent\":{\"reasoningText\":{\"text\":");
            json::push_str(*text, out);
            if let Some(signature) = signature {
                out.push_str(",\"signature\":");
                json::push_str(*signature, out);
            }
            out.push_str("}}}");
        }
        Part::Media(media) => {
            let MediaBody::Base64 { media_type, data } = media.with_registered_type().body else {
                warnings.push("an image, audio or file without its bytes is not supported".into());
                return false;
            };
            let Some((kind, form)) = block_of(&media_type.text()) else {
                warnings.push(format!("a file of type {} is not supported", media_type.text()));
                return false;
            };
            out.push_str(&format!("{{\"{kind}\":{{\"format\":\"{form}\""));
            if kind == "document" {
                out.push_str(",\"name\":");
                json::push_str(media.name.unwrap_or(Str::plain("document")), out);
            }
            out.push_str(",\"source\":{\"bytes\":");
            json::push_str(data, out);
            out.push_str("}}}");
        }
        Part::Other { kind, json } => {
            let name = kind.text();
            let value = json::get(json, "value");
            let (Some(name), Some(value)) = (name.strip_prefix(PREFIX), value) else {
                warnings.push(unsupported_part(*kind));
                return false;
            };
            out.push('{');
            json::push_string(name, out);
            out.push_str(&format!(":{value}}}"));
        }
    }
    true
}

/// The name of the block for a media type, and the value of the field `format` in the block.
pub(crate) fn block_of(media_type: &str) -> Option<(&'static str, &'static str)> {
    Some(match media_type {
        "application/pdf" => ("document", "pdf"),
        "text/plain" => ("document", "txt"),
        "text/markdown" => ("document", "md"),
        "text/csv" => ("document", "csv"),
        "text/html" => ("document", "html"),
        "image/png" => ("image", "png"),
        "image/jpeg" => ("image", "jpeg"),
        "image/gif" => ("image", "gif"),
        "image/webp" => ("image", "webp"),
        _ => return None,
    })
}

/// Writes the content of a result as blocks.
fn write_result(content: &str, out: &mut String, warnings: &mut Vec<String>) {
    if let Some(text) = Str::of(content) {
        return write_text(text, out);
    }
    let start = out.len();
    for part in Part::list(content) {
        let is_tool = matches!(part, Part::ToolUse { .. } | Part::ToolResult { .. });
        json::push_item(start, out, |out| !is_tool && write_part(&part, out, warnings));
    }
}
