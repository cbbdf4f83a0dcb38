//! `recto remove`: takes conversations away for good.

use clap::Args;
use recto::Version;
use serde::Serialize;

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
        let info = session.recto.info(&name)?;
        let current = info.version.0;
        if let Some(expected) = expect_version.filter(|version| *version != current) {
            return Err(recto::StoreError::VersionConflict { expected, current }.into());
        }
        if dry_run {
            let forks = session.recto.inner().store().forks(info.id);
            let forks = session.recto.wait(forks)?.into_iter().map(|fork| fork.name).collect();
            let messages = info.messages;
            let would =
                WouldRemove { conversation: name, dry_run, version: current, messages, forks };
            return desk.answer(&would);
        }
        desk.confirm(&format!("removing {name:?}"), yes)?;
        let expected = expect_version.map(Version);
        session.recto.wait(session.recto.inner().remove_at(&name, expected))?;
        desk.answer(&Removed { removed: name })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WouldRemove {
    conversation: String,
    dry_run: bool,
    version: u32,
    messages: u32,
    /// They keep what they share with it.
    forks: Vec<String>,
}

impl Answer for WouldRemove {
    fn show(&self, page: &mut Page) {
        let line = Line::new().text("would remove ").styled(STRONG, &self.conversation);
        let count = counted(u64::from(self.messages), "message");
        page.line(line.text(format!(", {count} at v{}", self.version)));
        if !self.forks.is_empty() {
            let forks = format!("these forks keep what they share: {}", self.forks.join(", "));
            page.line(Line::wrapping().styled(FAINT, forks));
        }
    }
}

#[derive(Serialize)]
struct Removed {
    removed: String,
}

impl Answer for Removed {
    fn show(&self, page: &mut Page) {
        page.line(Line::new().text("removed ").styled(STRONG, &self.removed));
    }
}
