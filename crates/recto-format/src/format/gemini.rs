//! Codec of Google's Gemini: a list of contents, or an object with `contents` or `history`.
//!
//! | foreign | conversion |
//! |---|---|
//! | role `model` | `assistant` |
//! | role `user`, `function` or none | `user` |
//! | role `system` | `system` |
//! | `functionCall` | `tool_use`; an id is generated if there is none |
//! | `functionResponse` | `tool_result` in a message of role `tool`; matched by id, otherwise by name and order |
//! | `thought: true` | `thinking` |
//! | `thoughtSignature` | `signature` of the part |
//! | `executableCode` and similar parts | a `gemini_part` that contains the part, for Gemini only |

use std::borrow::Cow;

use recto_core::Role;

use super::message_list::{
    CallNames, Draft, FieldError, MessageCodec, ReadState, TurnKeys, UNREADABLE_PART,
    unsupported_part, write_turns,
};
use super::new_parts::{NewParts, kind_of};
use super::{Head, Likelihood};
use crate::json::{self, Str};
use crate::media::{MediaBody, MediaKind};
use crate::parts::{MessageParts, Part};
use crate::{Format, Media};

/// Prefix of the ids that import generates for calls without one.
pub(crate) const GENERATED_ID: &str = "gemini_call_";

pub(crate) struct Gemini;

/// The likelihood that a content has this format. Parts have no `type`; the name of their field is their
/// type.
fn likelihood(content: &str) -> Likelihood {
    let Some(parts) = json::get(content, "parts") else { return Likelihood::No };
    let is_model = json::get_str(content, "role").is_some_and(|role| role.escaped() == "model");
    let has_types = parts_of(parts).any(|part| json::get(part, "type").is_some());
    match (has_types, is_model) {
        (true, _) => Likelihood::No,
        (false, true) => Likelihood::Certain,
        (false, false) => Likelihood::Likely,
    }
}

/// The parts of a content. A single part may be an object instead of a list.
fn parts_of(parts: &str) -> impl Iterator<Item = &str> {
    let single = Some(parts).filter(|parts| json::is_object(parts));
    single.into_iter().chain(json::items(parts))
}

impl MessageCodec for Gemini {
    fn recognise(&self, head: &Head) -> Likelihood {
        let mut best = Likelihood::No;
        for object in head.objects() {
            let contents = json::get(object, "contents");
            if contents.is_some_and(json::is_list) {
                best = best.max(Likelihood::Likely);
            }
            let listed = contents.map(parts_of).into_iter().flatten();
            for content in std::iter::once(object).chain(listed) {
                best = best.max(likelihood(content));
            }
        }
        best
    }

    fn format(&self) -> Format {
        Format::Gemini
    }

    fn list_keys(&self) -> &'static [&'static str] {
        &["contents", "history"]
    }

    fn takes_single_message(&self) -> bool {
        true
    }

    fn read(&self, foreign: &str, state: &mut ReadState) -> Result<Vec<Draft>, FieldError> {
        let fields = json::Object::of(foreign);
        let role = match fields.get_str("role").map(Str::escaped) {
            None | Some("user" | "function") => Role::User,
            Some("model") => Role::Assistant,
            Some("system") => Role::System,
            Some(other) => {
                return Err(FieldError::new(
                    "role",
                    format!("role must be user or model, not {other:?}"),
                ));
            }
        };
        let is_some = |parts: &&str| json::is_list(parts) || json::is_object(parts);
        let Some(parts) = fields.get("parts").filter(is_some) else {
            return Err(FieldError::new("parts", "parts is missing; it must be a list"));
        };
        let mut drafts: Vec<(Role, NewParts)> = Vec::new();
        let mut is_provider_specific = false;
        for (number, part) in parts_of(parts).enumerate() {
            let fields = json::Object::of(part);
            let is_result = get(&fields, RESPONSE).is_some();
            let role = if is_result { Role::Tool } else { role };
            if drafts.last().is_none_or(|(before, _)| *before != role) {
                drafts.push((role, NewParts::with_capacity(part.len())));
            }
            let Some((_, draft)) = drafts.last_mut() else { continue };
            match read_part(part, &fields, number, state, draft) {
                Ok(is_signed) => is_provider_specific |= is_signed,
                Err(error) => {
                    state.unreadable_part(&format!("parts[{number}]"), error);
                    draft.raw(UNREADABLE_PART);
                }
            }
        }
        if drafts.is_empty() {
            return Err(FieldError::new("parts", "the list of parts is empty"));
        }
        let provider = is_provider_specific.then(|| "google".to_owned());
        let converted = drafts.into_iter().map(|(role, parts)| Draft::Converted {
            role,
            content: parts.finish(),
            fields: String::new(),
            provider: provider.clone(),
            model: None,
        });
        Ok(converted.collect())
    }

    fn read_envelope(&self, key: &str, value: &str) -> Option<Result<Vec<Draft>, FieldError>> {
        if !matches!(key, "systemInstruction" | "system_instruction") {
            return None;
        }
        let mut parts = NewParts::default();
        if let Some(text) = Str::of(value) {
            parts.text(text, "");
        }
        let listed = json::get(value, "parts");
        if Str::of(value).is_none()
            && !listed.is_some_and(|it| json::is_list(it) || json::is_object(it))
        {
            return Some(Err(FieldError::new(key, "it must be a text, or have a list of parts")));
        }
        for part in listed.map(parts_of).into_iter().flatten() {
            match json::get_str(part, "text") {
                Some(text) => parts.text(text, ""),
                None if json::is_object(part) => parts.raw(&provider_part(part)),
                None => return Some(Err(FieldError::new(key, "its parts must be objects"))),
            }
        }
        // Without parts, the message has one empty text.
        Some(Ok(vec![Draft::converted(Role::System, parts.finish())]))
    }

    fn system_field(&self) -> Option<&'static str> {
        Some("systemInstruction")
    }

    fn write_system(&self, messages: &[MessageParts<'_>], out: &mut String) {
        out.push_str("{\"parts\":[");
        let start = out.len();
        for part in messages.iter().flat_map(|message| &message.parts) {
            json::push_item(start, out, |out| match *part {
                Part::Text { text, .. } => {
                    out.push_str("{\"text\":");
                    json::push_str(text, out);
                    out.push('}');
                    true
                }
                Part::Other { kind, json } if kind.is("gemini_part") => {
                    out.push_str(json::get(json, "part").unwrap_or("{}"));
                    true
                }
                _ => false,
            });
        }
        out.push_str("]}");
    }

    fn joins(&self, last: &MessageParts<'_>, next: &MessageParts<'_>) -> bool {
        last.role == Role::Tool && next.role == Role::Tool
    }

    fn write(
        &self,
        pieces: &[MessageParts<'_>],
        names: &CallNames<'_>,
        out: &mut String,
        warnings: &mut Vec<String>,
    ) {
        let keys = TurnKeys { assistant: "model", list: "parts" };
        let write = |piece: &_, part: &_, out: &mut _, warnings: &mut _| {
            write_part(piece, part, names, out, warnings)
        };
        write_turns(pieces, keys, write, out, warnings);
    }
}

/// The `gemini_part` that contains a part for Gemini only.
fn provider_part(part: &str) -> String {
    format!(r#"{{"type":"gemini_part","part":{part}}}"#)
}

/// The name of a field in JSON, and in dumps of Python programs.
type Name = [&'static str; 2];

const CALL: Name = ["functionCall", "function_call"];
const RESPONSE: Name = ["functionResponse", "function_response"];
const SIGNATURE: Name = ["thoughtSignature", "thought_signature"];
const INLINE: Name = ["inlineData", "inline_data"];
const FILE: Name = ["fileData", "file_data"];
const MEDIA_TYPE: Name = ["mimeType", "mime_type"];
const DISPLAY_NAME: Name = ["displayName", "display_name"];
const FILE_URI: Name = ["fileUri", "file_uri"];

fn get<'a>(object: &json::Object<'a>, name: Name) -> Option<&'a str> {
    name.iter().find_map(|name| object.get(name))
}

fn get_str<'a>(object: &json::Object<'a>, name: Name) -> Option<Str<'a>> {
    get(object, name).and_then(Str::of)
}

/// Converts and adds a part. Returns true if only Gemini, or only the model that produced it, accepts the
/// part.
fn read_part(
    part: &str,
    fields: &json::Object<'_>,
    number: usize,
    state: &mut ReadState,
    parts: &mut NewParts,
) -> Result<bool, FieldError> {
    let signature = get_str(fields, SIGNATURE);
    let mut extra = String::new();
    if let Some(signature) = signature {
        extra.push_str(",\"signature\":");
        json::push_str(signature, &mut extra);
    }
    if let Some(text) = fields.get_str("text") {
        match fields.get("thought") {
            Some("true") => parts.thinking(text, &extra),
            _ => parts.text(text, &extra),
        }
        return Ok(signature.is_some());
    }
    if let Some(call) = get(fields, CALL) {
        let call = json::Object::of(call);
        let name = call.get_str("name");
        let name =
            name.ok_or_else(|| FieldError::new("functionCall.name", "a call must have a name"))?;
        let input = call.get("args").unwrap_or("{}");
        match call.get_str("id") {
            Some(id) => parts.call(id, name, input, &extra),
            None => {
                let id = format!("{GENERATED_ID}{}_{number}", state.message_count);
                parts.call(Str::plain(&id), name, input, &extra);
                state.add_call_id(&name.text(), id);
            }
        }
        return Ok(signature.is_some());
    }
    if let Some(response) = get(fields, RESPONSE) {
        read_response(response, number, state, parts)?;
        return Ok(false);
    }
    if read_media(fields, parts).is_some() {
        return Ok(false);
    }
    if !json::is_object(part) || json::fields(part).next().is_none() {
        return Err(FieldError::new("", "a part must contain a text, data, a call or a response"));
    }
    parts.raw(&provider_part(part));
    Ok(true)
}

fn read_response(
    response: &str,
    number: usize,
    state: &mut ReadState,
    parts: &mut NewParts,
) -> Result<(), FieldError> {
    let response = json::Object::of(response);
    let name = response.get_str("name");
    let name = name
        .ok_or_else(|| FieldError::new("functionResponse.name", "a response must have a name"))?;
    let generated;
    // A response may have an id although its call has none. Such pairs are matched by name and order.
    let id = match (state.take_call_id(&name.text()), response.get_str("id")) {
        (None, Some(id)) => id,
        (call_id, _) => {
            let new_id = || format!("{GENERATED_ID}{}_{number}", state.message_count);
            generated = call_id.unwrap_or_else(new_id);
            Str::plain(&generated)
        }
    };
    let value = response.get("response").unwrap_or("{}");
    let mut extra = String::from(",\"name\":");
    json::push_str(name, &mut extra);
    let only = json::Object::of(value).only().filter(|(_, text)| Str::of(text).is_some());
    let (text, is_error) = match only.map(|(key, text)| (key.escaped(), text)) {
        Some(("result", text)) => (Cow::Borrowed(text), false),
        Some(("error", text)) => (Cow::Borrowed(text), true),
        _ => (Cow::Owned(json::string(value)), false),
    };
    // Images and files that the tool returned are in the field `parts`, beside `response`.
    let mut media = NewParts::default();
    for (_, part) in response.get("parts").map(json::objects).into_iter().flatten() {
        if media.is_empty() {
            media.text(Str::of(&text).unwrap_or(Str::plain("")), "");
        }
        read_media(&part, &mut media);
    }
    let has_media = media.count() > 1;
    let content = if has_media { Cow::Owned(media.finish()) } else { text };
    parts.result(id, Some(&content), is_error, &extra);
    Ok(())
}

fn read_media(fields: &json::Object<'_>, parts: &mut NewParts) -> Option<()> {
    let mut extra = String::new();
    if let Some(data) = get(fields, INLINE) {
        let data = &json::Object::of(data);
        let media_type = get_str(data, MEDIA_TYPE)?;
        let body = MediaBody::Base64 { media_type, data: data.get_str("data")? };
        fields.push_others(&["inlineData", "inline_data", "type"], &mut extra);
        parts.media(kind_of(&media_type.text()), body, get_str(data, DISPLAY_NAME), &extra);
        return Some(());
    }
    let data = &json::Object::of(get(fields, FILE)?);
    let media_type = get_str(data, MEDIA_TYPE);
    if let Some(media_type) = media_type {
        extra.push_str(",\"media_type\":");
        json::push_str(media_type, &mut extra);
    }
    fields.push_others(&["fileData", "file_data", "type"], &mut extra);
    let kind = media_type.map_or(MediaKind::File, |it| kind_of(&it.text()));
    parts.media(kind, MediaBody::Url(get_str(data, FILE_URI)?), None, &extra);
    Some(())
}

/// Writes a part. Returns false if the format has no such part.
fn write_part(
    piece: &MessageParts<'_>,
    part: &Part<'_>,
    names: &CallNames<'_>,
    out: &mut String,
    warnings: &mut Vec<String>,
) -> bool {
    let is_imported = piece.source.is_some_and(|source| source.is_from(Format::Gemini.name()));
    let signature = part.signature().filter(|_| is_imported);
    match *part {
        Part::Text { text, .. } => {
            out.push_str("{\"text\":");
            json::push_str(text, out);
        }
        Part::Thinking { text, .. } => {
            out.push_str("{\"text\":");
            json::push_str(text, out);
            out.push_str(",\"thought\":true");
        }
        Part::ToolUse { id, name, input, .. } => {
            out.push_str("{\"functionCall\":{");
            if !id.escaped().starts_with(GENERATED_ID) {
                out.push_str("\"id\":");
                json::push_str(id, out);
                out.push(',');
            }
            out.push_str("\"name\":");
            json::push_str(name, out);
            out.push_str(",\"args\":");
            out.push_str(input);
            out.push('}');
            if !json::is_object(input) {
                warnings.push(format!("the input of {} is not an object", name.text()));
            }
        }
        Part::ToolResult { id, content, is_error, json, .. } => {
            let name = json::get_str(json, "name").or_else(|| names.of(id));
            write_response(id, name, content, is_error, out, warnings);
        }
        Part::Media(media) => {
            if !write_media(media, out) {
                warnings.push("an image, audio or file is not supported".into());
                return false;
            }
        }
        Part::Other { json, .. } if is_imported => {
            out.push_str(json::get(json, "part").unwrap_or(json));
            return true;
        }
        Part::Other { kind, .. } => {
            warnings.push(unsupported_part(kind));
            return false;
        }
    }
    if let Some(signature) = signature {
        out.push_str(",\"thoughtSignature\":");
        json::push_str(signature, out);
    }
    out.push('}');
    true
}

fn write_response(
    id: Str<'_>,
    name: Option<Str<'_>>,
    content: Option<&str>,
    is_error: bool,
    out: &mut String,
    warnings: &mut Vec<String>,
) {
    out.push_str("{\"functionResponse\":{");
    if !id.escaped().starts_with(GENERATED_ID) {
        out.push_str("\"id\":");
        json::push_str(id, out);
        out.push(',');
    }
    out.push_str("\"name\":");
    match name {
        Some(name) => json::push_str(name, out),
        None => {
            warnings.push("the name of the function is unknown; the id of its call is used".into());
            json::push_str(id, out);
        }
    }
    out.push_str(if is_error { ",\"response\":{\"error\":" } else { ",\"response\":{\"result\":" });
    match content {
        None => out.push_str("\"\""),
        Some(content) if Str::of(content).is_some() => out.push_str(content),
        Some(content) => {
            let mut texts = String::new();
            for part in Part::list(content) {
                match part {
                    Part::Text { text, .. } => {
                        if !texts.is_empty() {
                            texts.push_str("\\n");
                        }
                        texts.push_str(text.escaped());
                    }
                    _ => warnings.push("only the texts of a result are supported".into()),
                }
            }
            out.push('"');
            out.push_str(&texts);
            out.push('"');
        }
    }
    out.push_str("}}");
}

fn write_media(media: Media<'_>, out: &mut String) -> bool {
    match media.body {
        MediaBody::Base64 { media_type, data } => {
            out.push_str("{\"inlineData\":{\"mimeType\":");
            json::push_str(media_type, out);
            out.push_str(",\"data\":");
            json::push_str(data, out);
            if let Some(name) = media.name {
                out.push_str(",\"displayName\":");
                json::push_str(name, out);
            }
            out.push('}');
        }
        MediaBody::Url(url) => {
            out.push_str("{\"fileData\":{");
            if let Some(media_type) = json::get_str(media.json, "media_type") {
                out.push_str("\"mimeType\":");
                json::push_str(media_type, out);
                out.push(',');
            }
            out.push_str("\"fileUri\":");
            json::push_str(url, out);
            out.push('}');
        }
        MediaBody::Text(text) => {
            out.push_str("{\"text\":");
            json::push_str(text, out);
        }
        MediaBody::FileId { .. } | MediaBody::Unknown => return false,
    }
    json::push_fields(media.json, &["videoMetadata", "video_metadata", "mediaResolution"], out);
    true
}
