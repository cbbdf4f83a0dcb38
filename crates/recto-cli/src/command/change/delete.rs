//! `recto delete`: DELETE.

use clap::Args;
use recto::Delete as Operation;

use super::ChangeArguments;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::numbers::Entries;

/// Take messages out of the view; they stay in the log.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto delete 3 5-8
  recto delete 12 --because 'the tool printed nonsense'")]
pub(crate) struct Delete {
    /// Log entries: 3, or 5-8 for 5 to 8
    #[arg(required = true, value_name = "ENTRIES")]
    entries: Vec<Entries>,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Delete {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        self.change.operation(Operation { indices: Entries::all(&self.entries) }, desk)
    }
}
