//! Export: writes messages in any format.
//!
//! A message that was imported from the same format is written with its original bytes. Any other
//! message is built from its parts. Export repairs nothing: a file may contain what no provider
//! accepts. To send a view to a provider, [`render`](crate::render) it.
//!
//! [`export`] writes a view: importing the file gives the same visible messages. Session lines that
//! change earlier lines, such as a rewind or a compaction, are omitted where they would hide a visible
//! message. [`export_log`] writes a whole log (`conversation.log().iter()`): all lines of a session,
//! with its rewinds and compactions, byte for byte. Each fork is a separate file. White space between the
//! messages of a list, or between lines, is not preserved. White space between the records of a session
//! that is a JSON document is preserved if it is the same everywhere.

use std::collections::HashMap;
use std::io::Write;

use recto_core::{Message, Timestamp};

use crate::flat::flat_message;
use crate::import::TranscriptWarning;
use crate::json;
use crate::parts::MessageParts;
use crate::{Error, Format};

/// The JSON around the messages of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Container<'a> {
    /// A JSON list, one message per line. If the messages start with a system message, and the format
    /// has system messages only beside the list, the file is an object with both:
    /// `{"system":"…","messages":[…]}`. If a list of Recto's own messages would be read as another format,
    /// the file is `{"format":"recto","messages":[…]}`.
    #[default]
    List,
    /// JSON lines: one message per line and nothing else.
    Lines,
    /// The envelope of an imported file ([`Step::Envelope`](crate::Step::Envelope)): an object with
    /// `null` in place of the messages, or a JSON list of the last lines of a session.
    Envelope(&'a str),
}

/// Options of [`export`]. Fields may be added: write `..ExportOptions::default()`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExportOptions<'a> {
    /// The JSON around the messages. For sessions, [`List`](Container::List) and [`Lines`](Container::Lines)
    /// are equal: a session is JSON lines, or a document if its format or its imported file is one.
    pub container: Container<'a>,
    /// Time of each message, in order. Formats with times use it for messages without a timestamp of
    /// their own. The list may be shorter than the messages; an unknown time is omitted from the file.
    pub times: &'a [Timestamp],
}

impl ExportOptions<'_> {
    /// Time of a message; `number` is its index among the exported messages.
    pub(crate) fn time_of(&self, message: &MessageParts<'_>, number: usize) -> Option<Timestamp> {
        let own = json::get(message.json, "timestamp").and_then(|time| time.parse().ok());
        own.or_else(|| self.times.get(number).copied())
    }
}

/// Which messages of a conversation are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The messages of a view.
    View,
    /// All messages of a log.
    Log,
}

/// Writes the messages of a view in a format. Returns a warning for content that the format cannot
/// represent; its line is the number of the message, from 1.
///
/// ```
/// use recto_core::Message;
/// use recto_format::{ExportOptions, Format, export};
///
/// let messages = [
///     Message::tool_call("c1", "search", &serde_json::json!({"to": "LIS"})),
///     Message::tool_result("c1", "TP 571"),
/// ];
/// let mut file = Vec::new();
/// export(&messages, Format::OpenAiChat, &ExportOptions::default(), &mut file)?;
/// assert_eq!(
///     String::from_utf8(file).unwrap(),
///     r#"[{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"search","arguments":"{\"to\":\"LIS\"}"}}]},
/// {"role":"tool","tool_call_id":"c1","content":"TP 571"}]
/// "#
/// );
/// # Ok::<(), recto_format::Error>(())
/// ```
pub fn export<'m>(
    messages: impl IntoIterator<Item = &'m Message>,
    format: Format,
    options: &ExportOptions<'_>,
    file: &mut dyn Write,
) -> Result<Vec<TranscriptWarning>, Error> {
    write(messages, format, Extent::View, options, file)
}

/// Writes all messages of a log in a format, as [`export`] writes those of a view. A session is written
/// with its rewinds and compactions, so importing it gives the same view.
///
/// ```
/// use recto_core::Settings;
/// use recto_format::{ExportOptions, ImportOptions, Replay, export, export_log, import};
///
/// let rollout = concat!(
///     r#"{"type":"response_item","payload":{"type":"message","role":"user","content":"One"}}"#, "\n",
///     r#"{"type":"response_item","payload":{"type":"message","role":"user","content":"Two"}}"#, "\n",
///     r#"{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}}"#, "\n",
///     r#"{"type":"response_item","payload":{"type":"message","role":"user","content":"Three"}}"#, "\n",
/// );
/// let mut replay = Replay::new(Settings::default(), 0);
/// let format = import(rollout, None, &ImportOptions::default(), &mut replay)?;
/// let conversation = &replay.conversations[0].branches[0].conversation;
///
/// let (mut all, mut shown) = (Vec::new(), Vec::new());
/// let log: Vec<_> = conversation.log().iter().map(|entry| entry.message.clone()).collect();
/// export_log(&log, format, &ExportOptions::default(), &mut all)?;
/// assert_eq!(String::from_utf8(all).unwrap(), rollout);
/// export(conversation.messages(), format, &ExportOptions::default(), &mut shown)?;
/// assert_eq!(String::from_utf8(shown).unwrap().lines().count(), 2); // One and Three
/// # Ok::<(), recto_format::Error>(())
/// ```
pub fn export_log<'m>(
    messages: impl IntoIterator<Item = &'m Message>,
    format: Format,
    options: &ExportOptions<'_>,
    file: &mut dyn Write,
) -> Result<Vec<TranscriptWarning>, Error> {
    write(messages, format, Extent::Log, options, file)
}

/// Writes messages. Tool parts are converted to the flat form, except in Recto's own format and in
/// messages that were imported from `format`.
fn write<'m>(
    messages: impl IntoIterator<Item = &'m Message>,
    format: Format,
    extent: Extent,
    options: &ExportOptions<'_>,
    file: &mut dyn Write,
) -> Result<Vec<TranscriptWarning>, Error> {
    if format == Format::Recto {
        return format.codec().export(&mut messages.into_iter(), extent, options, file);
    }
    let is_foreign = |message: &Message| {
        let source = MessageParts::of(message).source;
        source.is_none_or(|source| !source.is_from(format.name()))
    };
    let messages: Vec<&Message> = messages.into_iter().collect();
    let flat: HashMap<usize, Message> = messages
        .iter()
        .enumerate()
        .filter_map(|(at, message)| Some((at, flat_message(message)?)))
        .filter(|(at, _)| is_foreign(messages[*at]))
        .collect();
    let mut messages =
        messages.iter().enumerate().map(|(at, message)| flat.get(&at).unwrap_or(message));
    format.codec().export(&mut messages, extent, options, file)
}
