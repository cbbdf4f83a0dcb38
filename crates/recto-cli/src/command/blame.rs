//! `recto blame`: shows why a message is visible or hidden.

use clap::Args;
use recto::{Effect, LogIndex};
use recto_service::{Blame as BlameRequest, EntryHistory};
use serde::{Serialize, Serializer};

use crate::arguments::ConversationArgument;
use crate::context::Context;
use crate::entry_line::{EntryLine as _, heading};
use crate::failure::Failure;
use crate::numbers::EntryRange;
use crate::output::CommandResult;
use crate::page::{BAD, FAINT, GOOD, Line, Page, STRONG};
use crate::time;

/// Show which versions added, hid or restored messages.
///
/// Each line has the version, the effect, the operation and the reason.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto blame 1
  recto blame 0-5 9
  recto blame '#12' -c support
  recto show --hidden              # why each hidden message is hidden")]
pub(crate) struct Blame {
    /// Log entries: 3 or #3, or 5-8 for 5 to 8
    #[arg(required = true, value_name = "ENTRIES")]
    entries: Vec<EntryRange>,

    #[command(flatten)]
    of: ConversationArgument,
}

impl Blame {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let session = context.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let mut entries = Vec::new();
        for LogIndex(index) in EntryRange::all(&self.entries) {
            let (conversation, blame) = (named.name.clone(), u64::from(index));
            entries.push(session.run(BlameRequest { conversation, blame })?);
        }
        context.print(&Histories { conversation: named.name, entries })
    }
}

/// The histories of log entries. As JSON, a single history is the whole document.
struct Histories {
    conversation: String,
    entries: Vec<EntryHistory>,
}

impl Serialize for Histories {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Document<'a> {
            conversation: &'a str,
            entries: &'a [EntryHistory],
        }
        match &*self.entries {
            [history] => history.serialize(serializer),
            entries => Document { conversation: &self.conversation, entries }.serialize(serializer),
        }
    }
}

impl CommandResult for Histories {
    fn show(&self, page: &mut Page) {
        page.line(heading(""));
        let headings = format!("{:>7} {:<9} {:<11} reason", "version", "effect", "operation");
        page.line(Line::new().styled(FAINT, headings));
        for (number, history) in self.entries.iter().enumerate() {
            if number > 0 {
                page.empty_line();
            }
            show_history(history, page);
        }
    }
}

/// Writes an entry and the versions that changed whether it is visible.
fn show_history(history: &EntryHistory, page: &mut Page) {
    if let Some(entry) = &history.entry {
        let line = entry.line(Default::default(), &[], page);
        page.line(line);
    }
    for blame in &history.history {
        let (effect, style) = match blame.effect {
            Effect::Added => ("added", GOOD),
            Effect::AddedHidden => ("added, hidden", BAD),
            Effect::Hidden => ("hidden", BAD),
            Effect::Shown => ("shown", GOOD),
            _ => ("changed", GOOD),
        };
        let version = format!("{:>7} ", format!("v{}", blame.version));
        let line = Line::wrapping().styled(STRONG, version);
        let line = line.styled(style, format!("{effect:<9} "));
        let line = line.styled(FAINT, format!("{:<11} ", blame.operation.as_str()));
        let line = line.text(&blame.description);
        // An imported message is older than the version that added it.
        let written = history.entry.as_ref().map(|entry| entry.timestamp);
        let written =
            written.filter(|_| matches!(blame.effect, Effect::Added | Effect::AddedHidden));
        let time = time::shown(written.unwrap_or(blame.timestamp));
        page.line(line.styled(FAINT, format!("  {time}")));
    }
}
