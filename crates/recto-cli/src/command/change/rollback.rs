//! `recto rollback`: ROLLBACK.

use clap::Args;
use recto::{BatchIndex, Rollback as Operation};

use super::ChangeArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::VersionArgument;

/// Return to an earlier version or batch.
///
/// The rollback is itself a version, so it can be undone.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto rollback --to-version 12
  recto rollback --to-version now-3
  recto rollback --to-batch 0 --reason 'the trial failed'")]
#[group(id = "target", required = true, multiple = false)]
pub(crate) struct Rollback {
    /// Version to return to: 12, or now-3 for three before the newest
    #[arg(long, value_name = "VERSION", group = "target")]
    to_version: Option<VersionArgument>,
    /// Batch of the live path to return to
    #[arg(long, value_name = "BATCH", group = "target")]
    to_batch: Option<usize>,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Rollback {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let operation = match (self.to_version, self.to_batch) {
            (Some(version), _) => {
                let newest = self.change.newest_for(version, context)?;
                Operation::ToVersion(version.from(newest)?)
            }
            (None, Some(batch)) => Operation::ToBatch(BatchIndex(batch)),
            (None, None) => {
                return Err(Failure::Usage("use --to-version or --to-batch".to_owned()));
            }
        };
        self.change.operation(operation, context)
    }
}
