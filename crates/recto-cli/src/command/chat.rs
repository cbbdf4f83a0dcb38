//! `recto chat`: a model answers in a conversation.

mod endpoint;
mod mcp;
mod pairs;
mod signals;
mod tool;

use std::io::{BufRead as _, BufReader, Read, Write as _};

use clap::Args;
use recto::{Message, Role};
use recto_agent::{Agent, Budget, Delta, Event, HttpModel, McpServer, McpTool, Stop};
use serde::Serialize;
use tokio::sync::mpsc;

use self::endpoint::{Choices, Configuration};
use self::signals::Signals;
use crate::arguments::OfConversation;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::page::{FAINT, Line, NOTE};
use crate::session::{Named, Session};

/// Talk with a model: each line is a message, and its answer is printed as it comes.
///
/// Everything is recorded: what was sent (`recto log --calls`), what was answered, which tools were
/// run. The token limit and the compression of the conversation are respected. Ctrl-C stops an answer,
/// which is kept as far as it came; at the prompt it ends the chat. If there was no answer, an empty
/// line asks again.
#[derive(Args, Debug)]
#[command(after_help = "\
The configuration is a JSON file; everything in it may be missing:
  {\"provider\": \"anthropic\", \"model\": \"claude-sonnet-4-5\", \"baseUrl\": \"https://…/v1\",
   \"keyVariable\": \"ANTHROPIC_API_KEY\", \"fields\": {\"max_tokens\": 1024}, \"lookBack\": true,
   \"tools\": [{\"name\": \"disk\", \"description\": \"How full the disks are.\", \"command\": [\"df\", \"-h\"],
              \"input_schema\": {\"type\": \"object\"}, \"timeout\": 10, \"variables\": []}],
   \"mcpServers\": {\"files\": {\"command\": \"mcp-server-filesystem\", \"args\": [\"/srv\"], \"env\": {}},
                  \"wiki\": {\"url\": \"https://…/mcp\", \"keyVariable\": \"WIKI_KEY\", \"timeout\": 30}}}
A tool\'s command gets the input as JSON on standard input, in one line; what it prints is its answer.
It may take 60 seconds, or its \"timeout\". MCP servers run as long as the chat; their tools are called
files__read, wiki__search. A program, tool or server, sees HOME, PATH and the like of the environment,
what its \"env\" says, and the variables that are listed as \"variables\"; so it does not see your keys.
\"horizon\": 10 lets a compression wait that would cost more (the provider\'s cache is lost with it)
than it saves in ten turns.

Examples:
  recto chat --for anthropic --model claude-sonnet-4-5
  recto chat --for openai-chat --base-url http://localhost:11434/v1 --model qwen3 \'Hello!\'
  recto chat -c support --config agent.json
  recto chat --config agent.json --again       # there was no answer: ask once more")]
pub(crate) struct Chat {
    #[command(flatten)]
    of: OfConversation,

    /// One message; without it, each line of standard input is one
    message: Option<String>,

    /// Ask for an answer to what was said last, without a new message
    #[arg(long, conflicts_with = "message")]
    again: bool,

    #[command(flatten)]
    choices: Choices,

    /// How often the model is called for one message at most
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    most_turns: usize,
}

/// What a chat came to.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Ended {
    conversation: String,
    version: u32,
    answers: Vec<Answered>,
}

#[derive(Debug, Serialize)]
struct Answered {
    said: String,
    stop: &'static str,
    turns: usize,
}

/// What is printed while an answer comes.
enum Told {
    Said(String),
    Aside(String),
}

impl Chat {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let message = self.message.as_deref().map(message).transpose()?;
        let configuration = Configuration::read(&self.choices, desk)?;
        let session = desk.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let model = HttpModel::new(configuration.target, configuration.endpoint)?;
        let policy = named.talk.policy()?;
        let budget = Budget { horizon: configuration.horizon, ..Budget::of_policy(&policy)? };
        let signals = session.recto.wait(async { Signals::listen() });
        let mut agent = Agent::new(named.talk.inner().clone(), model)
            .most_turns(self.most_turns)
            .budget(budget)
            .tools(configuration.tools);
        for started in session.recto.wait(start(configuration.servers)) {
            let (tools, remarks) = started?;
            agent = agent.tools(tools);
            for remark in remarks {
                desk.output.aside(&Line::wrapping().styled(NOTE, remark), desk.surroundings)?;
            }
        }
        if configuration.look_back {
            agent = agent.look_back();
        }
        let mut ended = Ended { conversation: named.name.clone(), version: 0, answers: Vec::new() };
        let talk = Talk { agent, session: &session, signals };
        let talked = match (message, self.again) {
            (Some(message), _) => talk.say(Some(message), &mut ended, desk),
            (None, true) => talk.check_waits().and_then(|()| talk.say(None, &mut ended, desk)),
            (None, false) => {
                // Whoever types is done with the lines that were read; nothing else reads on.
                let mut input =
                    std::mem::replace(&mut desk.surroundings.input, Box::new(std::io::empty()));
                talk.lines(&mut *input, &mut ended, desk)
            }
        };
        finish(talked, ended, &named, desk)
    }
}

/// What somebody says; nothing but spaces is nothing.
fn message(text: &str) -> Result<Message, Failure> {
    let text = if text.trim().is_empty() { "" } else { text };
    Ok(Message::new(Role::User, text)?)
}

type Started = Result<(Vec<McpTool>, Vec<String>), recto_agent::Error>;

/// Starts servers, all at the same time, and asks for their tools.
async fn start(servers: Vec<McpServer>) -> Vec<Started> {
    let starting: Vec<_> =
        servers.into_iter().map(|server| tokio::spawn(server.tools_and_remarks())).collect();
    let mut started = Vec::new();
    for server in starting {
        started.push(server.await.expect("starting a server does not panic"));
    }
    started
}

/// A chat that goes on.
struct Talk<'a> {
    agent: Agent,
    session: &'a Session,
    signals: Signals,
}

impl Talk<'_> {
    /// Answers line after line.
    fn lines(
        &self,
        input: &mut dyn Read,
        ended: &mut Ended,
        desk: &mut Desk<'_>,
    ) -> Result<(), Failure> {
        let is_typed = desk.surroundings.input_is_terminal && !desk.output.is_json();
        let mut lines = BufReader::new(input);
        // Whether the last message waits for an answer.
        let mut waits = false;
        loop {
            if is_typed {
                desk.output.piece("> ", desk.surroundings)?;
            }
            let mut line = String::new();
            let len = lines.read_line(&mut line).map_err(|error| Failure::Input {
                file: "standard input".into(),
                reason: error.to_string(),
            })?;
            if len == 0 {
                return Ok(());
            }
            let said = match line.trim().is_empty() {
                true if waits => self.say(None, ended, desk),
                true => continue,
                false => self.say(Some(message(line.trim_end())?), ended, desk),
            };
            // Who types can do something about it.
            match said {
                Err(Failure::Agent(error)) if is_typed && error.code() != "storage" => {
                    waits =
                        matches!(error, recto_agent::Error::Call(_)) && self.check_waits().is_ok();
                    desk.output.failure(&Failure::Agent(error), desk.surroundings)?;
                    if waits {
                        let line = Line::new().styled(FAINT, "an empty line asks again");
                        desk.output.aside(&line, desk.surroundings)?;
                    }
                }
                said => {
                    said?;
                    waits = false;
                }
            }
        }
    }

    /// Whether what was said last waits for an answer; if not, what to do.
    fn check_waits(&self) -> Result<(), Failure> {
        let entries = self.session.recto.wait(self.agent.conversation().messages())?;
        let last = entries.iter().rev().find(|entry| entry.message.role() != Role::System);
        match last.map(|last| &last.message) {
            None => Err(Failure::Usage("nothing was said yet; say something".into())),
            Some(last) if last.role() == Role::Assistant && last.tool_calls().next().is_none() => {
                Err(Failure::Usage(
                    "the model has answered already; say something, or take its answer back first: \
                     `recto truncate --remove-last 1`"
                        .into(),
                ))
            }
            Some(_) => Ok(()),
        }
    }

    /// One message, or the last one again, and its answer as it comes.
    fn say(
        &self,
        message: Option<Message>,
        ended: &mut Ended,
        desk: &mut Desk<'_>,
    ) -> Result<(), Failure> {
        let (tell, mut told) = mpsc::unbounded_channel();
        let agent = self.agent.clone().listen(move |event| {
            if let Some(told) = Told::of(event) {
                // Nobody listens any more once the chat has ended.
                let _ = tell.send(told);
            }
        });
        let cancel = self.signals.begin();
        let mut printed = Ok(());
        let mut has_said = false;
        let mut print = |told: Told, printed: &mut Result<(), Failure>, desk: &mut Desk<'_>| {
            has_said |= matches!(told, Told::Said(_));
            if printed.is_ok() {
                *printed = told.print(desk);
                // Nobody reads it: what has come is kept, and then it is over.
                if printed.is_err() {
                    cancel.cancel();
                }
            }
        };
        let run = self.session.recto.wait(async {
            let run = async {
                match message {
                    Some(message) => agent.say_until(message, &cancel).await,
                    None => agent.run(&cancel).await,
                }
            };
            let mut run = std::pin::pin!(run);
            loop {
                tokio::select! {
                    biased;
                    Some(told) = told.recv() => print(told, &mut printed, desk),
                    ended = &mut run => {
                        while let Ok(told) = told.try_recv() {
                            print(told, &mut printed, desk);
                        }
                        return ended;
                    }
                }
            }
        });
        self.signals.end();
        printed?;
        if run.is_err() && has_said && !desk.output.is_json() {
            desk.output.piece("\n", desk.surroundings)?;
        }
        let run = run?;
        if !desk.output.is_json() {
            desk.output.piece(&format!("{}\n", run.refusal), desk.surroundings)?;
        }
        let stop = word(run.stop);
        if run.stop != Stop::Done && !desk.output.is_json() {
            let line = Line::new().styled(NOTE, format!("[{stop}]"));
            desk.output.aside(&line, desk.surroundings)?;
        }
        ended.answers.push(Answered { said: run.said + &run.refusal, stop, turns: run.turns });
        match self.signals.leaves() {
            Some(exit_code) => Err(Failure::Told(exit_code)),
            None => Ok(()),
        }
    }
}

fn word(stop: Stop) -> &'static str {
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

impl Told {
    fn of(event: &Event<'_>) -> Option<Told> {
        Some(match event {
            Event::Delta(Delta::Text(text)) => Told::Said((*text).to_owned()),
            Event::Delta(Delta::Waiting { wait, why }) => {
                Told::Aside(format!("waiting {:.1} s to ask again: {why}", wait.as_secs_f64()))
            }
            Event::ToolStarted { name, input, .. } => Told::Aside(format!("{name} {input}")),
            Event::CompressionCompleted { strategy, before, after, .. } => {
                Told::Aside(format!("{strategy}: {before} tokens became {after}"))
            }
            Event::CompressionFailed { strategy, reason } => {
                Told::Aside(format!("{strategy} did not make it shorter: {reason}"))
            }
            _ => return None,
        })
    }

    fn print(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        if desk.output.is_json() {
            return Ok(());
        }
        match self {
            Told::Said(text) => desk.output.piece(&text, desk.surroundings),
            Told::Aside(text) => {
                desk.output.aside(&Line::wrapping().styled(FAINT, text), desk.surroundings)
            }
        }
    }
}

/// What was answered until then is told, also if the chat ends with a failure.
fn finish(
    talked: Result<(), Failure>,
    mut ended: Ended,
    named: &Named,
    desk: &mut Desk<'_>,
) -> Result<(), Failure> {
    if !desk.output.is_json() || talked.is_err() && ended.answers.is_empty() {
        talked?;
        return Ok(desk.surroundings.output.flush()?);
    }
    ended.version = named.talk.version()?.0;
    let mut document = serde_json::to_value(&ended).map_err(std::io::Error::other)?;
    let exit_code = match talked {
        Ok(()) => None,
        Err(Failure::Told(exit_code)) => Some(exit_code),
        Err(failure) => {
            document["error"] = failure.to_json()["error"].take();
            document["error"]["message"] = failure.to_string().into();
            Some(failure.exit_code())
        }
    };
    desk.output.json(&document, desk.surroundings)?;
    exit_code.map_or(Ok(()), |exit_code| Err(Failure::Told(exit_code)))
}
