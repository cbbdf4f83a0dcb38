//! Prints the result of a command: as JSON, or as a page of text, on a terminal or elsewhere.

use std::io::Write;

use serde::Serialize;

use crate::Environment;
use crate::arguments::General;
use crate::failure::Failure;
use crate::page::{BAD, Line, Page};
use crate::{pager, printable};

/// The result of a command. `Serialize` writes it as JSON.
pub(crate) trait CommandResult: Serialize {
    /// Writes the result as text.
    fn show(&self, page: &mut Page);
}

/// How results are printed.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    is_json: bool,
    colours: bool,
    error_colours: bool,
    /// Columns and rows, if standard output is a terminal.
    size: Option<(usize, usize)>,
    may_page: bool,
    /// Whether long lines are printed in full.
    is_full: bool,
    /// Whether remarks and notes are omitted.
    is_quiet: bool,
}

/// Columns at which lines are cut if the output is not a terminal.
const DEFAULT_COLUMNS: usize = 100;

impl Output {
    pub(crate) fn new(general: &General, environment: &Environment) -> Output {
        Output {
            is_json: general.json,
            colours: general.color.for_stream(environment.output_info),
            error_colours: general.color.for_stream(environment.errors_info),
            size: environment.output_info.size,
            may_page: !general.no_pager,
            is_full: general.full,
            is_quiet: general.quiet,
        }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.is_json
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.size.is_some()
    }

    /// An empty page.
    pub(crate) fn page(&self) -> Page {
        let columns = self.size.map_or(DEFAULT_COLUMNS, |(columns, _)| columns);
        let page = Page::new((!self.is_full).then_some(columns));
        if self.is_quiet { page.without_remarks() } else { page }
    }

    /// Prints the result of a command.
    pub(crate) fn print(
        &self,
        result: &impl CommandResult,
        environment: &mut Environment,
    ) -> Result<(), Failure> {
        if self.is_json {
            return self.json(result, environment);
        }
        let mut page = self.page();
        result.show(&mut page);
        self.print_page(&page, environment)
    }

    /// Prints a page. A long page on a terminal goes through a pager.
    pub(crate) fn print_page(
        &self,
        page: &Page,
        environment: &mut Environment,
    ) -> Result<(), Failure> {
        let text = page.render(self.colours);
        let is_long = self.size.is_some_and(|(_, rows)| page.lines().len() >= rows);
        if is_long && self.may_page && pager::show(&text, environment)? {
            return Ok(());
        }
        Ok(environment.output.write_all(text.as_bytes())?)
    }

    /// Prints a value as JSON: indented on a terminal, on one line elsewhere.
    pub(crate) fn json(
        &self,
        value: &impl Serialize,
        environment: &mut Environment,
    ) -> Result<(), Failure> {
        let text = match self.is_terminal() {
            true => serde_json::to_string_pretty(value),
            false => serde_json::to_string(value),
        };
        let text = text.map_err(std::io::Error::other)?;
        let text = if self.is_terminal() { printable::escaped_json(&text) } else { text.into() };
        environment.output.write_all(text.as_bytes())?;
        Ok(environment.output.write_all(b"\n")?)
    }

    /// Prints a text of this program, which may contain escape sequences for colours.
    pub(crate) fn trusted_text(
        &self,
        text: &str,
        environment: &mut Environment,
    ) -> Result<(), Failure> {
        let stripped;
        let text = if self.colours {
            text
        } else {
            stripped = anstream::adapter::strip_str(text).to_string();
            &stripped
        };
        Ok(environment.output.write_all(text.as_bytes())?)
    }

    /// Prints a part of a streamed text. Line breaks are kept, other control characters are escaped.
    #[cfg(feature = "chat")]
    pub(crate) fn chunk(&self, text: &str, environment: &mut Environment) -> Result<(), Failure> {
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                environment.output.write_all(b"\n")?;
            }
            environment.output.write_all(printable::escaped(line).as_bytes())?;
        }
        Ok(environment.output.flush()?)
    }

    /// Prints a line on standard error, in addition to the result, unless `--quiet` is given.
    pub(crate) fn note(&self, line: &Line, environment: &mut Environment) -> Result<(), Failure> {
        if self.is_quiet {
            return Ok(());
        }
        Ok(writeln!(environment.errors, "{}", line.render(None, self.error_colours))?)
    }

    /// Prints JSON text: unchanged, or indented and escaped on a terminal.
    pub(crate) fn document(
        &self,
        json: &str,
        environment: &mut Environment,
    ) -> Result<(), Failure> {
        let end = if json.ends_with('\n') { "" } else { "\n" };
        if !self.is_terminal() {
            environment.output.write_all(json.as_bytes())?;
            return Ok(environment.output.write_all(end.as_bytes())?);
        }
        let mut page = self.page();
        for line in printable::pretty_json(json).lines() {
            page.line(Line::wrapping().json(line));
        }
        self.print_page(&page, environment)
    }

    /// Prints why a command failed: with `--json` on standard output, else on standard error.
    pub(crate) fn failure(
        &self,
        failure: &Failure,
        environment: &mut Environment,
    ) -> Result<(), Failure> {
        if let Failure::Reported(_) = failure {
            return Ok(environment.output.flush()?);
        }
        if self.is_json {
            let mut document = failure.to_json();
            document["error"]["message"] = failure.to_string().into();
            self.json(&document, environment)?;
            return Ok(environment.output.flush()?);
        }
        environment.output.flush()?;
        let line = Line::wrapping().styled(BAD, "recto:").text(" ").text(failure.to_string());
        let text = line.render(None, self.error_colours);
        Ok(writeln!(environment.errors, "{text}")?)
    }
}
