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
//! | `cache_control`, `citations` | on parts | kept for Anthropic |
//! | `detail` | on `image` | kept for OpenAI |
//! | `metadata.source` | on messages | where the message comes from: see [`Source`](crate::Source) |
//!
//! Images, audio and files are described in [`Media`].

use recto_core::{Message, Role};

use crate::json::{self, Str};
use crate::{Media, Source};

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
    fn of_json(role: Role, json: &'a str) -> MessageParts<'a> {
        let mut read = MessageParts {
            role,
            parts: Vec::new(),
            is_string: false,
            name: None,
            source: None,
            json,
        };
        // The last of several equal keys counts, as everywhere.
        let mut content = None;
        for (key, value) in json::fields(json) {
            match key.escaped() {
                "content" => content = Some(value),
                "name" => read.name = Str::of(value),
                "metadata" => read.source = Source::of(value),
                "role" => {}
                escaped if escaped.contains('\\') => match &*key.text() {
                    "content" => content = Some(value),
                    "name" => read.name = Str::of(value),
                    "metadata" => read.source = Source::of(value),
                    _ => {}
                },
                _ => {}
            }
        }
        let content = content.unwrap_or("[]");
        match Str::of(content) {
            Some(text) => {
                read.is_string = true;
                read.parts.push(Part::Text { text, json: content });
            }
            None => read.parts = Part::list(content),
        }
        read
    }
}

impl<'a> Part<'a> {
    /// The parts of a list.
    pub fn list(list: &'a str) -> Vec<Part<'a>> {
        json::items(list).map(Part::of).collect()
    }

    /// The parts of a tool result's content.
    pub fn of_result(content: Option<&'a str>) -> Vec<Part<'a>> {
        match content {
            None => Vec::new(),
            Some(content) => match Str::of(content) {
                Some(text) => vec![Part::Text { text, json: content }],
                None => Part::list(content),
            },
        }
    }

    /// Reads a part of a message that was checked when it came in.
    fn of(json: &'a str) -> Part<'a> {
        let kind = json::get_str(json, "type").unwrap_or(Str::plain(""));
        let other = Part::Other { kind, json };
        match &*kind.text() {
            "text" => match json::get_str(json, "text") {
                Some(text) => Part::Text { text, json },
                None => other,
            },
            "thinking" => match json::get_str(json, "text") {
                Some(text) => {
                    Part::Thinking { text, signature: json::get_str(json, "signature"), json }
                }
                None => other,
            },
            "image" | "audio" | "file" => Part::Media(Media::of(json)),
            "tool_use" => {
                let (mut id, mut name, mut input) = (None, None, None);
                for (key, value) in json::fields(json) {
                    match &*key.text() {
                        "id" => id = Str::of(value),
                        "name" => name = Str::of(value),
                        "input" => input = Some(value),
                        _ => {}
                    }
                }
                match (id, name, input) {
                    (Some(id), Some(name), Some(input)) => Part::ToolUse { id, name, input, json },
                    _ => other,
                }
            }
            "tool_result" => match json::get_str(json, "tool_use_id") {
                Some(id) => Part::ToolResult {
                    id,
                    content: json::get(json, "content"),
                    is_error: json::get(json, "is_error") == Some("true"),
                    json,
                },
                None => other,
            },
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
        json::get_str(self.json(), "signature")
    }

    /// Whether it is a call whose input is free text (`kind: "custom"`).
    pub fn is_custom_call(&self) -> bool {
        let kind = json::get_str(self.json(), "kind");
        matches!(self, Part::ToolUse { .. }) && kind.is_some_and(|kind| kind.text() == "custom")
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
    fn of_a_doubled_key_the_last_counts() {
        let json = r#"{"role":"user","content":"a","cont\u0065nt":"b"}"#;
        let message = Message::from_json(json).unwrap();
        let read = MessageParts::of(&message);
        assert!(matches!(read.parts[..], [Part::Text { text, .. }] if text.text() == "b"));
        assert_eq!(message.text(), "b");
    }
}
