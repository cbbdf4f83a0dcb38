//! `recto insert`: INSERT.

use clap::Args;
use recto::Insert as Operation;

use super::ChangeArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::message_input::{MessageInput, RoleArgument};
use crate::numbers::PositionArgument;

/// Insert messages at a position of the view.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto insert --position 0 --role system --text 'You are on call for a web shop.'
  recto insert --position 3 --messages more.json --dry-run")]
pub(crate) struct Insert {
    /// Position of the first inserted message, from 0; `recto show` prints positions
    #[arg(long, value_name = "POSITION")]
    position: PositionArgument,
    #[command(flatten)]
    input: MessageInput,
    #[command(flatten)]
    role: RoleArgument,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Insert {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let messages = self.input.read(self.role.role, context)?;
        self.change.operation(Operation { position: self.position.0, messages }, context)
    }
}
