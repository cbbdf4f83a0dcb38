//! A line of a session file, and the messages that it becomes.
//!
//! Sessions of programs hold more than messages: titles, snapshots, progress. What is no message is
//! kept with the next one (`metadata.source.before`), so that the file can be written again.

use std::borrow::Cow;

use recto_core::{Limits, Message, Role, Timestamp};

use super::message_list::{Draft, Misfit, readable};
use crate::import::Out;
use crate::json::{self, Str};
use crate::parts::{MessageParts, Part};
use crate::source::{self, Source};
use crate::{Error, Format};

/// Lines that are no messages and wait for the next one, in each chain of a session by itself. All
/// together have only so much room: what finds none is left out, and counted.
pub(crate) struct Asides {
    lists: Vec<String>,
    /// How many bytes may be added.
    room: usize,
    /// The first line that found no room, and how many did.
    refused: Option<(u64, u64)>,
}

impl Asides {
    /// With room for so many bytes.
    pub(crate) fn within(room: usize) -> Asides {
        Asides { lists: Vec::new(), room, refused: None }
    }

    /// A line that is JSON, and its number in the file.
    pub(crate) fn add(&mut self, chain: usize, line: &str, number: u64) {
        let Some(room) = self.room.checked_sub(line.len() + 1) else {
            self.refused =
                Some(self.refused.map_or((number, 1), |(first, count)| (first, count + 1)));
            return;
        };
        self.room = room;
        if self.lists.len() <= chain {
            self.lists.resize_with(chain + 1, String::new);
        }
        let list = &mut self.lists[chain];
        list.push(if list.is_empty() { '[' } else { ',' });
        list.push_str(line);
    }

    /// What waits in a chain, as a list; nothing waits afterwards.
    pub(crate) fn take(&mut self, chain: usize) -> Option<String> {
        let list = self.lists.get_mut(chain).filter(|list| !list.is_empty())?;
        let mut list = std::mem::take(list);
        self.room += list.len();
        list.push(']');
        Some(list)
    }

    /// Undoes [`take`](Self::take).
    pub(crate) fn put_back(&mut self, chain: usize, list: Option<String>) {
        if let Some(mut list) = list {
            list.pop();
            self.room = self.room.saturating_sub(list.len());
            self.lists[chain] = list;
        }
    }

    /// All that waits, as one list.
    pub(crate) fn take_all(&mut self) -> Option<String> {
        let lists = (0..self.lists.len()).filter_map(|chain| self.take(chain));
        let inner: Vec<String> = lists.map(|list| list[1..list.len() - 1].to_owned()).collect();
        (!inner.is_empty()).then(|| format!("[{}]", inner.join(",")))
    }

    /// Says what was left out since it was asked last.
    pub(crate) fn report(&mut self, out: &mut Out<'_>) {
        if let Some((first, count)) = self.refused.take() {
            let reason = format!(
                "left out: so much waits for the next message that {count} lines found no room"
            );
            out.remark(first, "", reason);
        }
    }
}

/// What waits is not copied for nothing if it is longer.
const MUCH: usize = 64 << 10;

/// Hands on the messages of each line together.
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

/// Whether a message is the next piece of the line that the last one is of.
fn is_next_piece(last: &MessageParts<'_>, message: &MessageParts<'_>) -> bool {
    let (Some(before), Some(this)) = (last.source, message.source) else { return false };
    let is_same = before.of.is_some() && before.of.map(Str::escaped) == this.of.map(Str::escaped);
    is_same && this.piece == before.piece + 1
}

/// A value that is shorter is kept with the rest of its line.
const LONG: usize = 128;

/// A value of a line that the message says with the same bytes: what it is in the message, and where
/// it stands in the line.
struct Hole {
    kind: &'static str,
    at: usize,
    len: usize,
}

impl SessionLine<'_> {
    fn hole(&self, draft: &Draft) -> Option<Hole> {
        if self.foreign.len() < LONG {
            return None;
        }
        let said = self.said.map(|(_, content)| content).filter(|said| said.len() >= LONG);
        let content = match draft {
            Draft::AsItIs => None,
            Draft::Made { content, .. } => Some(content),
        };
        if let Some(said) = said
            && content.is_none_or(|content| content == said)
        {
            return Some(Hole { kind: "content", at: offset(said, self.json)?, len: said.len() });
        }
        let content = content?;
        let text = content.strip_prefix(r#"[{"type":"text","text":"#);
        let result = content.strip_prefix(r#"[{"type":"tool_result","tool_use_id":"#);
        let inner = text.or_else(|| {
            let result = result?;
            result[json::end_of(result)..].strip_prefix(r#","content":"#)
        });
        // Only one string: a list of several parts has quotes that are not escaped.
        let inner = inner.and_then(|inner| inner.strip_suffix("}]"));
        let inner =
            inner.filter(|inner| inner.starts_with('"') && json::end_of(inner) == inner.len())?;
        let kind = if text.is_some() { "text" } else { "result" };
        let foreign_at = offset(self.foreign, self.json)?;
        let at = foreign_at + place_of(inner, self.foreign)?;
        Some(Hole { kind, at, len: inner.len() }).filter(|hole| hole.len >= LONG)
    }

    /// The line with `null` in the place of a value, if that is JSON: a text such as `,` is found as
    /// well from the end of one string to the start of the next.
    fn frame(&self, hole: &Hole) -> Option<String> {
        let (before, rest) = self.json.split_at_checked(hole.at)?;
        let (value, after) = rest.split_at_checked(hole.len)?;
        let frame = [before, "null", after].concat();
        let inner = value.split_once('"').map_or("", |(_, inner)| inner);
        let may_lie_between = inner.trim_ascii_start().starts_with([',', ':', ']', '}']);
        (!may_lie_between || json::checked(&frame).is_some()).then_some(frame)
    }
}

/// Where a slice of a text stands in it.
fn offset(part: &str, whole: &str) -> Option<usize> {
    let at = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    (at + part.len() <= whole.len()).then_some(at)
}

/// Where a value stands in a text. Its start is looked for, which is much quicker than the whole.
fn place_of(value: &str, text: &str) -> Option<usize> {
    let start = &value.as_bytes()[..value.len().min(12)];
    let mut places = memchr::memmem::find_iter(text.as_bytes(), start).take(8);
    places.find(|at| text.as_bytes()[*at..].starts_with(value.as_bytes()))
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

/// A line that becomes messages.
pub(crate) struct SessionLine<'a> {
    pub(crate) format: Format,
    pub(crate) json: &'a str,
    /// What of it the drafts were read from.
    pub(crate) foreign: &'a str,
    /// Who says what in it, if it is one message: a slice of the line.
    pub(crate) said: Option<(Role, &'a str)>,
    /// The lines in front of it that are no messages.
    pub(crate) before: Option<&'a str>,
    pub(crate) timestamp: Option<Timestamp>,
}

impl SessionLine<'_> {
    /// The messages that it becomes. Parts that cannot be read are told.
    pub(crate) fn messages(
        &self,
        drafts: &[Draft],
        told: &mut Vec<Misfit>,
    ) -> Result<Vec<Message>, Misfit> {
        match self.try_messages(drafts) {
            Ok(messages) => Ok(messages),
            Err(misfit) => {
                let (drafts, misfits) = readable(drafts, self.foreign).ok_or(misfit)?;
                told.extend(misfits);
                self.try_messages(&drafts)
            }
        }
    }

    fn try_messages(&self, drafts: &[Draft]) -> Result<Vec<Message>, Misfit> {
        let pieces = drafts.len();
        let of = if pieces > 1 { source::hash(self.json) } else { String::new() };
        let mut messages = Vec::with_capacity(pieces);
        for (piece, draft) in drafts.iter().enumerate() {
            let is_first = piece == 0;
            let hole = if pieces == 1 { self.hole(draft) } else { None };
            let frame = hole.as_ref().and_then(|hole| self.frame(hole));
            let hole = hole.filter(|_| frame.is_some());
            let original = frame.as_deref().unwrap_or(self.json);
            let source = Source {
                hole: hole.as_ref().map(|hole| Str::plain(hole.kind)),
                hole_at: hole.as_ref().map_or(0, |hole| hole.at),
                format: Some(Str::plain(self.format.name())),
                of: (pieces > 1).then(|| Str::plain(&of)),
                piece,
                pieces,
                original: is_first.then_some(original),
                before: self.before.filter(|_| is_first),
                ..Source::default()
            };
            // Much may wait, and one line after the other be no message: it is not written for those.
            if source.before.is_some_and(|before| before.len() > MUCH) {
                self.message(draft, Source { before: None, ..source })?;
            }
            messages.push(self.message(draft, source)?);
        }
        Ok(messages)
    }

    fn message(&self, draft: &Draft, source: Source<'_>) -> Result<Message, Misfit> {
        let said;
        let draft = match (draft, self.said) {
            (Draft::AsItIs, Some((role, content))) => {
                said = Draft::made(role, content.to_owned());
                &said
            }
            (draft, _) => draft,
        };
        let json = draft.to_json_at(self.timestamp, self.foreign, source);
        Message::from_checked_json(&json, &Limits::NONE).map_err(|error| Misfit::of(&error))
    }
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
