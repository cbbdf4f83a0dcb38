//! Detects and converts messages in other formats. Read as Recto's own, they would lose content.

use recto::{Message, Role};
use recto_format::{Collected, Format, ImportOptions, Step, TranscriptWarning, import};
use serde_json::{Value, json};

use crate::failure::Failure;

/// The format of a message, if it has content that Recto's own format does not read: `tool_calls`,
/// `parts`, the role `developer`.
pub(crate) fn format_of(message: &str) -> Option<Format> {
    let format = Format::recognise(message.as_bytes()).ok()?;
    if format == Format::Recto {
        return None;
    }
    let (converted, _) = convert(message, format).ok()?;
    let converted: Vec<Value> =
        converted.iter().flat_map(|message| parts(message.json())).collect();
    let is_understood =
        !converted.is_empty() && converted.iter().all(|part| part["type"] != "unread");
    let is_another = converted != parts(message) || !has_own_role(message);
    (is_understood && is_another).then_some(format)
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

/// Converts messages of a format to Recto's own. The warnings list what cannot be represented.
pub(crate) fn convert(
    text: &str,
    format: Format,
) -> Result<(Vec<Message>, Vec<TranscriptWarning>), Failure> {
    let mut read = Collected::default();
    import(text, Some(format), &ImportOptions::default(), &mut read)?;
    let mut messages = Vec::new();
    for step in read.steps {
        match step {
            Step::Append(more) => messages.extend(more),
            Step::Start(_) if messages.is_empty() => {}
            Step::Envelope(_) => {}
            _ => {
                return Err(Failure::Usage(format!(
                    "the file contains more than messages (read as {format}): other conversations, \
                     branches or compactions; use `recto import`"
                )));
            }
        }
    }
    if messages.is_empty() {
        return Err(Failure::NothingToImport { format: format.name() });
    }
    Ok((messages, read.warnings))
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
            assert_eq!(format_of(message), Some(format), "{message}");
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
            assert_eq!(format_of(own), None, "{own}");
        }
    }
}
