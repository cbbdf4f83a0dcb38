//! Import of formats that are lists of messages.

use recto_core::{Insert, Limits, Message, Position, Role};

use super::unreadable::{is_unreadable, unreadable_message};
use super::{
    CallNames, Draft, FieldError, MessageCodec, ReadState, join, without_unreadable_parts,
};
use crate::import::{Collected, ImportOptions, Input, Start};
use crate::json::{self, Str};
use crate::parts::MessageParts;
use crate::source::{self, Layout, Source};
use crate::step_writer::StepWriter;
use crate::values::{Peeked, Values};
use crate::{Error, Format};

/// Imports a file of a format that is a list of messages.
pub(super) fn import(
    codec: &dyn MessageCodec,
    input: &dyn Input,
    out: &mut StepWriter<'_>,
) -> Result<(), Error> {
    let limit = out.options.limits.message_bytes;
    let mut values = Values::new(input.open()?, limit);
    let mut reader = Reader::new(codec, ReadState::default());
    let mut has_read_some = false;
    while let Some(byte) = values.peek_byte()? {
        match byte {
            b'[' => {
                (reader.is_list_open, reader.is_lines) = (false, false);
                if reader.list(&mut values, "", out)? == 0 && !has_read_some {
                    reader.open(out)?; // a conversation without messages
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
    let loses_space = values.has_other_space() || reader.has_broken_line;
    if loses_space && out.log_len() > 0 && !out.options.ignores_white_space {
        let message = "not kept: white space other than one line break between the messages";
        out.warn(0, "around the messages", message);
    }
    Ok(())
}

/// The messages of each foreign message. One that cannot be read becomes a message that keeps its bytes.
pub(super) fn convert_all(
    codec: &dyn MessageCodec,
    messages: &[&str],
) -> Result<Vec<Vec<Message>>, Error> {
    let options = ImportOptions::default();
    let mut warnings = Collected::default();
    let mut out = StepWriter::new(&options, &mut warnings);
    let mut reader = Reader { is_list_open: true, ..Reader::new(codec, ReadState::default()) };
    let convert = |(number, text): (usize, &&str)| {
        let path = format!("[{number}]");
        let foreign = Foreign { text, depth: recto_core::json::depth(text), line: 1, path: &path };
        reader.convert(&foreign, &mut out)
    };
    let converted = messages.iter().enumerate().map(convert).collect::<Result<_, _>>()?;
    out.check_roles()?;
    Ok(converted)
}

/// The messages of one foreign message. `state` is the state of the conversion after the messages before it.
pub(super) fn convert_alone(
    codec: &dyn MessageCodec,
    foreign: &str,
    state: ReadState,
) -> Result<Vec<Message>, Error> {
    let options = ImportOptions::default();
    let mut warnings = Collected::default();
    let mut out = StepWriter::new(&options, &mut warnings);
    let mut reader = Reader { is_list_open: true, ..Reader::new(codec, state) };
    // Its depth was checked when it was read.
    reader.convert(&Foreign { text: foreign, depth: 0, line: 1, path: "" }, &mut out)
}

struct Reader<'a> {
    codec: &'a dyn MessageCodec,
    state: ReadState,
    /// True if the next message belongs to the conversation that was started last.
    is_list_open: bool,
    /// True if the messages are JSON lines, not items of a list.
    is_lines: bool,
    /// True if a message of JSON lines has line breaks, which export removes.
    has_broken_line: bool,
}

impl<'a> Reader<'a> {
    fn new(codec: &'a dyn MessageCodec, state: ReadState) -> Reader<'a> {
        Reader { codec, state, is_list_open: false, is_lines: false, has_broken_line: false }
    }

    /// Reads the items of a list: messages, or objects that contain a list each. Returns their number.
    fn list(
        &mut self,
        values: &mut Values<'_>,
        path: &str,
        out: &mut StepWriter<'_>,
    ) -> Result<usize, Error> {
        let mut number = 0;
        values.each_item(|values| {
            let item_path = format!("{path}[{number}]");
            number += 1;
            match values.peek_byte()? {
                // A list of lists is a list of conversations. Deeper lists are not allowed.
                Some(b'[') if path.contains('[') => {
                    return Err(values.malformed("a message is an object, not a list"));
                }
                Some(b'[') => {
                    self.is_list_open = false;
                    self.list(values, &item_path, out)?;
                    self.is_list_open = false;
                }
                _ => self.object(values, &item_path, false, out)?,
            }
            out.progress(values.bytes_taken());
            Ok(())
        })?;
        Ok(number)
    }

    /// Reads an object: a message, or an envelope. If `is_line` is set, a broken object is skipped with
    /// the rest of its line.
    fn object(
        &mut self,
        values: &mut Values<'_>,
        path: &str,
        is_line: bool,
        out: &mut StepWriter<'_>,
    ) -> Result<(), Error> {
        match values.peek_value()? {
            Peeked::Whole { len, depth } => {
                let text = values.peeked(len);
                if self.codec.is_envelope(text) {
                    return self.envelope(values, path, out);
                }
                self.has_broken_line |= self.is_lines && text.contains('\n');
                let foreign = Foreign { text, depth, line: values.line(), path };
                self.message(&foreign, out)?;
                values.take(len);
                Ok(())
            }
            Peeked::TooLarge => self.envelope(values, path, out),
            Peeked::Broken(reason) if is_line => {
                out.warn(values.line(), path, format!("skipped: {reason}"));
                values.skip_line()
            }
            Peeked::Broken(reason) => Err(values.malformed(&reason)),
        }
    }

    /// Reads a message that an envelope contains in place of the list.
    fn single(
        &mut self,
        values: &mut Values<'_>,
        path: &str,
        out: &mut StepWriter<'_>,
    ) -> Result<(), Error> {
        match values.peek_value()? {
            Peeked::Whole { len, depth } => {
                let foreign =
                    Foreign { text: values.peeked(len), depth, line: values.line(), path };
                self.message(&foreign, out)?;
                values.take(len);
                Ok(())
            }
            Peeked::TooLarge => Err(values.too_large()),
            Peeked::Broken(reason) => Err(values.malformed(&reason)),
        }
    }

    /// Reads an envelope: an object that contains a list of messages among other fields.
    fn envelope(
        &mut self,
        values: &mut Values<'_>,
        path: &str,
        out: &mut StepWriter<'_>,
    ) -> Result<(), Error> {
        if values.peek_byte()? != Some(b'{') {
            return Err(values.too_large());
        }
        (self.is_list_open, self.is_lines) = (false, false);
        let mut envelope = String::from("{");
        let mut has_list = false;
        let codec = self.codec;
        values.each_field(|values, key| {
            if envelope.len() > 1 {
                envelope.push(',');
            }
            json::push_string(key, &mut envelope);
            envelope.push(':');
            let byte = values.peek_byte()?.filter(|_| codec.list_keys().contains(&key));
            let is_single = byte == Some(b'{') && codec.takes_single_message();
            if (byte == Some(b'[') || is_single) && !has_list {
                has_list = true;
                envelope.push_str("null");
                self.open(out)?;
                let list_path = join(path, key);
                return match is_single {
                    true => self.single(values, &list_path, out),
                    false => self.list(values, &list_path, out).map(drop),
                };
            }
            let line = values.line();
            let value = values.value()?;
            // A single text in the place of the list.
            let is_text = codec.list_keys().contains(&key) && !has_list && Str::of(value).is_some();
            has_list |= is_text;
            envelope.push_str(if is_text { "null" } else { value });
            match codec.read_envelope(key, value) {
                None => {}
                Some(Err(error)) => out.warn(line, &join(path, &error.field), error.reason),
                Some(Ok(drafts)) if drafts.is_empty() => {}
                Some(Ok(drafts)) => {
                    let messages = messages_of_field(codec, key, value, drafts)?;
                    if has_list && !is_text {
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
            out.warn(values.line(), path, "skipped: an object without messages");
        }
        envelope.push('}');
        out.envelope(envelope)
    }

    /// Starts a conversation, unless one is open.
    fn open(&mut self, out: &mut StepWriter<'_>) -> Result<(), Error> {
        if std::mem::replace(&mut self.is_list_open, true) {
            return Ok(());
        }
        self.state = ReadState::default();
        out.start(Start { is_json_lines: self.is_lines, ..Start::default() })
    }

    fn message(&mut self, foreign: &Foreign<'_>, out: &mut StepWriter<'_>) -> Result<(), Error> {
        self.open(out)?;
        for message in self.convert(foreign, out)? {
            out.message(message)?;
        }
        Ok(())
    }

    fn convert(
        &mut self,
        foreign: &Foreign<'_>,
        out: &mut StepWriter<'_>,
    ) -> Result<Vec<Message>, Error> {
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
        let drafts = self.codec.read(foreign, &mut self.state);
        self.state.message_count += 1;
        let has_unreadable_part = std::mem::take(&mut self.state.has_unreadable_part);
        let after = self.state.after.take().map(|id| json::string(&id));
        let origin = Source {
            after: after.as_deref().and_then(Str::of),
            has_stored_call: std::mem::take(&mut self.state.has_stored_call),
            ..Source::default()
        };
        for warning in self.state.warnings.drain(..) {
            out.warn(line, &join(path, &warning.field), warning.reason);
        }
        let error = match drafts {
            Ok(drafts) => match finish(self.codec, foreign, &drafts, origin) {
                Ok(messages) if !has_unreadable_part => return Ok(messages),
                Ok(messages) => {
                    if messages.iter().all(is_unreadable) {
                        out.count_unreadable();
                    }
                    return Ok(messages);
                }
                Err(error) => match without_unreadable_parts(&drafts, foreign) {
                    Some((drafts, errors)) => {
                        for FieldError { field, reason } in errors {
                            out.warn(line, &join(path, &field), reason);
                        }
                        return Ok(finish(self.codec, foreign, &drafts, origin)?);
                    }
                    None => FieldError::of(&error),
                },
            },
            Err(error) => error,
        };
        let field = join(path, &error.field);
        let role_field = self.codec.role_field();
        if error.field == role_field
            && let Some(role) = json::get_str(foreign, role_field).map(Str::text)
        {
            let mut reason = error.reason.clone();
            let names_it = reason.contains('"') || reason.contains(&*role);
            if !names_it {
                reason = format!("{reason}, not {role:?}");
            }
            out.unknown_role(Error::Malformed { format: None, line, field: field.clone(), reason });
        }
        out.warn(line, &field, error.reason);
        out.count_unreadable();
        Ok(vec![unreadable_message(self.codec, foreign)?])
    }
}

/// A foreign message and its location in the file.
struct Foreign<'a> {
    text: &'a str,
    depth: usize,
    line: u64,
    path: &'a str,
}

/// Parses a converted message. Its values were validated when they were read. It may be larger than the
/// foreign message, so no limits apply: limits are for input.
pub(super) fn parse_converted(json: &str) -> Result<Message, recto_core::Error> {
    Message::from_checked_json(json, &Limits::NONE)
}

/// Creates the messages. If writing them again would give other bytes, the first one records the layout that
/// restores the original bytes, or the original bytes themselves.
fn finish(
    codec: &dyn MessageCodec,
    foreign: &str,
    drafts: &[Draft],
    origin: Source<'_>,
) -> Result<Vec<Message>, recto_core::Error> {
    if let [Draft::Unchanged] = drafts {
        return Ok(vec![unchanged(codec, foreign)?]);
    }
    let pieces = drafts.len();
    let hash = if pieces > 1 { source::hash(foreign) } else { String::new() };
    let plain = Source {
        format: Some(Str::plain(codec.format().name())),
        original_hash: (pieces > 1).then(|| Str::plain(&hash)),
        pieces,
        ..origin
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
    codec.write(&read, &CallNames::default(), &mut written, &mut Vec::new());
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
    jsons.iter().map(|json| parse_converted(json)).collect()
}

/// A foreign message that is also a Recto message. If it has more than plain texts, its source records
/// the format.
fn unchanged(codec: &dyn MessageCodec, foreign: &str) -> Result<Message, recto_core::Error> {
    let message = parse_converted(foreign)?;
    let parts = MessageParts::of(&message);
    if codec.format() == Format::Recto || parts.is_plain() || parts.source.is_some() {
        return Ok(message);
    }
    let Some(fields) = foreign.trim_end().strip_suffix('}') else { return Ok(message) };
    let mut json = String::with_capacity(foreign.len() + 80);
    json.push_str(fields);
    json.push_str(SOURCE);
    Source {
        format: Some(Str::plain(codec.format().name())),
        is_verbatim: true,
        pieces: 1,
        ..Source::default()
    }
    .write(&mut json);
    json.push_str("}}");
    parse_converted(&json)
}

/// The start of the last field of a converted message.
const SOURCE: &str = ",\"metadata\":{\"source\":";

/// The JSON of a converted message with another source. The source is always its last field.
fn with_source(json: &str, source: Source<'_>) -> String {
    let end = json.rfind(SOURCE).unwrap_or(json.len());
    let mut out = json[..end].to_owned();
    out.push_str(SOURCE);
    source.write(&mut out);
    out.push_str("}}");
    out
}

/// The messages of a field of the envelope, with the field's value if writing the message again would
/// give another one.
fn messages_of_field(
    codec: &dyn MessageCodec,
    field: &str,
    value: &str,
    drafts: Vec<Draft>,
) -> Result<Vec<Message>, recto_core::Error> {
    let name = json::string(field);
    let plain = Source {
        format: Some(Str::plain(codec.format().name())),
        field: Str::of(&name),
        pieces: 1,
        ..Source::default()
    };
    let message = |draft: Draft| {
        let json = draft.to_json("", plain);
        let read = MessageParts::of_json(draft.role(), &json);
        let mut written = String::with_capacity(value.len());
        codec.write_system(std::slice::from_ref(&read), &mut written);
        match written == value {
            true => parse_converted(&json),
            false => {
                let source = Source { original: Some(value), ..plain };
                parse_converted(&with_source(&json, source))
            }
        }
    };
    drafts.into_iter().map(message).collect()
}
