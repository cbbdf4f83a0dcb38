//! Export of sessions: imported records with their original bytes, other messages as new records.
//!
//! In the export of a view, no record may change earlier ones: compactions become plain messages,
//! rewinds are omitted, and a record that import would not place after the last one gets the last one as
//! its parent.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;

use recto_core::Message;

use super::{Effect, Parent, Place, Record, RepeatedId, SessionCodec, SessionState};
use crate::Error;
use crate::export::{Container, ExportOptions, Extent};
use crate::format::message_list::CallNames;
use crate::format::session_line;
use crate::import::TranscriptWarning;
use crate::json::{self, Str};
use crate::parts::MessageParts;
use crate::source::Source;

pub(super) fn export(
    codec: &dyn SessionCodec,
    messages: &mut dyn Iterator<Item = &Message>,
    extent: Extent,
    options: &ExportOptions<'_>,
    file: &mut dyn Write,
) -> Result<Vec<TranscriptWarning>, Error> {
    let messages: Vec<&Message> = messages.collect();
    let last = messages.iter().rev().find_map(|message| {
        let source = MessageParts::of(message).source?;
        (is_from(codec, &source) && source.envelope.is_some()).then_some(source)
    });
    let is_imported = messages.iter().any(|message| {
        MessageParts::of(message).source.is_some_and(|source| is_from(codec, &source))
    });
    let envelope = match last {
        Some(last) => last.envelope,
        None => codec.new_document().filter(|_| !is_imported),
    };
    let document = envelope.and_then(|envelope| split_document(codec, envelope));
    let spacing = last.and_then(|last| last.spacing).unwrap_or("[]");
    let mut spacing = json::items(spacing).filter_map(Str::of).map(Str::text);
    let before_first = spacing.next().unwrap_or_default();
    let between = match document {
        Some((before, _)) => {
            write!(file, "{before}[")?;
            spacing.next().unwrap_or(Cow::Borrowed(","))
        }
        None => Cow::Borrowed("\n"),
    };
    let after_last = spacing.next().unwrap_or_default();
    let mut records = Records {
        codec,
        file,
        before_first: before_first.into_owned(),
        between: between.into_owned(),
        is_lines: document.is_none(),
        extent,
        options,
        written: HashMap::new(),
        last: None,
        session: None,
        count: 0,
        number: 0,
        seed: seed_of(&messages),
        names: CallNames::default(),
        warnings: Vec::new(),
    };
    session_line::by_line(&mut messages.into_iter(), |group| records.group(group))?;
    if let Container::Envelope(list) = options.container {
        json::items(list).try_for_each(|record| records.record_without_message(record))?;
    }
    let (count, warnings) = (records.count, records.warnings);
    match document {
        Some((_, after)) if count > 0 => writeln!(file, "{after_last}]{after}")?,
        Some((_, after)) => writeln!(file, "]{after}")?,
        None if count > 0 => file.write_all(b"\n")?,
        None => {}
    }
    Ok(warnings)
}

fn is_from(codec: &dyn SessionCodec, source: &Source<'_>) -> bool {
    source.is_from(codec.format().name())
}

/// The parts of a document in front of and behind the list of records.
fn split_document<'a>(codec: &dyn SessionCodec, document: &'a str) -> Option<(&'a str, &'a str)> {
    if document == "null" {
        return Some(("", ""));
    }
    let list = json::fields(document)
        .find(|(key, value)| codec.list_keys().contains(&&*key.text()) && *value == "null");
    let at = list?.1.as_ptr().addr() - document.as_ptr().addr();
    Some((&document[..at], &document[at + "null".len()..]))
}

/// A text that distinguishes the session from others.
fn seed_of(messages: &[&Message]) -> String {
    messages.first().map_or_else(String::new, |first| crate::source::hash(first.json()))
}

struct Records<'f, 'm> {
    codec: &'f dyn SessionCodec,
    file: &'f mut dyn Write,
    /// White space in front of the first record.
    before_first: String,
    /// Separator of records.
    between: String,
    /// True if records are JSON lines.
    is_lines: bool,
    extent: Extent,
    options: &'f ExportOptions<'f>,
    /// The written records, by id, with the number of messages exported before them.
    written: HashMap<String, u64>,
    /// Id of the last record.
    last: Option<String>,
    /// Id of the session.
    session: Option<String>,
    /// Number of records.
    count: usize,
    /// Number of messages.
    number: u64,
    seed: String,
    names: CallNames<'m>,
    warnings: Vec<TranscriptWarning>,
}

impl<'m> Records<'_, 'm> {
    fn group(&mut self, group: &[MessageParts<'m>]) -> Result<(), Error> {
        group.iter().for_each(|message| self.names.record(message));
        let source = group[0].source.filter(|source| is_from(self.codec, source));
        let before = source.and_then(|source| source.before).map(json::items).into_iter().flatten();
        before.into_iter().try_for_each(|record| self.record_without_message(record))?;
        let original = source
            .filter(|source| source.pieces == group.len())
            .and_then(|_| session_line::original(&group[0]));
        let kept = original.as_deref().is_some_and(|record| self.keeps_bytes(record));
        let first = self.number;
        match original.filter(|_| kept) {
            Some(record) => self.original(&record)?,
            None => {
                for (at, message) in group.iter().enumerate() {
                    self.new_records(message, first + at as u64)?;
                }
            }
        }
        self.number += group.len() as u64;
        session_line::behind(group, self.codec.format())
            .try_for_each(|record| self.record_without_message(record))
    }

    fn read<'a>(&self, record: &'a str) -> Option<Record<'a>> {
        self.codec.read(record, &mut SessionState::default()).ok()
    }

    /// True if a record can be written with its original bytes: in the export of a view, it must not
    /// change earlier records.
    fn keeps_bytes(&self, record: &str) -> bool {
        if self.extent == Extent::Log {
            return true;
        }
        let Some(read) = self.read(record) else { return true };
        let is_replacement = self.codec.repeated_id() == RepeatedId::Replacement
            && read.id.is_some_and(|id| self.written.contains_key(&*id.text()));
        let has_effect = !matches!(read.effect, Effect::None) && self.number > 0;
        !is_replacement && !has_effect
    }

    /// Writes a record without a message. The export of a view omits those with an effect.
    fn record_without_message(&mut self, record: &str) -> Result<(), Error> {
        let read = self.read(record);
        let has_effect = read
            .as_ref()
            .is_some_and(|read| !matches!(read.effect, Effect::None) || !read.drafts.is_empty());
        if has_effect && self.extent == Extent::View {
            return Ok(());
        }
        let id = read.as_ref().and_then(|read| read.id).map(|id| id.text().into_owned());
        let is_new = id.as_ref().is_some_and(|id| !self.written.contains_key(id));
        if self.extent == Extent::View
            && is_new
            && let Some(read) = &read
            && !self.follows(read)
        {
            let relinked = self.relinked(record);
            return self.write(&relinked, id);
        }
        let last = self.last.take();
        self.write(record, id.filter(|_| is_new))?;
        self.last = self.last.take().or(last);
        Ok(())
    }

    /// True if import places a record after the last one.
    fn follows(&self, record: &Record<'_>) -> bool {
        match record.parent {
            Parent::Previous => true,
            Parent::Root => self.number == 0 || self.written.is_empty(),
            Parent::Id(id) => {
                let id = id.text();
                let at = self.written.get(&*id);
                at.is_none_or(|_| self.last.as_deref() == Some(&*id))
            }
        }
    }

    fn original(&mut self, record: &str) -> Result<(), Error> {
        let read = self.read(record);
        let id = read.as_ref().and_then(|read| read.id).map(|id| id.text().into_owned());
        let is_piece = id.is_some() && id == self.last;
        let follows = read.as_ref().is_none_or(|read| self.follows(read)) || is_piece;
        if self.extent == Extent::Log || follows {
            return self.write(record, id);
        }
        let relinked = self.relinked(record);
        self.write(&relinked, id)
    }

    /// A record with the last record as its parent.
    fn relinked(&self, record: &str) -> String {
        let (Some(field), Some(last)) = (self.codec.parent_field(), &self.last) else {
            return record.to_owned();
        };
        let mut out = String::from("{");
        json::push_string(field, &mut out);
        out.push(':');
        json::push_string(last, &mut out);
        json::push_other_fields(record, &[field], &mut out);
        out.push('}');
        out
    }

    /// Writes a message as new records.
    fn new_records(&mut self, message: &MessageParts<'m>, number: u64) -> Result<(), Error> {
        let mut records = String::new();
        let mut lost = Vec::new();
        let place = Place {
            number: self.count,
            parent: self.last.as_deref(),
            session: self.session.as_deref(),
            time: self.options.time_of(message, number as usize),
            names: &self.names,
            seed: &self.seed,
        };
        self.codec.write(message, &place, &mut records, &mut lost);
        let line = number + 1;
        self.warnings
            .extend(lost.into_iter().map(|message| TranscriptWarning::new(line, "", message)));
        for record in json::items(&format!("[{records}]")) {
            let id = self.read(record).and_then(|read| Some(read.id?.text().into_owned()));
            self.write(record, id)?;
        }
        Ok(())
    }

    fn write(&mut self, record: &str, id: Option<String>) -> Result<(), Error> {
        let separator = if self.count > 0 { &self.between } else { &self.before_first };
        self.file.write_all(separator.as_bytes())?;
        match self.is_lines && record.contains('\n') {
            true => self.file.write_all(json::without_space(record).as_bytes())?,
            false => self.file.write_all(record.as_bytes())?,
        }
        self.count += 1;
        if self.session.is_none() {
            let session = self.read(record).and_then(|read| read.session);
            self.session = session.map(|id: Str<'_>| id.text().into_owned());
        }
        if let Some(id) = &id {
            self.written.insert(id.clone(), self.number);
        }
        self.last = id;
        Ok(())
    }
}
