//! Export of messages as events of the OpenHands SDK.

use recto_core::Role;

use super::super::new_parts::NewParts;
use super::super::session::{Place, text_of};
use crate::json;
use crate::media::{MediaBody, MediaKind};
use crate::parts::{MessageParts, Part};

pub(super) fn write(
    message: &MessageParts<'_>,
    place: &Place<'_>,
    out: &mut String,
    warnings: &mut Vec<String>,
) {
    let mut events: Vec<String> = Vec::new();
    let content = content_of(message, warnings);
    let mut reasoning = String::new();
    for part in &message.parts {
        if let Part::Thinking { text, .. } = part {
            reasoning.push_str(if reasoning.is_empty() { "" } else { "\\n" });
            reasoning.push_str(text.escaped());
        }
    }
    let reasoning = match reasoning.is_empty() {
        true => String::new(),
        false => format!(",\"reasoning_content\":\"{reasoning}\""),
    };
    let is_call = |part: &&Part<'_>| matches!(part, Part::ToolUse { .. });
    let calls: Vec<&Part<'_>> = message.parts.iter().filter(is_call).collect();
    for (number, part) in calls.iter().enumerate() {
        let Part::ToolUse { id, name, input, .. } = **part else { continue };
        let (thought, reasoning) = match number {
            0 => (&*content, &*reasoning),
            _ => ("[]", ""),
        };
        let (id, name) = (format!("\"{}\"", id.escaped()), format!("\"{}\"", name.escaped()));
        let response = place.id(0);
        let arguments = json::string(input);
        events.push(format!(
            r#""source":"agent","thought":{thought}{reasoning},"action":null,"tool_name":{name},"tool_call_id":{id},"tool_call":{{"id":{id},"name":{name},"arguments":{arguments}}},"llm_response_id":"{response}","kind":"ActionEvent""#
        ));
    }
    for part in &message.parts {
        if let Part::ToolResult { id, content, is_error, .. } = *part {
            let mut name = String::new();
            if let Some(tool) = place.names.of(id) {
                name = format!("\"tool_name\":\"{}\",", tool.escaped());
            }
            let (id, text) = (id.escaped(), text_of(content));
            events.push(format!(
                r#""source":"environment",{name}"tool_call_id":"{id}","observation":{{"content":[{{"type":"text","text":{text}}}],"is_error":{is_error}}},"kind":"ObservationEvent""#
            ));
        }
    }
    let has_content = content != "[]" || !reasoning.is_empty();
    match message.role {
        Role::Assistant if !calls.is_empty() => {}
        Role::Tool if !has_content => {}
        Role::System => {
            let text = text_of(Some(&content));
            events.push(format!(
                r#""source":"agent","system_prompt":{{"type":"text","text":{text}}},"tools":[],"kind":"SystemPromptEvent""#
            ));
        }
        role => {
            let (source, role) = match role {
                Role::Assistant => ("agent", "assistant"),
                _ => ("user", "user"),
            };
            events.push(format!(
                r#""source":"{source}","llm_message":{{"role":"{role}","content":{content}{reasoning}}},"kind":"MessageEvent""#
            ));
        }
    }
    let time = place.timestamp();
    for (number, event) in events.into_iter().enumerate() {
        if number > 0 {
            out.push(',');
        }
        let id = place.id(number);
        out.push_str(&format!(r#"{{"id":"{id}","timestamp":{time},{event}}}"#));
    }
}

/// The texts and images of a message.
fn content_of(message: &MessageParts<'_>, warnings: &mut Vec<String>) -> String {
    let mut parts = NewParts::default();
    for part in &message.parts {
        match *part {
            Part::Text { text, .. } => parts.text(text, ""),
            Part::Media(media) => match (media.kind, media.body) {
                (MediaKind::Image, MediaBody::Url(url)) => {
                    let url = url.escaped();
                    parts.raw(&format!(r#"{{"type":"image","image_urls":["{url}"]}}"#));
                }
                (MediaKind::Image, MediaBody::Base64 { media_type, data }) => {
                    let (kind, data) = (media_type.escaped(), data.escaped());
                    parts.raw(&format!(
                        r#"{{"type":"image","image_urls":["data:{kind};base64,{data}"]}}"#
                    ));
                }
                _ => warnings.push("an audio or file is not supported".into()),
            },
            Part::Other { kind, .. } => {
                warnings.push(super::super::message_list::unsupported_part(kind));
            }
            _ => {}
        }
    }
    parts.finish_list()
}
