//! `recto undo` and `recto redo`: UNDO and REDO.

use clap::Args;
use recto::{Redo as RedoOperation, Undo as UndoOperation};

use super::ChangeArguments;
use crate::context::Context;
use crate::failure::Failure;

/// Undo the newest request that is not undone yet.
///
/// The output names it: `v4 of support: UNDO of v3 FIT into 100 tokens`.
/// `recto fit` of a view that fits makes no version; after it, `recto undo` undoes the request before it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto undo
  recto undo --dry-run")]
pub(crate) struct Undo {
    #[command(flatten)]
    change: ChangeArguments,
}

/// Redo the request that was undone last.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto redo")]
pub(crate) struct Redo {
    #[command(flatten)]
    change: ChangeArguments,
}

impl Undo {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        self.change.operation(UndoOperation, context)
    }
}

impl Redo {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        self.change.operation(RedoOperation, context)
    }
}
