//! `recto mark`, `unmark`, `pin` and `unpin`: MARK and UNMARK.

use clap::Args;
use recto::{Mark as MarkOperation, PINNED, Unmark as UnmarkOperation};

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

/// Keep messages visible: add the label `pinned`.
///
/// No operation hides a pinned message. The same as `recto mark pinned ENTRIES`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto pin 1
  recto pin 3 5-8")]
pub(crate) struct Pin {
    #[command(flatten)]
    pinned: PinArguments,
}

/// Remove the label `pinned`.
///
/// The same as `recto unmark pinned ENTRIES`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto unpin 1")]
pub(crate) struct Unpin {
    #[command(flatten)]
    pinned: PinArguments,
}

#[derive(Args, Debug)]
struct PinArguments {
    /// Log entries: 3, or 5-8 for 5 to 8
    #[arg(required = true, value_name = "ENTRIES")]
    entries: Vec<EntryRange>,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Pin {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let PinArguments { entries, change } = self.pinned;
        let (indices, mark) = (EntryRange::all(&entries), PINNED.to_owned());
        change.operation(MarkOperation { indices, mark }, context)
    }
}

impl Unpin {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let PinArguments { entries, change } = self.pinned;
        let (indices, mark) = (EntryRange::all(&entries), PINNED.to_owned());
        change.operation(UnmarkOperation { indices, mark }, context)
    }
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
