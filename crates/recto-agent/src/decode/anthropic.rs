//! Anthropic's Messages API: blocks that start, grow and stop.
//!
//! Thinking is kept with its signature unchanged. Blocks that only Anthropic supports (redacted
//! thinking, server-side searches) are kept as received, with their streamed input inserted.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Decoder, OpenCall, ProviderError, read};
use crate::{CompactionUsage, Delta, Failure, Finish, Reply, ReplyPart, Usage};

#[derive(Default)]
pub(super) struct Messages {
    blocks: Vec<Block>,
    stop: Option<String>,
    is_done: bool,
    usage: Option<Usage>,
    model: Option<String>,
    id: Option<String>,
}

/// A content block.
struct Block {
    index: u64,
    /// Whether `content_block_stop` was received.
    is_complete: bool,
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
    /// The second text is the input in `content_block_start`.
    Call(OpenCall, String),
    /// A block in the provider's own format. The second text is an input that was streamed.
    Opaque(String, String),
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
    delta: Option<BlockDelta<'a>>,
    usage: Option<Counts>,
    error: Option<ProviderError>,
}

#[derive(Deserialize)]
struct Message<'a> {
    id: Option<String>,
    model: Option<String>,
    #[serde(borrow, default)]
    content: Vec<&'a RawValue>,
    stop_reason: Option<String>,
    usage: Option<Counts>,
    error: Option<ProviderError>,
}

#[derive(Deserialize)]
struct BlockDelta<'a> {
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
    #[serde(borrow)]
    citation: Option<&'a RawValue>,
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct BlockStart<'a> {
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

#[derive(Deserialize, Default)]
#[serde(default)]
struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_creation: Option<CacheCreation>,
    /// The passes of the model over the prompt. The counts of compactions are only here.
    iterations: Option<Vec<Iteration>>,
}

/// Tokens that were written to the cache, by the time for which they are kept.
#[derive(Deserialize, Default)]
#[serde(default)]
struct CacheCreation {
    ephemeral_1h_input_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Iteration {
    #[serde(rename = "type")]
    kind: String,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

impl Iteration {
    fn usage(&self) -> CompactionUsage {
        let cached = self.cache_read_input_tokens.unwrap_or(0);
        let cache_written = self.cache_creation_input_tokens.unwrap_or(0);
        let fresh = self.input_tokens.unwrap_or(0);
        CompactionUsage {
            input: fresh.saturating_add(cached).saturating_add(cache_written),
            cached,
            cache_written,
            output: self.output_tokens.unwrap_or(0),
        }
    }
}

impl Decoder for Messages {
    fn read_event(
        &mut self,
        data: &str,
        on_delta: &mut dyn FnMut(Delta<'_>),
    ) -> Result<(), Failure> {
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
                    on_delta(Delta::ToolCall(&call.name));
                }
                self.blocks.push(block);
            }
            "content_block_delta" => {
                let index = event.index.unwrap_or(0);
                let block = self.blocks.iter_mut().rfind(|block| block.index == index);
                let Some(block) = block else { return Err(missing("content_block_start")) };
                block.grow(event.delta.ok_or_else(|| missing("delta"))?, on_delta);
            }
            "content_block_stop" => {
                let index = event.index.unwrap_or(0);
                if let Some(block) = self.blocks.iter_mut().rfind(|block| block.index == index) {
                    block.is_complete = true;
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
            // Pings, and unknown events.
            _ => {}
        }
        Ok(())
    }

    fn read_body(&mut self, body: &str) -> Result<(), Failure> {
        let message: Message<'_> = read(body)?;
        if let Some(error) = message.error {
            return Err(error.into_failure());
        }
        (self.id, self.model, self.stop) = (message.id, message.model, message.stop_reason);
        self.count(message.usage);
        for (index, block) in message.content.into_iter().enumerate() {
            let block = Block::start(index as u64, block.get())?;
            self.blocks.push(Block { is_complete: true, ..block });
        }
        if self.stop.is_none() && self.blocks.is_empty() {
            return Err(Failure::Malformed("the response has no content".into()));
        }
        self.is_done = true;
        Ok(())
    }

    fn is_reply_complete(&self) -> bool {
        self.is_done || self.stop.is_some()
    }

    fn is_stream_over(&self) -> bool {
        self.is_done
    }

    fn finish(self: Box<Self>) -> Reply {
        let is_done = self.is_reply_complete();
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
        let mut reply = Reply { finish, usage, model, id, ..Reply::default() };
        for (nth, Block { is_complete, kind, .. }) in self.blocks.into_iter().enumerate() {
            match kind {
                Kind::Text { text, citations } => {
                    reply.parts.push(ReplyPart::Text { text, citations, item_id: None });
                }
                Kind::Thinking { text, signature } => {
                    let signature = Some(signature).filter(|signature| !signature.is_empty());
                    reply.parts.push(ReplyPart::Thinking { text, signature });
                }
                Kind::Call(mut call, given) => {
                    if call.input.is_empty() {
                        call.input = given;
                    }
                    match is_complete && (!is_cut || call.is_complete()) {
                        true => reply.parts.push(call.part(nth)),
                        false => reply.incomplete_calls.push(call.description()),
                    }
                }
                // An incomplete block in the provider's own format cannot be sent back.
                Kind::Opaque(..) if !is_complete => {}
                Kind::Opaque(block, input) => {
                    reply.parts.push(ReplyPart::Opaque(with_input(block, &input)))
                }
            }
        }
        reply
    }
}

impl Messages {
    /// Updates the usage with reported counts. A message reports counts at its start and again at its end; a
    /// count that is missing at the end keeps its value.
    fn count(&mut self, counts: Option<Counts>) {
        let Some(counts) = counts else { return };
        let usage = self.usage.get_or_insert_default();
        let cached = counts.cache_read_input_tokens.unwrap_or(usage.cached);
        let written = counts.cache_creation_input_tokens.unwrap_or(usage.cache_written);
        let fresh = usage.input - usage.cached - usage.cache_written;
        let fresh = counts.input_tokens.unwrap_or(fresh);
        let written_1h = counts.cache_creation.and_then(|it| it.ephemeral_1h_input_tokens);
        let compactions = counts.iterations.map(|iterations| {
            let compactions = iterations.iter().filter(|it| it.kind == "compaction");
            let none = CompactionUsage::default();
            compactions.fold(none, |sum, it| sum.plus(it.usage()))
        });
        *usage = Usage {
            input: fresh.saturating_add(cached).saturating_add(written),
            cached,
            cache_written: written,
            cache_written_1h: written_1h.unwrap_or(usage.cache_written_1h),
            output: counts.output_tokens.unwrap_or(usage.output),
            reasoning: 0,
            compaction: compactions.unwrap_or(usage.compaction),
        };
    }
}

impl Block {
    fn start(index: u64, json: &str) -> Result<Block, Failure> {
        let start: BlockStart<'_> = read(json)?;
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
            _ => Kind::Opaque(json.to_owned(), String::new()),
        };
        Ok(Block { index, is_complete: false, kind })
    }

    fn grow(&mut self, delta: BlockDelta<'_>, on_delta: &mut dyn FnMut(Delta<'_>)) {
        match &mut self.kind {
            Kind::Text { text, citations } => {
                if let Some(more) = delta.text {
                    on_delta(Delta::Text(&more));
                    text.push_str(&more);
                }
                citations.extend(delta.citation.map(|citation| citation.get().to_owned()));
            }
            Kind::Thinking { text, signature } => {
                if let Some(more) = delta.thinking {
                    on_delta(Delta::Thinking(&more));
                    text.push_str(&more);
                }
                signature.push_str(delta.signature.as_deref().unwrap_or_default());
            }
            Kind::Call(call, _) => {
                call.input.push_str(delta.partial_json.as_deref().unwrap_or_default());
            }
            Kind::Opaque(_, input) => {
                input.push_str(delta.partial_json.as_deref().unwrap_or_default());
            }
        }
    }
}

/// A block in the provider's own format with its streamed input.
fn with_input(block: String, input: &str) -> String {
    if input.is_empty() {
        return block;
    }
    let (Ok(Value::Object(mut fields)), Ok(input)) =
        (serde_json::from_str(&block), serde_json::from_str::<Value>(input))
    else {
        tracing::warn!("the streamed input of a block is not JSON and was dropped");
        return block;
    };
    fields.insert("input".into(), input);
    Value::Object(fields).to_string()
}

fn missing(what: &str) -> Failure {
    Failure::Malformed(format!("an event has no {what}"))
}
