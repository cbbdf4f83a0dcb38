//! Transcripts out: messages written in any format.
//!
//! A message that was imported from the same format comes back with the bytes it came with; one that
//! was made here, or came from elsewhere, is built from its parts. Nothing is repaired: a file may
//! hold what no provider would accept. To send a view to a provider, [`render`](crate::render) it.
//!
//! [`export`] writes what a view shows: read again, the file shows the same messages. Lines of a
//! session that act on others, such as a rewind or a compaction, are left out where they would take
//! away something that is shown. [`export_log`] writes a whole log (`conversation.log().iter()`): all
//! lines of a session, with its rewinds and compactions, byte for byte. Each fork is written by itself.
//! JSON lines come back as JSON lines with [`Container::Lines`], and white space between messages is
//! not kept.

use std::collections::HashMap;
use std::io::Write;

use recto_core::{Message, Timestamp};

use crate::flat::flat_message;
use crate::import::Remark;
use crate::json;
use crate::parts::MessageParts;
use crate::{Error, Format};

/// What stands around the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Container<'a> {
    /// A JSON list, one message a line. Where the messages start with what the system says and the
    /// format has a place for that beside the list only, a request that holds both:
    /// `{"system":"…","messages":[…]}`.
    #[default]
    List,
    /// JSON lines: one message a line and nothing else.
    Lines,
    /// What stood around them in the file they came from, as [`Step::Envelope`](crate::Step::Envelope)
    /// has it: an object with `null` in the place of the messages, or the last lines of a session.
    Envelope(&'a str),
}

/// How to export.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExportOptions<'a> {
    /// What stands around the messages. Sessions are always lines.
    pub container: Container<'a>,
    /// When each message came, in their order, as far as it is known: what formats with times say of a
    /// message that has none of its own. A time that nobody knows is left out.
    pub times: &'a [Timestamp],
}

impl ExportOptions<'_> {
    /// When a message was written; `number` is its place among those that are exported.
    pub(crate) fn time_of(&self, message: &MessageParts<'_>, number: usize) -> Option<Timestamp> {
        let own = json::get(message.json, "timestamp").and_then(|time| time.parse().ok());
        own.or_else(|| self.times.get(number).copied())
    }
}

/// Which messages of a conversation are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Those of a view.
    View,
    /// All of a log.
    Log,
}

/// Writes the messages of a view in a format. The remarks say what the format has no place for; their line is the
/// number of the message, from 1.
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
) -> Result<Vec<Remark>, Error> {
    write(messages, format, Extent::View, options, file)
}

/// Writes all messages of a log in a format, as [`export`] does those of a view. A session comes out
/// with its rewinds and compactions, which make the same view again when it is read.
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
/// let (_, talk) = &replay.conversations[0].lines[0];
///
/// let (mut all, mut shown) = (Vec::new(), Vec::new());
/// let log: Vec<_> = talk.log().iter().map(|entry| entry.message.clone()).collect();
/// export_log(&log, format, &ExportOptions::default(), &mut all)?;
/// assert_eq!(String::from_utf8(all).unwrap(), rollout);
/// export(talk.messages(), format, &ExportOptions::default(), &mut shown)?;
/// assert_eq!(String::from_utf8(shown).unwrap().lines().count(), 2); // One and Three
/// # Ok::<(), recto_format::Error>(())
/// ```
pub fn export_log<'m>(
    messages: impl IntoIterator<Item = &'m Message>,
    format: Format,
    options: &ExportOptions<'_>,
    file: &mut dyn Write,
) -> Result<Vec<Remark>, Error> {
    write(messages, format, Extent::Log, options, file)
}

/// Writes messages, with tool parts in the flat form where the format is not Recto's own. What was
/// imported from the format comes back as it came.
fn write<'m>(
    messages: impl IntoIterator<Item = &'m Message>,
    format: Format,
    extent: Extent,
    options: &ExportOptions<'_>,
    file: &mut dyn Write,
) -> Result<Vec<Remark>, Error> {
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
