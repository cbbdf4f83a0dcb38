//! `recto remove`: takes conversations away for good.

use clap::Args;
use serde::Serialize;

use crate::desk::Desk;
use crate::failure::Failure;
use crate::output::Answer;
use crate::page::{Line, Page, STRONG};

/// Take a conversation away for good.
///
/// What its forks share with it stays theirs.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto remove old-talk
  recto remove old-talk --yes")]
pub(crate) struct Remove {
    /// The conversation: its name, its id, the beginning of one of them, or @ for the last one used
    conversation: String,

    /// Do not ask
    #[arg(long)]
    yes: bool,
}

impl Remove {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let session = desk.session()?;
        let name = session.name_of(&self.conversation)?;
        desk.confirm(&format!("removing {name:?}"), self.yes)?;
        session.recto.remove(&name)?;
        desk.answer(&Removed { removed: name })
    }
}

#[derive(Serialize)]
struct Removed {
    removed: String,
}

impl Answer for Removed {
    fn show(&self, page: &mut Page) {
        page.line(Line::new().text("removed ").styled(STRONG, &self.removed));
    }
}
