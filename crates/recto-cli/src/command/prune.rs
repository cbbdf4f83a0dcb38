//! `recto prune`: overwrites messages that no kept version shows.

use clap::Args;
use recto::Version;
use recto_service::{At, Prune as PruneRequest, PruneOptions, Pruned};

use crate::arguments::{ConversationArgument, DestructiveArguments};
use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::{VersionArgument, bytes, counted, runs};
use crate::output::CommandResult;
use crate::page::{FAINT, Line, Page};
use crate::time;

/// Overwrite permanently the messages that no kept version shows.
///
/// Log entries keep their index. A version is kept if any of the options selects it; the newest version is
/// always kept. Messages that a version of a fork shows are kept. A mark does not keep a hidden message.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto prune --keep-versions 100 --dry-run
  recto prune --keep-versions 100
  recto prune --keep-batches 3 --keep-since '30 days' --yes")]
#[group(id = "keeps", required = true, multiple = true)]
pub(crate) struct Prune {
    #[command(flatten)]
    of: ConversationArgument,

    /// Keep the newest COUNT versions
    #[arg(long, value_name = "COUNT", group = "keeps")]
    keep_versions: Option<u32>,
    /// Keep all versions since the COUNT-th newest batch of the live path was opened
    #[arg(long, value_name = "COUNT", group = "keeps")]
    keep_batches: Option<usize>,
    /// Keep the versions since a time: 2026-01-31, or 30 days
    #[arg(long, value_name = "TIME", value_parser = time::read, group = "keeps")]
    keep_since: Option<i64>,
    /// Keep this version; can be repeated
    #[arg(long, value_name = "VERSION", group = "keeps")]
    keep_version: Vec<VersionArgument>,

    #[command(flatten)]
    destructive: DestructiveArguments,
}

impl Prune {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let session = context.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let newest = named.handle.version()?;
        let versions = self.keep_version.iter().map(|version| Ok(At(version.from(newest)?)));
        let keep = PruneOptions {
            keep_versions: self.keep_versions.map(u64::from),
            keep_batches: self.keep_batches.map(|count| count as u64),
            keep_since: self.keep_since,
            versions: Some(versions.collect::<Result<_, Failure>>()?),
        };
        let DestructiveArguments { dry_run, expect_version, yes } = self.destructive;
        if !dry_run {
            context.confirm(&format!("pruning {:?}", named.name), yes)?;
        }
        let request = PruneRequest {
            conversation: named.name,
            prune: keep,
            expected_version: expect_version.map(|version| At(Version(version))),
            dry_run: Some(dry_run),
            include: Vec::new(),
        };
        let pruned = context.run(&session, request)?;
        context.print(&pruned)
    }
}

impl CommandResult for Pruned {
    fn show(&self, page: &mut Page) {
        let count = counted(self.entries.len() as u64, "message");
        let verb = if self.dry_run { "would overwrite" } else { "overwrote" };
        let size = bytes(self.bytes as u64);
        let line = Line::new().text(format!("{verb} {count}")).styled(FAINT, " of ");
        let line = line.text(&self.conversation).text(format!(", {size}"));
        page.line(line.styled(FAINT, format!("  {}", runs(self.entries.iter().copied()))));
        let kept = counted(u64::from(self.kept_versions), "version");
        page.line(Line::new().styled(FAINT, format!("{kept} kept unchanged")));
    }
}
