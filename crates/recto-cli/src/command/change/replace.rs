//! `recto replace`: REPLACE.

use clap::Args;
use recto::Replace as Operation;

use super::ChangeArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::message_input::{MessageInput, RoleArgument};
use crate::numbers::PositionArgument;

/// Replace a visible message.
///
/// The old message stays in the log and can be restored.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto replace --position 4 --role assistant --text 'The gateway times out.'
  recto replace --position 4 --messages one.json --dry-run")]
pub(crate) struct Replace {
    /// Position of the message in the view, from 0; `recto show` prints positions
    #[arg(long, value_name = "POSITION")]
    position: PositionArgument,
    #[command(flatten)]
    input: MessageInput,
    #[command(flatten)]
    role: RoleArgument,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Replace {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let message = self.input.read_one(self.role.role, context)?;
        self.change.operation(Operation { index: self.position.0, message }, context)
    }
}
