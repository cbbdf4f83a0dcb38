//! What a provider sends, read into an [`Answer`]: whole, or event by event.
//!
//! One file a provider. A decoder knows nothing of connections: it is told events, says [`Delta`]s, and
//! gives what it has at any time, so that a stream that breaks leaves what was said until then.

mod anthropic;
mod openai_chat;
mod openai_responses;

use recto_format::Target;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Answer, AnswerPart, Delta, Failure};

/// Reads one answer.
pub(crate) trait Decoder: Send {
    /// The next event of a stream.
    fn event(&mut self, data: &str, say: &mut dyn FnMut(Delta<'_>)) -> Result<(), Failure>;

    /// An answer that came whole.
    fn whole(&mut self, body: &str) -> Result<(), Failure>;

    /// Whether the answer is whole. What it used may still come.
    fn is_done(&self) -> bool;

    /// Whether nothing more comes.
    fn is_over(&self) -> bool;

    /// What there is: all of it, or what was said before the stream broke.
    fn finish(self: Box<Self>) -> Answer;
}

/// The decoder for a target; `None` if there is none.
pub(crate) fn decoder(target: Target) -> Option<Box<dyn Decoder>> {
    match target {
        Target::OpenAiChat => Some(Box::new(openai_chat::Chat::default())),
        Target::OpenAiResponses => Some(Box::new(openai_responses::Responses::default())),
        Target::Anthropic => Some(Box::new(anthropic::Messages::default())),
        Target::Gemini => None,
    }
}

/// Reads JSON of a shape that the provider promised.
pub(crate) fn read<'a, T: Deserialize<'a>>(data: &'a str) -> Result<T, Failure> {
    serde_json::from_str(data).map_err(|error| {
        // It is cut once nothing secret is in it.
        let start: String = data.chars().take(2_000).collect();
        Failure::Malformed(format!("{error} in {start:?}"))
    })
}

/// What a provider says about a failure, in any of the forms that are about.
#[derive(Deserialize, Default, Debug)]
#[serde(default)]
pub(crate) struct Complaint {
    pub(crate) message: Option<String>,
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) code: Option<Box<RawValue>>,
}

impl Complaint {
    /// Of an error that came inside a stream.
    pub(crate) fn into_failure(self) -> Failure {
        let code = self.code.as_deref().map(|code| code.get().trim_matches('"').to_owned());
        let is_too_long = code.as_deref().is_some_and(crate::refusal::is_too_long);
        let kind = self.kind.clone().or(code.filter(|code| code != "null"));
        let message = match (self.message, &kind) {
            (Some(message), Some(kind)) => format!("{kind}: {message}"),
            (Some(message), None) => message,
            (None, Some(kind)) => kind.clone(),
            (None, None) => "no reason was given".into(),
        };
        match kind.as_deref() {
            _ if is_too_long || crate::refusal::is_too_long(&message) => {
                Failure::TooLong { status: 200, message }
            }
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

/// A call whose input is still on its way.
#[derive(Debug, Default, Clone)]
pub(crate) struct OpenCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) input: String,
}

impl OpenCall {
    /// As a part.
    pub(crate) fn part(self, nth: usize) -> AnswerPart {
        let OpenCall { mut id, name, input } = self;
        if id.is_empty() {
            // Some servers give no ids. The number makes them differ inside the answer.
            id = format!("call_{nth}");
        }
        AnswerPart::Call { id, name, input, is_custom: false, item_id: None }
    }

    /// For the remark on a call that was cut off.
    pub(crate) fn told(&self) -> String {
        format!("{}: {}", self.name, self.input)
    }

    /// Whether the input is JSON, or nothing.
    pub(crate) fn is_whole(&self) -> bool {
        self.input.trim().is_empty() || recto::engine::json::value(&self.input).is_ok()
    }
}
