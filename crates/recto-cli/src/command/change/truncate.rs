//! `recto truncate`: TRUNCATE.

use clap::Args;
use recto::{Role, Truncate as Operation};

use super::ChangeArguments;
use super::clear::scope;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::message_input::role_parser;
use crate::numbers::Stretch;

/// Keep a stretch of the view. The steps apply in the order of the options here.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto truncate --keep-last 20
  recto truncate --keep-last 20 --role user --keep-others
  recto truncate --range 2..10 --dry-run")]
#[group(id = "steps", required = true, multiple = true)]
pub(crate) struct Truncate {
    /// Keep the first so many
    #[arg(long, value_name = "COUNT", group = "steps")]
    keep_first: Option<usize>,
    /// Keep the last so many
    #[arg(long, value_name = "COUNT", group = "steps")]
    keep_last: Option<usize>,
    /// Remove the first so many
    #[arg(long, value_name = "COUNT", group = "steps")]
    remove_first: Option<usize>,
    /// Remove the last so many
    #[arg(long, value_name = "COUNT", group = "steps")]
    remove_last: Option<usize>,
    /// Keep the places from the first up to, not including, the second: 2..10
    #[arg(long, value_name = "START..END", group = "steps")]
    range: Option<Stretch>,
    /// Count messages of this role only; others are dropped
    #[arg(long, value_name = "ROLE", value_parser = role_parser(), group = "steps")]
    role: Option<Role>,
    /// With --role: keep the others where they are
    #[arg(long, requires = "role")]
    keep_others: bool,
    /// Start from the whole log, not from the view
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Truncate {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let operation = Operation {
            keep_first: self.keep_first,
            keep_last: self.keep_last,
            remove_first: self.remove_first,
            remove_last: self.remove_last,
            range: self.range.map(|stretch| stretch.0),
            role: self.role,
            keep_others: self.keep_others,
            scope: scope(self.all),
        };
        self.change.operation(operation, desk)
    }
}
