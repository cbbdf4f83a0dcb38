//! `recto blame`: why a message is visible or hidden.

use clap::Args;
use recto::Effect;
use recto_service::{Blame as BlameRequest, EntryHistory};

use crate::arguments::OfConversation;
use crate::desk::Desk;
use crate::entry_line::EntryLine as _;
use crate::failure::Failure;
use crate::numbers::Entries;
use crate::output::Answer;
use crate::page::{BAD, FAINT, GOOD, Line, Page, STRONG};
use crate::time;

/// Tell everything that happened to a message: who added, hid or brought it back, and why.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto blame 1
  recto blame '#12' -c support")]
pub(crate) struct Blame {
    /// A log entry
    #[arg(value_name = "ENTRY")]
    entry: Entries,

    #[command(flatten)]
    of: OfConversation,
}

impl Blame {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        if self.entry.0.len() != 1 {
            return Err(Failure::Usage("blame tells of one log entry at a time".to_owned()));
        }
        let index = self.entry.0.start;
        let session = desk.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let (conversation, blame) = (named.name, u64::from(index));
        desk.answer(&session.run(BlameRequest { conversation, blame })?)
    }
}

impl Answer for EntryHistory {
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
            // What was imported was said long before it was added.
            let said = self.entry.as_ref().map(|entry| entry.timestamp);
            let said = said.filter(|_| matches!(blame.effect, Effect::Added | Effect::AddedHidden));
            let time = time::shown(said.unwrap_or(blame.timestamp));
            page.line(line.styled(FAINT, format!("  {time}")));
        }
    }
}
