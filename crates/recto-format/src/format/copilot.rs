//! Codec of GitHub Copilot CLI sessions: JSON lines of events `{type, data, id, timestamp, parentId}`.
//!
//! | in the file | conversion |
//! |---|---|
//! | `system.message`, `user.message` | a message; a user message has the text that the model received |
//! | `assistant.message` | reasoning, text and calls of the assistant |
//! | `tool.execution_complete` | a message of role `tool` |
//! | events with `parentToolCallId` | messages of the subagent of that call: a fork that starts empty |
//! | `session.compaction_complete` with a summary | COMPRESS of all visible messages except system messages |
//! | `session.snapshot_rewind` | the event with the id `upToEventId` and all later ones leave the view |
//! | all other events | stored with the next message, for export |

use recto_core::Role;

use super::message_list::{Draft, FieldError};
use super::new_parts::NewParts;
use super::session::{
    Effect, Parent, Place, Record, SessionCodec, SessionState, input_of, plain_text, push_text,
    text_of,
};
use super::{Head, Likelihood};
use crate::Format;
use crate::json::{self, Str};
use crate::parts::{MessageParts, Part};

pub(crate) struct Copilot;

/// Prefixes of the types of events.
const AREAS: [&str; 9] = [
    "session.",
    "system.",
    "user.",
    "assistant.",
    "tool.",
    "hook.",
    "subagent.",
    "skill.",
    "abort",
];

impl SessionCodec for Copilot {
    fn format(&self) -> Format {
        Format::Copilot
    }

    fn recognise(&self, head: &Head) -> Likelihood {
        let mut best = Likelihood::No;
        for event in head.objects() {
            let kind = json::get_str(event, "type").map(Str::text).unwrap_or_default();
            let has_data = json::get(event, "data").is_some_and(json::is_object);
            let found = match &*kind {
                _ if !has_data => Likelihood::No,
                "session.start"
                | "user.message"
                | "assistant.message"
                | "tool.execution_complete" => Likelihood::Certain,
                kind if AREAS.iter().any(|area| kind.starts_with(area)) => Likelihood::Likely,
                _ => Likelihood::No,
            };
            best = best.max(found);
        }
        best
    }

    fn parent_field(&self) -> Option<&'static str> {
        Some("parentId")
    }

    fn read<'a>(&self, event: &'a str, state: &mut SessionState) -> Result<Record<'a>, FieldError> {
        let fields = json::Object::of(event);
        let mut record = Record::without_message(event).with_ids(&fields, "id", "parentId");
        // `parentId` is the id of the previous event in the file: the conversation is linear.
        record.parent = Parent::Previous;
        let kind = fields.get_str("type").map(Str::text).unwrap_or_default();
        let data = json::Object::of(fields.get("data").unwrap_or("{}"));
        record.branch = data.get_str("parentToolCallId");
        let text = |field: &str| {
            data.get(field).filter(|text| Str::of(text).is_some_and(|text| !text.is_empty()))
        };
        match &*kind {
            "session.start" => record.session = data.get_str("sessionId"),
            "system.message" => {
                if let Some(content) = text("content") {
                    let role = match data.get_str("role") {
                        Some(role) if role.is("user") => Role::User,
                        _ => Role::System,
                    };
                    return Ok(record.unchanged(role, content));
                }
            }
            "user.message" => {
                if let Some(content) = text("transformedContent").or_else(|| text("content")) {
                    return Ok(record.unchanged(Role::User, content));
                }
            }
            "assistant.message" => read_answer(&data, &mut record),
            "tool.execution_complete" => read_result(&data, &mut record)?,
            "session.compaction_complete" => {
                if let Some(summary) = text("summaryContent") {
                    record.effect = Effect::Compaction { first_kept: None, keeps_system: true };
                    return Ok(record.unchanged(Role::User, summary));
                }
            }
            "session.snapshot_rewind" => {
                if let Some(to) = data.get_str("upToEventId") {
                    record.effect = Effect::Rewind(to);
                }
            }
            kind if AREAS.iter().any(|area| kind.starts_with(area)) => {}
            other => state.unknown_kind("type", other),
        }
        Ok(record)
    }

    fn write(
        &self,
        message: &MessageParts<'_>,
        place: &Place<'_>,
        out: &mut String,
        warnings: &mut Vec<String>,
    ) {
        let mut events: Vec<(&str, String)> = Vec::new();
        if place.number == 0 {
            let (id, time) = (place.session(), place.timestamp());
            let data = format!(r#"{{"sessionId":{id},"version":1,"startTime":{time}}}"#);
            events.push(("session.start", data));
        }
        let text = plain_text(message, warnings);
        for part in &message.parts {
            if let Part::ToolResult { id, content, is_error, .. } = *part {
                let mut data = String::from("{\"toolCallId\":");
                json::push_str(id, &mut data);
                let (success, text) = (!is_error, text_of(content));
                data.push_str(&format!(
                    ",\"success\":{success},\"result\":{{\"content\":{text}}}}}"
                ));
                events.push(("tool.execution_complete", data));
            }
        }
        let has_only_results =
            message.parts.iter().all(|part| matches!(part, Part::ToolResult { .. }));
        let text = text.unwrap_or_else(|| "\"\"".to_owned());
        match message.role {
            Role::Assistant => events.push(("assistant.message", answer(message, &text))),
            Role::System => {
                events.push(("system.message", format!(r#"{{"content":{text},"role":"system"}}"#)));
            }
            _ if has_only_results && message.role == Role::Tool => {}
            _ => events.push(("user.message", format!(r#"{{"content":{text}}}"#))),
        }
        let time = place.timestamp();
        for (number, (kind, data)) in events.into_iter().enumerate() {
            if number > 0 {
                out.push(',');
            }
            let (id, parent) = (place.id(number), place.parent_field("parentId", number));
            out.push_str(&format!(
                r#"{{"type":"{kind}","data":{data},"id":"{id}",{parent}"timestamp":{time}}}"#
            ));
        }
    }
}

fn read_answer<'a>(data: &json::Object<'a>, record: &mut Record<'a>) {
    let mut parts = NewParts::default();
    if let Some(reasoning) = data.get_str("reasoningText").filter(|text| !text.is_empty()) {
        parts.thinking(reasoning, "");
    }
    push_text(data.get_str("content"), &mut parts);
    for (_, call) in data.get("toolRequests").map(json::objects).into_iter().flatten() {
        if let (Some(id), Some(name)) = (call.get_str("toolCallId"), call.get_str("name")) {
            parts.call(id, name, &input_of(call.get("arguments").unwrap_or("{}")), "");
        }
    }
    if parts.is_empty() {
        return;
    }
    record.drafts.push(Draft::Converted {
        role: Role::Assistant,
        content: parts.finish(),
        fields: String::new(),
        provider: None,
        model: data.get_str("model").map(|model| model.escaped().to_owned()),
    });
}

fn read_result<'a>(data: &json::Object<'a>, record: &mut Record<'a>) -> Result<(), FieldError> {
    let id = data
        .get_str("toolCallId")
        .ok_or_else(|| FieldError::new("data.toolCallId", "the id of the call is missing"))?;
    let result = data.get("result");
    let text = result.and_then(|result| json::get(result, "content").or(Some(result)));
    let error = || {
        let error = data.get("error")?;
        json::get(error, "message").or(Some(error))
    };
    let text = text.or_else(error).unwrap_or("\"\"");
    let text = match Str::of(text) {
        Some(_) => text.to_owned(),
        None => json::string(text),
    };
    let mut parts = NewParts::default();
    parts.result(id, Some(&text), data.get("success") == Some("false"), "");
    record.drafts.push(Draft::converted(Role::Tool, parts.finish()));
    Ok(())
}

/// The data of an `assistant.message`.
fn answer(message: &MessageParts<'_>, text: &str) -> String {
    let mut reasoning = String::new();
    let mut calls = NewParts::default();
    for part in &message.parts {
        match *part {
            Part::Thinking { text, .. } => {
                if !reasoning.is_empty() {
                    reasoning.push_str("\\n");
                }
                reasoning.push_str(text.escaped());
            }
            Part::ToolUse { id, name, input, .. } => {
                let mut call = String::from(r#"{"toolCallId":"#);
                json::push_str(id, &mut call);
                call.push_str(",\"name\":");
                json::push_str(name, &mut call);
                // Import parses a string as JSON, so an input that is a string is encoded twice.
                let input = match Str::of(input) {
                    Some(_) => json::string(input),
                    None => input.to_owned(),
                };
                call.push_str(&format!(",\"arguments\":{input},\"type\":\"function\"}}"));
                calls.raw(&call);
            }
            _ => {}
        }
    }
    let reasoning = match reasoning.is_empty() {
        true => String::new(),
        false => format!(",\"reasoningText\":\"{reasoning}\""),
    };
    format!(r#"{{"content":{text},"toolRequests":{}{reasoning}}}"#, calls.finish_list())
}
