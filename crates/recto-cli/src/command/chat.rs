//! `recto chat`: sends messages to a model and prints its answers.

mod endpoint;
mod mcp;
mod signals;
mod tool;
mod unanswered;

use std::io::{BufRead as _, BufReader, Read, Write as _};

use clap::Args;
use recto::{LogIndex, Message, Role};
use recto_agent::{Agent, Budget, Delta, Event, HttpModel, McpServer, McpTool, Stop};
use serde::Serialize;
use tokio::sync::mpsc;

use self::endpoint::{Configuration, ModelArguments};
use self::signals::Signals;
use self::unanswered::Unanswered;
use crate::arguments::ConversationArgument;
use crate::context::Context;
use crate::failure::Failure;
use crate::page::{FAINT, Line, NOTE};
use crate::session::{NamedConversation, Session};

/// Send messages to a model and print its answers.
///
/// Each line of standard input is a message; the answer is printed as it arrives. Requests, answers and
/// tool calls are stored in the conversation (`recto log --calls` lists the requests). The token limit and
/// the compression of the conversation apply. Ctrl-C stops an answer and keeps its received part; at the
/// prompt it ends the chat. If a call fails, an empty line repeats it.
#[derive(Args, Debug)]
#[command(after_help = "\
The configuration is a JSON file; all fields are optional:
  {\"provider\": \"anthropic\", \"model\": \"claude-sonnet-4-5\", \"baseUrl\": \"https://…/v1\",
   \"keyVariable\": \"ANTHROPIC_API_KEY\", \"allowHttp\": false, \"fields\": {\"max_tokens\": 1024}, \"lookBack\": true,
   \"tools\": [{\"name\": \"disk\", \"description\": \"How full the disks are.\", \"command\": [\"df\", \"-h\"],
              \"input_schema\": {\"type\": \"object\"}, \"timeout\": 10, \"variables\": []}],
   \"mcpServers\": {\"files\": {\"command\": \"mcp-server-filesystem\", \"args\": [\"/srv\"], \"env\": {}},
                  \"wiki\": {\"url\": \"https://…/mcp\", \"keyVariable\": \"WIKI_KEY\", \"timeout\": 30}}}
A tool\'s command receives its input as one line of JSON on standard input; its output is the result.
Default for \"timeout\": 60 seconds. MCP servers run until the chat ends; their tools are named files__read,
wiki__search. A tool or server sees HOME, PATH and a few other variables, its \"env\", and the variables
listed in \"variables\"; it cannot read your keys. \"horizon\": 10 delays a compression whose cost (the
provider\'s cache is lost) exceeds its savings over ten turns.

Examples:
  recto chat --for anthropic --model claude-sonnet-4-5
  recto chat --for openai-chat --base-url http://localhost:11434/v1 --model qwen3 \'Hello!\'
  recto chat -c support --config agent.json
  recto chat --config agent.json --again       # repeat a call that failed")]
pub(crate) struct Chat {
    #[command(flatten)]
    of: ConversationArgument,

    /// Message to send. Default: each line of standard input
    message: Option<String>,

    /// Ask for an answer to the last message, without a new one
    #[arg(long, conflicts_with = "message")]
    again: bool,

    #[command(flatten)]
    model: ModelArguments,

    /// Maximum number of model calls per message
    #[arg(long, value_name = "COUNT", default_value_t = 50, alias = "most-turns")]
    max_turns: usize,
}

/// The result of a chat.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ChatResult {
    conversation: String,
    version: u32,
    answers: Vec<ChatAnswer>,
}

#[derive(Debug, Serialize)]
struct ChatAnswer {
    #[serde(rename = "said")]
    text: String,
    stop: &'static str,
    turns: usize,
}

/// Output while an answer arrives.
enum Streamed {
    /// Text of the answer, for standard output.
    Answer(String),
    /// An event, for standard error.
    Note(String),
    /// The message was hidden, because it cannot be sent.
    Hidden(LogIndex),
}

impl Chat {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<(), Failure> {
        let message = self.message.as_deref().map(message).transpose()?;
        // Dropped last, after the tools.
        let _programs = Programs::isolate(context);
        let configuration = Configuration::read(&self.model, context)?;
        let session = context.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let model = HttpModel::new(configuration.target, configuration.endpoint)?;
        let policy = named.handle.policy()?;
        let budget = Budget { horizon: configuration.horizon, ..Budget::of_policy(&policy)? };
        let signals = session.recto.wait(async { Signals::listen() });
        let mut agent = Agent::new(named.handle.inner().clone(), model)
            .max_turns(self.max_turns)
            .budget(budget)
            .tools(configuration.tools);
        for started in session.recto.wait(start(configuration.servers)) {
            let (tools, remarks) = started?;
            agent = agent.tools(tools);
            for remark in remarks {
                context.output.note(&Line::wrapping().styled(NOTE, remark), context.environment)?;
            }
        }
        if configuration.look_back {
            agent = agent.history_tools();
        }
        note_tools_without_program(&agent, &session, context)?;
        let mut result =
            ChatResult { conversation: named.name.clone(), version: 0, answers: Vec::new() };
        let unsent_key = configuration.unsent_key;
        let chat = ChatSession { agent, session: &session, signals, unsent_key };
        if message.is_some()
            && let Some(note) = chat.unanswered()?.note()
        {
            let line = Line::wrapping().styled(NOTE, "note: ").text(note);
            context.output.note(&line, context.environment)?;
        }
        let outcome = match (message, self.again) {
            (Some(message), _) => chat.say(Some(message), &mut result, context),
            (None, true) => {
                chat.unanswered()?.check().and_then(|()| chat.say(None, &mut result, context))
            }
            (None, false) => {
                // The chat takes standard input; no later code reads it.
                let mut input =
                    std::mem::replace(&mut context.environment.input, Box::new(std::io::empty()));
                chat.lines(&mut *input, &mut result, context)
            }
        };
        finish(outcome, result, &named, context)
    }
}

/// The programs that the chat starts. Dropping the value kills the programs that still run, if no other
/// code uses this process.
struct Programs {
    are_isolated: bool,
}

impl Programs {
    /// Hides the keys in the environment and in the memory of this process from programs.
    fn isolate(context: &Context<'_>) -> Programs {
        let are_isolated = context.environment.owns_process;
        if are_isolated {
            if let Err(error) = recto_agent::hide_variables() {
                let error = error.kind().to_string();
                tracing::warn!(error, "programs of the superuser can read the keys");
            }
            recto_agent::isolate_programs();
        }
        Programs { are_isolated }
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        if self.are_isolated {
            recto_agent::kill_programs();
        }
    }
}

/// A message of the user. A text of only white space is an empty message, which is an error.
fn message(text: &str) -> Result<Message, Failure> {
    let text = if text.trim().is_empty() { "" } else { text };
    Ok(Message::new(Role::User, text)?)
}

/// Prints a note with the tools of the conversation that have no program in this chat: calls of them fail.
fn note_tools_without_program(
    agent: &Agent,
    session: &Session,
    context: &mut Context<'_>,
) -> Result<(), Failure> {
    if agent.has_tools() {
        return Ok(()); // they replace the tools of the conversation
    }
    let tools = session.recto.wait(agent.conversation().tools())?;
    if tools.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = tools.iter().map(recto::Tool::name).collect();
    let text = format!(
        "the tools of the conversation are offered, but have no program here, so calls of them fail: \
         {}; --config names programs, `recto settings --no-tools` removes the tools",
        names.join(", ")
    );
    context.output.note(&Line::wrapping().styled(NOTE, "note: ").text(text), context.environment)
}

type Started = Result<(Vec<McpTool>, Vec<String>), recto_agent::Error>;

/// Starts MCP servers concurrently and lists their tools.
async fn start(servers: Vec<McpServer>) -> Vec<Started> {
    let starting: Vec<_> =
        servers.into_iter().map(|server| tokio::spawn(server.tools_with_warnings())).collect();
    let mut started = Vec::new();
    for server in starting {
        started.push(server.await.expect("starting a server does not panic"));
    }
    started
}

/// A running chat.
struct ChatSession<'a> {
    agent: Agent,
    session: &'a Session,
    signals: Signals,
    /// The default variable with a key, if it is set but not sent.
    unsent_key: Option<String>,
}

impl ChatSession<'_> {
    /// Sends each line of the input.
    fn lines(
        &self,
        input: &mut dyn Read,
        result: &mut ChatResult,
        context: &mut Context<'_>,
    ) -> Result<(), Failure> {
        let is_typed = context.environment.input_is_terminal && !context.output.is_json();
        let mut lines = BufReader::new(input);
        // Whether the last message has no answer, because its call failed.
        let mut unanswered = false;
        loop {
            if is_typed {
                context.output.chunk("> ", context.environment)?;
            }
            let mut line = String::new();
            let len = lines.read_line(&mut line).map_err(|error| Failure::Input {
                file: "standard input".into(),
                reason: error.to_string(),
            })?;
            if len == 0 {
                return Ok(());
            }
            let sent = match line.trim().is_empty() {
                true if unanswered => self.say(None, result, context),
                true => continue,
                false => self.say(Some(message(line.trim_end())?), result, context),
            };
            // On a terminal an error does not end the chat.
            match sent {
                Err(failure @ Failure::Agent { .. }) if is_typed && failure.code() != "storage" => {
                    unanswered = self.unanswered()?.check().is_ok() && failure.code() == "upstream";
                    context.output.failure(&failure, context.environment)?;
                    if unanswered {
                        let line = Line::new().styled(FAINT, "press Enter to ask again");
                        context.output.note(&line, context.environment)?;
                    }
                }
                sent => {
                    sent?;
                    unanswered = false;
                }
            }
        }
    }

    /// The messages without an answer.
    fn unanswered(&self) -> Result<Unanswered, Failure> {
        Ok(self.session.recto.wait(Unanswered::of(self.agent.conversation()))?)
    }

    /// The failure of a run, with the commands that deal with its message.
    fn failure(&self, error: recto_agent::Error, hidden: Option<LogIndex>) -> Failure {
        use recto_agent::Error as AgentError;
        let mut advice = Vec::new();
        if let AgentError::Call(error) = &error
            && matches!(error.failure, recto_agent::Failure::Unauthorized { .. })
            && let Some(variable) = &self.unsent_key
        {
            advice.push(format!(
                "{variable} is sent only to the provider's own host; `--key-variable {variable}` sends it \
                 to this one"
            ));
        }
        match (hidden, &error) {
            (Some(entry), _) => advice.push(format!(
                "Your message is kept as hidden entry #{entry}; `recto erase {entry}` removes it"
            )),
            (
                None,
                AgentError::Call(_)
                | AgentError::OverLimit { .. }
                | AgentError::FloorTooHigh { .. },
            ) => match self.unanswered() {
                Ok(unanswered) => advice.extend(unanswered.advice()),
                Err(error) => {
                    let code = error.code();
                    tracing::warn!(code, "the messages without an answer cannot be read");
                }
            },
            _ => {}
        }
        let advice = (!advice.is_empty()).then(|| advice.join(". "));
        Failure::Agent { cause: error, advice }
    }

    /// Sends a message, or repeats the last call, and prints the answer as it arrives.
    fn say(
        &self,
        message: Option<Message>,
        result: &mut ChatResult,
        context: &mut Context<'_>,
    ) -> Result<(), Failure> {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let agent = self.agent.clone().on_event(move |event| {
            if let Some(streamed) = Streamed::of(event) {
                // The receiver is gone once the chat has ended.
                let _ = sender.send(streamed);
            }
        });
        let cancel = self.signals.begin();
        let mut printed = Ok(());
        let (mut has_text, mut hidden) = (false, None);
        let mut print =
            |streamed: Streamed, printed: &mut Result<(), Failure>, context: &mut Context<'_>| {
                has_text |= matches!(streamed, Streamed::Answer(_));
                if let Streamed::Hidden(entry) = streamed {
                    hidden = Some(entry);
                }
                if printed.is_ok() {
                    *printed = streamed.print(context);
                    // If the output is closed, the call is cancelled; the received part is stored.
                    if printed.is_err() {
                        cancel.cancel();
                    }
                }
            };
        let run = self.session.recto.wait(async {
            let run = async {
                match message {
                    Some(message) => agent.send_cancellable(message, &cancel).await,
                    None => agent.run(&cancel).await,
                }
            };
            let mut run = std::pin::pin!(run);
            loop {
                tokio::select! {
                    biased;
                    Some(streamed) = receiver.recv() => print(streamed, &mut printed, context),
                    result = &mut run => {
                        while let Ok(streamed) = receiver.try_recv() {
                            print(streamed, &mut printed, context);
                        }
                        return result;
                    }
                }
            }
        });
        self.signals.end();
        printed?;
        if run.is_err() && has_text && !context.output.is_json() {
            context.output.chunk("\n", context.environment)?;
        }
        let run = run.map_err(|error| self.failure(error, hidden))?;
        if !context.output.is_json() {
            context.output.chunk(&format!("{}\n", run.refusal), context.environment)?;
        }
        let stop = stop_name(run.stop);
        if run.stop != Stop::Done && !context.output.is_json() {
            let line = Line::new().styled(NOTE, format!("[{stop}]"));
            context.output.note(&line, context.environment)?;
        }
        result.answers.push(ChatAnswer { text: run.text + &run.refusal, stop, turns: run.turns });
        match self.signals.exit_code() {
            Some(exit_code) => Err(Failure::Reported(exit_code)),
            None => Ok(()),
        }
    }
}

fn stop_name(stop: Stop) -> &'static str {
    match stop {
        Stop::Done => "done",
        Stop::TurnLimit => "turn_limit",
        Stop::Cancelled => "cancelled",
        Stop::Length => "length",
        Stop::Refused => "refused",
        Stop::Empty => "empty",
        _ => "other",
    }
}

impl Streamed {
    fn of(event: &Event<'_>) -> Option<Streamed> {
        Some(match event {
            Event::Delta(Delta::Text(text)) => Streamed::Answer((*text).to_owned()),
            Event::Delta(Delta::Retrying { delay, reason }) => {
                Streamed::Note(format!("retrying in {:.1} s: {reason}", delay.as_secs_f64()))
            }
            Event::ToolStarted { name, input, .. } => Streamed::Note(format!("{name} {input}")),
            Event::ToolEnded { name, output, is_error: true, .. } => {
                let reason: String =
                    output.lines().next().unwrap_or_default().chars().take(200).collect();
                Streamed::Note(format!("{name} failed: {reason}"))
            }
            Event::MessageHidden { entry } => Streamed::Hidden(*entry),
            Event::CompressionCompleted { strategy, before, after, .. } => Streamed::Note(format!(
                "{strategy}: {before} → {after} tokens of messages and tools"
            )),
            Event::CompressionFailed { strategy, reason } => {
                Streamed::Note(format!("{strategy} did not shorten the view: {reason}"))
            }
            _ => return None,
        })
    }

    fn print(self, context: &mut Context<'_>) -> Result<(), Failure> {
        if context.output.is_json() {
            return Ok(());
        }
        match self {
            Streamed::Answer(text) => context.output.chunk(&text, context.environment),
            Streamed::Note(text) => {
                context.output.note(&Line::wrapping().styled(FAINT, text), context.environment)
            }
            Streamed::Hidden(_) => Ok(()),
        }
    }
}

/// Prints the result. With `--json`, answers before a failure are printed together with the error.
fn finish(
    outcome: Result<(), Failure>,
    mut result: ChatResult,
    named: &NamedConversation,
    context: &mut Context<'_>,
) -> Result<(), Failure> {
    if !context.output.is_json() || outcome.is_err() && result.answers.is_empty() {
        outcome?;
        return Ok(context.environment.output.flush()?);
    }
    result.version = named.handle.version()?.0;
    let mut document = serde_json::to_value(&result).map_err(std::io::Error::other)?;
    let exit_code = match outcome {
        Ok(()) => None,
        Err(Failure::Reported(exit_code)) => Some(exit_code),
        Err(failure) => {
            document["error"] = failure.to_json()["error"].take();
            document["error"]["message"] = failure.to_string().into();
            Some(failure.exit_code())
        }
    };
    context.output.json(&document, context.environment)?;
    exit_code.map_or(Ok(()), |exit_code| Err(Failure::Reported(exit_code)))
}
