//! The parts of a Recto message, as slices of its JSON.
//!
//! Recto messages are the neutral form between all formats: importers write them, exporters and
//! renderers read them. Strings stay escaped, and the input of a tool call stays the original JSON.
//!
//! In addition to the fields of the contract, these fields have a meaning in this crate:
//!
//! | field | of | meaning |
//! |---|---|---|
//! | `signature` | `thinking`, `tool_use` and `text` parts | signature by the provider; sent only to the model that produced it |
//! | `kind: "custom"` | `tool_use` parts | the input is free text, as in OpenAI's custom tools |
//! | `item_id` | `tool_use` and `text` parts | id of the item in OpenAI's Responses; sent together with the reasoning before it |
//! | `item` | `tool_use` and `tool_result` parts | the whole item, if it belongs to a built-in tool of OpenAI |
//! | `cache_control`, `citations` | all parts | kept for Anthropic |
//! | `detail` | `image` parts | kept for OpenAI |
//! | `metadata.source` | messages | origin of the message: see [`Source`](crate::Source) |
//!
//! A tool part in the nested form, such as `{"type":"tool_use","tool_use":{id,name,input}}`, is read
//! like one in the flat form. The fields of the table are beside the nested object, not in it. A part's
//! `json` is the JSON of the part as it was stored; `flat.rs` makes nested parts flat for formats that copy it.
//!
//! Images, audio and files are described in [`Media`].

use recto_core::{Message, Role};

use crate::json::{self, Cursor, Str};
use crate::{Format, Media, Source};

/// A message, divided into its parts.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MessageParts<'a> {
    /// Role of the author.
    pub role: Role,
    /// The content. A string is one text part.
    pub parts: Vec<Part<'a>>,
    /// True if the content is a string, false if it is a list.
    pub is_string: bool,
    /// Name of the author.
    pub name: Option<Str<'a>>,
    /// Origin of the message, if it was imported or records the model that produced it.
    pub source: Option<Source<'a>>,
    /// The JSON of the message.
    pub json: &'a str,
    /// True if the message has fields other than `role`, `content` and `metadata`.
    pub(crate) has_other_fields: bool,
    /// Byte offset of the value of `metadata`.
    metadata_at: Option<usize>,
}

/// One part of a message. `json` is the JSON of the whole part, or the JSON string if the content is a
/// string.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Part<'a> {
    /// Text.
    Text {
        /// The text.
        text: Str<'a>,
        /// The JSON of the part.
        json: &'a str,
        /// True if the part has fields other than those of this variant.
        has_more: bool,
        /// True if one of these other fields has a meaning in this crate, such as `cache_control`.
        has_known_fields: bool,
    },
    /// Thinking of the model.
    Thinking {
        /// The thinking.
        text: Str<'a>,
        /// Signature by the provider.
        signature: Option<Str<'a>>,
        /// The JSON of the part.
        json: &'a str,
    },
    /// An image, audio or file.
    Media(Media<'a>),
    /// A tool call.
    ToolUse {
        /// Id of the call. Its result refers to it.
        id: Str<'a>,
        /// Name of the tool.
        name: Str<'a>,
        /// Input of the tool: any JSON value.
        input: &'a str,
        /// The JSON of the part.
        json: &'a str,
        /// True if the part has fields other than those of this variant.
        has_more: bool,
        /// True if one of these other fields has a meaning in this crate, such as `cache_control`.
        has_known_fields: bool,
    },
    /// The result of a tool call.
    ToolResult {
        /// Id of the call.
        id: Str<'a>,
        /// The result: a string, a list of parts, or `None`.
        content: Option<&'a str>,
        /// True if the tool failed.
        is_error: bool,
        /// The JSON of the part.
        json: &'a str,
        /// True if the part has fields other than those of this variant.
        has_more: bool,
        /// True if one of these other fields has a meaning in this crate, such as `cache_control`.
        has_known_fields: bool,
    },
    /// A part of any other type, such as one that only one provider supports.
    Other {
        /// Type of the part.
        kind: Str<'a>,
        /// The JSON of the part.
        json: &'a str,
    },
}

impl<'a> MessageParts<'a> {
    /// Reads the parts of a message.
    pub fn of(message: &'a Message) -> MessageParts<'a> {
        MessageParts::of_json(message.role(), message.json())
    }

    /// True if the message has only a role and texts.
    pub(crate) fn is_plain(&self) -> bool {
        let is_text = |part: &Part<'_>| matches!(part, Part::Text { .. }) && !part.has_more();
        self.source.is_none()
            && self.metadata_at.is_none()
            && !self.has_other_fields
            && self.parts.iter().all(is_text)
    }

    /// The JSON up to `metadata`, if that is the last field: `{"role":…,"content":…`.
    pub(crate) fn json_without_metadata(&self) -> Option<&'a str> {
        let at = self.metadata_at?;
        let is_last = at + json::end_of(&self.json[at..]) + 1 >= self.json.trim_end().len();
        self.json[..at].strip_suffix(",\"metadata\":").filter(|_| is_last)
    }

    /// Reads the JSON of a valid Recto message.
    pub(crate) fn of_json(role: Role, json: &'a str) -> MessageParts<'a> {
        let mut read = MessageParts {
            role,
            parts: Vec::new(),
            is_string: false,
            name: None,
            source: None,
            json,
            has_other_fields: false,
            metadata_at: None,
        };
        let mut cursor = Cursor::new(json);
        cursor.enter();
        // If a key occurs several times, the last value is used, as in the engine.
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
                            read.parts = vec![Part::Text {
                                text,
                                json,
                                has_more: false,
                                has_known_fields: false,
                            }];
                        }
                    }
                },
                "name" => {
                    read.has_other_fields = true;
                    read.name = Str::of(cursor.value());
                }
                "metadata" => {
                    let (metadata, source) = Source::at(&mut cursor);
                    read.metadata_at = Some(metadata.as_ptr().addr() - json.as_ptr().addr());
                    read.source = source;
                }
                "role" => drop(cursor.value()),
                _ => {
                    read.has_other_fields = true;
                    cursor.value();
                }
            }
        }
        read
    }
}

impl MessageParts<'_> {
    /// True if the message was imported from this format or was not imported.
    pub(crate) fn is_of(&self, format: Format) -> bool {
        self.source.is_none_or(|source| source.is_from(format.name()))
    }
}

impl<'a> Part<'a> {
    /// Reads a list of parts.
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

    /// Reads the parts of a tool result's content.
    pub fn of_result(content: Option<&'a str>) -> Vec<Part<'a>> {
        match content {
            None => Vec::new(),
            Some(content) => match Str::of(content) {
                Some(text) => {
                    vec![Part::Text {
                        text,
                        json: content,
                        has_more: false,
                        has_known_fields: false,
                    }]
                }
                None => Part::list(content),
            },
        }
    }

    /// Reads the next part.
    fn at(cursor: &mut Cursor<'a>) -> Part<'a> {
        let mut read = PartFields::default();
        let start = cursor.enter();
        while let Some(b'"') = cursor.peek() {
            let key = Str::of(cursor.value()).map(Str::text).unwrap_or_default();
            read.set(&key, cursor.value());
        }
        let json = cursor.since(start);
        let PartFields {
            kind,
            id,
            name,
            input,
            text,
            signature,
            tool_use_id,
            content,
            is_error,
            tool_use,
            tool_result,
            has_more,
            has_known_fields,
        } = read.with_nested();
        let has_more = has_more || tool_use.is_some() || tool_result.is_some();
        let kind = kind.unwrap_or(Str::plain(""));
        let other = Part::Other { kind, json };
        match (&*kind.text(), text, tool_use_id, (id, name, input)) {
            ("text", Some(text), ..) => Part::Text { text, json, has_more, has_known_fields },
            ("thinking", Some(text), ..) => Part::Thinking { text, signature, json },
            ("image" | "audio" | "file", ..) => Part::Media(Media::of(json)),
            ("tool_use", _, _, (Some(id), Some(name), Some(input))) => {
                Part::ToolUse { id, name, input, json, has_more, has_known_fields }
            }
            ("tool_result", _, Some(id), _) => {
                Part::ToolResult { id, content, is_error, json, has_more, has_known_fields }
            }
            _ => other,
        }
    }

    /// The JSON of the part.
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

    /// Signature by the provider.
    pub fn signature(&self) -> Option<Str<'a>> {
        if self.has_known_fields() { json::get_str(self.json(), "signature") } else { None }
    }

    /// True if the part has fields other than those of its variant. Always true for thinking, media and parts
    /// of other types, whose fields are not examined.
    pub fn has_more(&self) -> bool {
        match self {
            Part::Text { has_more, .. }
            | Part::ToolUse { has_more, .. }
            | Part::ToolResult { has_more, .. } => *has_more,
            Part::Thinking { .. } | Part::Media(_) | Part::Other { .. } => true,
        }
    }

    /// True if the part may have other fields with a meaning in this crate, such as `cache_control`. Always
    /// true for thinking, media and parts of other types, whose fields are not examined.
    pub(crate) fn has_known_fields(&self) -> bool {
        match self {
            Part::Text { has_known_fields, .. }
            | Part::ToolUse { has_known_fields, .. }
            | Part::ToolResult { has_known_fields, .. } => *has_known_fields,
            Part::Thinking { .. } | Part::Media(_) | Part::Other { .. } => true,
        }
    }

    /// True for a tool call whose input is free text (`kind: "custom"`).
    pub fn is_custom_call(&self) -> bool {
        matches!(self, Part::ToolUse { has_known_fields: true, json, .. }
            if json::get_str(json, "kind").is_some_and(|kind| kind.text() == "custom"))
    }
}

/// The fields of a part, read in one pass.
#[derive(Default)]
struct PartFields<'a> {
    kind: Option<Str<'a>>,
    id: Option<Str<'a>>,
    name: Option<Str<'a>>,
    input: Option<&'a str>,
    text: Option<Str<'a>>,
    signature: Option<Str<'a>>,
    tool_use_id: Option<Str<'a>>,
    content: Option<&'a str>,
    is_error: bool,
    /// The nested object of a `tool_use` part.
    tool_use: Option<&'a str>,
    /// The nested object of a `tool_result` part.
    tool_result: Option<&'a str>,
    has_more: bool,
    has_known_fields: bool,
}

impl<'a> PartFields<'a> {
    /// The fields of a tool part in the flat form: those of its nested object replace the others. Any other
    /// part stays unchanged.
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
            inner.set(&key.text(), value);
        }
        let PartFields { id, name, input, tool_use_id, content, is_error, .. } = inner;
        PartFields { id, name, input, tool_use_id, content, is_error, ..self }
    }

    fn set(&mut self, key: &str, value: &'a str) {
        match key {
            "type" => self.kind = Str::of(value),
            "id" => self.id = Str::of(value),
            "name" => self.name = Str::of(value),
            "input" => self.input = Some(value),
            "text" => self.text = Str::of(value),
            "signature" => {
                self.signature = Str::of(value);
                (self.has_more, self.has_known_fields) = (true, true);
            }
            "kind" | "item_id" | "item" | "cache_control" | "citations" | "detail" => {
                (self.has_more, self.has_known_fields) = (true, true);
            }
            "tool_use_id" => self.tool_use_id = Str::of(value),
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
    fn parts_keep_their_text() {
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
        let Part::ToolUse { id, name, input, has_more, json, .. } = parts[0] else {
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
    fn the_last_value_of_a_repeated_key_is_used() {
        let json = r#"{"role":"user","content":"a","cont\u0065nt":"b"}"#;
        let message = Message::from_json(json).unwrap();
        let read = MessageParts::of(&message);
        assert!(matches!(read.parts[..], [Part::Text { text, .. }] if text.text() == "b"));
        assert_eq!(message.text(), "b");
    }
}
