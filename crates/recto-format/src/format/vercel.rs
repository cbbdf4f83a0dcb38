//! Codec of the UI messages of Vercel's AI SDK: `{id, role, parts}`.
//!
//! There is no tool role: a call and its approval, result or error are one part with a `state`. One
//! message of the assistant may contain several steps (turns of the model), separated by `step-start`.
//! Every step becomes a message of the assistant and, if its calls have results, a tool message with them.
//! A call without a result stays without one.

use std::borrow::Cow;

use recto_core::Role;

use super::message_list::{
    CallNames, Draft, FieldError, MessageCodec, ReadState, UNREADABLE_PART, unsupported_part,
};
use super::new_parts::{NewParts, kind_of};
use super::{Head, Likelihood};
use crate::Format;
use crate::json::{self, Str};
use crate::media::MediaBody;
use crate::parts::{MessageParts, Part};

pub(crate) struct Vercel;

impl MessageCodec for Vercel {
    fn recognise(&self, head: &Head) -> Likelihood {
        let mut best = Likelihood::No;
        for object in head.objects() {
            let listed = json::get(object, "messages").map(json::items).into_iter().flatten();
            for message in std::iter::once(object).chain(listed) {
                let parts = json::get(message, "parts").map(json::items).into_iter().flatten();
                let mut parts = parts.peekable();
                let has_some = parts.peek().is_some();
                let all_typed = parts.all(|part| json::get_str(part, "type").is_some());
                if json::get(message, "role").is_some() && has_some && all_typed {
                    best = Likelihood::Certain;
                }
            }
        }
        best
    }

    fn format(&self) -> Format {
        Format::Vercel
    }

    fn list_keys(&self) -> &'static [&'static str] {
        &["messages"]
    }

    fn read(&self, foreign: &str, state: &mut ReadState) -> Result<Vec<Draft>, FieldError> {
        let role = match json::get_str(foreign, "role").map(Str::escaped) {
            Some("system") => Role::System,
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            _ => return Err(FieldError::new("role", "role must be system, user or assistant")),
        };
        let Some(parts) = json::get(foreign, "parts").filter(|parts| json::is_list(parts)) else {
            return Err(FieldError::new("parts", "parts is missing; it must be a list"));
        };
        let mut steps = Steps { role, ..Steps::default() };
        for (number, part) in json::items(parts).enumerate() {
            match json::get_str(part, "type") {
                Some(kind) => steps.part(&kind.text(), part),
                None => {
                    let error = FieldError::new("type", "type is missing");
                    state.unreadable_part(&format!("parts[{number}]"), error);
                    steps.parts.raw(UNREADABLE_PART);
                }
            }
        }
        steps.end();
        match steps.drafts.is_empty() {
            true => Err(FieldError::new("parts", "no part has content")),
            false => Ok(steps.drafts),
        }
    }

    /// A message of the assistant contains the results of its calls.
    fn joins(&self, last: &MessageParts<'_>, next: &MessageParts<'_>) -> bool {
        let is_turn = |role: Role| matches!(role, Role::Assistant | Role::Tool);
        is_turn(last.role) && is_turn(next.role)
    }

    fn write(
        &self,
        pieces: &[MessageParts<'_>],
        _names: &CallNames<'_>,
        out: &mut String,
        warnings: &mut Vec<String>,
    ) {
        let Some(first) = pieces.first() else { return };
        let role = match first.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant | Role::Tool => "assistant",
        };
        out.push_str("{\"id\":\"");
        let texts: String = pieces.iter().map(|piece| piece.json).collect();
        out.push_str(&crate::source::hash(&texts));
        out.push_str(&format!("\",\"role\":\"{role}\",\"parts\":["));
        let start = out.len();
        for (number, piece) in pieces.iter().enumerate() {
            let is_step = pieces.len() > 1 && piece.role == Role::Assistant;
            if is_step && number > 0 {
                comma(start, out);
                out.push_str(r#"{"type":"step-start"}"#);
            }
            for part in &piece.parts {
                if let Part::Other { kind, .. } = part
                    && !piece.is_of(Format::Vercel)
                {
                    warnings.push(unsupported_part(*kind));
                    continue;
                }
                write_part(part, pieces, start, out, warnings);
            }
        }
        out.push_str("]}");
    }
}

/// The steps of one UI message.
struct Steps {
    role: Role,
    drafts: Vec<Draft>,
    /// Parts of the current step.
    parts: NewParts,
    /// Results of the current step.
    results: NewParts,
    provider: Option<String>,
}

impl Default for Steps {
    fn default() -> Self {
        Steps {
            role: Role::User,
            drafts: Vec::new(),
            parts: NewParts::default(),
            results: NewParts::default(),
            provider: None,
        }
    }
}

impl Steps {
    fn part(&mut self, kind: &str, part: &str) {
        if kind == "step-start" {
            self.end();
            return;
        }
        let name = kind.strip_prefix("tool-").map(|name| Cow::Owned(json::string(name)));
        let name = match kind {
            "dynamic-tool" => json::get(part, "toolName").map(Cow::Borrowed),
            _ => name,
        };
        let known = match (kind, name) {
            (_, Some(name)) => self.tool(&name, part),
            ("text", None) => json::get_str(part, "text").map(|text| self.parts.text(text, "")),
            ("reasoning", None) => self.thinking(part),
            ("file", None) => self.file(part),
            _ => None,
        };
        if known.is_none() {
            self.parts.raw(part);
        }
    }

    fn thinking(&mut self, part: &str) -> Option<()> {
        let text = json::get_str(part, "text")?;
        let mut extra = String::new();
        let providers = json::get(part, "providerMetadata").map(json::fields).into_iter().flatten();
        for (provider, fields) in providers {
            if json::get(fields, "signature").is_some() {
                json::push_fields(fields, &["signature"], &mut extra);
                self.provider = Some(provider.escaped().to_owned());
                break;
            }
        }
        self.parts.thinking(text, &extra);
        Some(())
    }

    fn file(&mut self, part: &str) -> Option<()> {
        let media_type = json::get_str(part, "mediaType")?;
        let url = json::get_str(part, "url")?;
        let name = json::get_str(part, "filename");
        self.parts.media(kind_of(&media_type.text()), MediaBody::of_url(url), name, "");
        Some(())
    }

    fn tool(&mut self, name: &str, part: &str) -> Option<()> {
        let id = json::get_str(part, "toolCallId")?;
        let input = json::get(part, "input").or(json::get(part, "rawInput")).unwrap_or("{}");
        self.parts.call(id, Str::of(name)?, input, "");
        match json::get_str(part, "state")?.escaped() {
            "output-available" => {
                let output = json::get(part, "output").unwrap_or("null");
                let text = match Str::of(output) {
                    Some(_) => Cow::Borrowed(output),
                    None => Cow::Owned(json::string(output)),
                };
                self.results.result(id, Some(&text), false, "");
            }
            "output-error" => self.results.result(id, json::get(part, "errorText"), true, ""),
            "output-denied" => {
                let reason = json::get(part, "approval").and_then(|it| json::get(it, "reason"));
                self.results.result(id, reason, true, "");
            }
            _ => {} // the call waits for input, approval or output
        }
        Some(())
    }

    /// Ends a step: adds a message with its parts and a tool message with its results, if there are any.
    fn end(&mut self) {
        let parts = std::mem::take(&mut self.parts);
        let results = std::mem::take(&mut self.results);
        let provider = self.provider.take();
        if !parts.is_empty() {
            self.drafts.push(Draft::Converted {
                role: self.role,
                content: parts.finish(),
                fields: String::new(),
                provider,
                model: None,
            });
        }
        if !results.is_empty() {
            self.drafts.push(Draft::converted(Role::Tool, results.finish()));
        }
    }
}

fn comma(start: usize, out: &mut String) {
    if out.len() > start {
        out.push(',');
    }
}

fn write_part(
    part: &Part<'_>,
    pieces: &[MessageParts<'_>],
    start: usize,
    out: &mut String,
    warnings: &mut Vec<String>,
) {
    match *part {
        Part::Text { text, .. } => {
            comma(start, out);
            out.push_str(r#"{"type":"text","text":"#);
            json::push_str(text, out);
            out.push('}');
        }
        Part::Thinking { text, .. } => {
            comma(start, out);
            out.push_str(r#"{"type":"reasoning","text":"#);
            json::push_str(text, out);
            out.push('}');
        }
        Part::Media(media) => {
            let mut url = String::new();
            let media_type = match media.body {
                MediaBody::Base64 { media_type, .. } => media_type,
                MediaBody::Url(_) => {
                    json::get_str(media.json, "media_type").unwrap_or(Str::plain("image/*"))
                }
                _ => {
                    warnings.push("a file without content or URL is not supported".into());
                    return;
                }
            };
            super::openai_chat::write_url(media.body, &mut url);
            comma(start, out);
            out.push_str(r#"{"type":"file","mediaType":"#);
            json::push_str(media_type, out);
            out.push_str(",\"url\":");
            out.push_str(&url);
            if let Some(name) = media.name {
                out.push_str(",\"filename\":");
                json::push_str(name, out);
            }
            out.push('}');
        }
        Part::ToolUse { id, name, input, .. } => {
            comma(start, out);
            write_tool(id, name, input, pieces, out, warnings);
        }
        Part::ToolResult { id, .. } => {
            if !has_call(id, pieces) {
                warnings.push(format!("the result {} without a call is not supported", id.text()));
            }
        }
        Part::Other { json, .. } => {
            comma(start, out);
            out.push_str(json);
        }
    }
}

fn has_call(wanted: Str<'_>, pieces: &[MessageParts<'_>]) -> bool {
    let mut parts = pieces.iter().flat_map(|piece| &piece.parts);
    parts.any(|part| matches!(part, Part::ToolUse { id, .. } if id.text() == wanted.text()))
}

fn write_tool(
    wanted: Str<'_>,
    name: Str<'_>,
    input: &str,
    pieces: &[MessageParts<'_>],
    out: &mut String,
    warnings: &mut Vec<String>,
) {
    let mut parts = pieces.iter().flat_map(|piece| &piece.parts);
    let result = parts.find_map(|part| match *part {
        Part::ToolResult { id, content, is_error, .. } if id.text() == wanted.text() => {
            Some((content, is_error))
        }
        _ => None,
    });
    out.push_str(r#"{"type":"dynamic-tool","toolName":"#);
    json::push_str(name, out);
    out.push_str(",\"toolCallId\":");
    json::push_str(wanted, out);
    out.push_str(match result {
        Some((_, true)) => ",\"state\":\"output-error\"",
        Some((_, false)) => ",\"state\":\"output-available\"",
        None => ",\"state\":\"input-available\"",
    });
    out.push_str(",\"input\":");
    out.push_str(input);
    if let Some((content, is_error)) = result {
        let mut texts = Vec::new();
        for part in Part::of_result(content) {
            match part {
                Part::Text { text, .. } => texts.push(text.escaped()),
                _ => warnings.push("only the texts of a result are supported".into()),
            }
        }
        out.push_str(if is_error { ",\"errorText\":\"" } else { ",\"output\":\"" });
        out.push_str(&texts.join("\\n"));
        out.push('"');
    }
    out.push('}');
}
