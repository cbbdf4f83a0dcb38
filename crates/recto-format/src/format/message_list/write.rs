//! Export of formats that are lists of messages.

use std::borrow::Cow;
use std::io::Write;

use recto_core::{Message, Role};

use super::{CallNames, Draft, MessageCodec, ReadState};
use crate::export::{Container, ExportOptions};
use crate::format::Head;
use crate::import::TranscriptWarning;
use crate::json::{self, Str};
use crate::parts::{MessageParts, Part};
use crate::source::Layout;
use crate::{Error, Format};

/// Exports messages to a format that is a list of messages.
pub(super) fn export(
    codec: &dyn MessageCodec,
    messages: &mut dyn Iterator<Item = &Message>,
    options: &ExportOptions<'_>,
    file: &mut dyn Write,
) -> Result<Vec<TranscriptWarning>, Error> {
    let declaring = codec.declaring_envelope().filter(|_| options.container == Container::List);
    let mut all = Vec::new();
    if declaring.is_some() {
        all.extend(&mut *messages);
    }
    let declaring = declaring.filter(|_| !is_recognised_again(codec, &all));
    let mut messages = all.into_iter().chain(messages).map(MessageParts::of).peekable();
    let mut systems = Vec::new();
    if options.container != Container::Lines && codec.system_field().is_some() {
        while let Some(system) = messages.next_if(|message| is_in_system_field(codec, message)) {
            systems.push(system);
        }
    }
    let number = systems.len() as u64;
    // A message that was a text in place of the list is written as a text again if no other follows.
    let first = messages.next_if(|message| is_in_list_field(codec, message));
    let is_alone = messages.peek().is_none();
    let is_request = matches!(options.container, Container::Envelope(_));
    let (text, first) = match first {
        Some(first) if is_alone && is_request => (original(codec, &[first]), None),
        first => (None, first),
    };
    // A list with messages for the envelope's system field is written as a request.
    let request = format!("{{{}:null}}", json::string(codec.list_keys()[0]));
    let (envelope, between) = match options.container {
        Container::Envelope(envelope) => (Some(envelope), ","),
        Container::List if !systems.is_empty() => (Some(&*request), ",\n"),
        Container::List => (declaring, ",\n"),
        Container::Lines => (None, "\n"),
    };
    let (before, after) = match envelope {
        Some(envelope) => {
            let envelope = with_system(codec, envelope, &systems);
            let (before, after) = split_envelope(codec, &envelope)?;
            match &text {
                Some(text) => (format!("{before}{text}"), format!("{after}\n")),
                None => (format!("{before}["), format!("]{after}\n")),
            }
        }
        None if options.container == Container::Lines => (String::new(), "\n".to_owned()),
        None => ("[".to_owned(), "]\n".to_owned()),
    };
    file.write_all(before.as_bytes())?;
    let mut warnings = Vec::new();
    if systems.len() > 1 {
        warnings.push(TranscriptWarning::new(
            1,
            "",
            format!("{number} system messages are merged into one"),
        ));
    }
    let is_lines = options.container == Container::Lines;
    let mut writer = ListWriter { codec, between, is_lines, is_first: true, number };
    let mut group: Vec<MessageParts<'_>> = Vec::new();
    let mut names = CallNames::default();
    for message in first.into_iter().chain(messages) {
        if group.last().is_some_and(|last| !is_next(codec, last, &message)) {
            writer.group(&group, &names, file, &mut warnings)?;
            group.clear();
        }
        names.record(&message);
        group.push(message);
    }
    if !group.is_empty() {
        writer.group(&group, &names, file, &mut warnings)?;
    }
    file.write_all(after.as_bytes())?;
    Ok(warnings)
}

/// True if a list of messages, imported without naming its format, gives the same messages.
fn is_recognised_again(codec: &dyn MessageCodec, messages: &[&Message]) -> bool {
    let mut head = String::from("[");
    for message in messages {
        head.push_str(if head.len() > 1 { "," } else { "" });
        head.push_str(message.json());
        if head.len() as u64 > Head::MAX_BYTES {
            break;
        }
    }
    head.push(']');
    match Format::recognise(head.as_bytes()) {
        Ok(format) if format == codec.format() => true,
        Ok(format) => messages.iter().all(|message| {
            MessageParts::of(message).is_plain() && format.codec().is_unchanged(message.json())
        }),
        Err(_) => messages.is_empty(),
    }
}

/// True if a message belongs in the envelope's field for system messages: it came from there, or the list
/// cannot contain it.
fn is_in_system_field(codec: &dyn MessageCodec, message: &MessageParts<'_>) -> bool {
    let source = message.source.filter(|source| source.is_from(codec.format().name()));
    let is_listed = match source {
        Some(source) if source.field.is_some() => false,
        Some(source) => source.original.is_some() || (codec.lists_system() && !message.is_string),
        None => codec.lists_system(),
    };
    message.role == Role::System && !is_listed
}

/// True if a message is the text that takes the place of the list in a request.
fn is_in_list_field(codec: &dyn MessageCodec, message: &MessageParts<'_>) -> bool {
    let field = message.source.and_then(|source| source.field);
    field.is_some_and(|field| codec.list_keys().contains(&&*field.text()))
}

/// True if a message belongs to the same foreign message as the last one.
fn is_next(codec: &dyn MessageCodec, last: &MessageParts<'_>, message: &MessageParts<'_>) -> bool {
    if let (Some(before), Some(this)) = (last.source, message.source)
        && before.original_hash.is_some()
        && before.original_hash.map(Str::escaped) == this.original_hash.map(Str::escaped)
    {
        return this.piece == before.piece + 1;
    }
    let is_imported = |message: &MessageParts<'_>| {
        message.source.is_some_and(|source| source.is_from(codec.format().name()))
    };
    !is_imported(last) && !is_imported(message) && codec.joins(last, message)
}

/// The envelope with these system messages; unchanged if it already contains them.
fn with_system<'a>(
    codec: &dyn MessageCodec,
    envelope: &'a str,
    systems: &[MessageParts<'_>],
) -> Cow<'a, str> {
    let Some(field) = codec.system_field() else { return Cow::Borrowed(envelope) };
    let mut has_field = false;
    for (key, value) in json::fields(envelope) {
        let Some(Ok(drafts)) = codec.read_envelope(&key.text(), value) else { continue };
        has_field = true;
        if let ([Draft::Converted { content, .. }], [only]) = (&drafts[..], systems)
            && json::get(only.json, "content") == Some(content)
        {
            return Cow::Borrowed(envelope);
        }
    }
    if systems.is_empty() && !has_field {
        return Cow::Borrowed(envelope);
    }
    let mut out = String::from("{");
    let mut is_missing = !systems.is_empty();
    for (key, value) in json::fields(envelope) {
        let is_system = codec.read_envelope(&key.text(), value).is_some_and(|read| read.is_ok());
        let is_list = codec.list_keys().contains(&&*key.text());
        if is_missing && (is_system || is_list) {
            is_missing = false;
            comma(&mut out);
            json::push_string(field, &mut out);
            out.push(':');
            codec.write_system(systems, &mut out);
        }
        if !is_system {
            comma(&mut out);
            json::push_str(key, &mut out);
            out.push(':');
            out.push_str(value);
        }
    }
    out.push('}');
    Cow::Owned(out)
}

fn comma(out: &mut String) {
    if out.len() > 1 {
        out.push(',');
    }
}

/// The parts of an envelope before and after the list of messages.
fn split_envelope<'a>(
    codec: &dyn MessageCodec,
    envelope: &'a str,
) -> Result<(&'a str, &'a str), Error> {
    let list = json::fields(envelope).find_map(|(key, value)| {
        let is_list = codec.list_keys().contains(&&*key.text()) && value == "null";
        is_list.then(|| value.as_ptr().addr() - envelope.as_ptr().addr())
    });
    match list {
        Some(at) => Ok((&envelope[..at], &envelope[at + "null".len()..])),
        None => Err(Error::Malformed {
            format: Some(codec.format()),
            line: 1,
            field: codec.list_keys()[0].to_owned(),
            reason: "an envelope must have null in place of the messages".into(),
        }),
    }
}

struct ListWriter<'a> {
    codec: &'a dyn MessageCodec,
    between: &'a str,
    /// True if every message must be on one line.
    is_lines: bool,
    is_first: bool,
    number: u64,
}

impl ListWriter<'_> {
    fn group(
        &mut self,
        group: &[MessageParts<'_>],
        names: &CallNames<'_>,
        file: &mut dyn Write,
        warnings: &mut Vec<TranscriptWarning>,
    ) -> Result<(), Error> {
        let mut lost = Vec::new();
        let text = write_group(self.codec, group, names, &mut lost);
        let line = self.number + 1;
        self.number += group.len() as u64;
        let has_lost = !lost.is_empty();
        warnings.extend(lost.into_iter().map(|it| TranscriptWarning::new(line, "", it)));
        // One Recto message can become several foreign messages. Each is an item.
        for item in json::items(&format!("[{text}]")) {
            // A message that lost all its content is not valid in this format.
            if has_lost && self.codec.read(item, &mut ReadState::default()).is_err() {
                continue;
            }
            if !std::mem::replace(&mut self.is_first, false) {
                file.write_all(self.between.as_bytes())?;
            }
            match self.is_lines && item.contains('\n') {
                true => file.write_all(json::without_space(item).as_bytes())?,
                false => file.write_all(item.as_bytes())?,
            }
        }
        Ok(())
    }
}

/// Writes the pieces of a foreign message; the original bytes if all pieces are there.
fn write_group(
    codec: &dyn MessageCodec,
    read: &[MessageParts<'_>],
    names: &CallNames<'_>,
    warnings: &mut Vec<String>,
) -> String {
    let first = read[0].source.filter(|source| source.is_from(codec.format().name()));
    if let [only] = read
        && let Some(verbatim) = verbatim(codec, only)
    {
        return verbatim;
    }
    if let Some(source) = first
        && source.piece == 0
        && source.pieces == read.len()
        && let Some(original) = source.original
        && (codec.format() != Format::Recto || has_unreadable_part(&read[0]))
    {
        return original.to_owned();
    }
    let mut out = String::new();
    codec.write(read, names, &mut out, warnings);
    match first {
        Some(source) if source.layout == Layout::Spaced => json::spaced(&out),
        _ => out,
    }
}

/// The bytes of a foreign message of the codec's format, if these are all of its pieces. Import stored the
/// original wherever writing the pieces gives other bytes.
pub(super) fn original<'a>(
    codec: &dyn MessageCodec,
    pieces: &[MessageParts<'a>],
) -> Option<Cow<'a, str>> {
    let first = pieces[0].source.filter(|source| source.is_from(codec.format().name()))?;
    if first.piece != 0 || first.pieces != pieces.len() {
        return None;
    }
    if let Some(original) = first.original {
        return Some(Cow::Borrowed(original));
    }
    if let Some(verbatim) = verbatim(codec, &pieces[0]) {
        return Some(Cow::Owned(verbatim));
    }
    let mut out = String::new();
    match first.field {
        Some(_) => codec.write_system(pieces, &mut out),
        None => codec.write(pieces, &CallNames::default(), &mut out, &mut Vec::new()),
    }
    Some(Cow::Owned(match first.layout {
        Layout::Spaced => json::spaced(&out),
        _ => out,
    }))
}

/// The foreign message of a message with a verbatim source: the JSON of the message without its metadata.
fn verbatim(codec: &dyn MessageCodec, message: &MessageParts<'_>) -> Option<String> {
    let source = message.source.filter(|source| source.is_verbatim)?;
    let fields = message.json_without_metadata()?;
    source.is_from(codec.format().name()).then(|| format!("{fields}}}"))
}

/// True if a message has an unreadable part. Of Recto's own messages, only these are restored from their
/// original; all others are written as they are.
fn has_unreadable_part(message: &MessageParts<'_>) -> bool {
    message.parts.iter().any(|part| matches!(part, Part::Other { kind, .. } if kind.is("unread")))
}
