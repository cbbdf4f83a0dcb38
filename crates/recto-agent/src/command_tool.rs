//! A program as a tool: its input is JSON on standard input, its answer what it prints.

use std::process::ExitStatus;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use recto::Tool;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

use crate::program::{self, Group};
use crate::{BoxFuture, RunTool, Secret, ToolInput, ToolOutput};

/// How long the output may stay open once the program has ended, as when it has started another.
const GRACE: Duration = Duration::from_millis(500);

/// A program that is started for every call.
///
/// It is given the input as JSON on standard input. What it prints is its answer; if it ends with
/// another code than 0, it has failed, and what it printed on standard error comes along. It is killed,
/// with all that it has started, when it takes too long, and when the run is cancelled; what it had
/// printed is kept. What it leaves running once it has ended is left alone, and not waited for.
#[derive(Clone, Debug)]
pub struct CommandTool {
    /// What the model is told of it.
    pub tool: Tool,
    /// The program.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables of its environment. Of ours it gets only what every program needs, such as `PATH` and
    /// `HOME`: the model's key is none of its business.
    pub variables: Vec<(String, Secret)>,
    /// How long it may take.
    pub patience: Duration,
    /// How many bytes of what it prints are kept; the middle is left out.
    pub longest_output: usize,
}

impl CommandTool {
    /// A program, with a minute of patience, and at most 64 KiB of output.
    pub fn new(tool: Tool, program: impl Into<String>) -> CommandTool {
        CommandTool {
            tool,
            program: program.into(),
            arguments: Vec::new(),
            variables: Vec::new(),
            patience: Duration::from_secs(60),
            longest_output: 64 << 10,
        }
    }

    /// With arguments.
    pub fn arguments<T: Into<String>>(self, arguments: impl IntoIterator<Item = T>) -> CommandTool {
        CommandTool { arguments: arguments.into_iter().map(Into::into).collect(), ..self }
    }

    /// With a variable. Its value is not shown anywhere.
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> CommandTool {
        self.variables.push((name.into(), Secret::new(value)));
        self
    }

    async fn run_program(
        &self,
        input: &str,
        out: &Kept,
        err: &Kept,
    ) -> std::io::Result<ExitStatus> {
        let mut program =
            program::command(&self.program, &self.arguments, &self.variables).spawn()?;
        // Dropped with this future, whoever drops it.
        let group = Group::of(&program);
        let mut stdin = program.stdin.take().expect("it is piped");
        let stdout = program.stdout.take().expect("it is piped");
        let stderr = program.stderr.take().expect("it is piped");
        let give = async {
            // A program that does not read its input is free to.
            let _ = stdin.write_all(input.as_bytes()).await;
            drop(stdin);
        };
        let streams = async { tokio::join!(out.read(stdout), err.read(stderr), give) };
        let mut streams = std::pin::pin!(streams);
        let mut are_closed = false;
        let status = loop {
            tokio::select! {
                status = program.wait() => break status?,
                _ = &mut streams, if !are_closed => are_closed = true,
            }
        };
        if !are_closed {
            let _ = tokio::time::timeout(GRACE, streams).await;
        }
        group.release();
        Ok(status)
    }
}

impl RunTool for CommandTool {
    fn describe(&self) -> Tool {
        self.tool.clone()
    }

    fn run<'a>(&'a self, input: ToolInput<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let (limit, program) = (self.patience, &self.program);
            let (out, err) = (Kept::new(self.longest_output), Kept::new(self.longest_output));
            let ran = tokio::select! {
                ran = tokio::time::timeout(limit, self.run_program(input.json, &out, &err)) => ran,
                () = input.cancel.cancelled() => {
                    return failed("the tool was cancelled before it was done".into(), &out, &err);
                }
            };
            match ran {
                Err(_) => failed(format!("{program} took longer than {limit:?}"), &out, &err),
                Ok(Err(error)) => ToolOutput::error(format!("{program} could not be run: {error}")),
                Ok(Ok(status)) if status.success() => ToolOutput::ok(out.text()),
                Ok(Ok(status)) => failed(format!("{program} failed: {status}"), &out, &err),
            }
        })
    }
}

/// Why a program failed, and what it printed.
fn failed(why: String, out: &Kept, err: &Kept) -> ToolOutput {
    let texts = [why, err.text(), out.text()];
    let texts = texts.iter().map(|text| text.trim_end()).filter(|text| !text.is_empty());
    ToolOutput::error(texts.collect::<Vec<_>>().join("\n"))
}

/// What a program has printed so far: the front and the end of it.
struct Kept {
    half: usize,
    pieces: Mutex<Pieces>,
}

#[derive(Default)]
struct Pieces {
    front: Vec<u8>,
    back: Vec<u8>,
    left_out: usize,
}

impl Kept {
    fn new(most: usize) -> Kept {
        Kept { half: most / 2, pieces: Mutex::default() }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Pieces) -> T) -> T {
        work(&mut self.pieces.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads to the end, or until it is dropped.
    async fn read(&self, mut from: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(len @ 1..) = from.read(&mut buffer).await {
            self.with(|pieces| {
                let to_front = len.min(self.half - pieces.front.len());
                pieces.front.extend_from_slice(&buffer[..to_front]);
                pieces.back.extend_from_slice(&buffer[to_front..len]);
                if pieces.back.len() > 2 * self.half + buffer.len() {
                    pieces.shorten(self.half);
                }
            });
        }
    }

    fn text(&self) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.with(|pieces| {
            pieces.shorten(self.half);
            let Pieces { front, back, left_out } = pieces;
            match left_out {
                0 => text(&[&front[..], &back[..]].concat()),
                _ => format!("{}\n[{left_out} bytes left out]\n{}", text(front), text(back)),
            }
        })
    }
}

impl Pieces {
    fn shorten(&mut self, most: usize) {
        let surplus = self.back.len().saturating_sub(most);
        self.back.drain(..surplus);
        self.left_out += surplus;
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    async fn run(script: &str, input: &str, change: impl FnOnce(&mut CommandTool)) -> ToolOutput {
        let mut tool = CommandTool::new(Tool::new("sh", "a shell"), "sh").arguments(["-c", script]);
        change(&mut tool);
        tool.run(ToolInput { id: "c", json: input, cancel: Default::default() }).await
    }

    #[tokio::test]
    async fn a_program_reads_its_input_and_answers() {
        assert_eq!(run("cat", r#"{"a":1}"#, |_| {}).await, ToolOutput::ok(r#"{"a":1}"#));
        assert_eq!(run("true", &"x".repeat(1 << 20), |_| {}).await, ToolOutput::ok(""));
    }

    #[tokio::test]
    async fn a_program_that_fails_says_why() {
        let failed = run("echo half; echo bad >&2; exit 3", "{}", |_| {}).await;
        assert_eq!(failed, ToolOutput::error("sh failed: exit status: 3\nbad\nhalf"));
        let missing = run("", "{}", |tool| tool.program = "no-such-program".into()).await;
        assert!(missing.is_error && missing.text.contains("could not be run"), "{missing:?}");
    }

    #[tokio::test]
    async fn a_program_that_takes_too_long_or_prints_too_much_is_cut() {
        let slow = run("sleep 30", "{}", |tool| tool.patience = Duration::from_millis(50)).await;
        assert_eq!(slow, ToolOutput::error("sh took longer than 50ms"));
        let script = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done";
        let long = run(script, "{}", |tool| tool.longest_output = 200).await.text;
        assert!(long.starts_with("line 0\n") && long.ends_with("line 19999\n"), "{long}");
        assert!(long.contains("bytes left out]") && long.len() < 300, "{long}");
    }

    #[tokio::test]
    async fn a_program_sees_only_the_variables_that_it_needs() {
        // Cargo sets some for every test.
        assert!(std::env::var("CARGO_MANIFEST_DIR").is_ok());
        let seen = run("env", "{}", |tool| *tool = tool.clone().variable("TOKEN", "t")).await.text;
        assert!(seen.contains("TOKEN=t") && seen.contains("PATH="), "{seen}");
        assert!(!seen.contains("CARGO"), "{seen}");
    }

    #[tokio::test]
    async fn a_program_is_killed_with_all_that_it_has_started() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("written").display().to_string();
        let script = format!("echo begun; (sleep 1; echo late > {file}) & sleep 30");
        let late = run(&script, "{}", |tool| tool.patience = Duration::from_millis(300)).await;
        assert_eq!(late, ToolOutput::error("sh took longer than 300ms\nbegun"));
        let cancel = crate::CancellationToken::new();
        let tool = CommandTool::new(Tool::new("sh", "a shell"), "sh").arguments(["-c", &script]);
        let input = ToolInput { id: "c", json: "{}", cancel: cancel.clone() };
        let (cancelled, ()) = tokio::join!(tool.run(input), async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            cancel.cancel();
        });
        assert_eq!(
            cancelled,
            ToolOutput::error("the tool was cancelled before it was done\nbegun")
        );
        // Nobody waits for it any more.
        let input = ToolInput { id: "c", json: "{}", cancel: Default::default() };
        let dropped = tokio::time::timeout(Duration::from_millis(300), tool.run(input)).await;
        assert!(dropped.is_err());
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        assert!(!std::path::Path::new(&file).exists());
    }

    #[tokio::test]
    async fn what_a_program_leaves_running_is_not_waited_for() {
        let start = std::time::Instant::now();
        let output = run("sleep 20 & echo done", "{}", |_| {}).await;
        assert_eq!(output, ToolOutput::ok("done\n"));
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    }
}
