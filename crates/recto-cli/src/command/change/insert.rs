//! `recto insert`: INSERT.

use clap::Args;
use recto::{Insert as Operation, Position};

use super::ChangeArguments;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::message_input::{MessageInput, Speaks};

/// Add messages at a place of the view.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto insert --at 0 --role system --text 'You are on call for a web shop.'
  recto insert --at 3 --messages more.json --dry-run")]
pub(crate) struct Insert {
    /// The place that the first of them gets, from 0
    #[arg(long, value_name = "PLACE")]
    at: usize,
    #[command(flatten)]
    input: MessageInput,
    #[command(flatten)]
    speaks: Speaks,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Insert {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let messages = self.input.read(self.speaks.role, desk)?;
        self.change.operation(Operation { position: Position(self.at), messages }, desk)
    }
}
