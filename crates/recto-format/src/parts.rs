//! A Recto message as its parts, each with the text it came in.
//!
//! This is the neutral form between all formats: importers write it, exporters and renderers read
//! it. Nothing is decoded that need not be: strings stay as they stand between their quotes, a tool
//! call's input stays the JSON it came as.
//!
//! Beside the fields of the contract, these mean something to this crate:
//!
//! | field | where | what it says |
//! |---|---|---|
//! | `signature` | on `thinking`, `tool_use` and `text` | what the provider signed; it goes back to its maker only |
//! | `kind: "custom"` | on `tool_use` | the input is free text, as in OpenAI's custom tools |
//! | `item_id` | on `tool_use` and `text` | the id of the item at OpenAI's Responses, which goes back beside its reasoning |
//! | `item` | on `tool_use`, `tool_result` | the item, if it is of a tool of OpenAI's own |
//! | `cache_control`, `citations` | on parts | kept for Anthropic |
//! | `detail` | on `image` | kept for OpenAI |
//! | `metadata.source` | on messages | where the message comes from: see [`Source`](crate::Source) |
//!
//! A tool part in the nested form, such as `{"type":"tool_use","tool_use":{id,name,input}}`, is read
//! like one in the flat form. The fields of the table stand beside the nested object. A part's `json`
//! is the part as it came; `flat.rs` rewrites nested parts for formats that copy it.
//!
//! Images, audio and files are described in [`Media`].

use recto_core::{Message, Role};

use crate::json::{self, Cursor, Str};
use crate::{Format, Media, Source};

/// What a message consists of.
#[derive(Clone, Debug)]
pub struct MessageParts<'a> {
    /// Who wrote it.
    pub role: Role,
    /// Its content; a string is one text.
    pub parts: Vec<Part<'a>>,
    /// Whether the content is a string and not a list.
    pub is_string: bool,
    /// The name of who wrote it, if there is one.
    pub name: Option<Str<'a>>,
    /// Where it comes from, if it was imported or says which model wrote it.
    pub source: Option<Source<'a>>,
    /// The whole message as it came.
    pub json: &'a str,
}

/// One part of a message. `json` is the whole part as it came; for a string it is that string.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// Something said.
    Text {
        /// What is said.
        text: Str<'a>,
        /// The part.
        json: &'a str,
        /// Whether it has fields beside these.
        has_more: bool,
    },
    /// What the model thought.
    Thinking {
        /// The thought.
        text: Str<'a>,
        /// What the provider signed it with.
        signature: Option<Str<'a>>,
        /// The part.
        json: &'a str,
    },
    /// An image, audio or file.
    Media(Media<'a>),
    /// A call of a tool.
    ToolUse {
        /// The id that its result names.
        id: Str<'a>,
        /// The tool.
        name: Str<'a>,
        /// What the tool is given: any JSON value.
        input: &'a str,
        /// The part.
        json: &'a str,
        /// Whether it has fields beside these.
        has_more: bool,
    },
    /// What a tool answered.
    ToolResult {
        /// The call that it answers.
        id: Str<'a>,
        /// The answer: a string, a list of parts, or nothing.
        content: Option<&'a str>,
        /// Whether the tool failed.
        is_error: bool,
        /// The part.
        json: &'a str,
        /// Whether it has fields beside these.
        has_more: bool,
    },
    /// A part that only its own provider understands.
    Other {
        /// Its type.
        kind: Str<'a>,
        /// The part.
        json: &'a str,
    },
}

impl<'a> MessageParts<'a> {
    /// Reads the parts of a message.
    pub fn of(message: &'a Message) -> MessageParts<'a> {
        MessageParts::of_json(message.role(), message.json())
    }

    /// Reads a text that is known to be a Recto message.
    pub(crate) fn of_json(role: Role, json: &'a str) -> MessageParts<'a> {
        let mut read = MessageParts {
            role,
            parts: Vec::new(),
            is_string: false,
            name: None,
            source: None,
            json,
        };
        let mut cursor = Cursor::new(json);
        cursor.enter();
        // The last of several equal keys counts, as everywhere.
        while let Some(b'"') = cursor.peek() {
            let key = Str::of(cursor.value()).map(Str::text).unwrap_or_default();
            match &*key {
                "content" => match cursor.peek() {
                    Some(b'[') => {
                        read.is_string = false;
                        read.parts = Part::list_at(&mut cursor);
                    }
                    _ => {
                        let json = cursor.value();
                        if let Some(text) = Str::of(json) {
                            read.is_string = true;
                            read.parts = vec![Part::Text { text, json, has_more: false }];
                        }
                    }
                },
                "name" => read.name = Str::of(cursor.value()),
                "metadata" => read.source = Source::of(cursor.value()),
                _ => drop(cursor.value()),
            }
        }
        read
    }
}

impl MessageParts<'_> {
    /// Whether what it holds was said in this format, or here.
    pub(crate) fn is_of(&self, format: Format) -> bool {
        self.source.is_none_or(|source| source.is_from(format.name()))
    }
}

impl<'a> Part<'a> {
    /// The parts of a list.
    pub fn list(list: &'a str) -> Vec<Part<'a>> {
        Part::list_at(&mut Cursor::new(list))
    }

    fn list_at(cursor: &mut Cursor<'a>) -> Vec<Part<'a>> {
        let mut parts = Vec::new();
        cursor.enter();
        while let Some(byte) = cursor.peek() {
            parts.push(match byte {
                b'{' => Part::at(cursor),
                _ => Part::Other { kind: Str::plain(""), json: cursor.value() },
            });
        }
        parts
    }

    /// The parts of a tool result's content.
    pub fn of_result(content: Option<&'a str>) -> Vec<Part<'a>> {
        match content {
            None => Vec::new(),
            Some(content) => match Str::of(content) {
                Some(text) => vec![Part::Text { text, json: content, has_more: false }],
                None => Part::list(content),
            },
        }
    }

    /// Reads the part that comes next.
    fn at(cursor: &mut Cursor<'a>) -> Part<'a> {
        let mut read = PartFields::default();
        let start = cursor.enter();
        while let Some(b'"') = cursor.peek() {
            let key = Str::of(cursor.value()).map(Str::text).unwrap_or_default();
            read.take(&key, cursor.value());
        }
        let json = cursor.since(start);
        let PartFields {
            kind,
            id,
            name,
            input,
            text,
            signature,
            answers,
            content,
            is_error,
            tool_use,
            tool_result,
            has_more,
        } = read.with_nested();
        let has_more = has_more || tool_use.is_some() || tool_result.is_some();
        let kind = kind.unwrap_or(Str::plain(""));
        let other = Part::Other { kind, json };
        match (&*kind.text(), text, answers, (id, name, input)) {
            ("text", Some(text), ..) => Part::Text { text, json, has_more },
            ("thinking", Some(text), ..) => Part::Thinking { text, signature, json },
            ("image" | "audio" | "file", ..) => Part::Media(Media::of(json)),
            ("tool_use", _, _, (Some(id), Some(name), Some(input))) => {
                Part::ToolUse { id, name, input, json, has_more }
            }
            ("tool_result", _, Some(id), _) => {
                Part::ToolResult { id, content, is_error, json, has_more }
            }
            _ => other,
        }
    }

    /// The part as it came.
    pub fn json(&self) -> &'a str {
        match self {
            Part::Media(media) => media.json,
            Part::Text { json, .. }
            | Part::Thinking { json, .. }
            | Part::ToolUse { json, .. }
            | Part::ToolResult { json, .. }
            | Part::Other { json, .. } => json,
        }
    }

    /// What the provider signed it with.
    pub fn signature(&self) -> Option<Str<'a>> {
        if self.has_more() { json::get_str(self.json(), "signature") } else { None }
    }

    /// Whether it has fields beside those that are read here.
    pub fn has_more(&self) -> bool {
        match self {
            Part::Text { has_more, .. }
            | Part::ToolUse { has_more, .. }
            | Part::ToolResult { has_more, .. } => *has_more,
            Part::Thinking { .. } | Part::Media(_) | Part::Other { .. } => true,
        }
    }

    /// Whether it is a call whose input is free text (`kind: "custom"`).
    pub fn is_custom_call(&self) -> bool {
        matches!(self, Part::ToolUse { has_more: true, json, .. }
            if json::get_str(json, "kind").is_some_and(|kind| kind.text() == "custom"))
    }
}

/// The fields of a part that mean something, read in one go.
#[derive(Default)]
struct PartFields<'a> {
    kind: Option<Str<'a>>,
    id: Option<Str<'a>>,
    name: Option<Str<'a>>,
    input: Option<&'a str>,
    text: Option<Str<'a>>,
    signature: Option<Str<'a>>,
    answers: Option<Str<'a>>,
    content: Option<&'a str>,
    is_error: bool,
    /// The object that holds the fields of a `tool_use` part in the nested form.
    tool_use: Option<&'a str>,
    /// The object that holds the fields of a `tool_result` part in the nested form.
    tool_result: Option<&'a str>,
    has_more: bool,
}

impl<'a> PartFields<'a> {
    /// The fields of a tool part in the nested form, as if they were flat; any other part is left as
    /// it is.
    fn with_nested(mut self) -> PartFields<'a> {
        if self.tool_use.is_none() && self.tool_result.is_none() {
            return self;
        }
        let nested = match self.kind {
            Some(kind) if kind.is("tool_use") => &mut self.tool_use,
            Some(kind) if kind.is("tool_result") => &mut self.tool_result,
            _ => return self,
        };
        let Some(object) = nested.take_if(|value| json::is_object(value)) else { return self };
        let mut inner = PartFields::default();
        for (key, value) in json::fields(object) {
            inner.take(&key.text(), value);
        }
        let PartFields { id, name, input, answers, content, is_error, .. } = inner;
        PartFields { id, name, input, answers, content, is_error, ..self }
    }

    fn take(&mut self, key: &str, value: &'a str) {
        match key {
            "type" => self.kind = Str::of(value),
            "id" => self.id = Str::of(value),
            "name" => self.name = Str::of(value),
            "input" => self.input = Some(value),
            "text" => self.text = Str::of(value),
            "signature" => {
                self.signature = Str::of(value);
                self.has_more = true;
            }
            "tool_use_id" => self.answers = Str::of(value),
            "content" => self.content = Some(value).filter(|&value| value != "null"),
            "is_error" => self.is_error = value == "true",
            "tool_use" => self.tool_use = Some(value).filter(|&value| value != "null"),
            "tool_result" => self.tool_result = Some(value).filter(|&value| value != "null"),
            _ => self.has_more = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_the_text_they_came_in() {
        let json = r#"{"role":"assistant","content":[{"type":"text","text":"a\n"},{"input":{"n":1.50},"type":"tool_use","id":"c","name":"f"},{"type":"hologram","x":1e400}],"metadata":{"source":{"format":"anthropic","provider":"anthropic"}}}"#;
        let message = Message::from_json(json).unwrap();
        let read = MessageParts::of(&message);
        assert!(!read.is_string);
        assert!(matches!(read.parts[0], Part::Text { text, .. } if text.escaped() == "a\\n"));
        assert!(matches!(read.parts[1], Part::ToolUse { input: r#"{"n":1.50}"#, .. }));
        assert_eq!(read.parts[2].json(), r#"{"type":"hologram","x":1e400}"#);
        assert_eq!(read.source.unwrap().provider.unwrap().text(), "anthropic");
    }

    #[test]
    fn nested_tool_parts_are_read_like_flat_ones() {
        let json = r#"{"role":"user","content":[{"type":"tool_use","id":null,"tool_use":{"id":"c","name":"f","input":{"n":1.50}}},{"tool_result":{"tool_use_id":"c","content":"x","is_error":true},"type":"tool_result","signature":"s"},{"type":"text","text":"t","tool_use":{"id":"d"}}]}"#;
        let message = Message::from_json(json).unwrap();
        let parts = MessageParts::of(&message).parts;
        let Part::ToolUse { id, name, input, has_more, json } = parts[0] else {
            panic!("{parts:?}")
        };
        assert_eq!((id.escaped(), name.escaped(), input), ("c", "f", r#"{"n":1.50}"#));
        assert!(!has_more && json.starts_with(r#"{"type":"tool_use","id":null,"#));
        let Part::ToolResult { id, content, is_error, .. } = parts[1] else { panic!("{parts:?}") };
        assert_eq!((id.escaped(), content, is_error), ("c", Some("\"x\""), true));
        assert_eq!(parts[1].signature().unwrap().escaped(), "s");
        assert!(matches!(parts[2], Part::Text { has_more: true, .. }));
    }

    #[test]
    fn of_a_doubled_key_the_last_counts() {
        let json = r#"{"role":"user","content":"a","cont\u0065nt":"b"}"#;
        let message = Message::from_json(json).unwrap();
        let read = MessageParts::of(&message);
        assert!(matches!(read.parts[..], [Part::Text { text, .. }] if text.text() == "b"));
        assert_eq!(message.text(), "b");
    }
}
