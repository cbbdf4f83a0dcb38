//! Codec of LibreChat's export: `{conversationId, messages: [{messageId, parentMessageId, text, …}]}`.
//!
//! | in the file | conversion |
//! |---|---|
//! | a message | a message of the user if `isCreatedByUser` is true, otherwise of the assistant |
//! | a message whose parent is not the message before it | ROLLBACK to the parent, then the message |
//! | `content` with `think` and `tool_call` | thinking, calls, and a message with the results |
//! | nested messages (`children`) | the newest branch; the others are kept for export, with a remark |

use recto_core::Role;

use super::message_list::{Draft, FieldError};
use super::new_parts::NewParts;
use super::session::{
    Parent, Place, Record, SessionCodec, SessionState, input_of, plain_text, push_text, text_of,
    time_of,
};
use super::{Head, Likelihood};
use crate::Format;
use crate::json::{self, Str};
use crate::parts::{MessageParts, Part};

pub(crate) struct LibreChat;

/// The `parentMessageId` of a message without a parent.
const NO_PARENT: &str = "00000000-0000-0000-0000-000000000000";

impl SessionCodec for LibreChat {
    fn format(&self) -> Format {
        Format::LibreChat
    }

    fn recognise(&self, head: &Head) -> Likelihood {
        let is_message = |record: &str| {
            json::get(record, "messageId").is_some()
                && json::get(record, "isCreatedByUser").is_some()
        };
        let is_found = head.objects().into_iter().any(|object| {
            let listed = json::get(object, "messages").map(json::items).into_iter().flatten();
            std::iter::once(object).chain(listed).any(is_message)
        });
        if is_found { Likelihood::Declared } else { Likelihood::No }
    }

    fn list_keys(&self) -> &'static [&'static str] {
        &["messages"]
    }

    fn new_document(&self) -> Option<&'static str> {
        Some(r#"{"messages":null}"#)
    }

    fn parent_field(&self) -> Option<&'static str> {
        Some("parentMessageId")
    }

    fn read<'a>(
        &self,
        record: &'a str,
        state: &mut SessionState,
    ) -> Result<Record<'a>, FieldError> {
        let fields = json::Object::of(record);
        let mut read =
            Record::without_message(record).with_ids(&fields, "messageId", "parentMessageId");
        if read.parent == Parent::Id(Str::plain(NO_PARENT)) {
            read.parent = Parent::Root;
        }
        read.time = fields.get_str("createdAt").and_then(|time| time_of(&time.text()));
        read.session = fields.get_str("conversationId");
        let mut others = 0;
        let mut next = Some(record);
        while let Some(message) = next {
            let fields = json::Object::of(message);
            read_message(&fields, &mut read.drafts);
            let children = fields.get("children").map(json::items).into_iter().flatten();
            next = None;
            for child in children {
                others += usize::from(next.is_some());
                next = Some(child);
            }
        }
        if others > 0 {
            let reason = "the newest branch is imported; the others are preserved for export";
            state.list.warn("children", reason);
        }
        Ok(read)
    }

    fn write(
        &self,
        message: &MessageParts<'_>,
        place: &Place<'_>,
        out: &mut String,
        warnings: &mut Vec<String>,
    ) {
        let (id, time) = (place.id(0), place.timestamp());
        let parent = place.parent_field("parentMessageId", 0);
        let has_results = message.parts.iter().any(|part| matches!(part, Part::ToolResult { .. }));
        let is_user = message.role != Role::Assistant && !has_results;
        if message.role == Role::System {
            warnings.push("a system message is written as a message of the user".into());
        }
        let text = plain_text(message, warnings);
        let mut content = NewParts::default();
        let mut is_plain = true;
        for part in &message.parts {
            is_plain &= matches!(part, Part::Text { .. } | Part::Media(_) | Part::Other { .. });
            match *part {
                Part::Text { text, .. } => content.text(text, ""),
                Part::Thinking { text, .. } => {
                    content.raw(&format!(r#"{{"type":"think","think":"{}"}}"#, text.escaped()));
                }
                Part::ToolUse { id, name, input, .. } => {
                    let (id, name, args) = (id.escaped(), name.escaped(), json::string(input));
                    content.raw(&format!(
                        r#"{{"type":"tool_call","tool_call":{{"id":"{id}","name":"{name}","args":{args}}}}}"#
                    ));
                }
                Part::ToolResult { id, content: result, is_error, .. } => {
                    if is_error {
                        warnings.push("that a tool failed is not supported".into());
                    }
                    let (id, output) = (id.escaped(), text_of(result));
                    content.raw(&format!(
                        r#"{{"type":"tool_call","tool_call":{{"id":"{id}","output":{output}}}}}"#
                    ));
                }
                Part::Media(_) | Part::Other { .. } => {}
            }
        }
        let text = text.unwrap_or_else(|| "\"\"".to_owned());
        let content = match is_plain {
            true => String::new(),
            false => format!(",\"content\":{}", content.finish_list()),
        };
        out.push_str(&format!(
            r#"{{"messageId":"{id}",{parent}"createdAt":{time},"isCreatedByUser":{is_user},"text":{text}{content}}}"#
        ));
    }
}

/// Adds the messages of a message of LibreChat.
fn read_message(fields: &json::Object<'_>, drafts: &mut Vec<Draft>) {
    let is_user = fields.is_true("isCreatedByUser");
    let role = if is_user { Role::User } else { Role::Assistant };
    let mut parts = NewParts::default();
    let mut results = NewParts::default();
    let content = fields.get("content").filter(|content| json::is_list(content));
    for (_, part) in content.map(json::objects).into_iter().flatten() {
        let kind = part.get_str("type").map(Str::text).unwrap_or_default();
        let text = |key: &str| {
            let value = part.get(key)?;
            Str::of(value).or_else(|| json::get_str(value, "value"))
        };
        match &*kind {
            "text" => push_text(text("text"), &mut parts),
            "think" => {
                if let Some(text) = text("think").filter(|text| !text.is_empty()) {
                    parts.thinking(text, "");
                }
            }
            "tool_call" => {
                let call = json::Object::of(part.get("tool_call").unwrap_or("{}"));
                let Some(id) = call.get_str("id") else { continue };
                if let Some(name) = call.get_str("name") {
                    parts.call(id, name, &input_of(call.get("args").unwrap_or("{}")), "");
                }
                if let Some(output) = call.get("output").filter(|it| Str::of(it).is_some()) {
                    results.result(id, Some(output), false, "");
                }
            }
            _ => {}
        }
    }
    if parts.is_empty() && results.is_empty() {
        push_text(fields.get_str("text"), &mut parts);
    }
    if !parts.is_empty() {
        drafts.push(Draft::Converted {
            role,
            content: parts.finish(),
            fields: String::new(),
            provider: None,
            model: fields.get_str("model").filter(|_| !is_user).map(|it| it.escaped().to_owned()),
        });
    }
    if !results.is_empty() {
        drafts.push(Draft::converted(Role::Tool, results.finish()));
    }
}
