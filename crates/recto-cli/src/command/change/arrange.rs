//! `recto arrange`: ARRANGE.

use clap::Args;
use recto::Arrange as Operation;

use super::ChangeArguments;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::numbers::Entries;

/// Show exactly these messages, in this order.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto arrange 0 5-8 3                 # entry 3 behind entries 5 to 8, nothing else
  recto arrange --none                  # nothing")]
pub(crate) struct Arrange {
    /// Log entries in their order, visible or hidden: 3, or 5-8 for 5 to 8
    #[arg(required_unless_present = "none", conflicts_with = "none", value_name = "ENTRIES")]
    entries: Vec<Entries>,
    /// Show nothing
    #[arg(long)]
    none: bool,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Arrange {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        self.change.operation(Operation { indices: Entries::all(&self.entries) }, desk)
    }
}
