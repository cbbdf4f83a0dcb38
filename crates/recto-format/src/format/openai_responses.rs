//! OpenAI's Responses: a flat list of items, a request with `input`, or an answer with `output`.
//!
//! | foreign | here |
//! |---|---|
//! | `message` | a message; `developer` is `system` |
//! | `function_call`, `custom_tool_call` | an assistant message with a `tool_use` part; its id is `call_id`, and `id` its `item_id` |
//! | their outputs | a tool message with one `tool_result` |
//! | calls of OpenAI's own tools (`local_shell_call` and others), and their outputs | the same, with the item in `item` |
//! | `reasoning` and every other item | a part with the item as it is, for OpenAI only |

mod own_tool;
mod write;

use std::borrow::Cow;

use recto_core::Role;

use super::message_list::{self, CallNames, Draft, Memory, MessageForm, Misfit};
use super::new_parts::NewParts;
use super::openai_chat::input_of;
use super::{Head, Likelihood};
use crate::Format;
use crate::json::{self, Str};
use crate::media::{MediaBody, MediaKind};
use crate::parts::{MessageParts, Part};

pub(crate) use own_tool::item_of;
use own_tool::{OwnTool, own_output};
pub(crate) use write::{Bare, write_items};

pub(crate) struct OpenAiResponses;

fn likelihood(item: &str) -> Likelihood {
    let kind = json::get_str(item, "type").map(Str::escaped).unwrap_or_default();
    match kind {
        "function_call" | "function_call_output" if json::get(item, "call_id").is_some() => {
            Likelihood::Surely
        }
        "reasoning" if json::get(item, "summary").is_some() => Likelihood::Surely,
        "message" | "" => {
            let parts = json::get(item, "content").map(json::items).into_iter().flatten();
            let kinds = parts.filter_map(|part| json::get_str(part, "type")).map(Str::escaped);
            let mut own = kinds.filter(|kind| matches!(*kind, "input_text" | "output_text"));
            if own.next().is_some() { Likelihood::Surely } else { Likelihood::No }
        }
        _ => Likelihood::No,
    }
}

impl MessageForm for OpenAiResponses {
    fn recognise(&self, head: &Head) -> Likelihood {
        let mut most = Likelihood::No;
        for object in head.objects() {
            if json::get(object, "payload").is_some() {
                return Likelihood::No; // a rollout, which holds such items
            }
            if json::get_str(object, "instructions").is_some()
                && json::get(object, "input").is_some_and(json::is_list)
            {
                most = most.max(Likelihood::Likely);
            }
            let listed = ["input", "output"].into_iter().filter_map(|key| json::get(object, key));
            let listed = listed.flat_map(json::items);
            for item in std::iter::once(object).chain(listed) {
                most = most.max(likelihood(item));
            }
        }
        most
    }

    fn format(&self) -> Format {
        Format::OpenAiResponses
    }

    fn list_keys(&self) -> &'static [&'static str] {
        &["input", "output"]
    }

    /// The output of a call may be a list too.
    fn is_envelope(&self, object: &str) -> bool {
        // What starts with its type or role is an item: one look is enough for most.
        let first = json::fields(object).next().map(|(key, _)| key.escaped());
        if matches!(first, Some("type" | "role")) {
            return false;
        }
        let has_list = self.list_keys().iter().any(|key| message_list::holds_list(object, key));
        has_list && json::get(object, "call_id").is_none()
    }

    fn read(&self, foreign: &str, _memory: &mut Memory) -> Result<Vec<Draft>, Misfit> {
        read(foreign).map(|item| vec![item.draft])
    }

    fn read_envelope(&self, key: &str, value: &str) -> Option<Result<Vec<Draft>, Misfit>> {
        match key {
            "instructions" if Str::of(value).is_some_and(|text| !text.is_empty()) => {
                Some(Ok(vec![Draft::made(Role::System, value.to_owned())]))
            }
            "previous_response_id" if value != "null" => Some(Err(Misfit::new(
                "previous_response_id",
                "what came before is at the provider, not in the file",
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
        remarks: &mut Vec<String>,
    ) {
        write_items(pieces, Bare::AsTheyAre, out, remarks);
    }
}

/// An item that was read.
pub(crate) struct Item<'a> {
    pub(crate) draft: Draft,
    /// Who says what in it, if it is a message.
    pub(crate) said: Option<(Role, &'a str)>,
}

impl From<Draft> for Item<'_> {
    fn from(draft: Draft) -> Self {
        Item { draft, said: None }
    }
}

/// Reads one item.
pub(crate) fn read(item: &str) -> Result<Item<'_>, Misfit> {
    if !json::is_object(item) {
        return Err(Misfit::new("", "an item is an object with a type"));
    }
    let fields = json::Object::of(item);
    let needed = |field: &str| {
        let value = fields.get_str(field);
        value.ok_or_else(|| Misfit::new(field, format!("{field} is missing")))
    };
    let kind = fields.get_str("type").map(Str::text);
    if matches!(kind.as_deref(), Some("message"))
        || (kind.is_none() && fields.get("role").is_some())
    {
        return read_message(&fields);
    }
    let mut parts = NewParts::sized(item.len());
    match kind.as_deref() {
        None => match fields.get("input").filter(|input| Str::of(input).is_some()) {
            // A whole request whose input is one text.
            Some(input) => Ok(Draft::made(Role::User, input.to_owned()).into()),
            None => Err(Misfit::new("type", "type is missing")),
        },
        Some("function_call") => {
            let arguments = fields.get_str("arguments").unwrap_or(Str::plain("{}"));
            let extra = item_id(&fields);
            parts.call(needed("call_id")?, needed("name")?, &input_of(arguments), &extra);
            Ok(own_draft(parts, &extra).into())
        }
        Some("custom_tool_call") => {
            let input = fields.get("input").unwrap_or("\"\"");
            let id = item_id(&fields);
            let extra = format!(r#","kind":"custom"{id}"#);
            parts.call(needed("call_id")?, needed("name")?, input, &extra);
            Ok(own_draft(parts, &id).into())
        }
        Some(kind) if OwnTool::called_by(kind).is_some() => {
            let Some(tool) = OwnTool::called_by(kind) else { return Err(no_item(kind)) };
            let id = needed("call_id").or_else(|_| needed("id"))?;
            let input = fields.get(tool.input).unwrap_or("{}");
            let extra = format!(r#","kind":"{kind}","item":{item}"#);
            parts.call(id, Str::plain(tool.name), input, &extra);
            Ok(own_draft(parts, &extra).into())
        }
        Some(kind) if OwnTool::answered_by(kind).is_some() => {
            let id = needed("call_id").or_else(|_| needed("id"))?;
            let output = fields.get("output").map(own_output);
            let extra = format!(r#","kind":"{kind}","item":{item}"#);
            parts.result(id, output.as_deref(), false, &extra);
            Ok(Draft::Made {
                role: Role::Tool,
                content: parts.finish(),
                fields: String::new(),
                provider: Some("openai".into()),
                model: None,
            }
            .into())
        }
        Some(kind @ ("function_call_output" | "custom_tool_call_output")) => {
            let extra = if kind.starts_with("custom") { r#","kind":"custom""# } else { "" };
            let output = match fields.get("output") {
                Some(list) if json::is_list(list) => {
                    Some(Cow::Owned(read_parts(list).finish_list()))
                }
                Some(text) if Str::of(text).is_some() => Some(Cow::Borrowed(text)),
                // Older rollouts have an object here.
                Some(value) => Some(Cow::Owned(json::string(value))),
                None => None,
            };
            parts.result(needed("call_id")?, output.as_deref(), false, extra);
            Ok(Draft::made(Role::Tool, parts.finish()).into())
        }
        // Who speaks, and names with dashes, are types of lines elsewhere; so is what has such ids.
        Some(kind)
            if matches!(kind, "user" | "assistant" | "system" | "tool" | "human" | "ai")
                || kind.contains('-')
                || ["uuid", "leafUuid", "sessionId"].iter().any(|id| fields.get(id).is_some()) =>
        {
            Err(no_item(kind))
        }
        Some(kind) => {
            let is_answer = kind.ends_with("_output") || kind.ends_with("_response");
            parts.raw(item);
            Ok(Draft::Made {
                role: if is_answer { Role::Tool } else { Role::Assistant },
                content: parts.finish(),
                fields: String::new(),
                provider: Some("openai".into()),
                model: None,
            }
            .into())
        }
    }
}

fn no_item(kind: &str) -> Misfit {
    Misfit::new("type", format!("no item of type {kind:?} is known"))
}

/// The id of an item as a field of the part that it becomes: the provider ties it to the reasoning
/// before it.
fn item_id(fields: &json::Object<'_>) -> String {
    let id = fields.get_str("id").filter(|id| !id.is_empty());
    id.map_or(String::new(), |id| format!(r#","item_id":"{}""#, id.escaped()))
}

/// What the model said or called. What has the provider's id is the provider's.
fn own_draft(parts: NewParts, item_id: &str) -> Draft {
    Draft::Made {
        role: Role::Assistant,
        content: parts.finish(),
        fields: String::new(),
        provider: (!item_id.is_empty()).then(|| "openai".to_owned()),
        model: None,
    }
}

fn read_message<'a>(fields: &json::Object<'a>) -> Result<Item<'a>, Misfit> {
    let role = fields.get_str("role").map(Str::text).unwrap_or_default();
    let own_role = match &*role {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" | "developer" => Role::System,
        other => {
            let roles = "user, assistant, system or developer";
            return Err(Misfit::new("role", format!("role must be {roles}, not {other:?}")));
        }
    };
    let content = fields.get("content").unwrap_or("[]");
    let draft = match Str::of(content) {
        Some(text) => {
            let is_bare = fields.has_only(&["role", "content"]);
            if is_bare && role != "developer" && !text.is_empty() {
                Draft::AsItIs
            } else {
                let content = match text.is_empty() {
                    true => NewParts::default().finish(),
                    false => content.to_owned(),
                };
                Draft::made(own_role, content)
            }
        }
        None if json::is_list(content) => {
            let id = if own_role == Role::Assistant { item_id(fields) } else { String::new() };
            let mut parts = NewParts::sized(content.len());
            read_parts_into(content, &id, &mut parts);
            match own_role {
                Role::Assistant => {
                    return Ok(Item {
                        draft: own_draft(parts, &id),
                        said: Some((own_role, content)),
                    });
                }
                _ => Draft::made(own_role, parts.finish()),
            }
        }
        None => return Err(Misfit::new("content", "content is a string or a list of parts")),
    };
    Ok(Item { draft, said: Some((own_role, content)) })
}

fn read_parts(list: &str) -> NewParts {
    let mut parts = NewParts::sized(list.len());
    read_parts_into(list, "", &mut parts);
    parts
}

/// Adds the parts of a message; the first of its texts has the id of its item.
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

/// Adds a part in Recto's form; `None` if that has no words for it.
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
