//! `recto batch start` and `recto batch end`: BATCH_START and BATCH_END.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use recto::{BatchEnd, BatchIndex, BatchStart, Carry, Role};

use super::ChangeArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::EntryArgument;

/// Start a temporary batch, or return from it.
#[derive(Args, Debug)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
Examples:
  recto batch start --reason 'ask for a summary'
  recto append --text 'Summarise the incident.'
  recto batch end --carry assistant     # the answer stays, the question leaves the view"
)]
pub(crate) struct Batch {
    #[command(subcommand)]
    command: BatchCommand,
}

#[derive(Debug, Subcommand)]
enum BatchCommand {
    Start(Start),
    End(End),
}

/// Start a batch with the same view.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto batch start --reason 'let the agent try'
  recto batch start --boundary 120      # hides the entries before #120
  recto batch start --boundary 120 --with-tools")]
struct Start {
    /// First log entry to keep visible in the new batch. Default: keep the view
    #[arg(long, value_name = "ENTRY")]
    boundary: Option<EntryArgument>,
    /// Show the tool description in the new batch, even if it is before the boundary
    #[arg(long)]
    with_tools: bool,
    #[command(flatten)]
    change: ChangeArguments,
}

/// Return to a batch, optionally with messages added since.
///
/// `--carry` selects the messages that stay visible.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto batch end                       # back to the state before the newest `batch start`
  recto batch end 0
  recto batch end 0 --carry assistant --carry tool
  recto batch end 0 --carry all")]
struct End {
    /// Batch to return to. Default: the one that was current at the newest `batch start`
    #[arg(value_name = "BATCH")]
    target: Option<usize>,
    /// Messages that stay visible: none, all, or a role; can be repeated
    #[arg(long, value_name = "WHAT", default_value = "none",
        value_parser = PossibleValuesParser::new(["none", "all", "system", "user", "assistant", "tool"]))]
    carry: Vec<String>,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Batch {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        match self.command {
            BatchCommand::Start(Start { boundary, with_tools, change }) => {
                let boundary = boundary.map(|entry| entry.0);
                change.operation(BatchStart { boundary, with_tools }, context)
            }
            BatchCommand::End(End { target, carry, change }) => {
                let carry = read_carry(&carry)?;
                change.operation(BatchEnd { target: target.map(BatchIndex), carry }, context)
            }
        }
    }
}

fn read_carry(words: &[String]) -> Result<Carry, Failure> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match &*words {
        ["none"] => Ok(Carry::None),
        ["all"] => Ok(Carry::All),
        roles => {
            let roles: Option<Vec<Role>> = roles.iter().map(|name| Role::named(name)).collect();
            let wrong = || Failure::Usage("--carry takes none, all, or roles".to_owned());
            Ok(Carry::Roles(roles.ok_or_else(wrong)?.into_iter().collect()))
        }
    }
}
