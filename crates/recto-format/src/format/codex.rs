//! Codec of codex rollouts: JSON lines of `{timestamp, type, payload}`, optionally compressed with zstd.
//!
//! | in the file | conversion |
//! |---|---|
//! | `response_item` | a message, read like an item of OpenAI's Responses |
//! | `compacted` with `replacement_history` | COMPRESS of all visible messages into that history |
//! | `compacted` without it (older versions) | user and system messages stay, and the summary follows |
//! | `event_msg` `thread_rolled_back` | ROLLBACK to before the last turns; DELETE if a compaction followed |
//! | `turn_context` | names the model of the lines that follow |
//! | all other lines | stored with the next message, for export |
//!
//! Other `event_msg` lines repeat the content of items. In a rollout without items, the events
//! `user_message` and `agent_message` are messages. The oldest rollouts contain items without an
//! envelope.

mod export;

use std::collections::HashSet;
use std::io::{Read, Write};

use recto_core::{
    Append, Compress, Delete, LogIndex, Message, Request, Role, Rollback, Step, Timestamp, Version,
};

use super::message_list::{Draft, FieldError};
use super::openai_responses::{self, Item};
use super::pending_lines::PendingLines;
use super::session_line::SessionLine;
use super::time;
use super::{Codec as FormatCodec, Head, Likelihood};
use crate::export::{ExportOptions, Extent};
use crate::import::{Input, Start, TranscriptWarning};
use crate::json::{self, Str};
use crate::step_writer::StepWriter;
use crate::values::{Peeked, Values};
use crate::{Error, Format};

/// Starts of messages that the program writes with the role of the user. They start no turn.
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
        let mut best = Likelihood::No;
        for line in head.objects() {
            let kind = json::get_str(line, "type").map(Str::escaped).unwrap_or_default();
            let is_record = json::get(line, "payload").is_some();
            let found = match kind {
                "session_meta" | "response_item" | "compacted" | "turn_context" | "event_msg"
                    if is_record =>
                {
                    Likelihood::Certain
                }
                // In rollouts of mid-2025, the lines are items of Responses without an envelope, and state
                // lines have a `record_type`.
                _ if json::get(line, "record_type").is_some() => Likelihood::Declared,
                _ => Likelihood::No,
            };
            best = best.max(found);
        }
        best
    }

    fn import(&self, input: &dyn Input, out: &mut StepWriter<'_>) -> Result<(), Error> {
        let limit = out.options.limits.message_bytes;
        let reads_events = !has_items(input)?;
        let mut values = Values::new(input.open()?, limit);
        let mut rollout = Rollout {
            out,
            has_started: false,
            pending: PendingLines::with_capacity(limit),
            model: None,
            time: None,
            view: Vec::new(),
            turns: Vec::new(),
            settled: 0,
            reads_events,
        };
        while values.peek_byte()?.is_some() {
            rollout.value(&mut values)?;
        }
        rollout.out.warn_space(&values);
        rollout.pending.finish(rollout.out, None)
    }

    fn export(
        &self,
        messages: &mut dyn Iterator<Item = &Message>,
        extent: Extent,
        options: &ExportOptions<'_>,
        file: &mut dyn Write,
    ) -> Result<Vec<TranscriptWarning>, Error> {
        export::export(messages, extent, options, file)
    }
}

/// Reader of a rollout.
struct Rollout<'o, 'a> {
    out: &'o mut StepWriter<'a>,
    has_started: bool,
    /// Lines without a message, until the next message.
    pending: PendingLines,
    /// The current model, escaped.
    model: Option<String>,
    /// Time of the current line.
    time: Option<Timestamp>,
    view: Vec<Visible>,
    /// Positions in the view at which turns of the user start.
    turns: Vec<usize>,
    /// Number of entries at the start of the view that a compaction without a history has kept.
    settled: usize,
    /// True if the file has no items, so that its events are the messages.
    reads_events: bool,
}

/// A visible log entry.
#[derive(Clone, Copy)]
struct Visible {
    log: u32,
    role: Role,
    /// The version whose view consists of exactly the entries before this one, if it is known.
    version: Option<Version>,
}

impl Rollout<'_, '_> {
    /// Reads the next line. An unreadable line is skipped with a warning.
    fn value(&mut self, values: &mut Values<'_>) -> Result<(), Error> {
        let number = values.line();
        match values.peek_value()? {
            Peeked::Whole { len, depth } => {
                let text = values.peeked(len);
                let deepest = self.out.options.limits.depth;
                if depth > deepest {
                    let reason = format!("skipped: {depth} levels deep; {deepest} are allowed");
                    self.out.warn(number, "", reason);
                } else if json::is_object(text) {
                    self.line(text, number)?;
                } else {
                    self.out.warn(number, "", "skipped: a line must be an object");
                }
                values.take(len);
            }
            Peeked::TooLarge => {
                self.out.warn(number, "", "skipped: the line exceeds the size limit");
                values.skip_value()?;
            }
            Peeked::Broken(reason) => {
                self.out.warn(number, "", format!("skipped: {reason}"));
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
        self.time = time.and_then(|time| time::parse_time(&time.text()));
        if !self.has_started {
            self.start(line, &kind, payload)?;
        }
        match (&*kind, payload) {
            ("response_item", Some(item)) => self.item(line, item, "payload", number),
            ("compacted", Some(payload)) => self.compaction(line, payload, number),
            ("event_msg", Some(event)) if is(event, "thread_rolled_back") => {
                let turns = json::get(event, "num_turns").and_then(|turns| turns.parse().ok());
                if turns.is_none() {
                    self.out.warn(number, "payload.num_turns", "the number of turns is missing");
                }
                self.pending.add(0, line, number);
                self.rewind(turns.unwrap_or(0))
            }
            ("event_msg", Some(event)) if self.reads_events && event_message(event).is_some() => {
                let read = event_message(event).ok_or_else(|| FieldError::new("type", ""));
                self.message(line, event, read, "payload", number)
            }
            ("turn_context", Some(context)) => {
                let model = json::get_str(context, "model");
                self.model = model.map(|model| model.escaped().to_owned()).or(self.model.take());
                self.pending.add(0, line, number);
                Ok(())
            }
            ("session_meta", Some(meta)) => {
                for field in ["history_base", "forked_from_id"] {
                    if json::get(meta, field).is_some() {
                        let reason = "the earlier history is in another file";
                        self.out.warn(number, &format!("payload.{field}"), reason);
                    }
                }
                self.pending.add(0, line, number);
                Ok(())
            }
            ("inter_agent_communication", _) => {
                let reason = "a message between agents: preserved for export, not visible";
                self.out.warn(number, "", reason);
                self.pending.add(0, line, number);
                Ok(())
            }
            // The oldest rollouts: items without an envelope.
            (kind, None) if is_item(kind) || (kind.is_empty() && fields.get("role").is_some()) => {
                self.item(line, line, "", number)
            }
            (kind, None) if !kind.is_empty() => {
                let reason =
                    format!("a line of type {kind:?}: preserved for export, not a message");
                self.out.warn(number, "type", reason);
                self.pending.add(0, line, number);
                Ok(())
            }
            // In the oldest rollouts, metadata and state lines have a time or a record_type, and no type.
            ("", _) if fields.get("timestamp").or(fields.get("record_type")).is_none() => {
                let reason = "a line without a type: preserved for export, not a message";
                self.out.warn(number, "type", reason);
                self.pending.add(0, line, number);
                Ok(())
            }
            _ => {
                self.pending.add(0, line, number);
                Ok(())
            }
        }
    }

    fn start(&mut self, line: &str, kind: &str, payload: Option<&str>) -> Result<(), Error> {
        self.has_started = true;
        let meta = payload.filter(|_| kind == "session_meta").unwrap_or(line);
        let id = json::get_str(meta, "id").map(|id| id.text().into_owned());
        let id = id.filter(|_| kind == "session_meta" || kind.is_empty());
        self.out.start(Start { name: None, id, created: self.time, is_json_lines: true })
    }

    /// Converts an item to a message.
    fn item(&mut self, line: &str, item: &str, field: &str, number: u64) -> Result<(), Error> {
        self.message(line, item, openai_responses::read(item), field, number)
    }

    /// Adds the message of a line. `item` is the part of the line that contains it.
    fn message(
        &mut self,
        line: &str,
        item: &str,
        read: Result<Item<'_>, FieldError>,
        field: &str,
        number: u64,
    ) -> Result<(), Error> {
        self.pending.report(self.out);
        let before = self.pending.take(0);
        let mut warnings = Vec::new();
        let converted = read.and_then(|read| {
            let line = SessionLine {
                format: Format::Codex,
                json: line,
                foreign: item,
                role_and_content: read.role_and_content,
                before: before.as_deref(),
                timestamp: self.time,
            };
            line.messages(&[self.with_model(read)], &mut warnings)
        });
        for warning in warnings {
            self.warn(warning, field, number);
        }
        let messages = match converted {
            Ok(messages) => messages,
            Err(error) => {
                self.pending.put_back(0, before);
                self.warn(error, field, number);
                self.pending.add(0, line, number);
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
            self.push(Visible { log, role, version }, is_turn);
        }
        Ok(())
    }

    /// Appends an entry to the view.
    fn push(&mut self, entry: Visible, is_turn: bool) {
        if is_turn {
            self.turns.push(self.view.len());
        }
        self.view.push(entry);
    }

    /// Reports an error inside a field of a line.
    fn warn(&mut self, error: FieldError, field: &str, number: u64) {
        let field = match (field, &*error.field) {
            (field, "") => field.to_owned(),
            ("", inner) => inner.to_owned(),
            (field, inner) => format!("{field}.{inner}"),
        };
        self.out.warn(number, &field, error.reason);
    }

    /// Adds the current model to a message of the assistant.
    fn with_model(&self, item: Item<'_>) -> Draft {
        let draft = match (item.draft, item.role_and_content) {
            (Draft::Unchanged, Some((role, content))) => Draft::converted(role, content.to_owned()),
            (draft, _) => draft,
        };
        match draft {
            Draft::Converted { role: Role::Assistant, content, fields, .. } => Draft::Converted {
                role: Role::Assistant,
                content,
                fields,
                provider: Some("openai".into()),
                model: self.model.clone(),
            },
            other => other,
        }
    }

    /// Replaces the visible messages with another history or with a summary.
    fn compaction(&mut self, line: &str, payload: &str, number: u64) -> Result<(), Error> {
        let history = history_of(payload);
        let mut drafts = Vec::new();
        match history {
            Some(list) => {
                for (index, item) in json::items(list).enumerate() {
                    match openai_responses::read(item) {
                        Ok(Item {
                            draft: Draft::Unchanged,
                            role_and_content: Some((role, content)),
                        }) => {
                            drafts.push(Draft::converted(role, content.to_owned()));
                        }
                        Ok(read) => drafts.push(read.draft),
                        Err(error) => {
                            let field = format!("payload.replacement_history[{index}]");
                            self.warn(error, &field, number);
                        }
                    }
                }
            }
            None => match json::get(payload, "message").filter(|text| Str::of(text).is_some()) {
                Some(text) if text != "\"\"" => {
                    drafts.push(Draft::converted(Role::User, text.to_owned()))
                }
                _ => self.out.warn(number, "payload.message", "the compaction has no summary"),
            },
        }
        self.pending.report(self.out);
        let before = self.pending.take(0);
        let session_line = SessionLine {
            format: Format::Codex,
            json: line,
            foreign: line,
            role_and_content: None,
            before: before.as_deref(),
            timestamp: self.time,
        };
        let mut warnings = Vec::new();
        let converted = session_line.messages(&drafts, &mut warnings);
        for warning in warnings {
            self.out.warn(number, "payload", warning.reason);
        }
        let messages = match converted {
            Ok(messages) => messages,
            Err(error) => {
                self.pending.put_back(0, before);
                self.warn(error, "payload", number);
                Vec::new()
            }
        };
        if messages.is_empty() {
            self.pending.add(0, line, number);
        }
        // Without a replacement history, messages of the user and the system stay.
        let stays =
            |entry: &Visible| history.is_none() && matches!(entry.role, Role::User | Role::System);
        self.out.flush()?;
        // Entries that an earlier compaction kept stay, and are not examined again.
        let settled = if history.is_none() { self.settled } else { 0 };
        let view = self.view.split_off(settled);
        let turns = self.turns.partition_point(|turn| *turn < settled);
        let turns: HashSet<usize> = self.turns.split_off(turns).into_iter().collect();
        let mut indices = Vec::new();
        for (position, entry) in (settled..).zip(view) {
            match stays(&entry) {
                true => self.push(Visible { version: None, ..entry }, turns.contains(&position)),
                false => indices.push(LogIndex(entry.log)),
            }
        }
        self.settled = if history.is_none() { self.view.len() } else { 0 };
        let first = self.out.log_len() as u32;
        for (log, message) in (first..).zip(&messages) {
            let entry = Visible { log, role: message.role(), version: None };
            self.push(entry, starts_turn(message));
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

    /// Hides the last turns of the user.
    fn rewind(&mut self, turns: usize) -> Result<(), Error> {
        if turns == 0 || self.turns.is_empty() {
            return Ok(());
        }
        let left = self.turns.len().saturating_sub(turns);
        let position = self.turns[left];
        self.turns.truncate(left);
        self.out.flush()?;
        let reason = "turns were rolled back";
        let indices: Vec<LogIndex> =
            self.view[position..].iter().map(|entry| LogIndex(entry.log)).collect();
        match self.view[position].version {
            Some(version) => self.out.apply(Rollback::ToVersion(version).reason(reason), 0)?,
            None => self.out.apply(Delete { indices }.reason(reason), 0)?,
        }
        self.view.truncate(position);
        self.settled = self.settled.min(position);
        Ok(())
    }
}

/// The message of an event, in a rollout without items.
fn event_message(event: &str) -> Option<Item<'_>> {
    let role = match json::get_str(event, "type")?.escaped() {
        "user_message" => Role::User,
        "agent_message" => Role::Assistant,
        _ => return None,
    };
    let text = json::get(event, "message")?;
    Str::of(text).filter(|text| !text.is_empty())?;
    let draft = Draft::converted(role, text.to_owned());
    Some(Item { draft, role_and_content: Some((role, text)) })
}

/// True if a rollout has items. Reads up to the first one.
fn has_items(input: &dyn Input) -> Result<bool, Error> {
    let is_item = memchr::memmem::Finder::new("\"response_item\"");
    let len = is_item.needle().len();
    let mut file = input.open()?;
    let mut bytes = vec![0; 64 << 10];
    let mut kept = 0;
    loop {
        let read = file.read(&mut bytes[kept..])?;
        let end = kept + read;
        if read == 0 || is_item.find(&bytes[..end]).is_some() {
            return Ok(read > 0);
        }
        // A match may continue in the next chunk.
        let start = end.saturating_sub(len - 1);
        bytes.copy_within(start..end, 0);
        kept = end - start;
    }
}

/// The history with which a compaction replaces the visible messages.
fn history_of(payload: &str) -> Option<&str> {
    json::get(payload, "replacement_history").filter(|list| json::is_list(list))
}

/// True for a type of item in the oldest rollouts.
fn is_item(kind: &str) -> bool {
    matches!(kind, "message" | "reasoning")
        || ["_call", "_call_output"].iter().any(|end| kind.ends_with(end))
}

fn is(event: &str, kind: &str) -> bool {
    json::get_str(event, "type").is_some_and(|it| it.escaped() == kind)
}

fn starts_turn(message: &Message) -> bool {
    let is_from_program = || {
        let text = message.text();
        NOT_FROM_THE_USER.iter().any(|start| text.trim_start().starts_with(start))
    };
    message.role() == Role::User && !is_from_program()
}
