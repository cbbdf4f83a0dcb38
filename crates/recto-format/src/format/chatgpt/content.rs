//! Conversion of the content of a ChatGPT message to parts.

use recto_core::Role;

use crate::format::message_list::{Draft, FieldError};
use crate::format::new_parts::NewParts;
use crate::json::{self, Str};
use crate::media::{MediaBody, MediaKind};

/// A converted message.
pub(super) struct Read {
    pub(super) draft: Draft,
    /// Recipient of the call, if the message is a call.
    pub(super) calls: Option<String>,
}

/// Reads the message of a node. For a message of a tool, `call` is the id of its call.
pub(super) fn read(message: &str, id: &str, call: Option<&str>) -> Result<Read, FieldError> {
    let author = json::get(message, "author").unwrap_or("{}");
    let role = match json::get_str(author, "role").map(Str::escaped) {
        Some("system") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        _ => {
            return Err(FieldError::new(
                "author.role",
                "role must be system, user, assistant or tool",
            ));
        }
    };
    let Some(content) = json::get(message, "content") else {
        return Err(FieldError::new("content", "content is missing"));
    };
    let recipient = json::get_str(message, "recipient").map(Str::text);
    let called = recipient.filter(|to| role == Role::Assistant && !matches!(&**to, "all" | ""));
    let mut parts = NewParts::default();
    if let Some(called) = &called {
        let text = text_of(content);
        let input = match json::checked(&text) {
            Some(value) if json::is_object(value) => value.to_owned(),
            _ => json::string(&text),
        };
        let (id, name) = (json::string(id), json::string(called));
        if let (Some(id), Some(name)) = (Str::of(&id), Str::of(&name)) {
            parts.call(id, name, &input, "");
        }
    } else if role == Role::Tool {
        let mut inner = NewParts::default();
        read_content(content, &mut inner);
        let call = json::string(call.unwrap_or(id));
        let mut extra = String::new();
        json::push_fields(author, &["name"], &mut extra);
        if extra.ends_with("null") {
            extra.clear();
        }
        if let Some(call) = Str::of(&call) {
            parts.result(call, Some(&inner.finish_list()), false, &extra);
        }
    } else {
        read_content(content, &mut parts);
    }
    let metadata = json::get(message, "metadata").unwrap_or("{}");
    let model = json::get_str(metadata, "model_slug").map(|model| model.escaped().to_owned());
    let provider = (role == Role::Assistant).then(|| "openai".to_owned());
    let model = model.filter(|_| role == Role::Assistant);
    let content = parts.finish();
    let draft = Draft::Converted { role, content, fields: String::new(), provider, model };
    Ok(Read { draft, calls: called.map(|called| called.into_owned()) })
}

fn read_content(content: &str, parts: &mut NewParts) {
    let kind = json::get_str(content, "content_type").map(Str::text).unwrap_or_default();
    let before = parts.len();
    match &*kind {
        "text" | "multimodal_text" => {
            for part in json::get(content, "parts").map(json::items).into_iter().flatten() {
                read_part(part, parts);
            }
        }
        "code" | "execution_output" | "tether_quote" | "system_error" => {
            if let Some(text) = json::get_str(content, "text") {
                parts.text(text, "");
            }
        }
        "thoughts" => {
            for thought in json::get(content, "thoughts").map(json::items).into_iter().flatten() {
                let text = json::get_str(thought, "content").or(json::get_str(thought, "summary"));
                if let Some(text) = text {
                    parts.thinking(text, "");
                }
            }
        }
        "tether_browsing_display" => {
            if let Some(text) = json::get_str(content, "result").filter(|text| !text.is_empty()) {
                parts.text(text, "");
            }
        }
        "user_editable_context" | "model_editable_context" => {
            let keys = ["user_profile", "user_instructions", "model_set_context"];
            for text in keys.iter().filter_map(|key| json::get_str(content, key)) {
                parts.text(text, "");
            }
        }
        _ => {}
    }
    if parts.len() == before && !matches!(&*kind, "text") {
        parts.typed(&format!("chatgpt_{kind}"), content);
    }
}

fn read_part(part: &str, parts: &mut NewParts) {
    if let Some(text) = Str::of(part) {
        if !text.is_empty() {
            parts.text(text, "");
        }
        return;
    }
    let kind = json::get_str(part, "content_type").map(Str::text).unwrap_or_default();
    let asset = json::get_str(part, "asset_pointer");
    let asset = asset.map(|id| MediaBody::FileId { id, provider: Some(Str::plain("chatgpt")) });
    match (&*kind, asset) {
        ("image_asset_pointer", Some(asset)) => parts.media(MediaKind::Image, asset, None, ""),
        ("audio_asset_pointer", Some(asset)) => parts.media(MediaKind::Audio, asset, None, ""),
        ("audio_transcription", _) if json::get_str(part, "text").is_some() => {
            parts.text(json::get_str(part, "text").unwrap_or(Str::plain("")), "");
        }
        _ if json::is_object(part) => parts.typed(&format!("chatgpt_{kind}"), part),
        _ => parts.raw(&format!(r#"{{"type":"chatgpt_value","value":{part}}}"#)),
    }
}

/// The text of a call.
fn text_of(content: &str) -> String {
    if let Some(text) = json::get_str(content, "text") {
        return text.text().into_owned();
    }
    let parts = json::get(content, "parts").map(json::items).into_iter().flatten();
    let texts: Vec<String> =
        parts.filter_map(Str::of).map(|text| text.text().into_owned()).collect();
    texts.join("\n")
}
