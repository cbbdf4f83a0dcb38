//! What each provider takes, as data.

use std::borrow::Cow;

use super::Target;
use crate::json::Str;
use crate::media::{Media, MediaBody, MediaKind};

/// What a provider takes.
pub(crate) struct Dialect {
    pub(crate) target: Target,
    /// The name in `metadata.source.provider`.
    pub(crate) provider: &'static str,
    /// Whether the user comes first, and the two sides take turns.
    pub(crate) takes_turns: bool,
    pub(crate) ids: Word,
    pub(crate) names: Word,
    pub(crate) input_is_object: bool,
    pub(crate) takes_blank_text: bool,
    pub(crate) has_refusals: bool,
    pub(crate) has_custom_calls: bool,
    pub(crate) has_speakers: bool,
    pub(crate) marks_errors: bool,
    /// What the schema of a tool's input must not have at its top.
    pub(crate) refused_in_schemas: &'static [&'static str],
    /// Whether there is a place for thinking: with a signature only, or any.
    pub(crate) thinking: Thinking,
    pub(crate) media_from_user: fn(&Media<'_>) -> bool,
    pub(crate) media_in_results: fn(&Media<'_>) -> bool,
    /// The parts that only this provider understands, from the assistant and from the user.
    pub(crate) own_parts: fn(kind: &str, json: &str, is_assistant: bool) -> bool,
    /// Those that may stand in a result.
    pub(crate) own_in_results: fn(kind: &str) -> bool,
}

/// Where thinking may go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thinking {
    Nowhere,
    Signed,
    Any,
}

/// What ids and names may look like.
pub(crate) struct Word {
    pub(crate) longest: usize,
    /// What may stand beside ASCII letters and digits; `None`: anything.
    pub(crate) extra: Option<&'static str>,
    pub(crate) starts_with_letter: bool,
}

impl Word {
    pub(crate) fn takes(&self, text: &str) -> bool {
        let takes =
            |c: char| self.extra.is_none_or(|extra| c.is_ascii_alphanumeric() || extra.contains(c));
        let starts = |c: char| c.is_ascii_alphabetic() || c == '_';
        !text.is_empty()
            && text.len() <= self.longest
            && text.chars().all(takes)
            && (!self.starts_with_letter || text.starts_with(starts))
    }
}

impl Target {
    pub(crate) fn dialect(self) -> &'static Dialect {
        match self {
            Target::OpenAiChat => &OPENAI_CHAT,
            Target::OpenAiResponses => &OPENAI_RESPONSES,
            Target::Anthropic => &ANTHROPIC,
            Target::Gemini => &GEMINI,
        }
    }
}

const PLAIN_NAME: Word = Word { longest: 64, extra: Some("_-"), starts_with_letter: false };

static OPENAI_CHAT: Dialect = Dialect {
    target: Target::OpenAiChat,
    provider: "openai",
    takes_turns: false,
    ids: Word { longest: 40, extra: None, starts_with_letter: false },
    names: PLAIN_NAME,
    input_is_object: false,
    takes_blank_text: true,
    has_refusals: true,
    has_custom_calls: true,
    has_speakers: true,
    marks_errors: false,
    refused_in_schemas: &["anyOf", "oneOf", "allOf", "enum", "not"],
    thinking: Thinking::Nowhere,
    media_from_user: |media| match media.kind {
        MediaKind::Image => is_image(media.body),
        MediaKind::Audio => is_sound(media.body),
        MediaKind::File => is_inline(media.body) || is_file_of(media.body, "openai"),
    },
    media_in_results: |_| false,
    own_parts: super::openai_chat::is_own_part,
    own_in_results: |_| false,
};

static OPENAI_RESPONSES: Dialect = Dialect {
    target: Target::OpenAiResponses,
    provider: "openai",
    takes_turns: false,
    ids: Word { longest: 64, extra: None, starts_with_letter: false },
    names: PLAIN_NAME,
    input_is_object: false,
    takes_blank_text: true,
    has_refusals: true,
    has_custom_calls: true,
    has_speakers: false,
    marks_errors: false,
    refused_in_schemas: &["anyOf", "oneOf", "allOf", "enum", "not"],
    thinking: Thinking::Nowhere,
    media_from_user: |media| match media.kind {
        MediaKind::Image => is_image(media.body) || is_file_of(media.body, "openai"),
        MediaKind::Audio => is_sound(media.body),
        MediaKind::File => {
            is_inline(media.body) || is_web(media.body) || is_file_of(media.body, "openai")
        }
    },
    media_in_results: |media| match media.kind {
        MediaKind::Image => is_image(media.body) || is_file_of(media.body, "openai"),
        MediaKind::Audio => false,
        MediaKind::File => {
            is_inline(media.body) || is_web(media.body) || is_file_of(media.body, "openai")
        }
    },
    own_parts: super::openai_responses::is_own_part,
    own_in_results: |_| false,
};

static ANTHROPIC: Dialect = Dialect {
    target: Target::Anthropic,
    provider: "anthropic",
    takes_turns: true,
    ids: Word { longest: 128, extra: Some("_-"), starts_with_letter: false },
    names: Word { longest: 128, extra: Some("_-"), starts_with_letter: false },
    input_is_object: true,
    takes_blank_text: false,
    has_refusals: false,
    has_custom_calls: false,
    has_speakers: false,
    marks_errors: true,
    refused_in_schemas: &["anyOf", "oneOf", "allOf"],
    thinking: Thinking::Signed,
    media_from_user: super::anthropic::takes_media,
    media_in_results: super::anthropic::takes_media,
    own_parts: super::anthropic::is_own_part,
    own_in_results: |kind| ["document", "search_result", "tool_reference"].contains(&kind),
};

static GEMINI: Dialect = Dialect {
    target: Target::Gemini,
    provider: "google",
    takes_turns: true,
    ids: Word { longest: usize::MAX, extra: None, starts_with_letter: false },
    names: Word { longest: 64, extra: Some("_.:-"), starts_with_letter: true },
    input_is_object: true,
    takes_blank_text: true,
    has_refusals: false,
    has_custom_calls: false,
    has_speakers: false,
    marks_errors: true,
    refused_in_schemas: &[],
    thinking: Thinking::Any,
    media_from_user: |media| match media.body {
        MediaBody::Base64 { media_type, data } => {
            super::gemini::takes_inline(&media_type.text()) && is_base64(data)
        }
        MediaBody::Url(url) => is_web(media.body) || url.text().starts_with("gs://"),
        MediaBody::FileId { id, .. } => !id.is_empty() && is_file_of(media.body, "google"),
        MediaBody::Text(_) | MediaBody::Unknown => false,
    },
    media_in_results: |_| false,
    own_parts: super::gemini::is_own_part,
    own_in_results: |_| false,
};

/// The images that OpenAI and Anthropic take.
pub(super) const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

fn is_image(body: MediaBody<'_>) -> bool {
    match body {
        MediaBody::Base64 { media_type, data } => {
            IMAGES.contains(&&*media_type.text()) && is_base64(data)
        }
        _ => is_web(body),
    }
}

fn is_sound(body: MediaBody<'_>) -> bool {
    matches!(body, MediaBody::Base64 { media_type, data }
        if sound_format(media_type).is_some() && is_base64(data))
}

/// What OpenAI calls a kind of sound.
pub(crate) fn sound_format(media_type: Str<'_>) -> Option<&'static str> {
    match &*media_type.text() {
        "audio/wav" | "audio/x-wav" | "audio/wave" => Some("wav"),
        "audio/mp3" | "audio/mpeg" => Some("mp3"),
        _ => None,
    }
}

pub(crate) fn is_inline(body: MediaBody<'_>) -> bool {
    matches!(body, MediaBody::Base64 { media_type, data }
        if media_type.text().contains('/') && is_base64(data))
}

pub(crate) fn is_web(body: MediaBody<'_>) -> bool {
    matches!(body, MediaBody::Url(url)
        if ["https://", "http://"].iter().any(|start| url.text().starts_with(start)))
}

pub(crate) fn is_file_of(body: MediaBody<'_>, provider: &str) -> bool {
    matches!(body, MediaBody::FileId { id, provider: Some(whose) }
        if !id.is_empty() && whose.text() == provider)
}

/// Whether it is base64, plain or URL-safe, of at least a byte.
pub(crate) fn is_base64(data: Str<'_>) -> bool {
    let text = data.text();
    let body = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte);
    !body.is_empty()
        && text.len() - body.len() <= 2
        && body.len() % 4 != 1
        && body.bytes().all(is_digit)
}

/// Base64 in its plain form, with padding, as all but Google want it.
pub(crate) fn plain_base64(data: Str<'_>) -> Cow<'_, str> {
    let text = data.text();
    if text.len().is_multiple_of(4) && memchr::memchr2(b'-', b'_', text.as_bytes()).is_none() {
        return text;
    }
    let mut plain = text.trim_end_matches('=').replace('-', "+").replace('_', "/");
    while !plain.len().is_multiple_of(4) {
        plain.push('=');
    }
    Cow::Owned(plain)
}
