//! The loop: check the budget, send what is visible, record the answer, run its tools, go on.

use std::fmt;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use bytes::Bytes;
use recto::{
    Delete, LogIndex, Message, Operation, Outcome, Policy, Rollback, StoredConversation, Tool,
    Version, Write,
};
use recto_format::{PriceTable, RenamedTool, RenderOptions, Rendered, render};
use tokio::sync::Mutex;

use crate::budget::{BackOff, Seen};
use crate::call::{About, Compressed, sha256};
use crate::history::Known;
use crate::look_back::{self, Room};
use crate::record::Recorded;
use crate::tool::{ToolCall, Toolbox};
use crate::{
    Answer, Budget, Call, CallError, CancellationToken, Delta, Error, Event, Failure, Finish,
    Model, RunTool, Totals, Watch,
};

type Listener = Arc<dyn Fn(&Event<'_>) + Send + Sync>;

/// A conversation, a model that answers in it, and the tools that the model may call.
#[derive(Clone)]
pub struct Agent {
    pub(crate) talk: StoredConversation,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) summariser: Option<Arc<dyn Model>>,
    pub(crate) budget: Budget,
    pub(crate) prices: Arc<PriceTable>,
    pub(crate) known: Arc<Mutex<Known>>,
    pub(crate) back_off: Arc<BackOff>,
    /// What one look back may show.
    room: Room,
    tools: Toolbox,
    most_turns: usize,
    listeners: Vec<Listener>,
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Why it ended.
    pub stop: Stop,
    /// How often the model was called.
    pub turns: usize,
    /// What the model said last.
    pub said: String,
    /// Why the model will not answer, in its own words, if it says so apart from what it said.
    pub refusal: String,
    /// The last answer, if one was recorded.
    pub answer: Option<LogIndex>,
}

impl Default for Run {
    /// A run that has not begun.
    fn default() -> Self {
        let (said, refusal) = (String::new(), String::new());
        Run { stop: Stop::TurnLimit, turns: 0, said, refusal, answer: None }
    }
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// The model asks for no tool any more.
    Done,
    /// The model was called as often as it may be.
    TurnLimit,
    /// Somebody stopped it. What was said until then is marked incomplete.
    Cancelled,
    /// The model reached its limit of tokens. The answer is marked incomplete.
    Length,
    /// The model refused to answer.
    Refused,
    /// The model said nothing, and nothing was recorded.
    Empty,
}

/// A request that is ready to be sent.
pub(crate) struct Sending<'a> {
    pub(crate) model: &'a dyn Model,
    pub(crate) version: Version,
    pub(crate) body: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) counted: u64,
    pub(crate) about: Option<About>,
    pub(crate) compressed: Vec<Compressed>,
}

/// What one turn came to.
enum Turn {
    /// Tools have answered: the model goes on.
    GoesOn(Recorded),
    Ended(Stop, Option<Recorded>),
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (model, talk) = (self.model.name(), &self.talk);
        f.debug_struct("Agent").field("model", &model).field("talk", talk).finish_non_exhaustive()
    }
}

impl Agent {
    /// An agent without tools and without a budget, for at most 50 turns a run.
    pub fn new(talk: StoredConversation, model: impl Model + 'static) -> Agent {
        Agent {
            talk,
            model: Arc::new(model),
            summariser: None,
            budget: Budget::default(),
            prices: Arc::default(),
            known: Arc::default(),
            back_off: Arc::default(),
            room: Room::default(),
            tools: Toolbox::default(),
            most_turns: 50,
            listeners: Vec::new(),
        }
    }

    /// With a tool. The conversation's tools are set to those of the agent when it runs; an agent
    /// without any takes away those that were there.
    pub fn tool(mut self, tool: impl RunTool + 'static) -> Agent {
        self.tools.add(Arc::new(tool));
        self
    }

    /// With several tools, such as those of an [`McpServer`](crate::McpServer).
    pub fn tools(self, tools: impl IntoIterator<Item = impl RunTool + 'static>) -> Agent {
        tools.into_iter().fold(self, Agent::tool)
    }

    /// With tools that let the model look behind summaries: `recto_expand` and `recto_search`. They
    /// show as much as the budget has room for.
    pub fn look_back(self) -> Agent {
        let (talk, room) = (self.talk.clone(), self.room.clone());
        let expand = crate::ExpandTool::within(talk.clone(), room.clone());
        self.tool(expand).tool(crate::SearchTool::within(talk, room))
    }

    /// With a budget.
    pub fn budget(self, budget: Budget) -> Agent {
        Agent { budget, ..self }
    }

    /// With the budget that a policy asks for, such as that of the conversation.
    pub fn policy(self, policy: &Policy) -> Result<Agent, Error> {
        Ok(self.budget(Budget::of_policy(policy)?))
    }

    /// With another model that writes summaries, perhaps a cheaper one.
    pub fn summariser(self, model: impl Model + 'static) -> Agent {
        Agent { summariser: Some(Arc::new(model)), ..self }
    }

    /// With prices of your own.
    pub fn prices(self, prices: PriceTable) -> Agent {
        Agent { prices: Arc::new(prices), ..self }
    }

    /// The model is called so often in a run at most.
    pub fn most_turns(self, most_turns: usize) -> Agent {
        Agent { most_turns, ..self }
    }

    /// Hears of everything that happens.
    pub fn listen(mut self, listener: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Agent {
        self.listeners.push(Arc::new(listener));
        self
    }

    /// The conversation.
    pub fn conversation(&self) -> &StoredConversation {
        &self.talk
    }

    /// Appends a message, and [runs](Self::run). A message that cannot be sent, since the request
    /// would be over the limit whatever is done, is taken back: it would be in the way of every other.
    pub async fn say(&self, message: Message) -> Result<Run, Error> {
        self.say_until(message, &CancellationToken::new()).await
    }

    /// [Says](Self::say) something. Once it is cancelled it ends soon, and the conversation can go on.
    pub async fn say_until(
        &self,
        message: Message,
        cancel: &CancellationToken,
    ) -> Result<Run, Error> {
        crate::end_expired(&self.talk).await?;
        // What describes the tools stands before the question.
        self.offer_tools().await?;
        let appended = self.talk.append([message]).await?;
        let mut run = Run::default();
        let ended = self.take_turns(&mut run, cancel).await;
        if let Err(Error::FloorTooHigh { .. } | Error::OverLimit { .. } | Error::Format(_)) = &ended
            && run.turns <= 1
        {
            self.take_back(&appended).await?;
        }
        ended.map(|()| run)
    }

    /// Calls the model until it asks for no tool any more. Once it is cancelled it ends soon, and the
    /// conversation can go on.
    pub async fn run(&self, cancel: &CancellationToken) -> Result<Run, Error> {
        crate::end_expired(&self.talk).await?;
        self.offer_tools().await?;
        let mut run = Run::default();
        self.take_turns(&mut run, cancel).await?;
        Ok(run)
    }

    async fn take_turns(&self, run: &mut Run, cancel: &CancellationToken) -> Result<(), Error> {
        while run.turns < self.most_turns {
            if cancel.is_cancelled() {
                run.stop = Stop::Cancelled;
                break;
            }
            run.turns += 1;
            let (stop, recorded) = match self.turn(cancel).await? {
                Turn::GoesOn(recorded) => (None, Some(recorded)),
                Turn::Ended(stop, recorded) => (Some(stop), recorded),
            };
            if let Some(Recorded { index, said, refusal, .. }) = recorded {
                (run.answer, run.said, run.refusal) = (Some(index), said, refusal);
            }
            if let Some(stop) = stop {
                run.stop = stop;
                break;
            }
        }
        Ok(())
    }

    /// Takes back a message that was not sent: the view is as it was before it.
    async fn take_back(&self, appended: &Outcome) -> Result<(), Error> {
        let why = "it could not be sent";
        if let Some(before) = appended.version.0.checked_sub(1).map(Version) {
            let back = Operation::from(Rollback::ToVersion(before)).reason(why);
            if self.write(back, appended.version).await?.is_some() {
                return Ok(());
            }
        }
        // Something was done behind it, by a strategy or by others, and stays.
        let delete = Operation::from(Delete { indices: appended.added().to_vec() });
        self.talk.apply(delete.reason(why)).await?;
        Ok(())
    }

    /// Tools belong to the conversation, so that every version knows which ones the model was offered.
    /// Going back to a version brings back its tools, so they may be others than the agent's.
    async fn offer_tools(&self) -> Result<(), Error> {
        let tools = self.tools.described();
        if self.talk.tools().await? != tools {
            // Tools that the provider would not take must not get into the conversation.
            self.render([&Message::user("Hello.")], &tools)?;
            self.talk.set_tools(tools, Write::default()).await?;
        }
        Ok(())
    }

    async fn turn(&self, cancel: &CancellationToken) -> Result<Turn, Error> {
        let (seen, compressed) = self.make_room(cancel).await?;
        if cancel.is_cancelled() {
            return Ok(Turn::Ended(Stop::Cancelled, None));
        }
        let error = match self.ask(seen, compressed, cancel).await {
            Err(Error::Call(error)) if matches!(error.failure, Failure::TooLong { .. }) => error,
            asked => return asked,
        };
        // The provider knows best how much it can read. It is asked once more, with less.
        match self.make_more_room(cancel).await? {
            _ if cancel.is_cancelled() => Ok(Turn::Ended(Stop::Cancelled, None)),
            Some((seen, compressed)) => self.ask(seen, compressed, cancel).await,
            None => Err(Error::Call(error)),
        }
    }

    /// Sends what is visible, and records what comes of it.
    async fn ask(
        &self,
        seen: Seen,
        compressed: Vec<Compressed>,
        cancel: &CancellationToken,
    ) -> Result<Turn, Error> {
        let Seen { version, ref entries, ref tools, .. } = seen;
        let rendered = self.render(entries.iter().map(|entry| &entry.message), tools)?;
        let sending = Sending {
            model: self.model.as_ref(),
            version,
            body: rendered.body,
            fields: self.model.fields(),
            counted: seen.counted(),
            about: None,
            compressed,
        };
        let on_delta = |delta: Delta<'_>| self.tell(&Event::Delta(delta));
        let (mut call, answered) = self.send(sending, cancel, &on_delta).await?;
        match answered {
            Ok(answer) => self.answered(answer, call, &rendered.renamed_tools, cancel).await,
            Err(mut error) => {
                let partial = error.partial.take().map(|partial| *partial);
                let recorded = self.keep(partial, &mut call, &rendered.renamed_tools).await?;
                match error.failure {
                    Failure::Cancelled => Ok(Turn::Ended(Stop::Cancelled, recorded)),
                    _ => Err(error.into()),
                }
            }
        }
    }

    /// Records an answer, and runs its tools.
    async fn answered(
        &self,
        answer: Answer,
        mut call: Call,
        renamed: &[RenamedTool],
        cancel: &CancellationToken,
    ) -> Result<Turn, Error> {
        let (finish, is_incomplete) = (answer.finish.clone(), answer.is_incomplete());
        let is_refusal = answer.is_refusal();
        let Some(recorded) = self.keep(Some(answer), &mut call, renamed).await? else {
            let stop = match finish {
                _ if is_refusal => Stop::Refused,
                Finish::Length => Stop::Length,
                _ => Stop::Empty,
            };
            return Ok(Turn::Ended(stop, None));
        };
        let calls = ToolCall::of(&recorded.message);
        let stop = match () {
            // Tools of an answer that was cut off are not run: the model may have meant more.
            () if is_incomplete => Some(Stop::Length),
            () if is_refusal => Some(Stop::Refused),
            () if calls.is_empty() => Some(Stop::Done),
            () => None,
        };
        if let Some(stop) = stop {
            return Ok(Turn::Ended(stop, Some(recorded)));
        }
        self.run_tools(&calls, cancel).await?;
        Ok(match cancel.is_cancelled() {
            true => Turn::Ended(Stop::Cancelled, Some(recorded)),
            false => Turn::GoesOn(recorded),
        })
    }

    /// Runs tools at the same time, and appends all results in one request.
    async fn run_tools(&self, calls: &[ToolCall], cancel: &CancellationToken) -> Result<(), Error> {
        for ToolCall { id, name, input } in calls {
            self.tell(&Event::ToolStarted { id, name, input });
        }
        let looks_back = calls.iter().any(|call| look_back::NAMES.contains(&call.name.as_str()));
        if looks_back && let Some(room) = self.room_for_results().await? {
            self.room.set(room / calls.len().max(1) as u64);
        }
        let outputs = self.tools.run(calls, cancel).await;
        let results = calls.iter().zip(&outputs).map(|(call, output)| {
            let (id, name) = (call.id.as_str(), call.name.as_str());
            let is_error = output.is_error;
            self.tell(&Event::ToolEnded { id, name, output: &output.text, is_error });
            match is_error {
                true => Message::tool_error(id, &output.text),
                false => Message::tool_result(id, &output.text),
            }
        });
        let results: Vec<Message> = results.collect();
        self.talk.append(results).await?;
        Ok(())
    }

    pub(crate) fn render<'m>(
        &self,
        messages: impl IntoIterator<Item = &'m Message>,
        tools: &[Tool],
    ) -> Result<Rendered, Error> {
        let fields = self.model.fields();
        let fields: Vec<(&str, &str)> =
            fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let options = RenderOptions { model: Some(self.model.name()), fields: &fields, tools };
        Ok(render(messages, self.model.target(), &options)?)
    }

    /// Sends a request, and makes the manifest of it. Nothing is recorded yet: what depends on the
    /// calls before it is for [`enter`](Self::enter).
    pub(crate) async fn send(
        &self,
        sending: Sending<'_>,
        cancel: &CancellationToken,
        on_delta: &(dyn Fn(Delta<'_>) + Send + Sync),
    ) -> Result<(Call, Result<Answer, CallError>), Error> {
        let Sending { model, version, body, fields, counted, about, compressed } = sending;
        let expected = self.calibration_of(model.name()).await?.expected(counted);
        let body = Bytes::from(body);
        let (sha256, bytes) = (sha256(&body), body.len() as u64);
        self.tell(&Event::CallStarted { version, tokens: expected });
        let (at, start) = (now(), Instant::now());
        let watch = Watch::new(on_delta, cancel.clone());
        let answered = model.call(body, &watch).await;
        let (answer, failure, attempts) = match &answered {
            Ok(answer) => (Some(answer), None, &answer.attempts),
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
            about,
            sha256,
            bytes,
            at,
            millis: start.elapsed().as_millis() as u64,
            counted,
            expected,
            usage: answer.and_then(|answer| answer.usage),
            finish: answer.map(|answer| answer.finish.clone()),
            failure,
            answered_by: answer.and_then(|answer| answer.model.clone()),
            answer_id: answer.and_then(|answer| answer.id.clone()),
            attempts: attempts.clone(),
            compressed,
            cumulative: Totals::default(),
            lifetime: Totals::default(),
        };
        Ok((call, answered))
    }

    /// Tells the listeners.
    pub(crate) fn tell(&self, event: &Event<'_>) {
        for listener in &self.listeners {
            listener(event);
        }
    }

    /// The tokens that the tools take in a request.
    pub(crate) async fn tokens_of_tools(&self, tools: &[Tool]) -> Result<u64, Error> {
        if tools.is_empty() {
            return Ok(0);
        }
        let text: String = tools.iter().map(Tool::json).collect();
        let mut known = self.known.lock().await;
        if let Some((known, tokens)) = &known.tools
            && *known == text
        {
            return Ok(*tokens);
        }
        let tokens = self.counter().await?.count(&text);
        known.tools = Some((text, tokens));
        Ok(tokens)
    }
}

/// What time it is, in milliseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as i64
}
