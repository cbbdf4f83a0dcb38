//! `recto log`: lists versions, newest first, with branches as a graph.

mod calls;
mod graph;

use std::collections::HashMap;

use clap::Args;
use recto::Version;
use recto_service::{
    Calls, CallsOptions, ListedVersion, Log as LogRequest, LogOptions, TrueOr, Versions,
};

use self::graph::Graph;
use crate::arguments::ConversationArgument;
use crate::context::Context;
use crate::failure::Failure;
use crate::numbers::counted;
use crate::output::CommandResult;
use crate::page::{FAINT, Line, NOTE, Page, STRONG};
use crate::{printable, reason, time};

/// List the versions, newest first.
///
/// Each line has the operation, the reason and the size of the view. Versions that a rollback, an undo
/// or a rewind abandoned are drawn as a branch. The time is that of the newest message that a version
/// added, or of the version if it added none.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto log
  recto log -n 5
  recto log --all --json
  recto log --calls                # model calls; `recto show --call 3` prints one")]
pub(crate) struct Log {
    #[command(flatten)]
    of: ConversationArgument,

    /// Number of versions
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 50)]
    number: u32,

    /// List all versions
    #[arg(long, conflicts_with = "number")]
    all: bool,

    /// List the model calls instead: request, usage and cost
    #[arg(long)]
    calls: bool,
}

impl Log {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let session = context.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let limit = Some(if self.all { u64::MAX } else { u64::from(self.number) });
        let conversation = named.name;
        if self.calls {
            let calls = TrueOr(CallsOptions { limit });
            return context.print(&session.run(Calls { conversation, calls })?);
        }
        let log = TrueOr(LogOptions { limit, before: None });
        context.print(&session.run(LogRequest { conversation, log })?)
    }
}

impl CommandResult for Versions {
    fn show(&self, page: &mut Page) {
        let mut graph = Graph::default();
        let titles: HashMap<Version, String> = self
            .versions
            .iter()
            .map(|ListedVersion { info, .. }| {
                (info.version, reason::version_title(info.operation, &info.reason))
            })
            .collect();
        for ListedVersion { info, parent, target, said_at, .. } in &self.versions {
            let rows = graph.rows(info.version, *parent);
            let line = Line::new().styled(NOTE, &rows.node);
            let line = line.styled(STRONG, format!(" v{}", info.version));
            let line = line.styled(FAINT, format!(" batch {}  ", info.batch));
            let title = &titles[&info.version];
            let title = match *target {
                Some(target) => {
                    reason::title_of(title, target, titles.get(&target).map(String::as_str))
                }
                None => title.clone(),
            };
            let time = time::shown(said_at.unwrap_or(info.timestamp));
            let right_side = |message: &str, token: &str| {
                let messages = counted(info.messages as u64, message);
                format!("  ({messages}, {})  {time}", counted(info.tokens, token))
            };
            let (mut right_side, short) =
                (right_side("message", "token"), right_side("msg", "tok"));
            let mut shown = title.clone();
            if page.cuts_lines() {
                // If the line is too long, the units are abbreviated first, then the title is cut.
                let room = |right_side: &str| {
                    page.columns().saturating_sub(line.width() + printable::width(right_side))
                };
                if printable::width(&printable::escaped(&title)) > room(&right_side) {
                    right_side = short;
                }
                shown = printable::one_line(&title, room(&right_side).max(MIN_TITLE_WIDTH));
            }
            page.line(line.text(shown).styled(FAINT, right_side));
            for row in rows.below {
                page.line(Line::new().styled(NOTE, row));
            }
        }
        if self.older > 0 {
            let older = counted(u64::from(self.older), "older version");
            page.line(Line::new().styled(FAINT, format!("{older}; --all shows them")));
        }
    }
}

/// Minimum width of a cut title.
const MIN_TITLE_WIDTH: usize = 12;
