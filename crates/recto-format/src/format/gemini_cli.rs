//! Codec of Gemini CLI sessions: a document with `messages`, or JSON lines.
//!
//! | in the file | conversion |
//! |---|---|
//! | `user` | a message of the user |
//! | `gemini` | thoughts, text and calls of the assistant, and a message with the results of the calls |
//! | a record with the id of an earlier one | it replaces the earlier one |
//! | `$rewindTo` | ROLLBACK: the record with that id and all later ones leave the view |
//! | `info`, `error`, `warning`, `$set` and other records | stored with the next message, for export |

use recto_core::Role;

use super::gemini::Gemini;
use super::message_list::{Draft, FieldError, MessageCodec as _};
use super::new_parts::NewParts;
use super::session::{
    Effect, Place, Record, RepeatedId, SessionCodec, SessionState, plain_text, push_text,
};
use super::{Head, Likelihood};
use crate::Format;
use crate::json::{self, Str};
use crate::parts::{MessageParts, Part};

pub(crate) struct GeminiCli;

impl SessionCodec for GeminiCli {
    fn format(&self) -> Format {
        Format::GeminiCli
    }

    fn recognise(&self, head: &Head) -> Likelihood {
        let mut best = Likelihood::No;
        for object in head.objects() {
            let has = |key: &str| json::get(object, key).is_some();
            if has("sessionId") && has("projectHash") {
                return Likelihood::Declared;
            }
            let listed = json::get(object, "messages").map(json::items).into_iter().flatten();
            for record in std::iter::once(object).chain(listed) {
                let is_model = json::get_str(record, "type").is_some_and(|it| it.is("gemini"));
                if is_model && json::get(record, "id").is_some() {
                    best = best.max(Likelihood::Certain);
                }
            }
        }
        best
    }

    fn list_keys(&self) -> &'static [&'static str] {
        &["messages"]
    }

    fn repeated_id(&self) -> RepeatedId {
        RepeatedId::Replacement
    }

    fn read<'a>(
        &self,
        record: &'a str,
        state: &mut SessionState,
    ) -> Result<Record<'a>, FieldError> {
        let fields = json::Object::of(record);
        let mut read = Record::without_message(record).with_time(&fields);
        if let Some(to) = fields.get_str("$rewindTo") {
            read.effect = Effect::Rewind(to);
            return Ok(read);
        }
        let kind = fields.get_str("type").map(Str::text).unwrap_or_default();
        let content = fields.get("content").or_else(|| fields.get("parts"));
        match &*kind {
            "user" | "gemini" | "model" => read.id = fields.get_str("id"),
            "" => {
                read.session = fields.get_str("sessionId");
                return Ok(read);
            }
            "info" | "error" | "warning" => return Ok(read),
            other => {
                state.unknown_kind("type", other);
                return Ok(read);
            }
        }
        if kind == "user" {
            return match content {
                Some(text) if Str::of(text).is_some_and(|text| !text.is_empty()) => {
                    Ok(read.unchanged(Role::User, text))
                }
                Some(parts) if Str::of(parts).is_none() => {
                    let content = format!(r#"{{"role":"user","parts":{}}}"#, listed(parts));
                    if content.ends_with("[]}") {
                        return Ok(read);
                    }
                    read.drafts = Gemini.read(&content, &mut state.list)?;
                    Ok(read)
                }
                _ => Ok(read),
            };
        }
        read_answer(&fields, content, &mut read, state)?;
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
        if place.number == 0 {
            let session = place.session();
            out.push_str(&format!(
                r#"{{"sessionId":{session},"projectHash":"","startTime":{time},"lastUpdated":{time}}},"#
            ));
        }
        let text = plain_text(message, warnings);
        let is_result = |part: &Part<'_>| matches!(part, Part::ToolResult { .. });
        if message.role == Role::Assistant {
            let text = text.unwrap_or_else(|| "\"\"".to_owned());
            out.push_str(&format!(
                r#"{{"id":"{id}","timestamp":{time},"type":"gemini","content":{text}"#
            ));
            write_thoughts_and_calls(message, &time, out);
            out.push('}');
        } else if message.parts.iter().any(is_result) {
            let mut contents = String::new();
            Gemini.write(std::slice::from_ref(message), place.names, &mut contents, warnings);
            let parts = json::get(&contents, "parts").unwrap_or("[]");
            out.push_str(&format!(
                r#"{{"id":"{id}","timestamp":{time},"type":"user","content":{parts}}}"#
            ));
        } else {
            if message.role == Role::System {
                warnings.push("a system message is written as a message of the user".into());
            }
            let text = text.unwrap_or_else(|| "\"\"".to_owned());
            out.push_str(&format!(
                r#"{{"id":"{id}","timestamp":{time},"type":"user","content":[{{"text":{text}}}]}}"#
            ));
        }
    }
}

/// Parts as a list: a single part becomes a list, and each string in a list becomes a text part.
fn listed(parts: &str) -> String {
    if !json::is_list(parts) {
        return format!("[{parts}]");
    }
    let part = |part: &str| match Str::of(part) {
        Some(_) => format!("{{\"text\":{part}}}"),
        None => part.to_owned(),
    };
    let parts: Vec<String> = json::items(parts).map(part).collect();
    format!("[{}]", parts.join(","))
}

fn read_answer<'a>(
    fields: &json::Object<'a>,
    content: Option<&'a str>,
    read: &mut Record<'a>,
    state: &mut SessionState,
) -> Result<(), FieldError> {
    let mut parts = NewParts::default();
    for thought in fields.get("thoughts").map(json::items).into_iter().flatten() {
        let text = |key: &str| json::get_str(thought, key).filter(|text| !text.is_empty());
        let text = match (text("subject"), text("description")) {
            (Some(subject), Some(more)) => format!("{}\\n{}", subject.escaped(), more.escaped()),
            (Some(text), None) | (None, Some(text)) => text.escaped().to_owned(),
            (None, None) => continue,
        };
        parts.thinking(Str::escaped_text(&text), "");
    }
    match content {
        Some(content) if Str::of(content).is_some() => push_text(Str::of(content), &mut parts),
        Some(content) => {
            let content = format!(r#"{{"role":"model","parts":{}}}"#, listed(content));
            if !content.ends_with("[]}")
                && let [Draft::Converted { content, .. }] =
                    &Gemini.read(&content, &mut state.list)?[..]
            {
                json::items(content).for_each(|part| parts.raw(part));
            }
        }
        None => {}
    }
    let mut results = NewParts::default();
    for (number, (_, call)) in
        fields.get("toolCalls").map(json::objects).into_iter().flatten().enumerate()
    {
        let Some(name) = call.get_str("name") else { continue };
        let generated = format!("gemini_cli_call_{}_{number}", state.list.message_count);
        let id = call.get_str("id").unwrap_or(Str::plain(&generated));
        parts.call(id, name, call.get("args").unwrap_or("{}"), "");
        if let Some(result) = call.get("result") {
            let failed = call.get_str("status").is_some_and(|status| status.is("error"));
            results.result(id, Some(&result_text(result)), failed, "");
        }
    }
    if parts.is_empty() {
        return Ok(());
    }
    read.drafts.push(Draft::Converted {
        role: Role::Assistant,
        content: parts.finish(),
        fields: String::new(),
        provider: Some("google".to_owned()),
        model: fields.get_str("model").map(|model| model.escaped().to_owned()),
    });
    if !results.is_empty() {
        read.drafts.push(Draft::converted(Role::Tool, results.finish()));
    }
    Ok(())
}

/// The text of a result as a JSON string: the result if it is a string, else the string `output` or `error`
/// that is the only field of its only response, else the JSON of the result.
fn result_text(result: &str) -> String {
    if Str::of(result).is_some() {
        return result.to_owned();
    }
    let mut responses = json::items(result).filter_map(|part| {
        let response = json::get(json::get(part, "functionResponse")?, "response")?;
        Some(json::Object::of(response))
    });
    if let (Some(only), None) = (responses.next(), responses.next())
        && let Some((key, text)) = only.only()
        && matches!(key.escaped(), "output" | "error")
        && Str::of(text).is_some()
    {
        return text.to_owned();
    }
    json::string(result)
}

fn write_thoughts_and_calls(message: &MessageParts<'_>, time: &str, out: &mut String) {
    let mut thoughts = NewParts::default();
    let mut calls = NewParts::default();
    for part in &message.parts {
        match *part {
            Part::Thinking { text, .. } => {
                let mut thought = String::from(r#"{"subject":"","description":"#);
                json::push_str(text, &mut thought);
                thought.push_str(&format!(",\"timestamp\":{time}}}"));
                thoughts.raw(&thought);
            }
            Part::ToolUse { id, name, input, .. } => {
                let mut call = String::from("{\"id\":");
                json::push_str(id, &mut call);
                call.push_str(",\"name\":");
                json::push_str(name, &mut call);
                call.push_str(&format!(",\"args\":{input},\"status\":\"success\"}}"));
                calls.raw(&call);
            }
            _ => {}
        }
    }
    out.push_str(&format!(",\"thoughts\":{}", thoughts.finish_list()));
    if !calls.is_empty() {
        out.push_str(&format!(",\"toolCalls\":{}", calls.finish_list()));
    }
}
