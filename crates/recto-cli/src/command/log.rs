//! `recto log`: the versions, newest first, with batches and branches as a graph.

mod ancestry;
mod calls;
mod graph;

use clap::Args;
use recto::{LogIndex, Version, VersionInfo};
use serde::Serialize;

use self::graph::Graph;
use crate::arguments::OfConversation;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::numbers::counted;
use crate::output::Answer;
use crate::page::{FAINT, Line, NOTE, Page, STRONG};
use crate::session::{Named, Session};
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
        if self.calls {
            let most = if self.all { usize::MAX } else { self.number as usize };
            let calls = session.recto.wait(recto_agent::calls(named.talk.inner()))?;
            return desk.answer(&calls::Calls::newest(named.name, calls, most));
        }
        let end = named.talk.version()?.0.saturating_add(1);
        let start = if self.all { 0 } else { end.saturating_sub(self.number) };
        let versions = named.talk.versions(start..end)?;
        let parents = ancestry::parents(&session, &named, &versions)?;
        let said_at = said_at(&session, &named, &versions)?;
        let listed = versions.into_iter().zip(parents).zip(said_at);
        let listed = listed.map(|((info, parent), said_at)| Listed { info, parent, said_at });
        let versions = listed.rev().collect();
        desk.answer(&Versions { conversation: named.name, versions, older: start })
    }
}

/// When the newest message was said that each version added. Of what was imported, that is long before
/// the version was made.
fn said_at(
    session: &Session,
    named: &Named,
    versions: &[VersionInfo],
) -> Result<Vec<Option<i64>>, Failure> {
    let before = match versions.first().and_then(|first| first.version.0.checked_sub(1)) {
        Some(before) => session.recto.wait(named.talk.inner().version_info(Version(before)))?.log,
        None => 0,
    };
    let lengths = std::iter::once(before).chain(versions.iter().map(|info| info.log));
    let newest: Vec<Option<LogIndex>> = lengths
        .zip(versions)
        .map(|(before, info)| (info.log > before).then(|| LogIndex(info.log as u32 - 1)))
        .collect();
    let added: Vec<LogIndex> = newest.iter().copied().flatten().collect();
    let mut times = session.recto.wait(named.talk.inner().times(&added))?.into_iter();
    Ok(newest.into_iter().map(|added| added.and_then(|_| times.next())).collect())
}

#[derive(Serialize)]
struct Versions {
    conversation: String,
    /// Newest first.
    versions: Vec<Listed>,
    /// So many are not listed.
    older: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    #[serde(flatten)]
    info: VersionInfo,
    /// The version that it goes on from.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<Version>,
    /// When the newest message was said that it added.
    #[serde(skip_serializing_if = "Option::is_none")]
    said_at: Option<i64>,
}

impl Answer for Versions {
    fn show(&self, page: &mut Page) {
        let mut graph = Graph::default();
        for Listed { info, parent, said_at } in &self.versions {
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
