//! Rollouts of codex: JSON lines of `{timestamp, type, payload}`, also packed with zstd.
//!
//! | in the file | here |
//! |---|---|
//! | `response_item` | a message, as OpenAI's Responses have them |
//! | `compacted` with `replacement_history` | COMPRESS of all that is visible into that history |
//! | `compacted` without it, as of old | what users said stays, and the summary follows |
//! | `event_msg` `thread_rolled_back` | ROLLBACK to before the last turns |
//! | `turn_context` | says which model writes what follows |
//! | all other lines | kept with the next message, for export |
//!
//! Other `event_msg` lines say again what the items say. The oldest rollouts have items without an
//! envelope.

mod export;

use std::collections::HashSet;
use std::io::Write;

use recto_core::{
    Append, Compress, Delete, LogIndex, Message, Request, Role, Rollback, Step, Timestamp, Version,
};

use super::message_list::{Draft, Misfit};
use super::openai_responses::{self, Item};
use super::session_line::{self, Asides, SessionLine};
use super::{Codec as FormatCodec, Head, Likelihood};
use crate::export::{ExportOptions, Extent};
use crate::import::{Input, Out, Remark, Start};
use crate::json::{self, Str};
use crate::values::{Peeked, Values};
use crate::{Error, Format};

/// What the program says in the user's name: such messages start no turn.
const NOT_FROM_THE_USER: &[&str] = &[
    "<environment_context>",
    "<user_instructions>",
    "<turn_aborted>",
    "<user_shell_command>",
    "<skill>",
    "# AGENTS.md instructions",
];

pub(crate) struct Codex;

impl FormatCodec for Codex {
    fn recognise(&self, head: &Head) -> Likelihood {
        let mut most = Likelihood::No;
        for line in head.objects() {
            let kind = json::get_str(line, "type").map(Str::escaped).unwrap_or_default();
            let is_record = json::get(line, "payload").is_some();
            let found = match kind {
                "session_meta" | "response_item" | "compacted" | "turn_context" | "event_msg"
                    if is_record =>
                {
                    Likelihood::Surely
                }
                _ if json::get(line, "record_type").is_some() => Likelihood::Likely,
                _ => Likelihood::No,
            };
            most = most.max(found);
        }
        most
    }

    fn import(&self, input: &dyn Input, out: &mut Out<'_>) -> Result<(), Error> {
        let limit = out.options.limits.message_bytes;
        let mut values = Values::new(input.open()?, limit);
        let mut rollout = Rollout {
            out,
            has_started: false,
            before: Asides::within(limit),
            model: None,
            time: None,
            view: Vec::new(),
            turns: Vec::new(),
            settled: 0,
        };
        while values.peek_byte()?.is_some() {
            rollout.value(&mut values)?;
        }
        rollout.before.report(rollout.out);
        match rollout.before.take_all() {
            Some(rest) => rollout.out.envelope(rest),
            None => Ok(()),
        }
    }

    fn export(
        &self,
        messages: &mut dyn Iterator<Item = &Message>,
        extent: Extent,
        options: &ExportOptions<'_>,
        file: &mut dyn Write,
    ) -> Result<Vec<Remark>, Error> {
        export::export(messages, extent, options, file)
    }
}

/// A rollout that is being read.
struct Rollout<'o, 'a> {
    out: &'o mut Out<'a>,
    has_started: bool,
    before: Asides,
    /// The model that writes, as it stands between quotes.
    model: Option<String>,
    /// The time of the line.
    time: Option<Timestamp>,
    view: Vec<Visible>,
    /// Where the turns of the user start in the view.
    turns: Vec<usize>,
    /// How many entries at the front of the view a compaction without a history has left there.
    settled: usize,
}

/// A visible log entry.
#[derive(Clone, Copy)]
struct Visible {
    log: u32,
    role: Role,
    /// The version right before it, if that shows what stands in front of it.
    version: Option<Version>,
}

impl Rollout<'_, '_> {
    /// The next line. One that cannot be read is left out, and the next is read all the same.
    fn value(&mut self, values: &mut Values<'_>) -> Result<(), Error> {
        let number = values.line();
        match values.peek_value()? {
            Peeked::Whole { len, depth } => {
                let text = values.peeked(len);
                let deepest = self.out.options.limits.depth;
                if depth > deepest {
                    let reason = format!("left out: {depth} levels deep; {deepest} are allowed");
                    self.out.remark(number, "", reason);
                } else if json::is_object(text) {
                    self.line(text, number)?;
                } else {
                    self.out.remark(number, "", "left out: a line is an object");
                }
                values.take(len);
            }
            Peeked::TooLarge => {
                self.out.remark(number, "", "left out: the line is larger than allowed");
                values.skip_value()?;
            }
            Peeked::Broken(reason) => {
                self.out.remark(number, "", format!("left out: {reason}"));
                values.skip_line()?;
            }
        }
        self.out.progress(values.bytes_taken());
        Ok(())
    }

    fn line(&mut self, line: &str, number: u64) -> Result<(), Error> {
        let fields = json::Object::of(line);
        let kind = fields.get_str("type").map(Str::text).unwrap_or_default();
        let payload = fields.get("payload");
        let time = fields.get_str("timestamp");
        self.time = time.and_then(|time| session_line::timestamp(&time.text()));
        if !self.has_started {
            self.start(line, &kind, payload)?;
        }
        match (&*kind, payload) {
            ("response_item", Some(item)) => self.item(line, item, "payload", number),
            ("compacted", Some(payload)) => self.compaction(line, payload, number),
            ("event_msg", Some(event)) if is(event, "thread_rolled_back") => {
                let turns = json::get(event, "num_turns").and_then(|turns| turns.parse().ok());
                if turns.is_none() {
                    self.out.remark(number, "payload.num_turns", "no number of turns");
                }
                self.before.add(0, line, number);
                self.go_back(turns.unwrap_or(0))
            }
            ("turn_context", Some(context)) => {
                let model = json::get_str(context, "model");
                self.model = model.map(|model| model.escaped().to_owned()).or(self.model.take());
                self.before.add(0, line, number);
                Ok(())
            }
            ("session_meta", Some(meta)) => {
                for field in ["history_base", "forked_from_id"] {
                    if json::get(meta, field).is_some() {
                        let reason = "the history before is in another file";
                        self.out.remark(number, &format!("payload.{field}"), reason);
                    }
                }
                self.before.add(0, line, number);
                Ok(())
            }
            ("inter_agent_communication", _) => {
                self.out.remark(number, "", "a message between agents: kept, but not shown");
                self.before.add(0, line, number);
                Ok(())
            }
            // The oldest rollouts: items as they are.
            (kind, None) if is_item(kind) || (kind.is_empty() && fields.get("role").is_some()) => {
                self.item(line, line, "", number)
            }
            (kind, None) if !kind.is_empty() => {
                let reason = format!("a line of type {kind:?}: kept, but no message");
                self.out.remark(number, "type", reason);
                self.before.add(0, line, number);
                Ok(())
            }
            // The oldest heads and states have no type either, but a time or a record_type.
            ("", _) if fields.get("timestamp").or(fields.get("record_type")).is_none() => {
                self.out.remark(number, "type", "a line without a type: kept, but no message");
                self.before.add(0, line, number);
                Ok(())
            }
            _ => {
                self.before.add(0, line, number);
                Ok(())
            }
        }
    }

    fn start(&mut self, line: &str, kind: &str, payload: Option<&str>) -> Result<(), Error> {
        self.has_started = true;
        let meta = payload.filter(|_| kind == "session_meta").unwrap_or(line);
        let id = json::get_str(meta, "id").map(|id| id.text().into_owned());
        let id = id.filter(|_| kind == "session_meta" || kind.is_empty());
        self.out.start(Start { name: None, id, created: self.time, is_lines: true })
    }

    /// One item becomes one message.
    fn item(&mut self, line: &str, item: &str, field: &str, number: u64) -> Result<(), Error> {
        self.before.report(self.out);
        let before = self.before.take(0);
        let mut told = Vec::new();
        let made = openai_responses::read(item).and_then(|read| {
            let line = SessionLine {
                format: Format::Codex,
                json: line,
                foreign: item,
                said: read.said,
                before: before.as_deref(),
                timestamp: self.time,
            };
            line.messages(&[self.signed(read)], &mut told)
        });
        for misfit in told {
            self.misfit(misfit, field, number);
        }
        let messages = match made {
            Ok(messages) => messages,
            Err(misfit) => {
                self.before.put_back(0, before);
                self.misfit(misfit, field, number);
                self.before.add(0, line, number);
                return Ok(());
            }
        };
        for message in messages {
            let is_turn = starts_turn(&message);
            let mut version = None;
            if is_turn {
                self.out.flush()?;
                version = Some(self.out.version());
            }
            let (log, role) = (self.out.log_len() as u32, message.role());
            self.out.message(message)?;
            self.see(Visible { log, role, version }, is_turn);
        }
        Ok(())
    }

    fn see(&mut self, entry: Visible, is_turn: bool) {
        if is_turn {
            self.turns.push(self.view.len());
        }
        self.view.push(entry);
    }

    fn misfit(&mut self, misfit: Misfit, field: &str, number: u64) {
        let field = match (field, &*misfit.field) {
            (field, "") => field.to_owned(),
            ("", inner) => inner.to_owned(),
            (field, inner) => format!("{field}.{inner}"),
        };
        self.out.remark(number, &field, misfit.reason);
    }

    /// Says which model wrote what the model wrote.
    fn signed(&self, item: Item<'_>) -> Draft {
        let draft = match (item.draft, item.said) {
            (Draft::AsItIs, Some((role, content))) => Draft::made(role, content.to_owned()),
            (draft, _) => draft,
        };
        match draft {
            Draft::Made { role: Role::Assistant, content, fields, .. } => Draft::Made {
                role: Role::Assistant,
                content,
                fields,
                provider: Some("openai".into()),
                model: self.model.clone(),
            },
            other => other,
        }
    }

    /// All that is visible gives way to another history.
    fn compaction(&mut self, line: &str, payload: &str, number: u64) -> Result<(), Error> {
        let history = history_of(payload);
        let mut drafts = Vec::new();
        match history {
            Some(list) => {
                for (place, item) in json::items(list).enumerate() {
                    match openai_responses::read(item) {
                        Ok(Item { draft: Draft::AsItIs, said: Some((role, content)) }) => {
                            drafts.push(Draft::made(role, content.to_owned()));
                        }
                        Ok(read) => drafts.push(read.draft),
                        Err(misfit) => {
                            let field = format!("payload.replacement_history[{place}]");
                            self.misfit(misfit, &field, number);
                        }
                    }
                }
            }
            None => match json::get(payload, "message").filter(|text| Str::of(text).is_some()) {
                Some(text) if text != "\"\"" => {
                    drafts.push(Draft::made(Role::User, text.to_owned()))
                }
                _ => self.out.remark(number, "payload.message", "a compaction without a summary"),
            },
        }
        self.before.report(self.out);
        let before = self.before.take(0);
        let session_line = SessionLine {
            format: Format::Codex,
            json: line,
            foreign: line,
            said: None,
            before: before.as_deref(),
            timestamp: self.time,
        };
        let mut told = Vec::new();
        let made = session_line.messages(&drafts, &mut told);
        for misfit in told {
            self.out.remark(number, "payload", misfit.reason);
        }
        let messages = match made {
            Ok(messages) => messages,
            Err(misfit) => {
                self.before.put_back(0, before);
                self.misfit(misfit, "payload", number);
                Vec::new()
            }
        };
        if messages.is_empty() {
            self.before.add(0, line, number);
        }
        // What users said stays where there is no other history.
        let stays =
            |entry: &Visible| history.is_none() && matches!(entry.role, Role::User | Role::System);
        self.out.flush()?;
        // What stayed before stays again, and need not be looked at.
        let settled = if history.is_none() { self.settled } else { 0 };
        let view = self.view.split_off(settled);
        let turns = self.turns.partition_point(|turn| *turn < settled);
        let turns: HashSet<usize> = self.turns.split_off(turns).into_iter().collect();
        let mut indices = Vec::new();
        for (place, entry) in (settled..).zip(view) {
            match stays(&entry) {
                true => self.see(Visible { version: None, ..entry }, turns.contains(&place)),
                false => indices.push(LogIndex(entry.log)),
            }
        }
        self.settled = if history.is_none() { self.view.len() } else { 0 };
        let first = self.out.log_len() as u32;
        for (place, message) in messages.iter().enumerate() {
            let entry = Visible { log: first + place as u32, role: message.role(), version: None };
            self.see(entry, starts_turn(message));
        }
        self.replace_all(indices, messages, history.is_some())
    }

    fn replace_all(
        &mut self,
        indices: Vec<LogIndex>,
        mut messages: Vec<Message>,
        has_history: bool,
    ) -> Result<(), Error> {
        let count = messages.len();
        let reason = "the session was compacted";
        let mut steps: Vec<Step> = Vec::new();
        match (indices.is_empty(), has_history && count > 0) {
            (true, _) => {}
            (false, true) => {
                let summary = Some(messages.remove(0));
                steps.push(Compress { indices, summary }.reason(reason));
            }
            (false, false) => steps.push(Delete { indices }.reason(reason)),
        }
        if !messages.is_empty() {
            steps.push(Append { messages }.reason(reason));
        }
        match steps.is_empty() {
            true => Ok(()),
            false => self.out.apply(steps.into_iter().collect::<Request>(), count),
        }
    }

    /// The last turns of the user are taken back.
    fn go_back(&mut self, turns: usize) -> Result<(), Error> {
        if turns == 0 || self.turns.is_empty() {
            return Ok(());
        }
        let left = self.turns.len().saturating_sub(turns);
        let place = self.turns[left];
        self.turns.truncate(left);
        self.out.flush()?;
        let reason = "turns were taken back";
        let gone: Vec<LogIndex> =
            self.view[place..].iter().map(|entry| LogIndex(entry.log)).collect();
        match self.view[place].version {
            Some(version) => self.out.apply(Rollback::ToVersion(version).reason(reason), 0)?,
            None => self.out.apply(Delete { indices: gone }.reason(reason), 0)?,
        }
        self.view.truncate(place);
        self.settled = self.settled.min(place);
        Ok(())
    }
}

/// The history that a compaction puts in the place of all that is visible.
fn history_of(payload: &str) -> Option<&str> {
    json::get(payload, "replacement_history").filter(|list| json::is_list(list))
}

/// Whether it is a type of items that the oldest rollouts have.
fn is_item(kind: &str) -> bool {
    matches!(kind, "message" | "reasoning")
        || ["_call", "_call_output"].iter().any(|end| kind.ends_with(end))
}

fn is(event: &str, kind: &str) -> bool {
    json::get_str(event, "type").is_some_and(|it| it.escaped() == kind)
}

fn starts_turn(message: &Message) -> bool {
    let is_made_up = || {
        let text = message.text();
        NOT_FROM_THE_USER.iter().any(|start| text.trim_start().starts_with(start))
    };
    message.role() == Role::User && !is_made_up()
}
