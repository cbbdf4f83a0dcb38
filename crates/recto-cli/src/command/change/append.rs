//! `recto append`: APPEND.

use clap::Args;
use recto::Append as Operation;

use super::ChangeArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::message_input::{MessageInput, RoleArgument};

/// Add messages to the end.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto append --text 'Why does checkout fail?'
  recto append --role assistant --text-file answer.md
  cat messages.jsonl | recto append --messages -
  recto append --messages turn.json --format openai-chat")]
pub(crate) struct Append {
    #[command(flatten)]
    input: MessageInput,
    #[command(flatten)]
    role: RoleArgument,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Append {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let messages = self.input.read(self.role.role, context)?;
        self.change.operation(Operation { messages }, context)
    }
}
