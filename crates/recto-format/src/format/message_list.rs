//! Formats that are lists of messages.
//!
//! A file is a list of messages, an object that contains one (an API request), several of either in
//! sequence (JSON lines), or a list of such objects. A format implements [`MessageCodec`] for one
//! message; `read.rs` imports files with it and `write.rs` exports them.
//!
//! Each foreign message becomes one or more Recto messages. Import writes the converted messages again
//! and compares the bytes. `metadata.source.original` stores the original bytes only if they differ and
//! are not the same JSON in the layout of Python's `json.dumps`.

mod agreement;
mod read;
mod unreadable;
mod write;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet, VecDeque};
use std::io::Write;

use recto_core::{Message, Role, Timestamp};

use super::{Codec, Head, Likelihood};
use crate::export::{ExportOptions, Extent};
use crate::import::{Input, TranscriptWarning};
use crate::json::{self, Str};
use crate::parts::{MessageParts, Part};
use crate::source::Source;
use crate::step_writer::StepWriter;
use crate::{Error, Format};

use unreadable::MAX_PART_WARNINGS;
pub(crate) use unreadable::{UNREADABLE_PART, without_unreadable_parts};

/// Reader and writer of one message of a format.
pub(crate) trait MessageCodec: Sync {
    /// The format.
    fn format(&self) -> Format;

    /// The likelihood that a file with this head has this format.
    fn recognise(&self, head: &Head) -> Likelihood;

    /// The keys under which an object contains the list of messages, such as `messages`.
    fn list_keys(&self) -> &'static [&'static str];

    /// True if an object may contain a single message in place of the list.
    fn takes_single_message(&self) -> bool {
        false
    }

    /// True if an object contains a list of messages and is not a message itself.
    fn is_envelope(&self, object: &str) -> bool {
        // Fast path: an object whose first field is the role is a message.
        let first = json::fields(object).next();
        first.is_some_and(|(key, _)| key.escaped() != "role")
            && self.list_keys().iter().any(|key| {
                holds_list(object, key)
                    || self.takes_single_message()
                        && json::get(object, key).is_some_and(json::is_object)
            })
    }

    /// The field with the role of a message.
    fn role_field(&self) -> &'static str {
        "role"
    }

    /// Reads one foreign message. `state` comes from the messages before it.
    fn read(&self, foreign: &str, state: &mut ReadState) -> Result<Vec<Draft>, FieldError>;

    /// Reads a field of the envelope that holds messages, such as Anthropic's `system`; `None` for any
    /// other field. The messages precede those of the list in the view; if the field follows the list, an
    /// INSERT adds them at position 0.
    fn read_envelope(&self, _key: &str, _value: &str) -> Option<Result<Vec<Draft>, FieldError>> {
        None
    }

    /// The field of the envelope that [`read_envelope`](Self::read_envelope) converts to a system
    /// message.
    fn system_field(&self) -> Option<&'static str> {
        None
    }

    /// True if the list may contain system messages too.
    fn lists_system(&self) -> bool {
        false
    }

    /// An envelope that declares the format, for lists that would be recognised as another format.
    fn declaring_envelope(&self) -> Option<&'static str> {
        None
    }

    /// Writes the leading system messages as the value of [`system_field`](Self::system_field).
    fn write_system(&self, _messages: &[MessageParts<'_>], _out: &mut String) {}

    /// True if two consecutive messages that were not imported from this format become one foreign
    /// message.
    fn joins(&self, _last: &MessageParts<'_>, _next: &MessageParts<'_>) -> bool {
        false
    }

    /// Writes messages that were one foreign message, or that [`joins`](Self::joins) combines, as
    /// foreign messages separated by commas. Adds a warning for content that the format cannot
    /// represent. `names` contains the calls up to these messages.
    fn write(
        &self,
        pieces: &[MessageParts<'_>],
        names: &CallNames<'_>,
        out: &mut String,
        warnings: &mut Vec<String>,
    );
}

impl<F: MessageCodec> Codec for F {
    fn recognise(&self, head: &Head) -> Likelihood {
        MessageCodec::recognise(self, head)
    }

    fn import(&self, input: &dyn Input, out: &mut StepWriter<'_>) -> Result<(), Error> {
        read::import(self, input, out)
    }

    fn read_list(&self, messages: &[&str]) -> Option<Result<Vec<Vec<Message>>, Error>> {
        Some(read::convert_all(self, messages))
    }

    fn is_message(&self, key: &str, value: &str) -> bool {
        matches!(self.read_envelope(key, value), Some(Ok(_)))
    }

    fn list_key(&self) -> &'static str {
        self.list_keys()[0]
    }

    fn original<'a>(&self, pieces: &[MessageParts<'a>]) -> Option<Cow<'a, str>> {
        write::original(self, pieces)
    }

    fn is_read_as(
        &self,
        foreign: &str,
        field: Option<Str<'_>>,
        pieces: &[MessageParts<'_>],
    ) -> bool {
        agreement::is_read_as(self, foreign, field, pieces)
    }

    fn is_unchanged(&self, message: &str) -> bool {
        let read = self.read(message, &mut ReadState::default());
        matches!(read.as_deref(), Ok([Draft::Unchanged]))
    }

    fn export(
        &self,
        messages: &mut dyn Iterator<Item = &Message>,
        _extent: Extent,
        options: &ExportOptions<'_>,
        file: &mut dyn Write,
    ) -> Result<Vec<TranscriptWarning>, Error> {
        write::export(self, messages, options, file)
    }
}

/// The names with which [`write_turns`] writes messages.
pub(crate) struct TurnKeys {
    /// The role of the model.
    pub(crate) assistant: &'static str,
    /// The field with the list of parts.
    pub(crate) list: &'static str,
}

/// Writes messages as messages of the user and of the model. Consecutive pieces of one role are one message.
/// `write_part` returns false if the format has no such part.
pub(crate) fn write_turns<'a>(
    pieces: &[MessageParts<'a>],
    keys: TurnKeys,
    mut write_part: impl FnMut(&MessageParts<'a>, &Part<'a>, &mut String, &mut Vec<String>) -> bool,
    out: &mut String,
    warnings: &mut Vec<String>,
) {
    let role_of = |role: Role| if role == Role::Assistant { keys.assistant } else { "user" };
    let mut rest = pieces;
    while let [first, ..] = rest {
        let role = role_of(first.role);
        let len = rest.iter().take_while(|piece| role_of(piece.role) == role).count();
        if rest.len() < pieces.len() {
            out.push(',');
        }
        out.push_str(&format!(r#"{{"role":"{role}","{}":["#, keys.list));
        let start = out.len();
        for piece in &rest[..len] {
            if piece.role == Role::System {
                warnings.push("a system message is written as a message of the user".into());
            }
            for part in &piece.parts {
                json::push_item(start, out, |out| write_part(piece, part, out, warnings));
            }
        }
        out.push_str("]}");
        rest = &rest[len..];
    }
}

/// True if an object has a list under a key.
pub(crate) fn holds_list(object: &str, key: &str) -> bool {
    // Fast path: most objects do not contain the quoted key. In a text, the quotes would be escaped.
    let quoted = format!("\"{key}\"");
    memchr::memmem::find(object.as_bytes(), quoted.as_bytes()).is_some()
        && json::get(object, key).is_some_and(json::is_list)
}

/// State of the conversion of a list of messages, such as generated ids.
#[derive(Default)]
pub(crate) struct ReadState {
    /// Number of foreign messages before the current one.
    pub(crate) message_count: usize,
    /// Generated ids of calls without a result so far, by the name of the tool.
    calls: HashMap<String, VecDeque<String>>,
    /// The names of the tools of these calls, in order. May also contain names of calls with a result.
    call_names: VecDeque<String>,
    /// Fields of the current message that are preserved but not converted.
    warnings: Vec<FieldError>,
    /// True if a part of the current message is unreadable.
    has_unreadable_part: bool,
    /// Id of the newest reasoning item of the current turn of the model.
    pub(crate) reasoning: Option<String>,
    /// Id of the reasoning item that the current message belongs to.
    pub(crate) after: Option<String>,
    /// The instructions of the newest request that had some, escaped.
    pub(crate) instructions: Option<String>,
    /// Ids of the calls so far, for formats whose calls may be stored at the provider.
    pub(crate) call_ids: HashSet<String>,
    /// True if the current message is the result of a call that is not in the file.
    pub(crate) has_stored_call: bool,
}

impl ReadState {
    /// Reports a field of the current message that is preserved but not converted.
    pub(crate) fn warn(&mut self, field: impl Into<String>, reason: impl Into<String>) {
        self.warnings.push(FieldError::new(field, reason));
    }

    /// Reports a part of the current message that is unreadable. [`UNREADABLE_PART`] replaces it.
    pub(crate) fn unreadable_part(&mut self, path: &str, error: FieldError) {
        self.has_unreadable_part = true;
        let field = join(path, &error.field);
        let known = self.warnings.len();
        match known.cmp(&MAX_PART_WARNINGS) {
            Ordering::Less => self.warn(field, error.reason),
            Ordering::Equal => self.warn(field, "further parts of this message are unreadable too"),
            Ordering::Greater => {}
        }
    }

    /// Removes and returns the warnings about the current message.
    pub(crate) fn take_warnings(&mut self) -> Vec<FieldError> {
        self.has_unreadable_part = false;
        std::mem::take(&mut self.warnings)
    }

    /// Stores the generated id of a call until its result is read.
    pub(crate) fn add_call_id(&mut self, name: &str, id: String) {
        self.calls.entry(name.to_owned()).or_default().push_back(id);
        self.call_names.push_back(name.to_owned());
    }

    /// Removes and returns the id of the first call without a result.
    pub(crate) fn take_first_call_id(&mut self) -> Option<String> {
        while let Some(name) = self.call_names.pop_front() {
            if let Some(id) = self.take_call_id(&name) {
                return Some(id);
            }
        }
        None
    }

    /// Removes and returns the id of the first call of a tool without a result.
    pub(crate) fn take_call_id(&mut self, name: &str) -> Option<String> {
        self.calls.get_mut(name)?.pop_front()
    }
}

/// The names of called tools, by the ids of the calls. Some formats write them with the results.
#[derive(Default)]
pub(crate) struct CallNames<'a>(HashMap<Cow<'a, str>, Str<'a>>);

impl<'a> CallNames<'a> {
    /// Records the calls of a message.
    pub(crate) fn record(&mut self, message: &MessageParts<'a>) {
        for part in &message.parts {
            if let Part::ToolUse { id, name, .. } = *part {
                self.0.insert(id.text(), name);
            }
        }
    }

    /// Name of the tool of a call.
    pub(crate) fn of(&self, id: Str<'_>) -> Option<Str<'a>> {
        self.0.get(&*id.text()).copied()
    }
}

/// The draft of a Recto message.
#[derive(Clone)]
pub(crate) enum Draft {
    /// The foreign message is also a Recto message with the same meaning.
    Unchanged,
    /// The foreign message was converted.
    Converted {
        role: Role,
        /// The content: a JSON string or list of parts.
        content: String,
        /// Further fields, such as `,"name":"ada"`.
        fields: String,
        /// Provider whose model produced the message, escaped.
        provider: Option<String>,
        /// Model that produced the message, escaped.
        model: Option<String>,
    },
}

impl Draft {
    pub(crate) fn converted(role: Role, content: String) -> Draft {
        Draft::Converted { role, content, fields: String::new(), provider: None, model: None }
    }

    fn role(&self) -> Role {
        match self {
            Draft::Unchanged => Role::User, // not used: only a single draft can be unchanged
            Draft::Converted { role, .. } => *role,
        }
    }

    pub(crate) fn to_json(&self, foreign: &str, source: Source<'_>) -> String {
        self.to_json_at(None, foreign, source)
    }

    /// The JSON of the message, with a timestamp if it was converted.
    pub(crate) fn to_json_at(
        &self,
        time: Option<Timestamp>,
        foreign: &str,
        source: Source<'_>,
    ) -> String {
        match self {
            Draft::Unchanged => foreign.to_owned(),
            Draft::Converted { role, content, fields, provider, model } => {
                let source = Source {
                    provider: provider.as_deref().map(Str::escaped_text),
                    model: model.as_deref().map(Str::escaped_text),
                    ..source
                };
                let kept = source.original.map_or(0, str::len) + source.before.map_or(0, str::len);
                let mut out = String::with_capacity(content.len() + fields.len() + kept + 256);
                out.push_str("{\"role\":\"");
                out.push_str(role.as_str());
                out.push_str("\",\"content\":");
                out.push_str(content);
                out.push_str(fields);
                if let Some(time) = time {
                    out.push_str(",\"timestamp\":");
                    out.push_str(&time.to_string());
                }
                out.push_str(",\"metadata\":{\"source\":");
                source.write(&mut out);
                out.push_str("}}");
                out
            }
        }
    }
}

/// A field of a foreign message that cannot be converted. It becomes a
/// [`TranscriptWarning`] with the line of the message.
pub(crate) struct FieldError {
    /// Path of the field inside the message.
    pub(crate) field: String,
    /// What is wrong, and what is allowed.
    pub(crate) reason: String,
}

impl FieldError {
    /// The error for which the engine rejects a message.
    pub(crate) fn of(error: &recto_core::Error) -> FieldError {
        FieldError::new(error.field().unwrap_or_default(), error.root().to_string())
    }

    pub(crate) fn new(field: impl Into<String>, reason: impl Into<String>) -> FieldError {
        FieldError { field: field.into(), reason: reason.into() }
    }
}

/// The warning about a part of a type that the exported format does not have.
pub(crate) fn unsupported_part(kind: Str<'_>) -> String {
    format!("a part of type {} is not supported", kind.text())
}

/// Joins the path of an object and a field inside it.
fn join(path: &str, field: &str) -> String {
    match (path, field) {
        ("", field) => field.to_owned(),
        (path, "") => path.to_owned(),
        (path, field) => format!("{path}.{field}"),
    }
}
