//! Messages as a list of foreign messages.

use std::borrow::Cow;
use std::io::Write;

use recto_core::{Message, Role};

use super::{CallNames, Draft, Memory, MessageForm};
use crate::export::{Container, ExportOptions};
use crate::format::Head;
use crate::import::Remark;
use crate::json::{self, Str};
use crate::parts::{MessageParts, Part};
use crate::source::Layout;
use crate::{Error, Format};

/// Exports messages to a format that is a list of messages.
pub(super) fn export(
    form: &dyn MessageForm,
    messages: &mut dyn Iterator<Item = &Message>,
    options: &ExportOptions<'_>,
    file: &mut dyn Write,
) -> Result<Vec<Remark>, Error> {
    let marked = form.marked().filter(|_| options.container == Container::List);
    let mut all = Vec::new();
    if marked.is_some() {
        all.extend(&mut *messages);
    }
    let marked = marked.filter(|_| !is_known_again(form, &all));
    let mut messages = all.into_iter().chain(messages).map(MessageParts::of).peekable();
    let mut systems = Vec::new();
    if options.container != Container::Lines && form.system_field().is_some() {
        while let Some(system) = messages.next_if(|message| stands_beside(form, message)) {
            systems.push(system);
        }
    }
    let number = systems.len() as u64;
    // A list has no room beside it: with something to say there it is a request.
    let request = format!("{{{}:null}}", json::string(form.list_keys()[0]));
    let (envelope, between) = match options.container {
        Container::Envelope(envelope) => (Some(envelope), ","),
        Container::List if !systems.is_empty() => (Some(&*request), ",\n"),
        Container::List => (marked, ",\n"),
        Container::Lines => (None, "\n"),
    };
    let (before, after) = match envelope {
        Some(envelope) => {
            let envelope = with_system(form, envelope, &systems);
            let (before, after) = split_envelope(form, &envelope)?;
            (format!("{before}["), format!("]{after}\n"))
        }
        None if options.container == Container::Lines => (String::new(), "\n".to_owned()),
        None => ("[".to_owned(), "]\n".to_owned()),
    };
    file.write_all(before.as_bytes())?;
    let mut remarks = Vec::new();
    if systems.len() > 1 {
        let message = format!("{number} system messages became one");
        remarks.push(Remark { line: 1, field: String::new(), message });
    }
    let is_lines = options.container == Container::Lines;
    let mut writer = ListWriter { form, between, is_lines, is_first: true, number };
    let mut group: Vec<MessageParts<'_>> = Vec::new();
    let mut names = CallNames::default();
    for message in messages {
        if group.last().is_some_and(|last| !is_next(form, last, &message)) {
            writer.group(&group, &names, file, &mut remarks)?;
            group.clear();
        }
        names.see(&message);
        group.push(message);
    }
    if !group.is_empty() {
        writer.group(&group, &names, file, &mut remarks)?;
    }
    file.write_all(after.as_bytes())?;
    Ok(remarks)
}

/// Whether a list of messages is read as it is when nobody says whose it is.
fn is_known_again(form: &dyn MessageForm, messages: &[&Message]) -> bool {
    let mut head = String::from("[");
    for message in messages {
        head.push_str(if head.len() > 1 { "," } else { "" });
        head.push_str(message.json());
        if head.len() as u64 > Head::MOST {
            break;
        }
    }
    head.push(']');
    match Format::recognise(head.as_bytes()) {
        Ok(format) if format == form.format() => true,
        Ok(format) => messages.iter().all(|message| format.codec().is_as_it_is(message.json())),
        Err(_) => messages.is_empty(),
    }
}

/// Whether a message belongs into the field for what the system says: it came from there, or the list
/// has no place for it.
fn stands_beside(form: &dyn MessageForm, message: &MessageParts<'_>) -> bool {
    let source = message.source.filter(|source| source.is_from(form.format().name()));
    let has_place = match source {
        Some(source) => source.original.is_some() || (form.lists_system() && !message.is_string),
        None => form.lists_system(),
    };
    message.role == Role::System && !has_place
}

/// Whether a message goes on with the foreign message that the last one is of.
fn is_next(form: &dyn MessageForm, last: &MessageParts<'_>, message: &MessageParts<'_>) -> bool {
    if let (Some(before), Some(this)) = (last.source, message.source)
        && before.of.is_some()
        && before.of.map(Str::escaped) == this.of.map(Str::escaped)
    {
        return this.piece == before.piece + 1;
    }
    let is_from_here = |message: &MessageParts<'_>| {
        message.source.is_some_and(|source| source.is_from(form.format().name()))
    };
    !is_from_here(last) && !is_from_here(message) && form.joins(last, message)
}

/// The envelope with these system messages in it: as it came if it holds them already.
fn with_system<'a>(
    form: &dyn MessageForm,
    envelope: &'a str,
    systems: &[MessageParts<'_>],
) -> Cow<'a, str> {
    let Some(field) = form.system_field() else { return Cow::Borrowed(envelope) };
    let mut has_field = false;
    for (key, value) in json::fields(envelope) {
        let Some(Ok(drafts)) = form.read_envelope(&key.text(), value) else { continue };
        has_field = true;
        if let ([Draft::Made { content, .. }], [only]) = (&drafts[..], systems)
            && json::get(only.json, "content") == Some(content)
        {
            return Cow::Borrowed(envelope);
        }
    }
    if systems.is_empty() && !has_field {
        return Cow::Borrowed(envelope);
    }
    let mut out = String::from("{");
    let mut waits = !systems.is_empty();
    for (key, value) in json::fields(envelope) {
        let is_system = form.read_envelope(&key.text(), value).is_some_and(|read| read.is_ok());
        let is_list = form.list_keys().contains(&&*key.text());
        if waits && (is_system || is_list) {
            waits = false;
            comma(&mut out);
            json::push_string(field, &mut out);
            out.push(':');
            form.write_system(systems, &mut out);
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

/// What stands in an envelope before and behind the list of messages.
fn split_envelope<'a>(
    form: &dyn MessageForm,
    envelope: &'a str,
) -> Result<(&'a str, &'a str), Error> {
    let list = json::fields(envelope).find_map(|(key, value)| {
        let is_list = form.list_keys().contains(&&*key.text()) && value == "null";
        is_list.then(|| value.as_ptr().addr() - envelope.as_ptr().addr())
    });
    match list {
        Some(at) => Ok((&envelope[..at], &envelope[at + "null".len()..])),
        None => Err(Error::Malformed {
            format: Some(form.format()),
            line: 1,
            field: form.list_keys()[0].to_owned(),
            reason: "an envelope has null where the messages go".into(),
        }),
    }
}

struct ListWriter<'a> {
    form: &'a dyn MessageForm,
    between: &'a str,
    /// Whether every message has to stay on its line.
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
        remarks: &mut Vec<Remark>,
    ) -> Result<(), Error> {
        let mut told = Vec::new();
        let text = write_group(self.form, group, names, &mut told);
        let line = self.number + 1;
        self.number += group.len() as u64;
        let field = String::new();
        let has_lost = !told.is_empty();
        remarks.extend(told.into_iter().map(|message| Remark {
            line,
            field: field.clone(),
            message,
        }));
        // One Recto message may be several foreign ones: each is an item.
        for item in json::items(&format!("[{text}]")) {
            // What lost all that it said is no message there.
            if has_lost && self.form.read(item, &mut Memory::default()).is_err() {
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

/// The pieces of a foreign message as that message: the original where all pieces are there.
fn write_group(
    form: &dyn MessageForm,
    read: &[MessageParts<'_>],
    names: &CallNames<'_>,
    remarks: &mut Vec<String>,
) -> String {
    let first = read[0].source.filter(|source| source.is_from(form.format().name()));
    if let Some(source) = first
        && source.piece == 0
        && source.pieces == read.len()
        && let Some(original) = source.original
        && (form.format() != Format::Recto || is_unread(&read[0]))
    {
        return original.to_owned();
    }
    let mut out = String::new();
    form.write(read, names, &mut out, remarks);
    match first {
        Some(source) if source.layout == Layout::Spaced => json::spaced(&out),
        _ => out,
    }
}

/// Whether something of a message could not be read. Of Recto's own messages only these have an
/// original: all others are what they say.
fn is_unread(message: &MessageParts<'_>) -> bool {
    message.parts.iter().any(|part| matches!(part, Part::Other { kind, .. } if kind.is("unread")))
}
