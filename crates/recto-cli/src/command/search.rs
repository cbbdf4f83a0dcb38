//! `recto search`: finds messages of all conversations by words.

use clap::Args;

use super::grep::Found;
use crate::context::Context;
use crate::failure::Failure;

/// Find words in all conversations.
///
/// Finds the messages, visible or hidden, that contain all words of the text as whole words; case is
/// ignored. The same as `recto grep --everywhere`. `recto grep` finds any text in one conversation.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto search 'timeout gateway'")]
pub(crate) struct Search {
    /// Words to find
    text: String,

    /// Maximum number of messages
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    limit: usize,
}

impl Search {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let session = context.session()?;
        context.print(&Found::everywhere(self.text, self.limit, &session)?)
    }
}
