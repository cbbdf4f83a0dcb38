//! `recto remove`: takes conversations away for good.

use clap::Args;
use recto::Version;
use recto_service::{At, Remove as RemoveRequest, Removed, True};

use crate::arguments::Caution;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::numbers::counted;
use crate::output::Answer;
use crate::page::{FAINT, Line, Page, STRONG};

/// Take a conversation away for good.
///
/// What its forks share with it stays theirs.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto remove old-talk --dry-run
  recto remove old-talk
  recto remove old-talk --yes")]
pub(crate) struct Remove {
    /// The conversation: its name, its id, the beginning of one of them, or @ for the last one used
    conversation: String,

    #[command(flatten)]
    caution: Caution,
}

impl Remove {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let session = desk.session()?;
        let name = session.name_of(&self.conversation)?;
        let Caution { dry_run, expect_version, yes } = self.caution;
        let expected_version = expect_version.map(|version| At(Version(version)));
        let request = |dry_run: bool| RemoveRequest {
            conversation: name.clone(),
            remove: True,
            expected_version,
            dry_run: Some(dry_run),
        };
        // What would be refused is not asked about.
        let would = session.run(request(true))?;
        if dry_run {
            return desk.answer(&would);
        }
        desk.confirm(&format!("removing {name:?}"), yes)?;
        desk.answer(&session.run(request(false))?)
    }
}

impl Answer for Removed {
    fn show(&self, page: &mut Page) {
        match self {
            Removed::Done { removed } => {
                page.line(Line::new().text("removed ").styled(STRONG, removed));
            }
            Removed::DryRun { conversation, version, messages, forks, .. } => {
                let line = Line::new().text("would remove ").styled(STRONG, conversation);
                let count = counted(u64::from(*messages), "message");
                page.line(line.text(format!(", {count} at v{version}")));
                if !forks.is_empty() {
                    let forks = format!("these forks keep what they share: {}", forks.join(", "));
                    page.line(Line::wrapping().styled(FAINT, forks));
                }
            }
        }
    }
}
