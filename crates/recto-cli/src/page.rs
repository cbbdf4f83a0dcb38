//! Text output. A [`Line`] escapes all text that is added to it, so every command prints escaped text.

use anstyle::{AnsiColor, Style};

use crate::printable;

/// Names and headings.
pub(crate) const STRONG: Style = Style::new().bold();
/// Secondary text.
pub(crate) const FAINT: Style = Style::new().dimmed();
/// Success, or something added.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// An error, or something hidden.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
/// A note or a warning.
pub(crate) const NOTE: Style = AnsiColor::Yellow.on_default();
/// A heading of the help, in clap's style.
pub(crate) const HEADING: Style = Style::new().bold().underline();

/// One line of output, built from styled text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    pieces: Vec<(Style, String)>,
    /// Whether it wraps at the terminal's width; otherwise it is cut there.
    wraps: bool,
}

impl Line {
    pub(crate) fn new() -> Line {
        Line::default()
    }

    /// A line that wraps at the terminal's width.
    pub(crate) fn wrapping() -> Line {
        Line { wraps: true, ..Line::default() }
    }

    pub(crate) fn text(self, text: impl AsRef<str>) -> Line {
        self.styled(Style::new(), text)
    }

    pub(crate) fn styled(mut self, style: Style, text: impl AsRef<str>) -> Line {
        let text = printable::escaped(text.as_ref());
        if !text.is_empty() {
            self.pieces.push((style, text.into_owned()));
        }
        self
    }

    /// Adds a line of JSON text. Control characters become JSON escapes.
    pub(crate) fn json(mut self, text: &str) -> Line {
        self.pieces.push((Style::new(), printable::escaped_json(text).into_owned()));
        self
    }

    /// Adds text and highlights every occurrence of the words.
    pub(crate) fn highlighted(mut self, text: &str, words: &[String]) -> Line {
        let mut rest = text;
        while !rest.is_empty() {
            let found =
                words.iter().filter_map(|word| Some((rest.find(word.as_str())?, word.len())));
            let Some((at, len)) = found.min().filter(|(_, len)| *len > 0) else { break };
            self = self.text(&rest[..at]).styled(HIT, &rest[at..at + len]);
            rest = &rest[at + len..];
        }
        self.text(rest)
    }

    /// Adds spaces up to a column.
    pub(crate) fn pad_to(self, column: usize) -> Line {
        let used = self.width();
        let spaces = " ".repeat(column.saturating_sub(used));
        self.text(spaces)
    }

    pub(crate) fn width(&self) -> usize {
        self.pieces.iter().map(|(_, text)| printable::width(text)).sum()
    }

    /// The line as it is printed, without the line break.
    pub(crate) fn render(&self, columns: Option<usize>, colours: bool) -> String {
        let mut room = columns.filter(|_| !self.wraps).unwrap_or(usize::MAX);
        let is_too_long = self.width() > room;
        let mut rendered = String::new();
        for (style, text) in &self.pieces {
            let width = printable::width(text);
            // The last piece that fits leaves a column for `…`.
            let shown = match is_too_long && width + 1 > room {
                true => printable::cut(text, room).into_owned(),
                false => text.clone(),
            };
            let shown = match is_too_long && width == room && shown.len() == text.len() {
                true => printable::cut(&format!("{text} "), room).into_owned(),
                false => shown,
            };
            match colours && *style != Style::new() {
                true => rendered.push_str(&format!("{style}{shown}{style:#}")),
                false => rendered.push_str(&shown),
            }
            if is_too_long && width + 1 > room {
                break;
            }
            room -= width;
        }
        rendered.truncate(rendered.trim_end_matches(' ').len());
        rendered
    }
}

/// A search hit.
const HIT: Style = AnsiColor::Red.on_default().bold();

impl From<&str> for Line {
    fn from(text: &str) -> Line {
        Line::new().text(text)
    }
}

impl From<String> for Line {
    fn from(text: String) -> Line {
        Line::new().text(text)
    }
}

/// Several lines of output.
#[derive(Debug, Default)]
pub(crate) struct Page {
    lines: Vec<Line>,
    /// Columns at which lines are cut; `None` for `--full`.
    columns: Option<usize>,
    /// Whether remarks are printed: not with `--quiet`.
    has_remarks: bool,
}

impl Page {
    pub(crate) fn new(columns: Option<usize>) -> Page {
        Page { lines: Vec::new(), columns, has_remarks: true }
    }

    /// The page for `--quiet`.
    pub(crate) fn without_remarks(self) -> Page {
        Page { has_remarks: false, ..self }
    }

    /// Whether remarks are printed.
    pub(crate) fn has_remarks(&self) -> bool {
        self.has_remarks
    }

    pub(crate) fn line(&mut self, line: impl Into<Line>) {
        self.lines.push(line.into());
    }

    pub(crate) fn empty_line(&mut self) {
        self.line(Line::new());
    }

    /// Columns to draw in: those at which lines are cut, else 100.
    pub(crate) fn columns(&self) -> usize {
        self.columns.unwrap_or(100)
    }

    /// Whether long lines are cut.
    pub(crate) fn cuts_lines(&self) -> bool {
        self.columns.is_some()
    }

    pub(crate) fn lines(&self) -> &[Line] {
        &self.lines
    }

    pub(crate) fn render(&self, colours: bool) -> String {
        let mut text = String::new();
        for line in &self.lines {
            text.push_str(&line.render(self.columns, colours));
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_at_the_edge_of_the_terminal_and_nowhere_else() {
        let line = Line::new().text("abc").styled(BAD, "def").text("ghi");
        assert_eq!(line.render(None, false), "abcdefghi");
        assert_eq!(line.render(Some(9), false), "abcdefghi");
        assert_eq!(line.render(Some(8), false), "abcdefg…");
        assert_eq!(line.render(Some(6), false), "abcde…");
        assert_eq!(line.render(Some(3), false), "ab…");
        assert_eq!(line.render(Some(5), true), format!("abc{BAD}d…{BAD:#}"));
        assert_eq!(Line::wrapping().text("abcdef").render(Some(3), false), "abcdef");
    }

    #[test]
    fn control_characters_in_a_line_are_escaped() {
        let line = Line::new().text("\u{1b}[2J").styled(GOOD, "\r\n");
        assert_eq!(line.render(None, false), r"\u{1b}[2J\r\n");
        assert_eq!(line.render(Some(8), false), r"\u{1b}[…");
        assert_eq!(line.render(Some(6), false), "…");
    }

    #[test]
    fn words_are_highlighted_at_every_position() {
        let words = ["a".to_owned(), "中".to_owned()];
        let line = Line::new().highlighted("xa中y", &words).render(None, true);
        assert_eq!(line, format!("x{HIT}a{HIT:#}{HIT}中{HIT:#}y"));
        assert_eq!(Line::new().highlighted("xyz", &words).render(None, true), "xyz");
    }
}
