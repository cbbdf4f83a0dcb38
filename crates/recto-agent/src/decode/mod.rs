//! Decoders of provider responses into a [`Reply`]: whole responses and streams of events.
//!
//! There is one file per provider. A decoder does no input or output: it receives events, reports
//! [`Delta`]s, and can return what it has at any time, so that an interrupted stream leaves a partial
//! reply.

mod anthropic;
mod openai_chat;
mod openai_responses;

use std::borrow::Cow;

use recto_format::Target;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Delta, Failure, Reply, ReplyPart};

/// Decodes one reply.
pub(crate) trait Decoder: Send {
    /// Decodes the next event of a stream.
    fn read_event(
        &mut self,
        data: &str,
        on_delta: &mut dyn FnMut(Delta<'_>),
    ) -> Result<(), Failure>;

    /// Decodes a whole response body.
    fn read_body(&mut self, body: &str) -> Result<(), Failure>;

    /// Whether the reply is complete. Its usage may still follow.
    fn is_reply_complete(&self) -> bool;

    /// Whether the stream is complete.
    fn is_stream_over(&self) -> bool;

    /// The reply, or the part that was received.
    fn finish(self: Box<Self>) -> Reply;
}

/// The decoder for a target; `None` if the target has no client.
pub(crate) fn decoder(target: Target) -> Option<Box<dyn Decoder>> {
    match target {
        Target::OpenAiChat => Some(Box::new(openai_chat::Chat::default())),
        Target::OpenAiResponses => Some(Box::new(openai_responses::Responses::default())),
        Target::Anthropic => Some(Box::new(anthropic::Messages::default())),
        _ => None,
    }
}

/// Replaces escapes of lone surrogates in JSON by U+FFFD. Some servers send them where a reply is cut inside a
/// character. They are not Unicode text, so a string that contains one cannot be decoded.
pub(crate) fn without_lone_surrogates(json: &str) -> Cow<'_, str> {
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return Cow::Borrowed(json);
    }
    let code = |text: &str| {
        let digits = text.strip_prefix("\\u")?.get(..4)?;
        u32::from_str_radix(digits, 16).ok()
    };
    let (mut repaired, mut rest) = (String::with_capacity(json.len()), json);
    while let Some(at) = rest.find('\\') {
        repaired.push_str(&rest[..at]);
        rest = &rest[at..];
        let second = rest.get(6..).and_then(code);
        let len = match (code(rest), second) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                repaired.push_str("\\ufffd");
                rest = &rest[6..];
                continue;
            }
            // A backslash and the character after it, which may be a backslash too.
            _ => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        repaired.push_str(&rest[..len]);
        rest = &rest[len..];
    }
    repaired.push_str(rest);
    Cow::Owned(repaired)
}

/// Parses JSON of the provider.
pub(crate) fn read<'a, T: Deserialize<'a>>(data: &'a str) -> Result<T, Failure> {
    serde_json::from_str(data).map_err(|error| {
        // `Secrets::redact` shortens it further, after secrets are removed.
        let start: String = data.chars().take(2_000).collect();
        Failure::Malformed(format!("{error} in {start:?}"))
    })
}

/// Whether an error message states that the request exceeds the context window.
pub(crate) fn is_too_long(message: &str) -> bool {
    let message = message.to_lowercase();
    [
        "context_length_exceeded",
        "maximum context length",
        "prompt is too long",
        "context window",
        "exceed context limit",
        "request_too_large",
        "too many tokens",
    ]
    .iter()
    .any(|phrase| message.contains(phrase))
}

/// An error of a provider. Each provider sets some of the fields.
#[derive(Deserialize, Default, Debug)]
#[serde(default)]
pub(crate) struct ProviderError {
    pub(crate) message: Option<String>,
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) code: Option<Box<RawValue>>,
}

impl ProviderError {
    /// The failure for an error in a response with status 200: in an event of a stream or in the body.
    pub(crate) fn into_failure(self) -> Failure {
        let code = self.code.as_deref().map(|code| code.get().trim_matches('"').to_owned());
        let has_code = code.as_deref().is_some_and(is_too_long);
        let kind = self.kind.clone().or(code.filter(|code| code != "null"));
        let message = match (self.message, &kind) {
            (Some(message), Some(kind)) => format!("{kind}: {message}"),
            (Some(message), None) => message,
            (None, Some(kind)) => kind.clone(),
            (None, None) => "no reason given".into(),
        };
        match kind.as_deref() {
            _ if has_code || is_too_long(&message) => Failure::TooLong { status: 200, message },
            Some("rate_limit_error" | "rate_limit_exceeded") => {
                Failure::RateLimited { message, retry_after: None }
            }
            Some("invalid_request_error" | "invalid_prompt") => {
                Failure::Refused { status: 200, message }
            }
            _ => Failure::Provider { status: 200, message },
        }
    }
}

/// A tool call whose input is being received.
#[derive(Debug, Default, Clone)]
pub(crate) struct OpenCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) input: String,
}

impl OpenCall {
    /// The call as a part of the reply. `nth` is its position in the reply.
    pub(crate) fn part(self, nth: usize) -> ReplyPart {
        let OpenCall { mut id, name, input } = self;
        if id.is_empty() {
            // Some servers send no ids. The position makes the ids unique inside the reply.
            id = format!("call_{nth}");
        }
        ReplyPart::ToolCall { id, name, input, is_custom: false, item_id: None }
    }

    /// The text about an incomplete call that `Reply::incomplete_calls` contains.
    pub(crate) fn description(&self) -> String {
        format!("{}: {}", self.name, self.input)
    }

    /// Whether the input is complete: valid JSON or empty.
    pub(crate) fn is_complete(&self) -> bool {
        self.input.trim().is_empty() || recto::engine::json::value(&self.input).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CompactionUsage, Usage};

    #[test]
    fn only_lone_surrogates_are_replaced() {
        for (json, repaired) in [
            (r#""a\ud800""#, r#""a\ufffd""#),
            (r#""\udc00\ud83d\ude00\uD83D\n""#, r#""\ufffd\ud83d\ude00\ufffd\n""#),
            (r#""\ud800\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            // An escaped backslash before `ud800`: the input of a tool call, as text.
            (r#""{\"a\":\"\\ud800\"}""#, r#""{\"a\":\"\\ud800\"}""#),
            (r#""\ud8"#, r#""\ud8"#),
            (r#""\uD8é0""#, r#""\uD8é0""#),
            (r#""\u00e9 中\""#, r#""\u00e9 中\""#),
        ] {
            assert_eq!(without_lone_surrogates(json), repaired, "{json}");
        }
    }

    fn usage_of(target: Target, body: &str) -> Usage {
        let mut decoder = decoder(target).unwrap();
        decoder.read_body(body).unwrap();
        decoder.finish().usage.unwrap()
    }

    #[test]
    fn writes_to_the_cache_and_compactions_are_part_of_the_usage() {
        let usage = usage_of(
            Target::OpenAiChat,
            r#"{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":20,"cache_write_tokens":70}}}"#,
        );
        assert_eq!((usage.input, usage.cached, usage.cache_written), (100, 20, 70));
        let usage = usage_of(
            Target::OpenAiResponses,
            r#"{"status":"completed","output":[],"usage":{"input_tokens":100,"output_tokens":5,"input_tokens_details":{"cached_tokens":20,"cache_write_tokens":70}}}"#,
        );
        assert_eq!((usage.input, usage.cached, usage.cache_written), (100, 20, 70));
        let usage = usage_of(
            Target::Anthropic,
            r#"{"content":[],"stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":20,"cache_creation_input_tokens":70,"cache_creation":{"ephemeral_5m_input_tokens":30,"ephemeral_1h_input_tokens":40},"iterations":[{"type":"compaction","input_tokens":300,"cache_read_input_tokens":600,"output_tokens":7},{"type":"message","input_tokens":10,"output_tokens":5},{"type":"compaction","input_tokens":1,"cache_creation_input_tokens":2,"output_tokens":3}]}}"#,
        );
        assert_eq!((usage.input, usage.cached, usage.cache_written), (100, 20, 70));
        assert_eq!(usage.cache_written_1h, 40);
        let CompactionUsage { input, cached, cache_written, output } = usage.compaction;
        assert_eq!((input, cached, cache_written, output), (903, 600, 2, 10));
    }

    /// The counts at the end of a stream have only what has changed.
    #[test]
    fn the_start_and_the_end_of_a_stream_are_counted_together() {
        let mut decoder = decoder(Target::Anthropic).unwrap();
        for event in [
            r#"{"type":"message_start","message":{"usage":{"input_tokens":10,"cache_creation_input_tokens":70,"cache_creation":{"ephemeral_1h_input_tokens":40}}}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5,"iterations":[{"type":"compaction","input_tokens":300,"output_tokens":7}]}}"#,
            r#"{"type":"message_stop"}"#,
        ] {
            decoder.read_event(event, &mut |_| {}).unwrap();
        }
        let usage = decoder.finish().usage.unwrap();
        assert_eq!((usage.input, usage.cache_written_1h, usage.output), (80, 40, 5));
        assert_eq!((usage.compaction.input, usage.compaction.output), (300, 7));
    }
}
