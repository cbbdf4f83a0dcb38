//! Validators of provider requests, written from the public rules of the providers
//! and from error messages that users have reported.
//!
//! [`Provider::check`] takes a whole request and returns the first rule that it
//! breaks, with the path of the wrong value. The validators do not depend on Recto's rendering; tests
//! check rendered requests with them.
//!
//! If a provider is lenient in one case and strict in another, the strict rule
//! applies, so that the provider accepts every request that passes here.

use std::fmt;

use serde_json::{Map, Value};

pub mod anthropic;
pub mod bedrock_converse;
pub mod gemini;
pub mod openai_chat;
pub mod openai_responses;
pub mod tools;

/// A provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Provider {
    /// OpenAI's Chat Completions.
    OpenAiChat,
    /// OpenAI's Responses.
    OpenAiResponses,
    /// Anthropic's Messages.
    Anthropic,
    /// Google's Gemini, `generateContent`.
    Gemini,
    /// Amazon Bedrock's Converse.
    BedrockConverse,
}

impl Provider {
    /// All providers.
    pub const ALL: [Self; 5] = [
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::BedrockConverse,
    ];

    /// Checks a request. The error is the first rule that it breaks.
    pub fn check(self, request: &Value) -> Result<(), Violation> {
        match self {
            Self::OpenAiChat => openai_chat::check(request),
            Self::OpenAiResponses => openai_responses::check(request),
            Self::Anthropic => anthropic::check(request),
            Self::Gemini => gemini::check(request),
            Self::BedrockConverse => bedrock_converse::check(request),
        }
    }

    /// The names of the rules.
    #[must_use]
    pub fn rules(self) -> &'static [&'static str] {
        match self {
            Self::OpenAiChat => openai_chat::RULES,
            Self::OpenAiResponses => openai_responses::RULES,
            Self::Anthropic => anthropic::RULES,
            Self::Gemini => gemini::RULES,
            Self::BedrockConverse => bedrock_converse::RULES,
        }
    }

    /// The name of the provider in Recto.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::BedrockConverse => "bedrock-converse",
        }
    }
}

/// A rule that a request breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The name of the rule.
    pub rule: &'static str,
    /// The path of the wrong value in the request: `messages[3].content[0].id`.
    pub at: String,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}", self.rule, self.at, self.reason)
    }
}

impl std::error::Error for Violation {}

/// The result of a check.
type Check<T = ()> = Result<T, Violation>;

/// The error that `rule` is broken at `at`.
fn refuse<T>(rule: &'static str, at: impl Into<String>, reason: impl Into<String>) -> Check<T> {
    Err(Violation { rule, at: at.into(), reason: reason.into() })
}

/// `value` as an object.
fn object<'a>(value: &'a Value, rule: &'static str, at: &str) -> Check<&'a Map<String, Value>> {
    match value {
        Value::Object(map) => Ok(map),
        other => refuse(rule, at, format!("expected an object, found {}", kind(other))),
    }
}

/// `value` as a list that is not empty.
fn filled_list<'a>(value: Option<&'a Value>, rule: &'static str, at: &str) -> Check<&'a [Value]> {
    match value {
        Some(Value::Array(list)) if !list.is_empty() => Ok(list),
        Some(Value::Array(_)) => refuse(rule, at, "the list is empty"),
        Some(other) => refuse(rule, at, format!("expected a list, found {}", kind(other))),
        None => refuse(rule, at, "missing"),
    }
}

/// A field that must be a string.
fn string<'a>(
    map: &'a Map<String, Value>,
    field: &str,
    rule: &'static str,
    at: &str,
) -> Check<&'a str> {
    match map.get(field) {
        Some(Value::String(text)) => Ok(text),
        Some(other) => refuse(
            rule,
            format!("{at}.{field}"),
            format!("expected a string, found {}", kind(other)),
        ),
        None => refuse(rule, format!("{at}.{field}"), "missing"),
    }
}

/// A field that must be a string that is not empty.
fn filled_string<'a>(
    map: &'a Map<String, Value>,
    field: &str,
    rule: &'static str,
    at: &str,
) -> Check<&'a str> {
    match string(map, field, rule, at)? {
        "" => refuse(rule, format!("{at}.{field}"), "the string is empty"),
        text => Ok(text),
    }
}

/// No fields except `known`: providers refuse unknown fields with status 400.
fn only_fields(map: &Map<String, Value>, known: &[&str], rule: &'static str, at: &str) -> Check {
    match map.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => refuse(rule, format!("{at}.{key}"), "unknown field"),
        None => Ok(()),
    }
}

/// Whether `text` has 1 to `max` characters, which are ASCII letters, digits or characters of `extra`.
fn is_word(text: &str, extra: &str, max: usize) -> bool {
    !text.is_empty()
        && text.len() <= max
        && text.chars().all(|c| c.is_ascii_alphanumeric() || extra.contains(c))
}

/// Whether `text` is base64 in the standard or the URL-safe alphabet.
fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    text.len() - body.len() <= 2 && body.len() % 4 != 1 && is_word(body, "+/-_", usize::MAX)
}

/// Whether `text` is base64 in the standard alphabet with padding, as all providers except Google require.
fn is_plain_base64(text: &str) -> bool {
    is_base64(text) && text.len().is_multiple_of(4) && !text.contains(['-', '_'])
}

/// The image types that OpenAI and Anthropic accept.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// The kind of a JSON value, for messages.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
