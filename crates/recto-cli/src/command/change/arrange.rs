//! `recto arrange`: ARRANGE.

use clap::Args;
use recto::Arrange as Operation;

use super::ChangeArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::EntryRange;

/// Show exactly these messages, in this order.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto arrange 0 5-8 3                 # entry 3 after entries 5 to 8, nothing else
  recto arrange --none                  # an empty view")]
pub(crate) struct Arrange {
    /// Log entries in the new order, visible or hidden: 3, or 5-8 for 5 to 8
    #[arg(required_unless_present = "none", conflicts_with = "none", value_name = "ENTRIES")]
    entries: Vec<EntryRange>,
    /// Show no message
    #[arg(long)]
    none: bool,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Arrange {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        self.change.operation(Operation { indices: EntryRange::all(&self.entries) }, context)
    }
}
