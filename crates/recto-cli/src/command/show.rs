//! `recto show`: what the model reads.

use std::io::Write as _;

use anstyle::Style;
use clap::Args;
use recto::{BatchIndex, LogIndex, Moment, Pick, Query, Role};
use recto_agent::ConversationExt as _;
use recto_service::{entries_of, with_marks};
use serde::Serialize;

use super::change::clear::scope;
use crate::arguments::OfConversation;
use crate::desk::Desk;
use crate::entry_line::{EntryLine as _, ShownEntry};
use crate::failure::Failure;
use crate::message_input::{role_parser, role_set};
use crate::numbers::{Entries, Stretch, WhichVersion, counted};
use crate::output::Answer;
use crate::page::{FAINT, Line, Page};
use crate::session::{Named, Session};
use crate::time;

/// Show the messages that the model reads, or some log entries as a whole.
///
/// Filters apply first, then --first, --last or --range on what is left.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  recto show --last 5
  recto show 4                                 # all of log entry 4, hidden or not
  recto show --full --role user
  recto show --all --contains 'no answer'      # hidden messages too
  recto show --at 12                           # what it read at version 12
  recto show --since 2h --json
  recto show --call 3                          # the exact request of a call of a model")]
pub(crate) struct Show {
    /// Log entries, visible or not, with all of their text: 3, or 5-8 for 5 to 8
    #[arg(value_name = "ENTRIES", conflicts_with_all = ["all", "role", "contains", "excludes", "mark",
        "since", "until", "at", "batch", "first", "last", "range", "call"])]
    entries: Vec<Entries>,

    #[command(flatten)]
    of: OfConversation,

    #[command(flatten)]
    select: Select,

    /// Only the first so many
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["last", "range"])]
    first: Option<usize>,
    /// Only the last so many
    #[arg(long, value_name = "COUNT", conflicts_with = "range")]
    last: Option<usize>,
    /// Only those from one number up to, not including, another: 2..10
    #[arg(long, value_name = "START..END")]
    range: Option<Stretch>,

    /// Print all of each message
    #[arg(long)]
    full: bool,

    /// The exact request that this call of a model sent, as `recto log --calls` numbers them
    #[arg(long, value_name = "CALL", conflicts_with_all = ["first", "last", "range", "full", "at", "batch"])]
    call: Option<u64>,
}

/// Which messages are meant.
#[derive(Args, Debug)]
pub(crate) struct Select {
    /// All messages ever added, also hidden ones
    #[arg(long)]
    pub(crate) all: bool,
    /// Only this role; may be given several times
    #[arg(long, value_name = "ROLE", value_parser = role_parser())]
    role: Vec<Role>,
    /// Only messages whose text has this; with several, any of them
    #[arg(long, value_name = "TEXT")]
    pub(crate) contains: Vec<String>,
    /// Only messages whose text does not have this; may be given several times
    #[arg(long, value_name = "TEXT")]
    excludes: Vec<String>,
    /// Only messages with this label
    #[arg(long, value_name = "LABEL")]
    mark: Option<String>,
    /// Only messages from this time on: 2026-01-31, 2026-01-31T17:05, 2h, 3 days
    #[arg(long, value_name = "TIME", value_parser = time::read)]
    since: Option<i64>,
    /// Only messages before this time
    #[arg(long, value_name = "TIME", value_parser = time::read)]
    until: Option<i64>,
    /// As it was at this version: 12, or now-3 for three before the newest
    #[arg(long, value_name = "VERSION", conflicts_with = "batch")]
    at: Option<WhichVersion>,
    /// A batch of the live path, as it was when it was left
    #[arg(long, value_name = "BATCH")]
    batch: Option<usize>,
}

impl Select {
    pub(crate) fn query(&self, pick: Pick, named: &Named) -> Result<Query, Failure> {
        let given = |words: &[String]| (!words.is_empty()).then(|| words.to_vec());
        let moment = match (self.at, self.batch) {
            (Some(version), _) => Moment::Version(version.from(named.talk.version()?)?),
            (None, Some(batch)) => Moment::Batch(BatchIndex(batch)),
            (None, None) => Moment::Now,
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
            moment,
        })
    }
}

impl Show {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let session = desk.session()?;
        let named = session.conversation(&self.of.conversation)?;
        if let Some(number) = self.call {
            return show_call(&session, &named, number, desk);
        }
        let pick = match (self.first, self.last, self.range) {
            (Some(count), _, _) => Pick::First(count),
            (_, Some(count), _) => Pick::Last(count),
            (_, _, Some(stretch)) => Pick::Range(stretch.0),
            _ => Pick::All,
        };
        let query = self.select.query(pick, &named)?;
        let (entries, is_whole) = match self.entries.is_empty() {
            true => (found(&session, &named, &query)?, self.full),
            false => (listed(&session, &named, &Entries::all(&self.entries))?, true),
        };
        let version = match query.moment {
            Moment::Version(version) => version,
            _ => named.talk.version()?,
        };
        let answer = Messages {
            conversation: named.name,
            version: version.0,
            tokens: entries.iter().map(|entry| entry.tokens).sum(),
            messages: entries,
            is_whole,
            words: self.select.contains,
        };
        desk.answer(&answer)
    }
}

/// Prints what a call sent, byte by byte.
fn show_call(
    session: &Session,
    named: &Named,
    number: u64,
    desk: &mut Desk<'_>,
) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Document {
        conversation: String,
        call: recto_agent::Call,
        request: Box<serde_json::value::RawValue>,
    }
    let talk = named.talk.inner();
    let body = session.recto.wait(talk.request_of_call(number))?;
    if !desk.output.is_json() {
        // Elsewhere than on a terminal not even a line break is added: the hash is that of the bytes.
        return match desk.output.is_terminal() {
            true => desk.output.document(&body, desk.surroundings),
            false => Ok(desk.surroundings.output.write_all(body.as_bytes())?),
        };
    }
    let call = session.recto.wait(talk.call(number))?;
    let request = serde_json::from_str(&body).map_err(std::io::Error::other)?;
    let document = Document { conversation: named.name.clone(), call, request };
    desk.output.json(&document, desk.surroundings)
}

/// What a query finds, with the labels of that version, or of today.
pub(crate) fn found(
    session: &Session,
    named: &Named,
    query: &Query,
) -> Result<Vec<ShownEntry>, Failure> {
    Ok(session.recto.wait(entries_of(named.talk.inner(), query))?)
}

/// Log entries, with the labels of today.
fn listed(
    session: &Session,
    named: &Named,
    indices: &[LogIndex],
) -> Result<Vec<ShownEntry>, Failure> {
    let marks = session.recto.wait(named.talk.inner().marks())?;
    Ok(with_marks(named.talk.entries(indices)?, &marks))
}

#[derive(Serialize)]
pub(crate) struct Messages {
    pub(crate) conversation: String,
    pub(crate) version: u32,
    /// Of the messages together.
    pub(crate) tokens: u64,
    pub(crate) messages: Vec<ShownEntry>,
    #[serde(skip)]
    pub(crate) is_whole: bool,
    #[serde(skip)]
    pub(crate) words: Vec<String>,
}

impl Answer for Messages {
    fn show(&self, page: &mut Page) {
        for (number, entry) in self.messages.iter().enumerate() {
            if self.is_whole {
                if number > 0 {
                    page.empty_line();
                }
                entry.show_whole(&self.words, page);
                continue;
            }
            let place = entry.position.map_or("hidden".into(), |position| position.to_string());
            let line = entry.line((Style::new(), &format!("{place:>6}")), &self.words, page);
            page.line(line);
        }
        let count = counted(self.messages.len() as u64, "message");
        let tokens = counted(self.tokens, "token");
        let line = format!("{count}, {tokens} in {} at v{}", self.conversation, self.version);
        page.line(Line::new().styled(FAINT, line));
    }
}
