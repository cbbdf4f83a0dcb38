//! OpenAI's Responses API: a list of items, each sent whole when it is complete.
//!
//! Deltas are needed only for the caller's callback and for interrupted replies. The reply is built from
//! `response.output_item.done`. The items in the list of `response.completed` replace these.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::openai_chat::{InputDetails, OutputDetails};
use super::{Decoder, OpenCall, ProviderError, read};
use crate::{Delta, Failure, Finish, Reply, ReplyPart, Usage};

#[derive(Default)]
pub(super) struct Responses {
    items: Vec<Item>,
    finish: Option<Finish>,
    usage: Option<Usage>,
    model: Option<String>,
    id: Option<String>,
}

/// An output item.
struct Item {
    index: u64,
    /// The complete item, as JSON.
    complete_json: Option<String>,
    /// The text received so far.
    text: String,
    /// The tool call received so far.
    call: OpenCall,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", default)]
    kind: String,
    output_index: Option<u64>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    delta: Option<String>,
    #[serde(borrow)]
    response: Option<Response<'a>>,
    message: Option<String>,
    code: Option<Box<RawValue>>,
    error: Option<ProviderError>,
}

#[derive(Deserialize)]
struct Response<'a> {
    id: Option<String>,
    model: Option<String>,
    status: Option<String>,
    #[serde(borrow)]
    output: Option<Vec<&'a RawValue>>,
    usage: Option<Counts>,
    error: Option<ProviderError>,
    incomplete_details: Option<Incomplete>,
}

#[derive(Deserialize)]
struct Incomplete {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Counts {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    input_tokens_details: Option<InputDetails>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
struct Typed {
    #[serde(rename = "type")]
    kind: String,
}

/// The fields of a message or a tool call. Other items are not parsed.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Output {
    id: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    input: Option<String>,
    status: Option<String>,
    content: Option<Vec<Content>>,
}

#[derive(Deserialize)]
struct Content {
    text: Option<String>,
    refusal: Option<String>,
}

impl Decoder for Responses {
    fn read_event(
        &mut self,
        data: &str,
        on_delta: &mut dyn FnMut(Delta<'_>),
    ) -> Result<(), Failure> {
        if data.trim() == "[DONE]" {
            return Ok(());
        }
        let event: Event<'_> = read(data)?;
        let index = event.output_index.unwrap_or(0);
        match event.kind.as_str() {
            "response.output_item.added" => {
                let Some(item) = event.item else { return Err(missing("item")) };
                let Typed { kind } = read(item.get())?;
                let output: Output = match is_known(&kind) {
                    true => read(item.get())?,
                    false => Output::default(),
                };
                if let Some(name) = &output.name {
                    on_delta(Delta::ToolCall(name));
                }
                let call = OpenCall {
                    id: output.call_id.unwrap_or_default(),
                    name: output.name.unwrap_or_default(),
                    input: output.arguments.unwrap_or_default(),
                };
                self.items.push(Item { index, complete_json: None, text: String::new(), call });
            }
            "response.output_text.delta" => {
                let text = event.delta.unwrap_or_default();
                on_delta(Delta::Text(&text));
                self.item(index).text.push_str(&text);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                on_delta(Delta::Thinking(&event.delta.unwrap_or_default()));
            }
            "response.function_call_arguments.delta" => {
                let piece = event.delta.unwrap_or_default();
                self.item(index).call.input.push_str(&piece);
            }
            "response.output_item.done" => {
                let Some(item) = event.item else { return Err(missing("item")) };
                let whole = item.get().to_owned();
                self.item(index).complete_json = Some(whole);
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.end(event.response.ok_or_else(|| missing("response"))?)?;
            }
            "error" => {
                let error = ProviderError { message: event.message, kind: None, code: event.code };
                return Err(event.error.unwrap_or(error).into_failure());
            }
            _ => {
                if let Some(response) = event.response {
                    (self.id, self.model) = (response.id, response.model);
                }
            }
        }
        Ok(())
    }

    fn read_body(&mut self, body: &str) -> Result<(), Failure> {
        let response: Response<'_> = read(body)?;
        if response.error.is_none() && response.output.is_none() {
            return Err(Failure::Malformed("the response has no output".into()));
        }
        self.end(response)
    }

    fn is_reply_complete(&self) -> bool {
        self.finish.is_some()
    }

    fn is_stream_over(&self) -> bool {
        self.finish.is_some()
    }

    fn finish(self: Box<Self>) -> Reply {
        let mut reply = Reply {
            finish: self.finish.unwrap_or(Finish::Cut),
            usage: self.usage,
            model: self.model,
            id: self.id,
            ..Reply::default()
        };
        for (nth, item) in self.items.into_iter().enumerate() {
            item.add_to(&mut reply, nth);
        }
        let has_calls = reply.parts.iter().any(|part| matches!(part, ReplyPart::ToolCall { .. }));
        if has_calls && reply.finish == Finish::Stop {
            reply.finish = Finish::ToolCalls;
        }
        reply
    }
}

impl Responses {
    fn item(&mut self, index: u64) -> &mut Item {
        let at = self.items.iter().position(|item| item.index == index).unwrap_or_else(|| {
            let (text, call) = (String::new(), OpenCall::default());
            self.items.push(Item { index, complete_json: None, text, call });
            self.items.len() - 1
        });
        &mut self.items[at]
    }

    fn end(&mut self, response: Response<'_>) -> Result<(), Failure> {
        if let Some(error) = response.error {
            return Err(error.into_failure());
        }
        self.id = response.id.or(self.id.take());
        self.model = response.model.or(self.model.take());
        if let Some(counts) = response.usage {
            let details = counts.input_tokens_details.unwrap_or_default();
            let reasoning = counts.output_tokens_details.and_then(|it| it.reasoning_tokens);
            self.usage = Some(Usage {
                input: counts.input_tokens,
                cached: details.cached_tokens.unwrap_or(0),
                cache_written: details.cache_write_tokens.unwrap_or(0),
                output: counts.output_tokens,
                reasoning: reasoning.unwrap_or(0),
                ..Usage::default()
            });
        }
        for (index, item) in response.output.into_iter().flatten().enumerate() {
            self.item(index as u64).complete_json = Some(item.get().to_owned());
        }
        let reason = response.incomplete_details.and_then(|details| details.reason);
        self.finish = Some(match (response.status.as_deref(), reason.as_deref()) {
            (_, Some("max_output_tokens")) => Finish::Length,
            (_, Some("content_filter")) => Finish::Refused,
            (Some("incomplete"), reason) => Finish::Other(reason.unwrap_or("incomplete").into()),
            (Some("completed") | None, _) => Finish::Stop,
            (Some(other), _) => Finish::Other(other.into()),
        });
        Ok(())
    }
}

impl Item {
    /// Adds the parts of the item to a reply. `nth` is the position of the item.
    fn add_to(self, reply: &mut Reply, nth: usize) {
        let Some(json) = self.complete_json else {
            if !self.text.is_empty() {
                reply.parts.push(ReplyPart::text(self.text));
            } else if !self.call.name.is_empty() {
                reply.incomplete_calls.push(self.call.description());
            }
            return;
        };
        let kind = serde_json::from_str(&json).map_or(String::new(), |Typed { kind }| kind);
        let output = match is_known(&kind) {
            true => serde_json::from_str::<Output>(&json).map_err(|error| {
                // The text of the error may contain values of the reply.
                let (kind, column) = (error.classify(), error.column());
                tracing::warn!(?kind, column, "an item of a reply cannot be read");
            }),
            false => Err(()),
        };
        let Ok(output) = output else {
            // Reasoning, items of tools that the provider runs, and items that are unknown or cannot be read
            // are sent back as received.
            reply.parts.push(ReplyPart::Opaque(json));
            return;
        };
        let call = |input: Option<String>| OpenCall {
            id: output.call_id.clone().unwrap_or_default(),
            name: output.name.clone().unwrap_or_default(),
            input: input.unwrap_or_default(),
        };
        match kind.as_str() {
            "message" => {
                // The first text carries the id of the item.
                let mut item_id = output.id;
                for content in output.content.into_iter().flatten() {
                    match (content.text, content.refusal) {
                        (Some(text), _) => reply.parts.push(ReplyPart::Text {
                            text,
                            citations: Vec::new(),
                            item_id: item_id.take(),
                        }),
                        (None, Some(refusal)) => {
                            reply.parts.push(ReplyPart::Refusal(refusal));
                        }
                        (None, None) => {}
                    }
                }
            }
            "function_call" => {
                let call = call(output.arguments.clone());
                match output.status.as_deref() {
                    Some("incomplete") if !call.is_complete() => {
                        reply.incomplete_calls.push(call.description());
                    }
                    _ => {
                        let mut part = call.part(nth);
                        if let ReplyPart::ToolCall { item_id, .. } = &mut part {
                            *item_id = output.id;
                        }
                        reply.parts.push(part);
                    }
                }
            }
            _ => {
                let OpenCall { id, name, input } = call(output.input.clone());
                let item_id = output.id;
                reply.parts.push(ReplyPart::ToolCall { id, name, input, is_custom: true, item_id });
            }
        }
    }
}

fn is_known(kind: &str) -> bool {
    matches!(kind, "message" | "function_call" | "custom_tool_call")
}

fn missing(what: &str) -> Failure {
    Failure::Malformed(format!("an event has no {what}"))
}
