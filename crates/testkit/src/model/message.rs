//! A message: the checks of the contract, and the data that is read once, when the
//! message enters the log: role, text, media, tool calls and results (section 3).

use serde_json::{Map, Value, json};

use super::refusal::Refusal;
use super::role::Role;
use super::settings::Settings;

/// A checked message.
#[derive(Debug, Clone)]
pub(super) struct Message {
    /// The unchanged JSON, including unknown fields.
    pub(super) json: Value,
    pub(super) role: Role,
    /// For content filters and search.
    pub(super) text: String,
    /// For counting: `text`, and the texts of its thinking parts.
    pub(super) counted_text: String,
    pub(super) timestamp: Option<i64>,
    /// Number of image, audio and file parts, including those in tool results.
    pub(super) media: u64,
    /// The ids of its top-level `tool_use` parts.
    pub(super) calls: Vec<String>,
    /// The call ids of its top-level `tool_result` parts.
    pub(super) results: Vec<String>,
    /// Whether it has a tool call or a call id in a field of another format.
    pub(super) is_foreign: bool,
}

/// Fields of other formats with tool calls and call ids.
const FOREIGN_FIELDS: [&str; 6] =
    ["toolCalls", "toolCallId", "tool_calls", "tool_call_id", "function_call", "functionCall"];

/// A message in the log.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) message: Message,
    pub(super) timestamp: i64,
    pub(super) tokens: u64,
    /// Whether it is a tool description that the engine wrote.
    pub(super) is_written_by_engine: bool,
}

impl Entry {
    /// Counts the message. A missing timestamp is the time at which the message is added.
    pub(super) fn new(message: Message, settings: &Settings, now: i64) -> Entry {
        let text_tokens = (message.counted_text.len() as u64).div_ceil(4);
        let tokens = text_tokens + 3 + message.media * settings.media_tokens;
        Entry {
            timestamp: message.timestamp.unwrap_or(now),
            tokens,
            message,
            is_written_by_engine: false,
        }
    }
}

impl Message {
    /// Checks a message. `invalid_message` takes precedence over `empty_content`.
    pub(super) fn read(json: &Value) -> Result<Message, Refusal> {
        let fields = json.as_object().ok_or_else(|| Refusal::message("it is not an object"))?;
        let role = fields
            .get("role")
            .and_then(Value::as_str)
            .and_then(Role::from_name)
            .ok_or_else(|| Refusal::message("role is none of system, user, assistant, tool"))?;
        let parts = match fields.get("content") {
            Some(Value::String(text)) => vec![Part::Text(text.clone())],
            Some(Value::Array(parts)) => Part::read_list(parts)?,
            _ => return Err(Refusal::message("content is neither a string nor a list")),
        };
        optional(fields, "id", Value::is_string)?;
        optional(fields, "name", Value::is_string)?;
        let timestamp = optional(fields, "timestamp", Value::is_i64)?.and_then(Value::as_i64);

        let empty = fields["content"] == "" || parts.is_empty();
        if empty && role != Role::Tool {
            return Err(Refusal::new("empty_content", "only a tool message may be empty"));
        }
        Ok(Message::of_parts(json.clone(), role, timestamp, &parts))
    }

    /// The placeholder of an erased or pruned message: tool calls without their input, tool results with
    /// the text, or else the text alone.
    pub(super) fn replaced_by(&self, text: &str) -> Message {
        let parts = self.json["content"].as_array().into_iter().flatten();
        let parts = parts.filter_map(|part| {
            let part = part.as_object()?;
            let kind = part.get("type")?.as_str()?;
            let fields = part.get(kind).and_then(Value::as_object).unwrap_or(part);
            match kind {
                "tool_use" => Some(json!({"type": "tool_use", "id": fields["id"],
                    "name": fields["name"], "input": {}})),
                "tool_result" => Some(json!({"type": "tool_result",
                    "tool_use_id": fields["tool_use_id"], "content": text})),
                _ => None,
            }
        });
        let (calls, results): (Vec<Value>, Vec<Value>) =
            parts.partition(|part| part["type"] == "tool_use");
        let parts: Vec<Value> = calls.into_iter().chain(results).collect();
        let content = if parts.is_empty() { json!(text) } else { json!(parts) };
        let placeholder = json!({"role": self.json["role"], "content": content});
        Message::read(&placeholder).expect("a placeholder is a valid message")
    }

    fn of_parts(json: Value, role: Role, timestamp: Option<i64>, parts: &[Part]) -> Message {
        let mut calls = Vec::new();
        let mut results = Vec::new();
        for part in parts {
            match part {
                Part::ToolUse { id, .. } => calls.push(id.clone()),
                Part::ToolResult { id, .. } => results.push(id.clone()),
                _ => {}
            }
        }
        let text = joined(parts.iter().flat_map(Part::texts));
        let counted_text = joined(parts.iter().flat_map(Part::counted_texts));
        let media = parts.iter().map(Part::media).sum();
        // `null` and empty lists do not count.
        let is_filled = |value: &Value| {
            !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty())
        };
        let is_foreign = FOREIGN_FIELDS.iter().any(|field| json.get(field).is_some_and(is_filled));
        Message { json, role, text, counted_text, timestamp, media, calls, results, is_foreign }
    }
}

/// A part of a content list, or a content string.
#[derive(Debug)]
enum Part {
    Text(String),
    ToolUse {
        id: String,
        /// The name, a space and the input as compact JSON.
        text: String,
    },
    ToolResult {
        id: String,
        /// Empty if it has no content; a string is one text part.
        content: Vec<Part>,
    },
    Thinking(String),
    Media,
    /// A part of an unknown type.
    Unknown,
}

impl Part {
    fn read_list(parts: &[Value]) -> Result<Vec<Part>, Refusal> {
        parts.iter().map(Part::read).collect()
    }

    fn read(json: &Value) -> Result<Part, Refusal> {
        let fields = json.as_object().ok_or_else(|| Refusal::message("a part is not an object"))?;
        match required_text(fields, "type")?.as_str() {
            "text" => Ok(Part::Text(required_text(fields, "text")?)),
            "tool_use" => {
                let fields = tool_fields(fields, "tool_use", &["id", "name", "input"])?;
                let name = required_text(fields, "name")?;
                let input = fields
                    .get("input")
                    .ok_or_else(|| Refusal::message("a tool_use part has no input"))?;
                let text = format!("{name} {input}");
                Ok(Part::ToolUse { id: required_text(fields, "id")?, text })
            }
            "tool_result" => {
                let flat = ["tool_use_id", "content", "is_error"];
                let fields = tool_fields(fields, "tool_result", &flat)?;
                let id = required_text(fields, "tool_use_id")?;
                optional(fields, "is_error", Value::is_boolean)?;
                let content = match fields.get("content") {
                    None | Some(Value::Null) => Vec::new(),
                    Some(Value::String(text)) => vec![Part::Text(text.clone())],
                    Some(Value::Array(parts)) => Part::read_list(parts)?,
                    Some(_) => {
                        return Err(Refusal::message("a tool_result's content is malformed"));
                    }
                };
                Ok(Part::ToolResult { id, content })
            }
            "thinking" => {
                let text = required_text(fields, "text")?;
                optional(fields, "signature", Value::is_string)?;
                Ok(Part::Thinking(text))
            }
            "image" | "audio" | "file" => Ok(Part::Media),
            _ => Ok(Part::Unknown),
        }
    }

    /// Its texts, to be joined by a newline: none, one, or those of the parts of
    /// a tool result.
    fn texts(&self) -> Vec<&str> {
        match self {
            Part::Text(text) | Part::ToolUse { text, .. } => vec![text],
            Part::ToolResult { content, .. } => content.iter().flat_map(Part::texts).collect(),
            Part::Thinking(_) | Part::Media | Part::Unknown => Vec::new(),
        }
    }

    /// Its texts for counting, which include those of thinking parts.
    fn counted_texts(&self) -> Vec<&str> {
        match self {
            Part::Thinking(text) => vec![text],
            Part::ToolResult { content, .. } => {
                content.iter().flat_map(Part::counted_texts).collect()
            }
            other => other.texts(),
        }
    }

    fn media(&self) -> u64 {
        match self {
            Part::Media => 1,
            Part::ToolResult { content, .. } => content.iter().map(Part::media).sum(),
            Part::Text(_) | Part::ToolUse { .. } | Part::Thinking(_) | Part::Unknown => 0,
        }
    }
}

fn joined<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    texts.collect::<Vec<_>>().join("\n")
}

/// The fields of a tool part: those of the object in the field that has the name of its
/// type, or those of the part itself. A part with both is malformed. `null`
/// means absent.
fn tool_fields<'a>(
    part: &'a Map<String, Value>,
    kind: &str,
    flat: &[&str],
) -> Result<&'a Map<String, Value>, Refusal> {
    let is_present = |field: &&str| part.get(*field).is_some_and(|value| !value.is_null());
    match part.get(kind) {
        None | Some(Value::Null) => Ok(part),
        Some(Value::Object(_)) if flat.iter().any(is_present) => {
            Err(Refusal::message(format!("a {kind} part has its fields twice")))
        }
        Some(Value::Object(fields)) => Ok(fields),
        Some(_) => Err(Refusal::message(format!("{kind} is not an object"))),
    }
}

fn required_text(fields: &Map<String, Value>, name: &str) -> Result<String, Refusal> {
    let text = fields.get(name).and_then(Value::as_str).map(str::to_owned);
    text.ok_or_else(|| Refusal::message(format!("a part's {name} is not a string")))
}

/// An optional field; `null` means absent.
fn optional<'a>(
    fields: &'a Map<String, Value>,
    name: &str,
    is_valid: fn(&Value) -> bool,
) -> Result<Option<&'a Value>, Refusal> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) if is_valid(value) => Ok(Some(value)),
        Some(value) => Err(Refusal::message(format!("{name} is {value}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: Value) -> Result<Message, &'static str> {
        Message::read(&json).map_err(|refusal| refusal.code)
    }

    #[test]
    fn the_texts_of_parts_are_joined_by_newlines_and_parts_without_text_add_none() {
        let message = read(json!({"role": "user", "content": [
            {"type": "text", "text": "a"},
            {"type": "thinking", "text": "hidden"},
            {"type": "image"},
            {"type": "tool_use", "id": "c", "name": "search", "input": {"q": "x", "n": 1}},
            {"type": "tool_result", "tool_use_id": "c"},
            {"type": "tool_result", "tool_use_id": "c", "content": [
                {"type": "text", "text": "b"}, {"type": "file"}, {"type": "text", "text": "c"}]},
            {"type": "hologram", "text": "unknown"},
        ]}))
        .unwrap();
        assert_eq!(message.text, "a\nsearch {\"q\":\"x\",\"n\":1}\nb\nc");
        assert_eq!(message.media, 2);
        assert_eq!(message.calls, ["c"]);
        assert_eq!(message.results, ["c", "c"]);
    }

    #[test]
    fn tool_parts_in_the_nested_form_mean_the_same_as_in_the_flat_form() {
        let nested = json!({"role": "user", "content": [
            {"type": "tool_use", "cache": 1,
                "tool_use": {"id": "c", "name": "search", "input": {"q": "x"}}},
            {"type": "tool_result", "tool_result": {"tool_use_id": "c", "is_error": null,
                "content": [{"type": "text", "text": "a"}, {"type": "image"},
                    {"type": "tool_use", "tool_use": {"id": "d", "name": "n", "input": 1}}]}},
            {"type": "tool_result", "tool_result": {"tool_use_id": "e"}},
        ]});
        let message = read(nested.clone()).unwrap();
        assert_eq!(message.text, "search {\"q\":\"x\"}\na\nn 1");
        assert_eq!((message.media, &message.json), (1, &nested));
        assert_eq!(
            (message.calls, message.results),
            (vec!["c".to_owned()], vec!["c".to_owned(), "e".to_owned()])
        );
    }

    #[test]
    fn a_tool_part_has_one_form() {
        let call = json!({"id": "c", "name": "n", "input": {}});
        let result = json!({"tool_use_id": "c"});
        for part in [
            json!({"type": "tool_use", "tool_use": call, "id": "c"}),
            json!({"type": "tool_use", "tool_use": call, "input": {}}),
            json!({"type": "tool_use", "tool_use": "c"}),
            json!({"type": "tool_use", "tool_use": {"id": "c", "name": "n"}}),
            json!({"type": "tool_result", "tool_result": result, "tool_use_id": "c"}),
            json!({"type": "tool_result", "tool_result": result, "content": "x"}),
            json!({"type": "tool_result", "tool_result": result, "is_error": false}),
            json!({"type": "tool_result", "tool_result": {"tool_use_id": "c", "content": 5}}),
            json!({"type": "tool_result", "tool_result": []}),
        ] {
            let refused = read(json!({"role": "user", "content": [part]})).unwrap_err();
            assert_eq!(refused, "invalid_message", "{part}");
        }
        for part in [
            json!({"type": "tool_use", "id": "c", "name": "n", "input": {}, "tool_use": null}),
            json!({"type": "tool_result", "tool_result": result, "content": null}),
            json!({"type": "tool_use", "tool_use": call, "tool_result": 1, "content": "kept"}),
        ] {
            assert!(read(json!({"role": "user", "content": [part]})).is_ok(), "{part}");
        }
    }

    #[test]
    fn a_missing_timestamp_is_the_time_at_which_the_message_is_added() {
        let settings = Settings::default();
        let given = read(json!({"role": "user", "content": "x", "timestamp": 5})).unwrap();
        let missing = read(json!({"role": "user", "content": "x", "timestamp": null})).unwrap();
        assert_eq!(Entry::new(given, &settings, 9).timestamp, 5);
        assert_eq!(Entry::new(missing, &settings, 9).timestamp, 9);
    }

    #[test]
    fn only_a_tool_message_may_be_empty() {
        for content in [json!(""), json!([])] {
            for role in ["system", "user", "assistant"] {
                let refused = read(json!({"role": role, "content": content})).unwrap_err();
                assert_eq!(refused, "empty_content");
            }
            assert!(read(json!({"role": "tool", "content": content})).is_ok());
        }
    }

    #[test]
    fn malformed_messages_are_invalid() {
        for content in [
            json!(null),
            json!(3),
            json!(["text"]),
            json!([{}]),
            json!([{"type": 1}]),
            json!([{"type": "text"}]),
            json!([{"type": "tool_use", "id": "a", "name": "n"}]),
            json!([{"type": "tool_use", "name": "n", "input": {}}]),
            json!([{"type": "tool_result", "content": "x"}]),
            json!([{"type": "tool_result", "tool_use_id": "a", "content": 4}]),
            json!([{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text"}]}]),
            json!([{"type": "tool_result", "tool_use_id": "a", "is_error": "no"}]),
            json!([{"type": "thinking"}]),
        ] {
            let refused = read(json!({"role": "user", "content": content})).unwrap_err();
            assert_eq!(refused, "invalid_message", "{content}");
        }
        assert_eq!(read(json!("hello")).unwrap_err(), "invalid_message");
        assert_eq!(read(json!({"content": "x"})).unwrap_err(), "invalid_message");
        let text_time = json!({"role": "user", "content": "x", "timestamp": "noon"});
        assert_eq!(read(text_time).unwrap_err(), "invalid_message");
    }
}
