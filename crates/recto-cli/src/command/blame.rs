//! `recto blame`: shows why a message is visible or hidden.

use anstyle::Style;
use clap::Args;
use recto::{Effect, LogIndex, OperationKind, Version};
use recto_service::{Blame as BlameRequest, EntryHistory};
use serde::{Serialize, Serializer};

use crate::arguments::ConversationArgument;
use crate::context::Context;
use crate::entry_line::{EntryLine as _, heading};
use crate::failure::Failure;
use crate::numbers::EntryRange;
use crate::output::CommandResult;
use crate::page::{BAD, FAINT, GOOD, Line, NOTE, Page, STRONG};
use crate::time;

/// Show which versions added, hid, restored or marked messages.
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

/// Writes an entry, and the versions that added, hid, showed, marked or unmarked it.
fn show_history(history: &EntryHistory, page: &mut Page) {
    if let Some(entry) = &history.entry {
        let line = entry.line(Default::default(), &[], page);
        page.line(line);
    }
    let mut lines: Vec<(Version, Line)> = Vec::new();
    for blame in &history.history {
        let (effect, style) = match blame.effect {
            Effect::Added => ("added", GOOD),
            Effect::AddedHidden => ("added, hidden", BAD),
            Effect::Hidden => ("hidden", BAD),
            Effect::Shown => ("shown", GOOD),
            _ => ("changed", GOOD),
        };
        // The line of the version that added the message has the time of the message, because an imported
        // message is older than that version.
        let written = history.entry.as_ref().map(|entry| entry.timestamp);
        let written =
            written.filter(|_| matches!(blame.effect, Effect::Added | Effect::AddedHidden));
        let line = change_line(blame.version, (effect, style), blame.operation, &blame.reason);
        let time = time::shown(written.unwrap_or(blame.timestamp));
        lines.push((blame.version, line.styled(FAINT, format!("  {time}"))));
    }
    for change in &history.marks {
        let effect = if change.marked { ("marked", NOTE) } else { ("unmarked", FAINT) };
        let line = change_line(change.version, effect, change.operation, &change.reason);
        let line = line.text(" ").styled(NOTE, format!("[{}]", change.mark));
        let time = time::shown(change.timestamp);
        lines.push((change.version, line.styled(FAINT, format!("  {time}"))));
    }
    lines.sort_by_key(|(version, _)| *version);
    lines.into_iter().for_each(|(_, line)| page.line(line));
}

/// The version, its effect on an entry, the operation and the reason.
fn change_line(
    version: Version,
    (effect, style): (&str, Style),
    operation: OperationKind,
    reason: &str,
) -> Line {
    let version = format!("{:>7} ", format!("v{version}"));
    let line = Line::wrapping().styled(STRONG, version);
    let line = line.styled(style, format!("{effect:<9} "));
    line.styled(FAINT, format!("{:<11} ", operation.as_str())).text(reason)
}
