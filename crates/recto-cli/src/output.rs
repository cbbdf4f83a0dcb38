//! How an answer is printed: as JSON, or as a page for people, on a terminal or elsewhere.

use std::io::Write;

use serde::Serialize;

use crate::Surroundings;
use crate::arguments::{Colours, General};
use crate::failure::Failure;
use crate::page::{BAD, Line, Page};
use crate::{pager, printable};

/// What a command answers.
pub(crate) trait Answer: Serialize {
    /// The answer for people.
    fn show(&self, page: &mut Page);
}

/// How answers are printed.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    is_json: bool,
    colours: bool,
    error_colours: bool,
    /// Columns and rows of the terminal, if it is one.
    size: Option<(usize, usize)>,
    may_page: bool,
}

impl Output {
    pub(crate) fn new(general: &General, surroundings: &Surroundings) -> Output {
        let colours = |of_screen: bool| match general.color {
            Colours::Auto => of_screen,
            Colours::Always => true,
            Colours::Never => false,
        };
        Output {
            is_json: general.json,
            colours: colours(surroundings.screen.colours),
            error_colours: colours(surroundings.errors_screen.colours),
            size: surroundings.screen.size,
            may_page: !general.no_pager,
        }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.is_json
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.size.is_some()
    }

    /// A page to be filled.
    pub(crate) fn page(&self) -> Page {
        Page::new(self.size.map(|(columns, _)| columns))
    }

    /// Prints what a command answers.
    pub(crate) fn answer(
        &self,
        answer: &impl Answer,
        surroundings: &mut Surroundings,
    ) -> Result<(), Failure> {
        if self.is_json {
            return self.json(answer, surroundings);
        }
        let mut page = self.page();
        answer.show(&mut page);
        self.print(&page, surroundings)
    }

    /// Prints a page; a long one through a pager, if it goes to a terminal.
    pub(crate) fn print(
        &self,
        page: &Page,
        surroundings: &mut Surroundings,
    ) -> Result<(), Failure> {
        let text = page.render(self.colours);
        let is_long = self.size.is_some_and(|(_, rows)| page.lines().len() >= rows);
        if is_long && self.may_page && pager::show(&text, surroundings)? {
            return Ok(());
        }
        Ok(surroundings.output.write_all(text.as_bytes())?)
    }

    /// Prints one JSON document: laid out on a terminal, on one line elsewhere.
    pub(crate) fn json(
        &self,
        value: &impl Serialize,
        surroundings: &mut Surroundings,
    ) -> Result<(), Failure> {
        let text = match self.is_terminal() {
            true => serde_json::to_string_pretty(value),
            false => serde_json::to_string(value),
        };
        let text = text.map_err(std::io::Error::other)?;
        let text = if self.is_terminal() { printable::escaped_json(&text) } else { text.into() };
        surroundings.output.write_all(text.as_bytes())?;
        Ok(surroundings.output.write_all(b"\n")?)
    }

    /// Prints a text that is our own, with colours in it.
    pub(crate) fn own_text(
        &self,
        text: &str,
        surroundings: &mut Surroundings,
    ) -> Result<(), Failure> {
        let stripped;
        let text = if self.colours {
            text
        } else {
            stripped = anstream::adapter::strip_str(text).to_string();
            &stripped
        };
        Ok(surroundings.output.write_all(text.as_bytes())?)
    }

    /// Prints a piece of a text that is on its way. Its lines stay lines; everything else that a
    /// terminal would obey is escaped.
    pub(crate) fn piece(&self, text: &str, surroundings: &mut Surroundings) -> Result<(), Failure> {
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                surroundings.output.write_all(b"\n")?;
            }
            surroundings.output.write_all(printable::escaped(line).as_bytes())?;
        }
        Ok(surroundings.output.flush()?)
    }

    /// Says something beside the answer, on standard error.
    pub(crate) fn aside(
        &self,
        line: &Line,
        surroundings: &mut Surroundings,
    ) -> Result<(), Failure> {
        Ok(writeln!(surroundings.errors, "{}", line.render(None, self.error_colours))?)
    }

    /// Prints JSON that goes elsewhere as it is: byte for byte, or laid out on a terminal.
    pub(crate) fn document(
        &self,
        json: &str,
        surroundings: &mut Surroundings,
    ) -> Result<(), Failure> {
        let end = if json.ends_with('\n') { "" } else { "\n" };
        if !self.is_terminal() {
            surroundings.output.write_all(json.as_bytes())?;
            return Ok(surroundings.output.write_all(end.as_bytes())?);
        }
        let mut page = self.page();
        for line in printable::laid_out(json).lines() {
            page.line(Line::wrapping().json(line));
        }
        self.print(&page, surroundings)
    }

    /// Says why a command failed: for programs as its answer, for people beside it.
    pub(crate) fn failure(
        &self,
        failure: &Failure,
        surroundings: &mut Surroundings,
    ) -> Result<(), Failure> {
        if let Failure::Told(_) = failure {
            return Ok(surroundings.output.flush()?);
        }
        if self.is_json {
            let mut document = failure.to_json();
            document["error"]["message"] = failure.to_string().into();
            self.json(&document, surroundings)?;
            return Ok(surroundings.output.flush()?);
        }
        surroundings.output.flush()?;
        let line = Line::wrapping().styled(BAD, "recto:").text(" ").text(failure.to_string());
        let text = line.render(None, self.error_colours);
        Ok(writeln!(surroundings.errors, "{text}")?)
    }
}
