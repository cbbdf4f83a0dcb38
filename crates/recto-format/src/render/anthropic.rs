//! Anthropic's messages: content is always a list of blocks, so that a message that goes on keeps its
//! bytes; results stand in front of the user's next turn.

use super::Body;
use super::dialect::{IMAGES, is_base64, is_file_of, is_web, plain_base64};
use super::plan::Plan;
use super::sides::Sides;
use super::turn::{AnswerContent, Block, Call, Side, Turn};
use crate::json::{self, Str};
use crate::media::{Media, MediaBody, MediaKind};

const FROM_USER: &[&str] = &["document", "search_result", "container_upload"];
const FROM_ASSISTANT: &[&str] = &[
    "redacted_thinking",
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "mcp_tool_use",
    "mcp_tool_result",
    "container_upload",
    "compaction",
];

pub(super) fn is_own_part(kind: &str, json: &str, is_assistant: bool) -> bool {
    match kind {
        "redacted_thinking" => {
            let is_known = |(key, _): (Str<'_>, &str)| ["type", "data"].contains(&key.escaped());
            let data = json::get_str(json, "data");
            is_assistant
                && data.is_some_and(|data| !data.is_empty())
                && json::fields(json).all(is_known)
        }
        kind if is_assistant => FROM_ASSISTANT.contains(&kind),
        kind => FROM_USER.contains(&kind),
    }
}

pub(super) fn takes_media(media: &Media<'_>) -> bool {
    match (media.kind, media.body) {
        (MediaKind::Image, MediaBody::Base64 { media_type, data }) => {
            IMAGES.contains(&&*media_type.text()) && is_base64(data)
        }
        (MediaKind::File, MediaBody::Base64 { media_type, data }) => {
            media_type.text() == "application/pdf" && is_base64(data)
        }
        (MediaKind::File, MediaBody::Text(text)) => !text.is_blank(),
        (MediaKind::Image | MediaKind::File, body) => is_web(body) || is_file_of(body, "anthropic"),
        (MediaKind::Audio, _) => false,
    }
}

pub(super) fn write(plan: &Plan<'_>, body: &mut Body) {
    let (system, turns): (Vec<&Turn<'_>>, Vec<&Turn<'_>>) =
        plan.turns.iter().partition(|turn| turn.side == Side::System);
    let mut is_first = true;
    for block in system.iter().flat_map(|turn| &turn.blocks) {
        body.push(if std::mem::replace(&mut is_first, false) { "\"system\":[" } else { "," });
        write_block(block, body);
    }
    body.push(if is_first { "\"messages\":[" } else { "],\"messages\":[" });
    let mut sides =
        Sides::new("{\"role\":\"user\",\"content\":[", "{\"role\":\"assistant\",\"content\":[");
    // The last turn that is somebody's: a placeholder gives way to what is appended.
    let is_placeholder = turns.last().is_some_and(|turn| turn.from.is_empty());
    let last = turns.len().saturating_sub(1 + usize::from(is_placeholder));
    for (number, turn) in turns.into_iter().enumerate() {
        if number > last {
            body.may_change();
        }
        sides.go_on(turn.side, body);
        for (at, block) in turn.blocks.iter().enumerate() {
            if number == last && plan.open.is_some_and(|from| at >= from) {
                body.may_change();
            }
            sides.next(body);
            let start = body.out.len();
            write_block(block, body);
            body.said(block);
            let is_last = number == last && at + 1 == turn.blocks.len();
            if let Block::Text { text, .. } = block
                && is_last
                && !is_placeholder
                && turn.side == Side::Assistant
            {
                // White space at its end was left out, and comes back once it is not the last.
                body.stable.get_or_insert(start + TEXT.len() + 1 + text.len());
            }
        }
        for call in turn.calls() {
            sides.go_on(Side::User, body);
            sides.next(body);
            result(call, body);
        }
    }
    sides.end(body);
}

const TEXT: &str = "{\"type\":\"text\",\"text\":";

fn write_block(block: &Block<'_>, body: &mut Body) {
    match block {
        Block::Text { text, extra } => {
            body.push(TEXT);
            body.quoted(text);
            if let Some(citations) = extra.citations {
                body.push(",\"citations\":");
                body.push(citations);
            }
            cache(extra.cache_control, body);
        }
        Block::Refusal(text) => {
            body.push(TEXT);
            body.quoted(text.escaped());
        }
        Block::Media { media: it, extra } => {
            media(it, body);
            if let Some(citations) = extra.citations {
                body.push(",\"citations\":");
                body.push(citations);
            }
            cache(extra.cache_control, body);
        }
        Block::Thinking { text, signature } => {
            body.push("{\"type\":\"thinking\",\"thinking\":");
            body.quoted(text.escaped());
            body.push(",\"signature\":");
            body.quoted(signature.map_or("", Str::escaped));
        }
        Block::Own { json, .. } => {
            body.push(json);
            return;
        }
        Block::Call(call) => {
            body.push("{\"type\":\"tool_use\",\"id\":");
            body.quoted(&call.id);
            body.push(",\"name\":");
            body.quoted(&call.name);
            body.push(",\"input\":");
            body.push(&call.input);
            cache(call.extra.cache_control, body);
        }
    }
    body.push("}");
}

fn cache(mark: Option<&str>, body: &mut Body) {
    if let Some(mark) = mark {
        body.push(",\"cache_control\":");
        body.push(mark);
    }
}

fn media(media: &Media<'_>, body: &mut Body) {
    body.push(match media.kind {
        MediaKind::Image => "{\"type\":\"image\",\"source\":{",
        _ => "{\"type\":\"document\",\"source\":{",
    });
    match media.body {
        MediaBody::Base64 { media_type, data } => {
            body.push("\"type\":\"base64\",\"media_type\":");
            body.quoted(media_type.escaped());
            body.push(",\"data\":");
            body.quoted(&plain_base64(data));
        }
        MediaBody::Url(url) => {
            body.push("\"type\":\"url\",\"url\":");
            body.quoted(url.escaped());
        }
        MediaBody::FileId { id, .. } => {
            body.push("\"type\":\"file\",\"file_id\":");
            body.quoted(id.escaped());
        }
        MediaBody::Text(text) => {
            body.push("\"type\":\"text\",\"media_type\":\"text/plain\",\"data\":");
            body.quoted(text.escaped());
        }
        MediaBody::Unknown => {}
    }
    body.push("}");
    if let (MediaKind::File, Some(name)) = (media.kind, media.name) {
        body.push(",\"title\":");
        body.quoted(name.escaped());
    }
    if let Some(context) = context(media) {
        body.push(",\"context\":");
        body.quoted(context.escaped());
    }
}

/// What the model is told of a document and does not cite.
pub(crate) fn context<'a>(media: &Media<'a>) -> Option<Str<'a>> {
    let context = json::get_str(media.json, "context").filter(|_| media.kind == MediaKind::File);
    context.filter(|context| !context.is_blank())
}

fn result(call: &Call<'_>, body: &mut Body) {
    body.push("{\"type\":\"tool_result\",\"tool_use_id\":");
    body.quoted(&call.id);
    match &call.answer.content {
        AnswerContent::String(text) if text.is_empty() => {}
        AnswerContent::String(text) => {
            body.push(",\"content\":");
            body.quoted(text);
        }
        AnswerContent::Blocks(blocks) => {
            for (number, block) in blocks.iter().enumerate() {
                body.push(if number == 0 { ",\"content\":[" } else { "," });
                write_block(block, body);
            }
            body.push("]");
        }
    }
    if call.answer.is_error {
        body.push(",\"is_error\":true");
    }
    cache(call.answer.cache_control, body);
    body.push("}");
}
