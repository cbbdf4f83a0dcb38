//! Codec of Claude Code's `stream-json` output, and of sessions of Claude Code for the web, which are
//! documents with `loglines`.
//!
//! | in the file | conversion |
//! |---|---|
//! | `user`, `assistant` | messages, read like those of Anthropic |
//! | a record with `isCompactSummary` | COMPRESS of all visible messages into its message |
//! | a record with `parent_tool_use_id` | a message of the subagent of that call: a fork that starts empty |
//! | all other records | stored with the next message, for export |

use super::anthropic::{self, Anthropic};
use super::message_list::{CallNames, FieldError, MessageCodec as _};
use super::session::{Effect, Place, Record, SessionCodec, SessionState};
use super::{Head, Likelihood};
use crate::Format;
use crate::json::{self, Str};
use crate::parts::MessageParts;

pub(crate) struct ClaudeStream;

impl SessionCodec for ClaudeStream {
    fn format(&self) -> Format {
        Format::ClaudeStream
    }

    fn recognise(&self, head: &Head) -> Likelihood {
        let mut best = Likelihood::No;
        for line in head.objects() {
            if json::get(line, "loglines").is_some_and(json::is_list) {
                return Likelihood::Declared;
            }
            // Lines of a session file have a parent, which may be null.
            if json::fields(line).any(|(key, _)| key.is("parentUuid")) {
                return Likelihood::No;
            }
            let has = |key: &str| json::get(line, key).is_some();
            let kind = json::get_str(line, "type").map(Str::escaped).unwrap_or_default();
            let found = match kind {
                // Session files have `sessionId`.
                "user" | "assistant" if has("session_id") && has("message") => Likelihood::Declared,
                "system" if has("session_id") && has("subtype") => Likelihood::Certain,
                "result" if has("session_id") => Likelihood::Certain,
                "stream_event" if has("event") => Likelihood::Certain,
                _ => Likelihood::No,
            };
            best = best.max(found);
        }
        best
    }

    fn list_keys(&self) -> &'static [&'static str] {
        &["loglines"]
    }

    fn parent_field(&self) -> Option<&'static str> {
        Some("parentUuid")
    }

    fn read<'a>(&self, line: &'a str, state: &mut SessionState) -> Result<Record<'a>, FieldError> {
        let fields = json::Object::of(line);
        let mut record = Record::without_message(line).with_ids(&fields, "uuid", "parentUuid");
        record.session = fields.get_str("session_id").or_else(|| fields.get_str("sessionId"));
        record.branch = fields.get_str("parent_tool_use_id");
        let kind = fields.get_str("type").map(Str::text).unwrap_or_default();
        let message = fields.get("message");
        match (&*kind, message) {
            ("user" | "assistant", Some(message)) if !fields.is_true("isApiErrorMessage") => {
                let is_empty = |content: &str| matches!(content, "[]" | "\"\"");
                if json::get(message, "content").is_some_and(is_empty) {
                    return Ok(record);
                }
                let read = anthropic::read(message).map_err(|error| {
                    FieldError::new(format!("message.{}", error.field), error.reason)
                })?;
                record.foreign = message;
                record.role_and_content = Some((read.role, read.content));
                record.drafts = read.drafts;
                if fields.is_true("isCompactSummary") {
                    record.effect = Effect::Compaction { first_kept: None, keeps_system: false };
                }
                Ok(record)
            }
            (
                "user" | "assistant" | "system" | "result" | "stream_event" | "summary"
                | "progress" | "queue-operation" | "env_manager_log" | "control_request"
                | "control_response" | "tool_progress" | "auth_status" | "rate_limit_event",
                _,
            ) => Ok(record),
            (other, _) => {
                state.unknown_kind("type", other);
                Ok(record)
            }
        }
    }

    fn write(
        &self,
        message: &MessageParts<'_>,
        place: &Place<'_>,
        out: &mut String,
        warnings: &mut Vec<String>,
    ) {
        let mut messages = String::new();
        let one = std::slice::from_ref(message);
        Anthropic.write(one, &CallNames::default(), &mut messages, warnings);
        let session = place.session();
        for (number, message) in json::items(&format!("[{messages}]")).enumerate() {
            if number > 0 {
                out.push(',');
            }
            let kind = json::get_str(message, "role").map_or("user", Str::escaped);
            let uuid = place.id(number);
            out.push_str(&format!(
                r#"{{"type":"{kind}","message":{message},"parent_tool_use_id":null,"session_id":{session},"uuid":"{uuid}"}}"#
            ));
        }
    }
}
