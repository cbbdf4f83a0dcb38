//! Codec of Qwen Code sessions: JSON lines that form a tree by `uuid` and `parentUuid`. The messages in them
//! are objects of the type `Content` of the Gemini API.
//!
//! | in the file | conversion |
//! |---|---|
//! | `user`, `assistant`, `tool_result` | messages, read like contents of Gemini |
//! | several lines with one `uuid` | one message per line; together they are one response of the model |
//! | `system` of subtype `chat_compression` | COMPRESS of all visible messages into `compressedHistory` |
//! | all other lines | stored with the next message, for export |

use recto_core::Role;

use super::gemini::Gemini;
use super::message_list::{Draft, FieldError, MessageCodec as _};
use super::session::{Effect, Place, Record, SessionCodec, SessionState};
use super::{Head, Likelihood};
use crate::Format;
use crate::json::{self, Str};
use crate::parts::{MessageParts, Part};

pub(crate) struct QwenCode;

impl SessionCodec for QwenCode {
    fn format(&self) -> Format {
        Format::QwenCode
    }

    fn recognise(&self, head: &Head) -> Likelihood {
        let mut best = Likelihood::No;
        for line in head.objects() {
            let has = |key: &str| json::fields(line).any(|(name, _)| name.escaped() == key);
            if !has("uuid") || !has("parentUuid") || !has("sessionId") {
                continue;
            }
            let message = json::get(line, "message");
            // Sessions of Claude Code have `content` in the place of `parts`.
            let found = match message {
                Some(message) if json::get(message, "parts").is_some() => Likelihood::Declared,
                None if has("systemPayload") => Likelihood::Declared,
                _ => Likelihood::No,
            };
            best = best.max(found);
        }
        best
    }

    fn parent_field(&self) -> Option<&'static str> {
        Some("parentUuid")
    }

    fn title(&self, line: &str) -> Option<String> {
        let payload = json::get(line, "systemPayload")?;
        Some(json::get_str(payload, "customTitle")?.text().into_owned())
    }

    fn read<'a>(&self, line: &'a str, state: &mut SessionState) -> Result<Record<'a>, FieldError> {
        let fields = json::Object::of(line);
        let mut record = Record::without_message(line).with_ids(&fields, "uuid", "parentUuid");
        record.session = fields.get_str("sessionId");
        let kind = fields.get_str("type").map(Str::text).unwrap_or_default();
        match &*kind {
            "user" | "assistant" | "tool_result" => {
                let Some(message) = fields.get("message") else { return Ok(record) };
                let parts = json::get(message, "parts").unwrap_or("[]");
                if json::items(parts).next().is_none() {
                    return Ok(record);
                }
                record.foreign = message;
                record.drafts = Gemini.read(message, &mut state.list)?;
                let model = fields.get_str("model").map(|model| model.escaped().to_owned());
                record.drafts.iter_mut().for_each(|draft| set_model(draft, model.as_deref()));
                Ok(record)
            }
            "system" => {
                let payload = fields.get("systemPayload").unwrap_or("{}");
                let history = json::get(payload, "compressedHistory");
                if let Some(history) = history.filter(|list| json::is_list(list)) {
                    for content in json::items(history) {
                        record.drafts.extend(Gemini.read(content, &mut state.list)?);
                    }
                    record.effect = Effect::Compaction { first_kept: None, keeps_system: false };
                }
                Ok(record)
            }
            other => {
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
        let mut contents = String::new();
        Gemini.write(std::slice::from_ref(message), place.names, &mut contents, warnings);
        let is_result = |part: &Part<'_>| matches!(part, Part::ToolResult { .. });
        let kind = match message.role {
            Role::Assistant => "assistant",
            _ if message.parts.iter().any(is_result) => "tool_result",
            _ => "user",
        };
        let (session, time) = (place.session(), place.timestamp());
        for (number, content) in json::items(&format!("[{contents}]")).enumerate() {
            if number > 0 {
                out.push(',');
            }
            let (uuid, parent) = (place.id(number), place.parent_field("parentUuid", number));
            out.push_str(&format!(
                r#"{{"uuid":"{uuid}",{parent}"sessionId":{session},"timestamp":{time},"type":"{kind}","message":{content}}}"#
            ));
        }
    }
}

/// Sets the model of a message, if its role is `assistant`.
pub(super) fn set_model(draft: &mut Draft, name: Option<&str>) {
    if let Draft::Converted { role: Role::Assistant, model, .. } = draft {
        *model = name.map(str::to_owned);
    }
}
