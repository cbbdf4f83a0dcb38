//! `recto blame`: shows why a message is visible or hidden.

use clap::Args;
use recto::Effect;
use recto_service::{Blame as BlameRequest, EntryHistory};

use crate::arguments::ConversationArgument;
use crate::context::Context;
use crate::entry_line::EntryLine as _;
use crate::failure::Failure;
use crate::numbers::EntryRange;
use crate::output::CommandResult;
use crate::page::{BAD, FAINT, GOOD, Line, Page, STRONG};
use crate::time;

/// Show which versions added, hid or restored a message.
///
/// Each line has the version, the operation and the reason.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto blame 1
  recto blame '#12' -c support")]
pub(crate) struct Blame {
    /// Log entry: 3 or #3
    #[arg(value_name = "ENTRY")]
    entry: EntryRange,

    #[command(flatten)]
    of: ConversationArgument,
}

impl Blame {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        if self.entry.0.len() != 1 {
            return Err(Failure::Usage("blame takes one log entry".to_owned()));
        }
        let index = self.entry.0.start;
        let session = context.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let (conversation, blame) = (named.name, u64::from(index));
        context.print(&session.run(BlameRequest { conversation, blame })?)
    }
}

impl CommandResult for EntryHistory {
    fn show(&self, page: &mut Page) {
        if let Some(entry) = &self.entry {
            let line = entry.line(Default::default(), &[], page);
            page.line(line);
        }
        for blame in &self.history {
            let (effect, style) = match blame.effect {
                Effect::Added => ("added", GOOD),
                Effect::AddedHidden => ("added, hidden", BAD),
                Effect::Hidden => ("hidden", BAD),
                Effect::Shown => ("shown", GOOD),
                _ => ("changed", GOOD),
            };
            let line = Line::new().styled(STRONG, format!("{:>6} ", format!("v{}", blame.version)));
            let line = line.styled(style, format!("{effect:<9} "));
            let line = line.styled(FAINT, format!("{:<11} ", blame.operation.as_str()));
            let line = line.text(&blame.description);
            // An imported message is older than the version that added it.
            let written = self.entry.as_ref().map(|entry| entry.timestamp);
            let written =
                written.filter(|_| matches!(blame.effect, Effect::Added | Effect::AddedHidden));
            let time = time::shown(written.unwrap_or(blame.timestamp));
            page.line(line.styled(FAINT, format!("  {time}")));
        }
    }
}
