//! `recto rename`: another name for a conversation.

use clap::Args;
use recto_service::{Rename as RenameRequest, Renamed};

use crate::desk::Desk;
use crate::failure::Failure;
use crate::output::Answer;
use crate::page::{Line, Page, STRONG};
use crate::session::check_new_name;

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

    /// Say whether it could be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Rename {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        check_new_name(&self.to)?;
        let session = desk.session()?;
        let from = session.name_of(&self.conversation)?;
        let Rename { to, dry_run, .. } = self;
        let include = Vec::new();
        let request =
            RenameRequest { conversation: from, rename: to, dry_run: Some(dry_run), include };
        let renamed = session.run(request)?;
        if !dry_run {
            session.conversation(&renamed.to)?;
        }
        desk.answer(&renamed)
    }
}

impl Answer for Renamed {
    fn show(&self, page: &mut Page) {
        let deed = if self.dry_run { " would be called " } else { " is now called " };
        let line = Line::new().styled(STRONG, &self.from).text(deed);
        page.line(line.styled(STRONG, &self.to));
    }
}
