//! `recto compress`: COMPRESS.

use clap::Args;
use recto::{Compress as Operation, Message, Role};

use super::ChangeArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::message_input::{messages_of, role_parser};
use crate::numbers::EntryRange;

/// Replace messages by a summary.
///
/// The messages stay in the log and can be restored.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto compress 1-6 --summary 'So far: release 4.2 set the timeout to 500 ms.'
  recto compress 1-6 --summary-file summary.txt --summary-role assistant
  recto compress 7                  # without a summary: like delete")]
pub(crate) struct Compress {
    /// Log entries: 3, or 5-8 for 5 to 8
    #[arg(required = true, value_name = "ENTRIES")]
    entries: Vec<EntryRange>,

    /// Text of the summary. Default: no summary
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["summary_file", "summary_message"])]
    summary: Option<String>,

    /// File with the text of the summary; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "summary_message")]
    summary_file: Option<String>,

    /// File with the summary as a JSON message; - for standard input
    #[arg(long, value_name = "FILE")]
    summary_message: Option<String>,

    /// Role of a summary that is given as text
    #[arg(long, value_name = "ROLE", value_parser = role_parser(), default_value = "system")]
    summary_role: Role,

    #[command(flatten)]
    change: ChangeArguments,
}

impl Compress {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let text = match (&self.summary, &self.summary_file) {
            (Some(text), _) => Some(text.clone()),
            (None, Some(file)) => Some(context.read(file)?.trim_end().to_owned()),
            (None, None) => None,
        };
        let summary = match (text, &self.summary_message) {
            (Some(text), _) => Some(Message::new(self.summary_role, &text)?),
            (None, Some(file)) => {
                match <[Message; 1]>::try_from(messages_of(&context.read(file)?)?) {
                    Ok([message]) => Some(message),
                    Err(_) => {
                        return Err(Failure::Usage(
                            "--summary-message takes one message".to_owned(),
                        ));
                    }
                }
            }
            (None, None) => None,
        };
        self.change
            .operation(Operation { indices: EntryRange::all(&self.entries), summary }, context)
    }
}
