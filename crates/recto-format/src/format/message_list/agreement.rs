//! Checks that a foreign message, read again, gives the messages whose metadata contains it as their
//! original.
//!
//! Import stores the original of a message in its metadata. A client can also send such metadata, so a
//! request contains an original only if reading it again gives the same roles and contents.

use super::read::convert_alone;
use super::{Draft, MessageCodec, ReadState};
use crate::format::{gemini, openai_chat};
use crate::json::{self, Str};
use crate::parts::{MessageParts, Part};

/// True if `foreign` is read as these messages. If `field` is set, `foreign` is the value of that field of a
/// request.
pub(super) fn is_read_as(
    codec: &dyn MessageCodec,
    foreign: &str,
    field: Option<Str<'_>>,
    pieces: &[MessageParts<'_>],
) -> bool {
    // A foreign result without an id answers an earlier call. The converted result has the id of that call.
    let state = || {
        let mut state = ReadState::default();
        for part in pieces.iter().flat_map(|piece| &piece.parts) {
            if let Part::ToolResult { id, .. } = part {
                state.add_call_id("", id.text().into_owned());
            }
        }
        state
    };
    let drafts = match field {
        Some(field) => codec.read_envelope(&field.text(), foreign).and_then(Result::ok),
        None if !json::is_object(foreign) => return false,
        None => codec.read(foreign, &mut state()).ok(),
    };
    // Fast path: the contents are the same text.
    let is_same = |drafts: &[Draft]| {
        let mut both = pieces.iter().zip(drafts);
        drafts.len() == pieces.len()
            && both.all(|(piece, draft)| is_draft_of(piece, draft, foreign))
    };
    if drafts.as_deref().is_some_and(is_same) {
        return true;
    }
    if field.is_some() {
        return false;
    }
    let Ok(messages) = convert_alone(codec, foreign, state()) else { return false };
    let mut both = pieces.iter().zip(&messages);
    messages.len() == pieces.len()
        && both.all(|(piece, message)| {
            let read = MessageParts::of(message);
            piece.role == read.role
                && piece.is_string == read.is_string
                && piece.parts.len() == read.parts.len()
                && piece.parts.iter().zip(&read.parts).all(|(part, read)| is_same_part(part, read))
        })
}

/// True if a draft has the role and the content of the message.
fn is_draft_of(piece: &MessageParts<'_>, draft: &Draft, foreign: &str) -> bool {
    let content = content_of(piece.json);
    match draft {
        Draft::Unchanged => {
            json::get_str(foreign, "role").is_some_and(|role| role.is(piece.role.as_str()))
                && content == content_of(foreign)
        }
        Draft::Converted { role, content: converted, .. } => {
            *role == piece.role && content == Some(converted)
        }
    }
}

/// The content of a message. If it occurs several times, the last one counts, as in the engine.
fn content_of(message: &str) -> Option<&str> {
    let contents = json::fields(message).filter(|(key, _)| key.is("content"));
    contents.last().map(|(_, content)| content)
}

/// True if both parts have the same content. All generated ids count as equal, because they depend on the
/// messages before.
fn is_same_part(part: &Part<'_>, read: &Part<'_>) -> bool {
    let is_generated = |id: Str<'_>| {
        let prefixes = [gemini::GENERATED_ID, openai_chat::GENERATED_ID];
        prefixes.iter().any(|prefix| id.escaped().starts_with(prefix))
    };
    let is_same_id = |id: Str<'_>, read: Str<'_>| {
        id.escaped() == read.escaped() || is_generated(id) && is_generated(read)
    };
    match (part, read) {
        (
            Part::ToolUse { id, name, input, .. },
            Part::ToolUse { id: read_id, name: read_name, input: read_input, .. },
        ) => {
            is_same_id(*id, *read_id)
                && name.escaped() == read_name.escaped()
                && input == read_input
        }
        (
            Part::ToolResult { id, content, is_error, .. },
            Part::ToolResult { id: read_id, content: read, is_error: is_read_error, .. },
        ) => is_same_id(*id, *read_id) && content == read && is_error == is_read_error,
        _ => part.json() == read.json(),
    }
}
