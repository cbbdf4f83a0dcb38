//! Transcripts out: messages written in any format.
//!
//! A message that was imported from the same format comes back with the bytes it came with; one that
//! was made here, or came from elsewhere, is built from its parts. Nothing is repaired: a file may
//! hold what no provider would accept. To send a view to a provider, [`render`](crate::render) it.
//!
//! Whether a whole file comes back byte for byte is up to what is given: the messages of the view are
//! what it shows now; those of the log (`conversation.log().iter()`) are all lines of a session, with
//! its rewinds and compactions, and each fork is written by itself. JSON lines come back as JSON lines
//! with [`Container::Lines`], and white space between messages is not kept.

use std::io::Write;

use recto_core::Message;

use crate::import::Remark;
use crate::{Error, Format};

/// What stands around the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Container<'a> {
    /// A JSON list, one message a line.
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
}

/// Writes messages in a format. The remarks say what the format has no place for; their line is the
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
    format.codec().export(&mut messages.into_iter(), options, file)
}
