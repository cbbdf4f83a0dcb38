//! `recto log`: the versions, newest first, with batches and branches as a graph.

mod calls;
mod graph;

use clap::Args;
use recto_service::{
    Calls, CallsOptions, ListedVersion, Log as LogRequest, LogOptions, TrueOr, Versions,
};

use self::graph::Graph;
use crate::arguments::OfConversation;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::numbers::counted;
use crate::output::Answer;
use crate::page::{FAINT, Line, NOTE, Page, STRONG};
use crate::{printable, reason, time};

/// List the versions, newest first: what each did, and what it left in view.
///
/// What was left by a rollback, an undo or a rewind is a branch beside the line that goes on. The time
/// is that of the newest message that a version added; where it added none, that of the version.
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
        let limit = Some(if self.all { u64::MAX } else { u64::from(self.number) });
        let conversation = named.name;
        if self.calls {
            let calls = TrueOr(CallsOptions { limit });
            return desk.answer(&session.run(Calls { conversation, calls })?);
        }
        let log = TrueOr(LogOptions { limit, before: None });
        desk.answer(&session.run(LogRequest { conversation, log })?)
    }
}

impl Answer for Versions {
    fn show(&self, page: &mut Page) {
        let mut graph = Graph::default();
        for ListedVersion { info, parent, said_at } in &self.versions {
            let rows = graph.rows(info.version, *parent);
            let line = Line::new().styled(NOTE, &rows.node);
            let line = line.styled(STRONG, format!(" v{}", info.version));
            let line = line.styled(FAINT, format!(" batch {}  ", info.batch));
            let told = reason::told(info.operation, &info.description);
            let time = time::shown(said_at.unwrap_or(info.timestamp));
            let left = |message: &str, token: &str| {
                let messages = counted(info.messages as u64, message);
                format!("  ({messages}, {})  {time}", counted(info.tokens, token))
            };
            let (mut left, short) = (left("message", "token"), left("msg", "tok"));
            let mut shown = told.clone();
            if page.is_terminal() {
                // Figures are said in short words first, and then the reason is cut: not the time.
                let room = |left: &str| {
                    page.columns().saturating_sub(line.width() + printable::width(left))
                };
                if printable::width(&printable::escaped(&told)) > room(&left) {
                    left = short;
                }
                shown = printable::one_line(&told, room(&left).max(SHORTEST));
            }
            page.line(line.text(shown).styled(FAINT, left));
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

/// No reason is cut to less than this.
const SHORTEST: usize = 12;
