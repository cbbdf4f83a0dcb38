//! The difference between two views, message by message.

use recto::blocking::Conversation;
use recto::{Diff, LogIndex, MessageTotals};
use serde::Serialize;

use crate::entry_line::{EntryLine as _, ShownEntry, heading};
use crate::failure::Failure;
use crate::numbers::counted;
use crate::page::{BAD, FAINT, GOOD, Line, NOTE, Page};

/// A difference, with its messages.
#[derive(Debug, Serialize)]
pub(crate) struct Difference {
    pub(crate) kept: MessageTotals,
    pub(crate) hidden: Part,
    pub(crate) shown: Part,
    pub(crate) moved: Part,
}

/// One side of a difference.
#[derive(Debug, Serialize)]
pub(crate) struct Part {
    pub(crate) tokens: u64,
    pub(crate) entries: Vec<ShownEntry>,
}

impl Difference {
    /// Loads the messages. Those in `new` are not stored yet.
    pub(crate) fn of(
        diff: &Diff,
        handle: &Conversation,
        new: &[ShownEntry],
    ) -> Result<Difference, Failure> {
        let part = |entries: &recto::Entries| -> Result<Part, Failure> {
            let is_new = |index: &LogIndex| new.iter().any(|entry| entry.index == *index);
            let (added, stored): (Vec<LogIndex>, Vec<LogIndex>) =
                entries.indices.iter().copied().partition(is_new);
            let found = if stored.is_empty() { Vec::new() } else { handle.entries(&stored)? };
            let added = new.iter().filter(|entry| added.contains(&entry.index)).cloned();
            let found = found.into_iter().map(ShownEntry::from);
            Ok(Part { tokens: entries.tokens, entries: found.chain(added).collect() })
        };
        Ok(Difference {
            kept: diff.kept,
            hidden: part(&diff.hidden)?,
            shown: part(&diff.shown)?,
            moved: part(&diff.moved)?,
        })
    }

    pub(crate) fn show(&self, page: &mut Page) {
        let signed = |part: &'_ Part, sign: &'static str, style| {
            let entries = part.entries.iter();
            entries.map(|entry| (entry.clone(), sign, style)).collect::<Vec<_>>()
        };
        let mut lines = [
            signed(&self.hidden, "- ", BAD),
            signed(&self.shown, "+ ", GOOD),
            signed(&self.moved, "~ ", NOTE),
        ]
        .concat();
        lines.sort_by_key(|(entry, ..)| entry.index);
        if !lines.is_empty() {
            page.line(heading("  "));
        }
        for (entry, sign, style) in lines {
            let line = entry.line((style, sign), &[], page);
            page.line(line);
        }
        let totals = |count: usize, tokens: u64| {
            format!("{}, {}", counted(count as u64, "message"), counted(tokens, "token"))
        };
        let part = |part: &Part| totals(part.entries.len(), part.tokens);
        let mut line = Line::new()
            .styled(BAD, format!("- {}", part(&self.hidden)))
            .text("   ")
            .styled(GOOD, format!("+ {}", part(&self.shown)));
        if !self.moved.entries.is_empty() {
            line = line.text("   ").styled(NOTE, format!("~ {}", part(&self.moved)));
        }
        let kept = totals(self.kept.messages, self.kept.tokens);
        page.line(line.text("   ").styled(FAINT, format!("= {kept}")));
    }
}
