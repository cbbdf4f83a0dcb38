//! A message: the JSON it came as, byte for byte, and what the engine needs to know of it.
//!
//! Nothing is ever written back into the JSON, so unknown fields, unknown parts, signatures and the
//! spelling of numbers survive. What the engine reads (role, texts, tool calls) is kept as places in
//! that text.

pub(crate) mod read;

use std::borrow::Cow;
use std::fmt;
use std::hash::Hasher;
use std::sync::LazyLock;

use serde::{Serialize, Serializer};
use serde_json::json;
use siphasher::sip::SipHasher13;
use triomphe::{Arc, HeaderSlice};

use crate::json;
use crate::tool_exchange::{Edge, Edges};
use crate::{Error, Limits, Role, Timestamp};

/// An immutable message. Cloning one costs O(1).
///
/// Messages are in Recto's own form: `{role, content, id?, timestamp?, metadata?, name?}`, where the
/// content is a string or a list of parts, and tool calls are `tool_use` and `tool_result` parts.
/// Other fields are kept, but mean nothing here: a `tool_calls` list as one provider has it is not
/// read as calls.
///
/// ```
/// use recto_core::{Message, Role};
///
/// let json = r#"{"role":"user","content":"2 + 2?","x-trace":1.50}"#;
/// let message = Message::from_json(json)?;
/// assert_eq!(message.role(), Role::User);
/// assert_eq!(message.text(), "2 + 2?");
/// assert_eq!(message.json(), json); // unknown fields and spelling survive
/// # Ok::<(), recto_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Message(Arc<HeaderSlice<Header, str>>);

struct Header {
    content: Content,
    /// The calls and results that have no partner inside the message.
    edges: Edges,
    /// Where the timestamp starts; 0, where no value can stand, if there is none.
    timestamp_at: u32,
    role: Role,
    /// Whether no character is written as an escape that need not be one.
    has_plain_escapes: bool,
    /// Whether it has tool calls or ids in a field of another format.
    is_foreign: bool,
}

enum Content {
    Text(Span),
    /// One tool result and one text: what most tools answer. It needs no list.
    Result {
        id: Span,
        text: Span,
    },
    Parts(Box<[Part]>),
}

/// What the engine knows of a part. Parts that mean nothing to it are not listed; the parts inside a
/// tool result stand behind it.
enum Part {
    Text(Span),
    /// What the model thought: counted, because it is sent, but neither searched nor filtered by.
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
    /// A call that a tool quotes in its result: text like any other.
    QuotedCall {
        name: Span,
        input: Span,
    },
}

/// A place in a message's JSON. For strings: what stands between the quotes.
#[derive(Clone, Copy)]
struct Span {
    start: u32,
    len: u32,
}

impl Span {
    /// Where `part`, a slice of `whole`, stands in it.
    fn of(part: &str, whole: &str) -> Span {
        let start = part.as_ptr().addr() - whole.as_ptr().addr();
        Span { start: start as u32, len: part.len() as u32 }
    }

    fn read(self, whole: &str) -> &str {
        &whole[self.start as usize..][..self.len as usize]
    }
}

impl Message {
    /// Reads a message from its JSON, within the default [`Limits`]. The text is kept as it is.
    pub fn from_json(text: &str) -> Result<Message, Error> {
        Self::from_json_within(text, &Limits::default())
    }

    /// [`from_json`](Self::from_json) with limits of your own.
    pub fn from_json_within(text: &str, limits: &Limits) -> Result<Message, Error> {
        let object = json::trimmed(text);
        if let Some(checked) = json::check(object)
            && limits.allow_message(object.len(), checked.depth)
        {
            return Self::read(object);
        }
        // Whatever it is, it is refused, and here is told why.
        Self::from_checked_json(json::value(text)?, limits)
    }

    /// Reads a message from a text that is known to be one JSON value without space around it, such as
    /// one that [`json::value`] gave: it is not checked again. For programs that have checked it.
    #[doc(hidden)]
    pub fn from_checked_json(text: &str, limits: &Limits) -> Result<Message, Error> {
        debug_assert!(json::value(text).is_ok_and(|value| value.len() == text.len()));
        limits.check_message(text)?;
        Self::read(text)
    }

    fn read(text: &str) -> Result<Message, Error> {
        Ok(Message(Arc::from_header_and_str(read::header(text)?, text)))
    }

    /// A message of plain text.
    pub fn new(role: Role, text: &str) -> Result<Message, Error> {
        Self::made_here(&json!({ "role": role, "content": text }))
    }

    /// A system message. The text must not be empty.
    ///
    /// # Panics
    /// If `text` is empty; [`Message::new`] gives an error instead.
    #[track_caller]
    pub fn system(text: &str) -> Message {
        Self::new(Role::System, text).expect("a system message has a text")
    }

    /// A user's message. The text must not be empty.
    ///
    /// # Panics
    /// If `text` is empty; [`Message::new`] gives an error instead.
    #[track_caller]
    pub fn user(text: &str) -> Message {
        Self::new(Role::User, text).expect("a user message has a text")
    }

    /// The model's answer. The text must not be empty.
    ///
    /// # Panics
    /// If `text` is empty; [`Message::new`] gives an error instead.
    #[track_caller]
    pub fn assistant(text: &str) -> Message {
        Self::new(Role::Assistant, text).expect("an assistant message has a text")
    }

    /// The model's call of a tool. `input` is any JSON value.
    pub fn tool_call(id: &str, name: &str, input: &serde_json::Value) -> Message {
        let part = json!({ "type": "tool_use", "id": id, "name": name, "input": input });
        Self::made_here(&json!({ "role": Role::Assistant, "content": [part] }))
            .expect("a tool call made here is well-formed")
    }

    /// The model's answer that calls tools: its text, which may be empty, then the calls, each with
    /// its id, the tool's name and the input. An answer with neither is an error.
    ///
    /// ```
    /// use recto_core::Message;
    /// use serde_json::json;
    ///
    /// let (hosts, load) = (json!({}), json!({ "host": "web-1" }));
    /// let calls = [("call_1", "hosts", &hosts), ("call_2", "load", &load)];
    /// let answer = Message::assistant_with_calls("Let me see.", calls)?;
    /// assert_eq!(answer.tool_calls().count(), 2);
    /// # Ok::<(), recto_core::Error>(())
    /// ```
    pub fn assistant_with_calls<'a>(
        text: &str,
        calls: impl IntoIterator<Item = (&'a str, &'a str, &'a serde_json::Value)>,
    ) -> Result<Message, Error> {
        let text = (!text.is_empty()).then(|| json!({ "type": "text", "text": text }));
        let calls = calls.into_iter().map(
            |(id, name, input)| json!({ "type": "tool_use", "id": id, "name": name, "input": input }),
        );
        let parts: Vec<serde_json::Value> = text.into_iter().chain(calls).collect();
        Self::made_here(&json!({ "role": Role::Assistant, "content": parts }))
    }

    /// A tool's answer to the call `id`.
    pub fn tool_result(id: &str, text: &str) -> Message {
        let part = json!({ "type": "tool_result", "tool_use_id": id, "content": text });
        Self::made_here(&json!({ "role": Role::Tool, "content": [part] }))
            .expect("a tool result made here is well-formed")
    }

    /// What a tool that failed says to the call `id`.
    pub fn tool_error(id: &str, text: &str) -> Message {
        let part = json!({
            "type": "tool_result", "tool_use_id": id, "content": text, "is_error": true
        });
        Self::made_here(&json!({ "role": Role::Tool, "content": [part] }))
            .expect("a tool's failure made here is well-formed")
    }

    /// A message that this program makes itself: limits are for what comes from outside.
    fn made_here(message: &serde_json::Value) -> Result<Message, Error> {
        Self::from_checked_json(&message.to_string(), &Limits::NONE)
    }

    /// What takes the place of a message that is erased: it says who wrote it, which tools it called
    /// and which calls it answered, so that it still fits between its neighbours, and nothing else.
    ///
    /// ```
    /// let secret = recto_core::Message::user("my password is hunter2");
    /// assert_eq!(secret.erased().json(), r#"{"role":"user","content":"[erased]"}"#);
    /// ```
    pub fn erased(&self) -> Message {
        self.placeholder("[erased]")
    }

    /// What takes the place of a message that is pruned; see [`erased`](Self::erased).
    pub fn pruned(&self) -> Message {
        self.placeholder("[pruned]")
    }

    fn placeholder(&self, text: &str) -> Message {
        let calls = self.tool_calls().map(
            |call| json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": {} }),
        );
        let results = self
            .tool_results()
            .map(|id| json!({ "type": "tool_result", "tool_use_id": id, "content": text }));
        let parts: Vec<serde_json::Value> = calls.chain(results).collect();
        let content = if parts.is_empty() { json!(text) } else { json!(parts) };
        Self::made_here(&json!({ "role": self.role(), "content": content }))
            .expect("it is a message like the one before")
    }

    /// What stands in the place of a message that is still in a store.
    pub(crate) fn absent() -> Message {
        static ABSENT: LazyLock<Message> = LazyLock::new(|| {
            let header = Header {
                content: Content::Text(Span { start: 0, len: 0 }),
                edges: Edges::default(),
                timestamp_at: 0,
                role: Role::System,
                has_plain_escapes: true,
                is_foreign: false,
            };
            Message(Arc::from_header_and_str(header, ""))
        });
        ABSENT.clone()
    }

    /// Whether the message is still in a store.
    pub(crate) fn is_absent(&self) -> bool {
        self.json().is_empty()
    }

    fn header(&self) -> &Header {
        &self.0.header
    }

    /// The JSON as it came, without the space around it.
    pub fn json(&self) -> &str {
        &self.0.slice
    }

    /// Who wrote it.
    pub fn role(&self) -> Role {
        self.header().role
    }

    /// The time that the message itself gives, if it gives one.
    pub fn timestamp(&self) -> Option<Timestamp> {
        let value = match self.header().timestamp_at {
            0 => return None,
            at => &self.json()[at as usize..],
        };
        let end = value.find(|c: char| !matches!(c, '0'..='9' | '-'));
        read::timestamp(&value[..end.unwrap_or(value.len())]).ok()
    }

    /// How many image, audio and file parts it has, those inside tool results included.
    pub fn media(&self) -> usize {
        self.parts().iter().filter(|part| matches!(part, Part::Media)).count()
    }

    /// The text of the message: its string, or the texts of its parts joined by newlines. This is
    /// what content filters, searches and counters read.
    pub fn text(&self) -> Cow<'_, str> {
        match &self.header().content {
            Content::Text(text) | Content::Result { text, .. } => {
                json::unescape(text.read(self.json()))
            }
            Content::Parts(_) => {
                let mut text = String::new();
                self.text_into(&mut text);
                Cow::Owned(text)
            }
        }
    }

    /// The [`text`](Self::text), in `room` if it does not stand in the JSON as it is.
    pub(crate) fn text_in<'a>(&'a self, room: &'a mut String) -> &'a str {
        if let Content::Text(text) | Content::Result { text, .. } = &self.header().content {
            let text = text.read(self.json());
            if !text.contains('\\') {
                return text;
            }
        }
        room.clear();
        room.reserve(self.json().len());
        self.text_into(room);
        room
    }

    /// The start of the [`text`](Self::text) in its JSON-escaped form. `None` if it is not known
    /// without decoding: characters are escaped without need, or the text does not begin with that
    /// of a text part.
    pub(crate) fn escaped_start(&self) -> Option<&str> {
        let whole = self.json();
        let first = match &self.header().content {
            Content::Text(text) | Content::Result { text, .. } => Some(*text),
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
        first.map(|text| text.read(whole)).filter(|_| self.has_plain_escapes())
    }

    /// The JSON-escaped [`text`](Self::text), if it is one string with as few escapes as possible and
    /// without a `\\u` escape: equal texts then have equal bytes.
    pub(crate) fn canonical_text(&self) -> Option<&str> {
        let Content::Text(text) = &self.header().content else { return None };
        let escaped = text.read(self.json());
        (self.has_plain_escapes() && !escaped.contains("\\u")).then_some(escaped)
    }

    /// The text that is counted: the [`text`](Self::text) and, joined in the same way, what is in
    /// thinking parts. It is in `room` if it does not stand in the JSON as it is.
    pub(crate) fn counted_text_in<'a>(&'a self, room: &'a mut String) -> &'a str {
        let has_thinking = self.parts().iter().any(|part| matches!(part, Part::Thinking(_)));
        if !has_thinking {
            return self.text_in(room);
        }
        room.clear();
        let mut is_first = true;
        self.for_each_part_text(true, |text| text.join_to(room, &mut is_first));
        room
    }

    /// Adds the [`text`](Self::text) to `out`.
    pub(crate) fn text_into(&self, out: &mut String) {
        let mut is_first = true;
        self.for_each_text(|text| text.join_to(out, &mut is_first));
    }

    /// Hands out the texts that [`text`](Self::text) joins, one after the other, until `each`
    /// answers false.
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

    /// The tool calls in it.
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

    /// The ids of the tool calls that the results in it answer.
    pub fn tool_results(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.header().content.results().map(|id| json::unescape(id.read(self.json())))
    }

    fn parts(&self) -> &[Part] {
        self.header().content.parts()
    }

    /// Whether no character is written as an escape that need not be one: then a word without quotes,
    /// backslashes and control characters that is in a text is also in that text as it stands between
    /// its quotes.
    pub fn has_plain_escapes(&self) -> bool {
        self.header().has_plain_escapes
    }

    /// Whether it carries tool calls, or the id that it answers, in a field of another format
    /// (`tool_calls`, `tool_call_id`, …). They are kept, but not read.
    pub fn is_foreign(&self) -> bool {
        self.header().is_foreign
    }

    /// The calls and results of this message that have no partner inside it.
    pub(crate) fn edges(&self) -> &Edges {
        &self.header().edges
    }
}

impl Content {
    fn parts(&self) -> &[Part] {
        match self {
            Content::Text(_) | Content::Result { .. } => &[],
            Content::Parts(parts) => parts,
        }
    }

    /// The ids of the tool calls in it.
    fn calls(&self) -> impl Iterator<Item = Span> {
        self.parts().iter().filter_map(|part| match *part {
            Part::ToolCall { id, .. } => Some(id),
            _ => None,
        })
    }

    /// The ids of the tool calls that the results in it answer.
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
    /// As the JSON it came as, where the format can hold JSON as it is.
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
pub struct ToolCall<'a> {
    /// The id that its result will name.
    pub id: Cow<'a, str>,
    /// The tool.
    pub name: Cow<'a, str>,
    /// What the tool is given, as the JSON it came as.
    pub input: &'a str,
}

/// The text of one part, not yet decoded.
#[derive(Clone, Copy)]
pub(crate) enum PartText<'a> {
    /// What stands between the quotes of a string.
    String(&'a str),
    /// A tool call: the name between its quotes, and the input as JSON.
    Call { name: &'a str, input: &'a str },
}

impl<'a> PartText<'a> {
    /// Adds the text to `out`, behind a newline unless it is the first. Returns true, so that the
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

    /// The text, decoded into `scratch` only where it has to be.
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

/// The hash of an id as it stands between quotes; the same id with other escapes has the same.
/// Stores keep it, so it must stay the same for ever.
fn id_hash(escaped: &str) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(json::unescape(escaped).as_bytes());
    hasher.finish()
}

/// The start of a text, for messages to people.
pub(crate) fn shorten(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(40) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;

    #[test]
    fn a_text_in_a_room_that_was_used_before_is_the_same_text() {
        let mut room = "of another message".to_owned();
        let calls = [("1", "look", &json!({ "at": "a \"door\"" }))];
        let messages = [
            Message::user("as it is"),
            Message::user("two\nlines"),
            Message::tool_result("1", "plain"),
            Message::tool_result("1", "a \"quote\""),
            Message::assistant_with_calls("first", calls).unwrap(),
        ];
        for message in messages {
            assert_eq!(message.text_in(&mut room), message.text());
        }
    }

    #[test]
    fn an_answer_may_have_a_text_several_calls_or_both_but_not_nothing() {
        let input = json!({ "host": "web-1" });
        let calls = [("a", "load", &input), ("b", "disk", &input)];
        let both = Message::assistant_with_calls("I look.", calls).unwrap();
        assert_eq!(both.role(), Role::Assistant);
        assert_eq!(both.text(), "I look.\nload {\"host\":\"web-1\"}\ndisk {\"host\":\"web-1\"}");
        let silent = Message::assistant_with_calls("", calls).unwrap();
        assert_eq!(silent.tool_calls().map(|call| call.id).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(Message::assistant_with_calls("Done.", []).unwrap().text(), "Done.");
        let nothing = Message::assistant_with_calls("", []).unwrap_err();
        assert_eq!(nothing.code(), Code::EmptyContent);
    }

    #[test]
    fn a_failed_tool_answers_its_call_and_says_that_it_failed() {
        let failure = Message::tool_error("a", "no such host");
        assert_eq!(failure.tool_results().collect::<Vec<_>>(), ["a"]);
        assert_eq!(failure.text(), "no such host");
        assert!(failure.json().contains(r#""is_error":true"#));
    }
}
