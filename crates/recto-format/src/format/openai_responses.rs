//! Codec of OpenAI's Responses: a flat list of items, a request with `input`, or a response with
//! `output`.
//!
//! | foreign | conversion |
//! |---|---|
//! | `message` | a message; `developer` becomes `system` |
//! | `function_call`, `custom_tool_call` | an assistant message with a `tool_use` part; `call_id` becomes its id, and `id` its `item_id` |
//! | their outputs | a tool message with one `tool_result` |
//! | calls of built-in tools (`local_shell_call` and others) and their outputs | the same, with the item in `item` |
//! | `reasoning` and every other item | a part with the unchanged item, for OpenAI only |

mod built_in_tool;
mod write;

use std::borrow::Cow;

use recto_core::Role;

use super::message_list::{self, CallNames, Draft, FieldError, MessageCodec, ReadState};
use super::new_parts::{self, NewParts};
use super::openai_chat::input_of;
use super::{Head, Likelihood};
use crate::Format;
use crate::json::{self, Str};
use crate::media::{MediaBody, MediaKind};
use crate::parts::{MessageParts, Part};

pub(crate) use built_in_tool::item_of;
use built_in_tool::{BuiltInTool, built_in_output};
pub(crate) use write::{PlainMessages, write_items};

pub(crate) struct OpenAiResponses;

fn likelihood(item: &str) -> Likelihood {
    let kind = json::get_str(item, "type").map(Str::escaped).unwrap_or_default();
    match kind {
        "function_call" | "function_call_output" if json::get(item, "call_id").is_some() => {
            Likelihood::Certain
        }
        "reasoning" if json::get(item, "summary").is_some() => Likelihood::Certain,
        "message" | "" => {
            let parts = json::get(item, "content").map(json::items).into_iter().flatten();
            let kinds = parts.filter_map(|part| json::get_str(part, "type")).map(Str::escaped);
            let mut typical = kinds.filter(|kind| matches!(*kind, "input_text" | "output_text"));
            if typical.next().is_some() { Likelihood::Certain } else { Likelihood::No }
        }
        _ => Likelihood::No,
    }
}

/// True for a value that can be the `input` of a request: a list of items or a text. The input of an
/// embedding is a list of strings.
fn is_input(value: &str) -> bool {
    let is_list = || json::is_list(value) && json::items(value).next().is_none_or(json::is_object);
    Str::of(value).is_some() || is_list()
}

/// True if an object with `input` is a request: it has a model, instructions, a stored prompt or
/// conversation, or another field of a request. A request to Azure may have neither a model nor instructions.
fn is_request(object: &str) -> bool {
    let mut fields = json::fields(object);
    fields.any(|(key, value)| match key.escaped() {
        "model" | "instructions" | "previous_response_id" => Str::of(value).is_some(),
        "prompt" => json::get_str(value, "id").is_some(),
        "conversation" => {
            let id = Str::of(value).or_else(|| json::get_str(value, "id"));
            id.is_some_and(|id| id.escaped().starts_with("conv_"))
        }
        "max_output_tokens" => value.parse::<u64>().is_ok(),
        "store" | "background" => matches!(value, "true" | "false"),
        "truncation" => matches!(value, r#""auto""# | r#""disabled""#),
        _ => false,
    })
}

impl MessageCodec for OpenAiResponses {
    fn recognise(&self, head: &Head) -> Likelihood {
        let mut best = Likelihood::No;
        for object in head.objects() {
            if json::get(object, "payload").is_some() {
                return Likelihood::No; // a codex rollout, which contains such items
            }
            let kind = json::get_str(object, "type").map(Str::escaped);
            if matches!(kind, Some("system" | "user" | "assistant" | "tool_result")) {
                return Likelihood::No; // a log of another program, which contains reasoning items
            }
            if json::get(object, "input").is_some_and(is_input) && is_request(object) {
                best = best.max(Likelihood::Likely);
            }
            let listed = ["input", "output"].into_iter().filter_map(|key| json::get(object, key));
            let listed = listed.flat_map(json::items);
            for item in std::iter::once(object).chain(listed) {
                best = best.max(likelihood(item));
            }
        }
        best
    }

    fn format(&self) -> Format {
        Format::OpenAiResponses
    }

    fn list_keys(&self) -> &'static [&'static str] {
        &["input", "output"]
    }

    /// The output of a call may also be a list, so an object with a `call_id` is not an envelope.
    fn is_envelope(&self, object: &str) -> bool {
        // Fast path: an object that starts with its type or role is an item.
        let first = json::fields(object).next().map(|(key, value)| (key.escaped(), value));
        match first {
            // A request that is sent over a WebSocket.
            Some(("type", "\"response.create\"")) => {}
            Some(("type" | "role", _)) => return false,
            _ => {}
        }
        let has_list = self.list_keys().iter().any(|key| message_list::holds_list(object, key));
        let has_text = || json::get_str(object, "input").is_some() && is_request(object);
        (has_list || has_text()) && json::get(object, "call_id").is_none()
    }

    fn read(&self, foreign: &str, state: &mut ReadState) -> Result<Vec<Draft>, FieldError> {
        let draft = read(foreign)?.draft;
        let is_output = matches!(&draft, Draft::Converted { role: Role::Assistant, .. });
        if !is_output {
            state.reasoning = None;
        } else if json::get_str(foreign, "type").is_some_and(|kind| kind.is("reasoning")) {
            state.reasoning = json::get_str(foreign, "id").map(|id| id.text().into_owned());
        } else {
            state.after.clone_from(&state.reasoning);
        }
        if let Some(id) = json::get_str(foreign, "call_id").map(Str::text) {
            let kind = json::get_str(foreign, "type").map(Str::text).unwrap_or_default();
            match kind.ends_with("_output") {
                true => state.has_stored_call = !state.call_ids.contains(&*id),
                false => drop(state.call_ids.insert(id.into_owned())),
            }
        }
        Ok(vec![draft])
    }

    fn read_envelope(&self, key: &str, value: &str) -> Option<Result<Vec<Draft>, FieldError>> {
        match key {
            "instructions" if Str::of(value).is_some() => {
                Some(Ok(vec![Draft::converted(Role::System, new_parts::content_of(value))]))
            }
            "input" if Str::of(value).is_some_and(|text| !text.is_empty()) => {
                Some(Ok(vec![Draft::converted(Role::User, value.to_owned())]))
            }
            "previous_response_id" if value != "null" => Some(Err(FieldError::new(
                "previous_response_id",
                "the earlier messages are stored at the provider, not in the file",
            ))),
            _ => None,
        }
    }

    fn system_field(&self) -> Option<&'static str> {
        Some("instructions")
    }

    fn lists_system(&self) -> bool {
        true
    }

    fn write_system(&self, messages: &[MessageParts<'_>], out: &mut String) {
        let parts = messages.iter().flat_map(|message| &message.parts);
        let texts: Vec<&str> = parts
            .filter_map(|part| match part {
                Part::Text { text, .. } => Some(text.escaped()),
                _ => None,
            })
            .collect();
        out.push('"');
        out.push_str(&texts.join("\\n\\n"));
        out.push('"');
    }

    fn write(
        &self,
        pieces: &[MessageParts<'_>],
        _names: &CallNames<'_>,
        out: &mut String,
        warnings: &mut Vec<String>,
    ) {
        write_items(pieces, PlainMessages::Unchanged, out, warnings);
    }
}

/// A converted item.
pub(crate) struct Item<'a> {
    pub(crate) draft: Draft,
    /// Role and content, if the item is a message. `None` for a message of the assistant with an id and a
    /// string as its content.
    pub(crate) role_and_content: Option<(Role, &'a str)>,
}

impl From<Draft> for Item<'_> {
    fn from(draft: Draft) -> Self {
        Item { draft, role_and_content: None }
    }
}

/// Reads one item.
pub(crate) fn read(item: &str) -> Result<Item<'_>, FieldError> {
    if !json::is_object(item) {
        return Err(FieldError::new("", "an item must be an object with a type"));
    }
    let fields = json::Object::of(item);
    let needed = |field: &str| {
        let value = fields.get_str(field);
        value.ok_or_else(|| FieldError::new(field, format!("{field} is missing")))
    };
    let kind = fields.get_str("type").map(Str::text);
    if matches!(kind.as_deref(), Some("message"))
        || (kind.is_none() && fields.get("role").is_some())
    {
        return read_message(&fields);
    }
    let mut parts = NewParts::with_capacity(item.len());
    match kind.as_deref() {
        None => match fields.get("input").filter(|input| Str::of(input).is_some()) {
            // A request whose input is a text.
            Some(input) => Ok(Draft::converted(Role::User, input.to_owned()).into()),
            None => Err(FieldError::new("type", "type is missing")),
        },
        Some("function_call") => {
            let arguments = fields.get_str("arguments").unwrap_or(Str::plain("{}"));
            let extra = item_id(&fields);
            parts.call(needed("call_id")?, needed("name")?, &input_of(arguments), &extra);
            Ok(assistant_draft(parts, &extra).into())
        }
        Some("custom_tool_call") => {
            let input = fields.get("input").unwrap_or("\"\"");
            let id = item_id(&fields);
            let extra = format!(r#","kind":"custom"{id}"#);
            parts.call(needed("call_id")?, needed("name")?, input, &extra);
            Ok(assistant_draft(parts, &id).into())
        }
        Some(kind) if BuiltInTool::called_by(kind).is_some() => {
            let Some(tool) = BuiltInTool::called_by(kind) else { return Err(unknown_item(kind)) };
            let id = needed("call_id").or_else(|_| needed("id"))?;
            let input = fields.get(tool.input).unwrap_or("{}");
            let extra = format!(r#","kind":"{kind}","item":{item}"#);
            parts.call(id, Str::plain(tool.name), input, &extra);
            Ok(assistant_draft(parts, &extra).into())
        }
        Some(kind) if BuiltInTool::answered_by(kind).is_some() => {
            let id = needed("call_id").or_else(|_| needed("id"))?;
            let output = fields.get("output").map(built_in_output);
            let extra = format!(r#","kind":"{kind}","item":{item}"#);
            parts.result(id, output.as_deref(), false, &extra);
            Ok(provider_draft(Role::Tool, parts).into())
        }
        Some(kind @ ("function_call_output" | "custom_tool_call_output")) => {
            let extra = if kind.starts_with("custom") { r#","kind":"custom""# } else { "" };
            let output = match fields.get("output") {
                Some(list) if json::is_list(list) => {
                    Some(Cow::Owned(read_parts(list).finish_list()))
                }
                Some(text) if Str::of(text).is_some() => Some(Cow::Borrowed(text)),
                // Older codex rollouts have an object here.
                Some(value) => Some(Cow::Owned(json::string(value))),
                None => None,
            };
            parts.result(needed("call_id")?, output.as_deref(), false, extra);
            Ok(Draft::converted(Role::Tool, parts.finish()).into())
        }
        // In other formats, the type is a role or contains a dash, or the line has one of these ids.
        Some(kind)
            if matches!(kind, "user" | "assistant" | "system" | "tool" | "human" | "ai")
                || kind.contains('-')
                || ["uuid", "leafUuid", "sessionId"].iter().any(|id| fields.get(id).is_some()) =>
        {
            Err(unknown_item(kind))
        }
        Some(kind) => {
            let is_result = kind.ends_with("_output") || kind.ends_with("_response");
            parts.raw(item);
            let role = if is_result { Role::Tool } else { Role::Assistant };
            Ok(provider_draft(role, parts).into())
        }
    }
}

/// A message with parts that only OpenAI supports.
fn provider_draft(role: Role, parts: NewParts) -> Draft {
    Draft::Converted {
        role,
        content: parts.finish(),
        fields: String::new(),
        provider: Some("openai".into()),
        model: None,
    }
}

fn unknown_item(kind: &str) -> FieldError {
    FieldError::new("type", format!("{kind:?} is not a known type of item"))
}

/// The id of an item, as a field of its part. The provider links the item to the reasoning before it by
/// this id.
fn item_id(fields: &json::Object<'_>) -> String {
    let id = fields.get_str("id").filter(|id| !id.is_empty());
    id.map_or(String::new(), |id| format!(r#","item_id":"{}""#, id.escaped()))
}

/// The draft of a message of the assistant. With an item id, it records OpenAI as the provider.
fn assistant_draft(parts: NewParts, item_id: &str) -> Draft {
    Draft::Converted {
        role: Role::Assistant,
        content: parts.finish(),
        fields: String::new(),
        provider: (!item_id.is_empty()).then(|| "openai".to_owned()),
        model: None,
    }
}

fn read_message<'a>(fields: &json::Object<'a>) -> Result<Item<'a>, FieldError> {
    let role = fields.get_str("role").map(Str::text).unwrap_or_default();
    let own_role = match &*role {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" | "developer" => Role::System,
        other => {
            let roles = "user, assistant, system or developer";
            return Err(FieldError::new("role", format!("role must be {roles}, not {other:?}")));
        }
    };
    let content = fields.get("content").unwrap_or("[]");
    let draft = match Str::of(content) {
        Some(text) => {
            let id = item_id(fields);
            if own_role == Role::Assistant && !id.is_empty() {
                let mut parts = NewParts::with_capacity(content.len());
                parts.text(text, &id);
                return Ok(assistant_draft(parts, &id).into());
            }
            let is_bare = fields.has_only(&["role", "content"]);
            if is_bare && role != "developer" && !text.is_empty() {
                Draft::Unchanged
            } else {
                let content = match text.is_empty() {
                    true => NewParts::default().finish(),
                    false => content.to_owned(),
                };
                Draft::converted(own_role, content)
            }
        }
        None if json::is_list(content) => {
            let id = if own_role == Role::Assistant { item_id(fields) } else { String::new() };
            let mut parts = NewParts::with_capacity(content.len());
            read_parts_into(content, &id, &mut parts);
            match own_role {
                Role::Assistant => {
                    return Ok(Item {
                        draft: assistant_draft(parts, &id),
                        role_and_content: Some((own_role, content)),
                    });
                }
                _ => Draft::converted(own_role, parts.finish()),
            }
        }
        None => {
            return Err(FieldError::new("content", "content must be a string or a list of parts"));
        }
    };
    Ok(Item { draft, role_and_content: Some((own_role, content)) })
}

fn read_parts(list: &str) -> NewParts {
    let mut parts = NewParts::with_capacity(list.len());
    read_parts_into(list, "", &mut parts);
    parts
}

/// Adds the parts of a message. The first `output_text` gets the id of the item.
fn read_parts_into(list: &str, item_id: &str, parts: &mut NewParts) {
    let mut item_id = item_id;
    for (part, fields) in json::objects(list) {
        let is_text = fields.get_str("type").is_some_and(|kind| kind.is("output_text"));
        let id = if is_text { std::mem::take(&mut item_id) } else { "" };
        if read_part(&fields, id, parts).is_none() {
            parts.raw(part);
        }
    }
}

/// Converts and adds a part; `None` if Recto has no such part.
fn read_part(fields: &json::Object<'_>, item_id: &str, parts: &mut NewParts) -> Option<()> {
    let file_id = || {
        let provider = Some(Str::plain("openai"));
        fields.get_str("file_id").map(|id| MediaBody::FileId { id, provider })
    };
    match &*fields.get_str("type")?.text() {
        "input_text" | "output_text" => {
            let mut extra = item_id.to_owned();
            fields.push_others(&["type", "text"], &mut extra);
            parts.text(fields.get_str("text")?, &extra);
        }
        "input_image" => {
            let url = fields.get_str("image_url").map(MediaBody::of_url);
            let mut extra = String::new();
            fields.push_some(&["detail"], &mut extra);
            parts.media(MediaKind::Image, url.or_else(file_id)?, None, &extra);
        }
        "input_file" => {
            let url = fields.get_str("file_data").map(MediaBody::of_url);
            let url = url.or_else(|| fields.get_str("file_url").map(MediaBody::Url));
            let name = fields.get_str("filename");
            parts.media(MediaKind::File, url.or_else(file_id)?, name, "");
        }
        _ => return None,
    }
    Some(())
}
