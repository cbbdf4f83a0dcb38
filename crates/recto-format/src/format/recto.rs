//! Recto's own messages: a list, an object with `messages`, or JSON lines. They are kept as they are.
//!
//! Messages that only say something are the same in other formats, and are read the same. A list that
//! would be taken for another format's, and read otherwise, stands in an object that says whose it is:
//! `{"format":"recto","messages":[…]}`.

use super::message_list::{CallNames, Draft, Memory, MessageForm, Misfit};
use super::{Head, Likelihood};
use crate::Format;
use crate::json::{self, Str};
use crate::parts::MessageParts;

pub(crate) struct Recto;

/// What says that a list is Recto's.
const MARKED: &str = r#"{"format":"recto","messages":null}"#;

fn likelihood(message: &str) -> Likelihood {
    let Some(role) = json::get_str(message, "role").map(Str::text) else { return Likelihood::No };
    let metadata = json::get(message, "metadata");
    let source = metadata.and_then(|metadata| json::get(metadata, "source"));
    if source.is_some_and(|source| json::get(source, "format").is_some()) {
        return Likelihood::Told;
    }
    let is_made_here = source.is_some_and(|source| json::get(source, "provider").is_some())
        || metadata.is_some_and(|metadata| json::get(metadata, "call").is_some());
    let mut most = if is_made_here { Likelihood::Told } else { Likelihood::No };
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
        most = most.max(if found { Likelihood::Told } else { Likelihood::No });
    }
    let is_timed = json::get(message, "timestamp").is_some_and(|it| it.parse::<i64>().is_ok());
    let is_own = is_timed || metadata.is_some_and(json::is_object);
    match content.is_some() && is_own {
        true => most.max(Likelihood::Maybe),
        false => most,
    }
}

/// Whether a tool part is in the nested form, which is Recto's alone.
pub(super) fn is_nested(part: &str) -> bool {
    let kind = json::get_str(part, "type").map(Str::text).unwrap_or_default();
    matches!(&*kind, "tool_use" | "tool_result")
        && json::get(part, &kind).is_some_and(json::is_object)
}

impl MessageForm for Recto {
    /// Nested tool parts, results in messages from the tool, thoughts under `text`, and `metadata.source` are only here.
    /// A list with nothing in it is nobody's, so it may be ours.
    fn recognise(&self, head: &Head) -> Likelihood {
        let mut most = match head.text().strip_prefix('[').map(str::trim_start) {
            Some(rest) if rest.starts_with(']') => Likelihood::Maybe,
            _ => Likelihood::No,
        };
        for object in head.objects() {
            let listed = json::get(object, "messages").filter(|list| json::is_list(list));
            if let Some(list) = listed {
                let is_told = json::get_str(object, "format").is_some_and(|it| it.is("recto"));
                let is_empty = json::items(list).next().is_none();
                most = most.max(match (is_told, is_empty) {
                    (true, _) => Likelihood::Told,
                    (false, true) => Likelihood::Maybe,
                    (false, false) => Likelihood::No,
                });
            }
            let listed = listed.map(json::items).into_iter().flatten();
            for message in std::iter::once(object).chain(listed) {
                most = most.max(likelihood(message));
            }
        }
        most
    }

    fn format(&self) -> Format {
        Format::Recto
    }

    fn list_keys(&self) -> &'static [&'static str] {
        &["messages"]
    }

    fn read(&self, _foreign: &str, _memory: &mut Memory) -> Result<Vec<Draft>, Misfit> {
        Ok(vec![Draft::AsItIs])
    }

    /// The mark is no message, and means nothing else.
    fn read_envelope(&self, key: &str, value: &str) -> Option<Result<Vec<Draft>, Misfit>> {
        (key == "format" && value == r#""recto""#).then(|| Ok(Vec::new()))
    }

    fn marked(&self) -> Option<&'static str> {
        Some(MARKED)
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
