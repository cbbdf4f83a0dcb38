//! A line of a session file, and the messages that it becomes.
//!
//! Sessions of programs hold more than messages: titles, snapshots, progress. What is no message is
//! kept with the next one (`metadata.source.before`), so that the file can be written again.

use std::borrow::Cow;

use recto_core::{Limits, Message, Role, Timestamp};

use super::message_list::{Draft, Misfit};
use crate::Format;
use crate::json::{self, Str};
use crate::parts::{MessageParts, Part};
use crate::source::{self, Source};

/// Lines that are no messages and wait for the next one.
#[derive(Default)]
pub(crate) struct Before(String);

impl Before {
    /// A line that is JSON.
    pub(crate) fn add(&mut self, line: &str) {
        self.0.push(if self.0.is_empty() { '[' } else { ',' });
        self.0.push_str(line);
    }

    /// The list, which is empty afterwards.
    pub(crate) fn take(&mut self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        self.0.push(']');
        Some(std::mem::take(&mut self.0))
    }

    /// Undoes [`take`](Self::take).
    pub(crate) fn put_back(&mut self, list: Option<String>) {
        if let Some(mut list) = list {
            list.pop();
            self.0 = list;
        }
    }
}

/// What waits is not copied for nothing if it is longer.
const MUCH: usize = 64 << 10;

/// Whether a message is the next piece of the line that the last one is of.
pub(crate) fn is_next_piece(last: &MessageParts<'_>, message: &MessageParts<'_>) -> bool {
    let (Some(before), Some(this)) = (last.source, message.source) else { return false };
    let is_same = before.of.is_some() && before.of.map(Str::escaped) == this.of.map(Str::escaped);
    is_same && this.piece == before.piece + 1
}

/// A value that is shorter is kept with the rest of its line.
const LONG: usize = 128;

/// A value of a line that the message says with the same bytes: what it is in the message, and where
/// it stands in the line. A value cannot stand inside a string, where its quotes would be escaped; see
/// [`frame`] for one that stands between two strings.
fn hole<'a>(
    line: &str,
    foreign: &'a str,
    draft: &'a Draft,
) -> Option<(&'static str, usize, &'a str)> {
    let (kind, value) = match draft {
        _ if foreign.len() < LONG => return None,
        Draft::AsItIs => ("content", json::get(foreign, "content")?),
        Draft::Made { content, .. } => {
            let text = content.strip_prefix(r#"[{"type":"text","text":"#);
            let result = content.strip_prefix(r#"[{"type":"tool_result","tool_use_id":"#);
            let inner = text.or_else(|| {
                let at = memchr::memmem::find(result?.as_bytes(), br#","content":"#)?;
                result.map(|result| &result[at + r#","content":"#.len()..])
            });
            let inner = inner.and_then(|inner| inner.strip_suffix("}]"));
            // Only one string: a list of several parts has quotes that are not escaped.
            let inner =
                inner.filter(|inner| json::end_of(inner) == inner.len() && inner.starts_with('"'));
            let whole = place_of(content, line);
            match (whole, inner) {
                (Some(at), _) if content.len() >= LONG => return Some(("content", at, content)),
                (_, Some(inner)) if text.is_some() => ("text", inner),
                (_, Some(inner)) => ("result", inner),
                _ => return None,
            }
        }
    };
    if value.len() < LONG {
        return None;
    }
    Some((kind, place_of(value, line)?, value))
}

/// Where a value stands in a line. Its start is looked for, which is much quicker than the whole.
fn place_of(value: &str, line: &str) -> Option<usize> {
    let start = &value.as_bytes()[..value.len().min(40)];
    let mut places = memchr::memmem::find_iter(line.as_bytes(), start).take(8);
    places.find(|at| line.as_bytes()[*at..].starts_with(value.as_bytes()))
}

/// The line with `null` in the place of a value, if that is JSON: a text such as `,` is found as well
/// from the end of one string to the start of the next.
fn frame(line: &str, at: usize, value: &str) -> Option<String> {
    let frame = [&line[..at], "null", &line[at + value.len()..]].concat();
    let inner = value.split_once('"').map_or("", |(_, inner)| inner);
    let may_lie_between = inner.trim_ascii_start().starts_with([',', ':', ']', '}']);
    (!may_lie_between || json::checked(&frame).is_some()).then_some(frame)
}

/// The line that a message came from, if the message has all of it.
pub(crate) fn original<'a>(message: &MessageParts<'a>) -> Option<Cow<'a, str>> {
    let source = message.source?;
    let original = source.original?;
    let Some(hole) = source.hole else { return Some(Cow::Borrowed(original)) };
    let value = match (&*hole.text(), &message.parts[..]) {
        ("content", _) => json::get(message.json, "content")?,
        ("result", [Part::ToolResult { content, .. }]) => (*content)?,
        ("text", [Part::Text { json, .. }]) => json::get(json, "text")?,
        _ => return None,
    };
    let before = original.get(..source.hole_at)?;
    let after = original.get(source.hole_at..)?.strip_prefix("null")?;
    Some(Cow::Owned([before, value, after].concat()))
}

/// The messages that a line becomes. `foreign` is what the drafts were read from.
pub(crate) fn messages(
    format: Format,
    line: &str,
    foreign: &str,
    drafts: Vec<Draft>,
    before: Option<&str>,
    timestamp: Option<Timestamp>,
) -> Result<Vec<Message>, Misfit> {
    let pieces = drafts.len();
    let of = if pieces > 1 { source::hash(line) } else { String::new() };
    let mut messages = Vec::with_capacity(pieces);
    for (piece, draft) in drafts.into_iter().enumerate() {
        let is_first = piece == 0;
        let hole = if pieces == 1 { hole(line, foreign, &draft) } else { None };
        let hole = hole.and_then(|(kind, at, value)| Some((kind, at, frame(line, at, value)?)));
        let original = hole.as_ref().map_or(line, |(_, _, frame)| frame);
        let source = Source {
            hole: hole.as_ref().map(|(kind, ..)| Str::plain(kind)),
            hole_at: hole.as_ref().map_or(0, |(_, at, _)| *at),
            format: Some(Str::plain(format.name())),
            of: (pieces > 1).then(|| Str::plain(&of)),
            piece,
            pieces,
            original: is_first.then_some(original),
            before: before.filter(|_| is_first),
            ..Source::default()
        };
        let make = |draft: Draft, source: Source<'_>| {
            let json = made_json(draft, foreign, timestamp, source);
            Message::from_checked_json(&json, &Limits::NONE).map_err(|error| {
                Misfit::new(error.field().unwrap_or_default(), error.root().to_string())
            })
        };
        // Much may wait, and one line after the other be no message: it is not written for those.
        if source.before.is_some_and(|before| before.len() > MUCH) {
            make(draft.clone(), Source { before: None, ..source })?;
        }
        messages.push(make(draft, source)?);
    }
    Ok(messages)
}

fn made_json(
    draft: Draft,
    foreign: &str,
    timestamp: Option<Timestamp>,
    source: Source<'_>,
) -> String {
    let (role, content, mut fields, provider, model) = match draft {
        Draft::Made { role, content, fields, provider, model } => {
            (role, content, fields, provider, model)
        }
        Draft::AsItIs => {
            let role = json::get_str(foreign, "role").map(Str::text).unwrap_or_default();
            let role = Role::named(&role).unwrap_or(Role::User);
            let content = json::get(foreign, "content").unwrap_or("\"\"").to_owned();
            (role, content, String::new(), None, None)
        }
    };
    if let Some(timestamp) = timestamp {
        fields.push_str(&format!(",\"timestamp\":{timestamp}"));
    }
    Draft::Made { role, content, fields, provider, model }.into_json(foreign, source)
}

/// Milliseconds since 1970 of a time such as `2026-05-01T10:00:00.250Z`.
pub(crate) fn timestamp(text: &str) -> Option<Timestamp> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    let bytes = text.as_bytes();
    if !marks.iter().all(|&(at, mark)| bytes.get(at) == Some(&mark)) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let is_date = (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_date || hour > 23 || minute > 59 || second > 60 || !text.ends_with('Z') {
        return None;
    }
    let digits = text.get(19..)?.trim_end_matches('Z').strip_prefix('.').unwrap_or("");
    let mut millis = 0;
    for place in 0..3 {
        let digit =
            digits.as_bytes().get(place).map_or(0, |byte| i64::from(byte.wrapping_sub(b'0')));
        millis = millis * 10 + digit.min(9);
    }
    // Days since 1970, counted from 1 March so that leap days come last.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000 + millis)
}

/// A time as sessions have it; see [`timestamp`].
pub(crate) fn time_of(timestamp: Timestamp) -> String {
    // Years beyond four digits cannot be written; the contract has no use for them.
    let timestamp = timestamp.clamp(-62_135_596_800_000, 253_402_300_799_999);
    let (days, millis) = (timestamp.div_euclid(86_400_000), timestamp.rem_euclid(86_400_000));
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year + i64::from(month <= 2);
    let (hour, minute) = (millis / 3_600_000, millis / 60_000 % 60);
    let (second, millis) = (millis / 1_000 % 60, millis % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_they_are_read() {
        for time in
            ["1970-01-01T00:00:00.000Z", "2000-02-29T12:30:45.678Z", "1969-12-31T23:59:59.999Z"]
        {
            assert_eq!(time_of(timestamp(time).unwrap()), time);
        }
        assert_eq!(time_of(i64::MAX), "9999-12-31T23:59:59.999Z");
        assert_eq!(time_of(i64::MIN), "0001-01-01T00:00:00.000Z");
    }

    #[test]
    fn times_are_read() {
        assert_eq!(timestamp("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(timestamp("2000-02-29T12:30:45.678Z"), Some(951_827_445_678));
        assert_eq!(timestamp("2026-05-01T10:00:00.250Z"), Some(1_777_629_600_250));
        assert_eq!(timestamp("2026-05-01T10:00:00.2501234Z"), Some(1_777_629_600_250));
        for text in ["", "today", "2026-05-01", "2026-13-01T10:00:00Z", "2026-05-01T10:00:00+02:00"]
        {
            assert_eq!(timestamp(text), None, "{text}");
        }
    }
}
