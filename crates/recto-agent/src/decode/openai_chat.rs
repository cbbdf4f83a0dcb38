//! OpenAI's chat completions, and the many servers that speak like it.
//!
//! Those differ in small things, which are all taken: calls without an index or an id, `reasoning`
//! instead of `reasoning_content`, usage in the last chunk or in one of its own, no `[DONE]`.

use serde::Deserialize;

use super::{Complaint, Decoder, OpenCall, read};
use crate::{Answer, AnswerPart, Delta, Failure, Finish, Usage};

#[derive(Default)]
pub(super) struct Chat {
    text: String,
    thinking: String,
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
    error: Option<Complaint>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Option<Said>,
    message: Option<Said>,
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Said {
    content: Option<String>,
    refusal: Option<String>,
    #[serde(alias = "reasoning")]
    reasoning_content: Option<String>,
    tool_calls: Option<Vec<CallPiece>>,
}

#[derive(Deserialize)]
struct CallPiece {
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

#[derive(Deserialize)]
pub(super) struct InputDetails {
    pub(super) cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct OutputDetails {
    pub(super) reasoning_tokens: Option<u64>,
}

impl Decoder for Chat {
    fn event(&mut self, data: &str, say: &mut dyn FnMut(Delta<'_>)) -> Result<(), Failure> {
        if data.trim() == "[DONE]" {
            // A server that never says why it ended has ended all the same.
            self.is_done = true;
            return Ok(());
        }
        self.take(read(data)?, say)
    }

    fn whole(&mut self, body: &str) -> Result<(), Failure> {
        let chunk: Chunk = read(body)?;
        if chunk.error.is_none() && chunk.choices.is_empty() {
            return Err(Failure::Malformed("there are no choices in it".into()));
        }
        self.is_done = true;
        self.take(chunk, &mut |_| {})
    }

    fn is_done(&self) -> bool {
        self.is_done || self.finish.is_some()
    }

    fn is_over(&self) -> bool {
        self.is_done
    }

    fn finish(self: Box<Self>) -> Answer {
        let is_done = self.is_done();
        let Chat { text, thinking, refusal, calls, finish, usage, model, id, .. } = *self;
        let mut answer = Answer { usage, model, id, ..Answer::default() };
        if !thinking.is_empty() {
            answer.parts.push(AnswerPart::Thinking { text: thinking, signature: None });
        }
        if !text.is_empty() {
            answer.parts.push(AnswerPart::text(text));
        }
        if !refusal.is_empty() {
            answer.parts.push(AnswerPart::Refusal(refusal));
        }
        let has_calls = !calls.is_empty();
        let is_cut = !is_done || finish == Some(Finish::Length);
        let last = calls.len().saturating_sub(1);
        for (nth, (_, call)) in calls.into_iter().enumerate() {
            // Only the last one can have been cut off; whether it was, its JSON says.
            if is_cut && nth == last && (call.input.is_empty() || !call.is_whole()) {
                answer.unfinished_calls.push(call.told());
            } else {
                answer.parts.push(call.part(nth));
            }
        }
        answer.finish = match finish {
            _ if !is_done => Finish::Cut,
            Some(Finish::Stop) | None if has_calls => Finish::ToolCalls,
            Some(finish) => finish,
            None => Finish::Stop,
        };
        answer
    }
}

impl Chat {
    fn take(&mut self, chunk: Chunk, say: &mut dyn FnMut(Delta<'_>)) -> Result<(), Failure> {
        if let Some(complaint) = chunk.error {
            return Err(complaint.into_failure());
        }
        self.id = self.id.take().or(chunk.id);
        self.model = self.model.take().or(chunk.model);
        if let Some(counts) = chunk.usage {
            self.usage = Some(Usage {
                input: counts.prompt_tokens,
                cached: counts.prompt_tokens_details.and_then(|it| it.cached_tokens).unwrap_or(0),
                cache_written: 0,
                output: counts.completion_tokens,
                reasoning: counts
                    .completion_tokens_details
                    .and_then(|it| it.reasoning_tokens)
                    .unwrap_or(0),
            });
        }
        // Only one answer is asked for.
        let Some(choice) = chunk.choices.into_iter().next() else { return Ok(()) };
        if let Some(said) = choice.delta.or(choice.message) {
            self.said(said, say);
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

    fn said(&mut self, said: Said, say: &mut dyn FnMut(Delta<'_>)) {
        if let Some(text) = said.reasoning_content.filter(|text| !text.is_empty()) {
            say(Delta::Thinking(&text));
            self.thinking.push_str(&text);
        }
        if let Some(text) = said.content.filter(|text| !text.is_empty()) {
            say(Delta::Text(&text));
            self.text.push_str(&text);
        }
        if let Some(text) = said.refusal {
            self.refusal.push_str(&text);
        }
        for piece in said.tool_calls.into_iter().flatten() {
            self.call(piece, say);
        }
    }

    fn call(&mut self, piece: CallPiece, say: &mut dyn FnMut(Delta<'_>)) {
        let CallPiece { index, id, function } = piece;
        let id = id.filter(|id| !id.is_empty());
        let name = function.as_ref().and_then(|it| it.name.clone()).filter(|name| !name.is_empty());
        let open = match index {
            Some(_) => self.calls.iter().rposition(|(number, _)| *number == index),
            None => self.calls.len().checked_sub(1),
        };
        // Some servers give every call the same number, or none: then another id is another call.
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
            say(Delta::Call(&name));
            call.name = name;
        }
        if let Some(arguments) = function.and_then(|it| it.arguments) {
            call.input.push_str(&arguments);
        }
    }
}
