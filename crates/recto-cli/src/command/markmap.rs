//! `recto markmap`: shows the mark map of the contract: visible entries, entries by role, batches.

use clap::Args;
use recto::LogIndex;
use recto_service::{
    At, ExportedMarkMap, MarkMap as MarkMapRequest, MarkMapOptions, Scope, TrueOr,
};

use crate::arguments::ConversationArgument;
use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::{VersionArgument, runs};
use crate::output::CommandResult;
use crate::page::{FAINT, Line, Page};

/// Show visible entries, entries by role, and batch boundaries.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto markmap
  recto markmap --at 12
  recto markmap --all
  recto markmap --json | jq .originalIndices")]
pub(crate) struct Markmap {
    #[command(flatten)]
    of: ConversationArgument,

    /// Version to read: 12, or now-3 for three before the newest. Default: the newest
    #[arg(long, value_name = "VERSION")]
    at: Option<VersionArgument>,

    /// List all log entries by role, not only the visible ones
    #[arg(long)]
    all: bool,
}

impl Markmap {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let session = context.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let scope = Some(if self.all { Scope::All } else { Scope::Visible });
        let at = match self.at {
            Some(version) => Some(At(version.from(named.handle.version()?)?)),
            None => None,
        };
        let mark_map = TrueOr(MarkMapOptions { scope });
        let map = session.run(MarkMapRequest { conversation: named.name, mark_map, at })?;
        context.print(&map)
    }
}

impl CommandResult for ExportedMarkMap {
    fn show(&self, page: &mut Page) {
        let ExportedMarkMap(map) = self;
        let mut field = |name: &str, value: String| {
            page.line(Line::wrapping().styled(FAINT, format!("{name:<11}")).text(value));
        };
        let list = |indices: &[LogIndex]| runs(indices.iter().copied());
        field("view", list(&map.original_indices));
        field("system", list(&map.type_indices.system));
        field("user", list(&map.type_indices.user));
        field("assistant", list(&map.type_indices.assistant));
        field("tool", list(&map.type_indices.tool));
        for (batch, boundary) in map.boundary_to_batch.iter().zip(&map.batch_boundaries) {
            let now = if *batch == map.current_batch { ", the current one" } else { "" };
            field("batch", format!("{batch} from #{boundary}{now}"));
        }
    }
}
