//! Writer for OpenAI's Responses: a flat list of items. Results follow the calls of their turn.

use super::Body;
use super::dialect::is_web;
use super::openai_chat::{detail, url};
use super::plan::Plan;
use super::turn::{Block, Call, ResultContent, Side, Turn};
use crate::format::openai_chat::arguments_of;
use crate::json::{self, Str};
use crate::media::{Media, MediaBody, MediaKind};

/// Items that the model produces and that may have no id. Unknown items of the model have one.
const MADE_BY_THE_MODEL: &[&str] = &[
    "file_search_call",
    "web_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_list_tools",
    "mcp_call",
    "compaction",
    "tool_search_call",
    "tool_search_output",
];

/// Items of the model with the items that hold their outputs. The provider runs these tools, or the client
/// does. If the provider does, both items are in one response.
const WITH_OUTPUT: &[(&str, &str)] = &[
    ("tool_search_call", "tool_search_output"),
    ("program", "program_output"),
    ("local_shell_call", "local_shell_call_output"),
    ("shell_call", "shell_call_output"),
    ("apply_patch_call", "apply_patch_call_output"),
    ("computer_call", "computer_call_output"),
];

/// Items that a client adds, other than messages and outputs of tools.
const FROM_THE_CLIENT: &[&str] =
    &["additional_tools", "mcp_approval_response", "compaction_trigger"];

/// The item that must be beside an item of this type.
pub(super) fn pair_of(kind: &str) -> Option<&'static str> {
    WITH_OUTPUT.iter().find_map(|&(call, output)| match kind {
        _ if kind == call => Some(output),
        _ if kind == output => Some(call),
        _ => None,
    })
}

/// True if a reasoning item contains the reasoning. OpenAI reads only encrypted reasoning; other providers
/// also read texts.
pub(super) fn has_content(reasoning: &str, is_openai: bool) -> bool {
    let texts = json::get(reasoning, "content").filter(|texts| json::is_list(texts));
    json::get_str(reasoning, "encrypted_content").is_some()
        || !is_openai && texts.is_some_and(|texts| json::items(texts).next().is_some())
}

/// True if the id has the form of the provider's ids: a prefix for the type of the item, and letters.
pub(super) fn is_item_id(id: Str<'_>, prefix: &str) -> bool {
    let id = id.escaped();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    id.starts_with(prefix) && !id.is_empty() && id.len() <= 64 && id.chars().all(is_word)
}

/// True if the model produced an item and, if `needs_id`, the item has its id: only such an item can
/// follow reasoning. Outputs of tools, and items that a client adds, are not the model's.
pub(super) fn is_output(item: &str, needs_id: bool) -> bool {
    let fields = json::Object::of(item);
    let has_id = fields.get_str("id").is_some_and(|id| !id.is_empty());
    let is_made = match fields.get_str("type").map(Str::escaped) {
        None | Some("message") => fields.get_str("role").is_some_and(|role| role.is("assistant")),
        Some("item_reference") => true,
        Some(kind) => !kind.ends_with("_output") && !FROM_THE_CLIENT.contains(&kind),
    };
    is_made && (has_id || !needs_id)
}

pub(super) fn is_provider_part(kind: &str, json: &str, is_assistant: bool) -> bool {
    let id = json::get_str(json, "id");
    let is_id = |prefix: &str| id.is_none_or(|id| is_item_id(id, prefix));
    let fields = ["type", "id", "summary", "content", "encrypted_content", "status"];
    is_assistant
        && match kind {
            "reasoning" => {
                is_id("")
                    && json::get(json, "summary").is_some_and(json::is_list)
                    && json::fields(json).all(|(key, _)| fields.contains(&key.escaped()))
            }
            "web_search_call" => is_id("ws"),
            "message" | "item_reference" | "function_call" | "custom_tool_call" => false,
            kind if FROM_THE_CLIENT.contains(&kind) => false,
            // A block of another provider, which has an id too.
            kind if kind.ends_with("_tool_use") => false,
            kind if kind.ends_with("_output") && pair_of(kind).is_none() => false,
            kind => is_id("") && (id.is_some() || MADE_BY_THE_MODEL.contains(&kind)),
        }
}

pub(super) fn write(plan: &Plan<'_>, body: &mut Body) {
    let is_in_field =
        |turn: &&Turn<'_>| turn.original.as_ref().is_some_and(|original| original.field.is_some());
    let (fields, turns): (Vec<&Turn<'_>>, Vec<&Turn<'_>>) =
        plan.turns.iter().partition(is_in_field);
    for (number, original) in fields.iter().filter_map(|turn| turn.original.as_ref()).enumerate() {
        body.push(if number == 0 { "" } else { "," });
        body.field(original);
    }
    // A string `input` is a field, and the whole history.
    if fields.iter().any(|turn| turn.side == Side::User) {
        body.has_content = true;
        body.mark_unstable();
        return body.push("}");
    }
    body.push(if fields.is_empty() { "\"input\":[" } else { ",\"input\":[" });
    for turn in turns {
        if turn.is_unstable {
            body.mark_unstable();
        }
        match &turn.original {
            Some(original) => {
                next_item(body);
                body.push(&original.text);
            }
            None => {
                items(turn, body);
                continue;
            }
        }
        outputs(turn.calls_with_converted_results(), body);
    }
    body.mark_unstable();
    body.push("]}");
}

fn next_item(body: &mut Body) {
    if std::mem::replace(&mut body.has_content, true) {
        body.push(",");
    }
}

fn outputs<'t, 'a: 't>(calls: impl IntoIterator<Item = &'t Call<'a>>, body: &mut Body) {
    for call in calls {
        next_item(body);
        output(call, body);
    }
}

/// Writes a turn with the outputs of its calls. Texts and media are collected into messages; calls and items
/// of the model separate them. The outputs of calls precede a text behind the calls.
fn items(turn: &Turn<'_>, body: &mut Body) {
    let mut is_open = false;
    let mut unanswered: Vec<&Call<'_>> = Vec::new();
    for block in &turn.blocks {
        let is_content =
            matches!(block, Block::Text { .. } | Block::Refusal(_) | Block::Media { .. });
        if is_content {
            outputs(unanswered.drain(..), body);
        }
        let id = match block {
            Block::Text { extra, .. } => extra.item_id.filter(|_| turn.side == Side::Assistant),
            _ => None,
        };
        // A text with an id starts an item of its own.
        if is_open && id.is_some() {
            body.push("]}");
            is_open = false;
        }
        match (is_content, is_open) {
            (true, true) => body.push(","),
            (true, false) => {
                next_item(body);
                body.push("{\"type\":\"message\",");
                if let Some(id) = id {
                    body.push("\"id\":");
                    body.quoted(id.escaped());
                    body.push(",\"status\":\"completed\",");
                }
                body.push(match turn.side {
                    Side::System => "\"role\":\"system\",\"content\":[",
                    Side::User => "\"role\":\"user\",\"content\":[",
                    Side::Assistant => "\"role\":\"assistant\",\"content\":[",
                });
            }
            (false, true) => body.push("]}"),
            (false, false) => {}
        }
        is_open = is_content;
        match block {
            Block::Call(it) => {
                next_item(body);
                call(it, body);
                unanswered.extend(Some(&**it).filter(|it| !it.result.is_original));
            }
            Block::ProviderPart { json, .. } => {
                next_item(body);
                body.push(json);
            }
            content => part(content, turn.side == Side::Assistant, body),
        }
        body.wrote_block(block);
    }
    if is_open {
        body.push("]}");
    }
    outputs(unanswered, body);
}

fn part(block: &Block<'_>, is_assistant: bool, body: &mut Body) {
    match block {
        Block::Text { text, extra } => {
            body.push(match is_assistant {
                true => "{\"type\":\"output_text\",\"text\":",
                false => "{\"type\":\"input_text\",\"text\":",
            });
            body.quoted(text);
            // Items of the model must have annotations; the list may be empty.
            let is_item = is_assistant && extra.item_id.is_some();
            body.push(if is_item { ",\"annotations\":[]}" } else { "}" });
        }
        Block::Refusal(text) => {
            body.push("{\"type\":\"refusal\",\"refusal\":");
            body.quoted(text.escaped());
            body.push("}");
        }
        Block::Media { media: it, .. } => media(it, body),
        Block::Thinking { .. } | Block::ProviderPart { .. } | Block::Call(_) => {}
    }
}

fn media(media: &Media<'_>, body: &mut Body) {
    match (media.kind, media.body) {
        (MediaKind::Image, source) => {
            body.push("{\"type\":\"input_image\",");
            match source {
                MediaBody::FileId { id, .. } => {
                    body.push("\"file_id\":");
                    body.quoted(id.escaped());
                }
                _ => {
                    body.push("\"image_url\":");
                    url(source, body);
                }
            }
            if let Some(detail) = detail(media) {
                body.push(",\"detail\":");
                body.quoted(detail);
            }
        }
        (_, MediaBody::FileId { id, .. }) => {
            body.push("{\"type\":\"input_file\",\"file_id\":");
            body.quoted(id.escaped());
        }
        (_, source) if is_web(source) => {
            body.push("{\"type\":\"input_file\",\"file_url\":");
            url(source, body);
        }
        (_, source) => {
            body.push("{\"type\":\"input_file\",\"filename\":");
            body.quoted(media.name.map_or("file", Str::escaped));
            body.push(",\"file_data\":");
            url(source, body);
        }
    }
    body.push("}");
}

fn call(call: &Call<'_>, body: &mut Body) {
    if let Some(item) = call.extra.item {
        return body.push(item);
    }
    let [start, input] = match call.is_custom {
        true => ["{\"type\":\"custom_tool_call\"", ",\"input\":\""],
        false => ["{\"type\":\"function_call\"", ",\"arguments\":\""],
    };
    body.push(start);
    if let Some(id) = call.extra.item_id {
        body.push(",\"id\":");
        body.quoted(id.escaped());
    }
    body.push(",\"call_id\":");
    body.quoted(&call.id);
    body.push(",\"name\":");
    body.quoted(&call.name);
    body.push(input);
    arguments_of(&call.input, &mut body.out);
    body.push("\"}");
}

fn output(call: &Call<'_>, body: &mut Body) {
    if let Some(item) = call.result.item {
        return body.push(item);
    }
    body.push(match call.is_custom {
        true => "{\"type\":\"custom_tool_call_output\",\"call_id\":",
        false => "{\"type\":\"function_call_output\",\"call_id\":",
    });
    body.quoted(&call.id);
    body.push(",\"output\":");
    match &call.result.content {
        ResultContent::String(text) => body.quoted(text),
        ResultContent::Blocks(blocks) => {
            for (number, block) in blocks.iter().enumerate() {
                body.push(if number == 0 { "[" } else { "," });
                part(block, false, body);
            }
            body.push("]");
        }
    }
    body.push("}");
}
