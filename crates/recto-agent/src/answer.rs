//! What a model answered, and the Recto message that is made of it.
//!
//! Nothing is decoded and encoded again that need not be: the input of a call stays the text that the
//! model wrote, signatures stay byte by byte, and parts that only the provider understands are kept as
//! they came.

use recto::{EngineError, Limits, Message};
use serde_json::{Value, json};

use crate::call::Attempt;
use crate::{Finish, Usage};

/// How deep the input of a call may be: a message may be 64 levels deep in all.
const DEEPEST_INPUT: usize = 56;

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// What was said, thought and called, in order.
    pub parts: Vec<AnswerPart>,
    /// Why it ended.
    pub finish: Finish,
    /// What the provider says was used, if it does.
    pub usage: Option<Usage>,
    /// Which model the provider says has answered.
    pub model: Option<String>,
    /// What the provider calls the answer.
    pub id: Option<String>,
    /// Calls that were cut off inside their input: `name: the input so far`. They cannot be run, and
    /// are no parts.
    pub unfinished_calls: Vec<String>,
    /// What was tried before, in vain.
    pub attempts: Vec<Attempt>,
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerPart {
    /// Something said.
    Text {
        /// What is said.
        text: String,
        /// Where it is from: JSON values of the provider's own.
        citations: Vec<String>,
        /// The id of its item at OpenAI's Responses, which goes back beside its reasoning.
        item_id: Option<String>,
    },
    /// Something thought.
    Thinking {
        /// The thought.
        text: String,
        /// What the provider signed it with.
        signature: Option<String>,
    },
    /// The model will not answer.
    Refusal(String),
    /// A tool is called.
    Call {
        /// The id that its result names.
        id: String,
        /// The tool.
        name: String,
        /// What the model wrote: JSON, if all is well.
        input: String,
        /// Whether the input is free text, as in OpenAI's custom tools.
        is_custom: bool,
        /// The id of its item at OpenAI's Responses, which goes back beside its reasoning.
        item_id: Option<String>,
    },
    /// A part that only the provider understands, as JSON.
    Own(String),
}

impl Default for Answer {
    fn default() -> Self {
        Answer {
            parts: Vec::new(),
            finish: Finish::Stop,
            usage: None,
            model: None,
            id: None,
            unfinished_calls: Vec::new(),
            attempts: Vec::new(),
        }
    }
}

impl Answer {
    /// An answer that says this.
    pub fn text(text: impl Into<String>) -> Answer {
        Answer { parts: vec![AnswerPart::text(text)], ..Answer::default() }
    }

    /// Whether there is nothing in it: nothing said, nothing called.
    pub fn is_empty(&self) -> bool {
        self.written_parts().is_empty()
    }

    /// Everything that was said.
    pub fn said(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            AnswerPart::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("")
    }

    /// Why the model will not answer, in its own words, where the provider sets them apart.
    pub fn refusal(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            AnswerPart::Refusal(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("")
    }

    /// Whether the model will not answer: the provider says so, or the model does.
    pub fn is_refusal(&self) -> bool {
        let refuses = |part: &AnswerPart| matches!(part, AnswerPart::Refusal(_));
        self.finish == Finish::Refused || self.parts.iter().any(refuses)
    }

    /// Whether it was cut off, so that its calls must not be run.
    pub fn is_incomplete(&self) -> bool {
        matches!(self.finish, Finish::Cut | Finish::Length) || !self.unfinished_calls.is_empty()
    }

    /// The message for the log; `None` if the answer is empty. `metadata` is a JSON object.
    pub(crate) fn to_message(&self, metadata: &Value) -> Result<Option<Message>, EngineError> {
        let parts = self.written_parts();
        if parts.is_empty() {
            return Ok(None);
        }
        let content = match &self.parts[..] {
            [AnswerPart::Text { text, citations, .. }] if citations.is_empty() => quoted(text),
            _ => format!("[{}]", parts.join(",")),
        };
        let json = format!(r#"{{"role":"assistant","content":{content},"metadata":{metadata}}}"#);
        Message::from_json_within(&json, &Limits { message_bytes: usize::MAX, ..Limits::default() })
            .map(Some)
    }

    fn written_parts(&self) -> Vec<String> {
        self.parts.iter().filter_map(AnswerPart::to_json).collect()
    }
}

impl AnswerPart {
    /// Something said.
    pub fn text(text: impl Into<String>) -> AnswerPart {
        AnswerPart::Text { text: text.into(), citations: Vec::new(), item_id: None }
    }

    /// The part as the contract writes it; `None` if it says nothing.
    fn to_json(&self) -> Option<String> {
        Some(match self {
            AnswerPart::Text { text, .. } if text.is_empty() => return None,
            AnswerPart::Text { text, citations, item_id } => {
                let citations = match citations.is_empty() {
                    true => String::new(),
                    false => format!(r#","citations":[{}]"#, citations.join(",")),
                };
                let item = item_json(item_id.as_deref());
                format!(r#"{{"type":"text","text":{}{citations}{item}}}"#, quoted(text))
            }
            AnswerPart::Thinking { text, signature: None } if text.is_empty() => return None,
            AnswerPart::Thinking { text, signature } => {
                let signature = match signature {
                    Some(signature) => format!(r#","signature":{}"#, quoted(signature)),
                    None => String::new(),
                };
                format!(r#"{{"type":"thinking","text":{}{signature}}}"#, quoted(text))
            }
            AnswerPart::Refusal(text) if text.is_empty() => return None,
            AnswerPart::Refusal(text) => {
                format!(r#"{{"type":"refusal","refusal":{}}}"#, quoted(text))
            }
            AnswerPart::Call { id, name, input, is_custom, item_id } => {
                let input = match is_custom {
                    true => quoted(input),
                    false => input_json(input),
                };
                let kind = if *is_custom { r#","kind":"custom""# } else { "" };
                let (id, name, item) = (quoted(id), quoted(name), item_json(item_id.as_deref()));
                let call = format!(r#""id":{id},"name":{name},"input":{input}{kind}{item}"#);
                format!(r#"{{"type":"tool_use",{call}}}"#)
            }
            AnswerPart::Own(json) => json.clone(),
        })
    }
}

fn item_json(id: Option<&str>) -> String {
    id.map_or(String::new(), |id| format!(r#","item_id":{}"#, quoted(id)))
}

/// The input of a call: JSON as the model wrote it. What is no JSON becomes a string, so that it is
/// kept; a tool is never run with it.
fn input_json(input: &str) -> String {
    match recto::engine::json::value(input) {
        _ if input.trim().is_empty() => "{}".into(),
        // A string would be read as an input that was no JSON, and what is too deep is no message.
        Ok(value)
            if !value.starts_with('"') && recto::engine::json::depth(value) < DEEPEST_INPUT =>
        {
            value.to_owned()
        }
        _ => quoted(input),
    }
}

pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Who made a message, so that what only its maker may read goes back to it.
pub(crate) fn source(target: recto_format::Target, model: &str) -> Value {
    let provider = match target {
        recto_format::Target::OpenAiChat | recto_format::Target::OpenAiResponses => "openai",
        recto_format::Target::Anthropic => "anthropic",
        recto_format::Target::Gemini => "google",
    };
    json!({ "provider": provider, "model": model })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(parts: Vec<AnswerPart>) -> String {
        let answer = Answer { parts, ..Answer::default() };
        answer.to_message(&json!({})).unwrap().unwrap().json().to_owned()
    }

    fn call(input: &str) -> AnswerPart {
        let (id, name, input) = ("c1".into(), "f".into(), input.into());
        AnswerPart::Call { id, name, input, is_custom: false, item_id: None }
    }

    #[test]
    fn an_answer_of_one_text_is_a_string() {
        let made = message(vec![AnswerPart::text("a \"b\"")]);
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
    fn an_answer_that_says_nothing_is_empty() {
        let silent = vec![
            AnswerPart::text(""),
            AnswerPart::Thinking { text: String::new(), signature: None },
            AnswerPart::Refusal(String::new()),
        ];
        let answer = Answer { parts: silent, ..Answer::default() };
        assert!(answer.is_empty());
        assert_eq!(answer.to_message(&json!({})).unwrap(), None);
    }

    #[test]
    fn a_thought_without_words_keeps_its_signature() {
        let thought = AnswerPart::Thinking { text: String::new(), signature: Some("EqQ=".into()) };
        assert!(
            message(vec![thought]).contains(r#"{"type":"thinking","text":"","signature":"EqQ="}"#)
        );
    }
}
