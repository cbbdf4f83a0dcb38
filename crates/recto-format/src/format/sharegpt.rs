//! Codec of ShareGPT: `{"conversations": [{"from": "human", "value": "…"}]}`, in a list or as JSON lines.
//!
//! Many variants exist: `role` and `content` instead of `from` and `value`, and other names of the roles.
//! A call is a text that contains `{"name", "arguments"}`. Calls have no ids, so a call and the next
//! observation belong together.

use recto_core::Role;

use super::message_list::{
    CallNames, Draft, FieldError, MessageCodec, ReadState, unsupported_part,
};
use super::new_parts::NewParts;
use super::{Head, Likelihood};
use crate::Format;
use crate::json::{self, Str};
use crate::parts::{MessageParts, Part};

pub(crate) struct ShareGpt;

impl MessageCodec for ShareGpt {
    fn recognise(&self, head: &Head) -> Likelihood {
        let mut best = Likelihood::No;
        for object in head.objects() {
            let listed = json::get(object, "conversations").map(json::items).into_iter().flatten();
            for message in std::iter::once(object).chain(listed) {
                if json::get_str(message, "from").is_some() && json::get(message, "value").is_some()
                {
                    best = Likelihood::Certain;
                }
            }
            if json::get(object, "conversations").is_some_and(json::is_list) {
                best = best.max(Likelihood::Likely);
            }
        }
        best
    }

    fn format(&self) -> Format {
        Format::ShareGpt
    }

    fn list_keys(&self) -> &'static [&'static str] {
        &["conversations", "conversation"]
    }

    fn read(&self, foreign: &str, state: &mut ReadState) -> Result<Vec<Draft>, FieldError> {
        let from = json::get_str(foreign, "from").or_else(|| json::get_str(foreign, "role"));
        let from =
            from.ok_or_else(|| FieldError::new("from", "from is missing; it must name the role"))?;
        let value = json::get(foreign, "value").or_else(|| json::get(foreign, "content"));
        let Some(text) = value.and_then(Str::of) else {
            return Err(FieldError::new("value", "value is missing; it must be a string"));
        };
        let mut parts = NewParts::default();
        let mut fields = String::new();
        let role = match &*from.text() {
            "system" => Role::System,
            "human" | "user" => Role::User,
            "gpt" | "chatgpt" | "assistant" | "model" | "bing" | "bard" => Role::Assistant,
            "function_call" | "tool_call" => {
                read_call(text, state, &mut parts);
                Role::Assistant
            }
            "observation" | "tool" | "function_response" | "tool_response" | "function" => {
                let id = state
                    .take_call_id("")
                    .unwrap_or_else(|| format!("sharegpt_{}", state.message_count));
                parts.result(Str::plain(&id), value, false, "");
                Role::Tool
            }
            // Any other author: a message of the user with that name.
            _ => {
                fields.push_str(",\"name\":");
                json::push_str(from, &mut fields);
                Role::User
            }
        };
        if parts.is_empty() {
            let content = match text.is_empty() {
                true => parts.finish(),
                false => value.unwrap_or_default().to_owned(),
            };
            let (provider, model) = (None, None);
            return Ok(vec![Draft::Converted { role, content, fields, provider, model }]);
        }
        Ok(vec![Draft::converted(role, parts.finish())])
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
            write_message(message, &mut is_first, out, warnings);
        }
    }
}

/// Reads a call from a text. A text without a call adds no part.
fn read_call(text: Str<'_>, state: &mut ReadState, parts: &mut NewParts) {
    let plain = text.text();
    let call = json::checked(&plain).filter(|call| json::is_object(call));
    let name = call.and_then(|call| json::get_str(call, "name"));
    let (Some(call), Some(name)) = (call, name) else { return };
    let id = format!("sharegpt_{}", state.message_count);
    let input = json::get(call, "arguments").or(json::get(call, "parameters")).unwrap_or("{}");
    parts.call(Str::plain(&id), name, input, "");
    state.add_call_id("", id); // results do not name the tool
}

fn write_message(
    message: &MessageParts<'_>,
    is_first: &mut bool,
    out: &mut String,
    warnings: &mut Vec<String>,
) {
    let mut write = |from: Str<'_>, value: &str| {
        if !std::mem::replace(is_first, false) {
            out.push(',');
        }
        out.push_str("{\"from\":");
        json::push_str(from, out);
        out.push_str(",\"value\":\"");
        out.push_str(value);
        out.push_str("\"}");
    };
    let author = match message.role {
        Role::System => "system",
        Role::Assistant => "gpt",
        Role::Tool => "observation",
        Role::User => "human",
    };
    let author = match (message.role, message.name) {
        (Role::User, Some(name)) => name,
        _ => Str::plain(author),
    };
    let mut pending: Option<String> = None;
    for part in &message.parts {
        match *part {
            Part::Text { text, .. } => {
                let texts = pending.get_or_insert_default();
                if !texts.is_empty() {
                    texts.push_str("\\n");
                }
                texts.push_str(text.escaped());
            }
            Part::ToolUse { name, input, .. } => {
                if let Some(texts) = pending.take() {
                    write(author, &texts);
                }
                let mut call = String::from("{\"name\":");
                json::push_str(name, &mut call);
                call.push_str(",\"arguments\":");
                call.push_str(input);
                call.push('}');
                let mut value = String::new();
                json::escape_into(&json::spaced(&call), &mut value);
                write(Str::plain("function_call"), &value);
            }
            Part::ToolResult { content, .. } => {
                let texts = Part::of_result(content).into_iter().filter_map(|part| match part {
                    Part::Text { text, .. } => Some(text.escaped()),
                    _ => None,
                });
                let texts: Vec<&str> = texts.collect();
                write(Str::plain("observation"), &texts.join("\\n"));
            }
            Part::Thinking { .. } => warnings.push("thinking is not supported".into()),
            Part::Media(_) => warnings.push("an image, audio or file is not supported".into()),
            Part::Other { kind, .. } => warnings.push(unsupported_part(kind)),
        }
    }
    if let Some(texts) = pending {
        write(author, &texts);
    }
}
