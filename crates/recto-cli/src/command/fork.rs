//! `recto fork`: forks a conversation at a version.

use clap::Args;
use recto_service::{At, Fork as ForkRequest, ForkOptions, ForkOrigin, Forked};

use crate::arguments::ConversationArgument;
use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::VersionArgument;
use crate::output::CommandResult;
use crate::page::{Line, Page, STRONG};

/// Fork a conversation at a version, without copying messages.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto fork what-if
  recto fork what-if --at 12 -c support
  recto fork what-if --at now-3")]
pub(crate) struct Fork {
    /// Name of the fork
    name: String,

    #[command(flatten)]
    of: ConversationArgument,

    /// Version to fork at: 12, or now-3 for three before the newest. Default: the newest
    #[arg(long, value_name = "VERSION")]
    at: Option<VersionArgument>,
}

impl Fork {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        recto::check_name(&self.name)?;
        let session = context.session()?;
        let from = session.conversation(&self.of.conversation)?;
        let at = self.at.unwrap_or(VersionArgument::Back(0)).from(from.handle.version()?)?;
        let fork = ForkOptions { name: self.name, at: Some(At(at)) };
        let conversation = from.name;
        let forked = session.run(ForkRequest { conversation, fork, include: Vec::new() })?;
        session.conversation(&forked.conversation)?;
        context.print(&forked)
    }
}

impl CommandResult for Forked {
    fn show(&self, page: &mut Page) {
        let ForkOrigin { conversation, version, .. } = &self.from;
        let line = Line::new().styled(STRONG, &self.conversation).text(" is a fork of ");
        page.line(line.styled(STRONG, conversation).text(format!(" at v{version}")));
    }
}
