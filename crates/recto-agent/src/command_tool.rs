//! A program as a tool: it reads the input as JSON from standard input and prints the output.

use std::process::ExitStatus;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use recto::Tool;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

use crate::program::{self, ProcessGroup};
use crate::tool::CANCELLED;
use crate::{BoxFuture, RunTool, Secret, ToolInput, ToolOutput};

/// Maximum time to read the output after the program has exited, because a descendant may keep the output
/// open.
const GRACE: Duration = Duration::from_millis(500);

/// A tool that starts a program for every call.
///
/// The program receives the input as JSON on standard input. Its standard output is the output of the
/// call. If its exit code is not 0, the call fails, and the output includes standard error.
///
/// When the call times out or the run is cancelled, the program and its descendants are killed; what it
/// printed until then is part of the output. Descendants that still run after the program has exited
/// keep running, and the call does not wait for them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CommandTool {
    /// Name, description and input schema, for the model.
    pub tool: Tool,
    /// The program.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Additional environment variables. The program inherits only basic variables of this process, such as
    /// `PATH` and `HOME`, so that it does not see API keys.
    pub variables: Vec<(String, Secret)>,
    /// Maximum duration of a call. Default: 1 minute.
    pub timeout: Duration,
    /// Maximum bytes of standard output, and of standard error, in the output of a call. A longer one loses
    /// its middle. Default: 64 KiB each.
    pub max_output_bytes: usize,
}

impl CommandTool {
    /// A tool that runs `program` without arguments.
    pub fn new(tool: Tool, program: impl Into<String>) -> CommandTool {
        CommandTool {
            tool,
            program: program.into(),
            arguments: Vec::new(),
            variables: Vec::new(),
            timeout: Duration::from_secs(60),
            max_output_bytes: 64 << 10,
        }
    }

    /// Sets the arguments of the program.
    pub fn arguments<T: Into<String>>(self, arguments: impl IntoIterator<Item = T>) -> CommandTool {
        CommandTool { arguments: arguments.into_iter().map(Into::into).collect(), ..self }
    }

    /// Adds an environment variable. Its value appears in no debug output.
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> CommandTool {
        self.variables.push((name.into(), Secret::new(value)));
        self
    }

    async fn run_program(
        &self,
        input: &str,
        out: &OutputBuffer,
        err: &OutputBuffer,
    ) -> std::io::Result<ExitStatus> {
        let mut program =
            program::command(&self.program, &self.arguments, &self.variables).spawn()?;
        // Dropping the future drops the group, which kills the program and its descendants.
        let group = ProcessGroup::of(&program);
        let mut stdin = program.stdin.take().expect("`program::command` pipes it");
        let stdout = program.stdout.take().expect("`program::command` pipes it");
        let stderr = program.stderr.take().expect("`program::command` pipes it");
        let write_input = async {
            // A program may exit without reading its input.
            if let Err(error) = stdin.write_all(input.as_bytes()).await
                && error.kind() != std::io::ErrorKind::BrokenPipe
            {
                tracing::warn!(%error, "the input of a program was not written");
            }
            drop(stdin);
        };
        let streams = async { tokio::join!(out.read(stdout), err.read(stderr), write_input) };
        let mut streams = std::pin::pin!(streams);
        let mut are_closed = false;
        let status = loop {
            tokio::select! {
                status = program.wait() => break status?,
                _ = &mut streams, if !are_closed => are_closed = true,
            }
        };
        if !are_closed && tokio::time::timeout(GRACE, streams).await.is_err() {
            tracing::debug!("a descendant of a program keeps its output open");
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
            let (limit, program) = (self.timeout, &self.program);
            let (out, err) = (
                OutputBuffer::new(self.max_output_bytes),
                OutputBuffer::new(self.max_output_bytes),
            );
            let ran = tokio::select! {
                ran = tokio::time::timeout(limit, self.run_program(input.json, &out, &err)) => ran,
                () = input.cancel.cancelled() => {
                    return failed(CANCELLED.into(), &out, &err);
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

/// The output of a failed call: the reason, standard error and standard output.
fn failed(reason: String, out: &OutputBuffer, err: &OutputBuffer) -> ToolOutput {
    let texts = [reason, err.text(), out.text()];
    let texts = texts.iter().map(|text| text.trim_end()).filter(|text| !text.is_empty());
    ToolOutput::error(texts.collect::<Vec<_>>().join("\n"))
}

/// The start and the end of what a program has printed.
struct OutputBuffer {
    half: usize,
    ends: Mutex<Ends>,
}

#[derive(Default)]
struct Ends {
    start: Vec<u8>,
    end: Vec<u8>,
    omitted: usize,
}

impl OutputBuffer {
    fn new(max_bytes: usize) -> OutputBuffer {
        OutputBuffer { half: max_bytes / 2, ends: Mutex::default() }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Ends) -> T) -> T {
        work(&mut self.ends.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads until the stream ends or the future is dropped.
    async fn read(&self, mut from: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; 16 << 10];
        loop {
            let len = match from.read(&mut buffer).await {
                Ok(0) => break,
                Ok(len) => len,
                Err(error) => {
                    tracing::warn!(%error, "the output of a program was not read to its end");
                    break;
                }
            };
            self.with(|ends| {
                let to_start = len.min(self.half - ends.start.len());
                ends.start.extend_from_slice(&buffer[..to_start]);
                ends.end.extend_from_slice(&buffer[to_start..len]);
                if ends.end.len() > 2 * self.half + buffer.len() {
                    ends.shorten(self.half);
                }
            });
        }
    }

    fn text(&self) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.with(|ends| {
            ends.shorten(self.half);
            let Ends { start, end, omitted } = ends;
            match omitted {
                0 => text(&[&start[..], &end[..]].concat()),
                _ => format!("{}\n[{omitted} bytes omitted]\n{}", text(start), text(end)),
            }
        })
    }
}

impl Ends {
    fn shorten(&mut self, max: usize) {
        let surplus = self.end.len().saturating_sub(max);
        self.end.drain(..surplus);
        self.omitted += surplus;
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    async fn run(script: &str, input: &str, change: impl FnOnce(&mut CommandTool)) -> ToolOutput {
        let mut tool = CommandTool::new(Tool::new("sh", "a shell"), "sh").arguments(["-c", script]);
        change(&mut tool);
        tool.run(ToolInput::new("c", input)).await
    }

    #[tokio::test]
    async fn a_program_reads_its_input_and_prints_its_output() {
        assert_eq!(run("cat", r#"{"a":1}"#, |_| {}).await, ToolOutput::ok(r#"{"a":1}"#));
        assert_eq!(run("true", &"x".repeat(1 << 20), |_| {}).await, ToolOutput::ok(""));
    }

    #[tokio::test]
    async fn the_output_of_a_failed_program_has_its_exit_code_and_standard_error() {
        let failed = run("echo half; echo bad >&2; exit 3", "{}", |_| {}).await;
        assert_eq!(failed, ToolOutput::error("sh failed: exit status: 3\nbad\nhalf"));
        let missing = run("", "{}", |tool| tool.program = "no-such-program".into()).await;
        assert!(missing.is_error && missing.text.contains("could not be run"), "{missing:?}");
    }

    #[tokio::test]
    async fn timeout_and_output_are_limited() {
        let slow = run("sleep 30", "{}", |tool| tool.timeout = Duration::from_millis(50)).await;
        assert_eq!(slow, ToolOutput::error("sh took longer than 50ms"));
        let script = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done";
        let long = run(script, "{}", |tool| tool.max_output_bytes = 200).await.text;
        assert!(long.starts_with("line 0\n") && long.ends_with("line 19999\n"), "{long}");
        assert!(long.contains("bytes omitted]") && long.len() < 300, "{long}");
    }

    #[tokio::test]
    async fn a_program_inherits_only_basic_variables() {
        // Cargo sets this variable for every test.
        assert!(std::env::var("CARGO_MANIFEST_DIR").is_ok());
        let seen = run("env", "{}", |tool| *tool = tool.clone().variable("TOKEN", "t")).await.text;
        assert!(seen.contains("TOKEN=t") && seen.contains("PATH="), "{seen}");
        assert!(!seen.contains("CARGO"), "{seen}");
    }

    #[tokio::test]
    async fn a_program_is_killed_with_its_descendants() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("written").display().to_string();
        let script = format!("echo begun; (sleep 0.5; echo late > {file}) & sleep 30");
        let late = run(&script, "{}", |tool| tool.timeout = Duration::from_millis(200)).await;
        assert_eq!(late, ToolOutput::error("sh took longer than 200ms\nbegun"));
        let cancel = crate::CancelToken::new();
        let tool = CommandTool::new(Tool::new("sh", "a shell"), "sh").arguments(["-c", &script]);
        let input = ToolInput { cancel: cancel.clone(), ..ToolInput::new("c", "{}") };
        let (cancelled, ()) = tokio::join!(tool.run(input), async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            cancel.cancel();
        });
        assert_eq!(cancelled, ToolOutput::error(format!("{CANCELLED}\nbegun")));
        // Dropping the future kills the program as well.
        let input = ToolInput::new("c", "{}");
        let dropped = tokio::time::timeout(Duration::from_millis(200), tool.run(input)).await;
        assert!(dropped.is_err());
        tokio::time::sleep(Duration::from_millis(600)).await;
        assert!(!std::path::Path::new(&file).exists());
    }

    #[tokio::test]
    async fn descendants_that_still_run_are_not_waited_for() {
        let start = std::time::Instant::now();
        let output = run("sleep 20 & echo done", "{}", |_| {}).await;
        assert_eq!(output, ToolOutput::ok("done\n"));
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    }
}
