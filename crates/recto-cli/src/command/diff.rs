//! `recto diff`: compares two versions.

use clap::Args;
use serde::Serialize;

use crate::arguments::ConversationArgument;
use crate::context::Context;
use crate::difference::Difference;
use crate::failure::Failure;
use crate::numbers::VersionArgument;
use crate::output::CommandResult;
use crate::page::{Line, Page, STRONG};

/// Compare the views of two versions.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto diff 3 12
  recto diff now-1 now      # the effect of the newest request
  recto diff now-1          # the same")]
pub(crate) struct Diff {
    /// First version: 12, or now-3 for three before the newest
    from: VersionArgument,
    /// Second version
    #[arg(default_value = "now")]
    to: VersionArgument,

    #[command(flatten)]
    of: ConversationArgument,
}

impl Diff {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let session = context.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let newest = named.handle.version()?;
        let (from, to) = (self.from.from(newest)?, self.to.from(newest)?);
        let diff = named.handle.diff(from, to)?;
        let difference = Difference::of(&diff, &named.handle, &[])?;
        context.print(&Compared { conversation: named.name, from: from.0, to: to.0, difference })
    }
}

#[derive(Serialize)]
struct Compared {
    conversation: String,
    from: u32,
    to: u32,
    #[serde(flatten)]
    difference: Difference,
}

impl CommandResult for Compared {
    fn show(&self, page: &mut Page) {
        let title = format!("v{} → v{}", self.from, self.to);
        page.line(Line::new().styled(STRONG, title));
        self.difference.show(page);
    }
}
