//! A message on one line, as all lists show it.

use anstyle::Style;
use recto::Message;
use recto_format::{MessageParts, Part};
pub(crate) use recto_service::ShownEntry;

use crate::numbers::grouped;
use crate::page::{FAINT, Line, Page};
use crate::speaker::Speaker;

/// How an entry is printed.
pub(crate) trait EntryLine {
    /// One line: the lead, the number, the speaker, the tokens, and the text.
    fn line(&self, lead: (Style, &str), words: &[String], page: &Page) -> Line;

    /// The message with all its text, under a line that says which it is.
    fn show_whole(&self, words: &[String], page: &mut Page);
}

impl EntryLine for ShownEntry {
    fn line(&self, lead: (Style, &str), words: &[String], page: &Page) -> Line {
        let speaker = Speaker::of(&self.message);
        let line = Line::new()
            .styled(lead.0, lead.1)
            .styled(FAINT, format!("{:>6} ", format!("#{}", self.index)))
            .styled(speaker.style(), format!("{:<9} ", speaker.name()))
            .styled(FAINT, format!("{:>6}  ", grouped(self.tokens)));
        let line = self
            .marks
            .iter()
            .fold(line, |line, mark| line.styled(crate::page::NOTE, format!("[{mark}]")).text(" "));
        let text = text_of(&self.message);
        let text = match page.is_terminal() {
            // No more than can be seen.
            true => beginning(&text, page.columns()),
            false => &text,
        };
        line.highlighted(text, words)
    }

    fn show_whole(&self, words: &[String], page: &mut Page) {
        let speaker = Speaker::of(&self.message);
        let place = match self.position {
            Some(position) => format!("at {position}"),
            None => "hidden".to_owned(),
        };
        let line = Line::new()
            .styled(speaker.style().bold(), speaker.name())
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
            return; // it is shown already
        }
        for aside in asides_of(&self.message) {
            for text in aside.lines() {
                page.line(Line::wrapping().text("  ").styled(FAINT, text));
            }
        }
    }
}

/// Enough of a text to fill a line.
fn beginning(text: &str, columns: usize) -> &str {
    let most = columns.saturating_mul(4).max(256);
    text.char_indices().nth(most).map_or(text, |(end, _)| &text[..end])
}

/// The text of a message; for one without any, what it has instead.
pub(crate) fn text_of(message: &Message) -> String {
    let text = message.text();
    let media = message.media();
    match (text.is_empty(), media) {
        (false, 0) => text.into_owned(),
        (false, _) => format!("{text} [{}]", crate::numbers::counted(media as u64, "attachment")),
        (true, 0) => match asides_of(message) {
            asides if asides.is_empty() => "[no text]".to_owned(),
            asides => asides.join("\n"),
        },
        (true, _) => format!("[{}]", crate::numbers::counted(media as u64, "attachment")),
    }
}

/// What a message says that is no text of it: thoughts and refusals. They are neither counted nor looked
/// through, but who looks at a message sees them.
fn asides_of(message: &Message) -> Vec<String> {
    let parts = MessageParts::of(message).parts;
    let told = parts.iter().filter_map(|part| match part {
        Part::Thinking { text, .. } if !text.is_empty() => {
            Some(format!("[thought] {}", text.text()))
        }
        Part::Other { kind, json } if kind.is("refusal") => {
            let part: serde_json::Value = serde_json::from_str(json).ok()?;
            Some(format!("[refusal] {}", part["refusal"].as_str()?))
        }
        _ => None,
    });
    told.collect()
}
