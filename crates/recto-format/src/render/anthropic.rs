//! Writer for Anthropic's Messages. The content of a message that does not keep its bytes is always a list
//! of blocks, so that bytes stay stable when a block is appended. Results are the first blocks of the
//! user's next message.

use super::Body;
use super::alternating::AlternatingWriter;
use super::dialect::{IMAGES, is_base64, is_file_of, is_web, plain_base64};
use super::plan::Plan;
use super::turn::{Block, Call, ResultContent, Side, Turn};
use crate::json::{self, Str};
use crate::media::{Media, MediaBody, MediaKind};

const FROM_USER: &[&str] = &["document", "search_result", "container_upload"];
/// Blocks of the assistant. Calls and results of tools that the provider runs are not listed: their types
/// end with `_tool_use` and `_tool_result`.
const FROM_ASSISTANT: &[&str] = &["container_upload", "compaction", "fallback"];

pub(super) fn is_provider_part(kind: &str, json: &str, is_assistant: bool) -> bool {
    match kind {
        "redacted_thinking" => {
            let is_known = |(key, _): (Str<'_>, &str)| ["type", "data"].contains(&key.escaped());
            let data = json::get_str(json, "data");
            is_assistant
                && data.is_some_and(|data| !data.is_empty())
                && json::fields(json).all(is_known)
        }
        kind if is_assistant => {
            FROM_ASSISTANT.contains(&kind)
                || ["_tool_use", "_tool_result"].iter().any(|end| kind.ends_with(end))
        }
        kind => FROM_USER.contains(&kind),
    }
}

pub(super) fn accepts_media(media: &Media<'_>) -> bool {
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

/// The bytes of a message without its thinking: the other blocks and all other fields are unchanged. `None`
/// if no other block is left or if the content is not a list.
pub(super) fn without_thinking(text: &str) -> Option<String> {
    let content = json::get(text, "content").filter(|content| json::is_list(content))?;
    let is_thinking = |block: &str| {
        let kind = json::get_str(block, "type");
        kind.is_some_and(|kind| kind.is("thinking") || kind.is("redacted_thinking"))
    };
    let start_of = |part: &str| part.as_ptr().addr() - text.as_ptr().addr();
    let blocks: Vec<(usize, &str)> = json::items(content).map(|it| (start_of(it), it)).collect();
    let end_of = |&(start, block): &(usize, &str)| start + block.len();
    let (first, last) = (blocks.first()?, blocks.last()?);
    let mut out = String::with_capacity(text.len());
    out.push_str(&text[..first.0]);
    let mut is_empty = true;
    for (number, block) in blocks.iter().enumerate().filter(|(_, (_, it))| !is_thinking(it)) {
        let separator = number.checked_sub(1).map_or(first.0, |before| end_of(&blocks[before]));
        if !std::mem::replace(&mut is_empty, false) {
            out.push_str(&text[separator..block.0]);
        }
        out.push_str(block.1);
    }
    out.push_str(&text[end_of(last)..]);
    (!is_empty).then_some(out)
}

pub(super) fn write(plan: &Plan<'_>, body: &mut Body) {
    let (system, turns): (Vec<&Turn<'_>>, Vec<&Turn<'_>>) =
        plan.turns.iter().partition(|turn| turn.is_in_system_field());
    let mut is_first = true;
    let only = body.system_field(&system);
    for block in system.iter().filter(|_| !only).flat_map(|turn| &turn.blocks) {
        body.push(if std::mem::replace(&mut is_first, false) { "\"system\":[" } else { "," });
        write_block(block, body);
    }
    body.push(if is_first { "\"messages\":[" } else { "],\"messages\":[" });
    let mut writer = AlternatingWriter::new(
        "{\"role\":\"user\",\"content\":[",
        "{\"role\":\"assistant\",\"content\":[",
    );
    // The last turn that is not the placeholder at the end: an append removes that placeholder.
    let is_placeholder = turns.last().is_some_and(|turn| turn.from.is_empty());
    let last = turns.len().saturating_sub(1 + usize::from(is_placeholder));
    for (number, turn) in turns.into_iter().enumerate() {
        if number > last {
            body.mark_unstable();
        }
        if turn.is_unstable {
            body.mark_unstable();
        }
        for (at, block) in writer.start_turn(turn, body).iter().enumerate() {
            if number == last && plan.unstable_block.is_some_and(|from| at >= from) {
                body.mark_unstable();
            }
            writer.start_block(body);
            let start = body.out.len();
            write_block(block, body);
            body.wrote_block(block);
            let is_last = number == last && at + 1 == turn.blocks.len();
            if let Block::Text { text, .. } = block
                && is_last
                && !is_placeholder
                && turn.side == Side::Assistant
            {
                // White space at the end of the text may have been omitted. An append restores it.
                body.stable.get_or_insert(start + TEXT.len() + 1 + text.len());
            }
        }
        for call in turn.calls_with_converted_results() {
            writer.switch_to(Side::User, body);
            writer.start_block(body);
            result(call, body);
        }
    }
    writer.end(body);
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
        Block::ProviderPart { json, .. } => {
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

/// The `context` of a document, which the model reads and does not cite.
pub(crate) fn context<'a>(media: &Media<'a>) -> Option<Str<'a>> {
    let context = json::get_str(media.json, "context").filter(|_| media.kind == MediaKind::File);
    context.filter(|context| !context.is_blank())
}

fn result(call: &Call<'_>, body: &mut Body) {
    body.push("{\"type\":\"tool_result\",\"tool_use_id\":");
    body.quoted(&call.id);
    match &call.result.content {
        ResultContent::String(text) if text.is_empty() => {}
        ResultContent::String(text) => {
            body.push(",\"content\":");
            body.quoted(text);
        }
        ResultContent::Blocks(blocks) => {
            for (number, block) in blocks.iter().enumerate() {
                body.push(if number == 0 { ",\"content\":[" } else { "," });
                write_block(block, body);
            }
            body.push("]");
        }
    }
    if call.result.is_error {
        body.push(",\"is_error\":true");
    }
    cache(call.result.cache_control, body);
    body.push("}");
}
