//! `recto mark` and `recto unmark`: MARK and UNMARK.

use clap::Args;
use recto::{Mark as MarkOperation, Unmark as UnmarkOperation};

use super::ChangeArguments;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::numbers::Entries;

/// Label messages. The label `pinned` protects them from every cut.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto mark pinned 1
  recto mark important 3 5-8")]
pub(crate) struct Mark {
    #[command(flatten)]
    what: Labelled,
}

/// Take a label off messages.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto unmark pinned 1")]
pub(crate) struct Unmark {
    #[command(flatten)]
    what: Labelled,
}

#[derive(Args, Debug)]
struct Labelled {
    /// The label
    label: String,
    /// Log entries: 3, or 5-8 for 5 to 8
    #[arg(required = true, value_name = "ENTRIES")]
    entries: Vec<Entries>,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Mark {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let Labelled { label: mark, entries, change } = self.what;
        change.operation(MarkOperation { indices: Entries::all(&entries), mark }, desk)
    }
}

impl Unmark {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let Labelled { label: mark, entries, change } = self.what;
        change.operation(UnmarkOperation { indices: Entries::all(&entries), mark }, desk)
    }
}
