//! A program as a tool: its input is JSON on standard input, its answer what it prints.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use recto::Tool;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use crate::{BoxFuture, RunTool, ToolInput, ToolOutput};

/// A program that is started for every call.
///
/// It is given the input as JSON on standard input. What it prints is its answer; if it ends with
/// another code than 0, it has failed, and what it printed on standard error comes along. It is killed
/// when it takes too long, and when the run is cancelled.
#[derive(Clone, Debug)]
pub struct CommandTool {
    /// What the model is told of it.
    pub tool: Tool,
    /// The program.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
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
            patience: Duration::from_secs(60),
            longest_output: 64 << 10,
        }
    }

    /// With arguments.
    pub fn arguments<T: Into<String>>(self, arguments: impl IntoIterator<Item = T>) -> CommandTool {
        CommandTool { arguments: arguments.into_iter().map(Into::into).collect(), ..self }
    }

    async fn run_program(&self, input: &str) -> std::io::Result<(ExitStatus, String, String)> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut program = command.spawn()?;
        let mut stdin = program.stdin.take().expect("it is piped");
        let stdout = program.stdout.take().expect("it is piped");
        let stderr = program.stderr.take().expect("it is piped");
        let give = async {
            // A program that does not read its input is free to.
            let _ = stdin.write_all(input.as_bytes()).await;
            drop(stdin);
        };
        let most = self.longest_output;
        let (out, err, ()) = tokio::join!(read(stdout, most), read(stderr, most), give);
        let status = program.wait().await?;
        Ok((status, out?, err?))
    }
}

impl RunTool for CommandTool {
    fn describe(&self) -> Tool {
        self.tool.clone()
    }

    fn run<'a>(&'a self, input: ToolInput<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let limit = self.patience;
            let ran = tokio::select! {
                ran = tokio::time::timeout(limit, self.run_program(input.json)) => ran,
                () = input.cancel.cancelled() => {
                    return ToolOutput::error("the tool was cancelled before it was done");
                }
            };
            let program = &self.program;
            match ran {
                Err(_) => ToolOutput::error(format!("{program} took longer than {limit:?}")),
                Ok(Err(error)) => ToolOutput::error(format!("{program} could not be run: {error}")),
                Ok(Ok((status, out, _))) if status.success() => ToolOutput::ok(out),
                Ok(Ok((status, out, err))) => {
                    let texts = [format!("{program} failed: {status}"), err, out];
                    let texts: Vec<&str> = texts
                        .iter()
                        .map(|text| text.trim_end())
                        .filter(|text| !text.is_empty())
                        .collect();
                    ToolOutput::error(texts.join("\n"))
                }
            }
        })
    }
}

/// Reads all, and keeps the front and the end of it.
async fn read(mut from: impl AsyncRead + Unpin, most: usize) -> std::io::Result<String> {
    let half = most / 2;
    let (mut front, mut back, mut left_out) = (Vec::new(), Vec::new(), 0_usize);
    let mut buffer = vec![0; 16 << 10];
    loop {
        let len = from.read(&mut buffer).await?;
        if len == 0 {
            break;
        }
        let to_front = len.min(half - front.len());
        front.extend_from_slice(&buffer[..to_front]);
        back.extend_from_slice(&buffer[to_front..len]);
        if back.len() > 2 * half + buffer.len() {
            let surplus = back.len() - half;
            back.drain(..surplus);
            left_out += surplus;
        }
    }
    let surplus = back.len().saturating_sub(half);
    back.drain(..surplus);
    left_out += surplus;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if left_out == 0 {
        front.extend_from_slice(&back);
        return Ok(text(&front));
    }
    Ok(format!("{}\n[{left_out} bytes left out]\n{}", text(&front), text(&back)))
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
}
