//! `recto timeline`: tokens in view and log over the versions.
//!
//! `timeline/plot.rs` draws it in characters, `timeline/picture.rs` as SVG.

mod picture;
mod plot;

use clap::Args;
use recto::{OperationKind, VersionInfo};
use serde::Serialize;

use crate::arguments::OfConversation;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::output::Answer;
use crate::page::{FAINT, GOOD, Line, NOTE, Page, STRONG};

/// Plot how many tokens the view and the log had at each version.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto timeline
  recto timeline --svg budget.svg
  recto timeline --json")]
pub(crate) struct Timeline {
    #[command(flatten)]
    of: OfConversation,

    /// Write a picture to this file; - for standard output
    #[arg(long, value_name = "FILE")]
    svg: Option<String>,
}

impl Timeline {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let session = desk.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let end = named.talk.version()?.0.saturating_add(1);
        let versions = named.talk.versions(0..end)?;
        let lengths: Vec<usize> = versions.iter().map(|info| info.log).collect();
        let log_tokens = session.recto.wait(named.talk.inner().log_tokens(&lengths))?;
        let points = versions.iter().zip(log_tokens);
        let points = points.map(|(info, log_tokens)| Point::of(info, log_tokens)).collect();
        let line = TokensOverTime { conversation: named.name, points };
        match self.svg.as_deref() {
            None => desk.answer(&line),
            Some(file) => {
                let picture = picture::draw(&line.conversation, &line.points);
                write(file, &picture, desk)?;
                match file {
                    "-" => Ok(()),
                    file => {
                        desk.answer(&Drawn { file: file.to_owned(), versions: line.points.len() })
                    }
                }
            }
        }
    }
}

fn write(file: &str, text: &str, desk: &mut Desk<'_>) -> Result<(), Failure> {
    match file {
        "-" => Ok(std::io::Write::write_all(&mut desk.surroundings.output, text.as_bytes())?),
        path => std::fs::write(path, text)
            .map_err(|error| Failure::writing(std::path::Path::new(path), &error)),
    }
}

/// A version in the plot.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Point {
    version: u32,
    operation: OperationKind,
    batch: usize,
    /// What it did to the batches.
    event: Event,
    /// Tokens in view.
    tokens: u64,
    /// Tokens in the log.
    log_tokens: u64,
}

/// What a version did to the batches. The later ones are the more telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
enum Event {
    None,
    /// It opened a batch.
    Batch,
    /// It went back.
    Back,
    /// It put less in view: COMPRESS or FIT.
    Compression,
}

impl Point {
    fn of(info: &VersionInfo, log_tokens: u64) -> Point {
        use OperationKind::{BatchEnd, Compress, Fit, Redo, Rollback, Undo};
        let opened = info.batch_opened_by == info.version && info.version.0 > 0;
        let event = match info.operation {
            Compress | Fit => Event::Compression,
            BatchEnd | Rollback | Undo | Redo => Event::Back,
            _ if opened => Event::Batch,
            _ => Event::None,
        };
        Point {
            version: info.version.0,
            operation: info.operation,
            batch: info.batch.0,
            event,
            tokens: info.tokens,
            log_tokens,
        }
    }
}

#[derive(Serialize)]
struct TokensOverTime {
    conversation: String,
    #[serde(rename = "versions")]
    points: Vec<Point>,
}

impl Answer for TokensOverTime {
    fn show(&self, page: &mut Page) {
        page.line(
            Line::new()
                .styled(STRONG, "tokens over versions")
                .styled(FAINT, format!(" of {}", self.conversation)),
        );
        for row in plot::rows(&self.points, page.columns(), 12) {
            page.line(Line::new().styled(FAINT, row.axis).styled(GOOD, row.drawing));
        }
        let (marks, versions) = plot::feet(&self.points, page.columns());
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

impl Answer for Drawn {
    fn show(&self, page: &mut Page) {
        let versions = crate::numbers::counted(self.versions as u64, "version");
        page.line(Line::new().text(format!("{versions} drawn in ")).styled(STRONG, &self.file));
    }
}
