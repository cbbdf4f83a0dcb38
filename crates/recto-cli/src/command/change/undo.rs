//! `recto undo` and `recto redo`.

use clap::Args;
use recto::{Redo as RedoOperation, Undo as UndoOperation};

use super::ChangeArguments;
use crate::desk::Desk;
use crate::failure::Failure;

/// Take the newest request back that has not been taken back.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto undo
  recto undo --dry-run")]
pub(crate) struct Undo {
    #[command(flatten)]
    change: ChangeArguments,
}

/// Put back what undo took back.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto redo")]
pub(crate) struct Redo {
    #[command(flatten)]
    change: ChangeArguments,
}

impl Undo {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        self.change.operation(UndoOperation, desk)
    }
}

impl Redo {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        self.change.operation(RedoOperation, desk)
    }
}
