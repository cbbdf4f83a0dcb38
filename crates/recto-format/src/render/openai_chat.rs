//! Writer for OpenAI's chat completions: each turn is a message, and each result is a message.

use super::Body;
use super::dialect::{audio_format, plain_base64};
use super::plan::Plan;
use super::turn::{Block, Call, CallReference, ResultContent, Side, Turn};
use crate::format::openai_chat::arguments_of;
use crate::json::{self, Str};
use crate::media::{Media, MediaBody, MediaKind};

/// True for audio of the model, which OpenAI stores under an id, and for reasoning in the form of OpenRouter.
pub(super) fn is_provider_part(kind: &str, json: &str, is_assistant: bool) -> bool {
    is_assistant
        && match kind {
            "openai_audio" => audio_id(json).is_some(),
            REASONING_DETAILS => details(json).is_some(),
            _ => false,
        }
}

/// Type of the part with OpenRouter's field `reasoning_details`: a list of signed or encrypted reasoning.
pub(crate) const REASONING_DETAILS: &str = "reasoning_details";

/// The items of such a part, without the brackets of the list.
pub(crate) fn details(part: &str) -> Option<&str> {
    let list = json::get(part, REASONING_DETAILS)?.strip_prefix('[')?.strip_suffix(']')?.trim();
    (!list.is_empty()).then_some(list)
}

fn audio_id(part: &str) -> Option<Str<'_>> {
    json::get_str(json::get(part, "audio")?, "id").filter(|id| !id.is_empty())
}

pub(super) fn write(plan: &Plan<'_>, body: &mut Body) {
    body.push("\"messages\":[");
    for turn in &plan.turns {
        if std::mem::replace(&mut body.has_content, true) {
            body.push(",");
        }
        if turn.is_unstable {
            body.mark_unstable();
        }
        match &turn.original {
            Some(original) => body.push(&original.text),
            None => message(turn, plan.calls_need_reasoning, body),
        }
        for call in turn.calls_with_converted_results() {
            body.push(",");
            result(call, body);
        }
    }
    body.mark_unstable();
    body.push("]}");
}

/// Placeholder for the reasoning of calls that have none. It is a space, because Kimi rejects an empty text.
const NO_REASONING: &str = " ";

/// True if a message has calls and no reasoning.
pub(super) fn lacks_reasoning(turn: &Turn<'_>) -> bool {
    let is_reasoning = |block: &Block<'_>| match block {
        Block::Thinking { .. } => true,
        Block::ProviderPart { json, .. } => details(json).is_some(),
        _ => false,
    };
    turn.has_calls() && !turn.blocks.iter().any(is_reasoning)
}

/// Writes a message. `needs_reasoning` is true if the model rejects calls without reasoning.
fn message(turn: &Turn<'_>, needs_reasoning: bool, body: &mut Body) {
    body.push(match turn.side {
        Side::System => "{\"role\":\"system\",\"content\":",
        Side::User => "{\"role\":\"user\",\"content\":",
        Side::Assistant => "{\"role\":\"assistant\",\"content\":",
    });
    // The content consists of texts and media. Refusals have a field of their own.
    let is_content = |block: &&Block<'_>| matches!(block, Block::Text { .. } | Block::Media { .. });
    let mut content = turn.blocks.iter().filter(is_content);
    match (content.next(), content.next()) {
        (None, _) => body.push("null"),
        (Some(Block::Text { text, .. }), None) => body.quoted(text),
        _ => {
            for (number, block) in turn.blocks.iter().filter(is_content).enumerate() {
                body.push(if number == 0 { "[" } else { "," });
                part(block, body);
            }
            body.push("]");
        }
    }
    let thinking: Vec<&str> = turn
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::Thinking { text, .. } => Some(text.escaped()),
            _ => None,
        })
        .collect();
    let details: Vec<&str> = turn
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::ProviderPart { json, .. } => details(json),
            _ => None,
        })
        .collect();
    if !details.is_empty() {
        // The details contain the thinking.
        body.push(",\"reasoning_details\":[");
        body.push(&details.join(","));
        body.push("]");
    } else if !thinking.is_empty() {
        body.push(",\"reasoning_content\":");
        body.quoted(&thinking.join("\\n"));
    } else if needs_reasoning && lacks_reasoning(turn) {
        body.push(",\"reasoning_content\":");
        body.quoted(NO_REASONING);
    }
    let refusals: Vec<&str> = turn
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::Refusal(text) => Some(text.escaped()),
            _ => None,
        })
        .collect();
    if !refusals.is_empty() {
        body.push(",\"refusal\":");
        body.quoted(&refusals.join("\\n"));
    }
    let audio = turn.blocks.iter().find_map(|block| match block {
        Block::ProviderPart { json, .. } => audio_id(json),
        _ => None,
    });
    if let Some(id) = audio {
        body.push(",\"audio\":{\"id\":");
        body.quoted(id.escaped());
        body.push("}");
    }
    if let Some(name) = turn.name {
        body.push(",\"name\":");
        json::push_str(name, &mut body.out);
    }
    for (number, call) in turn.calls().enumerate() {
        body.push(if number == 0 { ",\"tool_calls\":[" } else { "," });
        tool_call(call, body);
        body.wrote_call(call);
    }
    body.push(if turn.has_calls() { "]}" } else { "}" });
}

fn part(block: &Block<'_>, body: &mut Body) {
    match block {
        Block::Text { text, .. } => {
            body.push("{\"type\":\"text\",\"text\":");
            body.quoted(text);
            body.push("}");
        }
        Block::Media { media: it, .. } => media(it, body),
        Block::Refusal(_)
        | Block::Thinking { .. }
        | Block::ProviderPart { .. }
        | Block::Call(_) => {}
    }
}

fn media(media: &Media<'_>, body: &mut Body) {
    match (media.kind, media.body) {
        (MediaKind::Image, source) => {
            body.push("{\"type\":\"image_url\",\"image_url\":{\"url\":");
            url(source, body);
            if let Some(detail) = detail(media) {
                body.push(",\"detail\":");
                body.quoted(detail);
            }
        }
        (MediaKind::Audio, MediaBody::Base64 { media_type, data }) => {
            body.push("{\"type\":\"input_audio\",\"input_audio\":{\"data\":");
            body.quoted(&plain_base64(data));
            body.push(",\"format\":");
            body.quoted(audio_format(media_type).unwrap_or("wav"));
        }
        (_, MediaBody::FileId { id, .. }) => {
            body.push("{\"type\":\"file\",\"file\":{\"file_id\":");
            body.quoted(id.escaped());
        }
        (_, source) => {
            body.push("{\"type\":\"file\",\"file\":{\"filename\":");
            body.quoted(media.name.map_or("file", Str::escaped));
            body.push(",\"file_data\":");
            url(source, body);
        }
    }
    body.push("}}");
}

/// Writes the URL of media. Inline content becomes a `data:` URL.
pub(super) fn url(source: MediaBody<'_>, body: &mut Body) {
    body.push("\"");
    match source {
        MediaBody::Url(url) => body.push(url.escaped()),
        MediaBody::Base64 { media_type, data } => {
            body.push("data:");
            body.push(media_type.escaped());
            body.push(";base64,");
            body.push(&plain_base64(data));
        }
        _ => {}
    }
    body.push("\"");
}

/// The `detail` setting of an image.
pub(crate) fn detail<'a>(media: &Media<'a>) -> Option<&'a str> {
    let detail = json::get_str(media.json, "detail")?.escaped();
    ["low", "high", "auto"].contains(&detail).then_some(detail)
}

fn tool_call(call: &Call<'_>, body: &mut Body) {
    body.push("{\"id\":");
    body.quoted(&call.id);
    let [start, input] = match call.is_custom {
        true => [",\"type\":\"custom\",\"custom\":{\"name\":", ",\"input\":\""],
        false => [",\"type\":\"function\",\"function\":{\"name\":", ",\"arguments\":\""],
    };
    body.push(start);
    body.quoted(&call.name);
    body.push(input);
    arguments_of(&call.input, &mut body.out);
    body.push("\"}}");
}

fn result(call: &Call<'_>, body: &mut Body) {
    body.push(match call.reference {
        CallReference::Id => "{\"role\":\"tool\",\"tool_call_id\":",
        CallReference::Name => "{\"role\":\"tool\",\"name\":",
        CallReference::Function => "{\"role\":\"function\",\"name\":",
    });
    body.quoted(if call.reference == CallReference::Id { &call.id } else { &call.name });
    body.push(",\"content\":");
    match &call.result.content {
        ResultContent::String(text) => body.quoted(text),
        ResultContent::Blocks(blocks) => {
            for (number, block) in blocks.iter().enumerate() {
                body.push(if number == 0 { "[" } else { "," });
                part(block, body);
            }
            body.push("]");
        }
    }
    body.push("}");
}
