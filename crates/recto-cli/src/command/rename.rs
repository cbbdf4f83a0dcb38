//! `recto rename`: another name for a conversation.

use clap::Args;
use serde::Serialize;

use crate::desk::Desk;
use crate::failure::Failure;
use crate::output::Answer;
use crate::page::{Line, Page, STRONG};

/// Give a conversation another name.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto rename support support-2026
  recto rename @ better-name")]
pub(crate) struct Rename {
    /// The conversation: its name, its id, the beginning of one of them, or @ for the last one used
    conversation: String,
    /// The name that it gets
    to: String,
}

impl Rename {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let session = desk.session()?;
        let from = session.name_of(&self.conversation)?;
        session.recto.rename(&from, &self.to)?;
        session.conversation(&self.to)?;
        desk.answer(&Renamed { from, to: self.to })
    }
}

#[derive(Serialize)]
struct Renamed {
    from: String,
    to: String,
}

impl Answer for Renamed {
    fn show(&self, page: &mut Page) {
        let line = Line::new().styled(STRONG, &self.from).text(" is now called ");
        page.line(line.styled(STRONG, &self.to));
    }
}
