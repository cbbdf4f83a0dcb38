//! `recto fit`: FIT.

use clap::Args;
use recto::{Fit as Operation, Role};

use super::ChangeArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::message_input::role_parser;

/// Keep the newest messages that fit a token budget.
///
/// A tool call is never separated from its results.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto fit --max-tokens 8000
  recto fit --max-tokens 8000 --start-on user --dry-run")]
pub(crate) struct Fit {
    /// Token budget
    #[arg(long, value_name = "TOKENS")]
    max_tokens: u64,
    /// Treat system messages like others, instead of always keeping them
    #[arg(long)]
    drop_system: bool,
    /// Role of the first message that is kept. Default: any
    #[arg(long, value_name = "ROLE", value_parser = role_parser())]
    start_on: Option<Role>,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Fit {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let (max_tokens, keep_system) = (self.max_tokens, !self.drop_system);
        let operation = Operation { max_tokens, keep_system, start_on: self.start_on };
        self.change.operation(operation, context)
    }
}
