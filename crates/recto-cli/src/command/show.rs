//! `recto show`: prints messages, or the request of a model call.

use std::collections::BTreeMap;
use std::io::Write as _;

use anstyle::Style;
use clap::Args;
use recto::{BatchIndex, Blame, LogIndex, Pick, Query, QueryAt, Role};
use recto_agent::ConversationExt as _;
use recto_service::{entries_of, with_marks};
use serde::Serialize;

use super::change::clear::scope;
use crate::arguments::ConversationArgument;
use crate::context::Context;
use crate::entry_line::{EntryLine as _, ShownEntry, heading, position_column, position_heading};
use crate::failure::Failure;
use crate::message_input::{role_parser, role_set};
use crate::numbers::{EntryRange, PositionRange, VersionArgument, counted};
use crate::output::CommandResult;
use crate::page::{BAD, FAINT, Line, Page};
use crate::session::{NamedConversation, Session};
use crate::{reason, time};

/// Show the messages that the model reads.
///
/// With ENTRIES, shows these log entries in full, visible or hidden. Filters apply first, then --first,
/// --last or --range.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto show --last 5
  recto show 4                                 # log entry 4 in full, visible or hidden
  recto show --full --role user
  recto show --all --contains 'no answer'      # also hidden messages
  recto show --hidden                          # hidden messages, and why they are hidden
  recto show --at 12                           # the view at version 12
  recto show --since 2h --json
  recto show --call 3                          # the exact request of a model call")]
pub(crate) struct Show {
    /// Log entries to show in full, visible or hidden: 3, or 5-8 for 5 to 8
    #[arg(value_name = "ENTRIES", conflicts_with_all = ["all", "role", "contains", "excludes", "mark",
        "since", "until", "at", "batch", "first", "last", "range", "call"])]
    entries: Vec<EntryRange>,

    #[command(flatten)]
    of: ConversationArgument,

    #[command(flatten)]
    select: Select,

    /// Show only the first COUNT messages
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["last", "range"])]
    first: Option<usize>,
    /// Show only the last COUNT messages
    #[arg(long, value_name = "COUNT", conflicts_with = "range")]
    last: Option<usize>,
    /// Show only this range of the result: 2..10 is 2 to 9
    #[arg(long, value_name = "START..END")]
    range: Option<PositionRange>,

    /// Show hidden messages only, each with the version, the operation and the reason that hid it
    #[arg(long, conflicts_with_all = ["all", "at", "batch", "call", "entries"])]
    hidden: bool,

    /// Print the exact request of this model call; `recto log --calls` lists the calls
    #[arg(long, value_name = "CALL", conflicts_with_all = ["first", "last", "range", "at", "batch"])]
    call: Option<u64>,
}

/// Filters for messages.
#[derive(Args, Debug)]
pub(crate) struct Select {
    /// Search the whole log, also hidden messages
    #[arg(long)]
    pub(crate) all: bool,
    /// Role of the messages; can be repeated
    #[arg(long, value_name = "ROLE", value_parser = role_parser())]
    role: Vec<Role>,
    /// Text that a message contains; if repeated, at least one of them
    #[arg(long, value_name = "TEXT", aliases = ["keyword", "keywords"])]
    pub(crate) contains: Vec<String>,
    /// Text that no message contains; can be repeated
    #[arg(long, value_name = "TEXT")]
    excludes: Vec<String>,
    /// Mark of the messages
    #[arg(long, value_name = "LABEL")]
    mark: Option<String>,
    /// Time of the oldest message: 2026-01-31, 2026-01-31T17:05, 2h, 3 days
    #[arg(long, value_name = "TIME", value_parser = time::read)]
    since: Option<i64>,
    /// End of the time range of the messages, not included
    #[arg(long, value_name = "TIME", value_parser = time::read)]
    until: Option<i64>,
    /// Version to read: 12, or now-3 for three before the newest. Default: the newest
    #[arg(long, value_name = "VERSION", conflicts_with = "batch")]
    at: Option<VersionArgument>,
    /// Batch of the live path to read, as it was when it was left
    #[arg(long, value_name = "BATCH")]
    batch: Option<usize>,
}

impl Select {
    pub(crate) fn query(&self, pick: Pick, named: &NamedConversation) -> Result<Query, Failure> {
        let given = |words: &[String]| (!words.is_empty()).then(|| words.to_vec());
        let at = match (self.at, self.batch) {
            (Some(version), _) => QueryAt::Version(version.from(named.handle.version()?)?),
            (None, Some(batch)) => QueryAt::Batch(BatchIndex(batch)),
            (None, None) => QueryAt::Now,
        };
        Ok(Query {
            scope: scope(self.all),
            roles: role_set(&self.role),
            contains: given(&self.contains),
            excludes: given(&self.excludes),
            mark: self.mark.clone(),
            from: self.since,
            to: self.until,
            pick,
            at,
        })
    }
}

impl Show {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let session = context.session()?;
        let named = session.conversation(&self.of.conversation)?;
        if let Some(number) = self.call {
            return show_call(&session, &named, number, context);
        }
        let pick = match (self.first, self.last, self.range) {
            (Some(count), _, _) => Pick::First(count),
            (_, Some(count), _) => Pick::Last(count),
            (_, _, Some(range)) => Pick::Range(range.0),
            _ => Pick::All,
        };
        let mut query =
            self.select.query(if self.hidden { Pick::All } else { pick.clone() }, &named)?;
        if self.hidden {
            query.scope = scope(true);
        }
        let is_whole = context.general.full || !self.entries.is_empty();
        let mut entries = match self.entries.is_empty() {
            true => found(&session, &named, &query)?,
            false => listed(&named, &EntryRange::all(&self.entries))?,
        };
        let version = match query.at {
            QueryAt::Version(version) => version,
            _ => named.handle.version()?,
        };
        let mut hidden_by = Vec::new();
        if self.hidden {
            entries.retain(|entry| entry.position.is_none());
            pick_from(&mut entries, &pick);
            let mut blamed: BTreeMap<LogIndex, Blame> =
                named.handle.blame_hidden(version)?.into_iter().collect();
            hidden_by = entries.iter().map(|entry| blamed.remove(&entry.index)).collect();
        }
        let messages = Messages {
            conversation: named.name,
            version: version.0,
            tokens: entries.iter().map(|entry| entry.tokens).sum(),
            messages: entries,
            hidden_by,
            is_whole,
            words: self.select.contains,
        };
        context.print(&messages)
    }
}

/// Prints the request of a model call.
fn show_call(
    session: &Session,
    named: &NamedConversation,
    number: u64,
    context: &mut Context<'_>,
) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Document {
        conversation: String,
        call: recto_agent::Call,
        request: Box<serde_json::value::RawValue>,
    }
    let handle = named.handle.inner();
    let body = session.recto.wait(handle.request_of_call(number))?;
    if !context.output.is_json() {
        // In a pipe no line break is added, so that the output has the recorded hash.
        return match context.output.is_terminal() {
            true => context.output.document(&body, context.environment),
            false => Ok(context.environment.output.write_all(body.as_bytes())?),
        };
    }
    let call = session.recto.wait(handle.call(number))?;
    let request = serde_json::from_str(&body).map_err(std::io::Error::other)?;
    let document = Document { conversation: named.name.clone(), call, request };
    context.output.json(&document, context.environment)
}

/// The entries that a query finds, with their marks at the version of the query.
pub(crate) fn found(
    session: &Session,
    named: &NamedConversation,
    query: &Query,
) -> Result<Vec<ShownEntry>, Failure> {
    Ok(session.recto.wait(entries_of(named.handle.inner(), query))?)
}

/// Log entries with their marks at the newest version.
fn listed(named: &NamedConversation, indices: &[LogIndex]) -> Result<Vec<ShownEntry>, Failure> {
    Ok(with_marks(named.handle.entries(indices)?, &named.handle.marks()?))
}

/// Reduces a list to the part that `pick` selects.
fn pick_from(entries: &mut Vec<ShownEntry>, pick: &Pick) {
    let len = entries.len();
    let kept = match pick {
        Pick::First(count) => 0..(*count).min(len),
        Pick::Last(count) => len.saturating_sub(*count)..len,
        Pick::Range(range) => range.start.min(len)..range.end.min(len),
        _ => 0..len,
    };
    entries.truncate(kept.end.max(kept.start));
    entries.drain(..kept.start);
}

/// The request that hid an entry.
fn hidden_by_line(blame: Option<&Blame>) -> Line {
    let line = Line::wrapping().text(" ".repeat(9));
    match blame {
        None => line.styled(FAINT, "it is not known which version hid it"),
        Some(blame) => line
            .styled(BAD, format!("hidden by v{} ", blame.version))
            .text(reason::version_title(blame.operation, &blame.reason))
            .styled(FAINT, format!("  {}", time::shown(blame.timestamp))),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Messages {
    pub(crate) conversation: String,
    pub(crate) version: u32,
    /// The sum over the messages.
    pub(crate) tokens: u64,
    pub(crate) messages: Vec<ShownEntry>,
    /// With `--hidden`: the request that hid each message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) hidden_by: Vec<Option<Blame>>,
    #[serde(skip)]
    pub(crate) is_whole: bool,
    #[serde(skip)]
    pub(crate) words: Vec<String>,
}

impl CommandResult for Messages {
    fn show(&self, page: &mut Page) {
        for (number, entry) in self.messages.iter().enumerate() {
            if self.is_whole {
                if number > 0 {
                    page.empty_line();
                }
                entry.show_whole(&self.words, page);
                continue;
            }
            if number == 0 {
                page.line(heading(&position_heading()));
            }
            let line = entry.line((Style::new(), &position_column(entry)), &self.words, page);
            page.line(line);
            if let Some(hidden_by) = self.hidden_by.get(number) {
                page.line(hidden_by_line(hidden_by.as_ref()));
            }
        }
        let count = counted(self.messages.len() as u64, "message");
        let tokens = counted(self.tokens, "token");
        let line = format!("{count}, {tokens} in {} at v{}", self.conversation, self.version);
        page.line(Line::new().styled(FAINT, line));
    }
}
