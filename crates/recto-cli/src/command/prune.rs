//! `recto prune`: drops messages that no kept version shows.

use clap::Args;
use recto::{Keep, Version};
use recto_service::Pruned;

use crate::arguments::{Caution, OfConversation};
use crate::desk::Desk;
use crate::failure::Failure;
use crate::numbers::{WhichVersion, bytes, counted, runs};
use crate::output::Answer;
use crate::page::{FAINT, Line, Page};
use crate::time;

/// Drop messages for good that no kept version shows. Entries keep their numbers.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto prune --keep-versions 100 --dry-run
  recto prune --keep-versions 100
  recto prune --keep-batches 3 --keep-since '30 days' --yes")]
#[group(id = "keeps", required = true, multiple = true)]
pub(crate) struct Prune {
    #[command(flatten)]
    of: OfConversation,

    /// Keep the last so many versions
    #[arg(long, value_name = "COUNT", group = "keeps")]
    keep_versions: Option<u32>,
    /// Keep the versions since the last so many batches of the live path were opened
    #[arg(long, value_name = "COUNT", group = "keeps")]
    keep_batches: Option<usize>,
    /// Keep the versions since a time: 2026-01-31, 30 days
    #[arg(long, value_name = "TIME", value_parser = time::read, group = "keeps")]
    keep_since: Option<i64>,
    /// Keep this version; may be given several times
    #[arg(long, value_name = "VERSION", group = "keeps")]
    keep_version: Vec<WhichVersion>,

    #[command(flatten)]
    caution: Caution,
}

impl Prune {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let session = desk.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let newest = named.talk.version()?;
        let keep = Keep {
            last_versions: self.keep_versions,
            last_batches: self.keep_batches,
            since: self.keep_since,
            versions: self
                .keep_version
                .iter()
                .map(|which| which.from(newest))
                .collect::<Result<Vec<Version>, _>>()?,
        };
        let Caution { dry_run, expect_version, yes } = self.caution;
        let (talk, expected) = (named.talk.inner(), expect_version.map(Version));
        let pruned = match dry_run {
            true => desk.wait(&session, talk.preview_prune_if(&keep, expected))?,
            false => {
                desk.confirm(&format!("pruning {:?}", named.name), yes)?;
                desk.wait(&session, talk.prune_if(&keep, expected))?
            }
        };
        desk.answer(&Pruned {
            conversation: named.name,
            dry_run,
            entries: pruned.entries,
            bytes: pruned.bytes,
            kept_versions: pruned.kept_versions,
            state: None,
        })
    }
}

impl Answer for Pruned {
    fn show(&self, page: &mut Page) {
        let count = counted(self.entries.len() as u64, "message");
        let deed = if self.dry_run { "would drop" } else { "dropped" };
        let line = Line::new().text(format!("{deed} {count}, {}", bytes(self.bytes as u64)));
        page.line(line.styled(FAINT, format!("  {}", runs(self.entries.iter().copied()))));
        let kept = counted(u64::from(self.kept_versions), "version");
        page.line(Line::new().styled(FAINT, format!("{kept} kept whole")));
    }
}
