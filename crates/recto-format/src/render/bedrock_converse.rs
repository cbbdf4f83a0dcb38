//! Writer for Amazon Bedrock's Converse API: messages of user and assistant alternate strictly. Results are
//! the first blocks of the user's next message.

use std::collections::HashMap;

use super::Body;
use super::alternating::AlternatingWriter;
use super::dialect::{is_base64, plain_base64};
use super::plan::Plan;
use super::turn::{Block, Call, ResultContent, Side, Turn};
use crate::format::bedrock_converse::{PREFIX, block_of};
use crate::json::{self, Str};
use crate::media::{Media, MediaBody};

/// Blocks in messages of the user that only Bedrock understands.
const FROM_USER: &[&str] =
    &["video", "audio", "cachePoint", "guardContent", "searchResult", "document", "image"];
/// Those of [`FROM_USER`] that may be inside a result.
const IN_RESULTS: &[&str] = &["video", "searchResult", "document", "image"];
/// Blocks in messages of the assistant that only Bedrock understands.
const FROM_ASSISTANT: &[&str] = &["reasoningContent", "cachePoint", "citationsContent"];
/// Maximum length of the name of a document, in characters.
const MAX_NAME_CHARS: usize = 200;

/// True for a part that only Bedrock understands: `{"type": "bedrock_NAME", "value": …}`.
pub(super) fn is_provider_part(kind: &str, json: &str, is_assistant: bool) -> bool {
    let own = if is_assistant { FROM_ASSISTANT } else { FROM_USER };
    kind.strip_prefix(PREFIX).is_some_and(|name| own.contains(&name))
        && json::get(json, "value").is_some_and(json::is_object)
}

/// True for a part that only Bedrock understands and that may be inside a result.
pub(super) fn is_part_of_result(kind: &str) -> bool {
    kind.strip_prefix(PREFIX).is_some_and(|name| IN_RESULTS.contains(&name))
}

pub(super) fn accepts_media(media: &Media<'_>) -> bool {
    matches!(media.body, MediaBody::Base64 { media_type, data }
        if block_of(&media_type.text()).is_some() && is_base64(data))
}

/// True if the block is a document, which a text must accompany.
pub(super) fn is_document(block: &Block<'_>) -> bool {
    match block {
        Block::Media { media, .. } => matches!(media.body, MediaBody::Base64 { media_type, .. }
            if block_of(&media_type.text()).is_some_and(|(kind, _)| kind == "document")),
        Block::ProviderPart { kind, .. } => kind.escaped().strip_prefix(PREFIX) == Some("document"),
        _ => false,
    }
}

pub(super) fn write(plan: &Plan<'_>, body: &mut Body) {
    let (system, turns): (Vec<&Turn<'_>>, Vec<&Turn<'_>>) =
        plan.turns.iter().partition(|turn| turn.is_in_system_field());
    let mut names = Names::default();
    let mut is_first = true;
    let only = body.system_field(&system);
    for block in system.iter().filter(|_| !only).flat_map(|turn| &turn.blocks) {
        body.push(if std::mem::replace(&mut is_first, false) { "\"system\":[" } else { "," });
        write_block(block, &mut names, body);
    }
    body.push(if is_first { "\"messages\":[" } else { "],\"messages\":[" });
    let mut writer = AlternatingWriter::new(
        "{\"role\":\"user\",\"content\":[",
        "{\"role\":\"assistant\",\"content\":[",
    );
    let last = first_unstable(&turns);
    for (number, turn) in turns.into_iter().enumerate() {
        if turn.is_unstable || turn.from.is_empty() || number >= last && turn.original.is_some() {
            body.mark_unstable();
        }
        for (at, block) in writer.start_turn(turn, body).iter().enumerate() {
            writer.start_block(body);
            // White space at the end of the last block may have been omitted. An append restores it.
            if number == last && turn.side == Side::Assistant && at + 1 == turn.blocks.len() {
                body.mark_unstable();
            }
            write_block(block, &mut names, body);
            body.wrote_block(block);
        }
        for call in turn.calls_with_converted_results() {
            writer.switch_to(Side::User, body);
            writer.start_block(body);
            result(call, &mut names, body);
        }
    }
    writer.end(body);
    // The tools are written after the messages, because an append can add a call, and with it a tool.
    if !plan.undescribed_tools.is_empty() {
        body.out.pop();
        for (number, name) in plan.undescribed_tools.iter().enumerate() {
            body.push(if number == 0 { ",\"toolConfig\":{\"tools\":[" } else { "," });
            body.push("{\"toolSpec\":{\"name\":");
            body.quoted(name);
            body.push(",\"inputSchema\":{\"json\":{\"type\":\"object\"}}}}");
        }
        body.push("]}}");
    }
}

/// Index of the first turn whose original bytes an append can change: the last message joins with a
/// message of the same role, and a result is rewritten together with its call.
fn first_unstable(turns: &[&Turn<'_>]) -> usize {
    let is_results = |turn: &&&Turn<'_>| turn.original.is_some() && turn.side == Side::User;
    let last = turns.len().saturating_sub(1);
    last.saturating_sub(turns.iter().rev().take_while(is_results).count())
}

/// The names of documents so far. Bedrock rejects a name that is used twice.
#[derive(Default)]
struct Names(HashMap<String, usize>);

impl Names {
    /// A name that Bedrock accepts: letters, digits, single spaces, hyphens and brackets.
    fn assign(&mut self, name: Option<Str<'_>>) -> String {
        let text = name.map(Str::text).unwrap_or_default();
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-()[]".contains(c);
        let spaced: String = text.chars().map(|c| if is_allowed(c) { c } else { ' ' }).collect();
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let name: String = words.join(" ").chars().take(MAX_NAME_CHARS - 12).collect();
        let name = if name.is_empty() { "document".to_owned() } else { name.trim_end().to_owned() };
        let count = self.0.entry(name.clone()).or_default();
        *count += 1;
        if *count == 1 { name } else { format!("{name} ({count})") }
    }
}

fn write_block(block: &Block<'_>, names: &mut Names, body: &mut Body) {
    match block {
        Block::Text { text, .. } => write_text(text, body),
        Block::Refusal(text) => write_text(text.escaped(), body),
        Block::Media { media: it, .. } => media(it, names, body),
        Block::Thinking { text, signature } => {
            body.push("{\"reasoningContent\":{\"reasoningText\":{\"text\":");
            body.quoted(text.escaped());
            if let Some(signature) = signature {
                body.push(",\"signature\":");
                body.quoted(signature.escaped());
            }
            body.push("}}}");
        }
        Block::ProviderPart { kind, json } => {
            body.push("{");
            body.quoted(kind.escaped().strip_prefix(PREFIX).unwrap_or_default());
            body.push(":");
            body.push(json::get(json, "value").unwrap_or("{}"));
            body.push("}");
        }
        Block::Call(call) => {
            body.push("{\"toolUse\":{\"toolUseId\":");
            body.quoted(&call.id);
            body.push(",\"name\":");
            body.quoted(&call.name);
            body.push(",\"input\":");
            body.push(&call.input);
            body.push("}}");
        }
    }
}

fn write_text(text: &str, body: &mut Body) {
    body.push("{\"text\":");
    body.quoted(text);
    body.push("}");
}

fn media(media: &Media<'_>, names: &mut Names, body: &mut Body) {
    let MediaBody::Base64 { media_type, data } = media.body else { return };
    let Some((kind, form)) = block_of(&media_type.text()) else { return };
    body.push(&format!("{{\"{kind}\":{{\"format\":\"{form}\""));
    if kind == "document" {
        body.push(",\"name\":");
        json::push_string(&names.assign(media.name), &mut body.out);
    }
    body.push(",\"source\":{\"bytes\":");
    body.quoted(&plain_base64(data));
    body.push("}}}");
}

fn result(call: &Call<'_>, names: &mut Names, body: &mut Body) {
    body.push("{\"toolResult\":{\"toolUseId\":");
    body.quoted(&call.id);
    body.push(",\"content\":[");
    match &call.result.content {
        ResultContent::String(text) if text.is_empty() => {}
        ResultContent::String(text) => write_text(text, body),
        ResultContent::Blocks(blocks) => {
            for (number, block) in blocks.iter().enumerate() {
                body.push(if number == 0 { "" } else { "," });
                write_block(block, names, body);
            }
        }
    }
    body.push(if call.result.is_error { "],\"status\":\"error\"}}" } else { "]}}" });
}
