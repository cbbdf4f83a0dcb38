//! `recto markmap`: the view, its entries by role and the batches, in the shape that older tools know.

use clap::Args;
use recto::{LogIndex, MarkMap, Scope};
use serde::Serialize;

use crate::arguments::OfConversation;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::numbers::{WhichVersion, runs};
use crate::output::Answer;
use crate::page::{FAINT, Line, Page};

/// Show which log entries are visible, whose they are, and where batches begin.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto markmap
  recto markmap --at 12
  recto markmap --all
  recto markmap --json | jq .originalIndices")]
pub(crate) struct Markmap {
    #[command(flatten)]
    of: OfConversation,

    /// As it was at this version: 12, or now-3 for three before the newest
    #[arg(long, value_name = "VERSION")]
    at: Option<WhichVersion>,

    /// List the whole log by role, not only the visible entries
    #[arg(long)]
    all: bool,
}

impl Markmap {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let session = desk.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let scope = if self.all { Scope::All } else { Scope::Visible };
        let map = match self.at {
            Some(version) => {
                let version = version.from(named.talk.version()?)?;
                session.recto.wait(named.talk.inner().mark_map_at(version, scope))?
            }
            None => named.talk.mark_map(scope)?,
        };
        desk.answer(&Map(map))
    }
}

#[derive(Serialize)]
struct Map(MarkMap);

impl Answer for Map {
    fn show(&self, page: &mut Page) {
        let Map(map) = self;
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
