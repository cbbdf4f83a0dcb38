//! A message: its JSON, byte for byte, and a header with the data that the engine reads from it.
//!
//! The engine never changes the JSON, so unknown fields, unknown parts, signatures and the spelling of
//! numbers are kept. The header holds the role, and the byte ranges of texts and tool calls in the JSON.

mod make;
pub(crate) mod read;

use std::borrow::Cow;
use std::fmt;
use std::hash::Hasher;
use std::sync::LazyLock;

use serde::{Serialize, Serializer};
use siphasher::sip::SipHasher13;
use triomphe::{Arc, HeaderSlice};

use crate::edges::{Edge, Edges};
use crate::json;
use crate::{Error, Limits, Role, Timestamp};

/// An immutable message. A clone costs O(1).
///
/// A message has the form `{role, content, id?, timestamp?, metadata?, name?}`. The content is a string
/// or a list of parts; tool calls and results are `tool_use` and `tool_result` parts. Other fields are
/// kept but have no meaning: the engine does not read a `tool_calls` list, which some providers use, as
/// calls.
///
/// ```
/// use recto_core::{Message, Role};
///
/// let json = r#"{"role":"user","content":"2 + 2?","x-trace":1.50}"#;
/// let message = Message::from_json(json)?;
/// assert_eq!(message.role(), Role::User);
/// assert_eq!(message.text(), "2 + 2?");
/// assert_eq!(message.json(), json); // unknown fields and the spelling of numbers are kept
/// # Ok::<(), recto_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Message(Arc<HeaderSlice<Header, str>>);

struct Header {
    content: Content,
    /// The tool calls without a result and the results without a call in the same message.
    edges: Edges,
    /// Offset of the timestamp in the JSON. 0, at which no field value can start, if there is none.
    timestamp_at: u32,
    role: Role,
    /// See [`json::uses_minimal_escapes`].
    uses_minimal_escapes: bool,
    /// Whether the message has tool calls or ids in a field of another format.
    is_foreign: bool,
}

enum Content {
    Text(Span),
    /// One tool result with one text: the most frequent result, which needs no list.
    Result {
        id: Span,
        text: Span,
    },
    Parts(Box<[Part]>),
    /// Content that a constructor received and that was refused with this error.
    Refused(Box<Error>),
}

/// A part that the engine reads. Other parts are not listed. The parts inside a tool result follow it.
enum Part {
    Text(Span),
    /// Thinking of the model. It is sent, so its tokens count. It is not searched.
    Thinking(Span),
    /// An image, audio or file.
    Media,
    ToolCall {
        id: Span,
        name: Span,
        input: Span,
    },
    ToolResult {
        id: Span,
    },
    /// A tool call inside a tool result. It is text, not a call.
    QuotedCall {
        name: Span,
        input: Span,
    },
}

/// A range of the JSON of a message. For a string: the text between the quotes.
#[derive(Clone, Copy)]
struct Span {
    start: u32,
    len: u32,
}

impl Span {
    /// The range of `part`, which must be a slice of `whole`.
    fn of(part: &str, whole: &str) -> Span {
        let start = part.as_ptr().addr() - whole.as_ptr().addr();
        Span { start: start as u32, len: part.len() as u32 }
    }

    fn read(self, whole: &str) -> &str {
        &whole[self.start as usize..][..self.len as usize]
    }
}

impl Message {
    /// Reads a message from JSON, within the default [`Limits`]. The text is kept unchanged.
    pub fn from_json(text: &str) -> Result<Message, Error> {
        Self::from_json_within(text, &Limits::default())
    }

    /// [`from_json`](Self::from_json) with other limits.
    pub fn from_json_within(text: &str, limits: &Limits) -> Result<Message, Error> {
        let object = json::trimmed(text);
        if let Some(checked) = json::check(object)
            && limits.allow_message(object.len(), checked.depth)
        {
            return Self::read(object);
        }
        // The text is refused. This slower path finds the reason.
        Self::from_checked_json(json::value(text)?, limits)
    }

    /// Reads a message from a text that is one JSON value without space around it, such as one that
    /// [`json::value`] returned. The text is not checked again.
    #[doc(hidden)]
    pub fn from_checked_json(text: &str, limits: &Limits) -> Result<Message, Error> {
        debug_assert!(json::value(text).is_ok_and(|value| value.len() == text.len()));
        limits.check_message(text)?;
        Self::read(text)
    }

    fn read(text: &str) -> Result<Message, Error> {
        Ok(Message(Arc::from_header_and_str(read::header(text)?, text)))
    }

    /// The value that represents a message that is not loaded.
    pub(crate) fn absent() -> Message {
        static ABSENT: LazyLock<Message> = LazyLock::new(|| {
            let header = Header {
                content: Content::Text(Span { start: 0, len: 0 }),
                edges: Edges::default(),
                timestamp_at: 0,
                role: Role::System,
                uses_minimal_escapes: true,
                is_foreign: false,
            };
            Message(Arc::from_header_and_str(header, ""))
        });
        ABSENT.clone()
    }

    /// Whether the message is not loaded.
    pub(crate) fn is_absent(&self) -> bool {
        self.json().is_empty()
    }

    fn header(&self) -> &Header {
        &self.0.header
    }

    /// The JSON, unchanged, without the space around it.
    pub fn json(&self) -> &str {
        &self.0.slice
    }

    /// The role of the author.
    pub fn role(&self) -> Role {
        self.header().role
    }

    /// The field `timestamp` of the message.
    pub fn timestamp(&self) -> Option<Timestamp> {
        let value = match self.header().timestamp_at {
            0 => return None,
            at => &self.json()[at as usize..],
        };
        let end = value.find(|c: char| !matches!(c, '0'..='9' | '-'));
        read::timestamp(&value[..end.unwrap_or(value.len())]).ok()
    }

    /// Number of image, audio and file parts, including those inside tool results.
    pub fn media_count(&self) -> usize {
        self.parts().iter().filter(|part| matches!(part, Part::Media)).count()
    }

    /// The text of the message: its string, or the texts of its parts joined by newlines. Filters and
    /// queries search it.
    pub fn text(&self) -> Cow<'_, str> {
        match &self.header().content {
            Content::Text(text) | Content::Result { text, .. } => {
                json::unescape(text.read(self.json()))
            }
            Content::Refused(_) => Cow::Borrowed(""),
            Content::Parts(_) => {
                let mut text = String::new();
                self.text_into(&mut text);
                Cow::Owned(text)
            }
        }
    }

    /// The [`text`](Self::text), decoded into `scratch` if it has escapes or several parts.
    pub(crate) fn text_in<'a>(&'a self, scratch: &'a mut String) -> &'a str {
        if let Content::Text(text) | Content::Result { text, .. } = &self.header().content {
            let text = text.read(self.json());
            if !text.contains('\\') {
                return text;
            }
        }
        scratch.clear();
        scratch.reserve(self.json().len());
        self.text_into(scratch);
        scratch
    }

    /// The start of the [`text`](Self::text) in its JSON-escaped form. `None` if decoding is needed:
    /// the JSON has optional escapes, or the text does not start with that of a text part.
    pub(crate) fn escaped_start(&self) -> Option<&str> {
        let whole = self.json();
        let first = match &self.header().content {
            Content::Text(text) | Content::Result { text, .. } => Some(*text),
            Content::Refused(_) => None,
            Content::Parts(parts) => {
                let has_text = |part: &&Part| {
                    !matches!(part, Part::Thinking(_) | Part::Media | Part::ToolResult { .. })
                };
                match parts.iter().find(has_text) {
                    Some(Part::Text(text)) => Some(*text),
                    _ => None,
                }
            }
        };
        first.map(|text| text.read(whole)).filter(|_| self.uses_minimal_escapes())
    }

    /// The JSON-escaped [`text`](Self::text), if it is one string with the fewest possible escapes that does
    /// not contain the characters `\u`. Equal texts then have equal bytes.
    pub(crate) fn canonical_text(&self) -> Option<&str> {
        let Content::Text(text) = &self.header().content else { return None };
        let escaped = text.read(self.json());
        (self.uses_minimal_escapes() && !escaped.contains("\\u")).then_some(escaped)
    }

    /// The text that is counted: the [`text`](Self::text), joined with that of thinking parts. Decoded
    /// into `scratch` if it has escapes or several parts.
    pub(crate) fn counted_text_in<'a>(&'a self, scratch: &'a mut String) -> &'a str {
        let has_thinking = self.parts().iter().any(|part| matches!(part, Part::Thinking(_)));
        if !has_thinking {
            return self.text_in(scratch);
        }
        scratch.clear();
        let mut is_first = true;
        self.for_each_part_text(true, |text| text.join_to(scratch, &mut is_first));
        scratch
    }

    /// Appends the [`text`](Self::text) to `out`.
    pub(crate) fn text_into(&self, out: &mut String) {
        let mut is_first = true;
        self.for_each_text(|text| text.join_to(out, &mut is_first));
    }

    /// Calls `each` with the texts that [`text`](Self::text) joins, until it returns false.
    pub(crate) fn for_each_text<'a>(&'a self, each: impl FnMut(PartText<'a>) -> bool) {
        self.for_each_part_text(false, each);
    }

    fn for_each_part_text<'a>(
        &'a self,
        with_thinking: bool,
        mut each: impl FnMut(PartText<'a>) -> bool,
    ) {
        let whole = self.json();
        match &self.header().content {
            Content::Text(text) | Content::Result { text, .. } => {
                each(PartText::String(text.read(whole)));
            }
            Content::Refused(_) => {}
            Content::Parts(parts) => {
                for part in parts {
                    let text = match *part {
                        Part::Text(span) => PartText::String(span.read(whole)),
                        Part::Thinking(span) if with_thinking => PartText::String(span.read(whole)),
                        Part::ToolCall { name, input, .. } | Part::QuotedCall { name, input } => {
                            PartText::Call { name: name.read(whole), input: input.read(whole) }
                        }
                        Part::ToolResult { .. } | Part::Media | Part::Thinking(_) => continue,
                    };
                    if !each(text) {
                        return;
                    }
                }
            }
        }
    }

    /// The tool calls of the message.
    pub fn tool_calls(&self) -> impl Iterator<Item = ToolCall<'_>> {
        let whole = self.json();
        self.parts().iter().filter_map(move |part| match part {
            Part::ToolCall { id, name, input } => Some(ToolCall {
                id: json::unescape(id.read(whole)),
                name: json::unescape(name.read(whole)),
                input: input.read(whole),
            }),
            _ => None,
        })
    }

    /// The ids of the tool calls to which the message has results.
    pub fn tool_result_ids(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.header().content.results().map(|id| json::unescape(id.read(self.json())))
    }

    fn parts(&self) -> &[Part] {
        self.header().content.parts()
    }

    /// Whether the JSON has no `\u` and no `\/` escapes. If so, a word without quotes, backslashes and
    /// control characters occurs in the escaped text if it occurs in the decoded text. The reverse does not
    /// hold: the escaped text may contain a word that the decoded text does not.
    pub fn uses_minimal_escapes(&self) -> bool {
        self.header().uses_minimal_escapes
    }

    /// Whether the message has tool calls or call ids in a field of another format (`tool_calls`,
    /// `tool_call_id`, …). The engine keeps them, but does not read them.
    pub fn is_foreign(&self) -> bool {
        self.header().is_foreign
    }

    /// The tool calls without a result and the results without a call in this message.
    pub(crate) fn edges(&self) -> &Edges {
        &self.header().edges
    }
}

impl Content {
    fn parts(&self) -> &[Part] {
        match self {
            Content::Text(_) | Content::Result { .. } | Content::Refused(_) => &[],
            Content::Parts(parts) => parts,
        }
    }

    /// The ids of the tool calls.
    fn calls(&self) -> impl Iterator<Item = Span> {
        self.parts().iter().filter_map(|part| match *part {
            Part::ToolCall { id, .. } => Some(id),
            _ => None,
        })
    }

    /// The ids of the tool calls to which there are results.
    fn results(&self) -> impl Iterator<Item = Span> {
        let only = match *self {
            Content::Result { id, .. } => Some(id),
            _ => None,
        };
        let listed = self.parts().iter().filter_map(|part| match *part {
            Part::ToolResult { id } => Some(id),
            _ => None,
        });
        only.into_iter().chain(listed)
    }

    fn edges(&self, whole: &str) -> Edges {
        let hash = |id: Span| id_hash(id.read(whole));
        let calls = self.calls().map(|id| Edge::call(hash(id))).collect();
        let results = self.results().map(|id| Edge::result(hash(id))).collect();
        Edges::of_message(calls, results)
    }
}

impl Serialize for Message {
    /// Writes the unchanged JSON, if the format supports raw values.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json::raw(self.json()).serialize(serializer)
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.json() == other.json()
    }
}

impl Eq for Message {}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Message").field(&self.json()).finish()
    }
}

/// A tool call in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolCall<'a> {
    /// The id that the result names.
    pub id: Cow<'a, str>,
    /// The name of the tool.
    pub name: Cow<'a, str>,
    /// The input, as unchanged JSON.
    pub input: &'a str,
}

/// The text of one part, not yet decoded.
#[derive(Clone, Copy)]
pub(crate) enum PartText<'a> {
    /// A string: the text between its quotes.
    String(&'a str),
    /// A tool call: the text between the quotes of the name, and the input as JSON.
    Call { name: &'a str, input: &'a str },
}

impl<'a> PartText<'a> {
    /// Appends the text to `out`, after a newline unless it is the first. Returns true, so that the
    /// iteration continues.
    fn join_to(self, out: &mut String, is_first: &mut bool) -> bool {
        if !std::mem::replace(is_first, false) {
            out.push('\n');
        }
        self.read_into(out);
        true
    }

    pub(crate) fn read_into(self, out: &mut String) {
        match self {
            PartText::String(escaped) => json::unescape_into(escaped, out),
            PartText::Call { name, input } => {
                json::unescape_into(name, out);
                out.push(' ');
                json::compact_into(input, out);
            }
        }
    }

    /// The text, decoded into `scratch` if it has escapes.
    pub(crate) fn read<'b>(self, scratch: &'b mut String) -> &'b str
    where
        'a: 'b,
    {
        if let PartText::String(escaped) = self
            && memchr::memchr(b'\\', escaped.as_bytes()).is_none()
        {
            return escaped;
        }
        scratch.clear();
        self.read_into(scratch);
        scratch
    }
}

/// The hash of an id, which is given as the text between its quotes. It does not depend on escapes.
/// Stores keep it, so it must never change.
fn id_hash(escaped: &str) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(json::unescape(escaped).as_bytes());
    hasher.finish()
}

/// The start of a text, for error messages.
pub(crate) fn shorten(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(40) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_scratch_buffer_with_content_does_not_change_the_text() {
        let mut scratch = "of another message".to_owned();
        let calls = [("1", "look", &json!({ "at": "a \"door\"" }))];
        let messages = [
            Message::user("as it is"),
            Message::user("two\nlines"),
            Message::tool_result("1", "plain"),
            Message::tool_result("1", "a \"quote\""),
            Message::assistant_with_calls("first", calls).unwrap(),
        ];
        for message in messages {
            assert_eq!(message.text_in(&mut scratch), message.text());
        }
    }
}
