//! `recto rollback`: ROLLBACK.

use clap::Args;
use recto::{BatchIndex, Rollback as Operation};

use super::ChangeArguments;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::numbers::WhichVersion;

/// Go back to a batch or a version. Nothing is lost: this is a version too.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto rollback --to-version 12
  recto rollback --to-version now-3
  recto rollback --to-batch 0 --because 'the trial failed'")]
#[group(id = "target", required = true, multiple = false)]
pub(crate) struct Rollback {
    /// A version: 12, or now-3 for three before the newest
    #[arg(long, value_name = "VERSION", group = "target")]
    to_version: Option<WhichVersion>,
    /// A batch of the live path
    #[arg(long, value_name = "BATCH", group = "target")]
    to_batch: Option<usize>,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Rollback {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let operation = match (self.to_version, self.to_batch) {
            (Some(version), _) => {
                let newest = self.change.newest_for(version, desk)?;
                Operation::ToVersion(version.from(newest)?)
            }
            (None, Some(batch)) => Operation::ToBatch(BatchIndex(batch)),
            (None, None) => {
                return Err(Failure::Usage("say --to-version or --to-batch".to_owned()));
            }
        };
        self.change.operation(operation, desk)
    }
}
