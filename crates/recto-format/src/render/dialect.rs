//! What each provider accepts, as data: one [`Dialect`] per target.

use std::borrow::Cow;

use super::Target;
use crate::json::Str;
use crate::media::{Media, MediaBody, MediaKind};

/// What a provider accepts in a request.
pub(crate) struct Dialect {
    pub(crate) target: Target,
    /// Name of the provider in `metadata.source.provider`.
    pub(crate) provider: &'static str,
    /// True if the first message is from the user, and user and assistant alternate.
    pub(crate) requires_alternation: bool,
    /// True if a turn of the assistant with thinking starts with it and does not end with it.
    pub(crate) requires_thinking_first: bool,
    pub(crate) ids: IdentifierRules,
    pub(crate) names: IdentifierRules,
    pub(crate) input_is_object: bool,
    /// True if texts may be empty or white space.
    pub(crate) accepts_empty_text: bool,
    pub(crate) has_refusals: bool,
    pub(crate) has_custom_calls: bool,
    pub(crate) supports_names: bool,
    pub(crate) has_error_flag: bool,
    /// Keywords that the provider rejects at the top level of a tool's input schema.
    pub(crate) rejected_in_schemas: &'static [&'static str],
    pub(crate) thinking: Thinking,
    pub(crate) media_from_user: fn(&Media<'_>) -> bool,
    pub(crate) media_in_results: fn(&Media<'_>) -> bool,
    /// True for parts that only this provider understands, by the role of their author.
    pub(crate) provider_parts: fn(kind: &str, json: &str, is_assistant: bool) -> bool,
    /// True for such parts that may be inside a result.
    pub(crate) provider_parts_in_results: fn(kind: &str) -> bool,
}

/// Which thinking a provider accepts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thinking {
    None,
    /// `reasoning_content`, for models that read it.
    ByModel,
    /// Only thinking with a signature.
    Signed,
    Any,
}

/// The rules for ids and names.
pub(crate) struct IdentifierRules {
    pub(crate) max_len: usize,
    /// Characters allowed in addition to ASCII letters and digits; `None` allows every character.
    pub(crate) extra_chars: Option<&'static str>,
    pub(crate) starts_with_letter: bool,
}

impl IdentifierRules {
    pub(crate) fn accepts(&self, text: &str) -> bool {
        let is_allowed = |c: char| {
            self.extra_chars.is_none_or(|extra| c.is_ascii_alphanumeric() || extra.contains(c))
        };
        let starts = |c: char| c.is_ascii_alphabetic() || c == '_';
        !text.is_empty()
            && text.len() <= self.max_len
            && text.chars().all(is_allowed)
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
            Target::BedrockConverse => &BEDROCK_CONVERSE,
        }
    }
}

const PLAIN_NAME: IdentifierRules =
    IdentifierRules { max_len: 64, extra_chars: Some("_-"), starts_with_letter: false };

static OPENAI_CHAT: Dialect = Dialect {
    target: Target::OpenAiChat,
    provider: "openai",
    requires_alternation: false,
    requires_thinking_first: false,
    ids: IdentifierRules { max_len: 40, extra_chars: None, starts_with_letter: false },
    names: PLAIN_NAME,
    input_is_object: false,
    accepts_empty_text: true,
    has_refusals: true,
    has_custom_calls: true,
    supports_names: true,
    has_error_flag: false,
    rejected_in_schemas: &["anyOf", "oneOf", "allOf", "enum", "not"],
    thinking: Thinking::ByModel,
    media_from_user: |media| match media.kind {
        MediaKind::Image => is_image(media.body),
        MediaKind::Audio => is_audio(media.body),
        MediaKind::File => is_inline(media.body) || is_file_of(media.body, "openai"),
    },
    media_in_results: |_| false,
    provider_parts: super::openai_chat::is_provider_part,
    provider_parts_in_results: |_| false,
};

static OPENAI_RESPONSES: Dialect = Dialect {
    target: Target::OpenAiResponses,
    provider: "openai",
    requires_alternation: false,
    requires_thinking_first: false,
    ids: IdentifierRules { max_len: 64, extra_chars: None, starts_with_letter: false },
    names: PLAIN_NAME,
    input_is_object: false,
    accepts_empty_text: true,
    has_refusals: true,
    has_custom_calls: true,
    supports_names: false,
    has_error_flag: false,
    rejected_in_schemas: &["anyOf", "oneOf", "allOf", "enum", "not"],
    thinking: Thinking::None,
    media_from_user: |media| match media.kind {
        MediaKind::Image => is_image(media.body) || is_file_of(media.body, "openai"),
        // The type of a message's content has no audio.
        MediaKind::Audio => false,
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
    provider_parts: super::openai_responses::is_provider_part,
    provider_parts_in_results: |_| false,
};

static ANTHROPIC: Dialect = Dialect {
    target: Target::Anthropic,
    provider: "anthropic",
    requires_alternation: true,
    requires_thinking_first: true,
    ids: IdentifierRules { max_len: 128, extra_chars: Some("_-"), starts_with_letter: false },
    names: IdentifierRules { max_len: 128, extra_chars: Some("_-"), starts_with_letter: false },
    input_is_object: true,
    accepts_empty_text: false,
    has_refusals: false,
    has_custom_calls: false,
    supports_names: false,
    has_error_flag: true,
    rejected_in_schemas: &["anyOf", "oneOf", "allOf"],
    thinking: Thinking::Signed,
    media_from_user: super::anthropic::accepts_media,
    media_in_results: super::anthropic::accepts_media,
    provider_parts: super::anthropic::is_provider_part,
    provider_parts_in_results: |kind| {
        ["document", "search_result", "tool_reference"].contains(&kind)
    },
};

static GEMINI: Dialect = Dialect {
    target: Target::Gemini,
    provider: "google",
    requires_alternation: true,
    requires_thinking_first: false,
    ids: IdentifierRules { max_len: usize::MAX, extra_chars: None, starts_with_letter: false },
    names: IdentifierRules { max_len: 64, extra_chars: Some("_.:-"), starts_with_letter: true },
    input_is_object: true,
    accepts_empty_text: true,
    has_refusals: false,
    has_custom_calls: false,
    supports_names: false,
    has_error_flag: true,
    rejected_in_schemas: &[],
    thinking: Thinking::Any,
    media_from_user: |media| match media.body {
        MediaBody::Base64 { media_type, data } => {
            super::gemini::accepts_inline(&media_type.text()) && is_base64(data)
        }
        MediaBody::Url(url) => is_web(media.body) || url.text().starts_with("gs://"),
        MediaBody::FileId { id, .. } => !id.is_empty() && is_file_of(media.body, "google"),
        MediaBody::Text(_) | MediaBody::Unknown => false,
    },
    media_in_results: |_| false,
    provider_parts: super::gemini::is_provider_part,
    provider_parts_in_results: |_| false,
};

static BEDROCK_CONVERSE: Dialect = Dialect {
    target: Target::BedrockConverse,
    provider: "bedrock",
    requires_alternation: true,
    requires_thinking_first: true,
    ids: PLAIN_NAME,
    names: PLAIN_NAME,
    input_is_object: true,
    accepts_empty_text: false,
    has_refusals: false,
    has_custom_calls: false,
    supports_names: false,
    has_error_flag: true,
    rejected_in_schemas: &["anyOf", "oneOf", "allOf"],
    thinking: Thinking::Signed,
    media_from_user: super::bedrock_converse::accepts_media,
    media_in_results: super::bedrock_converse::accepts_media,
    provider_parts: super::bedrock_converse::is_provider_part,
    provider_parts_in_results: super::bedrock_converse::is_part_of_result,
};

/// Image types that OpenAI and Anthropic accept.
pub(super) const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

fn is_image(body: MediaBody<'_>) -> bool {
    match body {
        MediaBody::Base64 { media_type, data } => {
            IMAGES.contains(&&*media_type.text()) && is_base64(data)
        }
        _ => is_web(body),
    }
}

fn is_audio(body: MediaBody<'_>) -> bool {
    matches!(body, MediaBody::Base64 { media_type, data }
        if audio_format(media_type).is_some() && is_base64(data))
}

/// OpenAI's name of an audio type.
pub(crate) fn audio_format(media_type: Str<'_>) -> Option<&'static str> {
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

/// True if the text is base64, standard or URL-safe, of at least one byte.
pub(crate) fn is_base64(data: Str<'_>) -> bool {
    let text = data.text();
    let body = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte);
    !body.is_empty()
        && text.len() - body.len() <= 2
        && body.len() % 4 != 1
        && body.bytes().all(is_digit)
}

/// Standard base64 with padding, which all providers except Google require.
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
