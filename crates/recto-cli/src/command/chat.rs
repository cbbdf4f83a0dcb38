//! `recto chat`: a model answers in a conversation.

mod endpoint;
mod mcp;
mod pairs;

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use recto::Message;
use recto_agent::{
    Agent, Budget, CancellationToken, Delta, Event, HttpModel, McpServer, McpTool, Run, Stop,
};
use serde::Serialize;
use tokio::sync::mpsc;

use self::endpoint::{Choices, Configuration};
use crate::arguments::OfConversation;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::page::{FAINT, Line, NOTE};
use crate::session::{Named, Session};

/// Talk with a model: each line is a message, and its answer is printed as it comes.
///
/// Everything is recorded: what was sent (`recto log --calls`), what was answered, which tools were
/// run. The token limit and the compression of the conversation are respected. Ctrl-C stops an answer,
/// which is kept as far as it came; at the prompt it ends the chat.
#[derive(Args, Debug)]
#[command(after_help = "\
The configuration is a JSON file; everything in it may be missing:
  {\"provider\": \"anthropic\", \"model\": \"claude-sonnet-4-5\", \"baseUrl\": \"https://…/v1\",
   \"keyVariable\": \"ANTHROPIC_API_KEY\", \"fields\": {\"max_tokens\": 1024}, \"lookBack\": true,
   \"tools\": [{\"name\": \"lines\", \"description\": \"Counts lines.\", \"command\": [\"wc\", \"-l\"],
              \"input_schema\": {\"type\": \"object\"}}],
   \"mcpServers\": {\"files\": {\"command\": \"mcp-server-filesystem\", \"args\": [\"/srv\"], \"env\": {}},
                  \"wiki\": {\"url\": \"https://…/mcp\", \"keyVariable\": \"WIKI_KEY\", \"timeout\": 30}}}
A tool\'s command gets the input as JSON on standard input; what it prints is its answer. MCP servers
run as long as the chat; their tools are called files__read, wiki__search. A program sees HOME, PATH and
the like of the environment, what env says, and the variables that are listed as \"variables\".
\"horizon\": 10 lets a compression wait that would cost more (the provider\'s cache is lost with it)
than it saves in ten turns.

Examples:
  recto chat --for anthropic --model claude-sonnet-4-5
  recto chat --for openai-chat --base-url http://localhost:11434/v1 --model qwen3 \'Hello!\'
  recto chat -c support --config agent.json")]
pub(crate) struct Chat {
    #[command(flatten)]
    of: OfConversation,

    /// One message; without it, each line of standard input is one
    message: Option<String>,

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

/// The answer that Ctrl-C stops; none at the prompt.
type Running = Arc<Mutex<Option<CancellationToken>>>;

impl Chat {
    pub(crate) fn run(self, desk: &mut Desk<'_>) -> Result<(), Failure> {
        let configuration = Configuration::read(&self.choices, desk)?;
        let session = desk.session()?;
        let named = session.conversation(&self.of.conversation)?;
        let model = HttpModel::new(configuration.target, configuration.endpoint)?;
        let policy = session.recto.wait(session.recto.inner().policy(&named.name))?;
        let budget = Budget { horizon: configuration.horizon, ..Budget::of_policy(&policy)? };
        let mut agent = Agent::new(named.talk.inner().clone(), model)
            .most_turns(self.most_turns)
            .budget(budget)
            .tools(configuration.tools);
        for tools in session.recto.wait(start(configuration.servers)) {
            agent = agent.tools(tools?);
        }
        if configuration.look_back {
            agent = agent.look_back();
        }
        let running = Running::default();
        session.recto.wait(async { drop(tokio::spawn(on_ctrl_c(running.clone()))) });
        let mut ended = Ended { conversation: named.name.clone(), version: 0, answers: Vec::new() };
        match self.message {
            Some(message) => ended.answers.push(say(&agent, &session, &message, &running, desk)?),
            None => {
                // Whoever types is done with the lines that were read; nothing else reads on.
                let mut input =
                    std::mem::replace(&mut desk.surroundings.input, Box::new(std::io::empty()));
                talk(&agent, &session, &mut *input, &running, &mut ended, desk)?;
            }
        }
        finish(ended, &named, desk)
    }
}

/// Starts servers, all at the same time, and asks for their tools.
async fn start(servers: Vec<McpServer>) -> Vec<Result<Vec<McpTool>, recto_agent::Error>> {
    let starting: Vec<_> = servers.into_iter().map(|server| tokio::spawn(server.tools())).collect();
    let mut started = Vec::new();
    for server in starting {
        started.push(server.await.expect("starting a server does not panic"));
    }
    started
}

/// Answers line after line.
fn talk(
    agent: &Agent,
    session: &Session,
    input: &mut dyn Read,
    running: &Running,
    ended: &mut Ended,
    desk: &mut Desk<'_>,
) -> Result<(), Failure> {
    let mut lines = BufReader::new(input);
    loop {
        if desk.surroundings.input_is_terminal && !desk.output.is_json() {
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
        if !line.trim().is_empty() {
            ended.answers.push(say(agent, session, line.trim_end(), running, desk)?);
        }
    }
}

/// One message, and its answer as it comes.
fn say(
    agent: &Agent,
    session: &Session,
    text: &str,
    running: &Running,
    desk: &mut Desk<'_>,
) -> Result<Answered, Failure> {
    let (tell, mut told) = mpsc::unbounded_channel();
    let agent = agent.clone().listen(move |event| {
        let told = match event {
            Event::Delta(Delta::Text(text)) => Told::Said((*text).to_owned()),
            Event::ToolStarted { name, input, .. } => Told::Aside(format!("{name} {input}")),
            Event::CompressionCompleted { strategy, before, after, .. } => {
                Told::Aside(format!("{strategy}: {before} tokens became {after}"))
            }
            _ => return,
        };
        // Nobody listens any more once the chat has ended.
        let _ = tell.send(told);
    });
    let message = Message::new(recto::Role::User, text)?;
    let cancel = CancellationToken::new();
    *running.lock().unwrap_or_else(PoisonError::into_inner) = Some(cancel.clone());
    let run = session.recto.wait(async {
        agent.conversation().append([message]).await?;
        let mut run = std::pin::pin!(agent.run(&cancel));
        loop {
            tokio::select! {
                biased;
                Some(told) = told.recv() => print(told, desk)?,
                ended = &mut run => {
                    while let Ok(told) = told.try_recv() {
                        print(told, desk)?;
                    }
                    return Ok::<Run, Failure>(ended?);
                }
            }
        }
    });
    *running.lock().unwrap_or_else(PoisonError::into_inner) = None;
    let run = run?;
    if !desk.output.is_json() {
        desk.output.piece("\n", desk.surroundings)?;
    }
    let stop = match run.stop {
        Stop::Done => "done",
        Stop::TurnLimit => "turn_limit",
        Stop::Cancelled => "cancelled",
        Stop::Length => "length",
        Stop::Refused => "refused",
        Stop::Empty => "empty",
        _ => "other",
    };
    if run.stop != Stop::Done && !desk.output.is_json() {
        let line = Line::new().styled(NOTE, format!("[{stop}]"));
        desk.output.aside(&line, desk.surroundings)?;
    }
    Ok(Answered { said: run.said, stop, turns: run.turns })
}

fn print(told: Told, desk: &mut Desk<'_>) -> Result<(), Failure> {
    if desk.output.is_json() {
        return Ok(());
    }
    match told {
        Told::Said(text) => desk.output.piece(&text, desk.surroundings),
        Told::Aside(text) => {
            desk.output.aside(&Line::wrapping().styled(FAINT, text), desk.surroundings)
        }
    }
}

fn finish(mut ended: Ended, named: &Named, desk: &mut Desk<'_>) -> Result<(), Failure> {
    ended.version = named.talk.version()?.0;
    if desk.output.is_json() {
        return desk.output.json(&ended, desk.surroundings);
    }
    Ok(desk.surroundings.output.flush()?)
}

/// Stops the answer that is on its way; at the prompt, ends the program: everything is stored.
async fn on_ctrl_c(running: Running) {
    while tokio::signal::ctrl_c().await.is_ok() {
        match &*running.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(cancel) => cancel.cancel(),
            None => std::process::exit(130),
        }
    }
}
