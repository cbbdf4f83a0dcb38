//! ShareGPT: `{"conversations": [{"from": "human", "value": "…"}]}`, in a list or as JSON lines.
//!
//! Many variants are in use: `role` and `content` instead of `from` and `value`, other names for the
//! speakers. Calls are a text that holds `{"name", "arguments"}`; they have no ids, so a call and the
//! next observation belong together.

use recto_core::Role;

use super::message_list::{CallNames, Draft, Memory, MessageForm, Misfit};
use super::new_parts::NewParts;
use super::{Head, Likelihood};
use crate::Format;
use crate::json::{self, Str};
use crate::parts::{MessageParts, Part};

pub(crate) struct ShareGpt;

impl MessageForm for ShareGpt {
    fn recognise(&self, head: &Head) -> Likelihood {
        let mut most = Likelihood::No;
        for object in head.objects() {
            let listed = json::get(object, "conversations").map(json::items).into_iter().flatten();
            for message in std::iter::once(object).chain(listed) {
                if json::get_str(message, "from").is_some() && json::get(message, "value").is_some()
                {
                    most = Likelihood::Surely;
                }
            }
            if json::get(object, "conversations").is_some_and(json::is_list) {
                most = most.max(Likelihood::Likely);
            }
        }
        most
    }

    fn format(&self) -> Format {
        Format::ShareGpt
    }

    fn list_keys(&self) -> &'static [&'static str] {
        &["conversations", "conversation"]
    }

    fn read(&self, foreign: &str, memory: &mut Memory) -> Result<Vec<Draft>, Misfit> {
        let from = json::get_str(foreign, "from").or_else(|| json::get_str(foreign, "role"));
        let from =
            from.ok_or_else(|| Misfit::new("from", "from is missing; it says who speaks"))?;
        let value = json::get(foreign, "value").or_else(|| json::get(foreign, "content"));
        let Some(text) = value.and_then(Str::of) else {
            return Err(Misfit::new("value", "value is missing; it is a string"));
        };
        let mut parts = NewParts::default();
        let mut fields = String::new();
        let role = match &*from.text() {
            "system" => Role::System,
            "human" | "user" => Role::User,
            "gpt" | "chatgpt" | "assistant" | "model" | "bing" | "bard" => Role::Assistant,
            "function_call" | "tool_call" => {
                read_call(text, memory, &mut parts);
                Role::Assistant
            }
            "observation" | "tool" | "function_response" | "tool_response" | "function" => {
                let id = memory.answer("").unwrap_or_else(|| format!("sharegpt_{}", memory.count));
                parts.result(Str::plain(&id), value, false, "");
                Role::Tool
            }
            // Somebody else: their name says who.
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
            return Ok(vec![Draft::Made { role, content, fields, provider, model }]);
        }
        Ok(vec![Draft::made(role, parts.finish())])
    }

    fn write(
        &self,
        pieces: &[MessageParts<'_>],
        _names: &CallNames<'_>,
        out: &mut String,
        remarks: &mut Vec<String>,
    ) {
        let mut is_first = true;
        for message in pieces {
            write_message(message, &mut is_first, out, remarks);
        }
    }
}

/// A text that holds a call; any other text is one that was said.
fn read_call(text: Str<'_>, memory: &mut Memory, parts: &mut NewParts) {
    let plain = text.text();
    let call = json::checked(&plain).filter(|call| json::is_object(call));
    let name = call.and_then(|call| json::get_str(call, "name"));
    let (Some(call), Some(name)) = (call, name) else { return };
    let id = format!("sharegpt_{}", memory.count);
    let input = json::get(call, "arguments").or(json::get(call, "parameters")).unwrap_or("{}");
    parts.call(Str::plain(&id), name, input, "");
    memory.call("", id); // results name no tool
}

fn write_message(
    message: &MessageParts<'_>,
    is_first: &mut bool,
    out: &mut String,
    remarks: &mut Vec<String>,
) {
    let mut say = |from: Str<'_>, value: &str| {
        if !std::mem::replace(is_first, false) {
            out.push(',');
        }
        out.push_str("{\"from\":");
        json::push_str(from, out);
        out.push_str(",\"value\":\"");
        out.push_str(value);
        out.push_str("\"}");
    };
    let speaker = match message.role {
        Role::System => "system",
        Role::Assistant => "gpt",
        Role::Tool => "observation",
        Role::User => "human",
    };
    let speaker = match (message.role, message.name) {
        (Role::User, Some(name)) => name,
        _ => Str::plain(speaker),
    };
    let mut said: Option<String> = None;
    for part in &message.parts {
        match *part {
            Part::Text { text, .. } => {
                let so_far = said.get_or_insert_default();
                if !so_far.is_empty() {
                    so_far.push_str("\\n");
                }
                so_far.push_str(text.escaped());
            }
            Part::ToolUse { name, input, .. } => {
                if let Some(said) = said.take() {
                    say(speaker, &said);
                }
                let mut call = String::from("{\"name\":");
                json::push_str(name, &mut call);
                call.push_str(",\"arguments\":");
                call.push_str(input);
                call.push('}');
                let mut value = String::new();
                json::escape_into(&json::spaced(&call), &mut value);
                say(Str::plain("function_call"), &value);
            }
            Part::ToolResult { content, .. } => {
                let texts = Part::of_result(content).into_iter().filter_map(|part| match part {
                    Part::Text { text, .. } => Some(text.escaped()),
                    _ => None,
                });
                let texts: Vec<&str> = texts.collect();
                say(Str::plain("observation"), &texts.join("\\n"));
            }
            Part::Thinking { .. } => remarks.push("a thought has no place".into()),
            Part::Media(_) => remarks.push("an image, audio or file has no place".into()),
            Part::Other { kind, .. } => {
                remarks.push(format!("a part of type {} has no place", kind.text()));
            }
        }
    }
    if let Some(said) = said {
        say(speaker, &said);
    }
}
