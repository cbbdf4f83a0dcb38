//! Export of messages as lines of a codex rollout: imported lines with their original bytes, other
//! messages as items.
//!
//! In the export of a view, no line may change earlier ones: rollbacks are omitted, and a compaction is
//! written as the items of its history unless there is nothing before it that it would replace.

use std::io::Write;

use recto_core::{Message, Role};

use super::super::openai_responses::{self, PlainMessages};
use super::super::{session_line, time};
use super::{history_of, is};
use crate::export::{Container, ExportOptions, Extent};
use crate::import::TranscriptWarning;
use crate::json::{self, Str};
use crate::parts::MessageParts;
use crate::{Error, Format};

pub(super) fn export(
    messages: &mut dyn Iterator<Item = &Message>,
    extent: Extent,
    options: &ExportOptions<'_>,
    file: &mut dyn Write,
) -> Result<Vec<TranscriptWarning>, Error> {
    let warnings = Vec::new();
    let messages: Vec<&Message> = messages.collect();
    // In a rollout with items, events are not messages.
    let has_only_events = messages.iter().all(|message| {
        let original = session_line::original(&MessageParts::of(message));
        original.is_some_and(|line| is(&line, "event_msg"))
    });
    let mut lines =
        Lines { file, extent, options, number: 0, has_only_users: true, has_only_events, warnings };
    session_line::by_line(&mut messages.into_iter(), |group| lines.group(group))?;
    if let Container::Envelope(list) = options.container {
        lines.lines_without_message(list)?;
    }
    Ok(lines.warnings)
}

struct Lines<'f> {
    file: &'f mut dyn Write,
    extent: Extent,
    options: &'f ExportOptions<'f>,
    /// Number of messages written.
    number: u64,
    /// True if all of them are from the user or the system.
    has_only_users: bool,
    /// True if all messages of the export are events.
    has_only_events: bool,
    warnings: Vec<TranscriptWarning>,
}

impl Lines<'_> {
    fn group(&mut self, group: &[MessageParts<'_>]) -> Result<(), Error> {
        let source = group[0].source.filter(|source| source.is_from(Format::Codex.name()));
        if let Some(before) = source.and_then(|source| source.before) {
            self.lines_without_message(before)?;
        }
        let whole = source.filter(|source| source.pieces == group.len());
        let original = whole.and_then(|_| session_line::original(&group[0]));
        match original.filter(|line| self.keeps_bytes(line)) {
            Some(line) => writeln!(self.file, "{line}")?,
            None => self.items(group)?,
        }
        self.number += group.len() as u64;
        self.has_only_users &=
            group.iter().all(|message| matches!(message.role, Role::User | Role::System));
        session_line::behind(group, Format::Codex)
            .try_for_each(|line| self.line_without_message(line))
    }

    /// Writes lines without a message.
    fn lines_without_message(&mut self, list: &str) -> Result<(), Error> {
        json::items(list).try_for_each(|line| self.line_without_message(line))
    }

    fn line_without_message(&mut self, line: &str) -> Result<(), Error> {
        if self.extent == Extent::Log || !has_effect(line) {
            writeln!(self.file, "{line}")?;
        }
        Ok(())
    }

    /// True if the original line can be written: import reads it as a message and, in the export of a view,
    /// it changes no earlier line.
    fn keeps_bytes(&self, line: &str) -> bool {
        if is(line, "event_msg") {
            return self.has_only_events;
        }
        if self.extent == Extent::Log || !is(line, "compacted") {
            return true;
        }
        let payload = json::get(line, "payload").unwrap_or("{}");
        match history_of(payload) {
            Some(_) => self.number == 0,
            None => self.has_only_users,
        }
    }

    /// Writes messages as items.
    fn items(&mut self, group: &[MessageParts<'_>]) -> Result<(), Error> {
        let mut items = String::new();
        let mut lost = Vec::new();
        openai_responses::write_items(group, PlainMessages::AsItems, &mut items, &mut lost);
        let number = self.number + 1;
        self.warnings
            .extend(lost.into_iter().map(|message| TranscriptWarning::new(number, "", message)));
        let time = self.options.time_of(&group[0], self.number as usize);
        let time = time.map(time::format_time);
        let time = time.map(|time| format!(r#""timestamp":"{time}","#)).unwrap_or_default();
        for item in json::items(&format!("[{items}]")) {
            writeln!(self.file, r#"{{{time}"type":"response_item","payload":{item}}}"#)?;
        }
        Ok(())
    }
}

/// True for a line without a message that would hide earlier lines.
fn has_effect(line: &str) -> bool {
    let kind = json::get_str(line, "type").map(Str::text).unwrap_or_default();
    let payload = json::get(line, "payload");
    match &*kind {
        "compacted" => true,
        "event_msg" => payload.is_some_and(|event| is(event, "thread_rolled_back")),
        _ => false,
    }
}
