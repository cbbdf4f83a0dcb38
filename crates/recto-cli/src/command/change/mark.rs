//! `recto mark` and `recto unmark`: MARK and UNMARK.

use clap::Args;
use recto::{Mark as MarkOperation, Unmark as UnmarkOperation};

use super::ChangeArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::EntryRange;

/// Add a label to messages; `pinned` keeps them visible.
///
/// No operation hides a message with the label `pinned`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto mark pinned 1
  recto mark important 3 5-8")]
pub(crate) struct Mark {
    #[command(flatten)]
    label: LabelArguments,
}

/// Remove a label from messages.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto unmark pinned 1")]
pub(crate) struct Unmark {
    #[command(flatten)]
    label: LabelArguments,
}

#[derive(Args, Debug)]
struct LabelArguments {
    /// Label
    label: String,
    /// Log entries: 3, or 5-8 for 5 to 8
    #[arg(required = true, value_name = "ENTRIES")]
    entries: Vec<EntryRange>,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Mark {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let LabelArguments { label: mark, entries, change } = self.label;
        change.operation(MarkOperation { indices: EntryRange::all(&entries), mark }, context)
    }
}

impl Unmark {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let LabelArguments { label: mark, entries, change } = self.label;
        change.operation(UnmarkOperation { indices: EntryRange::all(&entries), mark }, context)
    }
}
