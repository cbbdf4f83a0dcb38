//! OpenAI's chat completions API and compatible servers.
//!
//! Compatible servers differ in details, and all variants are accepted: tool calls without an index or
//! an id, `reasoning` instead of `reasoning_content`, usage in the last chunk or in a separate one, no
//! `[DONE]`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Decoder, OpenCall, ProviderError, read};
use crate::{Delta, Failure, Finish, Reply, ReplyPart, Usage};

#[derive(Default)]
pub(super) struct Chat {
    text: String,
    thinking: String,
    reasoning_details: Vec<Value>,
    refusal: String,
    calls: Vec<(Option<u64>, OpenCall)>,
    finish: Option<Finish>,
    is_done: bool,
    usage: Option<Usage>,
    model: Option<String>,
    id: Option<String>,
}

#[derive(Deserialize)]
struct Chunk {
    id: Option<String>,
    model: Option<String>,
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<Counts>,
    error: Option<ProviderError>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Option<MessageDelta>,
    message: Option<MessageDelta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct MessageDelta {
    content: Option<String>,
    refusal: Option<String>,
    reasoning_content: Option<String>,
    /// The same text as `reasoning_content`, under the name that OpenRouter and vLLM use. Some servers
    /// send both.
    reasoning: Option<String>,
    /// OpenRouter's signed or encrypted reasoning.
    reasoning_details: Option<Vec<Value>>,
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Deserialize)]
struct CallDelta {
    index: Option<u64>,
    id: Option<String>,
    function: Option<Function>,
}

#[derive(Deserialize)]
struct Function {
    name: Option<String>,
    arguments: Option<String>,
}

#[derive(Deserialize)]
struct Counts {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    prompt_tokens_details: Option<InputDetails>,
    completion_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize, Default)]
pub(super) struct InputDetails {
    pub(super) cached_tokens: Option<u64>,
    pub(super) cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct OutputDetails {
    pub(super) reasoning_tokens: Option<u64>,
}

impl Decoder for Chat {
    fn read_event(
        &mut self,
        data: &str,
        on_delta: &mut dyn FnMut(Delta<'_>),
    ) -> Result<(), Failure> {
        if data.trim() == "[DONE]" {
            // Some servers send no finish reason.
            self.is_done = true;
            return Ok(());
        }
        self.take(read(data)?, on_delta)
    }

    fn read_body(&mut self, body: &str) -> Result<(), Failure> {
        let chunk: Chunk = read(body)?;
        if chunk.error.is_none() && chunk.choices.is_empty() {
            return Err(Failure::Malformed("the response has no choices".into()));
        }
        self.is_done = true;
        self.take(chunk, &mut |_| {})
    }

    fn is_reply_complete(&self) -> bool {
        self.is_done || self.finish.is_some()
    }

    fn is_stream_over(&self) -> bool {
        self.is_done
    }

    fn finish(self: Box<Self>) -> Reply {
        let is_done = self.is_reply_complete();
        let Chat { text, thinking, reasoning_details, refusal, calls, .. } = *self;
        let Chat { finish, usage, model, id, .. } = *self;
        let mut reply = Reply { usage, model, id, ..Reply::default() };
        if !thinking.is_empty() {
            reply.parts.push(ReplyPart::Thinking { text: thinking, signature: None });
        }
        // The signature comes last, so an interrupted reply may have none.
        if is_done && !reasoning_details.is_empty() {
            let part = json!({"type": "reasoning_details", "reasoning_details": reasoning_details});
            reply.parts.push(ReplyPart::Opaque(part.to_string()));
        }
        if !text.is_empty() {
            reply.parts.push(ReplyPart::text(text));
        }
        if !refusal.is_empty() {
            reply.parts.push(ReplyPart::Refusal(refusal));
        }
        let has_calls = !calls.is_empty();
        let is_cut = !is_done || finish == Some(Finish::Length);
        let last = calls.len().saturating_sub(1);
        for (nth, (_, call)) in calls.into_iter().enumerate() {
            // Only the last call can be cut off. It counts as cut off if its input is empty or incomplete.
            if is_cut && nth == last && (call.input.is_empty() || !call.is_complete()) {
                reply.incomplete_calls.push(call.description());
            } else {
                reply.parts.push(call.part(nth));
            }
        }
        reply.finish = match finish {
            _ if !is_done => Finish::Cut,
            Some(Finish::Stop) | None if has_calls => Finish::ToolCalls,
            Some(finish) => finish,
            None => Finish::Stop,
        };
        reply
    }
}

impl Chat {
    fn take(&mut self, chunk: Chunk, on_delta: &mut dyn FnMut(Delta<'_>)) -> Result<(), Failure> {
        if let Some(error) = chunk.error {
            return Err(error.into_failure());
        }
        self.id = self.id.take().or(chunk.id);
        self.model = self.model.take().or(chunk.model);
        if let Some(counts) = chunk.usage {
            let details = counts.prompt_tokens_details.unwrap_or_default();
            self.usage = Some(Usage {
                input: counts.prompt_tokens,
                cached: details.cached_tokens.unwrap_or(0),
                cache_written: details.cache_write_tokens.unwrap_or(0),
                output: counts.completion_tokens,
                reasoning: counts
                    .completion_tokens_details
                    .and_then(|it| it.reasoning_tokens)
                    .unwrap_or(0),
                ..Usage::default()
            });
        }
        // The request asks for one choice.
        let Some(choice) = chunk.choices.into_iter().next() else { return Ok(()) };
        if let Some(delta) = choice.delta.or(choice.message) {
            self.take_delta(delta, on_delta);
        }
        if let Some(reason) = choice.finish_reason {
            self.finish = Some(match reason.as_str() {
                "stop" | "end_turn" | "eos" => Finish::Stop,
                "tool_calls" | "function_call" => Finish::ToolCalls,
                "length" | "max_tokens" => Finish::Length,
                "content_filter" | "refusal" => Finish::Refused,
                _ => Finish::Other(reason),
            });
        }
        Ok(())
    }

    fn take_delta(&mut self, delta: MessageDelta, on_delta: &mut dyn FnMut(Delta<'_>)) {
        let given = |text: &String| !text.is_empty();
        let thinking = delta.reasoning_content.filter(given).or(delta.reasoning.filter(given));
        for detail in delta.reasoning_details.into_iter().flatten() {
            self.take_detail(detail);
        }
        if let Some(text) = thinking {
            on_delta(Delta::Thinking(&text));
            self.thinking.push_str(&text);
        }
        if let Some(text) = delta.content.filter(|text| !text.is_empty()) {
            on_delta(Delta::Text(&text));
            self.text.push_str(&text);
        }
        if let Some(text) = delta.refusal {
            self.refusal.push_str(&text);
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.take_call(call, on_delta);
        }
    }

    /// Adds an item of `reasoning_details`. A text is streamed in pieces with the same index; the last piece
    /// has the signature.
    fn take_detail(&mut self, piece: Value) {
        let is_piece_of = |open: &&mut Value| {
            open["type"] == "reasoning.text"
                && ["type", "index", "id"].iter().all(|key| open[*key] == piece[*key])
        };
        let Some(open) = self.reasoning_details.last_mut().filter(is_piece_of) else {
            return self.reasoning_details.push(piece);
        };
        let Value::Object(fields) = piece else { return };
        for (key, value) in fields {
            match (&mut open[&key], value) {
                (Value::String(text), Value::String(more)) if key == "text" => text.push_str(&more),
                (known @ Value::Null, value) => *known = value,
                _ => {}
            }
        }
    }

    fn take_call(&mut self, delta: CallDelta, on_delta: &mut dyn FnMut(Delta<'_>)) {
        let CallDelta { index, id, function } = delta;
        let id = id.filter(|id| !id.is_empty());
        let name = function.as_ref().and_then(|it| it.name.clone()).filter(|name| !name.is_empty());
        let open = match index {
            Some(_) => self.calls.iter().rposition(|(number, _)| *number == index),
            None => self.calls.len().checked_sub(1),
        };
        // Some servers send the same index for every call, or none. So a new id starts a new call, and
        // without an index a name does too.
        let open = open.filter(|&at| {
            let call = &self.calls[at].1;
            let is_other_id = id.as_ref().is_some_and(|id| !call.id.is_empty() && *id != call.id);
            let is_named_again = index.is_none() && name.is_some() && !call.name.is_empty();
            !is_other_id && !is_named_again
        });
        let at = open.unwrap_or_else(|| {
            self.calls.push((index, OpenCall::default()));
            self.calls.len() - 1
        });
        let call = &mut self.calls[at].1;
        if let Some(id) = id {
            call.id = id;
        }
        if let Some(name) = name.filter(|_| call.name.is_empty()) {
            on_delta(Delta::ToolCall(&name));
            call.name = name;
        }
        if let Some(arguments) = function.and_then(|it| it.arguments) {
            call.input.push_str(&arguments);
        }
    }
}
