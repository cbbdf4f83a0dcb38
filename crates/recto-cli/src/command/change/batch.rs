//! `recto batch start` and `recto batch end`: BATCH_START and BATCH_END.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use recto::{BatchEnd, BatchIndex, BatchStart, Carry, LogIndex, Role};

use super::ChangeArguments;
use crate::desk::Desk;
use crate::failure::Failure;

/// Open a batch that can be thrown away, or go back to one.
#[derive(Args, Debug)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Batch {
    #[command(subcommand)]
    which: Which,
}

#[derive(Debug, Subcommand)]
enum Which {
    Start(Start),
    End(End),
}

/// Open a batch with the same view.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto batch start --because 'let the agent try'
  recto batch start --boundary 120      # without the entries before #120
  recto batch start --boundary 120 --with-tools")]
struct Start {
    /// Without the entries whose number is below this
    #[arg(long, value_name = "ENTRY")]
    boundary: Option<u32>,
    /// Show the tool description in the new batch, whatever the boundary
    #[arg(long)]
    with_tools: bool,
    #[command(flatten)]
    change: ChangeArguments,
}

/// Go back to a batch, and carry some of what was added since along.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto batch end                       # to where the newest `batch start` was
  recto batch end 0
  recto batch end 0 --carry assistant --carry tool
  recto batch end 0 --carry all")]
struct End {
    /// Batch to go back to. Default: the one that was current at the newest `batch start`
    #[arg(value_name = "BATCH")]
    target: Option<usize>,
    /// What comes along: none, all, or roles
    #[arg(long, value_name = "WHAT", default_value = "none",
        value_parser = PossibleValuesParser::new(["none", "all", "system", "user", "assistant", "tool"]))]
    carry: Vec<String>,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Batch {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        match self.which {
            Which::Start(Start { boundary, with_tools, change }) => {
                let boundary = boundary.map(LogIndex);
                change.operation(BatchStart { boundary, with_tools }, desk)
            }
            Which::End(End { target, carry, change }) => {
                let carry = read_carry(&carry)?;
                change.operation(BatchEnd { target: target.map(BatchIndex), carry }, desk)
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
            let wrong = || Failure::Usage("--carry is none, all, or roles".to_owned());
            Ok(Carry::Roles(roles.ok_or_else(wrong)?.into_iter().collect()))
        }
    }
}
