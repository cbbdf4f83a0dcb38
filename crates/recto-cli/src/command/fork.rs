//! `recto fork`: a conversation that begins where another one was.

use clap::Args;
use recto_service::{At, Fork as ForkRequest, ForkOf, ForkOptions, Forked};

use crate::arguments::OfConversation;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::numbers::WhichVersion;
use crate::output::Answer;
use crate::page::{Line, Page, STRONG};
use crate::session::check_new_name;

/// Begin a new conversation where another one is or was. It copies no messages.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto fork what-if
  recto fork what-if --at 12 -c support
  recto fork what-if --at now-3")]
pub(crate) struct Fork {
    /// What the fork will be called
    name: String,

    #[command(flatten)]
    of: OfConversation,

    /// The version to begin at: 12, or now-3 for three before the newest; the newest unless told
    #[arg(long, value_name = "VERSION")]
    at: Option<WhichVersion>,
}

impl Fork {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        check_new_name(&self.name)?;
        let session = desk.session()?;
        let from = session.conversation(&self.of.conversation)?;
        let at = self.at.unwrap_or(WhichVersion::Back(0)).from(from.talk.version()?)?;
        let fork = ForkOptions { name: self.name, at: Some(At(at)) };
        let conversation = from.name;
        let forked = session.run(ForkRequest { conversation, fork, include: Vec::new() })?;
        session.conversation(&forked.conversation)?;
        desk.answer(&forked)
    }
}

impl Answer for Forked {
    fn show(&self, page: &mut Page) {
        let ForkOf { conversation, version } = &self.from;
        let line = Line::new().styled(STRONG, &self.conversation).text(" begins where ");
        page.line(line.styled(STRONG, conversation).text(format!(" was at v{version}")));
    }
}
