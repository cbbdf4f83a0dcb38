//! Formats that are lists of messages: what they have in common.
//!
//! A file is a list, an object that holds one (an API request), several of either one behind the
//! other (JSON lines), or a list of such objects. Each foreign message becomes one or more Recto
//! messages. Whether its original bytes have to be kept is found out by writing the made messages
//! again and comparing: only where they differ, `metadata.source.original` holds them.

mod unread;
mod write;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};
use std::io::Write;

use recto_core::{Insert, Limits, Message, Position, Role, Timestamp};

use super::{Codec, Head, Likelihood};
use crate::export::{ExportOptions, Extent};
use crate::import::{Input, Out, Remark, Start};
use crate::json::{self, Str};
use crate::parts::{MessageParts, Part};
use crate::source::{self, Layout, Source};
use crate::values::{Peeked, Values};
use crate::{Error, Format};

use unread::{MOST_TOLD, says_nothing_that_was_read, unread};
pub(crate) use unread::{UNREAD, readable};

/// How one message of a format is read and written.
pub(crate) trait MessageForm: Sync {
    /// The format.
    fn format(&self) -> Format;

    /// How much the start of a file looks like this format.
    fn recognise(&self, head: &Head) -> Likelihood;

    /// The keys under which an object holds the list of messages, such as `messages`.
    fn list_keys(&self) -> &'static [&'static str];

    /// Whether an object holds a list of messages and is none itself.
    fn is_envelope(&self, object: &str) -> bool {
        // What starts with its role is a message: one look is enough for most.
        let first = json::fields(object).next();
        first.is_some_and(|(key, _)| key.escaped() != "role")
            && self.list_keys().iter().any(|key| holds_list(object, key))
    }

    /// Reads one foreign message. `memory` is what is known from the messages before it.
    fn read(&self, foreign: &str, memory: &mut Memory) -> Result<Vec<Draft>, Misfit>;

    /// Reads what stands around the list and means messages, such as Anthropic's `system`: they come
    /// before the list's (by an INSERT, where they stand behind it).
    fn read_envelope(&self, _key: &str, _value: &str) -> Option<Result<Vec<Draft>, Misfit>> {
        None
    }

    /// The field beside the list that holds what [`read_envelope`](Self::read_envelope) makes a system
    /// message of.
    fn system_field(&self) -> Option<&'static str> {
        None
    }

    /// Whether the list itself may hold system messages too.
    fn lists_system(&self) -> bool {
        false
    }

    /// The envelope that says whose messages it holds, for lists that would be taken for others.
    fn marked(&self) -> Option<&'static str> {
        None
    }

    /// Writes the system messages in front of all others as the value of that field.
    fn write_system(&self, _messages: &[MessageParts<'_>], _out: &mut String) {}

    /// Whether a message that was not imported from this format belongs into the same foreign message
    /// as the last one of a group of such messages.
    fn joins(&self, _last: &MessageParts<'_>, _next: &MessageParts<'_>) -> bool {
        false
    }

    /// Writes messages that were one foreign message (or belong into one) as foreign messages,
    /// separated by commas. What has no place there is said in `remarks`.
    /// `names` are those of the calls that came before.
    fn write(
        &self,
        pieces: &[MessageParts<'_>],
        names: &CallNames<'_>,
        out: &mut String,
        remarks: &mut Vec<String>,
    );
}

impl<F: MessageForm> Codec for F {
    fn recognise(&self, head: &Head) -> Likelihood {
        MessageForm::recognise(self, head)
    }

    fn import(&self, input: &dyn Input, out: &mut Out<'_>) -> Result<(), Error> {
        import(self, input, out)
    }

    fn is_message(&self, key: &str, value: &str) -> bool {
        matches!(self.read_envelope(key, value), Some(Ok(_)))
    }

    fn is_as_it_is(&self, message: &str) -> bool {
        let read = self.read(message, &mut Memory::default());
        matches!(read.as_deref(), Ok([Draft::AsItIs]))
    }

    fn export(
        &self,
        messages: &mut dyn Iterator<Item = &Message>,
        _extent: Extent,
        options: &ExportOptions<'_>,
        file: &mut dyn Write,
    ) -> Result<Vec<Remark>, Error> {
        write::export(self, messages, options, file)
    }
}

/// Whether an object has a list under a key.
pub(crate) fn holds_list(object: &str, key: &str) -> bool {
    // A key stands in quotes that a text inside a message would escape.
    let quoted = format!("\"{key}\"");
    memchr::memmem::find(object.as_bytes(), quoted.as_bytes()).is_some()
        && json::get(object, key).is_some_and(json::is_list)
}

/// What a format remembers from one message to the next, such as the ids it had to make up.
#[derive(Default)]
pub(crate) struct Memory {
    /// How many foreign messages came before.
    pub(crate) count: usize,
    /// The made-up ids of calls that wait for their results, by the name of the tool.
    calls: HashMap<String, VecDeque<String>>,
    /// What of the message that is being read is kept, but not said.
    remarks: Vec<Misfit>,
    /// Whether a part of it could not be read.
    is_unread: bool,
}

impl Memory {
    /// Something of the message that is being read is kept, but not said.
    pub(crate) fn remark(&mut self, field: impl Into<String>, reason: impl Into<String>) {
        self.remarks.push(Misfit::new(field, reason));
    }

    /// A part of the message that is being read cannot be read: [`UNREAD`] stands for it.
    pub(crate) fn unread(&mut self, place: &str, misfit: Misfit) {
        self.is_unread = true;
        let field = join(place, &misfit.field);
        let known = self.remarks.len();
        match known.cmp(&MOST_TOLD) {
            Ordering::Less => self.remark(field, misfit.reason),
            Ordering::Equal => self.remark(field, "so are further parts of this message"),
            Ordering::Greater => {}
        }
    }

    /// A call waits for its result.
    pub(crate) fn call(&mut self, name: &str, id: String) {
        self.calls.entry(name.to_owned()).or_default().push_back(id);
    }

    /// The first call of a tool that waits: it does no more.
    pub(crate) fn answer(&mut self, name: &str) -> Option<String> {
        self.calls.get_mut(name)?.pop_front()
    }
}

/// The names of the tools that were called, by the ids of the calls: some formats name them with the
/// results.
#[derive(Default)]
pub(crate) struct CallNames<'a>(HashMap<Cow<'a, str>, Str<'a>>);

impl<'a> CallNames<'a> {
    /// Notes the calls of a message.
    pub(crate) fn see(&mut self, message: &MessageParts<'a>) {
        for part in &message.parts {
            if let Part::ToolUse { id, name, .. } = *part {
                self.0.insert(id.text(), name);
            }
        }
    }

    /// The tool that this call is of.
    pub(crate) fn of(&self, id: Str<'_>) -> Option<Str<'a>> {
        self.0.get(&*id.text()).copied()
    }
}

/// A Recto message in the making.
#[derive(Clone)]
pub(crate) enum Draft {
    /// The foreign message is a Recto message with the same meaning.
    AsItIs,
    /// It is made.
    Made {
        role: Role,
        /// The content: a JSON string or list of parts.
        content: String,
        /// More fields, such as `,"name":"ada"`.
        fields: String,
        /// Whose model wrote it, as JSON strings stand between quotes.
        provider: Option<String>,
        /// Which model wrote it.
        model: Option<String>,
    },
}

impl Draft {
    pub(crate) fn made(role: Role, content: String) -> Draft {
        Draft::Made { role, content, fields: String::new(), provider: None, model: None }
    }

    fn role(&self) -> Role {
        match self {
            Draft::AsItIs => Role::User, // only a message alone can be as it is
            Draft::Made { role, .. } => *role,
        }
    }

    pub(crate) fn to_json(&self, foreign: &str, source: Source<'_>) -> String {
        self.to_json_at(None, foreign, source)
    }

    /// With the time that it was written at, if it is made.
    pub(crate) fn to_json_at(
        &self,
        time: Option<Timestamp>,
        foreign: &str,
        source: Source<'_>,
    ) -> String {
        match self {
            Draft::AsItIs => foreign.to_owned(),
            Draft::Made { role, content, fields, provider, model } => {
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

/// Why a foreign message cannot be said in Recto's form.
pub(crate) struct Misfit {
    /// The field, seen from the message.
    pub(crate) field: String,
    /// What is wrong and what would be right.
    pub(crate) reason: String,
}

impl Misfit {
    /// Why the engine refuses a message.
    pub(crate) fn of(error: &recto_core::Error) -> Misfit {
        Misfit::new(error.field().unwrap_or_default(), error.root().to_string())
    }

    pub(crate) fn new(field: impl Into<String>, reason: impl Into<String>) -> Misfit {
        Misfit { field: field.into(), reason: reason.into() }
    }
}

/// Imports a file of a format that is a list of messages.
pub(crate) fn import(
    form: &dyn MessageForm,
    input: &dyn Input,
    out: &mut Out<'_>,
) -> Result<(), Error> {
    let limit = out.options.limits.message_bytes;
    let mut values = Values::new(input.open()?, limit);
    let mut reader =
        Reader { form, memory: Memory::default(), is_list_open: false, is_lines: false };
    let mut has_read_some = false;
    while let Some(byte) = values.peek_byte()? {
        match byte {
            b'[' => {
                (reader.is_list_open, reader.is_lines) = (false, false);
                if reader.list(&mut values, "", out)? == 0 && !has_read_some {
                    reader.open(out)?; // a conversation in which nothing was said
                }
                reader.is_list_open = false;
            }
            _ => {
                reader.is_lines = true;
                reader.object(&mut values, "", has_read_some, out)?;
            }
        }
        has_read_some = true;
        out.progress(values.bytes_taken());
    }
    Ok(())
}

struct Reader<'a> {
    form: &'a dyn MessageForm,
    memory: Memory,
    /// Whether the messages that come belong to the conversation that is open.
    is_list_open: bool,
    /// Whether they stand one behind the other, in no list.
    is_lines: bool,
}

impl Reader<'_> {
    /// The items of a list: messages, or objects that hold a list each. Answers how many there are.
    fn list(
        &mut self,
        values: &mut Values<'_>,
        path: &str,
        out: &mut Out<'_>,
    ) -> Result<usize, Error> {
        let mut number = 0;
        values.each_item(|values| {
            let place = format!("{path}[{number}]");
            number += 1;
            match values.peek_byte()? {
                // A list of conversations. Nothing is deeper: its conversations are lists of objects.
                Some(b'[') if path.contains('[') => {
                    return Err(values.malformed("a message is an object, not a list"));
                }
                Some(b'[') => {
                    self.is_list_open = false;
                    self.list(values, &place, out)?;
                    self.is_list_open = false;
                }
                _ => self.object(values, &place, false, out)?,
            }
            out.progress(values.bytes_taken());
            Ok(())
        })?;
        Ok(number)
    }

    /// An object that is a message, or holds a list of messages. `is_line`: if it is broken, the next
    /// line can be read all the same.
    fn object(
        &mut self,
        values: &mut Values<'_>,
        path: &str,
        is_line: bool,
        out: &mut Out<'_>,
    ) -> Result<(), Error> {
        match values.peek_value()? {
            Peeked::Whole { len, depth } => {
                let text = values.peeked(len);
                if self.form.is_envelope(text) {
                    return self.envelope(values, path, out);
                }
                let foreign = Foreign { text, depth, line: values.line(), path };
                self.message(&foreign, out)?;
                values.take(len);
                Ok(())
            }
            Peeked::TooLarge => self.envelope(values, path, out),
            Peeked::Broken(reason) if is_line => {
                out.remark(values.line(), path, format!("left out: {reason}"));
                values.skip_line()
            }
            Peeked::Broken(reason) => Err(values.malformed(&reason)),
        }
    }

    /// An object that holds a list of messages among other fields.
    fn envelope(
        &mut self,
        values: &mut Values<'_>,
        path: &str,
        out: &mut Out<'_>,
    ) -> Result<(), Error> {
        if values.peek_byte()? != Some(b'{') {
            return Err(values.too_large());
        }
        (self.is_list_open, self.is_lines) = (false, false);
        let mut envelope = String::from("{");
        let mut has_list = false;
        let form = self.form;
        values.each_field(|values, key| {
            if envelope.len() > 1 {
                envelope.push(',');
            }
            json::push_string(key, &mut envelope);
            envelope.push(':');
            let is_list = form.list_keys().contains(&key) && values.peek_byte()? == Some(b'[');
            if is_list && !has_list {
                has_list = true;
                envelope.push_str("null");
                self.open(out)?;
                let place = join(path, key);
                return self.list(values, &place, out).map(drop);
            }
            let line = values.line();
            let value = values.value()?;
            envelope.push_str(value);
            match form.read_envelope(key, value) {
                None => {}
                Some(Err(misfit)) => out.remark(line, &join(path, &misfit.field), misfit.reason),
                Some(Ok(drafts)) if drafts.is_empty() => {}
                Some(Ok(drafts)) => {
                    let messages = made_of_field(form, drafts)?;
                    if has_list {
                        let count = messages.len();
                        out.apply(Insert { position: Position(0), messages }, count)?;
                    } else {
                        self.open(out)?;
                        messages.into_iter().try_for_each(|message| out.message(message))?;
                    }
                }
            }
            Ok(())
        })?;
        self.is_list_open = false;
        if !has_list {
            out.remark(values.line(), path, "an object without messages was left out");
        }
        envelope.push('}');
        out.envelope(envelope)
    }

    /// A conversation starts, if none is open.
    fn open(&mut self, out: &mut Out<'_>) -> Result<(), Error> {
        if std::mem::replace(&mut self.is_list_open, true) {
            return Ok(());
        }
        self.memory = Memory::default();
        out.start(Start { is_lines: self.is_lines, ..Start::default() })
    }

    fn message(&mut self, foreign: &Foreign<'_>, out: &mut Out<'_>) -> Result<(), Error> {
        self.open(out)?;
        for message in self.convert(foreign, out)? {
            out.message(message)?;
        }
        Ok(())
    }

    fn convert(&mut self, foreign: &Foreign<'_>, out: &mut Out<'_>) -> Result<Vec<Message>, Error> {
        let Foreign { text: foreign, depth, line, path } = *foreign;
        let limit = out.options.limits.depth;
        if depth > limit {
            return Err(Error::TooLarge {
                line,
                what: "the depth of the JSON",
                size: depth as u64,
                limit: limit as u64,
            });
        }
        let drafts = self.form.read(foreign, &mut self.memory);
        self.memory.count += 1;
        let is_unread = std::mem::take(&mut self.memory.is_unread);
        for told in self.memory.remarks.drain(..) {
            out.remark(line, &join(path, &told.field), told.reason);
        }
        let misfit = match drafts {
            Ok(drafts) => match finish(self.form, foreign, &drafts) {
                Ok(messages) if !is_unread => return Ok(messages),
                Ok(messages) => {
                    if messages.iter().all(says_nothing_that_was_read) {
                        out.count_unread();
                    }
                    return Ok(messages);
                }
                Err(error) => match readable(&drafts, foreign) {
                    Some((drafts, misfits)) => {
                        for Misfit { field, reason } in misfits {
                            out.remark(line, &join(path, &field), reason);
                        }
                        return Ok(finish(self.form, foreign, &drafts)?);
                    }
                    None => Misfit::of(&error),
                },
            },
            Err(misfit) => misfit,
        };
        out.remark(line, &join(path, &misfit.field), misfit.reason);
        out.count_unread();
        Ok(vec![unread(self.form, foreign)?])
    }
}

/// A foreign message, and where it stands.
struct Foreign<'a> {
    text: &'a str,
    depth: usize,
    line: u64,
    path: &'a str,
}

fn join(path: &str, field: &str) -> String {
    match (path, field) {
        ("", field) => field.to_owned(),
        (path, "") => path.to_owned(),
        (path, field) => format!("{path}.{field}"),
    }
}

/// What is made of a foreign message is larger than it: limits are for what comes from outside. It
/// consists of values that were checked when they were taken off the stream.
fn made(json: &str) -> Result<Message, recto_core::Error> {
    Message::from_checked_json(json, &Limits::NONE)
}

/// Makes the messages, with the original bytes where writing them again would give others.
fn finish(
    form: &dyn MessageForm,
    foreign: &str,
    drafts: &[Draft],
) -> Result<Vec<Message>, recto_core::Error> {
    if let [Draft::AsItIs] = drafts {
        return Ok(vec![made(foreign)?]);
    }
    let pieces = drafts.len();
    let of = if pieces > 1 { source::hash(foreign) } else { String::new() };
    let plain = Source {
        format: Some(Str::plain(form.format().name())),
        of: (pieces > 1).then(|| Str::plain(&of)),
        pieces,
        ..Source::default()
    };
    let roles: Vec<Role> = drafts.iter().map(Draft::role).collect();
    let mut jsons: Vec<String> = drafts
        .iter()
        .enumerate()
        .map(|(piece, draft)| draft.to_json(foreign, Source { piece, ..plain }))
        .collect();

    let read: Vec<MessageParts<'_>> =
        roles.iter().zip(&jsons).map(|(&role, json)| MessageParts::of_json(role, json)).collect();
    let mut written = String::with_capacity(foreign.len());
    form.write(&read, &CallNames::default(), &mut written, &mut Vec::new());
    let found = read[0].source.unwrap_or(plain);
    let first = if written == foreign {
        None
    } else if json::spaced(&written) == foreign {
        Some(with_source(&jsons[0], Source { layout: Layout::Spaced, ..found }))
    } else {
        Some(with_source(&jsons[0], Source { original: Some(foreign), ..found }))
    };
    if let Some(first) = first {
        jsons[0] = first;
    }
    jsons.iter().map(|json| made(json)).collect()
}

/// The JSON of a made message with another source: it is its last field.
fn with_source(json: &str, source: Source<'_>) -> String {
    let mark = ",\"metadata\":{\"source\":";
    let end = json.rfind(mark).unwrap_or(json.len());
    let mut out = json[..end].to_owned();
    out.push_str(mark);
    source.write(&mut out);
    out.push_str("}}");
    out
}

/// Messages from a field beside the list: the envelope keeps their bytes.
fn made_of_field(
    form: &dyn MessageForm,
    drafts: Vec<Draft>,
) -> Result<Vec<Message>, recto_core::Error> {
    let format = Some(Str::plain(form.format().name()));
    let source = Source { format, pieces: 1, ..Source::default() };
    drafts.into_iter().map(|draft| made(&draft.to_json("", source))).collect()
}
