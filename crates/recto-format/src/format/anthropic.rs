//! Anthropic's Messages: a list, a request with `messages`, answers with `content`, or JSON lines of
//! either.
//!
//! Results of tools stand in messages from the user; here they are messages from the tool, so a
//! message with results and a text is two. Blocks that only this provider understands (searches on
//! its servers, redacted thoughts) are kept verbatim, with the provider's name beside them.

use std::borrow::Cow;

use recto_core::Role;

use super::message_list::{CallNames, Draft, Memory, MessageForm, Misfit};
use super::recto::is_nested;
use super::{Head, Likelihood};
use crate::json::{self, Str};
use crate::media::{self, MediaBody, MediaKind};
use crate::parts::{MessageParts, Part};
use crate::{Format, Media};

pub(crate) struct Anthropic;

/// How much a message looks like one of this provider's.
fn likelihood(message: &str) -> Likelihood {
    let role = json::get_str(message, "role").map(Str::escaped);
    if !matches!(role, Some("user" | "assistant")) {
        return Likelihood::No;
    }
    let blocks = json::get(message, "content").map(json::items).into_iter().flatten();
    let mut most = Likelihood::No;
    for block in blocks {
        let kind = json::get_str(block, "type").map(Str::escaped).unwrap_or_default();
        let found = match kind {
            "tool_use" | "tool_result" if is_nested(block) => Likelihood::No,
            // Recto's own results stand in messages from the tool.
            "tool_result" if role == Some("user") => Likelihood::Surely,
            "thinking" if json::get(block, "thinking").is_some() => Likelihood::Surely,
            "redacted_thinking" | "server_tool_use" => Likelihood::Surely,
            "tool_use" => Likelihood::Likely,
            "image" if json::get(block, "source").is_some() => Likelihood::Likely,
            "document" => Likelihood::Likely,
            _ => Likelihood::No,
        };
        most = most.max(found);
    }
    most
}

impl MessageForm for Anthropic {
    fn recognise(&self, head: &Head) -> Likelihood {
        let mut most = Likelihood::No;
        // Here a tool speaks in messages from the user.
        let is_tools =
            |message: &str| json::get_str(message, "role").is_some_and(|role| role.is("tool"));
        for object in head.objects() {
            if json::get(object, "system").is_some() && json::get(object, "messages").is_some() {
                most = most.max(Likelihood::Likely);
            }
            let listed = json::get(object, "messages").map(json::items).into_iter().flatten();
            for message in std::iter::once(object).chain(listed) {
                if is_tools(message) {
                    return Likelihood::No;
                }
                most = most.max(likelihood(message));
            }
        }
        most
    }

    fn format(&self) -> Format {
        Format::Anthropic
    }

    fn list_keys(&self) -> &'static [&'static str] {
        &["messages"]
    }

    fn read(&self, foreign: &str, _memory: &mut Memory) -> Result<Vec<Draft>, Misfit> {
        read(foreign).map(|message| message.drafts)
    }

    fn read_envelope(&self, key: &str, value: &str) -> Option<Result<Vec<Draft>, Misfit>> {
        (key == "system").then(|| match json::is_list(value) || Str::of(value).is_some() {
            true => Ok(vec![Draft::made(Role::System, value.to_owned())]),
            false => Err(Misfit::new("system", "system is a string or a list of texts")),
        })
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

    /// All results of one turn stand in one message.
    fn joins(&self, last: &MessageParts<'_>, next: &MessageParts<'_>) -> bool {
        last.role == Role::Tool && next.role == Role::Tool
    }

    fn write(
        &self,
        pieces: &[MessageParts<'_>],
        _names: &CallNames<'_>,
        out: &mut String,
        remarks: &mut Vec<String>,
    ) {
        if let [only] = pieces
            && matches!(only.role, Role::User | Role::Assistant)
            && only.source.is_none()
            && read(only.json).is_ok_and(|message| matches!(message.drafts[..], [Draft::AsItIs]))
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
            write_message(role, &rest[..len], out, remarks);
            rest = &rest[len..];
        }
    }
}

/// A message that was read.
pub(crate) struct ReadMessage<'a> {
    pub(crate) drafts: Vec<Draft>,
    pub(crate) role: Role,
    pub(crate) content: &'a str,
    pub(crate) id: Option<Str<'a>>,
}

/// Reads one message.
pub(crate) fn read(foreign: &str) -> Result<ReadMessage<'_>, Misfit> {
    let fields = json::Object::of(foreign);
    let role = match fields.get_str("role").map(Str::escaped) {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        _ => return Err(Misfit::new("role", "role is user or assistant")),
    };
    let Some(content) = fields.get("content") else {
        return Err(Misfit::new(
            "content",
            "content is missing; it is a string or a list of blocks",
        ));
    };
    let is_bare = fields.has_only(&["role", "content"]);
    let model = fields.get_str("model").map(|model| model.escaped().to_owned());
    let id = fields.get_str("id");
    let message = |drafts: Vec<Draft>| ReadMessage { drafts, role, content, id };
    if Str::of(content).is_some() {
        if is_bare {
            return Ok(message(vec![Draft::AsItIs]));
        }
        return Ok(message(vec![draft(role, content.to_owned(), false, model)]));
    }
    if !json::is_list(content) {
        return Err(Misfit::new("content", "content is a string or a list of blocks"));
    }
    let blocks: Vec<Block<'_>> =
        json::objects(content).map(|(block, fields)| Block::read(block, &fields)).collect();
    if blocks.is_empty() {
        return Err(Misfit::new("content", "the list of blocks is empty"));
    }
    let is_own = blocks.iter().any(|block| block.is_own);
    let is_same = blocks.iter().all(|block| matches!(block.json, Cow::Borrowed(_)));
    let has_results = blocks.iter().any(|block| block.is_result);
    if is_bare && is_same && !is_own && !has_results {
        return Ok(message(vec![Draft::AsItIs]));
    }
    let mut drafts = Vec::new();
    let mut rest = &blocks[..];
    while let [first, ..] = rest {
        let len = rest.iter().take_while(|block| block.is_result == first.is_result).count();
        let list: Vec<&str> = rest[..len].iter().map(|block| &*block.json).collect();
        let role = if first.is_result { Role::Tool } else { role };
        drafts.push(draft(role, format!("[{}]", list.join(",")), is_own, model.clone()));
        rest = &rest[len..];
    }
    Ok(message(drafts))
}

fn draft(role: Role, content: String, is_own: bool, model: Option<String>) -> Draft {
    let provider = (is_own || model.is_some()).then(|| "anthropic".to_owned());
    Draft::Made { role, content, fields: String::new(), provider, model }
}

/// A block as a part.
struct Block<'a> {
    json: Cow<'a, str>,
    is_result: bool,
    /// Whether only this provider, or only the model that wrote it, can read it.
    is_own: bool,
}

impl<'a> Block<'a> {
    fn read(block: &'a str, fields: &json::Object<'a>) -> Block<'a> {
        let as_it_is = Block { json: Cow::Borrowed(block), is_result: false, is_own: false };
        let kind = fields.get_str("type").map(Str::text).unwrap_or_default();
        match &*kind {
            "text" | "tool_use" => as_it_is,
            "tool_result" => Block::of_result(block, fields),
            "image" | "document" => match media_of(block) {
                Some(part) => Block { json: part, ..as_it_is },
                None => Block { is_own: true, ..as_it_is },
            },
            "thinking" => {
                let Some(text) = fields.get("thinking") else { return as_it_is };
                let mut part = format!(r#"{{"type":"thinking","text":{text}"#);
                fields.push_others(&["type", "thinking"], &mut part);
                part.push('}');
                Block { json: Cow::Owned(part), is_own: true, ..as_it_is }
            }
            _ => Block { is_own: true, ..as_it_is },
        }
    }
}

impl<'a> Block<'a> {
    /// A result, with the images and documents in it in Recto's form.
    fn of_result(block: &'a str, fields: &json::Object<'a>) -> Block<'a> {
        let mut result = Block { json: Cow::Borrowed(block), is_result: true, is_own: false };
        let content = fields.get("content").filter(|content| json::is_list(content));
        let mut list = Vec::new();
        for item in content.map(json::items).into_iter().flatten() {
            let kind = json::get_str(item, "type").map(Str::text).unwrap_or_default();
            let media = matches!(&*kind, "image" | "document").then(|| media_of(item)).flatten();
            result.is_own |= media.is_none() && !matches!(&*kind, "text" | "image" | "");
            list.push(media.unwrap_or(Cow::Borrowed(item)));
        }
        if list.iter().any(|item| matches!(item, Cow::Owned(_))) {
            result.json = Cow::Owned(with_content(block, &format!("[{}]", list.join(","))));
        }
        result
    }
}

/// A result with another content.
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

/// An image or document in Recto's form; `None` if that has no words for it.
fn media_of(block: &str) -> Option<Cow<'_, str>> {
    let is_image = json::get_str(block, "type")?.escaped() == "image";
    let source = json::get(block, "source")?;
    let kind = json::get_str(source, "type")?.text();
    if is_image && matches!(&*kind, "base64" | "url") {
        return Some(Cow::Borrowed(block)); // it is the same in both
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
    remarks: &mut Vec<String>,
) {
    out.push_str("{\"role\":\"");
    out.push_str(role);
    out.push_str("\",\"content\":");
    if pieces.iter().any(|piece| piece.role == Role::System) {
        remarks.push("a system message became one from the user".into());
    }
    match pieces {
        [only] if only.is_string => {
            if only.role == Role::Tool {
                remarks.push("a tool's message without a call became one from the user".into());
            }
            out.push_str(only.parts.first().map_or("\"\"", |part| part.json()));
        }
        _ => {
            out.push('[');
            let start = out.len();
            for piece in pieces {
                let is_from_here = piece.source.is_none_or(|source| {
                    source.is_from(Format::Anthropic.name())
                        || source.is_from(Format::ClaudeCode.name())
                });
                for part in &piece.parts {
                    let before = out.len();
                    if before > start {
                        out.push(',');
                    }
                    let len = out.len();
                    write_block(part, is_from_here, out, remarks);
                    if out.len() == len {
                        out.truncate(before); // it has no place here
                    }
                }
            }
            out.push(']');
        }
    }
    out.push('}');
}

/// Writes a part as a block; nothing if this provider has no such block.
pub(crate) fn write_block(
    part: &Part<'_>,
    is_from_here: bool,
    out: &mut String,
    remarks: &mut Vec<String>,
) {
    match *part {
        Part::Text { json, .. } if Str::of(json).is_some() => {
            out.push_str(r#"{"type":"text","text":"#);
            out.push_str(json);
            out.push('}');
        }
        Part::Text { text, json, .. } => match is_from_here {
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
            match is_from_here {
                true => json::push_other_fields(json, &["type", "text"], out),
                false => json::push_fields(json, &["signature"], out),
            }
            out.push('}');
        }
        Part::Media(media) => write_media(media, out, remarks),
        Part::ToolUse { id, name, input, json, .. } => {
            if is_from_here {
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
                remarks.push(format!("the input of {} is no object", name.text()));
            }
        }
        Part::ToolResult { id, content, is_error, json, .. } => {
            if is_from_here {
                match content.filter(|content| has_documents(content)) {
                    None => out.push_str(json),
                    Some(content) => {
                        let mut written = String::new();
                        write_result(content, true, &mut written, remarks);
                        out.push_str(&with_content(json, &written));
                    }
                }
                return;
            }
            out.push_str(r#"{"type":"tool_result","tool_use_id":"#);
            json::push_str(id, out);
            if let Some(content) = content {
                out.push_str(",\"content\":");
                write_result(content, false, out, remarks);
            }
            if is_error {
                out.push_str(",\"is_error\":true");
            }
            json::push_fields(json, &["cache_control"], out);
            out.push('}');
        }
        Part::Other { kind, json } => match is_from_here {
            true => out.push_str(json),
            false => remarks.push(format!("a part of type {} has no place", kind.text())),
        },
    }
}

/// Whether a result holds what is said otherwise here.
fn has_documents(content: &str) -> bool {
    let is_other = |part: &Part<'_>| match part {
        Part::Media(media) => {
            media.kind != MediaKind::Image || matches!(media.body, MediaBody::FileId { .. })
        }
        _ => false,
    };
    json::is_list(content) && Part::list(content).iter().any(is_other)
}

fn write_result(content: &str, is_from_here: bool, out: &mut String, remarks: &mut Vec<String>) {
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
        write_block(&part, is_from_here, out, remarks);
        if out.len() == len {
            out.truncate(before);
        }
    }
    out.push(']');
}

fn write_media(media: Media<'_>, out: &mut String, remarks: &mut Vec<String>) {
    let kind = match media.kind {
        MediaKind::Image => "image",
        MediaKind::File => "document",
        MediaKind::Audio => {
            remarks.push("audio has no place".into());
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
            remarks.push(format!("the source of an {kind} is not known"));
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
