//! Detects messages in other formats. Read as Recto's own, they would lose content.

use recto_core::{Message, Role};
use serde_json::{Value, json};

use crate::parts::{MessageParts, Part};
use crate::{Collected, Format, ImportOptions, Step, import};

impl Format {
    /// The format of a message, if it has content that Recto's own format does not read, such as
    /// `tool_calls`, `parts` or the role `developer`.
    ///
    /// ```
    /// use recto_format::Format;
    ///
    /// let result = r#"{"role": "tool", "tool_call_id": "c", "content": "08:02 timeout"}"#;
    /// assert_eq!(Format::of_foreign_message(result), Some(Format::OpenAiChat));
    /// assert_eq!(Format::of_foreign_message(r#"{"role": "user", "content": "hi"}"#), None);
    /// ```
    pub fn of_foreign_message(message: &str) -> Option<Format> {
        let format = Format::recognise(message.as_bytes()).ok()?;
        if format == Format::Recto {
            return None;
        }
        let mut read = Collected::default();
        import(message, Some(format), &ImportOptions::default(), &mut read).ok()?;
        let mut converted = Vec::new();
        for step in &read.steps {
            match step {
                Step::Append(messages) => {
                    converted.extend(messages.iter().flat_map(|message| parts(message.json())));
                }
                Step::Start(_) | Step::Envelope(_) => {}
                _ => return None,
            }
        }
        let is_understood =
            !converted.is_empty() && converted.iter().all(|part| part["type"] != "unread");
        let is_another = converted != parts(message) || !has_own_role(message);
        (is_understood && is_another).then_some(format)
    }
}

/// A fast check before [`Format::of_foreign_message`] that can be wrong in one direction only: false means
/// that Recto's own format reads the whole message.
pub(crate) fn may_be_foreign(message: &Message) -> bool {
    let is_unknown = |part: &Part<'_>| match part {
        Part::Other { .. } => true,
        // Anthropic has the text in `thinking`.
        Part::Thinking { json, .. } => crate::json::get(json, "text").is_none(),
        _ => false,
    };
    message.is_foreign() || MessageParts::of(message).parts.iter().any(is_unknown)
}

fn has_own_role(message: &str) -> bool {
    let message: Value = serde_json::from_str(message).unwrap_or_default();
    message["role"].as_str().is_some_and(|role| Role::named(role).is_some())
}

/// The content parts of a message. A string becomes one text part.
fn parts(message: &str) -> Vec<Value> {
    let message: Value = serde_json::from_str(message).unwrap_or_default();
    match &message["content"] {
        Value::Array(parts) => parts.clone(),
        Value::Null => Vec::new(),
        text => vec![json!({ "type": "text", "text": text })],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_in_other_formats_are_detected() {
        for (message, format) in [
            (
                r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
                Format::OpenAiChat,
            ),
            (
                r#"{"role":"assistant","content":"a","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
                Format::OpenAiChat,
            ),
            (r#"{"role":"tool","tool_call_id":"c","content":"x"}"#, Format::OpenAiChat),
            (r#"{"role":"developer","content":"x"}"#, Format::OpenAiChat),
            (
                r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://x/y.png"}}]}"#,
                Format::OpenAiChat,
            ),
            (
                r#"{"role":"user","content":[{"type":"input_text","text":"a"}]}"#,
                Format::OpenAiResponses,
            ),
            (
                r#"{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"s"}]}"#,
                Format::Anthropic,
            ),
            (r#"{"role":"user","parts":[{"text":"hi"}]}"#, Format::Gemini),
            (r#"{"from":"human","value":"x"}"#, Format::ShareGpt),
        ] {
            assert_eq!(Format::of_foreign_message(message), Some(format), "{message}");
            if let Ok(read) = Message::from_json(message) {
                assert!(may_be_foreign(&read), "{message}");
            }
        }
        for own in [
            r#"{"role":"user","content":"a"}"#,
            r#"{"role":"user","content":""}"#,
            r#"{"role":"user"}"#,
            r#"{"role":"nobody","content":"a"}"#,
            r#"{"role":"user","name":"bob","more":1,"content":"a"}"#,
            r#"{"role":"tool","content":"x"}"#,
            r#"{"role":"tool","content":""}"#,
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]}"#,
            r#"{"role":"tool","content":[{"type":"tool_result","tool_use_id":"c","content":"x"}]}"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"x"},{"type":"text","text":"a"}]}"#,
            r#"{"role":"assistant","content":[{"type":"thinking","text":"h"},{"type":"text","text":"a"}]}"#,
            r#"{"role":"user","content":[{"type":"image","source":{"type":"url","url":"http://x/y.png"}}]}"#,
            r#"{"role":"user","content":[{"type":"file","name":"a.pdf"},{"type":"audio"}]}"#,
            r#"{"role":"user","content":[{"type":"chart","points":[1]}]}"#,
            "3",
        ] {
            assert_eq!(Format::of_foreign_message(own), None, "{own}");
        }
    }
}
