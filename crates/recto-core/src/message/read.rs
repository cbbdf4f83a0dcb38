//! Reads the header of a message, in one pass over its JSON.

use super::{Content, Header, Part, Span, shorten};
use crate::error::FOREIGN_ADVICE;
use crate::json::{self, Kind, start_of_value};
use crate::{Error, Role, Timestamp};

/// Maximum nesting of tool results inside tool results, independent of the limits.
const MAX_NESTED_RESULTS: usize = 1_000;

/// Fields of other formats with tool calls or call ids.
const FOREIGN_CALLS: [&str; 6] =
    ["toolCalls", "toolCallId", "tool_calls", "tool_call_id", "function_call", "functionCall"];

/// Reads the header of a message. `text` must be valid JSON.
pub(super) fn header(text: &str) -> Result<Header, Error> {
    let kind = Kind::of(text);
    if kind != Kind::Object {
        let reason = format!("a message is an object with role and content, not {}", kind.name());
        return Err(Error::message(reason));
    }
    // The last of several equal keys counts; `null` counts as absent.
    let mut role = None;
    let mut timestamp = None;
    let mut strings = [("id", None), ("name", None)];
    let mut content = None;
    let mut foreign_calls = [false; FOREIGN_CALLS.len()];
    let mut at = 1;
    loop {
        let key = json::next_value(text, at);
        if key.is_empty() {
            break;
        }
        let key_end = key.end;
        let key = json::decode_string(&text[key]);
        if key == "content" {
            let (read, end) = read_content(text, start_of_value(text, key_end));
            (content, at) = (read, end);
            continue;
        }
        let range = json::next_value(text, key_end);
        at = range.end;
        let value = Some(&text[range]).filter(|&value| value != "null");
        match &*key {
            "role" => role = value,
            "id" => strings[0].1 = value,
            "name" => strings[1].1 = value,
            "timestamp" => timestamp = value,
            key => {
                if let Some(at) = FOREIGN_CALLS.iter().position(|&foreign| foreign == key) {
                    foreign_calls[at] = value.is_some_and(|value| !is_empty_list(value));
                }
            }
        }
    }
    let is_foreign = foreign_calls.contains(&true);
    let role = read_role(role)?;
    for (name, value) in strings {
        if value.is_some_and(|value| Kind::of(value) != Kind::String) {
            return Err(Error::message_field(name, format!("{name} must be a string")));
        }
    }
    timestamp.map(self::timestamp).transpose()?;
    let content = content.unwrap_or_else(|| {
        let reason = match is_foreign {
            true => format!("content is missing; {FOREIGN_ADVICE}"),
            false => "content is missing; it is a string or a list of parts".to_owned(),
        };
        Err(Error::message_field("content", reason))
    });
    let (content, is_empty) = content?;
    if is_empty && role != Role::Tool {
        return Err(Error::EmptyContent { role, is_foreign, field: Some("content".into()) });
    }
    Ok(Header {
        edges: content.edges(text),
        content,
        timestamp_at: timestamp.map_or(0, |value| Span::of(value, text).start),
        role,
        uses_minimal_escapes: json::uses_minimal_escapes(text),
        is_foreign,
    })
}

fn is_empty_list(value: &str) -> bool {
    Kind::of(value) == Kind::Array && json::next_value(value, 1).is_empty()
}

fn read_role(value: Option<&str>) -> Result<Role, Error> {
    let roles = "system, user, assistant or tool";
    let Some(value) = value else {
        return Err(Error::message_field("role", format!("role is missing; it is {roles}")));
    };
    let name = json::quoted(value).map(json::unescape);
    name.as_deref().and_then(Role::named).ok_or_else(|| {
        Error::message_field("role", format!("role must be {roles}, not {}", shorten(value)))
    })
}

pub(super) fn timestamp(value: &str) -> Result<Timestamp, Error> {
    value.parse().map_err(|_| {
        let reason = format!(
            "timestamp must be a whole number of milliseconds since 1970, not {}",
            shorten(value)
        );
        Error::message_field("timestamp", reason)
    })
}

/// The content of a message, and whether it is empty.
type ContentResult = Result<(Content, bool), Error>;

/// Reads the content that starts at `start`; `None` if it is `null`. Also returns its end.
fn read_content(text: &str, start: usize) -> (Option<ContentResult>, usize) {
    if text.as_bytes().get(start) == Some(&b'[') {
        let mut reader = Reader { text, parts: Vec::new() };
        return match reader.list(start) {
            Ok((is_empty, end)) => (Some(Ok((reader.content(), is_empty))), end),
            Err(error) => (Some(Err(error)), json::next_value(text, start).end),
        };
    }
    let range = json::next_value(text, start);
    let end = range.end;
    let value = &text[range];
    let read = match Kind::of(value) {
        Kind::Null => return (None, end),
        Kind::String => {
            let span = Span::of(json::quoted(value).unwrap_or_default(), text);
            Ok((Content::Text(span), span.len == 0))
        }
        other => Err(Error::message_field(
            "content",
            format!("content must be a string or a list of parts, not {}", other.name()),
        )),
    };
    (Some(read), end)
}

/// Reads the parts of one message.
struct Reader<'a> {
    text: &'a str,
    parts: Vec<Part>,
}

/// The fields of a part that the engine reads, each as JSON.
#[derive(Default)]
struct PartFields<'a> {
    kind: Option<&'a str>,
    id: Option<&'a str>,
    name: Option<&'a str>,
    /// May be the JSON `null`. In every other field, `null` counts as absent.
    input: Option<&'a str>,
    text: Option<&'a str>,
    signature: Option<&'a str>,
    tool_use_id: Option<&'a str>,
    content: Option<&'a str>,
    is_error: Option<&'a str>,
    /// An object with the fields of a `tool_use` part, in the nested form.
    tool_use: Option<&'a str>,
    /// An object with the fields of a `tool_result` part, in the nested form.
    tool_result: Option<&'a str>,
}

impl<'a> PartFields<'a> {
    /// The fields of the object that starts at `start`, and its end.
    fn read(text: &'a str, start: usize) -> (PartFields<'a>, usize) {
        let mut read = PartFields::default();
        let mut at = start + 1;
        loop {
            let key = json::next_value(text, at);
            if key.is_empty() {
                return (read, (key.end + 1).min(text.len()));
            }
            let range = json::next_value(text, key.end);
            at = range.end;
            let value = &text[range];
            let present = Some(value).filter(|&value| value != "null");
            match &*json::decode_string(&text[key]) {
                "type" => read.kind = present,
                "id" => read.id = present,
                "name" => read.name = present,
                "input" => read.input = Some(value),
                "text" => read.text = present,
                "signature" => read.signature = present,
                "tool_use_id" => read.tool_use_id = present,
                "content" => read.content = present,
                "is_error" => read.is_error = present,
                "tool_use" => read.tool_use = present,
                "tool_result" => read.tool_result = present,
                _ => {}
            }
        }
    }

    /// The fields in the nested object of a tool part; `None` if the part is flat. `flat` are the fields
    /// beside `type`; a part must not have both.
    fn of_nested(
        text: &'a str,
        kind: &'static str,
        nested: Option<&'a str>,
        flat: [(&'static str, Option<&'a str>); 3],
    ) -> Result<Option<PartFields<'a>>, Error> {
        let Some(nested) = nested else { return Ok(None) };
        let is_present = |value: &Option<&str>| value.is_some_and(|value| value != "null");
        if let Some((name, _)) = flat.iter().find(|(_, value)| is_present(value)) {
            let reason = format!(
                "a {kind} part has its fields beside type or in an object {kind:?}, not in both; \
                 {name} is beside type"
            );
            return Err(Error::message_field(*name, reason));
        }
        if Kind::of(nested) != Kind::Object {
            let reason = format!("{kind} must be an object with the fields of the part");
            return Err(Error::message_field(kind, reason));
        }
        Ok(Some(PartFields::read(text, Span::of(nested, text).start as usize).0))
    }
}

impl<'a> Reader<'a> {
    fn content(self) -> Content {
        match *self.parts {
            [Part::Text(text)] => Content::Text(text),
            [Part::ToolResult { id }, Part::Text(text)] => Content::Result { id, text },
            _ => Content::Parts(self.parts.into()),
        }
    }

    /// Reads the parts of the list that starts at `start`, each followed by the parts inside it. Does
    /// not recurse, so that the limits bound the depth and not the size of the stack. Returns whether the
    /// list is empty, and its end.
    fn list(&mut self, start: usize) -> Result<(bool, usize), Error> {
        // For each open list: the number of parts read, and the offset of the next one.
        let mut open = vec![(0_usize, start + 1)];
        while let Some((number, at)) = open.last_mut() {
            let start = start_of_value(self.text, *at);
            let read = match self.text.as_bytes().get(start) {
                None | Some(b']' | b'}') => {
                    if open.len() == 1 {
                        return Ok((open[0].0 == 0, (start + 1).min(self.text.len())));
                    }
                    open.pop();
                    continue;
                }
                Some(b'{') => {
                    let fields;
                    (fields, *at) = PartFields::read(self.text, start);
                    *number += 1;
                    let is_top = open.len() == 1;
                    self.part(&fields, is_top)
                }
                Some(_) => {
                    let range = json::next_value(self.text, start);
                    *at = range.end;
                    *number += 1;
                    let kind = Kind::of(&self.text[range]).name();
                    Err(Error::message(format!("a part is an object with a type, not {kind}")))
                }
            };
            match read {
                // Reading a level skips over all levels inside it, so the cost is quadratic in the depth.
                Ok(Some(_)) if open.len() > MAX_NESTED_RESULTS => {
                    let what = "the depth of tool results inside tool results";
                    return Err(Error::too_large(what, open.len(), MAX_NESTED_RESULTS));
                }
                Ok(Some(inner)) => open.push((0, inner)),
                Ok(None) => {}
                Err(error) => {
                    let path = open.iter().map(|(number, _)| format!("content[{}]", number - 1));
                    return Err(error.within(&path.collect::<Vec<_>>().join(".")));
                }
            }
        }
        Ok((false, self.text.len()))
    }

    /// The range of a string, without its quotes.
    fn string(
        &self,
        value: Option<&str>,
        name: &'static str,
        of: &'static str,
    ) -> Result<Span, Error> {
        let inner = value.and_then(json::quoted).map(|inner| Span::of(inner, self.text));
        inner.ok_or_else(|| {
            Error::message_field(name, format!("a {of} part needs the field {name}, a string"))
        })
    }

    /// Reads a part. Returns the start of the list of parts inside it, if it has one. Calls and results
    /// count only at the top level, not inside a tool result.
    fn part(&mut self, fields: &PartFields<'a>, is_top: bool) -> Result<Option<usize>, Error> {
        let Some(kind) = fields.kind.and_then(json::quoted).map(json::unescape) else {
            return Err(Error::message_field("type", "a part needs the field type, a string"));
        };
        match &*kind {
            "text" => {
                let text = self.string(fields.text, "text", "text")?;
                self.parts.push(Part::Text(text));
            }
            "thinking" => {
                let text = self.string(fields.text, "text", "thinking")?;
                self.parts.push(Part::Thinking(text));
                if fields.signature.is_some_and(|value| Kind::of(value) != Kind::String) {
                    return Err(Error::message_field("signature", "signature must be a string"));
                }
            }
            "image" | "audio" | "file" => self.parts.push(Part::Media),
            "tool_use" => {
                let flat = [("id", fields.id), ("name", fields.name), ("input", fields.input)];
                let nested = PartFields::of_nested(self.text, "tool_use", fields.tool_use, flat)?;
                let fields = nested.as_ref().unwrap_or(fields);
                let id = self.string(fields.id, "id", "tool_use")?;
                let name = self.string(fields.name, "name", "tool_use")?;
                let input = fields.input.ok_or_else(|| {
                    Error::message_field(
                        "input",
                        "a tool_use part has an input; {} if it needs none",
                    )
                })?;
                let input = Span::of(input, self.text);
                self.parts.push(match is_top {
                    true => Part::ToolCall { id, name, input },
                    false => Part::QuotedCall { name, input },
                });
            }
            "tool_result" => {
                let flat = [
                    ("tool_use_id", fields.tool_use_id),
                    ("content", fields.content),
                    ("is_error", fields.is_error),
                ];
                let nested =
                    PartFields::of_nested(self.text, "tool_result", fields.tool_result, flat)?;
                let fields = nested.as_ref().unwrap_or(fields);
                let id = self.string(fields.tool_use_id, "tool_use_id", "tool_result")?;
                if fields.is_error.is_some_and(|value| Kind::of(value) != Kind::Bool) {
                    return Err(Error::message_field("is_error", "is_error must be true or false"));
                }
                if is_top {
                    self.parts.push(Part::ToolResult { id });
                }
                return self.result(fields.content);
            }
            _ => {}
        }
        Ok(None)
    }

    fn result(&mut self, content: Option<&'a str>) -> Result<Option<usize>, Error> {
        let Some(content) = content else { return Ok(None) };
        match Kind::of(content) {
            Kind::String => {
                let inner = json::quoted(content).unwrap_or_default();
                self.parts.push(Part::Text(Span::of(inner, self.text)));
                Ok(None)
            }
            Kind::Array => Ok(Some(Span::of(content, self.text).start as usize + 1)),
            other => Err(Error::message_field(
                "content",
                format!(
                    "a tool result's content is a string or a list of parts, not {}",
                    other.name()
                ),
            )),
        }
    }
}
