//! `recto rename`: renames a conversation.

use clap::Args;
use recto_service::{Rename as RenameRequest, Renamed};

use crate::context::Context;
use crate::failure::Failure;
use crate::output::CommandResult;
use crate::page::{Line, Page, STRONG};

/// Rename a conversation.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto rename support support-2026
  recto rename @ better-name")]
pub(crate) struct Rename {
    /// Conversation: name, id, a unique prefix of either, or @ for the last one used
    conversation: String,
    /// New name
    to: String,

    /// Check whether the name is free, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Rename {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        recto::check_name(&self.to)?;
        let session = context.session()?;
        let from = session.name_of(&self.conversation)?;
        let Rename { to, dry_run, .. } = self;
        let include = Vec::new();
        let request =
            RenameRequest { conversation: from, rename: to, dry_run: Some(dry_run), include };
        let renamed = session.run(request)?;
        if !dry_run {
            session.conversation(&renamed.to)?;
        }
        context.print(&renamed)
    }
}

impl CommandResult for Renamed {
    fn show(&self, page: &mut Page) {
        let verb = if self.dry_run { " would be called " } else { " is now called " };
        let line = Line::new().styled(STRONG, &self.from).text(verb);
        page.line(line.styled(STRONG, &self.to));
    }
}
