//! Messages as lines of a rollout: those that were lines as they came, others as items.
//!
//! In a view, no line may act on those before it: turns are not taken back again, and a compaction is
//! written as the items of its history unless nothing stands in front of it that it would replace.

use std::io::Write;

use recto_core::{Message, Role};

use super::super::openai_responses::{self, Bare};
use super::super::session_line;
use super::{history_of, is};
use crate::export::{Container, ExportOptions, Extent};
use crate::import::Remark;
use crate::json::{self, Str};
use crate::parts::MessageParts;
use crate::{Error, Format};

pub(super) fn export(
    messages: &mut dyn Iterator<Item = &Message>,
    extent: Extent,
    options: &ExportOptions<'_>,
    file: &mut dyn Write,
) -> Result<Vec<Remark>, Error> {
    let remarks = Vec::new();
    let mut lines = Lines { file, extent, options, number: 0, has_only_users: true, remarks };
    session_line::by_line(messages, |group| lines.group(group))?;
    if let Container::Envelope(list) = options.container {
        lines.asides(list)?;
    }
    Ok(lines.remarks)
}

struct Lines<'f> {
    file: &'f mut dyn Write,
    extent: Extent,
    options: &'f ExportOptions<'f>,
    /// How many messages are written.
    number: u64,
    /// Whether all of them are what users and the system said.
    has_only_users: bool,
    remarks: Vec<Remark>,
}

impl Lines<'_> {
    fn group(&mut self, group: &[MessageParts<'_>]) -> Result<(), Error> {
        let source = group[0].source.filter(|source| source.is_from(Format::Codex.name()));
        if let Some(before) = source.and_then(|source| source.before) {
            self.asides(before)?;
        }
        let whole = source.filter(|source| source.pieces == group.len());
        let original = whole.and_then(|_| session_line::original(&group[0]));
        match original.filter(|line| self.stays(line)) {
            Some(line) => writeln!(self.file, "{line}")?,
            None => self.made(group)?,
        }
        self.number += group.len() as u64;
        self.has_only_users &=
            group.iter().all(|message| matches!(message.role, Role::User | Role::System));
        Ok(())
    }

    /// Lines that are no messages.
    fn asides(&mut self, list: &str) -> Result<(), Error> {
        for line in json::items(list) {
            if self.extent == Extent::Log || !acts(line) {
                writeln!(self.file, "{line}")?;
            }
        }
        Ok(())
    }

    /// Whether a line leaves alone what is written before it.
    fn stays(&self, line: &str) -> bool {
        if self.extent == Extent::Log || !is(line, "compacted") {
            return true;
        }
        let payload = json::get(line, "payload").unwrap_or("{}");
        match history_of(payload) {
            Some(_) => self.number == 0,
            None => self.has_only_users,
        }
    }

    /// Messages as items.
    fn made(&mut self, group: &[MessageParts<'_>]) -> Result<(), Error> {
        let mut items = String::new();
        let mut told = Vec::new();
        openai_responses::write_items(group, Bare::AsItems, &mut items, &mut told);
        let number = self.number + 1;
        let at = |message| Remark { line: number, field: String::new(), message };
        self.remarks.extend(told.into_iter().map(at));
        let time = self.options.time_of(&group[0], self.number as usize);
        let time = time.map(session_line::time_of);
        let time = time.map(|time| format!(r#""timestamp":"{time}","#)).unwrap_or_default();
        for item in json::items(&format!("[{items}]")) {
            writeln!(self.file, r#"{{{time}"type":"response_item","payload":{item}}}"#)?;
        }
        Ok(())
    }
}

/// Whether a line that is no message takes others away.
fn acts(line: &str) -> bool {
    let kind = json::get_str(line, "type").map(Str::text).unwrap_or_default();
    let payload = json::get(line, "payload");
    match &*kind {
        "compacted" => true,
        "event_msg" => payload.is_some_and(|event| is(event, "thread_rolled_back")),
        _ => false,
    }
}
