//! `recto restore`: RESTORE.

use clap::Args;
use recto::Restore as Operation;

use super::ChangeArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::EntryRange;

/// Show hidden messages again, at their old positions.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto restore 1
  recto restore 5-8 --dry-run

To copy a backup into a store, see `recto help restore-backup`.")]
pub(crate) struct Restore {
    /// Log entries: 3, or 5-8 for 5 to 8
    #[arg(required = true, value_name = "ENTRIES")]
    entries: Vec<EntryRange>,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Restore {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        self.change.operation(Operation { indices: EntryRange::all(&self.entries) }, context)
    }
}
