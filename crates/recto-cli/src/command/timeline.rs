//! `recto timeline`: plots the tokens of view and log over the versions.
//!
//! `timeline/plot.rs` draws it as text, `timeline/picture.rs` as SVG.

mod picture;
mod plot;

use clap::Args;
use recto_service::{
    Timeline as TimelineRequest, TimelineEvent as Event, TimelinePoint as Point, TokensOverTime,
    True,
};
use serde::Serialize;

use crate::arguments::ConversationArgument;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::CommandResult;
use crate::page::{FAINT, GOOD, Line, NOTE, Page, STRONG};

/// Plot the tokens of view and log over versions.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto timeline
  recto timeline --svg budget.svg
  recto timeline --json")]
pub(crate) struct Timeline {
    #[command(flatten)]
    of: ConversationArgument,

    /// Write an SVG picture to this file; - for standard output
    #[arg(long, value_name = "FILE")]
    svg: Option<String>,
}

impl Timeline {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let session = context.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let request = TimelineRequest { conversation: named.name, timeline: True };
        let line = session.run(request)?;
        match self.svg.as_deref() {
            None => context.print(&line),
            Some(file) => {
                let picture = picture::draw(&line.conversation, &line.versions);
                write(file, &picture, context)?;
                match file {
                    "-" => Ok(()),
                    file => context
                        .print(&Drawn { file: file.to_owned(), versions: line.versions.len() }),
                }
            }
        }
    }
}

fn write(file: &str, text: &str, context: &mut Context<'_>) -> Result<(), Failure> {
    match file {
        "-" => Ok(std::io::Write::write_all(&mut context.environment.output, text.as_bytes())?),
        path => std::fs::write(path, text)
            .map_err(|error| Failure::writing(std::path::Path::new(path), &error)),
    }
}

impl CommandResult for TokensOverTime {
    fn show(&self, page: &mut Page) {
        page.line(
            Line::new()
                .styled(STRONG, "tokens over versions")
                .styled(FAINT, format!(" of {}", self.conversation)),
        );
        for row in plot::rows(&self.versions, page.columns(), 12) {
            page.line(Line::new().styled(FAINT, row.axis).styled(GOOD, row.drawing));
        }
        let (marks, versions) = plot::axis_rows(&self.versions, page.columns());
        page.line(Line::new().styled(NOTE, marks));
        page.line(Line::new().styled(FAINT, versions));
        let legend =
            "█ in view  · in the log  c compressed or fitted  b a batch opened  r went back";
        page.line(Line::new().styled(FAINT, legend));
    }
}

#[derive(Serialize)]
struct Drawn {
    file: String,
    versions: usize,
}

impl CommandResult for Drawn {
    fn show(&self, page: &mut Page) {
        let versions = crate::numbers::counted(self.versions as u64, "version");
        page.line(Line::new().text(format!("{versions} drawn in ")).styled(STRONG, &self.file));
    }
}
