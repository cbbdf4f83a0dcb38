//! Codec of sessions that `opencode export` writes: `{info, messages: [{info, parts}]}`.
//!
//! | in the file | conversion |
//! |---|---|
//! | a message of the user | its texts and files |
//! | a message of the assistant | one message per step (`step-start`): reasoning, text and calls, and a message with the results |
//! | `tool` | a call and, if it has an `output` or `error`, its result |
//! | a message of the assistant that is a summary | COMPRESS of all messages before it |
//! | all other parts | stored with the message, for export |

use recto_core::Role;

use super::message_list::{Draft, FieldError};
use super::new_parts::{NewParts, kind_of};
use super::session::{
    Effect, Place, Record, SessionCodec, SessionState, plain_text, push_text, text_of,
};
use super::{Head, Likelihood};
use crate::Format;
use crate::json::{self, Str};
use crate::media::MediaBody;
use crate::parts::{MessageParts, Part};

pub(crate) struct OpenCode;

impl SessionCodec for OpenCode {
    fn format(&self) -> Format {
        Format::OpenCode
    }

    fn recognise(&self, head: &Head) -> Likelihood {
        for object in head.objects() {
            let listed = json::get(object, "messages").map(json::items).into_iter().flatten();
            let has_role = |record: &str| {
                let info = json::get(record, "info");
                info.is_some_and(|info| json::get_str(info, "role").is_some())
                    && json::get(record, "parts").is_some_and(json::is_list)
            };
            if std::iter::once(object).chain(listed).any(has_role) {
                return Likelihood::Declared;
            }
        }
        Likelihood::No
    }

    fn list_keys(&self) -> &'static [&'static str] {
        &["messages"]
    }

    fn new_document(&self) -> Option<&'static str> {
        Some(r#"{"info":{},"messages":null}"#)
    }

    fn title(&self, info: &str) -> Option<String> {
        let title = json::get_str(info, "title")?;
        json::get(info, "projectID").map(|_| title.text().into_owned())
    }

    fn read<'a>(
        &self,
        record: &'a str,
        _state: &mut SessionState,
    ) -> Result<Record<'a>, FieldError> {
        let fields = json::Object::of(record);
        let mut read = Record::without_message(record);
        let Some(info) = fields.get("info") else { return Ok(read) };
        let info = json::Object::of(info);
        read.id = info.get_str("id");
        read.session = info.get_str("sessionID");
        let created = info.get("time").and_then(|time| json::get(time, "created"));
        read.time = created.and_then(|time| time.parse().ok());
        let parts = fields.get("parts").unwrap_or("[]");
        read.foreign = parts;
        match info.get_str("role").map(Str::escaped) {
            Some("user") => {
                let mut content = NewParts::default();
                json::objects(parts).for_each(|(_, part)| read_shown(&part, &mut content));
                if !content.is_empty() {
                    read.drafts.push(Draft::converted(Role::User, content.finish()));
                }
            }
            Some("assistant") => {
                read_steps(parts, &info, &mut read);
                if info.is_true("summary") && !read.drafts.is_empty() {
                    read.effect = Effect::Compaction { first_kept: None, keeps_system: true };
                }
            }
            role => {
                let role = role.unwrap_or_default();
                let reason = format!("role must be user or assistant, not {role:?}");
                return Err(FieldError::new("info.role", reason));
            }
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
        let mut parts = NewParts::default();
        let text = plain_text(message, warnings);
        let mut calls = NewParts::default();
        for part in &message.parts {
            match *part {
                Part::Thinking { text, .. } => {
                    let mut part = String::from(r#"{"type":"reasoning","text":"#);
                    json::push_str(text, &mut part);
                    part.push('}');
                    parts.raw(&part);
                }
                Part::ToolUse { id, name, input, .. } => {
                    let state = format!(r#"{{"status":"pending","input":{input}}}"#);
                    calls.raw(&tool_part(id, name, &state));
                }
                // A result is in a separate record, because its call may be in another message.
                Part::ToolResult { id, content, is_error, .. } => {
                    let name = place.names.of(id).unwrap_or(Str::plain("tool"));
                    let text = text_of(content);
                    let state = match is_error {
                        true => format!(r#"{{"status":"error","error":{text}}}"#),
                        false => format!(r#"{{"status":"completed","output":{text}}}"#),
                    };
                    calls.raw(&tool_part(id, name, &state));
                }
                _ => {}
            }
        }
        if let Some(text) = text {
            parts.raw(&format!(r#"{{"type":"text","text":{text}}}"#));
        }
        json::items(&calls.finish_list()).for_each(|call| parts.raw(call));
        let is_tool = message.parts.iter().any(|part| matches!(part, Part::ToolResult { .. }));
        let role = match message.role {
            Role::Assistant => "assistant",
            _ if is_tool => "assistant",
            _ => "user",
        };
        if message.role == Role::System {
            warnings.push("a system message is written as a message of the user".into());
        }
        let (id, session) = (place.id(0), place.session());
        let (time, parts) = (place.time.unwrap_or(0), parts.finish_list());
        out.push_str(&format!(
            r#"{{"info":{{"id":"{id}","sessionID":{session},"role":"{role}","time":{{"created":{time}}}}},"parts":{parts}}}"#
        ));
    }
}

fn tool_part(id: Str<'_>, name: Str<'_>, state: &str) -> String {
    let mut part = String::from(r#"{"type":"tool","callID":"#);
    json::push_str(id, &mut part);
    part.push_str(",\"tool\":");
    json::push_str(name, &mut part);
    part.push_str(&format!(",\"state\":{state}}}"));
    part
}

/// Adds a text or file that the model receives.
fn read_shown(part: &json::Object<'_>, content: &mut NewParts) {
    let kind = part.get_str("type").map(Str::text).unwrap_or_default();
    match &*kind {
        "text" if !part.is_true("ignored") => push_text(part.get_str("text"), content),
        "file" => {
            if let Some(url) = part.get_str("url") {
                let media_type = part.get_str("mime").unwrap_or(Str::plain(""));
                let body = url.escaped().strip_prefix("data:").and_then(|data| {
                    let (_, data) = data.split_once(";base64,")?;
                    Some(MediaBody::Base64 { media_type, data: Str::escaped_text(data) })
                });
                let kind = kind_of(&media_type.text());
                let body = body.unwrap_or(MediaBody::Url(url));
                content.media(kind, body, part.get_str("filename"), "");
            }
        }
        _ => {}
    }
}

/// Adds the messages of the steps of an assistant's message.
fn read_steps<'a>(parts: &'a str, info: &json::Object<'a>, read: &mut Record<'a>) {
    let model = info.get_str("modelID").map(|model| model.escaped().to_owned());
    let provider = info.get_str("providerID").map(Str::text);
    let provider = match provider.as_deref() {
        Some("anthropic") => Some("anthropic"),
        Some("google") => Some("google"),
        Some("openai") => Some("openai"),
        _ => None,
    };
    let mut said = NewParts::default();
    let mut results = NewParts::default();
    let mut drafts = Vec::new();
    let mut end_step = |said: &mut NewParts, results: &mut NewParts| {
        if !said.is_empty() {
            drafts.push(Draft::Converted {
                role: Role::Assistant,
                content: std::mem::take(said).finish(),
                fields: String::new(),
                provider: provider.map(str::to_owned),
                model: model.clone(),
            });
        }
        if !results.is_empty() {
            let results = std::mem::take(results).finish();
            drafts.push(Draft::converted(Role::Tool, results));
        }
    };
    for (_, part) in json::objects(parts) {
        let kind = part.get_str("type").map(Str::text).unwrap_or_default();
        match &*kind {
            "step-start" => end_step(&mut said, &mut results),
            "reasoning" => {
                if let Some(text) = part.get_str("text").filter(|text| !text.is_empty()) {
                    said.thinking(text, "");
                }
            }
            "tool" => read_tool(&part, &mut said, &mut results),
            _ => {
                // A text after results belongs to the next step.
                if kind == "text" && !results.is_empty() {
                    end_step(&mut said, &mut results);
                }
                read_shown(&part, &mut said);
            }
        }
    }
    end_step(&mut said, &mut results);
    read.drafts = drafts;
}

fn read_tool(part: &json::Object<'_>, said: &mut NewParts, results: &mut NewParts) {
    let (Some(id), Some(name)) = (part.get_str("callID"), part.get_str("tool")) else { return };
    let state = json::Object::of(part.get("state").unwrap_or("{}"));
    // A result of a call in an earlier message has no input.
    if state.get("input").is_some() || state.get("output").or(state.get("error")).is_none() {
        said.call(id, name, state.get("input").unwrap_or("{}"), "");
    }
    let as_text = |value: &str| match Str::of(value) {
        Some(_) => value.to_owned(),
        None => json::string(value),
    };
    match (state.get("output"), state.get("error")) {
        (Some(output), _) => results.result(id, Some(&as_text(output)), false, ""),
        (None, Some(error)) => results.result(id, Some(&as_text(error)), true, ""),
        (None, None) => {}
    }
}
