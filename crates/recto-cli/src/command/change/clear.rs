//! `recto clear`: CLEAR.

use clap::Args;
use recto::{Clear as Operation, Scope};

use super::ChangeArguments;
use crate::desk::Desk;
use crate::failure::Failure;

/// Empty the view, but for system messages.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto clear
  recto clear --drop-system --because 'a new task'")]
pub(crate) struct Clear {
    /// Drop system messages too
    #[arg(long)]
    drop_system: bool,
    /// Start from the whole log, not from the view
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Clear {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let operation =
            Operation { keep_system_message: !self.drop_system, scope: scope(self.all) };
        self.change.operation(operation, desk)
    }
}

/// What `--all` means.
pub(crate) fn scope(all: bool) -> Scope {
    if all { Scope::All } else { Scope::Visible }
}
