//! Codec of Recto's own messages: a list, an object with `messages`, or JSON lines. Messages stay
//! unchanged.
//!
//! Plain text messages are the same in several formats. A list that would be recognised as another
//! format, and read differently, is written inside an object that declares its format:
//! `{"format":"recto","messages":[…]}`.

use super::message_list::{CallNames, Draft, FieldError, MessageCodec, ReadState};
use super::{Head, Likelihood};
use crate::Format;
use crate::json::{self, Str};
use crate::parts::MessageParts;

pub(crate) struct Recto;

/// The envelope that declares the format.
const DECLARING_ENVELOPE: &str = r#"{"format":"recto","messages":null}"#;

fn likelihood(message: &str) -> Likelihood {
    let Some(role) = json::get_str(message, "role").map(Str::text) else { return Likelihood::No };
    let metadata = json::get(message, "metadata");
    let source = metadata.and_then(|metadata| json::get(metadata, "source"));
    if source.is_some_and(|source| json::get(source, "format").is_some()) {
        return Likelihood::Declared;
    }
    let is_from_recto = source.is_some_and(|source| json::get(source, "provider").is_some())
        || metadata.is_some_and(|metadata| json::get(metadata, "call").is_some());
    let mut best = if is_from_recto { Likelihood::Declared } else { Likelihood::No };
    let content = json::get(message, "content");
    for part in content.map(json::items).into_iter().flatten() {
        let has = |key: &str| json::get(part, key).is_some();
        let kind = json::get_str(part, "type").map(Str::text).unwrap_or_default();
        let found = match &*kind {
            "tool_use" | "tool_result" if is_nested(part) => true,
            "tool_result" => role == "tool" && has("tool_use_id"),
            "thinking" => has("text"),
            "file" | "audio" => json::get(part, "source").is_some_and(json::is_object),
            _ => false,
        };
        best = best.max(if found { Likelihood::Declared } else { Likelihood::No });
    }
    let is_timed = json::get(message, "timestamp").is_some_and(|it| it.parse::<i64>().is_ok());
    let is_own = is_timed || metadata.is_some_and(json::is_object);
    match content.is_some() && is_own {
        true => best.max(Likelihood::Maybe),
        false => best,
    }
}

/// True for a tool part in the nested form, which only Recto has.
pub(super) fn is_nested(part: &str) -> bool {
    let kind = json::get_str(part, "type").map(Str::text).unwrap_or_default();
    matches!(&*kind, "tool_use" | "tool_result")
        && json::get(part, &kind).is_some_and(json::is_object)
}

impl MessageCodec for Recto {
    /// Only Recto has nested tool parts, results in messages of role `tool`, thinking in `text`, files and
    /// audio with an object `source`, `metadata.source` and `metadata.call`. A message with only a numeric
    /// timestamp or other metadata may be Recto's. An empty list is accepted because no other format claims
    /// it.
    fn recognise(&self, head: &Head) -> Likelihood {
        let mut best = match head.text().strip_prefix('[').map(str::trim_start) {
            Some(rest) if rest.starts_with(']') => Likelihood::Maybe,
            _ => Likelihood::No,
        };
        for object in head.objects() {
            let listed = json::get(object, "messages").filter(|list| json::is_list(list));
            if let Some(list) = listed {
                let is_declared = json::get_str(object, "format").is_some_and(|it| it.is("recto"));
                let is_empty = json::items(list).next().is_none();
                best = best.max(match (is_declared, is_empty) {
                    (true, _) => Likelihood::Declared,
                    (false, true) => Likelihood::Maybe,
                    (false, false) => Likelihood::No,
                });
            }
            let listed = listed.map(json::items).into_iter().flatten();
            for message in std::iter::once(object).chain(listed) {
                best = best.max(likelihood(message));
            }
        }
        best
    }

    fn format(&self) -> Format {
        Format::Recto
    }

    fn list_keys(&self) -> &'static [&'static str] {
        &["messages"]
    }

    fn read(&self, _foreign: &str, _memory: &mut ReadState) -> Result<Vec<Draft>, FieldError> {
        Ok(vec![Draft::Unchanged])
    }

    /// The field `format` only declares the format. It contains no message.
    fn read_envelope(&self, key: &str, value: &str) -> Option<Result<Vec<Draft>, FieldError>> {
        (key == "format" && value == r#""recto""#).then(|| Ok(Vec::new()))
    }

    fn declaring_envelope(&self) -> Option<&'static str> {
        Some(DECLARING_ENVELOPE)
    }

    fn write(
        &self,
        pieces: &[MessageParts<'_>],
        _names: &CallNames<'_>,
        out: &mut String,
        _remarks: &mut Vec<String>,
    ) {
        for (number, message) in pieces.iter().enumerate() {
            if number > 0 {
                out.push(',');
            }
            out.push_str(message.json);
        }
    }
}
