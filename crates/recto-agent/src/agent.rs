//! The agent loop: fit the view to the budget, send it, record the reply, run its tool calls, repeat.

use std::fmt;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use bytes::Bytes;
use recto::{
    Conversation, Delete, LogIndex, Message, Operation, Outcome, Policy, Rollback, Tool, Version,
};
use recto_format::{PriceTable, RenderOptions, Rendered, render};
use tokio::sync::Mutex;
use tracing::Instrument as _;

use crate::budget::{BackOff, ViewToSend};
use crate::call::{Compressed, SummaryPrompt, sha256};
use crate::calls::CallCache;
use crate::history_tools::{self, OutputAllowance};
use crate::record::RecordedReply;
use crate::tool::{ToolCall, ToolSet};
use crate::{
    Budget, Call, CallContext, CallError, CancelToken, Delta, Error, Event, Failure, Finish, Model,
    Reply, RunTool, Totals, trace,
};

type EventCallback = Arc<dyn Fn(&Event<'_>) + Send + Sync>;

/// A conversation, the model that replies in it, and the tools that the model can call.
///
/// Build an agent with [`Agent::new`] and the builder methods, then [send](Agent::send) messages.
#[derive(Clone)]
pub struct Agent {
    pub(crate) conversation: Conversation,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) summariser: Option<Arc<dyn Model>>,
    pub(crate) budget: Budget,
    pub(crate) prices: Arc<PriceTable>,
    pub(crate) call_cache: Arc<Mutex<CallCache>>,
    pub(crate) back_off: Arc<BackOff>,
    /// Maximum output of the history tools, shared with them.
    output_allowance: OutputAllowance,
    tools: ToolSet,
    max_turns: usize,
    event_callbacks: Vec<EventCallback>,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Run {
    /// Why the run ended.
    pub stop: Stop,
    /// The number of model calls.
    pub turns: usize,
    /// The text of the last reply.
    pub text: String,
    /// The model's explanation of a refusal, if the provider separates it from the text.
    pub refusal: String,
    /// The log entry of the last reply, if one was recorded.
    pub reply: Option<LogIndex>,
}

impl Run {
    /// A run before its first turn.
    fn new() -> Run {
        let (text, refusal) = (String::new(), String::new());
        Run { stop: Stop::TurnLimit, turns: 0, text, refusal, reply: None }
    }
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// The last reply has no tool calls.
    Done,
    /// The number of model calls reached [`Agent::max_turns`].
    TurnLimit,
    /// The caller cancelled the run. A partial reply is recorded and marked incomplete.
    Cancelled,
    /// The model reached its output token limit. The reply is marked incomplete.
    Length,
    /// The model refused to reply.
    Refused,
    /// The reply is empty, and only its manifest was recorded.
    Empty,
}

/// A rendered request, and what its manifest needs.
pub(crate) struct PreparedRequest<'a> {
    pub(crate) model: &'a dyn Model,
    pub(crate) version: Version,
    pub(crate) body: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) counted: u64,
    pub(crate) summary_prompt: Option<SummaryPrompt>,
    pub(crate) compressed: Vec<Compressed>,
}

/// The result of one turn.
enum Turn {
    /// The tool results are appended; the next turn sends them.
    Continue(RecordedReply),
    Ended(Stop, Option<RecordedReply>),
}

/// The properties of a reply that the loop needs after the reply was recorded.
struct ReplyStatus {
    finish: Finish,
    is_incomplete: bool,
    is_refusal: bool,
}

impl ReplyStatus {
    fn of(reply: &Reply) -> ReplyStatus {
        ReplyStatus {
            finish: reply.finish.clone(),
            is_incomplete: reply.is_incomplete(),
            is_refusal: reply.is_refusal(),
        }
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("model", &self.model.name())
            .field("conversation", &self.conversation)
            .finish_non_exhaustive()
    }
}

impl Agent {
    /// An agent without tools and without a budget. A run has at most 50 turns.
    pub fn new(conversation: Conversation, model: impl Model + 'static) -> Agent {
        Agent {
            conversation,
            model: Arc::new(model),
            summariser: None,
            budget: Budget::default(),
            prices: Arc::default(),
            call_cache: Arc::default(),
            back_off: Arc::default(),
            output_allowance: OutputAllowance::default(),
            tools: ToolSet::default(),
            max_turns: 50,
            event_callbacks: Vec::new(),
        }
    }

    /// Adds a tool. A tool of the same name is replaced.
    ///
    /// At the start of a run, the tools of the conversation are set to those of the agent. An agent
    /// without tools keeps the conversation's tools; the result of a call of these is an error.
    pub fn tool(mut self, tool: impl RunTool + 'static) -> Agent {
        self.tools.add(Arc::new(tool));
        self
    }

    /// Adds several tools, such as those of an [`McpServer`](crate::McpServer).
    pub fn tools(self, tools: impl IntoIterator<Item = impl RunTool + 'static>) -> Agent {
        tools.into_iter().fold(self, Agent::tool)
    }

    /// Adds the tools `recto_expand` and `recto_search`, with which the model reads messages that
    /// summaries replaced. The budget limits their output.
    pub fn history_tools(self) -> Agent {
        let (conversation, allowance) = (self.conversation.clone(), self.output_allowance.clone());
        let expand = crate::ExpandTool::within(conversation.clone(), allowance.clone());
        self.tool(expand).tool(crate::SearchTool::within(conversation, allowance))
    }

    /// Sets the token budget. Default: no limit, no compression.
    pub fn budget(self, budget: Budget) -> Agent {
        Agent { budget, ..self }
    }

    /// Sets the budget to that of a policy, such as the conversation's.
    pub fn policy(self, policy: &Policy) -> Result<Agent, Error> {
        Ok(self.budget(Budget::of_policy(policy)?))
    }

    /// Sets a separate model for summaries, such as a cheaper one. Default: the agent's model.
    pub fn summariser(self, model: impl Model + 'static) -> Agent {
        Agent { summariser: Some(Arc::new(model)), ..self }
    }

    /// Sets the price table. Default: the built-in prices.
    pub fn prices(self, prices: PriceTable) -> Agent {
        Agent { prices: Arc::new(prices), ..self }
    }

    /// Sets the maximum number of model calls per run. Default: 50.
    pub fn max_turns(self, max_turns: usize) -> Agent {
        Agent { max_turns, ..self }
    }

    /// Registers a callback for every [`Event`] of a run.
    pub fn on_event(mut self, callback: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Agent {
        self.event_callbacks.push(Arc::new(callback));
        self
    }

    /// Whether the agent has tools.
    pub fn has_tools(&self) -> bool {
        !self.tools.descriptions().is_empty()
    }

    /// The agent's conversation.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Appends a message and [runs](Self::run) the agent.
    ///
    /// If the first request of the run cannot be rendered, or would exceed the token limit even after
    /// compression, the message is hidden again ([`Event::MessageHidden`]), so that it does not block later
    /// messages.
    pub async fn send(&self, message: Message) -> Result<Run, Error> {
        self.send_cancellable(message, &CancelToken::new()).await
    }

    /// [Sends](Self::send) a message. When `cancel` is cancelled, the run ends with
    /// [`Stop::Cancelled`], and the conversation stays valid for the next run.
    pub async fn send_cancellable(
        &self,
        message: Message,
        cancel: &CancelToken,
    ) -> Result<Run, Error> {
        self.conversation.end_expired_scopes().await?;
        // The tools are set first, so that their description precedes the message.
        self.offer_tools().await?;
        let appended = self.conversation.append([message]).await?;
        let mut run = Run::new();
        let ended = self.take_turns(&mut run, cancel).await;
        if let Err(Error::FloorTooHigh { .. } | Error::OverLimit { .. } | Error::Format(_)) = &ended
            && run.turns <= 1
        {
            self.hide_unsent(&appended).await?;
        }
        ended.map(|()| run)
    }

    /// Calls the model and runs its tool calls until a reply has none. When `cancel` is cancelled, the
    /// run ends with [`Stop::Cancelled`], and the conversation stays valid for the next run.
    pub async fn run(&self, cancel: &CancelToken) -> Result<Run, Error> {
        self.conversation.end_expired_scopes().await?;
        self.offer_tools().await?;
        let mut run = Run::new();
        self.take_turns(&mut run, cancel).await?;
        Ok(run)
    }

    async fn take_turns(&self, run: &mut Run, cancel: &CancelToken) -> Result<(), Error> {
        while run.turns < self.max_turns {
            if cancel.is_cancelled() {
                run.stop = Stop::Cancelled;
                break;
            }
            run.turns += 1;
            let (stop, recorded) = match self.turn(cancel).await? {
                Turn::Continue(recorded) => (None, Some(recorded)),
                Turn::Ended(stop, recorded) => (Some(stop), recorded),
            };
            if let Some(RecordedReply { index, text, refusal, .. }) = recorded {
                (run.reply, run.text, run.refusal) = (Some(index), text, refusal);
            }
            if let Some(stop) = stop {
                run.stop = stop;
                break;
            }
        }
        Ok(())
    }

    /// Hides a message that was not sent.
    async fn hide_unsent(&self, appended: &Outcome) -> Result<(), Error> {
        let reason = "it could not be sent";
        let before = Version(appended.version.0.saturating_sub(1));
        let back = Operation::from(Rollback::ToVersion(before)).reason(reason);
        if self.apply_at(back, appended.version).await?.is_none() {
            // A strategy or another writer has created later versions. They stay; only the message is hidden.
            let delete = Operation::from(Delete { indices: appended.added().to_vec() });
            self.conversation.apply(delete.reason(reason)).await?;
        }
        for entry in appended.added() {
            self.emit(&Event::MessageHidden { entry });
        }
        Ok(())
    }

    /// Sets the tools of the conversation to those of the agent, if they differ, such as after a rollback,
    /// which restores older tools. The tools are part of every version, so that a version determines the
    /// request. An agent without tools keeps those of the conversation: it has none to offer, and removing
    /// them would be a change that the caller did not ask for.
    async fn offer_tools(&self) -> Result<(), Error> {
        let tools = self.tools.descriptions();
        if !tools.is_empty() && self.conversation.tools().await? != tools {
            // Rendering fails for tools that the provider would reject, before they are stored.
            self.render([&Message::user("Hello.")], &tools, &[])?;
            self.conversation.set_tools(tools).await?;
        }
        Ok(())
    }

    async fn turn(&self, cancel: &CancelToken) -> Result<Turn, Error> {
        let (view, compressed) = self.fit_budget(cancel).await?;
        if cancel.is_cancelled() {
            return Ok(Turn::Ended(Stop::Cancelled, None));
        }
        let error = match self.call_model(view, compressed, cancel).await {
            Err(Error::Call(error)) if matches!(error.failure, Failure::TooLong { .. }) => error,
            result => return result,
        };
        // The provider's limit is lower than the budget. The call is repeated once with a shorter view.
        match self.shrink_after_rejection(cancel).await? {
            _ if cancel.is_cancelled() => Ok(Turn::Ended(Stop::Cancelled, None)),
            Some((view, compressed)) => self.call_model(view, compressed, cancel).await,
            None => Err(Error::Call(error)),
        }
    }

    /// Sends the view to the model and records the call.
    async fn call_model(
        &self,
        view: ViewToSend,
        compressed: Vec<Compressed>,
        cancel: &CancelToken,
    ) -> Result<Turn, Error> {
        let rendered = self.render_view(&view)?;
        let request = PreparedRequest {
            model: self.model.as_ref(),
            version: view.version,
            body: rendered.body,
            fields: self.model.fields(),
            counted: view.counted(),
            summary_prompt: None,
            compressed,
        };
        let renamed = &rendered.renamed_tools;
        let on_delta = |delta: Delta<'_>| self.emit(&Event::Delta(delta));
        let called = async {
            let (mut call, result) = self.send_request(request, cancel, &on_delta).await?;
            let (result, reply) = match result {
                Ok(reply) => (Ok(ReplyStatus::of(&reply)), Some(reply)),
                Err(mut error) => {
                    let partial = error.partial.take().map(|partial| *partial);
                    (Err(error), partial)
                }
            };
            Ok::<_, Error>((result, self.record_call(reply, &mut call, renamed).await?))
        };
        let (result, recorded) =
            called.instrument(trace::model_call(self.model.as_ref(), "reply")).await?;
        match result {
            Ok(status) => self.handle_reply(&status, recorded, cancel).await,
            Err(error) => match error.failure {
                Failure::Cancelled => Ok(Turn::Ended(Stop::Cancelled, recorded)),
                _ => Err(error.into()),
            },
        }
    }

    /// Runs the tool calls of a recorded reply.
    async fn handle_reply(
        &self,
        status: &ReplyStatus,
        recorded: Option<RecordedReply>,
        cancel: &CancelToken,
    ) -> Result<Turn, Error> {
        let Some(recorded) = recorded else {
            let stop = match status.finish {
                _ if status.is_refusal => Stop::Refused,
                Finish::Length => Stop::Length,
                _ => Stop::Empty,
            };
            return Ok(Turn::Ended(stop, None));
        };
        let calls = ToolCall::of(&recorded.message);
        let stop = match () {
            // Tool calls of an incomplete reply are not run: further parts may be missing.
            () if status.is_incomplete => Some(Stop::Length),
            () if status.is_refusal => Some(Stop::Refused),
            () if calls.is_empty() => Some(Stop::Done),
            () => None,
        };
        if let Some(stop) = stop {
            return Ok(Turn::Ended(stop, Some(recorded)));
        }
        self.run_tools(&calls, cancel).await?;
        Ok(match cancel.is_cancelled() {
            true => Turn::Ended(Stop::Cancelled, Some(recorded)),
            false => Turn::Continue(recorded),
        })
    }

    /// Runs tool calls concurrently and appends all results in one request.
    async fn run_tools(&self, calls: &[ToolCall], cancel: &CancelToken) -> Result<(), Error> {
        for ToolCall { id, name, input } in calls {
            self.emit(&Event::ToolStarted { id, name, input });
        }
        let reads_history =
            calls.iter().any(|call| history_tools::NAMES.contains(&call.name.as_str()));
        if reads_history && let Some(tokens) = self.tokens_for_results().await? {
            self.output_allowance.set(tokens / calls.len().max(1) as u64);
        }
        let outputs = self.tools.run(calls, cancel).await;
        let results = calls.iter().zip(&outputs).map(|(call, output)| {
            let (id, name) = (call.id.as_str(), call.name.as_str());
            let is_error = output.is_error;
            self.emit(&Event::ToolEnded { id, name, output: &output.text, is_error });
            match is_error {
                true => Message::tool_error(id, &output.text),
                false => Message::tool_result(id, &output.text),
            }
        });
        let results: Vec<Message> = results.collect();
        self.conversation.append(results).await?;
        Ok(())
    }

    /// The request for a view.
    pub(crate) fn render_view(&self, view: &ViewToSend) -> Result<Rendered, Error> {
        let messages = view.entries.iter().map(|entry| &entry.message);
        self.render(messages, &view.tools, &view.invalid_thinking)
    }

    pub(crate) fn render<'m>(
        &self,
        messages: impl IntoIterator<Item = &'m Message>,
        tools: &[Tool],
        invalid_thinking: &[usize],
    ) -> Result<Rendered, Error> {
        let fields = self.model.fields();
        let fields: Vec<(&str, &str)> =
            fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let options = RenderOptions {
            model: Some(self.model.name()),
            fields: &fields,
            tools,
            invalid_thinking,
            api_version: self.model.api_version(),
        };
        Ok(render(messages, self.model.target(), &options)?)
    }

    /// Sends a request and returns its manifest with the result. Nothing is recorded yet:
    /// [`assign_number`](Self::assign_number) fills in what depends on earlier calls.
    pub(crate) async fn send_request(
        &self,
        request: PreparedRequest<'_>,
        cancel: &CancelToken,
        on_delta: &(dyn Fn(Delta<'_>) + Send + Sync),
    ) -> Result<(Call, Result<Reply, CallError>), Error> {
        let PreparedRequest { model, version, body, fields, counted, summary_prompt, compressed } =
            request;
        let expected = self.calibration_of(model.name()).await?.expected(counted);
        let body = Bytes::from(body);
        let (sha256, bytes) = (sha256(&body), body.len() as u64);
        self.emit(&Event::CallStarted { version, tokens: expected });
        let (at, start) = (now(), Instant::now());
        let context = CallContext::new(on_delta, cancel.clone());
        let result = model.call(body, &context).await;
        let (reply, failure, attempts) = match &result {
            Ok(reply) => (Some(reply), None, &reply.attempts),
            Err(error) => {
                (error.partial.as_deref(), Some(error.failure.to_string()), &error.attempts)
            }
        };
        let call = Call {
            number: 0,
            version,
            target: model.target().name().to_owned(),
            model: model.name().to_owned(),
            fields,
            api_version: model.api_version().map(str::to_owned),
            summary_prompt,
            sha256,
            bytes,
            at,
            millis: start.elapsed().as_millis() as u64,
            counted,
            expected,
            usage: reply.and_then(|reply| reply.usage),
            finish: reply.map(|reply| reply.finish.clone()),
            failure,
            answered_by: reply.and_then(|reply| reply.model.clone()),
            answer_id: reply.and_then(|reply| reply.id.clone()),
            attempts: attempts.clone(),
            compressed,
            cumulative: Totals::default(),
            lifetime: Totals::default(),
        };
        trace::record_result(&call, result.as_ref().err().map(|error| error.failure.kind()));
        Ok((call, result))
    }

    /// Passes an event to the callbacks.
    pub(crate) fn emit(&self, event: &Event<'_>) {
        for callback in &self.event_callbacks {
            callback(event);
        }
    }

    /// The tokens of the tools in a request.
    pub(crate) async fn tokens_of_tools(&self, tools: &[Tool]) -> Result<u64, Error> {
        if tools.is_empty() {
            return Ok(0);
        }
        let text: String = tools.iter().map(Tool::json).collect();
        let mut cache = self.call_cache.lock().await;
        if let Some((cached, tokens)) = &cache.tools
            && *cached == text
        {
            return Ok(*tokens);
        }
        let tokens = self.counter().await?.count(&text);
        cache.tools = Some((text, tokens));
        Ok(tokens)
    }
}

/// The present time in milliseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as i64
}
