//! Anthropic's Messages: blocks that start, grow and stop.
//!
//! Thinking is kept with its signature, byte by byte. Blocks that only Anthropic understands (redacted
//! thoughts, searches on its servers) are kept as they came.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Complaint, Decoder, OpenCall, read};
use crate::{Answer, AnswerPart, Delta, Failure, Finish, Usage};

#[derive(Default)]
pub(super) struct Messages {
    blocks: Vec<Block>,
    stop: Option<String>,
    is_done: bool,
    usage: Option<Usage>,
    model: Option<String>,
    id: Option<String>,
}

/// A block, and whether it has stopped.
struct Block {
    index: u64,
    is_whole: bool,
    kind: Kind,
}

enum Kind {
    Text {
        text: String,
        citations: Vec<String>,
    },
    Thinking {
        text: String,
        signature: String,
    },
    /// The second text is the input that came with the start.
    Call(OpenCall, String),
    /// The second text is an input that came in pieces.
    Own(String, String),
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: String,
    index: Option<u64>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<Piece<'a>>,
    usage: Option<Counts>,
    error: Option<Complaint>,
}

#[derive(Deserialize)]
struct Message<'a> {
    id: Option<String>,
    model: Option<String>,
    #[serde(borrow, default)]
    content: Vec<&'a RawValue>,
    stop_reason: Option<String>,
    usage: Option<Counts>,
    error: Option<Complaint>,
}

#[derive(Deserialize)]
struct Piece<'a> {
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
    #[serde(borrow)]
    citation: Option<&'a RawValue>,
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Start<'a> {
    #[serde(rename = "type")]
    kind: String,
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    #[serde(borrow)]
    citations: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(default)]
struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

impl Decoder for Messages {
    fn event(&mut self, data: &str, say: &mut dyn FnMut(Delta<'_>)) -> Result<(), Failure> {
        let event: Event<'_> = read(data)?;
        match event.kind.as_str() {
            "message_start" => {
                let Some(message) = event.message else { return Err(missing("message")) };
                (self.id, self.model) = (message.id, message.model);
                self.count(message.usage);
            }
            "content_block_start" => {
                let Some(block) = event.content_block else { return Err(missing("content_block")) };
                let block = Block::start(event.index.unwrap_or(0), block.get())?;
                if let Kind::Call(call, _) = &block.kind {
                    say(Delta::Call(&call.name));
                }
                self.blocks.push(block);
            }
            "content_block_delta" => {
                let index = event.index.unwrap_or(0);
                let block = self.blocks.iter_mut().rfind(|block| block.index == index);
                let Some(block) = block else { return Err(missing("content_block_start")) };
                block.grow(event.delta.ok_or_else(|| missing("delta"))?, say);
            }
            "content_block_stop" => {
                let index = event.index.unwrap_or(0);
                if let Some(block) = self.blocks.iter_mut().rfind(|block| block.index == index) {
                    block.is_whole = true;
                }
            }
            "message_delta" => {
                if let Some(reason) = event.delta.and_then(|delta| delta.stop_reason) {
                    self.stop = Some(reason);
                }
                self.count(event.usage);
            }
            "message_stop" => self.is_done = true,
            "error" => return Err(event.error.unwrap_or_default().into_failure()),
            // Pings, and what is not known yet.
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: &str) -> Result<(), Failure> {
        let message: Message<'_> = read(body)?;
        if let Some(complaint) = message.error {
            return Err(complaint.into_failure());
        }
        (self.id, self.model, self.stop) = (message.id, message.model, message.stop_reason);
        self.count(message.usage);
        for (index, block) in message.content.into_iter().enumerate() {
            let block = Block::start(index as u64, block.get())?;
            self.blocks.push(Block { is_whole: true, ..block });
        }
        if self.stop.is_none() && self.blocks.is_empty() {
            return Err(Failure::Malformed("there is no content in it".into()));
        }
        self.is_done = true;
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.is_done || self.stop.is_some()
    }

    fn is_over(&self) -> bool {
        self.is_done
    }

    fn finish(self: Box<Self>) -> Answer {
        let is_done = self.is_done();
        let finish = match self.stop.as_deref() {
            _ if !is_done => Finish::Cut,
            Some("end_turn" | "stop_sequence") | None => Finish::Stop,
            Some("tool_use") => Finish::ToolCalls,
            Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
            Some("refusal") => Finish::Refused,
            Some(other) => Finish::Other(other.to_owned()),
        };
        let is_cut = matches!(finish, Finish::Cut | Finish::Length);
        let (usage, model, id) = (self.usage, self.model, self.id);
        let mut answer = Answer { finish, usage, model, id, ..Answer::default() };
        for (nth, Block { is_whole, kind, .. }) in self.blocks.into_iter().enumerate() {
            match kind {
                Kind::Text { text, citations } => {
                    answer.parts.push(AnswerPart::Text { text, citations, item_id: None });
                }
                Kind::Thinking { text, signature } => {
                    let signature = Some(signature).filter(|signature| !signature.is_empty());
                    answer.parts.push(AnswerPart::Thinking { text, signature });
                }
                Kind::Call(mut call, given) => {
                    if call.input.is_empty() {
                        call.input = given;
                    }
                    match is_whole && (!is_cut || call.is_whole()) {
                        true => answer.parts.push(call.part(nth)),
                        false => answer.unfinished_calls.push(call.told()),
                    }
                }
                // Half of what only the provider understands is of no use to it.
                Kind::Own(..) if !is_whole => {}
                Kind::Own(block, input) => {
                    answer.parts.push(AnswerPart::Own(with_input(block, &input)))
                }
            }
        }
        answer
    }
}

impl Messages {
    /// Counts come with the start and again, higher, with the end.
    fn count(&mut self, counts: Option<Counts>) {
        let Some(counts) = counts else { return };
        let usage = self.usage.get_or_insert_default();
        let cached = counts.cache_read_input_tokens.unwrap_or(usage.cached);
        let written = counts.cache_creation_input_tokens.unwrap_or(usage.cache_written);
        let fresh = usage.input - usage.cached - usage.cache_written;
        let fresh = counts.input_tokens.unwrap_or(fresh);
        *usage = Usage {
            input: fresh.saturating_add(cached).saturating_add(written),
            cached,
            cache_written: written,
            output: counts.output_tokens.unwrap_or(usage.output),
            reasoning: 0,
        };
    }
}

impl Block {
    fn start(index: u64, json: &str) -> Result<Block, Failure> {
        let start: Start<'_> = read(json)?;
        let kind = match start.kind.as_str() {
            "text" => Kind::Text {
                text: start.text.unwrap_or_default(),
                citations: start
                    .citations
                    .into_iter()
                    .flatten()
                    .map(|citation| citation.get().to_owned())
                    .collect(),
            },
            "thinking" => Kind::Thinking {
                text: start.thinking.unwrap_or_default(),
                signature: start.signature.unwrap_or_default(),
            },
            "tool_use" => {
                let (id, name) = (start.id.unwrap_or_default(), start.name.unwrap_or_default());
                let given = start.input.map_or("{}", RawValue::get).to_owned();
                Kind::Call(OpenCall { id, name, input: String::new() }, given)
            }
            _ => Kind::Own(json.to_owned(), String::new()),
        };
        Ok(Block { index, is_whole: false, kind })
    }

    fn grow(&mut self, piece: Piece<'_>, say: &mut dyn FnMut(Delta<'_>)) {
        match &mut self.kind {
            Kind::Text { text, citations } => {
                if let Some(more) = piece.text {
                    say(Delta::Text(&more));
                    text.push_str(&more);
                }
                citations.extend(piece.citation.map(|citation| citation.get().to_owned()));
            }
            Kind::Thinking { text, signature } => {
                if let Some(more) = piece.thinking {
                    say(Delta::Thinking(&more));
                    text.push_str(&more);
                }
                signature.push_str(piece.signature.as_deref().unwrap_or_default());
            }
            Kind::Call(call, _) => {
                call.input.push_str(piece.partial_json.as_deref().unwrap_or_default());
            }
            Kind::Own(_, input) => {
                input.push_str(piece.partial_json.as_deref().unwrap_or_default());
            }
        }
    }
}

/// A block of the provider's own whose input came in pieces.
fn with_input(block: String, input: &str) -> String {
    let (Ok(Value::Object(mut fields)), Ok(input)) =
        (serde_json::from_str(&block), serde_json::from_str::<Value>(input))
    else {
        return block;
    };
    fields.insert("input".into(), input);
    Value::Object(fields).to_string()
}

fn missing(what: &str) -> Failure {
    Failure::Malformed(format!("an event without its {what}"))
}
