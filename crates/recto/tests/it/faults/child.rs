//! The child process: this test binary, which executes one command per line of its standard input.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use recto::{Clock, Error, Keep, LogIndex, Options, Recto, Request, Version};
use serde_json::Value;

/// Begins the lines that a child prints, because the test harness prints too.
const REPLY: &str = "reply ";
/// The child has opened the store.
const READY: &str = "ready";
/// The child has read a command and executes it.
const BEGUN: &str = "begun";
/// The child has executed a command. The duration in microseconds and the code of the result follow.
const DONE: &str = "done ";

/// Opens the store, and executes commands until it is killed or its input ends.
#[tokio::test]
#[ignore = "is started by other tests"]
async fn executes_commands() {
    let Some(store) = std::env::var_os("RECTO_CHILD_FILE") else { return };
    let now = Arc::new(AtomicI64::new(0));
    let recto = open(Path::new(&store), &now).await.unwrap();
    reply(READY);
    for line in std::io::stdin().lines() {
        let command: Value = serde_json::from_str(&line.unwrap()).unwrap();
        now.store(command["now"].as_i64().unwrap(), Ordering::Relaxed);
        reply(BEGUN);
        let start = Instant::now();
        let done = execute(&recto, &command).await;
        let took = start.elapsed().as_micros();
        if let Err(error) = &done {
            explain(error);
        }
        let code = done.map_or_else(|error| error.code(), |()| "ok");
        reply(&format!("{DONE}{took} {code}"));
    }
}

/// The test that fails because of the error shows it.
#[allow(clippy::print_stderr, reason = "the parent's standard error")]
fn explain(error: &Error) {
    eprintln!("a child was refused: {error}");
}

#[allow(clippy::print_stdout, reason = "the parent reads it")]
fn reply(text: &str) {
    // Starts with a line end, because the test harness leaves its last line open.
    println!("\n{REPLY}{text}");
}

/// Opens a file with a clock that the test sets.
pub(super) async fn open(file: &Path, now: &Arc<AtomicI64>) -> Result<Recto, Error> {
    let now = now.clone();
    let clock = Clock::new(move || now.load(Ordering::Relaxed));
    let address = format!("sqlite:{}", file.display());
    Recto::open_with(&address, Options { clock, ..Options::default() }).await
}

/// Executes a command on a store.
pub(super) async fn execute(recto: &Recto, command: &Value) -> Result<(), Error> {
    let text = |field: &str| command[field].as_str().unwrap();
    let number = |field: &str| command[field].as_u64().unwrap() as u32;
    match text("do") {
        "apply" => {
            let request = Request::from_json(&command["request"].to_string())?;
            recto.conversation(text("name")).await?.apply(request).await.map(drop)
        }
        "fork" => {
            let conversation = recto.conversation(text("of")).await?;
            conversation.fork(text("name"), Version(number("at"))).await.map(drop)
        }
        "erase" => {
            let conversation = recto.conversation(text("name")).await?;
            conversation.erase(LogIndex(number("index"))).await.map(drop)
        }
        "prune" => {
            let keep = Keep {
                last_versions: command["lastVersions"].as_u64().map(|last| last as u32),
                last_batches: command["lastBatches"].as_u64().map(|last| last as usize),
                versions: vec![Version(number("version"))],
                since: None,
            };
            recto.conversation(text("name")).await?.prune(&keep).await.map(drop)
        }
        "remove" => recto.remove(text("name")).await,
        "salvage" => recto.salvage(text("name"), text("to")).await.map(drop),
        "backup" => recto.backup(text("path")).await,
        "restore" => {
            let target = open(Path::new(text("to")), &Arc::default()).await?;
            target.restore(text("path")).await.map(drop)
        }
        other => panic!("{other}"),
    }
}

/// How a command ended.
pub(super) struct Done {
    /// `ok`, or the code of the error.
    pub(super) code: String,
    pub(super) took: Duration,
}

impl Done {
    fn of(reply: &str) -> Option<Done> {
        let (took, code) = reply.strip_prefix(DONE)?.trim().split_once(' ')?;
        Some(Done { code: code.to_owned(), took: Duration::from_micros(took.parse().ok()?) })
    }
}

/// A running child.
pub(super) struct Worker {
    process: Child,
    commands: ChildStdin,
    replies: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts a child, and waits until it has opened the store.
    pub(super) fn ready(store: &Path) -> Worker {
        let mut worker = Worker::start(store);
        assert_eq!(worker.reply().as_deref(), Some(READY));
        worker
    }

    /// Starts a child, which opens the store.
    pub(super) fn start(store: &Path) -> Worker {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let test = "faults::child::executes_commands";
        command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
        command.env("RECTO_CHILD_FILE", store).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let commands = process.stdin.take().unwrap();
        let replies = BufReader::new(process.stdout.take().unwrap());
        Worker { process, commands, replies }
    }

    /// Sends a command, and waits until the child executes it.
    pub(super) fn begin(&mut self, command: &Value) {
        self.send(command);
        assert_eq!(self.reply().as_deref(), Some(BEGUN));
    }

    /// Sends a command.
    pub(super) fn send(&mut self, command: &Value) {
        writeln!(self.commands, "{command}").unwrap();
    }

    /// Waits until the command is executed.
    pub(super) fn done(&mut self) -> Done {
        let mut reply = self.reply().expect("the process runs");
        if reply == BEGUN {
            reply = self.reply().expect("the process runs");
        }
        Done::of(&reply).expect("it executes a command")
    }

    /// Waits for the next reply. `None` if the process has ended.
    fn reply(&mut self) -> Option<String> {
        let mut line = String::new();
        while self.replies.read_line(&mut line).unwrap() > 0 {
            if let Some(reply) = line.strip_prefix(REPLY) {
                return Some(reply.trim().to_owned());
            }
            line.clear();
        }
        None
    }

    /// Kills the process. Returns how its last command ended, if it had replied.
    pub(super) fn kill(mut self) -> Option<Done> {
        self.process.kill().unwrap();
        let mut rest = String::new();
        self.replies.read_to_string(&mut rest).unwrap();
        self.process.wait().unwrap();
        let whole = rest.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().filter_map(|line| line.strip_prefix(REPLY)).find_map(Done::of)
    }
}
