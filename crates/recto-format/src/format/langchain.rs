//! Codec of LangChain's messages, from `messages_to_dict` (`{"type": "human", "data": {…}}`), `dumps`
//! (`{"lc": 1, "type": "constructor", "id": […, "HumanMessage"], "kwargs": {…}}`) or `model_dump`
//! (`{"type": "human", "content": …}`), which LangGraph's states contain too.
//!
//! The content consists of the provider's blocks (version 0) or of LangChain's blocks (version 1). A call
//! that is both in the content and in `tool_calls` is one call. Calls whose arguments are not JSON are in
//! `invalid_tool_calls`; their input becomes a string.

use recto_core::Role;

use super::message_list::{
    CallNames, Draft, FieldError, MessageCodec, ReadState, unsupported_part,
};
use super::new_parts::{NewParts, kind_of};
use super::{Head, Likelihood};
use crate::Format;
use crate::json::{self, Str};
use crate::media::{MediaBody, MediaKind};
use crate::parts::{MessageParts, Part};

pub(crate) struct LangChain;

/// Role of messages of this type.
fn role_of(kind: &str) -> Option<Role> {
    let kind = kind.strip_suffix("Chunk").unwrap_or(kind);
    Some(match kind {
        "system" | "SystemMessage" => Role::System,
        "human" | "HumanMessage" => Role::User,
        "ai" | "AIMessage" => Role::Assistant,
        "tool" | "ToolMessage" | "function" | "FunctionMessage" => Role::Tool,
        "chat" | "ChatMessage" => Role::User,
        _ => return None,
    })
}

/// The type of a message and the object with its fields, in any kind of dump.
fn open(foreign: &str) -> Result<(Str<'_>, &str), FieldError> {
    if json::get(foreign, "lc").is_some() {
        let ids = json::get(foreign, "id").map(json::items).into_iter().flatten();
        let kind = ids.last().and_then(Str::of);
        return match (kind, json::get(foreign, "kwargs")) {
            (Some(kind), Some(fields)) => Ok((kind, fields)),
            _ => Err(FieldError::new(
                "kwargs",
                "kwargs is missing; the dump has only the name of the class",
            )),
        };
    }
    match (json::get_str(foreign, "type"), json::get(foreign, "data")) {
        (Some(kind), Some(fields)) => Ok((kind, fields)),
        (None, _) => Err(FieldError::new("type", "type is missing")),
        (Some(kind), None) if has_fields_of_a_model(foreign) => Ok((kind, foreign)),
        (_, None) => Err(FieldError::new("data", "data is missing; it must contain the message")),
    }
}

/// True for a message of `model_dump`, whose type is beside its fields.
fn is_model(message: &str) -> bool {
    let kind = json::get_str(message, "type").map(Str::text).unwrap_or_default();
    role_of(&kind).is_some() && has_fields_of_a_model(message)
}

/// True for an object with the fields of `model_dump`. In other formats, an object with a type and content
/// also has a role or, if it is a session line, a `uuid`.
fn has_fields_of_a_model(message: &str) -> bool {
    let has = |key: &str| json::get(message, key).is_some();
    has("content") && !has("role") && !has("uuid")
}

impl MessageCodec for LangChain {
    fn recognise(&self, head: &Head) -> Likelihood {
        let mut best = Likelihood::No;
        for object in head.objects() {
            let listed = json::get(object, "messages").map(json::items).into_iter().flatten();
            for message in std::iter::once(object).chain(listed) {
                let is_dump = json::get(message, "lc").is_some();
                let kind = json::get_str(message, "type").map(Str::text).unwrap_or_default();
                let is_dict = json::get(message, "data").is_some_and(json::is_object)
                    && role_of(&kind).is_some();
                let is_known = matches!(&*kind, "human" | "ai")
                    || json::get(message, "additional_kwargs").is_some();
                if is_dump || is_dict || (is_known && is_model(message)) {
                    best = Likelihood::Certain;
                }
            }
        }
        best
    }

    fn format(&self) -> Format {
        Format::LangChain
    }

    fn list_keys(&self) -> &'static [&'static str] {
        &["messages"]
    }

    fn role_field(&self) -> &'static str {
        "type"
    }

    fn read(&self, foreign: &str, state: &mut ReadState) -> Result<Vec<Draft>, FieldError> {
        let (kind, data) = open(foreign)?;
        let kind = kind.text();
        let Some(role) = role_of(&kind) else {
            return Err(match &*kind {
                // An unknown type is an error of import, because the text would be lost. This message has
                // no text, so the error names no field and the message is kept as unreadable.
                "remove" | "RemoveMessage" => {
                    FieldError::new("", "an instruction to remove a message, not a message")
                }
                _ => FieldError::new("type", format!("{kind:?} is not a known type of message")),
            });
        };
        let mut parts = NewParts::default();
        let mut fields = String::new();
        if role == Role::Tool {
            read_result(data, state, &mut parts);
        } else {
            let calls = read_content(data, &mut parts)?;
            read_calls(data, &calls, &mut parts);
            let name = json::get_str(data, "name").or_else(|| json::get_str(data, "role"));
            if let Some(name) = name.filter(|name| !name.is_empty()) {
                fields.push_str(",\"name\":");
                json::push_str(name, &mut fields);
            }
        }
        let response = json::get(data, "response_metadata").unwrap_or("{}");
        let model = json::get_str(response, "model_name").or(json::get_str(response, "model"));
        let provider = json::get_str(response, "model_provider");
        Ok(vec![Draft::Converted {
            role,
            content: parts.finish(),
            fields,
            provider: provider.map(|provider| provider.escaped().to_owned()),
            model: model.map(|model| model.escaped().to_owned()),
        }])
    }

    fn write(
        &self,
        pieces: &[MessageParts<'_>],
        _names: &CallNames<'_>,
        out: &mut String,
        warnings: &mut Vec<String>,
    ) {
        let mut is_first = true;
        for message in pieces {
            for part in &message.parts {
                if let Part::ToolResult { .. } = part {
                    comma(&mut is_first, out);
                    write_result(message, part, out, warnings);
                }
            }
            let is_result = |part: &Part<'_>| matches!(part, Part::ToolResult { .. });
            if message.parts.iter().all(is_result) && !message.parts.is_empty() {
                continue;
            }
            comma(&mut is_first, out);
            write_message(message, out, warnings);
        }
    }
}

fn comma(is_first: &mut bool, out: &mut String) {
    if !std::mem::replace(is_first, false) {
        out.push(',');
    }
}

fn read_result(data: &str, state: &mut ReadState, parts: &mut NewParts) {
    let generated = format!("function_{}", state.message_count);
    let id = json::get_str(data, "tool_call_id").unwrap_or(Str::plain(&generated));
    let content = json::get(data, "content").map(|content| match Str::of(content) {
        Some(_) => content.to_owned(),
        None => {
            let mut inner = NewParts::default();
            for block in json::items(content) {
                read_block(block, &mut inner, &mut Vec::new());
            }
            inner.finish_list()
        }
    });
    let is_error = json::get_str(data, "status").is_some_and(|it| it.escaped() == "error");
    let mut extra = String::new();
    json::push_fields(data, &["name"], &mut extra);
    if extra.ends_with("null") {
        extra.clear();
    }
    parts.result(id, content.as_deref(), is_error, &extra);
}

/// Reads the content. Returns the ids of its calls.
fn read_content(data: &str, parts: &mut NewParts) -> Result<Vec<String>, FieldError> {
    let mut calls = Vec::new();
    let content = json::get(data, "content").unwrap_or("\"\"");
    match Str::of(content) {
        Some(text) if text.is_empty() => {}
        Some(text) => parts.text(text, ""),
        None if json::is_list(content) => {
            json::items(content).for_each(|block| read_block(block, parts, &mut calls));
        }
        None => {
            return Err(FieldError::new("content", "content must be a string or a list of blocks"));
        }
    }
    Ok(calls)
}

fn read_block(block: &str, parts: &mut NewParts, calls: &mut Vec<String>) {
    if let Some(text) = Str::of(block) {
        parts.text(text, "");
    } else if try_block(block, parts, calls).is_none() {
        match json::get_str(block, "type") {
            Some(_) => parts.raw(block),
            None => parts.typed("unknown", block),
        }
    }
}

/// Converts and adds a block; `None` if Recto has no such part.
fn try_block(block: &str, parts: &mut NewParts, calls: &mut Vec<String>) -> Option<()> {
    let kind = json::get_str(block, "type")?.text();
    match &*kind {
        "text" => parts.raw(block),
        "thinking" | "reasoning" => {
            let text = json::get_str(block, "thinking").or(json::get_str(block, "reasoning"))?;
            let extras = json::get(block, "extras").unwrap_or("{}");
            let signature = json::get(block, "signature").or(json::get(extras, "signature"));
            let extra = signature.map(|it| format!(",\"signature\":{it}")).unwrap_or_default();
            parts.thinking(text, &extra);
        }
        "tool_use" | "tool_call" => {
            let id = json::get_str(block, "id")?;
            let input = json::get(block, "input").or(json::get(block, "args")).unwrap_or("{}");
            parts.call(id, json::get_str(block, "name")?, input, "");
            calls.push(id.text().into_owned());
        }
        "image_url" => {
            let image = json::get(block, "image_url")?;
            let url = Str::of(image).or_else(|| json::get_str(image, "url"))?;
            let mut extra = String::new();
            json::push_fields(image, &["detail"], &mut extra);
            parts.media(MediaKind::Image, MediaBody::of_url(url), None, &extra);
        }
        "image" | "audio" | "file" | "video" => {
            if json::get(block, "source").is_some_and(json::is_object) {
                parts.raw(block); // Anthropic's form, which is also Recto's
                return Some(());
            }
            let data = json::get_str(block, "base64").or(json::get_str(block, "data"));
            let media_type = json::get_str(block, "mime_type");
            let body = match (json::get_str(block, "url"), data) {
                (Some(url), _) => MediaBody::of_url(url),
                (None, Some(data)) => MediaBody::Base64 { media_type: media_type?, data },
                (None, None) => {
                    let id = json::get_str(block, "file_id").or(json::get_str(block, "id"))?;
                    MediaBody::FileId { id, provider: None }
                }
            };
            let kind = match &*kind {
                "image" => MediaKind::Image,
                "audio" => MediaKind::Audio,
                _ => media_type.map_or(MediaKind::File, |it| kind_of(&it.text())),
            };
            parts.media(kind, body, None, "");
        }
        _ => return None,
    }
    Some(())
}

/// Adds the calls that are not in the content.
fn read_calls(data: &str, in_content: &[String], parts: &mut NewParts) {
    let calls = json::get(data, "tool_calls").map(json::items).into_iter().flatten();
    let broken = json::get(data, "invalid_tool_calls").map(json::items).into_iter().flatten();
    for call in calls.chain(broken) {
        let id = json::get_str(call, "id").unwrap_or(Str::plain(""));
        if !id.is_empty() && in_content.iter().any(|known| *known == id.text()) {
            continue;
        }
        let name = json::get_str(call, "name").unwrap_or(Str::plain(""));
        let mut extra = String::new();
        json::push_fields(call, &["error"], &mut extra);
        parts.call(id, name, json::get(call, "args").unwrap_or("{}"), &extra);
    }
}

/// Writes a message in the form of `messages_to_dict`.
fn write_message(message: &MessageParts<'_>, out: &mut String, warnings: &mut Vec<String>) {
    let kind = match message.role {
        Role::System => "system",
        Role::User | Role::Tool => "human",
        Role::Assistant => "ai",
    };
    out.push_str(&format!(r#"{{"type":"{kind}","data":{{"content":"#));
    let mut calls = String::new();
    let mut broken = String::new();
    let mut blocks: Vec<String> = Vec::new();
    let mut only_text = None;
    let is_imported = message.is_of(Format::LangChain);
    for part in &message.parts {
        match *part {
            Part::Text { text, .. } => {
                only_text = if blocks.is_empty() { Some(text) } else { None };
                blocks.push(format!(r#"{{"type":"text","text":"{}"}}"#, text.escaped()));
            }
            Part::Thinking { text, signature, .. } => {
                let extras = signature.map_or_else(String::new, |signature| {
                    format!(r#","extras":{{"signature":"{}"}}"#, signature.escaped())
                });
                let text = text.escaped();
                blocks.push(format!(r#"{{"type":"reasoning","reasoning":"{text}"{extras}}}"#));
            }
            Part::Media(media) => match write_media(media) {
                Some(block) => blocks.push(block),
                None => warnings.push("the source of an image, audio or file is unknown".into()),
            },
            Part::ToolUse { id, name, input, .. } => {
                let is_broken = !json::is_object(input);
                let list = if is_broken { &mut broken } else { &mut calls };
                if !list.is_empty() {
                    list.push(',');
                }
                list.push_str("{\"name\":");
                json::push_str(name, list);
                list.push_str(",\"args\":");
                list.push_str(input);
                list.push_str(",\"id\":");
                json::push_str(id, list);
                list.push_str(match is_broken {
                    true => ",\"error\":null,\"type\":\"invalid_tool_call\"}",
                    false => ",\"type\":\"tool_call\"}",
                });
            }
            Part::Other { json, .. } if is_imported => blocks.push(json.to_owned()),
            Part::Other { kind, .. } => warnings.push(unsupported_part(kind)),
            Part::ToolResult { .. } => {}
        }
    }
    match (&blocks[..], only_text) {
        ([], _) => out.push_str("\"\""),
        ([_], Some(text)) => json::push_str(text, out),
        _ => out.push_str(&format!("[{}]", blocks.join(","))),
    }
    out.push_str(r#","additional_kwargs":{},"response_metadata":{}"#);
    out.push_str(&format!(r#","type":"{kind}""#));
    out.push_str(",\"name\":");
    match message.name {
        Some(name) => json::push_str(name, out),
        None => out.push_str("null"),
    }
    out.push_str(",\"id\":null");
    if message.role == Role::Assistant {
        out.push_str(&format!(r#","tool_calls":[{calls}],"invalid_tool_calls":[{broken}]"#));
    }
    out.push_str("}}");
}

fn write_media(media: crate::Media<'_>) -> Option<String> {
    let kind = match media.kind {
        MediaKind::Image => "image",
        MediaKind::Audio => "audio",
        MediaKind::File => "file",
    };
    Some(match media.body {
        MediaBody::Base64 { media_type, data } => format!(
            r#"{{"type":"{kind}","base64":"{}","mime_type":"{}"}}"#,
            data.escaped(),
            media_type.escaped()
        ),
        MediaBody::Url(url) => format!(r#"{{"type":"{kind}","url":"{}"}}"#, url.escaped()),
        MediaBody::FileId { id, .. } => format!(r#"{{"type":"{kind}","id":"{}"}}"#, id.escaped()),
        MediaBody::Text(text) => format!(r#"{{"type":"text","text":"{}"}}"#, text.escaped()),
        MediaBody::Unknown => return None,
    })
}

fn write_result(
    message: &MessageParts<'_>,
    part: &Part<'_>,
    out: &mut String,
    warnings: &mut Vec<String>,
) {
    let Part::ToolResult { id, content, is_error, json, .. } = *part else { return };
    out.push_str(r#"{"type":"tool","data":{"content":"#);
    match content.filter(|content| json::is_list(content)) {
        None => out.push_str(content.unwrap_or("\"\"")),
        Some(list) => {
            let mut blocks = Vec::new();
            for part in Part::list(list) {
                match part {
                    Part::Text { json, .. } => blocks.push(json.to_owned()),
                    Part::Media(media) => match write_media(media) {
                        Some(block) => blocks.push(block),
                        None => warnings.push(unsupported_part(Str::plain("media"))),
                    },
                    other if message.is_of(Format::LangChain) => {
                        blocks.push(other.json().to_owned());
                    }
                    Part::Other { kind, .. } => warnings.push(unsupported_part(kind)),
                    _ => warnings.push("only texts and media of a result are supported".into()),
                }
            }
            out.push_str(&format!("[{}]", blocks.join(",")));
        }
    }
    out.push_str(r#","additional_kwargs":{},"response_metadata":{},"type":"tool","name":"#);
    out.push_str(json::get(json, "name").unwrap_or("null"));
    out.push_str(r#","id":null,"tool_call_id":"#);
    json::push_str(id, out);
    out.push_str(match is_error {
        true => r#","artifact":null,"status":"error"}}"#,
        false => r#","artifact":null,"status":"success"}}"#,
    });
}
