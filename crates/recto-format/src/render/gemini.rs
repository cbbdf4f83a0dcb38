//! Writer for Gemini. The contents of user and model alternate. Results are the first parts of the user's
//! next content.

use super::Body;
use super::alternating::AlternatingWriter;
use super::plan::Plan;
use super::turn::{Block, Call, CallReference, Extra, Side, Turn};
use crate::json::{self, Str};
use crate::media::{Media, MediaBody, MediaKind};

/// Maximum depth of an object in a result. Google accepts requests of up to 100 levels.
const MAX_DEPTH: usize = 64;

/// The fields with the data of a part. A part has one of them. Other fields are beside it.
const DATA: &[&str] = &[
    "text",
    "functionCall",
    "functionResponse",
    "inlineData",
    "fileData",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
];

/// True for a part that only Gemini understands: `{"type": "gemini_part", "part": …}`.
pub(super) fn is_provider_part(kind: &str, json: &str, is_assistant: bool) -> bool {
    let own: &[&str] = match is_assistant {
        true => &["executableCode", "codeExecutionResult", "toolCall", "toolResponse"],
        false => &["fileData"],
    };
    let Some(part) = json::get(json, "part").filter(|_| kind == "gemini_part") else {
        return false;
    };
    let is_own =
        |(key, value): (Str<'_>, &str)| own.contains(&key.escaped()) && json::is_object(value);
    let mut data = json::fields(part).filter(|(key, _)| DATA.contains(&key.escaped()));
    let has_signature = json::get(part, "thoughtSignature").is_some();
    let is_signed = json::get_str(part, "thoughtSignature").is_some_and(super::dialect::is_base64);
    data.next().is_some_and(is_own) && data.next().is_none() && (!has_signature || is_signed)
}

pub(super) fn write(plan: &Plan<'_>, body: &mut Body) {
    let (system, turns): (Vec<&Turn<'_>>, Vec<&Turn<'_>>) =
        plan.turns.iter().partition(|turn| turn.is_in_system_field());
    let mut is_first = true;
    let only = body.system_field(&system);
    for block in system.iter().filter(|_| !only).flat_map(|turn| &turn.blocks) {
        let is_first = std::mem::replace(&mut is_first, false);
        body.push(if is_first { "\"systemInstruction\":{\"parts\":[" } else { "," });
        write_block(block, body);
    }
    body.push(if is_first { "\"contents\":[" } else { "]},\"contents\":[" });
    let mut writer =
        AlternatingWriter::new("{\"role\":\"user\",\"parts\":[", "{\"role\":\"model\",\"parts\":[");
    for turn in turns {
        if turn.is_unstable {
            body.mark_unstable();
        }
        for block in writer.start_turn(turn, body) {
            writer.start_block(body);
            write_block(block, body);
            body.wrote_block(block);
        }
        for call in turn.calls_with_converted_results() {
            writer.switch_to(Side::User, body);
            writer.start_block(body);
            response(call, body);
        }
    }
    writer.end(body);
}

fn write_block(block: &Block<'_>, body: &mut Body) {
    match block {
        Block::Text { text, extra } => {
            body.push("{\"text\":");
            body.quoted(text);
            signature(extra, body);
        }
        Block::Refusal(text) => {
            body.push("{\"text\":");
            body.quoted(text.escaped());
        }
        Block::Media { media: it, .. } => media(it, body),
        Block::Thinking { text, signature: signed } => {
            body.push("{\"text\":");
            body.quoted(text.escaped());
            body.push(",\"thought\":true");
            signature(&Extra { signature: *signed, ..Extra::default() }, body);
        }
        Block::ProviderPart { json, .. } => {
            body.push(json::get(json, "part").unwrap_or("{}"));
            return;
        }
        Block::Call(call) => {
            body.push("{\"functionCall\":{");
            id_and_name(call, body);
            body.push(",\"args\":");
            body.push(&call.input);
            body.push("}");
            signature(&call.extra, body);
        }
    }
    body.push("}");
}

fn id_and_name(call: &Call<'_>, body: &mut Body) {
    if call.reference == CallReference::Id {
        body.push("\"id\":");
        body.quoted(&call.id);
        body.push(",");
    }
    body.push("\"name\":");
    body.quoted(&call.name);
}

fn signature(extra: &Extra<'_>, body: &mut Body) {
    if let Some(signature) = extra.signature {
        body.push(",\"thoughtSignature\":");
        body.quoted(signature.escaped());
    }
}

fn media(media: &Media<'_>, body: &mut Body) {
    match media.body {
        MediaBody::Base64 { media_type, data } => {
            body.push("{\"inlineData\":{\"mimeType\":");
            body.quoted(media_type.escaped());
            body.push(",\"data\":");
            body.quoted(data.escaped());
        }
        MediaBody::Url(address) | MediaBody::FileId { id: address, .. } => {
            body.push("{\"fileData\":{\"fileUri\":");
            body.quoted(address.escaped());
            let declared = json::get_str(media.json, "media_type").filter(|it| !it.is_empty());
            let guessed = || guessed_type(media.kind, &address.text());
            if let Some(media_type) = declared.map(Str::escaped).or_else(guessed) {
                body.push(",\"mimeType\":");
                body.quoted(media_type);
            }
        }
        MediaBody::Text(_) | MediaBody::Unknown => body.push("{\"inlineData\":{"),
    }
    body.push("}");
}

/// True if Gemini accepts inline data of this type. It rejects requests with other types.
pub(super) fn accepts_inline(media_type: &str) -> bool {
    match media_type.split_once('/') {
        Some(("image", kind)) => matches!(kind, "png" | "jpeg" | "webp" | "heic" | "heif"),
        Some(("audio", kind)) => {
            matches!(kind, "wav" | "x-wav" | "mp3" | "mpeg" | "aiff" | "aac" | "ogg" | "flac")
        }
        Some(("video", kind)) => matches!(
            kind,
            "mp4"
                | "mpeg"
                | "mpg"
                | "mov"
                | "quicktime"
                | "avi"
                | "x-flv"
                | "webm"
                | "wmv"
                | "3gpp"
        ),
        Some(("text", kind)) => !kind.is_empty(),
        Some(("application", kind)) => kind == "pdf",
        _ => false,
    }
}

/// The media type of a URL by its file extension. Gemini requires a media type.
fn guessed_type(kind: MediaKind, address: &str) -> Option<&'static str> {
    let path = address.split(['?', '#']).next()?;
    let ending = path.rsplit('.').next()?.to_ascii_lowercase();
    Some(match (kind, &*ending) {
        (MediaKind::Image, "jpg" | "jpeg") => "image/jpeg",
        (MediaKind::Image, "gif") => "image/gif",
        (MediaKind::Image, "webp") => "image/webp",
        (MediaKind::Image, "png") => "image/png",
        (MediaKind::File, "pdf") => "application/pdf",
        (MediaKind::File, "txt" | "md") => "text/plain",
        (MediaKind::Audio, "mp3") => "audio/mp3",
        (MediaKind::Audio, "wav") => "audio/wav",
        _ => return None,
    })
}

/// True if a JSON value can be the object of a result. Google accepts no number that exceeds a double and
/// no lone surrogate. The depth is at most [`MAX_DEPTH`].
fn is_struct(value: &str) -> bool {
    json::is_object(value)
        && json::lone_surrogates(value).is_empty()
        && recto_core::json::depth(value) <= MAX_DEPTH
        && !json::has_huge_number(value)
}

/// Writes a result: the object that the tool returned, or an object with its text.
fn response(call: &Call<'_>, body: &mut Body) {
    body.push("{\"functionResponse\":{");
    id_and_name(call, body);
    body.push(",\"response\":");
    let text = call.result.content.joined();
    let plain = text.starts_with('{').then(|| recto_core::json::unescape(&text));
    let object = plain.as_deref().and_then(json::checked).filter(|value| is_struct(value));
    match object {
        Some(object) if !call.result.is_error => body.push(object),
        _ => {
            body.push(if call.result.is_error { "{\"error\":" } else { "{\"output\":" });
            body.quoted(&text);
            body.push("}");
        }
    }
    body.push("}}");
}
