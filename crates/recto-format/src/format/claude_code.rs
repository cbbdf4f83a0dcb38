//! Codec of Claude Code sessions: JSON lines that form a tree by `uuid` and `parentUuid`.
//!
//! The lines are read in the order of the file, which is their order in time:
//!
//! | in the file | conversion |
//! |---|---|
//! | a line whose parent is the line before it | APPEND, one version per line |
//! | a line whose parent is further back, because the user rewound | ROLLBACK to that version, then APPEND |
//! | a piece of a response (same `message.id`) after results of its other pieces | INSERT after the earlier pieces |
//! | `compact_boundary` and the summary after it | COMPRESS; the lines that the boundary preserves stay |
//! | `content-replacement` | REPLACE of the result |
//! | a sidechain | a fork that starts empty |
//! | a line in front of its parent | held back until its parent is read |
//! | a uuid that occurs again with another message | a rewind to its parent; later children belong to the second message |
//! | titles, snapshots, progress and other lines without a message | stored with the next message, for export |
//!
//! `logicalParentUuid` is ignored: it refers to the messages that a summary replaces.
//!
//! `chain.rs` tracks the view of each chain, `late.rs` holds lines back, `compaction.rs` converts
//! compactions, `title.rs` finds the title, and `export.rs` writes sessions.

mod chain;
mod compaction;
mod export;
mod late;
mod line;
mod title;

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use recto_core::{Insert, Message, Position, Replace, Role, Rollback, Version};

use super::message_list::{Draft, FieldError};
use super::new_parts::NewParts;
use super::pending_lines::PendingLines;
use super::session_line::SessionLine;
use super::{Codec, Head, Likelihood, anthropic};
use crate::export::{ExportOptions, Extent};
use crate::import::{Input, Start, TranscriptWarning};
use crate::json::{self, Str};
use crate::step_writer::StepWriter;
use crate::values::{Peeked, Values};
use crate::{Error, Format};

use chain::{Chain, Node};
use compaction::{Boundary, is_boundary};
use late::{LateLines, LateParents};
use line::Line;

/// Maximum number of results in front of which a further piece of their response is inserted. Models make
/// few parallel calls; the limit keeps the cost of a malicious file linear.
const MAX_RESULTS_BEHIND: usize = 256;

pub(crate) struct ClaudeCode;

impl Codec for ClaudeCode {
    fn recognise(&self, head: &Head) -> Likelihood {
        let mut best = Likelihood::No;
        for line in head.objects() {
            let has = |key: &str| json::fields(line).any(|(name, _)| name.escaped() == key);
            let kind = json::get_str(line, "type").map(Str::escaped).unwrap_or_default();
            let found = match kind {
                _ if has("parentUuid") && has("uuid") => Likelihood::Certain,
                "user" | "assistant" if has("sessionId") && has("message") => Likelihood::Certain,
                "summary" if has("leafUuid") => Likelihood::Likely,
                "file-history-snapshot" | "queue-operation" => Likelihood::Likely,
                _ => Likelihood::No,
            };
            best = best.max(found);
        }
        best
    }

    fn import(&self, input: &dyn Input, out: &mut StepWriter<'_>) -> Result<(), Error> {
        let mut parents = LateParents::default();
        let name = title::find(input, &mut parents)?;
        let limit = out.options.limits.message_bytes;
        let mut values = Values::new(input.open()?, limit);
        let mut session = Session {
            out,
            nodes: HashMap::new(),
            uuids: HashMap::new(),
            pending: PendingLines::with_capacity(limit),
            chains: Vec::new(),
            agents: HashMap::new(),
            file_agent: None,
            results: HashMap::new(),
            late: LateLines::new(parents.found(), limit),
            start: Some(Start { name, is_json_lines: true, ..Start::default() }),
        };
        while values.peek_byte()?.is_some() {
            session.value(&mut values)?;
        }
        session.out.warn_space(&values);
        session.end()
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

/// Reader of a session.
struct Session<'o, 'a> {
    out: &'o mut StepWriter<'a>,
    nodes: HashMap<Arc<str>, Node>,
    /// Uuids of lines, by chain and log index of their first message.
    uuids: HashMap<(usize, u32), Arc<str>>,
    /// Lines without a message, until the next message of their chain.
    pending: PendingLines,
    /// The main chain, followed by the sidechains. Chain n is branch n of the conversation.
    chains: Vec<Chain>,
    /// The sidechains by name.
    agents: HashMap<String, usize>,
    /// `Some` if the file is that of a subagent: the id of the subagent, if it has one.
    file_agent: Option<Option<String>>,
    /// Results, by the id of their call.
    results: HashMap<String, ResultLocation>,
    /// Lines that precede their parents.
    late: LateLines,
    /// Metadata of the conversation, until it starts. Titles and snapshots often come first and have no
    /// time.
    start: Option<Start>,
}

/// Location of the result of a call.
#[derive(Clone, Copy)]
struct ResultLocation {
    chain: usize,
    log: u32,
    /// True if its message contains no other result.
    is_only: bool,
}

impl Session<'_, '_> {
    /// Reads the next line. An unreadable line is skipped with a warning.
    fn value(&mut self, values: &mut Values<'_>) -> Result<(), Error> {
        let number = values.line();
        match values.peek_value()? {
            Peeked::Whole { len, depth } => {
                let text = values.peeked(len);
                let deepest = self.out.options.limits.depth;
                if depth > deepest || !json::is_object(text) {
                    let reason = match depth > deepest {
                        true => format!("skipped: {depth} levels deep; {deepest} are allowed"),
                        false => "skipped: a line must be an object".to_owned(),
                    };
                    self.out.warn(number, "", reason);
                } else {
                    self.tree_line(&Line::read(text, number))?;
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

    /// Converts a line and the lines that were held back for it.
    fn tree_line(&mut self, line: &Line<'_>) -> Result<(), Error> {
        let is_known = |uuid: &str| self.nodes.contains_key(uuid);
        if self.late.holds_back(line, is_known) {
            return Ok(());
        }
        self.line(line)?;
        let mut next = line.uuid.map_or_else(Vec::new, |uuid| self.late.release(&uuid.text()));
        while let Some((json, number)) = next.pop() {
            let line = Line::read(&json, number);
            self.line(&line)?;
            next.extend(line.uuid.map_or_else(Vec::new, |uuid| self.late.release(&uuid.text())));
        }
        Ok(())
    }

    fn line(&mut self, line: &Line<'_>) -> Result<(), Error> {
        self.start_with(line)?;
        let kind = line.kind.text();
        let is_message = matches!(&*kind, "user" | "assistant") && !line.is("isApiErrorMessage");
        let known = line.uuid.and_then(|uuid| self.nodes.get(&*uuid.text()));
        if let Some(known) = known {
            if known.content_hash == line.content_hash() {
                self.out.warn(line.number, "uuid", "skipped: a duplicate of an earlier line");
                self.keep(line);
                return Ok(());
            }
            let reason = "an earlier line has the same uuid and another message; both are imported";
            self.out.warn(line.number, "uuid", reason);
        }
        if is_message && line.fields.get("message").is_some() {
            return self.message(line);
        }
        match &*kind {
            "content-replacement" => return self.replacement(line),
            "attachment" => {
                self.out.warn(
                    line.number,
                    "",
                    "an attachment: preserved for export, not a message",
                );
            }
            "user" | "assistant" => {
                let reason = "an error message of the program: preserved for export, not visible";
                self.out.warn(line.number, "", reason);
            }
            "system"
            | "summary"
            | "progress"
            | "file-history-snapshot"
            | "queue-operation"
            | "last-prompt"
            | "custom-title"
            | "ai-title"
            | "tag"
            | "agent-name"
            | "pr-link"
            | "attribution-snapshot"
            | "permission-mode"
            | "mode" => {}
            other => {
                let reason =
                    format!("a line of type {other:?}: preserved for export, not a message");
                self.out.warn(line.number, "type", reason);
            }
        }
        self.keep(line);
        Ok(())
    }

    /// Starts the conversation with the first line that has a uuid or a message.
    fn start_with(&mut self, line: &Line<'_>) -> Result<(), Error> {
        if self.chains.is_empty() {
            self.chains.push(Chain::default());
        }
        let Some(start) = &mut self.start else { return Ok(()) };
        if start.id.is_none() {
            start.id = line.fields.get_str("sessionId").map(|id| id.text().into_owned());
        }
        start.created = start.created.or_else(|| line.time());
        match line.uuid.is_some() || line.fields.get("message").is_some() {
            true => self.out.start(self.start.take().unwrap_or_default()),
            false => Ok(()),
        }
    }

    /// Keeps a line without a message for the next message, and adds it to the tree.
    fn keep(&mut self, line: &Line<'_>) {
        let parent = line.parent.and_then(|parent| self.nodes.get(&*parent.text()).copied());
        let chain = parent.map_or(0, |parent| parent.chain);
        if let Some(uuid) = line.uuid
            && !self.nodes.contains_key(&*uuid.text())
        {
            let parent = parent.unwrap_or_else(|| self.chains[0].node(0, false, 0..0));
            let node = parent.without_messages().with_content_hash(line.content_hash());
            self.nodes.insert(uuid.text().into(), node);
            if is_boundary(line.json) {
                let boundary = Boundary::read(uuid, line.json, &self.nodes);
                self.chains[chain].boundary = Some(boundary);
            }
        }
        self.pending.add(chain, line.json, line.number);
    }

    /// The chain of a line. The first line of a sidechain starts a fork.
    fn chain_of(&mut self, line: &Line<'_>) -> Result<usize, Error> {
        let parent = line.parent.and_then(|parent| self.nodes.get(&*parent.text()));
        let agent = || line.fields.get_str("agentId").map(|id| id.text().into_owned());
        // All lines of a subagent's file belong to one sidechain, which is the main chain there.
        if parent.is_none() && line.is("isSidechain") && self.chains[0].version == 0 {
            self.file_agent = Some(agent());
        }
        match parent {
            Some(parent) => Ok(parent.chain),
            None if !line.is("isSidechain") || self.file_agent == Some(agent()) => Ok(0),
            None => {
                let agent = agent();
                let name = agent.unwrap_or_else(|| format!("sidechain {}", self.chains.len()));
                if let Some(known) = self.agents.get(&name) {
                    return Ok(*known);
                }
                self.agents.insert(name.clone(), self.chains.len());
                self.chains.push(Chain::default());
                self.out.fork(name, 0, Version(0), 0)
            }
        }
    }

    fn message(&mut self, line: &Line<'_>) -> Result<(), Error> {
        let number = self.chain_of(line)?;
        self.out.switch_branch(number)?;
        let message = line.fields.get("message").unwrap_or_default();
        self.pending.report(self.out);
        let before = self.pending.take(number);
        let mut warnings = Vec::new();
        let converted = anthropic::read(message).and_then(|read| {
            let line = SessionLine {
                format: Format::ClaudeCode,
                json: line.json,
                foreign: message,
                role_and_content: Some((read.role, read.content)),
                before: before.as_deref(),
                timestamp: line.time(),
            };
            Ok((line.messages(&read.drafts, &mut warnings)?, read.id))
        });
        for FieldError { field, reason } in warnings {
            self.out.warn(line.number, &format!("message.{field}"), reason);
        }
        let (messages, id) = match converted {
            Ok(converted) => converted,
            Err(FieldError { field, reason }) => {
                let field =
                    if field.is_empty() { "message".into() } else { format!("message.{field}") };
                self.out.warn(line.number, &field, reason);
                self.pending.put_back(number, before);
                self.keep(line);
                return Ok(());
            }
        };
        let is_result = messages.iter().any(|message| message.role() == Role::Tool);
        let results = results_of(&messages);
        let first = self.out.log_len();
        self.place(number, line, id, messages, is_result)?;
        let chain = &mut self.chains[number];
        chain.version = self.out.version().0;
        for (piece, ids) in results.into_iter().enumerate() {
            let is_only = ids.len() == 1;
            let log = (first + piece) as u32;
            let location = ResultLocation { chain: number, log, is_only };
            self.results.extend(ids.into_iter().map(|id| (id, location)));
        }
        if let Some(uuid) = line.uuid {
            let logs = first as u32..self.out.log_len() as u32;
            let node = chain.node(number, is_result, logs);
            let node = node.with_content_hash(line.content_hash());
            let uuid: Arc<str> = uuid.text().into();
            self.uuids.insert((number, first as u32), Arc::clone(&uuid));
            self.nodes.insert(uuid, node);
        }
        Ok(())
    }

    /// Adds the messages of a line at their position: appends, inserts, compacts or rewinds.
    fn place(
        &mut self,
        number: usize,
        line: &Line<'_>,
        id: Option<Str<'_>>,
        messages: Vec<Message>,
        is_result: bool,
    ) -> Result<(), Error> {
        let parent = line.parent.and_then(|parent| self.nodes.get(&*parent.text()).copied());
        let chain = &mut self.chains[number];
        let boundary = chain.boundary.take_if(|boundary| {
            line.is("isCompactSummary")
                || line.parent.is_some_and(|it| *it.text() == *boundary.uuid)
        });
        if boundary.is_some() || line.is("isCompactSummary") {
            return self.compaction(number, messages, boundary, line.is("isCompactSummary"));
        }
        let response = match line.kind.escaped() {
            "assistant" => id.map(|id| id.text().into_owned()),
            _ => None,
        };
        let behind = chain.len().saturating_sub(chain.response_end);
        match parent {
            // A further piece of a response, after results of its other pieces.
            Some(parent)
                if parent.turn == chain.turn
                    && response.is_some()
                    && response == chain.response
                    && (1..=MAX_RESULTS_BEHIND).contains(&behind) =>
            {
                return self.insert(number, messages);
            }
            Some(parent) if !chain.is_present(&parent) => {
                let is_same_turn = parent.turn == chain.turn;
                let is_piece = response.is_some() && response == chain.response;
                let continues = is_piece || is_result || parent.is_result;
                if !(is_same_turn && continues) {
                    self.rewind(number, Some(parent))?;
                }
            }
            None if line.is_root && chain.version > 0 => self.rewind(number, None)?,
            None if line.parent.is_some() => {
                let reason =
                    "the parent is not in the file; the line is added after the line before it";
                self.out.warn(line.number, "parentUuid", reason);
            }
            _ => {}
        }
        let chain = &mut self.chains[number];
        if !is_result && (response.is_none() || response != chain.response) {
            chain.start_turn(response);
        }
        let first = self.out.log_len();
        let count = messages.len();
        messages.into_iter().try_for_each(|message| self.out.message(message))?;
        self.out.flush()?;
        let chain = &mut self.chains[number];
        (first..first + count).for_each(|log| chain.push(log as u32));
        if !is_result {
            chain.response_end = chain.len();
        }
        Ok(())
    }

    /// Rewinds a chain to a line, or to its start.
    fn rewind(&mut self, number: usize, to: Option<Node>) -> Result<(), Error> {
        let version = to.map_or(0, |node| node.version);
        let step = Rollback::ToVersion(Version(version)).reason("the user went back");
        self.out.apply(step, 0)?;
        self.chains[number].rewind(to);
        Ok(())
    }

    /// Inserts a further piece of a response after its earlier pieces, in front of their results.
    fn insert(&mut self, number: usize, messages: Vec<Message>) -> Result<(), Error> {
        let position = self.chains[number].response_end;
        let first = self.out.log_len();
        let count = messages.len();
        let insert = Insert { position: Position(position), messages };
        self.out.apply(insert.reason("a further piece of the same answer"), count)?;
        let logs: Vec<u32> = (first..first + count).map(|log| log as u32).collect();
        self.chains[number].insert(position, &logs);
        self.chains[number].response_end += count;
        Ok(())
    }

    /// Replaces results with the shorter texts of a `content-replacement` line.
    fn replacement(&mut self, line: &Line<'_>) -> Result<(), Error> {
        let listed = line.fields.get("replacements").map(json::items).into_iter().flatten();
        let mut found = Vec::new();
        let mut drafts = Vec::new();
        for (number, item) in listed.enumerate() {
            let field = format!("replacements[{number}]");
            let id = json::get_str(item, "toolUseId").or(json::get_str(item, "tool_use_id"));
            let text = json::get(item, "replacement").filter(|text| Str::of(text).is_some());
            let (Some(id), Some(text)) = (id, text) else {
                self.out.warn(line.number, &field, "toolUseId or replacement is missing");
                continue;
            };
            let at = self.results.get(&*id.text()).and_then(|location| {
                let position = self.chains[location.chain].position(location.log)?;
                location.is_only.then_some((*location, position))
            });
            let Some(at) = at else {
                let reason = "the result is not visible, or its message has other results";
                self.out.warn(line.number, &field, reason);
                continue;
            };
            let mut parts = NewParts::default();
            parts.result(id, Some(text), false, "");
            drafts.push(Draft::converted(Role::Tool, parts.finish()));
            found.push(at);
        }
        let Some(number) = found.first().map(|(location, _)| location.chain) else {
            self.keep(line);
            return Ok(());
        };
        self.pending.report(self.out);
        let before = self.pending.take(number);
        let session_line = SessionLine {
            format: Format::ClaudeCode,
            json: line.json,
            foreign: "",
            role_and_content: None,
            before: before.as_deref(),
            timestamp: None,
        };
        let Ok(messages) = session_line.messages(&drafts, &mut Vec::new()) else {
            self.pending.put_back(number, before);
            self.keep(line);
            return Ok(());
        };
        for ((location, position), message) in found.into_iter().zip(messages) {
            self.out.switch_branch(location.chain)?;
            let new = self.out.log_len() as u32;
            let replace = Replace { index: Position(position), message };
            self.out.apply(replace.reason("the program shortened the result"), 1)?;
            let chain = &mut self.chains[location.chain];
            chain.replaced.entry(location.log).or_default().push(new);
            // Children of the line before the replacement continue from the present version.
            let old = std::mem::replace(&mut chain.version, self.out.version().0);
            chain.renumber(old);
        }
        Ok(())
    }

    /// Ends the session. The lines after the last message become the envelope.
    fn end(mut self) -> Result<(), Error> {
        // The lines that are still held back have parents that form a cycle.
        for (json, number) in self.late.rest() {
            self.line(&Line::read(&json, number))?;
        }
        // No line had a uuid or a message, so the conversation has not started yet.
        if let Some(start) = self.start.take().filter(|_| !self.chains.is_empty()) {
            self.out.start(start)?;
        }
        self.pending.finish(self.out, None)
    }
}

/// The ids of the results of each message.
fn results_of(messages: &[Message]) -> Vec<Vec<String>> {
    let ids = |message: &Message| message.tool_result_ids().map(|id| id.into_owned()).collect();
    messages.iter().map(ids).collect()
}
