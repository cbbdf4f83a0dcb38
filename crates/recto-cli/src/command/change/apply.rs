//! `recto apply`: operations as JSON.

use clap::Args;
use recto::Request;

use super::ChangeArguments;
use crate::desk::Desk;
use crate::failure::Failure;

/// Apply operations that are given as JSON, all or none, as one version.
///
/// The file holds one operation in any of the three forms, {"op": …}, {"ops": […]}, or a list of
/// operations.
#[derive(Args, Debug)]
#[command(after_help = r#"Examples:
  recto apply cut.json
  echo '{"operation": "TRUNCATE", "keepLast": 20}' | recto apply -
  echo '[{"operation": "FIT", "maxTokens": 900}, {"operation": "UNMARK", "indices": [1], "mark": "pinned"}]' |
    recto apply - --dry-run"#)]
pub(crate) struct Apply {
    /// The file; - for standard input
    file: String,
    #[command(flatten)]
    change: ChangeArguments,
}

impl Apply {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let text = desk.read(&self.file)?;
        let request = match text.trim_start().starts_with('[') {
            true => Request::from_json(&format!("{{\"ops\":{text}}}"))?,
            false => Request::from_json(&text)?,
        };
        self.change.perform(request, desk)
    }
}
