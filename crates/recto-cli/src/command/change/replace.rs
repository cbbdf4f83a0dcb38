//! `recto replace`: REPLACE.

use clap::Args;
use recto::{Position, Replace as Operation};

use super::ChangeArguments;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::message_input::{MessageInput, Speaks};

/// Put a message in the place of another; that one stays in the log.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto replace --at 4 --role assistant --text 'The gateway times out.'
  recto replace --at 4 --messages one.json --dry-run")]
pub(crate) struct Replace {
    /// The place in the view, from 0
    #[arg(long, value_name = "PLACE")]
    at: usize,
    #[command(flatten)]
    input: MessageInput,
    #[command(flatten)]
    speaks: Speaks,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Replace {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let message = self.input.read_one(self.speaks.role, desk)?;
        self.change.operation(Operation { index: Position(self.at), message }, desk)
    }
}
