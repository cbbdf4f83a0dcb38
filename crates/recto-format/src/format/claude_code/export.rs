//! Messages as lines of a session.
//!
//! A line that was imported is written as it came, with the lines in front of it that were no
//! messages. Where its parent is not written, since an edit took it away, it hangs on the line before
//! it: the program follows parents, and would stop there.

use std::collections::HashSet;
use std::io::Write;

use recto_core::Message;

use super::super::anthropic::Anthropic;
use super::super::message_list::{CallNames, MessageForm as _};
use super::super::session_line;
use crate::export::{Container, ExportOptions};
use crate::import::Remark;
use crate::json::{self, Str};
use crate::parts::MessageParts;
use crate::source;
use crate::{Error, Format};

pub(super) fn export(
    messages: &mut dyn Iterator<Item = &Message>,
    options: &ExportOptions<'_>,
    file: &mut dyn Write,
) -> Result<Vec<Remark>, Error> {
    let mut lines = Lines {
        file,
        written: HashSet::new(),
        last: None,
        session: None,
        number: 0,
        remarks: Vec::new(),
    };
    let mut group: Vec<MessageParts<'_>> = Vec::new();
    for message in messages.map(MessageParts::of) {
        if group.last().is_some_and(|last| !session_line::is_next_piece(last, &message)) {
            lines.group(&group)?;
            group.clear();
        }
        group.push(message);
    }
    if !group.is_empty() {
        lines.group(&group)?;
    }
    if let Container::Envelope(list) = options.container {
        json::items(list).try_for_each(|line| lines.line(line, false))?;
    }
    Ok(lines.remarks)
}

struct Lines<'f> {
    file: &'f mut dyn Write,
    /// The uuids of the lines that are written.
    written: HashSet<String>,
    last: Option<String>,
    session: Option<String>,
    number: u64,
    remarks: Vec<Remark>,
}

impl Lines<'_> {
    fn group(&mut self, group: &[MessageParts<'_>]) -> Result<(), Error> {
        let source = group[0].source.filter(|source| source.is_from(Format::ClaudeCode.name()));
        let before = source.and_then(|source| source.before).map(json::items).into_iter().flatten();
        before.into_iter().try_for_each(|line| self.line(line, false))?;
        let number = self.number + 1;
        self.number += group.len() as u64;
        if let Some(source) = source
            && source.pieces == group.len()
            && let Some(original) = session_line::original(&group[0])
        {
            return self.line(&original, true);
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
            let line = self.made(message, &group[0]);
            self.line(&line, true)?;
        }
        Ok(())
    }

    /// A line of the file, made from a message that never was one.
    fn made(&self, message: &str, of: &MessageParts<'_>) -> String {
        let kind = json::get_str(message, "role").map_or("user", Str::escaped);
        let place = format!("{}{message}", self.written.len());
        let hash = format!("{}{}", source::hash(&place), source::hash(message));
        let uuid = [&hash[..8], &hash[8..12], &hash[12..16], &hash[16..20], &hash[20..]].join("-");
        let parent = self.last.as_deref().map_or("null".to_owned(), json::string);
        let session = self
            .session
            .clone()
            .unwrap_or_else(|| [&hash[..8], "0000", "4000", "8000", &hash[20..]].join("-"));
        let time = json::get(of.json, "timestamp").and_then(|time| time.parse().ok()).unwrap_or(0);
        let time = session_line::time_of(time);
        let session = json::string(&session);
        format!(
            r#"{{"parentUuid":{parent},"isSidechain":false,"userType":"external","sessionId":{session},"type":"{kind}","message":{message},"uuid":"{uuid}","timestamp":"{time}"}}"#
        )
    }

    /// Writes a line; `is_linked`: it must hang on one that is written.
    fn line(&mut self, line: &str, is_linked: bool) -> Result<(), Error> {
        let uuid = json::get_str(line, "uuid").map(|uuid| uuid.text().into_owned());
        let parent = json::get_str(line, "parentUuid").map(|parent| parent.text().into_owned());
        let is_lost = parent.is_some_and(|parent| !self.written.contains(&parent));
        match &self.last {
            Some(last) if is_linked && is_lost => {
                let mut relinked = format!("{{\"parentUuid\":{}", json::string(last));
                json::push_other_fields(line, &["parentUuid"], &mut relinked);
                relinked.push('}');
                self.file.write_all(relinked.as_bytes())?;
            }
            _ => self.file.write_all(line.as_bytes())?,
        }
        self.file.write_all(b"\n")?;
        if self.session.is_none() {
            self.session = json::get_str(line, "sessionId").map(|id| id.text().into_owned());
        }
        if let Some(uuid) = uuid {
            self.written.insert(uuid.clone());
            if is_linked {
                self.last = Some(uuid);
            }
        }
        Ok(())
    }
}
