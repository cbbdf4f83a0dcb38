//! A model's reply, and its conversion into a Recto message.
//!
//! The conversion keeps the provider's bytes: the input of a tool call stays the text that the model
//! wrote, signatures stay unchanged, and parts that only the provider supports are stored as
//! received.

use recto::{EngineError, Limits, Message};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Attempt, Usage};

/// A tool call's input of this JSON depth or a greater one is stored as a JSON string. A message may have 64
/// levels in total.
const MAX_INPUT_DEPTH: usize = 56;

/// A model's reply.
///
/// Build one with [`Reply::new`] or [`Reply::from_text`], then assign the fields that differ.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reply {
    /// Text, thinking, tool calls and other parts, in order.
    pub parts: Vec<ReplyPart>,
    /// Why the reply ended.
    pub finish: Finish,
    /// Token usage, if the provider reports it.
    pub usage: Option<Usage>,
    /// The model that produced the reply, as the provider names it.
    pub model: Option<String>,
    /// The provider's id of the reply.
    pub id: Option<String>,
    /// Tool calls that ended inside their input, as `name: input so far`. They cannot be run and are
    /// not in `parts`.
    pub incomplete_calls: Vec<String>,
    /// Attempts that failed before this reply.
    pub attempts: Vec<Attempt>,
}

/// A part of a reply.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ReplyPart {
    /// Text.
    Text {
        /// The text.
        text: String,
        /// Sources of the text: JSON values in the provider's format.
        citations: Vec<String>,
        /// The id of the item in OpenAI's Responses API, which is sent back together with the
        /// reasoning.
        item_id: Option<String>,
    },
    /// Thinking.
    Thinking {
        /// The text; may be empty.
        text: String,
        /// The provider's signature.
        signature: Option<String>,
    },
    /// A refusal, with the model's explanation.
    Refusal(String),
    /// A tool call.
    ToolCall {
        /// The id that the result refers to.
        id: String,
        /// The name of the tool.
        name: String,
        /// The input as the model wrote it. It should be JSON; models make mistakes.
        input: String,
        /// Whether the input is free text, as in OpenAI's custom tools.
        is_custom: bool,
        /// The id of the item in OpenAI's Responses API, which is sent back together with the
        /// reasoning.
        item_id: Option<String>,
    },
    /// A part that only the provider supports, as JSON.
    Opaque(String),
}

/// Why a reply ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finish {
    /// The reply is complete.
    Stop,
    /// The model waits for the results of its tool calls.
    ToolCalls,
    /// The model reached its output token limit: the reply is incomplete.
    Length,
    /// The model refused, or the provider filtered the reply.
    Refused,
    /// The reply was interrupted: the call was cancelled or the connection broke.
    Cut,
    /// Any other reason, as the provider names it.
    Other(String),
}

impl Default for Reply {
    fn default() -> Self {
        Reply::new(Vec::new())
    }
}

impl Reply {
    /// A complete reply of these parts.
    pub fn new(parts: Vec<ReplyPart>) -> Reply {
        Reply {
            parts,
            finish: Finish::Stop,
            usage: None,
            model: None,
            id: None,
            incomplete_calls: Vec::new(),
            attempts: Vec::new(),
        }
    }

    /// A complete reply of one text.
    pub fn from_text(text: impl Into<String>) -> Reply {
        Reply::new(vec![ReplyPart::text(text)])
    }

    /// Whether the reply has no content: all parts are empty, or there are none.
    pub fn is_empty(&self) -> bool {
        self.json_parts().is_empty()
    }

    /// The text of all text parts.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            ReplyPart::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("")
    }

    /// The model's explanation of a refusal, if the provider separates it from the text.
    pub fn refusal(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            ReplyPart::Refusal(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("")
    }

    /// Whether the model refused or the provider filtered the reply.
    pub fn is_refusal(&self) -> bool {
        let refuses = |part: &ReplyPart| matches!(part, ReplyPart::Refusal(_));
        self.finish == Finish::Refused || self.parts.iter().any(refuses)
    }

    /// Whether the reply was cut off. Tool calls of an incomplete reply must not be run.
    pub fn is_incomplete(&self) -> bool {
        matches!(self.finish, Finish::Cut | Finish::Length) || !self.incomplete_calls.is_empty()
    }

    /// The message for the log; `None` if the reply is empty. `metadata` is a JSON object.
    pub(crate) fn to_message(&self, metadata: &Value) -> Result<Option<Message>, EngineError> {
        let parts = self.json_parts();
        if parts.is_empty() {
            return Ok(None);
        }
        let content = match &self.parts[..] {
            [ReplyPart::Text { text, citations, .. }] if citations.is_empty() => quoted(text),
            _ => format!("[{}]", parts.join(",")),
        };
        let json = format!(r#"{{"role":"assistant","content":{content},"metadata":{metadata}}}"#);
        Message::from_json_within(&json, &Limits { message_bytes: usize::MAX, ..Limits::default() })
            .map(Some)
    }

    fn json_parts(&self) -> Vec<String> {
        self.parts.iter().filter_map(ReplyPart::to_json).collect()
    }
}

impl ReplyPart {
    /// A text without citations.
    pub fn text(text: impl Into<String>) -> ReplyPart {
        ReplyPart::Text { text: text.into(), citations: Vec::new(), item_id: None }
    }

    /// The part in the message format of the contract; `None` if it has no content.
    fn to_json(&self) -> Option<String> {
        Some(match self {
            ReplyPart::Text { text, .. } if text.is_empty() => return None,
            ReplyPart::Text { text, citations, item_id } => {
                let citations = match citations.is_empty() {
                    true => String::new(),
                    false => format!(r#","citations":[{}]"#, citations.join(",")),
                };
                let item = item_json(item_id.as_deref());
                format!(r#"{{"type":"text","text":{}{citations}{item}}}"#, quoted(text))
            }
            ReplyPart::Thinking { text, signature: None } if text.is_empty() => return None,
            ReplyPart::Thinking { text, signature } => {
                let signature = match signature {
                    Some(signature) => format!(r#","signature":{}"#, quoted(signature)),
                    None => String::new(),
                };
                format!(r#"{{"type":"thinking","text":{}{signature}}}"#, quoted(text))
            }
            ReplyPart::Refusal(text) if text.is_empty() => return None,
            ReplyPart::Refusal(text) => {
                format!(r#"{{"type":"refusal","refusal":{}}}"#, quoted(text))
            }
            ReplyPart::ToolCall { id, name, input, is_custom, item_id } => {
                let input = match is_custom {
                    true => quoted(input),
                    false => input_json(input),
                };
                let kind = if *is_custom { r#","kind":"custom""# } else { "" };
                let (id, name, item) = (quoted(id), quoted(name), item_json(item_id.as_deref()));
                let call = format!(r#""id":{id},"name":{name},"input":{input}{kind}{item}"#);
                format!(r#"{{"type":"tool_use",{call}}}"#)
            }
            ReplyPart::Opaque(json) => json.clone(),
        })
    }
}

fn item_json(id: Option<&str>) -> String {
    id.map_or(String::new(), |id| format!(r#","item_id":{}"#, quoted(id)))
}

/// The input of a tool call as JSON. Text that is not JSON is stored as a JSON string; a tool is never
/// run with such an input.
fn input_json(input: &str) -> String {
    match recto::engine::json::value(input) {
        _ if input.trim().is_empty() => "{}".into(),
        // A JSON string marks an input that is not JSON, so an input that is a string is quoted as well.
        // An input that is nested too deeply would exceed the depth limit of a message.
        Ok(value)
            if !value.starts_with('"') && recto::engine::json::depth(value) < MAX_INPUT_DEPTH =>
        {
            value.to_owned()
        }
        _ => quoted(input),
    }
}

pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The `metadata.source` of a message: provider and model. Parts that only the provider supports
/// are sent back to this provider and model only.
pub(crate) fn source(target: recto_format::Target, model: &str) -> Value {
    json!({ "provider": target.provider(), "model": model })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(parts: Vec<ReplyPart>) -> String {
        Reply::new(parts).to_message(&json!({})).unwrap().unwrap().json().to_owned()
    }

    fn call(input: &str) -> ReplyPart {
        let (id, name, input) = ("c1".into(), "f".into(), input.into());
        ReplyPart::ToolCall { id, name, input, is_custom: false, item_id: None }
    }

    #[test]
    fn a_reply_of_one_text_is_a_string() {
        let made = message(vec![ReplyPart::text("a \"b\"")]);
        assert_eq!(made, r#"{"role":"assistant","content":"a \"b\"","metadata":{}}"#);
    }

    #[test]
    fn the_input_of_a_call_keeps_its_bytes() {
        let made = message(vec![call(r#"{"n": 1.50, "n": 1e400}"#)]);
        assert!(made.contains(r#""input":{"n": 1.50, "n": 1e400}"#), "{made}");
        assert!(message(vec![call("")]).contains(r#""input":{}"#));
        assert!(message(vec![call("{\"n\": 1")]).contains(r#""input":"{\"n\": 1""#));
        assert!(message(vec![call("\"text\"")]).contains(r#""input":"\"text\"""#));
    }

    #[test]
    fn a_reply_without_content_is_empty() {
        let silent = vec![
            ReplyPart::text(""),
            ReplyPart::Thinking { text: String::new(), signature: None },
            ReplyPart::Refusal(String::new()),
        ];
        let reply = Reply::new(silent);
        assert!(reply.is_empty());
        assert_eq!(reply.to_message(&json!({})).unwrap(), None);
    }

    #[test]
    fn thinking_without_text_keeps_its_signature() {
        let thinking = ReplyPart::Thinking { text: String::new(), signature: Some("EqQ=".into()) };
        assert!(
            message(vec![thinking]).contains(r#"{"type":"thinking","text":"","signature":"EqQ="}"#)
        );
    }
}
