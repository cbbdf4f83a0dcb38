//! Formats that are sessions: files of records, some of which contain messages.
//!
//! A file is JSON lines, a list of records, or a document that contains the list under a key. A format
//! implements [`SessionCodec`] for one record; `read.rs` imports files with it, `tree.rs` has the tree of
//! the records, and `write.rs` exports files. Each message stores the original of its record, and the
//! records without a message before it (`metadata.source.before`). The last message also stores the
//! records after it and the document that contains the list (`behind`, `envelope`), so that an export
//! restores the whole file.
//!
//! | in the file | conversion |
//! |---|---|
//! | a record whose parent is the record before it, or that has no parent | APPEND, one version per record |
//! | a record whose parent is further back | ROLLBACK to that version, then APPEND |
//! | a record that replaces earlier ones with a summary | COMPRESS |
//! | a record with the id of an earlier one | another piece of it, or its replacement: see [`RepeatedId`] |
//! | a record of a subagent | a fork that starts empty |
//! | a record without a message | stored with the next message, for export |
//!
//! A record with an unknown parent follows the record before it.

mod read;
mod spacing;
mod tree;
mod write;

use std::collections::HashSet;
use std::io::Write;

use recto_core::{Message, Role, Timestamp};

use super::message_list::{CallNames, Draft, FieldError, ReadState};
use super::new_parts::NewParts;
use super::{Codec, Head, Likelihood, time};
use crate::export::{ExportOptions, Extent};
use crate::import::{Input, TranscriptWarning};
use crate::json::{self, Str};
use crate::parts::{MessageParts, Part};
use crate::step_writer::StepWriter;
use crate::{Error, Format};

/// Reader and writer of one record of a session.
pub(crate) trait SessionCodec: Sync {
    /// The format.
    fn format(&self) -> Format;

    /// The likelihood that a file with this head has this format.
    fn recognise(&self, head: &Head) -> Likelihood;

    /// The keys under which a document contains the list of records.
    fn list_keys(&self) -> &'static [&'static str] {
        &[]
    }

    /// The document around the records of a new session, with `null` in place of the list, if a session
    /// is not JSON lines.
    fn new_document(&self) -> Option<&'static str> {
        None
    }

    /// The title of the session in a record or in a field of the document.
    fn title(&self, _record: &str) -> Option<String> {
        None
    }

    /// Reads a record. `state` comes from the records before it.
    fn read<'a>(&self, record: &'a str, state: &mut SessionState)
    -> Result<Record<'a>, FieldError>;

    /// The meaning of a record with the id of an earlier one.
    fn repeated_id(&self) -> RepeatedId {
        RepeatedId::Piece
    }

    /// The field of a record that contains the id of its parent, if records form a tree.
    fn parent_field(&self) -> Option<&'static str> {
        None
    }

    /// Writes a message as records separated by commas. Adds a warning for content that the format
    /// cannot represent.
    fn write(
        &self,
        message: &MessageParts<'_>,
        place: &Place<'_>,
        out: &mut String,
        warnings: &mut Vec<String>,
    );
}

impl<S: SessionCodec> Codec for Session<S> {
    fn recognise(&self, head: &Head) -> Likelihood {
        self.0.recognise(head)
    }

    fn import(&self, input: &dyn Input, out: &mut StepWriter<'_>) -> Result<(), Error> {
        read::import(&self.0, input, out)
    }

    fn export(
        &self,
        messages: &mut dyn Iterator<Item = &Message>,
        extent: Extent,
        options: &ExportOptions<'_>,
        file: &mut dyn Write,
    ) -> Result<Vec<TranscriptWarning>, Error> {
        write::export(&self.0, messages, extent, options, file)
    }
}

/// A session format as a [`Codec`].
pub(crate) struct Session<S>(pub(crate) S);

/// The meaning of a record with the id of an earlier one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RepeatedId {
    /// Another piece of the same response.
    Piece,
    /// A newer form of the earlier record, which it replaces.
    Replacement,
}

/// A record, converted.
pub(crate) struct Record<'a> {
    /// The messages of the record; empty if it contains none.
    pub(crate) drafts: Vec<Draft>,
    /// The part of the record that contains the message.
    pub(crate) foreign: &'a str,
    /// Role and content of the message, if it is a single one. The content is a slice of the record.
    pub(crate) role_and_content: Option<(Role, &'a str)>,
    pub(crate) id: Option<Str<'a>>,
    pub(crate) parent: Parent<'a>,
    pub(crate) time: Option<Timestamp>,
    pub(crate) effect: Effect<'a>,
    /// Name of the subagent that the record belongs to.
    pub(crate) branch: Option<Str<'a>>,
    /// Id of the session.
    pub(crate) session: Option<Str<'a>>,
}

/// The parent of a record.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parent<'a> {
    /// The record before it.
    Previous,
    /// None: the record is a root.
    Root,
    /// The record with this id.
    Id(Str<'a>),
}

/// The effect of a record on earlier ones.
pub(crate) enum Effect<'a> {
    None,
    /// The messages replace all messages before the record with this id. Without an id, they replace
    /// all earlier messages.
    Compaction {
        first_kept: Option<Str<'a>>,
        keeps_system: bool,
    },
    /// The messages replace the records with these ids.
    Replaces(HashSet<String>),
    /// The record with this id and all later ones leave the view. If the id is unknown, all records do.
    Rewind(Str<'a>),
}

impl<'a> Record<'a> {
    /// A record without a message.
    pub(crate) fn without_message(record: &'a str) -> Record<'a> {
        Record {
            drafts: Vec::new(),
            foreign: record,
            role_and_content: None,
            id: None,
            parent: Parent::Previous,
            time: None,
            effect: Effect::None,
            branch: None,
            session: None,
        }
    }

    /// The record with these ids and this time, from fields of these names.
    pub(crate) fn with_ids(mut self, fields: &json::Object<'a>, id: &str, parent: &str) -> Self {
        self.id = fields.get_str(id);
        self.parent = match fields.get_or_null(parent) {
            Some("null") => Parent::Root,
            Some(value) => Str::of(value).map_or(Parent::Previous, Parent::Id),
            None => Parent::Previous,
        };
        self.with_time(fields)
    }

    /// The record with the time in its field `timestamp`.
    pub(crate) fn with_time(mut self, fields: &json::Object<'a>) -> Self {
        self.time = fields.get_str("timestamp").and_then(|it| time_of(&it.text()));
        self
    }

    /// The record with a message of one role.
    pub(crate) fn message(mut self, role: Role, content: String) -> Self {
        self.drafts.push(Draft::converted(role, content));
        self
    }

    /// The record with a message whose content is this value of the record, unchanged.
    pub(crate) fn unchanged(mut self, role: Role, content: &'a str) -> Self {
        self.drafts.push(Draft::converted(role, content.to_owned()));
        self.role_and_content = Some((role, content));
        self
    }
}

/// Time in a record: RFC 3339 with any offset. A missing offset means UTC.
pub(crate) fn time_of(text: &str) -> Option<Timestamp> {
    if text.ends_with('Z') {
        return time::parse_time(text);
    }
    // The date also contains hyphens.
    let sign_at = text.get(10..).and_then(|rest| rest.find(['+', '-'])).map(|at| at + 10);
    let (local, offset) = text.split_at(sign_at.unwrap_or(text.len()));
    Some(time::parse_time(&format!("{local}Z"))? - offset_millis(offset)?)
}

/// An offset such as `+02:00` or `-0330`, in milliseconds. An empty text means 0.
fn offset_millis(offset: &str) -> Option<i64> {
    let (sign, digits) = match offset.split_at_checked(1) {
        None => return Some(0),
        Some(("+", digits)) => (1, digits.replace(':', "")),
        Some((_, digits)) => (-1, digits.replace(':', "")),
    };
    let (hours, minutes) = digits.split_at_checked(2)?;
    let hours: i64 = hours.parse().ok()?;
    let minutes: i64 = if minutes.is_empty() { 0 } else { minutes.parse().ok()? };
    Some(sign * (hours * 60 + minutes) * 60_000)
}

/// State of the conversion of a session.
#[derive(Default)]
pub(crate) struct SessionState {
    /// State of the conversion of the messages.
    pub(crate) list: ReadState,
    /// Id of the response that the last record belongs to.
    pub(crate) response: Option<String>,
    /// Id of the last call.
    pub(crate) call: Option<String>,
    /// Kinds of records that were reported as unknown.
    reported: HashSet<String>,
    warnings: Vec<FieldError>,
}

impl SessionState {
    /// Reports a kind of record that is preserved for export and not a message, once per kind.
    pub(crate) fn unknown_kind(&mut self, field: &str, kind: &str) {
        if self.reported.len() < 64 && self.reported.insert(kind.to_owned()) {
            let reason = format!("records of type {kind:?}: preserved for export, not messages");
            self.warnings.push(FieldError::new(field, reason));
        }
    }
}

/// The place of a new record in an exported session.
pub(crate) struct Place<'a> {
    /// Number of records written before it.
    pub(crate) number: usize,
    /// Id of the record before it.
    pub(crate) parent: Option<&'a str>,
    /// Id of the session.
    pub(crate) session: Option<&'a str>,
    pub(crate) time: Option<Timestamp>,
    /// The calls up to the message.
    pub(crate) names: &'a CallNames<'a>,
    /// Distinguishes sessions from each other.
    pub(crate) seed: &'a str,
}

impl Place<'_> {
    /// Id of the new record with this number, counted from the place.
    pub(crate) fn id(&self, number: usize) -> String {
        let hash = crate::source::hash(&format!("{}/{}", self.seed, self.number + number));
        let tail = crate::source::hash(&hash);
        [&hash[..8], &hash[8..12], &hash[12..16], &tail[..4], &tail[4..]].join("-")
    }

    /// Id of the session, in quotes.
    pub(crate) fn session(&self) -> String {
        match self.session {
            Some(session) => json::string(session),
            None => json::string(&crate::source::hash(self.seed)),
        }
    }

    /// Time of the record, in quotes; the start of 1970 if it is unknown.
    pub(crate) fn timestamp(&self) -> String {
        format!("\"{}\"", time::format_time(self.time.unwrap_or(0)))
    }

    /// The field with the id of the parent of the new record with this number, followed by a comma. It
    /// is empty if the record before it has no id: the new one then follows it.
    pub(crate) fn parent_field(&self, name: &str, number: usize) -> String {
        match (number, self.parent) {
            (0, None) if self.number == 0 => format!("\"{name}\":null,"),
            (0, None) => String::new(),
            (0, Some(parent)) => format!("\"{name}\":{},", json::string(parent)),
            _ => format!("\"{name}\":\"{}\",", self.id(number - 1)),
        }
    }
}

/// The input of a call whose arguments are JSON in a string. Arguments that are not JSON become a string.
pub(crate) fn input_of(arguments: &str) -> String {
    match Str::of(arguments) {
        None => arguments.to_owned(),
        Some(text) if text.is_blank() => "{}".to_owned(),
        Some(text) => match json::checked(&text.text()) {
            Some(value) => value.to_owned(),
            None => arguments.to_owned(),
        },
    }
}

/// The text of a result: its string, or the texts of its parts.
pub(crate) fn text_of(content: Option<&str>) -> String {
    let Some(content) = content else { return "\"\"".to_owned() };
    if Str::of(content).is_some() {
        return content.to_owned();
    }
    let mut texts = String::from("\"");
    for part in Part::list(content) {
        if let Part::Text { text, .. } = part {
            if texts.len() > 1 {
                texts.push_str("\\n");
            }
            texts.push_str(text.escaped());
        }
    }
    texts.push('"');
    texts
}

/// The texts of a message's parts that are neither calls, results nor thinking, and warnings about media
/// and other parts.
pub(crate) fn plain_text(message: &MessageParts<'_>, warnings: &mut Vec<String>) -> Option<String> {
    let mut text: Option<String> = None;
    for part in &message.parts {
        match part {
            Part::Text { text: more, .. } => match &mut text {
                Some(text) => {
                    text.push_str("\\n");
                    text.push_str(more.escaped());
                }
                None => text = Some(more.escaped().to_owned()),
            },
            Part::Media(_) => warnings.push("an image, audio or file is not supported".into()),
            Part::Other { kind, .. } => {
                warnings.push(super::message_list::unsupported_part(*kind));
            }
            _ => {}
        }
    }
    text.map(|text| format!("\"{text}\""))
}

/// Adds a text that is a JSON value, unless it is empty.
pub(crate) fn push_text(text: Option<Str<'_>>, parts: &mut NewParts) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        parts.text(text, "");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_with_an_offset_are_converted_to_utc() {
        let noon = time_of("2026-05-01T12:00:00.250Z");
        assert_eq!(noon, Some(1_777_636_800_250));
        for text in [
            "2026-05-01T12:00:00.250",
            "2026-05-01T14:00:00.250+02:00",
            "2026-05-01T08:30:00.250-03:30",
            "2026-05-01T08:30:00.250-0330",
            "2026-05-01T13:00:00.250+01",
        ] {
            assert_eq!(time_of(text), noon, "{text}");
        }
        for text in ["", "+", "2026-05-01T12:00:00+x", "2026-05-01T12:00:00-é", "12:00-02:00"] {
            assert_eq!(time_of(text), None, "{text}");
        }
    }
}
