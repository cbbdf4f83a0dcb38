//! Tools: what the model may call, and what does the work.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use recto::{Message, Tool};
#[cfg(feature = "clients")]
use recto_format::{RenderOptions, Target, render};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::BoxFuture;

/// So many calls of one answer run at the same time.
const AT_ONCE: usize = 8;

/// A tool that can be run.
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
///             r#"{"name": "length", "description": "How long a text is.", "input_schema": {
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
    /// What the model is told of it.
    fn describe(&self) -> Tool;

    /// Runs it. Calls of one answer run at the same time, eight at most.
    fn run<'a>(&'a self, input: ToolInput<'a>) -> BoxFuture<'a, ToolOutput>;
}

/// What a tool is given.
#[derive(Clone, Debug)]
pub struct ToolInput<'a> {
    /// The id of the call.
    pub id: &'a str,
    /// What the model wrote: a JSON object. A tool is not run with anything else.
    pub json: &'a str,
    /// Is cancelled when the run is: a tool that takes long should look at it. It is dropped soon
    /// after in any case.
    pub cancel: CancellationToken,
}

/// What a tool says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutput {
    /// What it says; it may be empty.
    pub text: String,
    /// Whether it failed. The model is told, and may do something else.
    pub is_error: bool,
}

impl ToolOutput {
    /// It worked.
    pub fn ok(text: impl Into<String>) -> ToolOutput {
        ToolOutput { text: text.into(), is_error: false }
    }

    /// It failed.
    pub fn error(text: impl Into<String>) -> ToolOutput {
        ToolOutput { text: text.into(), is_error: true }
    }
}

/// A call of a tool, read from an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) input: String,
}

impl ToolCall {
    /// The calls in an answer.
    pub(crate) fn of(message: &Message) -> Vec<ToolCall> {
        let calls = message.tool_calls().map(|call| ToolCall {
            id: call.id.into_owned(),
            name: call.name.into_owned(),
            input: call.input.to_owned(),
        });
        calls.collect()
    }
}

/// The tools of an agent.
#[derive(Clone, Default)]
pub(crate) struct Toolbox(Vec<(Tool, Arc<dyn RunTool>)>);

impl Toolbox {
    pub(crate) fn add(&mut self, tool: Arc<dyn RunTool>) {
        let described = tool.describe();
        self.0.retain(|(known, _)| known.name() != described.name());
        self.0.push((described, tool));
    }

    pub(crate) fn described(&self) -> Vec<Tool> {
        self.0.iter().map(|(tool, _)| tool.clone()).collect()
    }

    /// Runs calls at the same time, but not too many. Every call has an output, in their order, whatever happens: a tool
    /// that does not exist, panics, or is cancelled has failed.
    pub(crate) async fn run(
        &self,
        calls: &[ToolCall],
        cancel: &CancellationToken,
    ) -> Vec<ToolOutput> {
        let places = Semaphore::new(AT_ONCE);
        join_all(calls.iter().map(|call| self.run_one(call, &places, cancel))).await
    }

    async fn run_one(
        &self,
        call: &ToolCall,
        places: &Semaphore,
        cancel: &CancellationToken,
    ) -> ToolOutput {
        let Some((_, tool)) = self.0.iter().find(|(tool, _)| tool.name() == call.name) else {
            let names: Vec<&str> = self.0.iter().map(|(tool, _)| tool.name()).collect();
            let names = names.join(", ");
            return ToolOutput::error(format!(
                "there is no tool {:?}; there are: {names}",
                call.name
            ));
        };
        if let Err(why) = check_input(&call.input) {
            return ToolOutput::error(why);
        }
        let cancel_tool = cancel.child_token();
        let input = ToolInput { id: &call.id, json: &call.input, cancel: cancel_tool };
        let running = AssertUnwindSafe(async move {
            let _place = places.acquire().await;
            tool.run(input).await
        });
        let running = running.catch_unwind();
        tokio::select! {
            biased;
            done = running => match done {
                Ok(output) => output,
                Err(_) => ToolOutput::error("the tool panicked"),
            },
            () = cancelled(cancel) => ToolOutput::error("the tool was cancelled before it was done"),
        }
    }
}

/// Whether a provider would take a tool; if not, why. One that it would not take spoils every request.
#[cfg(feature = "clients")]
pub(crate) fn check(tool: &Tool) -> Result<(), String> {
    let message = Message::user("Hello.");
    for target in Target::ALL {
        let tools = std::slice::from_ref(tool);
        let options = RenderOptions { model: None, fields: &[], tools };
        render([&message], target, &options).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Whether a tool can be run with what a model wrote; if not, what the model is told.
pub(crate) fn check_input(input: &str) -> Result<(), String> {
    // What was no JSON, or a text, was kept as a string.
    if let Some(text) = recto::engine::json::quoted(input)
        && let Err(error) = recto::engine::json::value(&recto::engine::json::unescape(text))
    {
        return Err(format!("the input is no JSON: {error}"));
    }
    match recto::engine::json::value(input) {
        Ok(value) if value.starts_with('{') => Ok(()),
        Ok(value) if value.starts_with('"') => {
            Err("the input must be a JSON object, not a text that holds one".into())
        }
        Ok(_) => Err("the input must be a JSON object".into()),
        Err(error) => Err(format!("the input is no JSON: {error}")),
    }
}

/// A moment after a run was cancelled, so that tools can end by themselves.
async fn cancelled(cancel: &CancellationToken) {
    cancel.cancelled().await;
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
}
