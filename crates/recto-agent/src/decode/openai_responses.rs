//! OpenAI's Responses: a list of items, each told whole when it is done.
//!
//! Pieces are only needed for what is said while it comes, and for an answer that is cut off. What
//! counts is `response.output_item.done`, and the list in `response.completed` where that has more.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::openai_chat::{InputDetails, OutputDetails};
use super::{Complaint, Decoder, OpenCall, read};
use crate::{Answer, AnswerPart, Delta, Failure, Finish, Usage};

#[derive(Default)]
pub(super) struct Responses {
    items: Vec<Item>,
    finish: Option<Finish>,
    usage: Option<Usage>,
    model: Option<String>,
    id: Option<String>,
}

/// An item of the answer.
struct Item {
    index: u64,
    /// The item, once it is done.
    whole: Option<String>,
    /// What came before that.
    text: String,
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
    error: Option<Complaint>,
}

#[derive(Deserialize)]
struct Response<'a> {
    id: Option<String>,
    model: Option<String>,
    status: Option<String>,
    #[serde(borrow)]
    output: Option<Vec<&'a RawValue>>,
    usage: Option<Counts>,
    error: Option<Complaint>,
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

/// A message or a call. Other items are not looked into.
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
    fn event(&mut self, data: &str, say: &mut dyn FnMut(Delta<'_>)) -> Result<(), Failure> {
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
                    say(Delta::Call(name));
                }
                let call = OpenCall {
                    id: output.call_id.unwrap_or_default(),
                    name: output.name.unwrap_or_default(),
                    input: output.arguments.unwrap_or_default(),
                };
                self.items.push(Item { index, whole: None, text: String::new(), call });
            }
            "response.output_text.delta" => {
                let text = event.delta.unwrap_or_default();
                say(Delta::Text(&text));
                self.item(index).text.push_str(&text);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                say(Delta::Thinking(&event.delta.unwrap_or_default()));
            }
            "response.function_call_arguments.delta" => {
                let piece = event.delta.unwrap_or_default();
                self.item(index).call.input.push_str(&piece);
            }
            "response.output_item.done" => {
                let Some(item) = event.item else { return Err(missing("item")) };
                let whole = item.get().to_owned();
                self.item(index).whole = Some(whole);
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.end(event.response.ok_or_else(|| missing("response"))?)?;
            }
            "error" => {
                let told = Complaint { message: event.message, kind: None, code: event.code };
                return Err(event.error.unwrap_or(told).into_failure());
            }
            _ => {
                if let Some(response) = event.response {
                    (self.id, self.model) = (response.id, response.model);
                }
            }
        }
        Ok(())
    }

    fn whole(&mut self, body: &str) -> Result<(), Failure> {
        let response: Response<'_> = read(body)?;
        if response.error.is_none() && response.output.is_none() {
            return Err(Failure::Malformed("there is no output in it".into()));
        }
        self.end(response)
    }

    fn is_done(&self) -> bool {
        self.finish.is_some()
    }

    fn is_over(&self) -> bool {
        self.finish.is_some()
    }

    fn finish(self: Box<Self>) -> Answer {
        let mut answer = Answer {
            finish: self.finish.unwrap_or(Finish::Cut),
            usage: self.usage,
            model: self.model,
            id: self.id,
            ..Answer::default()
        };
        for (nth, item) in self.items.into_iter().enumerate() {
            item.put_into(&mut answer, nth);
        }
        let has_calls = answer.parts.iter().any(|part| matches!(part, AnswerPart::Call { .. }));
        if has_calls && answer.finish == Finish::Stop {
            answer.finish = Finish::ToolCalls;
        }
        answer
    }
}

impl Responses {
    fn item(&mut self, index: u64) -> &mut Item {
        let at = self.items.iter().position(|item| item.index == index).unwrap_or_else(|| {
            let (text, call) = (String::new(), OpenCall::default());
            self.items.push(Item { index, whole: None, text, call });
            self.items.len() - 1
        });
        &mut self.items[at]
    }

    fn end(&mut self, response: Response<'_>) -> Result<(), Failure> {
        if let Some(complaint) = response.error {
            return Err(complaint.into_failure());
        }
        self.id = response.id.or(self.id.take());
        self.model = response.model.or(self.model.take());
        if let Some(counts) = response.usage {
            let cached = counts.input_tokens_details.and_then(|it| it.cached_tokens);
            let reasoning = counts.output_tokens_details.and_then(|it| it.reasoning_tokens);
            self.usage = Some(Usage {
                input: counts.input_tokens,
                cached: cached.unwrap_or(0),
                cache_written: 0,
                output: counts.output_tokens,
                reasoning: reasoning.unwrap_or(0),
            });
        }
        for (index, item) in response.output.into_iter().flatten().enumerate() {
            self.item(index as u64).whole = Some(item.get().to_owned());
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
    /// Adds its parts to an answer.
    fn put_into(self, answer: &mut Answer, nth: usize) {
        let Some(json) = self.whole else {
            if !self.text.is_empty() {
                answer.parts.push(AnswerPart::text(self.text));
            } else if !self.call.name.is_empty() {
                answer.unfinished_calls.push(self.call.told());
            }
            return;
        };
        let kind = serde_json::from_str(&json).map_or(String::new(), |Typed { kind }| kind);
        let read = serde_json::from_str::<Output>(&json).ok().filter(|_| is_known(&kind));
        let Some(output) = read else {
            // Reasoning, searches and whatever else: for the provider alone.
            answer.parts.push(AnswerPart::Own(json));
            return;
        };
        let call = |input: Option<String>| OpenCall {
            id: output.call_id.clone().unwrap_or_default(),
            name: output.name.clone().unwrap_or_default(),
            input: input.unwrap_or_default(),
        };
        match kind.as_str() {
            "message" => {
                // The first text stands for the item.
                let mut item_id = output.id;
                for content in output.content.into_iter().flatten() {
                    match (content.text, content.refusal) {
                        (Some(text), _) => answer.parts.push(AnswerPart::Text {
                            text,
                            citations: Vec::new(),
                            item_id: item_id.take(),
                        }),
                        (None, Some(refusal)) => {
                            answer.parts.push(AnswerPart::Refusal(refusal));
                        }
                        (None, None) => {}
                    }
                }
            }
            "function_call" => {
                let call = call(output.arguments.clone());
                match output.status.as_deref() {
                    Some("incomplete") if !call.is_whole() => {
                        answer.unfinished_calls.push(call.told());
                    }
                    _ => {
                        let mut part = call.part(nth);
                        if let AnswerPart::Call { item_id, .. } = &mut part {
                            *item_id = output.id;
                        }
                        answer.parts.push(part);
                    }
                }
            }
            _ => {
                let OpenCall { id, name, input } = call(output.input.clone());
                let item_id = output.id;
                answer.parts.push(AnswerPart::Call { id, name, input, is_custom: true, item_id });
            }
        }
    }
}

fn is_known(kind: &str) -> bool {
    matches!(kind, "message" | "function_call" | "custom_tool_call")
}

fn missing(what: &str) -> Failure {
    Failure::Malformed(format!("an event without its {what}"))
}
