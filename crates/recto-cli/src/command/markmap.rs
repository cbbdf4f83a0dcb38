//! `recto markmap`: the view, the log by role and the batches, in the shape that older tools know.

use clap::Args;
use recto::{LogIndex, MarkMap};
use serde::Serialize;

use crate::arguments::OfConversation;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::numbers::runs;
use crate::output::Answer;
use crate::page::{FAINT, Line, Page};

/// Show which log entries are visible, whose they are, and where batches begin.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto markmap
  recto markmap --json | jq .originalIndices")]
pub(crate) struct Markmap {
    #[command(flatten)]
    of: OfConversation,
}

impl Markmap {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let session = desk.session()?;
        let named = session.conversation(&self.of.conversation)?;
        desk.answer(&Map(named.talk.mark_map()?))
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
