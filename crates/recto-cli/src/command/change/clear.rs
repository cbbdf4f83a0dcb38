//! `recto clear`: CLEAR.

use clap::Args;
use recto::{Clear as Operation, Scope};

use super::ChangeArguments;
use crate::context::Context;
use crate::failure::Failure;

/// Hide all messages except system messages.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto clear
  recto clear --drop-system --reason 'a new task'")]
pub(crate) struct Clear {
    /// Hide system messages too
    #[arg(long)]
    drop_system: bool,
    /// Select from the whole log instead of the view
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Clear {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let operation =
            Operation { keep_system_message: !self.drop_system, scope: scope(self.all) };
        self.change.operation(operation, context)
    }
}

/// The scope of an operation: the log with `--all`, otherwise the view.
pub(crate) fn scope(all: bool) -> Scope {
    if all { Scope::All } else { Scope::Visible }
}
