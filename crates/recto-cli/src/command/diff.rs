//! `recto diff`: what changed between two versions.

use clap::Args;
use serde::Serialize;

use crate::arguments::OfConversation;
use crate::desk::Desk;
use crate::difference::Difference;
use crate::failure::Failure;
use crate::numbers::WhichVersion;
use crate::output::Answer;
use crate::page::{Line, Page, STRONG};

/// Compare what the model read at two versions.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto diff 3 12
  recto diff now-1 now      # what the newest request did
  recto diff now-1          # the same")]
pub(crate) struct Diff {
    /// The first version: 12, or now-3 for three before the newest
    from: WhichVersion,
    /// The second one; the newest unless told
    #[arg(default_value = "now")]
    to: WhichVersion,

    #[command(flatten)]
    of: OfConversation,
}

impl Diff {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let session = desk.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let newest = named.talk.version()?;
        let (from, to) = (self.from.from(newest)?, self.to.from(newest)?);
        let diff = named.talk.diff(from, to)?;
        let difference = Difference::of(&diff, &named.talk, &[])?;
        desk.answer(&Compared { conversation: named.name, from: from.0, to: to.0, difference })
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

impl Answer for Compared {
    fn show(&self, page: &mut Page) {
        let title = format!("v{} → v{}", self.from, self.to);
        page.line(Line::new().styled(STRONG, title));
        self.difference.show(page);
    }
}
