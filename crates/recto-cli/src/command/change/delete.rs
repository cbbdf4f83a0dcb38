//! `recto delete`: DELETE.

use clap::Args;
use recto::Delete as Operation;

use super::ChangeArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::EntryRange;

/// Hide messages.
///
/// They stay in the log and can be restored.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto delete 3 5-8
  recto delete 12 --reason 'the tool printed nonsense'")]
pub(crate) struct Delete {
    /// Log entries: 3, or 5-8 for 5 to 8
    #[arg(required = true, value_name = "ENTRIES")]
    entries: Vec<EntryRange>,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Delete {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        self.change.operation(Operation { indices: EntryRange::all(&self.entries) }, context)
    }
}
