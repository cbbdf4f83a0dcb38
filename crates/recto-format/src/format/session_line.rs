//! Conversion of a session line to messages, and back to its original bytes.
//!
//! Session files contain more than messages: titles, snapshots, progress. `pending_lines.rs` keeps such
//! lines with the next message (`metadata.source.before`), so that export can write them again.
//!
//! A message stores the original of its line. To avoid storing a long text twice, the line's value that
//! the message contains with the same bytes is elided from the original: see [`ElidedValue`].

use std::borrow::Cow;

use recto_core::{Limits, Message, Role, Timestamp};

use super::message_list::{Draft, FieldError, without_unreadable_parts};
use crate::json::{self, Str};
use crate::parts::{MessageParts, Part};
use crate::source::{self, Source};
use crate::{Error, Format};

/// Size in bytes of pending lines above which a message is validated without them first.
const LARGE_BEFORE: usize = 64 << 10;

/// Calls `take` with the messages of each line.
pub(crate) fn by_line<'m>(
    messages: &mut dyn Iterator<Item = &'m Message>,
    mut take: impl FnMut(&[MessageParts<'m>]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut line: Vec<MessageParts<'m>> = Vec::new();
    for message in messages.map(MessageParts::of) {
        if line.last().is_some_and(|last| !is_next_piece(last, &message)) {
            take(&line)?;
            line.clear();
        }
        line.push(message);
    }
    if line.is_empty() { Ok(()) } else { take(&line) }
}

/// True if a message is the next piece of the line that the last one belongs to.
fn is_next_piece(last: &MessageParts<'_>, message: &MessageParts<'_>) -> bool {
    let (Some(before), Some(this)) = (last.source, message.source) else { return false };
    let is_same = before.original_hash.is_some()
        && before.original_hash.map(Str::escaped) == this.original_hash.map(Str::escaped);
    is_same && this.piece == before.piece + 1
}

/// Minimum length in bytes of a value that is elided.
const MIN_ELIDED_LEN: usize = 128;

/// A value of a line that the message contains with the same bytes.
struct ElidedValue {
    /// Its location in the message: `content`, `text` or `result`.
    field: &'static str,
    /// Its location in the line.
    at: usize,
    len: usize,
}

impl SessionLine<'_> {
    /// Finds the value to elide.
    fn elided_value(&self, draft: &Draft) -> Option<ElidedValue> {
        if self.foreign.len() < MIN_ELIDED_LEN {
            return None;
        }
        let own_content = self.role_and_content.map(|(_, content)| content);
        let own_content = own_content.filter(|content| content.len() >= MIN_ELIDED_LEN);
        let content = match draft {
            Draft::Unchanged => None,
            Draft::Converted { content, .. } => Some(content),
        };
        if let Some(own_content) = own_content
            && content.is_none_or(|content| content == own_content)
        {
            let (at, len) = (offset(own_content, self.json)?, own_content.len());
            return Some(ElidedValue { field: "content", at, len });
        }
        let content = content?;
        let text = content.strip_prefix(r#"[{"type":"text","text":"#);
        let result = content.strip_prefix(r#"[{"type":"tool_result","tool_use_id":"#);
        let inner = text.or_else(|| {
            let result = result?;
            result[json::end_of(result)..].strip_prefix(r#","content":"#)
        });
        // A single string only: a list of several parts has unescaped quotes inside.
        let inner = inner.and_then(|inner| inner.strip_suffix("}]"));
        let inner =
            inner.filter(|inner| inner.starts_with('"') && json::end_of(inner) == inner.len())?;
        let field = if text.is_some() { "text" } else { "result" };
        let foreign_at = offset(self.foreign, self.json)?;
        let at = foreign_at + find_value(inner, self.foreign)?;
        Some(ElidedValue { field, at, len: inner.len() }).filter(|it| it.len >= MIN_ELIDED_LEN)
    }

    /// The line with `null` in place of a value; `None` if the result is not JSON: the bytes of a text that
    /// starts with a separator also occur where one string ends and the next one starts.
    fn without(&self, elided: &ElidedValue) -> Option<String> {
        let (before, rest) = self.json.split_at_checked(elided.at)?;
        let (value, after) = rest.split_at_checked(elided.len)?;
        let line = [before, "null", after].concat();
        let inner = value.split_once('"').map_or("", |(_, inner)| inner);
        let may_span_strings = inner.trim_ascii_start().starts_with([',', ':', ']', '}']);
        (!may_span_strings || json::checked(&line).is_some()).then_some(line)
    }
}

/// Offset of a slice in its text.
fn offset(part: &str, whole: &str) -> Option<usize> {
    let at = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    (at + part.len() <= whole.len()).then_some(at)
}

/// Finds a value in a text. Searching for its first bytes is much faster than for the whole value.
fn find_value(value: &str, text: &str) -> Option<usize> {
    let start = &value.as_bytes()[..value.len().min(12)];
    let mut places = memchr::memmem::find_iter(text.as_bytes(), start).take(8);
    places.find(|at| text.as_bytes()[*at..].starts_with(value.as_bytes()))
}

/// Restores the line of a message; `None` if the message does not contain all of it.
pub(crate) fn original<'a>(message: &MessageParts<'a>) -> Option<Cow<'a, str>> {
    let source = message.source?;
    let original = source.original?;
    let Some(field) = source.elided_field else { return Some(Cow::Borrowed(original)) };
    let value = match (&*field.text(), &message.parts[..]) {
        ("content", _) => json::get(message.json, "content")?,
        ("result", [Part::ToolResult { content, .. }]) => (*content)?,
        ("text", [Part::Text { json, .. }]) => json::get(json, "text")?,
        _ => return None,
    };
    let before = original.get(..source.elided_at)?;
    let after = original.get(source.elided_at..)?.strip_prefix("null")?;
    Some(Cow::Owned([before, value, after].concat()))
}

/// The lines behind the last message of the file, if these messages contain it.
pub(crate) fn behind<'a>(
    messages: &[MessageParts<'a>],
    format: Format,
) -> impl Iterator<Item = &'a str> + use<'a> {
    let source = messages.last().and_then(|last| last.source);
    let source = source.filter(|source| source.is_from(format.name()));
    source.and_then(|source| source.behind).map(json::items).into_iter().flatten()
}

/// A line of a session file that contains a message.
pub(crate) struct SessionLine<'a> {
    pub(crate) format: Format,
    pub(crate) json: &'a str,
    /// The message inside the line, from which the drafts were read.
    pub(crate) foreign: &'a str,
    /// Role and content of the message, if it is a single one. The content is a slice of the line.
    pub(crate) role_and_content: Option<(Role, &'a str)>,
    /// The pending lines in front of it, as a JSON list.
    pub(crate) before: Option<&'a str>,
    pub(crate) timestamp: Option<Timestamp>,
}

impl SessionLine<'_> {
    /// Creates the messages of the line. Adds a warning for each unreadable part.
    pub(crate) fn messages(
        &self,
        drafts: &[Draft],
        warnings: &mut Vec<FieldError>,
    ) -> Result<Vec<Message>, FieldError> {
        match self.try_messages(drafts) {
            Ok(messages) => Ok(messages),
            Err(error) => {
                let (drafts, errors) =
                    without_unreadable_parts(drafts, self.foreign).ok_or(error)?;
                warnings.extend(errors);
                self.try_messages(&drafts)
            }
        }
    }

    fn try_messages(&self, drafts: &[Draft]) -> Result<Vec<Message>, FieldError> {
        let pieces = drafts.len();
        let hash = if pieces > 1 { source::hash(self.json) } else { String::new() };
        let mut messages = Vec::with_capacity(pieces);
        for (piece, draft) in drafts.iter().enumerate() {
            let is_first = piece == 0;
            let elided = if pieces == 1 { self.elided_value(draft) } else { None };
            let shortened = elided.as_ref().and_then(|elided| self.without(elided));
            let elided = elided.filter(|_| shortened.is_some());
            let original = shortened.as_deref().unwrap_or(self.json);
            let source = Source {
                elided_field: elided.as_ref().map(|elided| Str::plain(elided.field)),
                elided_at: elided.as_ref().map_or(0, |elided| elided.at),
                format: Some(Str::plain(self.format.name())),
                original_hash: (pieces > 1).then(|| Str::plain(&hash)),
                piece,
                pieces,
                original: is_first.then_some(original),
                before: self.before.filter(|_| is_first),
                ..Source::default()
            };
            // Pending lines stay pending after an invalid draft. Large ones are not copied for each such
            // draft, because the draft is validated without them first.
            if source.before.is_some_and(|before| before.len() > LARGE_BEFORE) {
                self.message(draft, Source { before: None, ..source })?;
            }
            messages.push(self.message(draft, source)?);
        }
        Ok(messages)
    }

    fn message(&self, draft: &Draft, source: Source<'_>) -> Result<Message, FieldError> {
        let converted;
        let draft = match (draft, self.role_and_content) {
            (Draft::Unchanged, Some((role, content))) => {
                converted = Draft::converted(role, content.to_owned());
                &converted
            }
            (draft, _) => draft,
        };
        let json = draft.to_json_at(self.timestamp, self.foreign, source);
        Message::from_checked_json(&json, &Limits::NONE).map_err(|error| FieldError::of(&error))
    }
}
