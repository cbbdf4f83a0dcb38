//! `recto fit`: FIT.

use clap::Args;
use recto::{Fit as Operation, Role};

use super::ChangeArguments;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::message_input::role_parser;

/// Keep the newest messages that fit a token budget, and no torn tool calls.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto fit --max-tokens 8000
  recto fit --max-tokens 8000 --start-on user --dry-run")]
pub(crate) struct Fit {
    /// The budget
    #[arg(long, value_name = "TOKENS")]
    max_tokens: u64,
    /// System messages need not stay
    #[arg(long)]
    drop_system: bool,
    /// What is kept starts on a message of this role
    #[arg(long, value_name = "ROLE", value_parser = role_parser())]
    start_on: Option<Role>,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Fit {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let (max_tokens, keep_system) = (self.max_tokens, !self.drop_system);
        let operation = Operation { max_tokens, keep_system, start_on: self.start_on };
        self.change.operation(operation, desk)
    }
}
