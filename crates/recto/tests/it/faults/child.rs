//! The child process: this test binary, which executes one command per line of its standard input.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use recto::{Clock, Error, Keep, LogIndex, Options, Recto, Request, Version};
use serde_json::Value;

/// Begins the lines that a child prints, because the test harness prints too.
const REPLY: &str = "reply ";

/// Opens the store, and executes commands until it is killed or its input ends.
#[tokio::test]
#[ignore = "is started by other tests"]
async fn executes_commands() {
    let Some(store) = std::env::var_os("RECTO_CHILD_FILE") else { return };
    let now = Arc::new(AtomicI64::new(0));
    let recto = open(Path::new(&store), &now).await.unwrap();
    reply("ready");
    for line in std::io::stdin().lines() {
        let command: Value = serde_json::from_str(&line.unwrap()).unwrap();
        now.store(command["now"].as_i64().unwrap(), Ordering::Relaxed);
        match execute(&recto, &command).await {
            Ok(()) => reply("ok"),
            Err(error) => {
                explain(&error);
                reply(error.code());
            }
        }
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
        "backup" => recto.backup(text("path")).await,
        "restore" => {
            let target = open(Path::new(text("to")), &Arc::default()).await?;
            target.restore(text("path")).await.map(drop)
        }
        other => panic!("{other}"),
    }
}

/// A running child.
pub(super) struct Worker {
    process: Child,
    commands: ChildStdin,
    replies: BufReader<ChildStdout>,
}

impl Worker {
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

    pub(super) fn send(&mut self, command: &Value) {
        writeln!(self.commands, "{command}").unwrap();
    }

    /// Waits for the next reply. `None` if the process has ended.
    pub(super) fn reply(&mut self) -> Option<String> {
        let mut line = String::new();
        while self.replies.read_line(&mut line).unwrap() > 0 {
            if let Some(reply) = line.strip_prefix(REPLY) {
                return Some(reply.trim().to_owned());
            }
            line.clear();
        }
        None
    }

    /// Kills the process. Returns its last complete reply, if it had printed one.
    pub(super) fn kill(mut self) -> Option<String> {
        self.process.kill().unwrap();
        let mut rest = String::new();
        self.replies.read_to_string(&mut rest).unwrap();
        self.process.wait().unwrap();
        let whole = rest.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let mut replies = whole.lines().filter_map(|line| line.strip_prefix(REPLY));
        replies.rfind(|reply| *reply != "ready").map(|reply| reply.trim().to_owned())
    }
}
