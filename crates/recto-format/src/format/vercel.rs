//! Vercel's UI messages: `{id, role, parts}`.
//!
//! There is no tool role: a call, its approval, its result or its error are one part with a `state`,
//! and one message of the assistant may span several turns of the model, divided by `step-start`. Here
//! every step is a message from the assistant and one from the tools that it called. A call that was
//! never answered stays a call without a result.

use std::borrow::Cow;

use recto_core::Role;

use super::message_list::{CallNames, Draft, Memory, MessageForm, Misfit, UNREAD};
use super::new_parts::{NewParts, kind_of};
use super::{Head, Likelihood};
use crate::Format;
use crate::json::{self, Str};
use crate::media::MediaBody;
use crate::parts::{MessageParts, Part};

pub(crate) struct Vercel;

impl MessageForm for Vercel {
    fn recognise(&self, head: &Head) -> Likelihood {
        let mut most = Likelihood::No;
        for object in head.objects() {
            let listed = json::get(object, "messages").map(json::items).into_iter().flatten();
            for message in std::iter::once(object).chain(listed) {
                let parts = json::get(message, "parts").map(json::items).into_iter().flatten();
                let mut parts = parts.peekable();
                let has_some = parts.peek().is_some();
                let all_typed = parts.all(|part| json::get_str(part, "type").is_some());
                if json::get(message, "role").is_some() && has_some && all_typed {
                    most = Likelihood::Surely;
                }
            }
        }
        most
    }

    fn format(&self) -> Format {
        Format::Vercel
    }

    fn list_keys(&self) -> &'static [&'static str] {
        &["messages"]
    }

    fn read(&self, foreign: &str, memory: &mut Memory) -> Result<Vec<Draft>, Misfit> {
        let role = match json::get_str(foreign, "role").map(Str::escaped) {
            Some("system") => Role::System,
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            _ => return Err(Misfit::new("role", "role is system, user or assistant")),
        };
        let Some(parts) = json::get(foreign, "parts").filter(|parts| json::is_list(parts)) else {
            return Err(Misfit::new("parts", "parts is missing; it is a list"));
        };
        let mut steps = Steps { role, ..Steps::default() };
        for (number, part) in json::items(parts).enumerate() {
            match json::get_str(part, "type") {
                Some(kind) => steps.part(&kind.text(), part),
                None => {
                    let misfit = Misfit::new("type", "a part has a type");
                    memory.unread(&format!("parts[{number}]"), misfit);
                    steps.said.raw(UNREAD);
                }
            }
        }
        steps.end();
        match steps.drafts.is_empty() {
            true => Err(Misfit::new("parts", "nothing is said in any part")),
            false => Ok(steps.drafts),
        }
    }

    /// The answers to the calls of one message belong into it.
    fn joins(&self, last: &MessageParts<'_>, next: &MessageParts<'_>) -> bool {
        let is_turn = |role: Role| matches!(role, Role::Assistant | Role::Tool);
        is_turn(last.role) && is_turn(next.role)
    }

    fn write(
        &self,
        pieces: &[MessageParts<'_>],
        _names: &CallNames<'_>,
        out: &mut String,
        remarks: &mut Vec<String>,
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
                    remarks.push(format!("a part of type {} has no place", kind.text()));
                    continue;
                }
                write_part(part, pieces, start, out, remarks);
            }
        }
        out.push_str("]}");
    }
}

/// The steps of one UI message.
struct Steps {
    role: Role,
    drafts: Vec<Draft>,
    said: NewParts,
    results: NewParts,
    provider: Option<String>,
}

impl Default for Steps {
    fn default() -> Self {
        Steps {
            role: Role::User,
            drafts: Vec::new(),
            said: NewParts::default(),
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
            ("text", None) => json::get_str(part, "text").map(|text| self.said.text(text, "")),
            ("reasoning", None) => self.thought(part),
            ("file", None) => self.file(part),
            _ => None,
        };
        if known.is_none() {
            self.said.raw(part);
        }
    }

    fn thought(&mut self, part: &str) -> Option<()> {
        let text = json::get_str(part, "text")?;
        let mut extra = String::new();
        let makers = json::get(part, "providerMetadata").map(json::fields).into_iter().flatten();
        for (provider, fields) in makers {
            if json::get(fields, "signature").is_some() {
                json::push_fields(fields, &["signature"], &mut extra);
                self.provider = Some(provider.escaped().to_owned());
                break;
            }
        }
        self.said.thinking(text, &extra);
        Some(())
    }

    fn file(&mut self, part: &str) -> Option<()> {
        let media_type = json::get_str(part, "mediaType")?;
        let url = json::get_str(part, "url")?;
        let name = json::get_str(part, "filename");
        self.said.media(kind_of(&media_type.text()), MediaBody::of_url(url), name, "");
        Some(())
    }

    fn tool(&mut self, name: &str, part: &str) -> Option<()> {
        let id = json::get_str(part, "toolCallId")?;
        let input = json::get(part, "input").or(json::get(part, "rawInput")).unwrap_or("{}");
        self.said.call(id, Str::of(name)?, input, "");
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
            _ => {} // still waiting for input, approval or its output
        }
        Some(())
    }

    /// A step of the model ends: what it said, then what the tools answered.
    fn end(&mut self) {
        let said = std::mem::take(&mut self.said);
        let results = std::mem::take(&mut self.results);
        let provider = self.provider.take();
        if !said.is_empty() {
            self.drafts.push(Draft::Made {
                role: self.role,
                content: said.finish(),
                fields: String::new(),
                provider,
                model: None,
            });
        }
        if !results.is_empty() {
            self.drafts.push(Draft::made(Role::Tool, results.finish()));
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
    remarks: &mut Vec<String>,
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
                    remarks.push("a file without its bytes or address has no place".into());
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
            write_tool(id, name, input, pieces, out, remarks);
        }
        Part::ToolResult { id, .. } => {
            if !has_call(id, pieces) {
                remarks.push(format!("the result {} has no call, and no place", id.text()));
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
    remarks: &mut Vec<String>,
) {
    let mut parts = pieces.iter().flat_map(|piece| &piece.parts);
    let answer = parts.find_map(|part| match *part {
        Part::ToolResult { id, content, is_error, .. } if id.text() == wanted.text() => {
            Some((content, is_error))
        }
        _ => None,
    });
    out.push_str(r#"{"type":"dynamic-tool","toolName":"#);
    json::push_str(name, out);
    out.push_str(",\"toolCallId\":");
    json::push_str(wanted, out);
    out.push_str(match answer {
        Some((_, true)) => ",\"state\":\"output-error\"",
        Some((_, false)) => ",\"state\":\"output-available\"",
        None => ",\"state\":\"input-available\"",
    });
    out.push_str(",\"input\":");
    out.push_str(input);
    if let Some((content, is_error)) = answer {
        let mut texts = Vec::new();
        for part in Part::of_result(content) {
            match part {
                Part::Text { text, .. } => texts.push(text.escaped()),
                _ => remarks.push("only the texts of a result have a place".into()),
            }
        }
        out.push_str(if is_error { ",\"errorText\":\"" } else { ",\"output\":\"" });
        out.push_str(&texts.join("\\n"));
        out.push('"');
    }
    out.push('}');
}
