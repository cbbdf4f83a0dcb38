//! Tools that a model can call: the [`RunTool`] trait, and running the calls of a reply.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use recto::{Message, Tool};
#[cfg(feature = "mcp")]
use recto_format::{RenderOptions, Target, render};
use tokio::sync::Semaphore;
use tracing::Instrument as _;

use crate::{BoxFuture, CancelToken, trace};

/// Maximum number of tool calls of one reply that run at the same time.
const MAX_CONCURRENT: usize = 8;
/// Maximum time between the cancellation of a run and the end of its tool calls, so that tools can stop by
/// themselves.
const CANCEL_GRACE: Duration = Duration::from_millis(100);

/// The output of a tool call that was cancelled.
pub(crate) const CANCELLED: &str = "the tool was cancelled before it was done";

/// A tool that an agent can run.
///
/// ```
/// use recto::Tool;
/// use recto_agent::{BoxFuture, RunTool, ToolInput, ToolOutput};
///
/// struct Length;
///
/// impl RunTool for Length {
///     fn describe(&self) -> Tool {
///         Tool::from_json(
///             r#"{"name": "length", "description": "The length of a text.", "input_schema": {
///                 "type": "object", "properties": {"text": {"type": "string"}}}}"#,
///         )
///         .unwrap()
///     }
///
///     fn run<'a>(&'a self, input: ToolInput<'a>) -> BoxFuture<'a, ToolOutput> {
///         Box::pin(async move {
///             match serde_json::from_str::<serde_json::Value>(input.json) {
///                 Ok(value) => ToolOutput::ok(value["text"].as_str().map_or(0, str::len).to_string()),
///                 Err(error) => ToolOutput::error(error.to_string()),
///             }
///         })
///     }
/// }
/// ```
pub trait RunTool: Send + Sync {
    /// Name, description and input schema, for the model.
    fn describe(&self) -> Tool;

    /// Runs a tool call. Up to eight calls of one reply run at the same time.
    fn run<'a>(&'a self, input: ToolInput<'a>) -> BoxFuture<'a, ToolOutput>;
}

/// The input of a tool call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolInput<'a> {
    /// The id of the tool call.
    pub id: &'a str,
    /// The input that the model wrote. It is a JSON object: calls with any other input fail before the
    /// tool runs.
    pub json: &'a str,
    /// Cancelled when the run is cancelled. A long-running tool should stop then; its future is dropped
    /// 100 ms later.
    pub cancel: CancelToken,
}

impl<'a> ToolInput<'a> {
    /// The input of a tool call that is not cancelled. Assign `cancel` to cancel it.
    pub fn new(id: &'a str, json: &'a str) -> ToolInput<'a> {
        ToolInput { id, json, cancel: CancelToken::new() }
    }
}

/// The output of a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolOutput {
    /// The text; may be empty.
    pub text: String,
    /// Whether the tool call failed. Providers whose format has an error flag receive it with the text.
    pub is_error: bool,
}

impl ToolOutput {
    /// The output of a successful tool call.
    pub fn ok(text: impl Into<String>) -> ToolOutput {
        ToolOutput { text: text.into(), is_error: false }
    }

    /// The output of a failed tool call.
    pub fn error(text: impl Into<String>) -> ToolOutput {
        ToolOutput { text: text.into(), is_error: true }
    }
}

/// A tool call of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) input: String,
}

impl ToolCall {
    /// The tool calls of a message.
    pub(crate) fn of(message: &Message) -> Vec<ToolCall> {
        let calls = message.tool_calls().map(|call| ToolCall {
            id: call.id.into_owned(),
            name: call.name.into_owned(),
            input: call.input.to_owned(),
        });
        calls.collect()
    }
}

/// The tools of an agent, by name.
#[derive(Clone, Default)]
pub(crate) struct ToolSet(Vec<(Tool, Arc<dyn RunTool>)>);

impl ToolSet {
    pub(crate) fn add(&mut self, tool: Arc<dyn RunTool>) {
        let described = tool.describe();
        self.0.retain(|(tool, _)| tool.name() != described.name());
        self.0.push((described, tool));
    }

    pub(crate) fn descriptions(&self) -> Vec<Tool> {
        self.0.iter().map(|(tool, _)| tool.clone()).collect()
    }

    /// Runs tool calls concurrently. Returns one output per call, in their order: a call of an unknown
    /// tool, a call that panics and a call that is cancelled have an error as their output.
    pub(crate) async fn run(&self, calls: &[ToolCall], cancel: &CancelToken) -> Vec<ToolOutput> {
        let permits = Semaphore::new(MAX_CONCURRENT);
        join_all(calls.iter().map(|call| self.run_traced(call, &permits, cancel))).await
    }

    async fn run_traced(
        &self,
        call: &ToolCall,
        permits: &Semaphore,
        cancel: &CancelToken,
    ) -> ToolOutput {
        let known = self.0.iter().map(|(tool, _)| tool.name()).find(|name| *name == call.name);
        let span = trace::tool_call(known);
        let start = Instant::now();
        let output = self.run_one(call, permits, cancel).instrument(span.clone()).await;
        span.record("is_error", output.is_error);
        span.record("duration_ms", trace::millis(start.elapsed()));
        span.record("output_bytes", output.text.len() as u64);
        output
    }

    async fn run_one(
        &self,
        call: &ToolCall,
        permits: &Semaphore,
        cancel: &CancelToken,
    ) -> ToolOutput {
        let Some((_, tool)) = self.0.iter().find(|(tool, _)| tool.name() == call.name) else {
            let names: Vec<&str> = self.0.iter().map(|(tool, _)| tool.name()).collect();
            let names = names.join(", ");
            return ToolOutput::error(format!(
                "there is no tool {:?}; there are: {names}",
                call.name
            ));
        };
        if let Err(reason) = check_input(&call.input) {
            return ToolOutput::error(reason);
        }
        let input = ToolInput { id: &call.id, json: &call.input, cancel: cancel.child() };
        let running = AssertUnwindSafe(async move {
            let _permit = permits.acquire().await;
            tool.run(input).await
        });
        let running = running.catch_unwind();
        tokio::select! {
            biased;
            done = running => match done {
                Ok(output) => output,
                Err(_) => {
                    tracing::warn!("the tool panicked");
                    ToolOutput::error("the tool panicked")
                }
            },
            () = cancelled(cancel) => ToolOutput::error(CANCELLED),
        }
    }
}

/// Checks that the tool can be rendered for every provider, because a tool that a provider rejects makes
/// every request fail. The error is the reason.
#[cfg(feature = "mcp")]
pub(crate) fn check(tool: &Tool) -> Result<(), String> {
    let message = Message::user("Hello.");
    for target in Target::ALL {
        let tools = std::slice::from_ref(tool);
        let options = RenderOptions { tools, ..RenderOptions::default() };
        render([&message], target, &options).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Checks that the input of a tool call is a JSON object. The error becomes the output of the call.
pub(crate) fn check_input(input: &str) -> Result<(), String> {
    // `Reply::to_message` stores an input that is not JSON as a JSON string.
    if let Some(text) = recto::engine::json::quoted(input)
        && let Err(error) = recto::engine::json::value(&recto::engine::json::unescape(text))
    {
        return Err(format!("the input is not JSON: {error}"));
    }
    match recto::engine::json::value(input) {
        Ok(value) if value.starts_with('{') => Ok(()),
        Ok(value) if value.starts_with('"') => {
            Err("the input must be a JSON object, not a string that contains one".into())
        }
        Ok(_) => Err("the input must be a JSON object".into()),
        Err(error) => Err(format!("the input is not JSON: {error}")),
    }
}

/// Completes [`CANCEL_GRACE`] after the token is cancelled.
async fn cancelled(cancel: &CancelToken) {
    cancel.cancelled().await;
    tokio::time::sleep(CANCEL_GRACE).await;
}
