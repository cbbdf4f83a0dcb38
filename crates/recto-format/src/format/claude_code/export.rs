//! Messages as lines of a session.
//!
//! A line that was imported is written as it came, with the lines in front of it that were no
//! messages. Where it would not follow the line before it when it is read again, since an edit took
//! its parent away or put something between them, it hangs on the line before it. In a view, no line
//! may act on those before it: see [`Lines::aside`] and [`Lines::stays`].

use std::collections::HashMap;
use std::io::Write;

use recto_core::{Message, Timestamp};

use super::super::anthropic::{self, Anthropic};
use super::super::message_list::{CallNames, MessageForm as _};
use super::super::session_line;
use super::{MOST_BEHIND, is_boundary};
use crate::export::{Container, ExportOptions, Extent};
use crate::import::Remark;
use crate::json::{self, Str};
use crate::parts::MessageParts;
use crate::source;
use crate::{Error, Format};

pub(super) fn export(
    messages: &mut dyn Iterator<Item = &Message>,
    extent: Extent,
    options: &ExportOptions<'_>,
    file: &mut dyn Write,
) -> Result<Vec<Remark>, Error> {
    let mut lines = Lines {
        file,
        extent,
        options,
        written: HashMap::new(),
        last: None,
        now: Place::default(),
        response: None,
        results: 0,
        session: None,
        number: 0,
        remarks: Vec::new(),
    };
    session_line::by_line(messages, |group| lines.group(group))?;
    if let Container::Envelope(list) = options.container {
        json::items(list).try_for_each(|line| lines.aside(line))?;
    }
    Ok(lines.remarks)
}

/// Where a line stands among those that are messages.
#[derive(Clone, Copy, Default)]
struct Place {
    /// How many messages are written up to it.
    count: usize,
    /// The turn of the model that it belongs to.
    turn: usize,
    is_result: bool,
}

struct Lines<'f> {
    file: &'f mut dyn Write,
    extent: Extent,
    options: &'f ExportOptions<'f>,
    /// The lines that are written, by their uuids.
    written: HashMap<String, Place>,
    last: Option<String>,
    /// Where the last message stands.
    now: Place,
    /// The answer that the turn started with, by its `message.id`.
    response: Option<String>,
    /// How many results were written behind it.
    results: usize,
    session: Option<String>,
    number: u64,
    remarks: Vec<Remark>,
}

impl Lines<'_> {
    fn group(&mut self, group: &[MessageParts<'_>]) -> Result<(), Error> {
        let source = group[0].source.filter(|source| source.is_from(Format::ClaudeCode.name()));
        let before = source.and_then(|source| source.before).map(json::items).into_iter().flatten();
        before.into_iter().try_for_each(|line| self.aside(line))?;
        let number = self.number + 1;
        self.number += group.len() as u64;
        if let Some(source) = source
            && source.pieces == group.len()
            && let Some(original) = session_line::original(&group[0])
            && self.stays(&original)
        {
            return self.message(&original);
        }
        let mut made = String::new();
        let mut told = Vec::new();
        Anthropic.write(group, &CallNames::default(), &mut made, &mut told);
        let field = String::new();
        let remarks = told.into_iter();
        self.remarks.extend(remarks.map(|message| Remark {
            line: number,
            field: field.clone(),
            message,
        }));
        for message in json::items(&format!("[{made}]")) {
            let time = self.options.time_of(&group[0], number as usize - 1);
            let line = self.made(message, time);
            self.message(&line)?;
        }
        Ok(())
    }

    /// A line of the file, made from a message that never was one.
    fn made(&self, message: &str, time: Option<Timestamp>) -> String {
        let kind = json::get_str(message, "role").map_or("user", Str::escaped);
        let place = format!("{}{message}", self.written.len());
        let hash = format!("{}{}", source::hash(&place), source::hash(message));
        let uuid = [&hash[..8], &hash[8..12], &hash[12..16], &hash[16..20], &hash[20..]].join("-");
        let parent = self.last.as_deref().map_or("null".to_owned(), json::string);
        let session = self
            .session
            .clone()
            .unwrap_or_else(|| [&hash[..8], "0000", "4000", "8000", &hash[20..]].join("-"));
        let time = time.map(session_line::time_of);
        let time = time.map(|time| format!(r#","timestamp":"{time}""#)).unwrap_or_default();
        let session = json::string(&session);
        format!(
            r#"{{"parentUuid":{parent},"isSidechain":false,"userType":"external","sessionId":{session},"type":"{kind}","message":{message},"uuid":"{uuid}"{time}}}"#
        )
    }

    /// Whether a line of the session, as it came, says its message at this place and nothing else. A
    /// replacement needs what it replaces, and a piece of an answer would go in front of the results
    /// of other pieces.
    fn stays(&self, line: &str) -> bool {
        let kind = json::get_str(line, "type").map(Str::escaped).unwrap_or_default();
        let is_moved = response_of(line).is_some_and(|id| Some(id) == self.response)
            && (1..=MOST_BEHIND).contains(&self.results);
        self.extent == Extent::Log || (matches!(kind, "user" | "assistant") && !is_moved)
    }

    /// Writes a line that is no message. In a view those are left out that take others away, or that
    /// would be messages themselves by now: what they were doubles of may be gone.
    fn aside(&mut self, line: &str) -> Result<(), Error> {
        let kind = json::get_str(line, "type").map(Str::escaped).unwrap_or_default();
        let acts = match kind {
            "content-replacement" => true,
            "user" | "assistant" => {
                let message = json::get(line, "message");
                message.is_some_and(|message| anthropic::read(message).is_ok())
                    && json::get(line, "isApiErrorMessage") != Some("true")
            }
            _ => self.now.count > 0 && is_boundary(line),
        };
        if acts && self.extent == Extent::View {
            return Ok(());
        }
        let parent = json::get_str(line, "parentUuid");
        let place = parent.and_then(|parent| self.written.get(&*parent.text()).copied());
        self.write(line, place.unwrap_or(self.now))?;
        Ok(())
    }

    /// Writes a line that is a message: it must hang on what is written.
    fn message(&mut self, line: &str) -> Result<(), Error> {
        let response = response_of(line);
        let message = json::get(line, "message").unwrap_or("{}");
        let content = json::get(message, "content").filter(|content| json::is_list(content));
        let is_result = content.map(json::items).into_iter().flatten().any(|block| {
            json::get_str(block, "type").is_some_and(|kind| kind.escaped() == "tool_result")
        });
        let is_piece = response.is_some() && response == self.response;
        let parent = json::get_str(line, "parentUuid");
        let place = parent.map(|parent| self.written.get(&*parent.text()).copied());
        let follows = match (place, self.extent) {
            (None, extent) => extent == Extent::Log || self.now.count == 0,
            (Some(None), _) => false,
            (Some(Some(_)), Extent::Log) => true,
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

    /// Writes a line as it is; answers its uuid.
    fn write(&mut self, line: &str, place: Place) -> Result<Option<String>, Error> {
        self.file.write_all(line.as_bytes())?;
        self.file.write_all(b"\n")?;
        if self.session.is_none() {
            self.session = json::get_str(line, "sessionId").map(|id| id.text().into_owned());
        }
        let uuid = json::get_str(line, "uuid").map(|uuid| uuid.text().into_owned());
        if let Some(uuid) = &uuid {
            self.written.insert(uuid.clone(), place);
        }
        Ok(uuid)
    }
}

/// The answer of the model that a line is a piece of.
fn response_of(line: &str) -> Option<String> {
    let is_answer = json::get_str(line, "type")?.escaped() == "assistant";
    let id = json::get_str(json::get(line, "message")?, "id").filter(|_| is_answer)?;
    Some(id.text().into_owned())
}
