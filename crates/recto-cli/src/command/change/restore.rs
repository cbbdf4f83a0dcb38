//! `recto restore`: RESTORE.

use clap::Args;
use recto::Restore as Operation;

use super::ChangeArguments;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::numbers::Entries;

/// Bring hidden messages back to where they belong.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto restore 1
  recto restore 5-8 --dry-run

To copy a backup into a store, see `recto help restore-backup`.")]
pub(crate) struct Restore {
    /// Log entries: 3, or 5-8 for 5 to 8
    #[arg(required = true, value_name = "ENTRIES")]
    entries: Vec<Entries>,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Restore {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        self.change.operation(Operation { indices: Entries::all(&self.entries) }, desk)
    }
}
