//! Codec of Anthropic's Messages: a list, a request with `messages`, responses with `content`, or JSON
//! lines of either.
//!
//! Anthropic puts tool results into messages of the user. They become messages of role `tool`, so a
//! message with results and a text becomes two. Blocks that only this provider supports (searches on
//! its servers, redacted thinking) stay unchanged, and the message records the provider.

use std::borrow::Cow;

use recto_core::Role;

use super::message_list::{
    CallNames, Draft, FieldError, MessageCodec, ReadState, unsupported_part,
};
use super::new_parts;
use super::recto::is_nested;
use super::{Head, Likelihood};
use crate::json::{self, Str};
use crate::media::{self, MediaBody, MediaKind};
use crate::parts::{MessageParts, Part};
use crate::render::rejects_listed_system;
use crate::{Format, Media};

pub(crate) struct Anthropic;

/// The likelihood that a message has this format.
fn likelihood(message: &str) -> Likelihood {
    let role = json::get_str(message, "role").map(Str::escaped);
    if !matches!(role, Some("user" | "assistant")) {
        return Likelihood::No;
    }
    let blocks = json::get(message, "content").map(json::items).into_iter().flatten();
    let mut best = if is_response(message) { Likelihood::Certain } else { Likelihood::No };
    for block in blocks {
        let kind = json::get_str(block, "type").map(Str::escaped).unwrap_or_default();
        let found = match kind {
            "tool_use" | "tool_result" if is_nested(block) => Likelihood::No,
            // Recto's results are in messages of role `tool`.
            "tool_result" if role == Some("user") => Likelihood::Certain,
            // Thinking in chat completions of Cohere and Mistral has no signature.
            "thinking" if json::get_str(block, "thinking").is_some() => {
                match json::get_str(block, "signature").is_some() {
                    true => Likelihood::Certain,
                    false => Likelihood::Maybe,
                }
            }
            "redacted_thinking" | "server_tool_use" => Likelihood::Certain,
            "tool_use" => Likelihood::Likely,
            "image" if json::get(block, "source").is_some() => Likelihood::Likely,
            "document" => Likelihood::Likely,
            _ => Likelihood::No,
        };
        best = best.max(found);
    }
    best
}

/// True if an object is a response of the API.
fn is_response(object: &str) -> bool {
    let fields = json::Object::of(object);
    fields.get_str("type").is_some_and(|kind| kind.is("message"))
        && (fields.get_str("id").is_some_and(|id| id.escaped().starts_with("msg_"))
            || fields.get("usage").is_some_and(|usage| json::get(usage, "input_tokens").is_some()))
        && fields.get("stop_reason").is_some()
}

/// Fields of chat completion requests, to OpenAI or compatible servers (Ollama, Cohere), that Anthropic
/// rejects as unknown.
const CHAT_FIELDS: &[&str] = &[
    "documents",
    "frequency_penalty",
    "keep_alive",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "modalities",
    "n",
    "options",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "random_seed",
    "reasoning",
    "reasoning_effort",
    "response_format",
    "safety_mode",
    "seed",
    "stop",
    "store",
    "stream_options",
    "think",
    "top_logprobs",
    "verbosity",
    "web_search_options",
];

/// Fields of a request that counts tokens, which has no `max_tokens`.
const COUNTING_FIELDS: &[&str] =
    &["model", "messages", "system", "tools", "tool_choice", "thinking", "output_config"];

/// Types of content parts that only chat completions have.
const CHAT_PARTS: &[&str] = &["image_url", "input_audio", "file", "video_url", "refusal"];

/// True if the fields, tools or messages of a request show that it is a chat completion request.
fn is_chat(fields: &json::Object<'_>, messages: &str) -> bool {
    let tool = fields.get("tools").and_then(|tools| json::items(tools).next());
    let is_chat_part = |part: &str| {
        json::get_str(part, "type").is_some_and(|it| CHAT_PARTS.iter().any(|known| it.is(known)))
    };
    CHAT_FIELDS.iter().any(|field| fields.get(field).is_some())
        || tool.is_some_and(|tool| json::get(tool, "function").is_some())
        || fields.get("tool_choice").is_some_and(|choice| Str::of(choice).is_some())
        || json::items(messages).any(|message| {
            let content = json::get(message, "content").unwrap_or_default();
            json::get(message, "tool_calls").is_some() || json::items(content).any(is_chat_part)
        })
}

/// The likelihood that an object is a request of this format, judged by its fields beside the messages.
/// `None` if it is a request of another format.
fn request_likelihood(object: &str) -> Option<Likelihood> {
    let fields = json::Object::of(object);
    let Some(messages) = fields.get("messages").filter(|list| json::is_list(list)) else {
        return Some(Likelihood::No);
    };
    if fields.get("anthropic_version").is_some() {
        return Some(Likelihood::Certain);
    }
    if is_chat(&fields, messages) {
        return None;
    }
    let model = fields.get_str("model").map(Str::text);
    let is_claude = model
        .as_deref()
        .is_some_and(|model| model.starts_with("claude") || model.contains("anthropic.claude"));
    // Chat completions have the system text in the first message. Anthropic accepts that only for some
    // models.
    let role = json::items(messages).next().and_then(|first| json::get_str(first, "role"));
    let is_first = match role.map(Str::escaped) {
        Some("user" | "assistant") => true,
        // The system text alone is a request too, before its first message.
        None => json::items(messages).next().is_none(),
        Some("system") => {
            is_claude && model.as_deref().is_some_and(|model| !rejects_listed_system(model))
        }
        _ => false,
    };
    if !is_first {
        return Some(Likelihood::No);
    }
    let tool = fields.get("tools").and_then(|tools| json::items(tools).next());
    let has_max_tokens = fields.get("max_tokens").is_some();
    if tool.is_some_and(|tool| json::get(tool, "input_schema").is_some())
        || is_claude && has_max_tokens
        || fields.get("thinking").is_some_and(|it| json::get(it, "budget_tokens").is_some())
    {
        return Some(Likelihood::Certain);
    }
    let is_typical = fields.get("system").is_some()
        || fields.get("stop_sequences").is_some() && has_max_tokens
        // Without blocks, a request that counts tokens looks like a chat completion request.
        || is_claude && fields.has_only(COUNTING_FIELDS) && has_lists(messages);
    Some(if is_typical { Likelihood::Likely } else { Likelihood::No })
}

/// True if the value of the field `thread` of a request continues messages that the provider stores.
pub(crate) fn continues_thread(value: &str) -> bool {
    json::get_str(value, "type").is_some_and(|kind| kind.is("continue"))
}

/// True if the content of at least one message is a list.
fn has_lists(messages: &str) -> bool {
    json::items(messages).any(|it| json::get(it, "content").is_some_and(json::is_list))
}

impl MessageCodec for Anthropic {
    fn recognise(&self, head: &Head) -> Likelihood {
        let mut best = Likelihood::No;
        // This format has no messages of role `tool`.
        let is_from_tool =
            |message: &str| json::get_str(message, "role").is_some_and(|role| role.is("tool"));
        for object in head.objects() {
            match request_likelihood(object) {
                Some(likelihood) => best = best.max(likelihood),
                None => return Likelihood::No,
            }
            let listed = json::get(object, "messages").map(json::items).into_iter().flatten();
            for message in std::iter::once(object).chain(listed) {
                if is_from_tool(message) {
                    return Likelihood::No;
                }
                best = best.max(likelihood(message));
            }
        }
        best
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
                if out.len() > start {
                    out.push(',');
                }
                write_block(part, false, out, &mut Vec::new());
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
                    let before = out.len();
                    if before > start {
                        out.push(',');
                    }
                    let len = out.len();
                    write_block(part, is_imported, out, warnings);
                    if out.len() == len {
                        out.truncate(before); // the part is not supported
                    }
                }
            }
            out.push(']');
        }
    }
    out.push('}');
}

/// Writes a part as a block. Writes nothing if the format has no such block. `is_imported` is true for
/// messages that were not imported from another format.
pub(crate) fn write_block(
    part: &Part<'_>,
    is_imported: bool,
    out: &mut String,
    warnings: &mut Vec<String>,
) {
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
        Part::Media(media) => write_media(media, out, warnings),
        Part::ToolUse { id, name, input, json, .. } => {
            if is_imported {
                out.push_str(json);
                return;
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
                return;
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
        Part::Other { kind, json } => match is_imported {
            true => out.push_str(json),
            false => warnings.push(unsupported_part(kind)),
        },
    }
}

/// True if a result contains media that has another form in this format.
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
        let before = out.len();
        if before > start {
            out.push(',');
        }
        let len = out.len();
        write_block(&part, is_imported, out, warnings);
        if out.len() == len {
            out.truncate(before);
        }
    }
    out.push(']');
}

fn write_media(media: Media<'_>, out: &mut String, warnings: &mut Vec<String>) {
    let kind = match media.kind {
        MediaKind::Image => "image",
        MediaKind::File => "document",
        MediaKind::Audio => {
            warnings.push("audio is not supported".into());
            return;
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
            return;
        }
    }
    out.push('}');
    if let Some(name) = media.name {
        out.push_str(",\"title\":");
        json::push_str(name, out);
    }
    json::push_fields(media.json, &["cache_control", "citations", "context"], out);
    out.push('}');
}
