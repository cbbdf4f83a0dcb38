//! OpenAI's Responses: a flat list of items, a request with `input`, or an answer with `output`.
//!
//! | foreign | here |
//! |---|---|
//! | `message` | a message; `developer` is `system` |
//! | `function_call`, `custom_tool_call` | an assistant message with a `tool_use` part; its id is `call_id`, and `id` its `item_id` |
//! | their outputs | a tool message with one `tool_result` |
//! | calls of OpenAI's own tools (`local_shell_call` and others), and their outputs | the same, with the item in `item` |
//! | `reasoning` and every other item | a part with the item as it is, for OpenAI only |

use std::borrow::Cow;

use recto_core::Role;

use super::message_list::{self, CallNames, Draft, Memory, MessageForm, Misfit};
use super::new_parts::NewParts;
use super::openai_chat::{arguments_of, input_of, write_url};
use super::{Head, Likelihood};
use crate::json::{self, Str};
use crate::media::{MediaBody, MediaKind};
use crate::parts::{MessageParts, Part};
use crate::{Format, Media};

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

/// How messages are written that are a role and a text: as the interface takes them too, or as items,
/// whose content is a list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bare {
    AsTheyAre,
    AsItems,
}

/// Writes messages as items, separated by commas.
pub(crate) fn write_items(
    pieces: &[MessageParts<'_>],
    bare: Bare,
    out: &mut String,
    remarks: &mut Vec<String>,
) {
    let mut items = Items { out, is_first: true, bare, remarks };
    for message in pieces {
        items.message(message);
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

/// A tool of OpenAI's own that runs at the user's. Its calls and answers are items of their own types;
/// here they are calls and results as all others, with the item beside them for OpenAI.
struct OwnTool {
    call: &'static str,
    output: &'static str,
    name: &'static str,
    /// The field that says what is to be done.
    input: &'static str,
}

const OWN_TOOLS: [OwnTool; 4] = [
    OwnTool {
        call: "local_shell_call",
        output: "local_shell_call_output",
        name: "local_shell",
        input: "action",
    },
    OwnTool { call: "shell_call", output: "shell_call_output", name: "shell", input: "action" },
    OwnTool {
        call: "apply_patch_call",
        output: "apply_patch_call_output",
        name: "apply_patch",
        input: "operation",
    },
    OwnTool {
        call: "computer_call",
        output: "computer_call_output",
        name: "computer",
        input: "action",
    },
];

impl OwnTool {
    fn called_by(kind: &str) -> Option<&'static OwnTool> {
        OWN_TOOLS.iter().find(|tool| tool.call == kind)
    }

    fn answered_by(kind: &str) -> Option<&'static OwnTool> {
        OWN_TOOLS.iter().find(|tool| tool.output == kind)
    }
}

/// What such a tool answered: its text, a picture of the screen, or the JSON as text.
fn own_output(output: &str) -> Cow<'_, str> {
    if Str::of(output).is_some() {
        return Cow::Borrowed(output);
    }
    let Some(url) = json::get_str(output, "image_url") else {
        return Cow::Owned(json::string(output));
    };
    let mut parts = NewParts::default();
    parts.media(MediaKind::Image, MediaBody::of_url(url), None, "");
    Cow::Owned(parts.finish_list())
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

/// Items in the making.
struct Items<'a> {
    out: &'a mut String,
    is_first: bool,
    bare: Bare,
    remarks: &'a mut Vec<String>,
}

impl Items<'_> {
    fn add(&mut self) -> &mut String {
        if !std::mem::replace(&mut self.is_first, false) {
            self.out.push(',');
        }
        self.out
    }

    fn message(&mut self, message: &MessageParts<'_>) {
        let is_bare = self.bare == Bare::AsTheyAre
            && message.is_string
            && message.source.is_none()
            && message.role != Role::Tool
            && json::fields(message.json)
                .all(|(key, _)| matches!(&*key.text(), "role" | "content"));
        if is_bare {
            let json = message.json;
            self.add().push_str(json);
            return;
        }
        let mut said: Vec<&Part<'_>> = Vec::new();
        for part in &message.parts {
            match *part {
                Part::Text { .. } | Part::Media(_) => said.push(part),
                Part::Other { kind, .. } if kind.text() == "refusal" => said.push(part),
                Part::Thinking { .. } => self.remarks.push("a thought has no place".into()),
                _ => {
                    self.said(message.role, &mut said);
                    self.item(message, part);
                }
            }
        }
        self.said(message.role, &mut said);
    }

    fn said(&mut self, role: Role, said: &mut Vec<&Part<'_>>) {
        if said.is_empty() {
            return;
        }
        let role = if role == Role::Tool { Role::User } else { role };
        let mut content = String::new();
        let id = said.iter().find_map(|part| match part {
            Part::Text { json, has_more: true, .. } => json::get_str(json, "item_id"),
            _ => None,
        });
        for part in said.drain(..) {
            let before = content.len();
            if before > 0 {
                content.push(',');
            }
            if !write_part(part, role, &mut content) {
                content.truncate(before);
                self.remarks.push("an image, audio or file has no place".into());
            }
        }
        let out = self.add();
        out.push_str(r#"{"type":"message","#);
        if let Some(id) = id.filter(|_| role == Role::Assistant) {
            out.push_str(r#""id":"#);
            json::push_str(id, out);
            out.push(',');
        }
        out.push_str(r#""role":""#);
        out.push_str(role.as_str());
        out.push_str(r#"","content":["#);
        out.push_str(&content);
        out.push_str("]}");
    }

    fn item(&mut self, message: &MessageParts<'_>, part: &Part<'_>) {
        if let Some(item) = item_of(part) {
            self.add().push_str(item);
            return;
        }
        match *part {
            Part::ToolUse { id, name, input, json, .. } => {
                let (kind, field) = match part.is_custom_call() {
                    true => ("custom_tool_call", "input"),
                    false => ("function_call", "arguments"),
                };
                let out = self.add();
                out.push_str(&format!(r#"{{"type":"{kind}""#));
                if let Some(item_id) = json::get_str(json, "item_id").filter(|_| part.has_more()) {
                    out.push_str(r#","id":"#);
                    json::push_str(item_id, out);
                }
                out.push_str(r#","call_id":"#);
                json::push_str(id, out);
                out.push_str(r#","name":"#);
                json::push_str(name, out);
                out.push_str(&format!(r#","{field}":""#));
                arguments_of(input, out);
                out.push_str("\"}");
            }
            Part::ToolResult { id, content, is_error, json, .. } => {
                if is_error {
                    self.remarks.push("a tool result has no is_error here".into());
                }
                let is_custom =
                    json::get_str(json, "kind").is_some_and(|kind| kind.escaped() == "custom");
                let kind =
                    if is_custom { "custom_tool_call_output" } else { "function_call_output" };
                let mut output = String::new();
                match content {
                    None => output.push_str("\"\""),
                    Some(content) if Str::of(content).is_some() => output.push_str(content),
                    Some(content) => {
                        for part in &Part::list(content) {
                            let before = output.len();
                            output.push(if before == 0 { '[' } else { ',' });
                            if !write_part(part, Role::User, &mut output) {
                                output.truncate(before);
                                self.remarks.push("a part of a result has no place".into());
                            }
                        }
                        output.push_str(if output.is_empty() { "[]" } else { "]" });
                    }
                }
                let out = self.add();
                out.push_str(&format!(r#"{{"type":"{kind}","call_id":"#));
                json::push_str(id, out);
                out.push_str(r#","output":"#);
                out.push_str(&output);
                out.push('}');
            }
            Part::Other { kind, json } => {
                let is_ours = message.source.is_none_or(|source| {
                    let provider = source.provider.map(Str::text);
                    provider.as_deref() == Some("openai")
                        || source.is_from(Format::OpenAiResponses.name())
                        || source.is_from(Format::Codex.name())
                });
                match is_ours {
                    true => self.add().push_str(json),
                    false => {
                        self.remarks.push(format!("a part of type {} has no place", kind.text()))
                    }
                }
            }
            Part::Text { .. } | Part::Thinking { .. } | Part::Media(_) => {}
        }
    }
}

/// The item that a call or a result was, where it is one of OpenAI's own tools.
pub(crate) fn item_of<'a>(part: &Part<'a>) -> Option<&'a str> {
    let is_exchange = matches!(part, Part::ToolUse { .. } | Part::ToolResult { .. });
    let item = json::get(part.json(), "item").filter(|_| is_exchange && part.has_more())?;
    let kind = json::get_str(item, "type")?.text();
    let is_own = OwnTool::called_by(&kind).is_some() || OwnTool::answered_by(&kind).is_some();
    is_own.then_some(item)
}

/// Writes a part of a message or of a result; nothing if there is no form for it.
fn write_part(part: &Part<'_>, role: Role, out: &mut String) -> bool {
    match *part {
        Part::Text { text, json, .. } => {
            out.push_str(match role {
                Role::Assistant => r#"{"type":"output_text","text":"#,
                _ => r#"{"type":"input_text","text":"#,
            });
            json::push_str(text, out);
            if role == Role::Assistant {
                json::push_fields(json, &["annotations", "logprobs"], out);
            }
            out.push('}');
            true
        }
        Part::Media(media) => write_media(media, out),
        Part::Other { json, .. } => {
            out.push_str(json);
            true
        }
        _ => false,
    }
}

fn write_media(media: Media<'_>, out: &mut String) -> bool {
    match (media.kind, media.body) {
        (MediaKind::Image, MediaBody::Url(_) | MediaBody::Base64 { .. }) => {
            out.push_str(r#"{"type":"input_image","image_url":"#);
            write_url(media.body, out);
            json::push_fields(media.json, &["detail"], out);
        }
        (MediaKind::Image, MediaBody::FileId { id, .. }) => {
            out.push_str(r#"{"type":"input_image","file_id":"#);
            json::push_str(id, out);
            json::push_fields(media.json, &["detail"], out);
        }
        (MediaKind::File, body) => {
            out.push_str(r#"{"type":"input_file","#);
            if let Some(name) = media.name {
                out.push_str("\"filename\":");
                json::push_str(name, out);
                out.push(',');
            }
            match body {
                MediaBody::Base64 { .. } => {
                    out.push_str("\"file_data\":");
                    write_url(body, out);
                }
                MediaBody::Url(_) => {
                    out.push_str("\"file_url\":");
                    write_url(body, out);
                }
                MediaBody::FileId { id, .. } => {
                    out.push_str("\"file_id\":");
                    json::push_str(id, out);
                }
                MediaBody::Text(_) | MediaBody::Unknown => return false,
            }
        }
        _ => return false,
    }
    out.push('}');
    true
}
