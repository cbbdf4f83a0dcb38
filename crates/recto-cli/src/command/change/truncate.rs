//! `recto truncate`: TRUNCATE.

use clap::Args;
use recto::{Role, Truncate as Operation};

use super::ChangeArguments;
use super::clear::scope;
use crate::context::Context;
use crate::failure::Failure;
use crate::message_input::role_parser;
use crate::numbers::PositionRange;

/// Keep the first, the last or a range of messages.
///
/// Options are applied in the order in which this help lists them, each to the result of the previous one:
/// --role user --keep-last 3 keeps the last three user messages.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto truncate --keep-last 20
  recto truncate --keep-last 20 --role user --keep-others
  recto truncate --range 2..10 --dry-run")]
#[group(id = "steps", required = true, multiple = true)]
pub(crate) struct Truncate {
    /// Count messages of this role only, before the options below; messages of other roles are hidden
    #[arg(long, value_name = "ROLE", value_parser = role_parser(), group = "steps")]
    role: Option<Role>,
    /// Keep messages of other roles (with --role)
    #[arg(long, requires = "role")]
    keep_others: bool,
    /// Keep the first COUNT messages
    #[arg(long, value_name = "COUNT", group = "steps")]
    keep_first: Option<usize>,
    /// Keep the last COUNT messages
    #[arg(long, value_name = "COUNT", group = "steps")]
    keep_last: Option<usize>,
    /// Hide the first COUNT messages
    #[arg(long, value_name = "COUNT", group = "steps")]
    remove_first: Option<usize>,
    /// Hide the last COUNT messages
    #[arg(long, value_name = "COUNT", group = "steps")]
    remove_last: Option<usize>,
    /// Keep a range of positions: 2..10 is 2 to 9
    #[arg(long, value_name = "START..END", group = "steps")]
    range: Option<PositionRange>,
    /// Select from the whole log instead of the view
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Truncate {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let operation = Operation {
            keep_first: self.keep_first,
            keep_last: self.keep_last,
            remove_first: self.remove_first,
            remove_last: self.remove_last,
            range: self.range.map(|range| range.0),
            role: self.role,
            keep_others: self.keep_others,
            scope: scope(self.all),
        };
        self.change.operation(operation, context)
    }
}
