//! `recto log`: the versions, newest first, with batches and branches as a graph.

mod calls;
mod graph;

use clap::Args;
use recto::VersionInfo;
use serde::Serialize;

use self::graph::Graph;
use crate::arguments::OfConversation;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::numbers::{counted, grouped};
use crate::output::Answer;
use crate::page::{FAINT, Line, NOTE, Page, STRONG};
use crate::{reason, time};

/// List the versions, newest first: what each did, and what it left in view.
///
/// A batch that was rolled back is a branch of its own beside the line that goes on.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto log
  recto log -n 5
  recto log --all --json
  recto log --calls                # what models were sent; recto show --call 3 prints one")]
pub(crate) struct Log {
    #[command(flatten)]
    of: OfConversation,

    /// So many versions
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 50)]
    number: u32,

    /// All versions
    #[arg(long, conflicts_with = "number")]
    all: bool,

    /// The calls of models instead, newest first: what was sent, and what it used
    #[arg(long)]
    calls: bool,
}

impl Log {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let session = desk.session()?;
        let named = session.conversation(&self.of.conversation)?;
        if self.calls {
            let most = if self.all { usize::MAX } else { self.number as usize };
            let calls = session.recto.wait(recto_agent::calls(named.talk.inner()))?;
            return desk.answer(&calls::Calls::newest(named.name, calls, most));
        }
        let end = named.talk.version()?.0.saturating_add(1);
        let start = if self.all { 0 } else { end.saturating_sub(self.number) };
        let mut versions = named.talk.versions(start..end)?;
        versions.reverse();
        desk.answer(&Versions { conversation: named.name, versions, older: start })
    }
}

#[derive(Serialize)]
struct Versions {
    conversation: String,
    /// Newest first.
    versions: Vec<VersionInfo>,
    /// So many are not listed.
    older: u32,
}

impl Answer for Versions {
    fn show(&self, page: &mut Page) {
        let mut graph = Graph::default();
        for (number, info) in self.versions.iter().enumerate() {
            let rows = graph.rows(info, self.versions.get(number + 1));
            let line = Line::new().styled(NOTE, &rows.node);
            let line = line.styled(STRONG, format!(" v{}", info.version));
            let line = line.styled(FAINT, format!(" batch {}  ", info.batch));
            let line = line.text(reason::told(info.operation, &info.description));
            let left = format!(
                "  ({}, {})  {}",
                counted(info.messages as u64, "message"),
                counted(info.tokens, "token"),
                time::shown(info.timestamp),
            );
            page.line(line.styled(FAINT, left));
            for row in rows.below {
                page.line(Line::new().styled(NOTE, row));
            }
        }
        if self.older > 0 {
            let older =
                format!("{} older versions; --all shows them", grouped(u64::from(self.older)));
            page.line(Line::new().styled(FAINT, older));
        }
    }
}
