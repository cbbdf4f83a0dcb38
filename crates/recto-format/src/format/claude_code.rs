//! Sessions of Claude Code: JSON lines that form a tree by `uuid` and `parentUuid`.
//!
//! The file is read once, in its order, which is the order in which things happened:
//!
//! | in the file | here |
//! |---|---|
//! | a line whose parent is the line before it | APPEND, one version a line |
//! | a line whose parent is further back: the user went back | ROLLBACK to that version, then APPEND |
//! | a piece of an answer (same `message.id`) that comes after results of its other pieces | INSERT behind the pieces before it |
//! | `compact_boundary` and the summary behind it | COMPRESS; what the boundary preserves, listed or from one line to another, stays |
//! | `content-replacement` | REPLACE of the result |
//! | a sidechain | a fork that starts empty |
//! | a line that stands in front of its parent | waits for it |
//! | a uuid that comes again with another message | a branch of its own, and the one that others hang on |
//! | titles, snapshots, progress and all that is no message | kept with the next message, for export |
//!
//! `logicalParentUuid` is not followed: it points to what the summary stands for.

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

use super::message_list::{Draft, Misfit};
use super::new_parts::NewParts;
use super::session_line::{Asides, SessionLine};
use super::{Codec, Head, Likelihood, anthropic};
use crate::export::{ExportOptions, Extent};
use crate::import::{Input, Out, Remark, Start};
use crate::json::{self, Str};
use crate::values::{Peeked, Values};
use crate::{Error, Format};

use chain::{Chain, Node};
use compaction::{Boundary, is_boundary};
use late::{Late, LateParents};
use line::Line;

/// Behind how many results a further piece of their answer is put in front of them. Models make a few
/// calls at once; a file that says otherwise shall not cost the square of its length.
const MOST_BEHIND: usize = 256;

pub(crate) struct ClaudeCode;

impl Codec for ClaudeCode {
    fn recognise(&self, head: &Head) -> Likelihood {
        let mut most = Likelihood::No;
        for line in head.objects() {
            let has = |key: &str| json::fields(line).any(|(name, _)| name.escaped() == key);
            let kind = json::get_str(line, "type").map(Str::escaped).unwrap_or_default();
            let found = match kind {
                _ if has("parentUuid") && has("uuid") => Likelihood::Surely,
                "user" | "assistant" if has("sessionId") && has("message") => Likelihood::Surely,
                "summary" if has("leafUuid") => Likelihood::Likely,
                "file-history-snapshot" | "queue-operation" => Likelihood::Likely,
                _ => Likelihood::No,
            };
            most = most.max(found);
        }
        most
    }

    fn import(&self, input: &dyn Input, out: &mut Out<'_>) -> Result<(), Error> {
        let mut parents = LateParents::default();
        let name = title::find(input, &mut parents)?;
        let limit = out.options.limits.message_bytes;
        let mut values = Values::new(input.open()?, limit);
        let mut session = Session {
            out,
            nodes: HashMap::new(),
            uuids: HashMap::new(),
            asides: Asides::within(limit),
            chains: Vec::new(),
            agents: HashMap::new(),
            results: HashMap::new(),
            late: Late::new(parents.found(), limit),
            waiting: Some(Start { name, is_lines: true, ..Start::default() }),
        };
        while values.peek_byte()?.is_some() {
            session.value(&mut values)?;
        }
        session.end()
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

/// A session that is being read.
struct Session<'o, 'a> {
    out: &'o mut Out<'a>,
    nodes: HashMap<Arc<str>, Node>,
    /// The uuids of the lines, by the chain and the first of their messages.
    uuids: HashMap<(usize, u32), Arc<str>>,
    /// Lines that wait for the next message of their chain.
    asides: Asides,
    /// The main chain and, behind it, the sidechains: as many as the conversation has lines.
    chains: Vec<Chain>,
    /// The sidechains by name.
    agents: HashMap<String, usize>,
    /// The results by their calls.
    results: HashMap<String, ResultPlace>,
    /// Lines that stand in front of their parents.
    late: Late,
    /// What is known of the conversation, until it starts: titles and snapshots, which often come
    /// first, do not say when it was.
    waiting: Option<Start>,
}

/// Where the result of a call is.
#[derive(Clone, Copy)]
struct ResultPlace {
    chain: usize,
    log: u32,
    /// Whether it is alone in its message.
    is_only: bool,
}

impl Session<'_, '_> {
    /// The next line. One that cannot be read is left out, and the next is read all the same.
    fn value(&mut self, values: &mut Values<'_>) -> Result<(), Error> {
        let number = values.line();
        match values.peek_value()? {
            Peeked::Whole { len, depth } => {
                let text = values.peeked(len);
                let deepest = self.out.options.limits.depth;
                if depth > deepest || !json::is_object(text) {
                    let reason = match depth > deepest {
                        true => format!("left out: {depth} levels deep; {deepest} are allowed"),
                        false => "left out: a line is an object".to_owned(),
                    };
                    self.out.remark(number, "", reason);
                } else {
                    self.tree_line(&Line::read(text, number))?;
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

    /// A line, and those that waited for it.
    fn tree_line(&mut self, line: &Line<'_>) -> Result<(), Error> {
        let is_there = |uuid: &str| self.nodes.contains_key(uuid);
        if self.late.holds_back(line, is_there) {
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
        self.start(line)?;
        let kind = line.kind.text();
        let is_message = matches!(&*kind, "user" | "assistant") && !line.is("isApiErrorMessage");
        let known = line.uuid.and_then(|uuid| self.nodes.get(&*uuid.text()));
        if let Some(known) = known {
            if known.said == line.said() {
                self.out.remark(line.number, "uuid", "left out: this line was there already");
                self.keep(line);
                return Ok(());
            }
            let reason = "it was there already, with another message: both are kept";
            self.out.remark(line.number, "uuid", reason);
        }
        if is_message && line.fields.get("message").is_some() {
            return self.message(line);
        }
        match &*kind {
            "content-replacement" => return self.replacement(line),
            "attachment" => {
                self.out.remark(line.number, "", "an attachment: kept, but no message");
            }
            "user" | "assistant" => {
                self.out.remark(line.number, "", "no message of the model: kept, but not shown");
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
                let reason = format!("a line of type {other:?}: kept, but no message");
                self.out.remark(line.number, "type", reason);
            }
        }
        self.keep(line);
        Ok(())
    }

    /// The conversation starts with the first line of the tree, or the first message.
    fn start(&mut self, line: &Line<'_>) -> Result<(), Error> {
        if self.chains.is_empty() {
            self.chains.push(Chain::default());
        }
        let Some(start) = &mut self.waiting else { return Ok(()) };
        if start.id.is_none() {
            start.id = line.fields.get_str("sessionId").map(|id| id.text().into_owned());
        }
        start.created = start.created.or_else(|| line.time());
        match line.uuid.is_some() || line.fields.get("message").is_some() {
            true => self.out.start(self.waiting.take().unwrap_or_default()),
            false => Ok(()),
        }
    }

    /// Keeps a line that is no message, for the next one; it takes part in the tree.
    fn keep(&mut self, line: &Line<'_>) {
        let parent = line.parent.and_then(|parent| self.nodes.get(&*parent.text()).copied());
        let chain = parent.map_or(0, |parent| parent.chain);
        if let Some(uuid) = line.uuid
            && !self.nodes.contains_key(&*uuid.text())
        {
            let node = parent.unwrap_or_else(|| self.chains[0].node(0, false, 0..0)).aside();
            self.nodes.insert(uuid.text().into(), node.saying(line.said()));
            if is_boundary(line.json) {
                let boundary = Boundary::read(uuid, line.json, &self.nodes);
                self.chains[chain].boundary = Some(boundary);
            }
        }
        self.asides.add(chain, line.json, line.number);
    }

    /// Which chain a line belongs to. A sidechain that starts is a fork that starts empty.
    fn chain_of(&mut self, line: &Line<'_>) -> Result<usize, Error> {
        let parent = line.parent.and_then(|parent| self.nodes.get(&*parent.text()));
        // In the file of a subagent all lines are of one sidechain: there it is the main one.
        let is_whole_file = self.chains[0].version == 0;
        match parent {
            Some(parent) => Ok(parent.chain),
            None if !line.is("isSidechain") || is_whole_file => Ok(0),
            None => {
                let agent = line.fields.get_str("agentId").map(|id| id.text().into_owned());
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
        self.out.line(number)?;
        let message = line.fields.get("message").unwrap_or_default();
        self.asides.report(self.out);
        let before = self.asides.take(number);
        let mut told = Vec::new();
        let made = anthropic::read(message).and_then(|read| {
            let line = SessionLine {
                format: Format::ClaudeCode,
                json: line.json,
                foreign: message,
                said: Some((read.role, read.content)),
                before: before.as_deref(),
                timestamp: line.time(),
            };
            Ok((line.messages(&read.drafts, &mut told)?, read.id))
        });
        for Misfit { field, reason } in told {
            self.out.remark(line.number, &format!("message.{field}"), reason);
        }
        let (messages, id) = match made {
            Ok(made) => made,
            Err(Misfit { field, reason }) => {
                let field =
                    if field.is_empty() { "message".into() } else { format!("message.{field}") };
                self.out.remark(line.number, &field, reason);
                self.asides.put_back(number, before);
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
            let place = ResultPlace { chain: number, log, is_only };
            self.results.extend(ids.into_iter().map(|id| (id, place)));
        }
        if let Some(uuid) = line.uuid {
            let logs = first as u32..self.out.log_len() as u32;
            let node = chain.node(number, is_result, logs).saying(line.said());
            let uuid: Arc<str> = uuid.text().into();
            self.uuids.insert((number, first as u32), Arc::clone(&uuid));
            self.nodes.insert(uuid, node);
        }
        Ok(())
    }

    /// Puts a line's messages where they belong.
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
            // Results came between the pieces of an answer.
            Some(parent)
                if parent.turn == chain.turn
                    && response.is_some()
                    && response == chain.response
                    && (1..=MOST_BEHIND).contains(&behind) =>
            {
                return self.insert(number, messages);
            }
            Some(parent) if !chain.is_present(&parent) => {
                let is_same_turn = parent.turn == chain.turn;
                let is_piece = response.is_some() && response == chain.response;
                let goes_on = is_piece || is_result || parent.is_result;
                if !(is_same_turn && goes_on) {
                    self.go_back(number, Some(parent))?;
                }
            }
            None if line.is_root && chain.version > 0 => self.go_back(number, None)?,
            None if line.parent.is_some() => {
                let reason = "its parent is not in the file; it follows the line before it";
                self.out.remark(line.number, "parentUuid", reason);
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

    /// The user went back to a line, or to the start.
    fn go_back(&mut self, number: usize, to: Option<Node>) -> Result<(), Error> {
        let version = to.map_or(0, |node| node.version);
        let step = Rollback::ToVersion(Version(version)).reason("the user went back");
        self.out.apply(step, 0)?;
        self.chains[number].go_back(to);
        Ok(())
    }

    /// A further piece of an answer, some of whose calls are answered already.
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

    /// The program put a shorter text in the place of a tool's result.
    fn replacement(&mut self, line: &Line<'_>) -> Result<(), Error> {
        let listed = line.fields.get("replacements").map(json::items).into_iter().flatten();
        let mut found = Vec::new();
        let mut drafts = Vec::new();
        for (place, item) in listed.enumerate() {
            let field = format!("replacements[{place}]");
            let id = json::get_str(item, "toolUseId").or(json::get_str(item, "tool_use_id"));
            let text = json::get(item, "replacement").filter(|text| Str::of(text).is_some());
            let (Some(id), Some(text)) = (id, text) else {
                self.out.remark(line.number, &field, "it has no toolUseId or no replacement");
                continue;
            };
            let at = self.results.get(&*id.text()).and_then(|place| {
                let position = self.chains[place.chain].position(place.log)?;
                place.is_only.then_some((*place, position))
            });
            let Some(at) = at else {
                self.out.remark(line.number, &field, "the result is not visible, or not alone");
                continue;
            };
            let mut parts = NewParts::default();
            parts.result(id, Some(text), false, "");
            drafts.push(Draft::made(Role::Tool, parts.finish()));
            found.push(at);
        }
        let Some(number) = found.first().map(|(place, _)| place.chain) else {
            self.keep(line);
            return Ok(());
        };
        self.asides.report(self.out);
        let before = self.asides.take(number);
        let session_line = SessionLine {
            format: Format::ClaudeCode,
            json: line.json,
            foreign: "",
            said: None,
            before: before.as_deref(),
            timestamp: None,
        };
        let made = session_line.messages(&drafts, &mut Vec::new());
        let Ok(messages) = made else {
            self.asides.put_back(number, before);
            self.keep(line);
            return Ok(());
        };
        for ((place, position), message) in found.into_iter().zip(messages) {
            self.out.line(place.chain)?;
            let new = self.out.log_len() as u32;
            let replace = Replace { index: Position(position), message };
            self.out.apply(replace.reason("the program shortened the result"), 1)?;
            let chain = &mut self.chains[place.chain];
            chain.replaced.entry(place.log).or_default().push(new);
            // Who hangs on the line before hangs on what it is now.
            let old = std::mem::replace(&mut chain.version, self.out.version().0);
            chain.renumber(old);
        }
        Ok(())
    }

    /// What stands behind the last message goes into the envelope.
    fn end(mut self) -> Result<(), Error> {
        // Lines that wait for each other: nothing stands before them.
        for (json, number) in self.late.rest() {
            self.line(&Line::read(&json, number))?;
        }
        // Nothing but titles and snapshots.
        if let Some(start) = self.waiting.take().filter(|_| !self.chains.is_empty()) {
            self.out.start(start)?;
        }
        self.asides.report(self.out);
        match self.asides.take_all() {
            Some(rest) => self.out.envelope(rest),
            None => Ok(()),
        }
    }
}

/// The ids of the results in each message.
fn results_of(messages: &[Message]) -> Vec<Vec<String>> {
    let ids = |message: &Message| message.tool_results().map(|id| id.into_owned()).collect();
    messages.iter().map(ids).collect()
}
