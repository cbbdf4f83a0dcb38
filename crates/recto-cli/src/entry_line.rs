//! Prints a log entry on one line, or in full.

use anstyle::Style;
use recto::Message;
use recto_format::{MessageParts, Part};
pub(crate) use recto_service::ShownEntry;

use crate::numbers::grouped;
use crate::page::{FAINT, Line, Page};
use crate::role_label::RoleLabel;

/// Printing of log entries.
pub(crate) trait EntryLine {
    /// One line: the given first column, the log index, the role, the tokens and the text.
    fn line(&self, lead: (Style, &str), words: &[String], page: &Page) -> Line;

    /// The whole text, below a line with the log index, the role and the tokens.
    fn show_whole(&self, words: &[String], page: &mut Page);
}

/// The heading of a list of entries. `lead` is the heading of the first column.
pub(crate) fn heading(lead: &str) -> Line {
    Line::new().styled(FAINT, format!("{lead}{:>6} {:<9} {:>6}  text", "entry", "role", "tokens"))
}

/// Width of the column with the position in the view.
const POSITION_WIDTH: usize = 8;

/// The heading of the column with the position in the view.
pub(crate) fn position_heading() -> String {
    format!("{:>POSITION_WIDTH$}", "position")
}

/// The position of an entry in the view, or `hidden`.
pub(crate) fn position_column(entry: &ShownEntry) -> String {
    let place = entry.position.map_or("hidden".into(), |position| position.to_string());
    format!("{place:>POSITION_WIDTH$}")
}

impl EntryLine for ShownEntry {
    fn line(&self, lead: (Style, &str), words: &[String], page: &Page) -> Line {
        let label = RoleLabel::of(&self.message);
        let line = Line::new()
            .styled(lead.0, lead.1)
            .styled(FAINT, format!("{:>6} ", format!("#{}", self.index)))
            .styled(label.style(), format!("{:<9} ", label.name()))
            .styled(FAINT, format!("{:>6}  ", grouped(self.tokens)));
        let line = self
            .marks
            .iter()
            .fold(line, |line, mark| line.styled(crate::page::NOTE, format!("[{mark}]")).text(" "));
        let text = text_of(&self.message);
        let text = match page.cuts_lines() {
            // The rest would be cut anyway.
            true => beginning(&text, page.columns()),
            false => &text,
        };
        line.highlighted(text, words)
    }

    fn show_whole(&self, words: &[String], page: &mut Page) {
        let label = RoleLabel::of(&self.message);
        let place = match self.position {
            Some(position) => format!("at position {position}"),
            None => "hidden".to_owned(),
        };
        let line = Line::new()
            .styled(label.style().bold(), label.name())
            .styled(FAINT, format!(" #{} {place}, ", self.index))
            .styled(FAINT, crate::numbers::counted(self.tokens, "token"))
            .styled(FAINT, format!(", {}", crate::time::shown(self.timestamp)));
        page.line(self.marks.iter().fold(line, |line, mark| {
            line.text(" ").styled(crate::page::NOTE, format!("[{mark}]"))
        }));
        for text in text_of(&self.message).lines() {
            page.line(Line::wrapping().text("  ").highlighted(text, words));
        }
        if self.message.text().is_empty() {
            return; // `text_of` has returned the thinking and refusals
        }
        for text in thinking_and_refusals(&self.message) {
            for text in text.lines() {
                page.line(Line::wrapping().text("  ").styled(FAINT, text));
            }
        }
    }
}

/// The start of a text, long enough to fill a line.
fn beginning(text: &str, columns: usize) -> &str {
    let max_characters = columns.saturating_mul(4).max(256);
    text.char_indices().nth(max_characters).map_or(text, |(end, _)| &text[..end])
}

/// The text of a message. If it has none: its attachments, its thinking and refusals, or `[no text]`.
pub(crate) fn text_of(message: &Message) -> String {
    let text = message.text();
    let media = message.media_count();
    match (text.is_empty(), media) {
        (false, 0) => text.into_owned(),
        (false, _) => format!("{text} [{}]", crate::numbers::counted(media as u64, "attachment")),
        (true, 0) => match thinking_and_refusals(message) {
            thinking if thinking.is_empty() => "[no text]".to_owned(),
            thinking => thinking.join("\n"),
        },
        (true, _) => format!("[{}]", crate::numbers::counted(media as u64, "attachment")),
    }
}

/// The thinking and the refusals of a message. They are not part of its text, so they are neither counted
/// nor searched.
fn thinking_and_refusals(message: &Message) -> Vec<String> {
    let parts = MessageParts::of(message).parts;
    let texts = parts.iter().filter_map(|part| match part {
        Part::Thinking { text, .. } if !text.is_empty() => {
            Some(format!("[thought] {}", text.text()))
        }
        Part::Other { kind, json } if kind.is("refusal") => {
            let part: serde_json::Value = serde_json::from_str(json).ok()?;
            Some(format!("[refusal] {}", part["refusal"].as_str()?))
        }
        _ => None,
    });
    texts.collect()
}
