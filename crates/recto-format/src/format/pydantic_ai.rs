//! Codec of the messages of Pydantic AI (`ModelMessagesTypeAdapter`): requests and responses with `parts`.
//!
//! | foreign | conversion |
//! |---|---|
//! | `system-prompt` | a system message |
//! | `instructions` of a request | a system message, if they differ from the last `instructions` |
//! | `user-prompt` | a user message: texts, images, audio and files |
//! | `tool-return`; `retry-prompt` of a tool | `tool_result` in a tool message; an error unless it succeeded |
//! | `retry-prompt` without a tool, `retry-feedback`, `speech` | a user message |
//! | `text`, `thinking`, `file`, `tool-call` | text, thinking, media, `tool_use` in an assistant message |
//! | `speech` of a response | text |
//! | `builtin-tool-call` and every other part of a response | unchanged parts |
//!
//! One request becomes a message for each system prompt, and for each sequence of other parts with the same
//! role. Export joins them again.

use std::borrow::Cow;

use recto_core::Role;

use super::message_list::{
    CallNames, Draft, FieldError, MessageCodec, ReadState, unsupported_part,
};
use super::new_parts::{NewParts, kind_of};
use super::openai_chat::input_of;
use super::{Head, Likelihood};
use crate::Format;
use crate::json::{self, Object, Str};
use crate::media::{Media, MediaBody, MediaKind};
use crate::parts::{MessageParts, Part};

pub(crate) struct PydanticAi;

/// Id of a thinking part whose signature contains Anthropic's redacted thinking.
const REDACTED: &str = "redacted_thinking";

/// True if a value is a request or response of this format.
fn is_message(value: &str) -> bool {
    let fields = Object::of(value);
    let kind = fields.get_str("kind").map(Str::escaped);
    let part = fields.get("parts").and_then(|parts| json::items(parts).next());
    matches!(kind, Some("request" | "response"))
        && fields.get("parts").is_some_and(json::is_list)
        && part.is_none_or(|part| json::get_str(part, "part_kind").is_some())
}

impl MessageCodec for PydanticAi {
    fn recognise(&self, head: &Head) -> Likelihood {
        let is_found = head.objects().into_iter().any(|object| {
            let listed = json::get(object, "messages").map(json::items);
            is_message(object) || listed.into_iter().flatten().any(is_message)
        });
        if is_found { Likelihood::Certain } else { Likelihood::No }
    }

    fn format(&self) -> Format {
        Format::PydanticAi
    }

    fn list_keys(&self) -> &'static [&'static str] {
        &["messages"]
    }

    fn role_field(&self) -> &'static str {
        "kind"
    }

    fn read(&self, foreign: &str, state: &mut ReadState) -> Result<Vec<Draft>, FieldError> {
        let fields = Object::of(foreign);
        let Some(parts) = fields.get("parts").filter(|parts| json::is_list(parts)) else {
            return Err(FieldError::new("parts", "parts is missing; it must be a list"));
        };
        match fields.get_str("kind").map(Str::escaped) {
            Some("request") => Ok(read_request(&fields, parts, state)),
            Some("response") => Ok(vec![read_response(&fields, parts, state)]),
            _ => Err(FieldError::new("kind", "kind must be request or response")),
        }
    }

    /// The messages between two responses are one request.
    fn joins(&self, last: &MessageParts<'_>, next: &MessageParts<'_>) -> bool {
        last.role != Role::Assistant && next.role != Role::Assistant
    }

    fn write(
        &self,
        pieces: &[MessageParts<'_>],
        names: &CallNames<'_>,
        out: &mut String,
        warnings: &mut Vec<String>,
    ) {
        let mut rest = pieces;
        while let [first, ..] = rest {
            let is_response = first.role == Role::Assistant;
            let is_same =
                |piece: &&MessageParts<'_>| (piece.role == Role::Assistant) == is_response;
            let len = rest.iter().take_while(is_same).count();
            if rest.len() < pieces.len() {
                out.push(',');
            }
            out.push_str("{\"parts\":[");
            let start = out.len();
            for piece in &rest[..len] {
                match is_response {
                    true => write_response(piece, start, out, warnings),
                    false => write_request(piece, names, start, out, warnings),
                }
            }
            out.push_str(if is_response {
                "],\"kind\":\"response\"}"
            } else {
                "],\"kind\":\"request\"}"
            });
            rest = &rest[len..];
        }
    }
}

fn read_request(fields: &Object<'_>, parts: &str, state: &mut ReadState) -> Vec<Draft> {
    let mut drafts: Vec<(Role, NewParts)> = Vec::new();
    let instructions = fields.get_str("instructions").filter(|text| !text.is_empty());
    let is_new =
        instructions.is_some_and(|text| state.instructions.as_deref() != Some(text.escaped()));
    if let Some(text) = instructions.filter(|_| is_new) {
        state.instructions = Some(text.escaped().to_owned());
        let mut system = NewParts::default();
        system.text(text, "");
        drafts.push((Role::System, system));
    }
    for (number, (part, fields)) in json::objects(parts).enumerate() {
        let kind = fields.get_str("part_kind").map(Str::text).unwrap_or_default();
        let is_of_tool = fields.get_str("tool_name").is_some();
        let role = match &*kind {
            "system-prompt" => Role::System,
            "tool-return" => Role::Tool,
            "retry-prompt" if is_of_tool => Role::Tool,
            _ => Role::User,
        };
        // System prompts are separate messages, as in the requests that Pydantic AI sends.
        if role == Role::System || drafts.last().is_none_or(|(before, _)| *before != role) {
            drafts.push((role, NewParts::with_capacity(part.len())));
        }
        let Some((_, out)) = drafts.last_mut() else { continue };
        match read_request_part(&kind, role, &fields, out) {
            Some(()) => {}
            // Changes of instructions and tools are not content.
            None if kind.ends_with("-delta") || kind.starts_with("instruction") => {}
            None => {
                let reason = format!("a part of type {kind:?} is preserved, but not a message");
                state.warn(format!("parts[{number}]"), reason);
            }
        }
        if out.is_empty() {
            drafts.pop();
        }
    }
    if drafts.is_empty() {
        drafts.push((Role::User, NewParts::default()));
    }
    drafts.into_iter().map(|(role, parts)| Draft::converted(role, parts.finish())).collect()
}

/// Adds a part of a request; `None` if Recto has no such part.
fn read_request_part(
    kind: &str,
    role: Role,
    fields: &Object<'_>,
    out: &mut NewParts,
) -> Option<()> {
    if role == Role::Tool {
        let is_success = fields.get_str("outcome").is_none_or(|outcome| outcome.is("success"));
        let content = fields.get("content").map(result_content);
        let mut extra = String::from(",\"name\":");
        json::push_str(fields.get_str("tool_name")?, &mut extra);
        let is_error = !is_success || kind == "retry-prompt";
        out.result(fields.get_str("tool_call_id")?, content.as_deref(), is_error, &extra);
        return Some(());
    }
    match kind {
        "system-prompt" => out.text(fields.get_str("content")?, ""),
        "user-prompt" => user_content(fields.get("content")?, out),
        "retry-prompt" | "retry-feedback" => {
            let content = text_of(fields.get("content")?);
            out.text(Str::of(&content)?, "");
        }
        "speech" => out.text(fields.get_str("transcript")?, ""),
        _ => return None,
    }
    Some(())
}

/// Adds the content of a user prompt: a text, or a list of texts and media.
fn user_content(content: &str, out: &mut NewParts) {
    if let Some(text) = Str::of(content) {
        return out.text(text, "");
    }
    for item in json::items(content) {
        if let Some(text) = Str::of(item) {
            out.text(text, "");
        } else if read_media(item, out).is_none() {
            match (json::get_str(item, "kind").map(Str::escaped), json::get_str(item, "content")) {
                (_, Some(text)) => out.text(text, ""),
                (Some("cache-point"), _) => {}
                (Some(kind), _) => out.typed(kind, item),
                (None, _) => out.typed("pydantic-ai", item),
            }
        }
    }
}

/// Adds a file or URL; `None` if the value is neither.
fn read_media(item: &str, out: &mut NewParts) -> Option<()> {
    let fields = Object::of(item);
    let kind = fields.get_str("kind")?;
    let media_type = fields.get_str("media_type");
    let url = |kind: MediaKind, out: &mut NewParts| {
        let mut extra = String::new();
        if media_type.is_some() {
            fields.push_some(&["media_type"], &mut extra);
        }
        fields.get_str("url").map(|url| out.media(kind, MediaBody::Url(url), None, &extra))
    };
    match kind.escaped() {
        "image-url" => url(MediaKind::Image, out),
        "audio-url" => url(MediaKind::Audio, out),
        "document-url" | "video-url" => url(MediaKind::File, out),
        "binary" => {
            let media_type = media_type?;
            let data = fields.get_str("data")?;
            let body = MediaBody::Base64 { media_type, data };
            out.media(kind_of(&media_type.text()), body, None, "");
            Some(())
        }
        "uploaded-file" => {
            let provider = fields.get_str("provider_name").and_then(|it| provider_of(&it.text()));
            let body = MediaBody::FileId {
                id: fields.get_str("file_id")?,
                provider: provider.map(Str::plain),
            };
            let kind = media_type.map_or(MediaKind::File, |it| kind_of(&it.text()));
            out.media(kind, body, None, "");
            Some(())
        }
        _ => None,
    }
}

/// Returns a string unchanged, and any other value as a string that contains its JSON.
fn text_of(value: &str) -> Cow<'_, str> {
    match Str::of(value) {
        Some(_) => Cow::Borrowed(value),
        None => Cow::Owned(json::string(value)),
    }
}

/// The content of a result: a string, or a list of parts if the tool returned files.
fn result_content(value: &str) -> Cow<'_, str> {
    let mut parts = NewParts::default();
    if read_media(value, &mut parts).is_some() {
        return Cow::Owned(parts.finish_list());
    }
    let mut has_media = false;
    for item in json::items(value) {
        match read_media(item, &mut parts) {
            Some(()) => has_media = true,
            None => {
                let text = text_of(item);
                parts.text(Str::of(&text).unwrap_or(Str::plain("")), "");
            }
        }
    }
    if has_media { Cow::Owned(parts.finish_list()) } else { text_of(value) }
}

/// The name of a provider in `metadata.source.provider`.
fn provider_of(name: &str) -> Option<&'static str> {
    match name {
        "anthropic" => Some("anthropic"),
        "openai" | "azure" => Some("openai"),
        "google" | "google-gla" | "google-vertex" | "google-cloud" => Some("google"),
        "bedrock" => Some("bedrock"),
        _ => None,
    }
}

fn read_response(fields: &Object<'_>, parts: &str, state: &mut ReadState) -> Draft {
    let mut out = NewParts::with_capacity(parts.len());
    let mut provider = fields.get_str("provider_name").and_then(|name| provider_of(&name.text()));
    for (number, (part, fields)) in json::objects(parts).enumerate() {
        let kind = fields.get_str("part_kind").map(Str::text).unwrap_or_default();
        let made_by = fields.get_str("provider_name").and_then(|name| provider_of(&name.text()));
        provider = provider.or(made_by);
        if read_response_part(&kind, &fields, &mut out).is_some() {
            continue;
        }
        match kind.is_empty() {
            true => state.warn(format!("parts[{number}].part_kind"), "part_kind is missing"),
            false => out.typed(&kind, part),
        }
    }
    let model = fields.get_str("model_name").map(|model| model.escaped().to_owned());
    Draft::Converted {
        role: Role::Assistant,
        content: out.finish(),
        fields: String::new(),
        provider: provider.map(str::to_owned),
        model,
    }
}

/// Adds a part of a response; `None` if Recto has no such part.
fn read_response_part(kind: &str, fields: &Object<'_>, out: &mut NewParts) -> Option<()> {
    match kind {
        "text" => out.text(fields.get_str("content")?, ""),
        "thinking" => {
            let signature = fields.get_str("signature");
            if let (Some(data), Some(REDACTED)) =
                (signature, fields.get_str("id").map(Str::escaped))
            {
                out.raw(&format!(r#"{{"type":"{REDACTED}","data":"{}"}}"#, data.escaped()));
                return Some(());
            }
            let extra = signature.map(|it| format!(r#","signature":"{}""#, it.escaped()));
            out.thinking(fields.get_str("content")?, &extra.unwrap_or_default());
        }
        "tool-call" => {
            let input = match fields.get("args") {
                Some(args) => Str::of(args).map_or_else(|| args.to_owned(), input_of),
                None => "{}".to_owned(),
            };
            let input = if input == "\"\"" { "{}".to_owned() } else { input };
            out.call(fields.get_str("tool_call_id")?, fields.get_str("tool_name")?, &input, "");
        }
        "file" => return read_media(fields.get("content")?, out),
        "speech" => out.text(fields.get_str("transcript")?, ""),
        _ => return None,
    }
    Some(())
}

/// Starts a part: writes a comma, except before the first part.
fn next_part(start: usize, out: &mut String) {
    if out.len() > start {
        out.push(',');
    }
}

fn write_request(
    piece: &MessageParts<'_>,
    names: &CallNames<'_>,
    start: usize,
    out: &mut String,
    warnings: &mut Vec<String>,
) {
    let (results, others): (Vec<&Part<'_>>, Vec<&Part<'_>>) =
        piece.parts.iter().partition(|part| matches!(part, Part::ToolResult { .. }));
    for result in results {
        let Part::ToolResult { id, content, is_error, json, .. } = *result else { continue };
        next_part(start, out);
        let name = json::get_str(json, "name").or_else(|| names.of(id));
        out.push_str(r#"{"tool_name":"#);
        json::push_str(name.unwrap_or(Str::plain("unknown")), out);
        out.push_str(r#","content":"#);
        let parts = Part::of_result(content);
        write_content(&parts.iter().collect::<Vec<_>>(), out, warnings);
        out.push_str(r#","tool_call_id":"#);
        json::push_str(id, out);
        out.push_str(if is_error { r#","outcome":"failed""# } else { "" });
        out.push_str(r#","part_kind":"tool-return"}"#);
    }
    if others.is_empty() {
        return;
    }
    next_part(start, out);
    out.push_str(r#"{"content":"#);
    let kind = match piece.role {
        Role::System => {
            let texts: Vec<&str> = others.iter().filter_map(|part| text(part)).collect();
            out.push_str(&format!("\"{}\"", texts.join("\\n\\n")));
            "system-prompt"
        }
        _ => {
            write_content(&others, out, warnings);
            "user-prompt"
        }
    };
    out.push_str(&format!(r#","part_kind":"{kind}"}}"#));
}

fn text<'a>(part: &Part<'a>) -> Option<&'a str> {
    match part {
        Part::Text { text, .. } => Some(text.escaped()),
        _ => None,
    }
}

/// Writes texts and media: a string, or a list of strings and files.
fn write_content(parts: &[&Part<'_>], out: &mut String, warnings: &mut Vec<String>) {
    if let [only] = parts
        && let Some(text) = text(only)
    {
        out.push_str(&format!("\"{text}\""));
        return;
    }
    if parts.is_empty() {
        return out.push_str("\"\"");
    }
    out.push('[');
    let start = out.len();
    for part in parts {
        let before = out.len();
        next_part(start, out);
        let is_written = match part {
            Part::Text { text, .. } => {
                json::push_str(*text, out);
                true
            }
            Part::Media(media) => write_media(*media, out, warnings),
            Part::Other { kind, .. } => {
                warnings.push(unsupported_part(*kind));
                false
            }
            _ => {
                warnings.push("a user message has only texts and files".into());
                false
            }
        };
        if !is_written {
            out.truncate(before);
        }
    }
    out.push(']');
}

fn write_response(
    piece: &MessageParts<'_>,
    start: usize,
    out: &mut String,
    warnings: &mut Vec<String>,
) {
    for part in &piece.parts {
        let before = out.len();
        next_part(start, out);
        match *part {
            Part::Text { text, .. } => {
                out.push_str(r#"{"content":"#);
                json::push_str(text, out);
                out.push_str(r#","part_kind":"text"}"#);
            }
            Part::Thinking { text, signature, .. } => {
                out.push_str(r#"{"content":"#);
                json::push_str(text, out);
                let provider = piece.source.and_then(|source| source.provider);
                if let (Some(signature), Some(provider)) = (signature, provider) {
                    out.push_str(r#","signature":"#);
                    json::push_str(signature, out);
                    out.push_str(r#","provider_name":"#);
                    json::push_str(provider, out);
                }
                out.push_str(r#","part_kind":"thinking"}"#);
            }
            Part::ToolUse { id, name, input, .. } => {
                out.push_str(r#"{"tool_name":"#);
                json::push_str(name, out);
                out.push_str(&format!(r#","args":{input},"tool_call_id":"#));
                json::push_str(id, out);
                out.push_str(r#","part_kind":"tool-call"}"#);
            }
            Part::Media(media) => {
                out.push_str(r#"{"content":"#);
                let is_inline = matches!(media.body, MediaBody::Base64 { .. });
                if is_inline && write_media(media, out, warnings) {
                    out.push_str(r#","part_kind":"file"}"#);
                } else {
                    warnings.push("a file of the model must have its bytes".into());
                    out.truncate(before);
                }
            }
            Part::Other { json, .. } if piece.is_of(Format::PydanticAi) => {
                let mut part = String::from("{");
                json::push_other_fields(json, &["type"], &mut part);
                out.push_str(&part.replacen("{,", "{", 1));
                out.push('}');
            }
            Part::Other { kind, .. } => {
                warnings.push(unsupported_part(kind));
                out.truncate(before);
            }
            Part::ToolResult { .. } => {
                warnings.push("a result in a message of the model is not supported".into());
                out.truncate(before);
            }
        }
    }
}

/// Writes a file. Returns false if the format has no such file.
fn write_media(media: Media<'_>, out: &mut String, warnings: &mut Vec<String>) -> bool {
    match media.with_registered_type().body {
        MediaBody::Base64 { media_type, data } => {
            out.push_str(r#"{"data":"#);
            json::push_str(data, out);
            out.push_str(r#","media_type":"#);
            json::push_str(media_type, out);
            out.push_str(r#","kind":"binary"}"#);
        }
        MediaBody::Url(url) => {
            let kind = match media.kind {
                MediaKind::Image => "image-url",
                MediaKind::Audio => "audio-url",
                _ => "document-url",
            };
            out.push_str(r#"{"url":"#);
            json::push_str(url, out);
            json::push_fields(media.json, &["media_type"], out);
            out.push_str(&format!(r#","kind":"{kind}"}}"#));
        }
        MediaBody::FileId { id, provider: Some(provider) } => {
            out.push_str(r#"{"file_id":"#);
            json::push_str(id, out);
            out.push_str(r#","provider_name":"#);
            json::push_str(provider, out);
            out.push_str(r#","kind":"uploaded-file"}"#);
        }
        MediaBody::Text(text) => json::push_str(text, out),
        _ => {
            warnings.push("a file without content or URL is not supported".into());
            return false;
        }
    }
    true
}
