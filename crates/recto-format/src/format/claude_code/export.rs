//! Export of messages as lines of a Claude Code session.
//!
//! An imported line is written with its original bytes, after the lines without a message that preceded
//! it. If import would not place it after the line before it, because an edit removed its parent or
//! inserted something between them, `parentUuid` is set to the line before it. In the export of a view,
//! no line may change earlier ones: see [`Lines::line_without_message`] and [`Lines::keeps_bytes`].

use std::collections::HashMap;
use std::io::Write;

use recto_core::{Message, Timestamp};

use super::super::anthropic::{self, Anthropic};
use super::super::message_list::{CallNames, MessageCodec as _};
use super::super::{session_line, time};
use super::{MAX_RESULTS_BEHIND, is_boundary};
use crate::export::{Container, ExportOptions, Extent};
use crate::import::TranscriptWarning;
use crate::json::{self, Str};
use crate::parts::MessageParts;
use crate::source;
use crate::{Error, Format};

pub(super) fn export(
    messages: &mut dyn Iterator<Item = &Message>,
    extent: Extent,
    options: &ExportOptions<'_>,
    file: &mut dyn Write,
) -> Result<Vec<TranscriptWarning>, Error> {
    let mut lines = Lines {
        file,
        extent,
        options,
        written: HashMap::new(),
        last: None,
        now: LinePosition::default(),
        response: None,
        results: 0,
        session: None,
        number: 0,
        warnings: Vec::new(),
    };
    session_line::by_line(messages, |group| lines.group(group))?;
    if let Container::Envelope(list) = options.container {
        json::items(list).try_for_each(|line| lines.line_without_message(line))?;
    }
    Ok(lines.warnings)
}

/// Position of a line among the written messages.
#[derive(Clone, Copy, Default)]
struct LinePosition {
    /// Number of messages up to and including the line.
    count: usize,
    /// The turn of the model to which the line belongs.
    turn: usize,
    is_result: bool,
}

struct Lines<'f> {
    file: &'f mut dyn Write,
    extent: Extent,
    options: &'f ExportOptions<'f>,
    /// Positions of the written lines, by uuid.
    written: HashMap<String, LinePosition>,
    /// Uuid of the last message.
    last: Option<String>,
    /// Position of the last message.
    now: LinePosition,
    /// `message.id` of the response with which the turn started.
    response: Option<String>,
    /// Number of results written after the start of the turn.
    results: usize,
    session: Option<String>,
    number: u64,
    warnings: Vec<TranscriptWarning>,
}

impl Lines<'_> {
    fn group(&mut self, group: &[MessageParts<'_>]) -> Result<(), Error> {
        let source = group[0].source.filter(|source| source.is_from(Format::ClaudeCode.name()));
        let before = source.and_then(|source| source.before).map(json::items).into_iter().flatten();
        before.into_iter().try_for_each(|line| self.line_without_message(line))?;
        let number = self.number + 1;
        self.number += group.len() as u64;
        let original = source.filter(|source| source.pieces == group.len());
        let original = original.and_then(|_| session_line::original(&group[0]));
        match original.filter(|original| self.keeps_bytes(original)) {
            Some(original) => self.message(&original)?,
            None => self.new_lines(group, number)?,
        }
        session_line::behind(group, Format::ClaudeCode)
            .try_for_each(|line| self.line_without_message(line))
    }

    /// Writes messages as new lines.
    fn new_lines(&mut self, group: &[MessageParts<'_>], number: u64) -> Result<(), Error> {
        let mut messages = String::new();
        let mut lost = Vec::new();
        Anthropic.write(group, &CallNames::default(), &mut messages, &mut lost);
        self.warnings
            .extend(lost.into_iter().map(|message| TranscriptWarning::new(number, "", message)));
        for message in json::items(&format!("[{messages}]")) {
            let time = self.options.time_of(&group[0], number as usize - 1);
            let line = self.new_line(message, time);
            self.message(&line)?;
        }
        Ok(())
    }

    /// A new line for a message whose original line is not written, such as one of another format.
    fn new_line(&self, message: &str, time: Option<Timestamp>) -> String {
        let kind = json::get_str(message, "role").map_or("user", Str::escaped);
        let numbered = format!("{}{message}", self.written.len());
        let hash = format!("{}{}", source::hash(&numbered), source::hash(message));
        let uuid = [&hash[..8], &hash[8..12], &hash[12..16], &hash[16..20], &hash[20..]].join("-");
        let parent = self.last.as_deref().map_or("null".to_owned(), json::string);
        let session = self
            .session
            .clone()
            .unwrap_or_else(|| [&hash[..8], "0000", "4000", "8000", &hash[20..]].join("-"));
        let time = time.map(time::format_time);
        let time = time.map(|time| format!(r#","timestamp":"{time}""#)).unwrap_or_default();
        let session = json::string(&session);
        format!(
            r#"{{"parentUuid":{parent},"isSidechain":false,"userType":"external","sessionId":{session},"type":"{kind}","message":{message},"uuid":"{uuid}"{time}}}"#
        )
    }

    /// True if the original line gives its message at this position and changes nothing else. A
    /// replacement needs the line that it replaces, and a piece of a response would be inserted in front
    /// of the results of other pieces.
    fn keeps_bytes(&self, line: &str) -> bool {
        let kind = json::get_str(line, "type").map(Str::escaped).unwrap_or_default();
        let is_moved = response_of(line).is_some_and(|id| Some(id) == self.response)
            && (1..=MAX_RESULTS_BEHIND).contains(&self.results);
        self.extent == Extent::Log || (matches!(kind, "user" | "assistant") && !is_moved)
    }

    /// Writes a line without a message. The export of a view omits lines that would hide other lines,
    /// and duplicates of a message, which would become visible if the first copy was removed.
    fn line_without_message(&mut self, line: &str) -> Result<(), Error> {
        let kind = json::get_str(line, "type").map(Str::escaped).unwrap_or_default();
        let has_effect = match kind {
            "content-replacement" => true,
            "user" | "assistant" => {
                let message = json::get(line, "message");
                message.is_some_and(|message| anthropic::read(message).is_ok())
                    && json::get(line, "isApiErrorMessage") != Some("true")
            }
            _ => self.now.count > 0 && is_boundary(line),
        };
        if has_effect && self.extent == Extent::View {
            return Ok(());
        }
        let parent = json::get_str(line, "parentUuid");
        let position = parent.and_then(|parent| self.written.get(&*parent.text()).copied());
        self.write(line, position.unwrap_or(self.now))?;
        Ok(())
    }

    /// Writes a line with a message. In the export of a view, its `parentUuid` is set to the last message if
    /// import would otherwise report a missing parent or rewind to an earlier line.
    fn message(&mut self, line: &str) -> Result<(), Error> {
        let response = response_of(line);
        let message = json::get(line, "message").unwrap_or("{}");
        let content = json::get(message, "content").filter(|content| json::is_list(content));
        let is_result = content.map(json::items).into_iter().flatten().any(|block| {
            json::get_str(block, "type").is_some_and(|kind| kind.escaped() == "tool_result")
        });
        let is_piece = response.is_some() && response == self.response;
        let parent = json::get_str(line, "parentUuid");
        let position = parent.map(|parent| self.written.get(&*parent.text()).copied());
        let follows = match (position, self.extent) {
            (None, extent) => extent == Extent::Log || self.now.count == 0,
            // The messages of a log have all lines of their file, so the file has no such parent either.
            (Some(_), Extent::Log) => true,
            (Some(None), Extent::View) => false,
            (Some(Some(parent)), Extent::View) => {
                parent.count == self.now.count
                    || parent.turn == self.now.turn && (is_piece || is_result || parent.is_result)
            }
        };
        let is_compaction = self.extent == Extent::View
            && self.now.count > 0
            && json::get(line, "isCompactSummary") == Some("true");
        self.now.count += 1;
        self.now.is_result = is_result;
        if is_result {
            self.results += 1;
        } else if !is_piece {
            self.now.turn += 1;
            (self.response, self.results) = (response, 0);
        }
        let last = self.last.as_deref().filter(|_| !follows).map(json::string);
        let uuid = match (last, is_compaction) {
            (None, false) => self.write(line, self.now)?,
            (last, _) => {
                let parent = last.as_deref().or(json::get(line, "parentUuid")).unwrap_or("null");
                let mut relinked = format!("{{\"parentUuid\":{parent}");
                let mut others = vec!["parentUuid"];
                others.extend(is_compaction.then_some("isCompactSummary"));
                json::push_other_fields(line, &others, &mut relinked);
                relinked.push('}');
                self.write(&relinked, self.now)?
            }
        };
        self.last = uuid.or(self.last.take());
        Ok(())
    }

    /// Writes a line unchanged. Returns its uuid.
    fn write(&mut self, line: &str, position: LinePosition) -> Result<Option<String>, Error> {
        self.file.write_all(line.as_bytes())?;
        self.file.write_all(b"\n")?;
        if self.session.is_none() {
            self.session = json::get_str(line, "sessionId").map(|id| id.text().into_owned());
        }
        let uuid = json::get_str(line, "uuid").map(|uuid| uuid.text().into_owned());
        if let Some(uuid) = &uuid {
            self.written.insert(uuid.clone(), position);
        }
        Ok(uuid)
    }
}

/// `message.id` of the response to which a line belongs.
fn response_of(line: &str) -> Option<String> {
    let is_response = json::get_str(line, "type")?.escaped() == "assistant";
    let id = json::get_str(json::get(line, "message")?, "id").filter(|_| is_response)?;
    Some(id.text().into_owned())
}
