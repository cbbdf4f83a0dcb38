//! Runs programs, and prints one line for each: the command, whether it succeeded, and its time.
//!
//! The output of a program is shown only if it fails, if `--verbose` is given, or if the output is the result
//! ([`Show::Always`]).

use std::fmt;
use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Read, Write as _};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The content of standard output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stdout {
    /// Steps and results as text.
    Text,
    /// Only the results, as JSON. The steps are printed on standard error.
    Json,
}

/// When the output of a step is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    /// Only after a failure.
    OnFailure,
    /// While it runs, because the output is the result.
    Always,
}

/// At least one step failed. The failure is already printed, so the caller prints nothing.
#[derive(Debug)]
pub(crate) struct StepsFailed;

impl std::error::Error for StepsFailed {}

impl fmt::Display for StepsFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a step failed")
    }
}

/// A program to run.
pub(crate) struct Step {
    /// A short name, which starts the line.
    pub(crate) name: &'static str,
    /// The program and its arguments.
    pub(crate) command: Command,
    /// What to do after a failure.
    pub(crate) advice: String,
    /// When its output is shown.
    pub(crate) show: Show,
}

impl Step {
    pub(crate) fn new(name: &'static str, command: Command, advice: impl Into<String>) -> Self {
        Self { name, command, advice: advice.into(), show: Show::OnFailure }
    }

    pub(crate) fn shown(mut self) -> Self {
        self.show = Show::Always;
        self
    }
}

/// The result of a step.
pub(crate) struct Finished {
    pub(crate) name: &'static str,
    pub(crate) command: String,
    pub(crate) succeeded: bool,
    pub(crate) took: Duration,
    /// Standard output alone, from which results are read.
    pub(crate) stdout: String,
}

impl Finished {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "step": self.name,
            "command": self.command,
            "succeeded": self.succeeded,
            "seconds": seconds(self.took),
        })
    }

    /// Turns a failed step into the error that ends the program.
    pub(crate) fn required(self) -> Result<Self, StepsFailed> {
        if self.succeeded { Ok(self) } else { Err(StepsFailed) }
    }
}

/// Prints lines to standard output or standard error, with or without colours.
pub(crate) struct Console {
    stdout: Stdout,
    verbose: bool,
    colours: bool,
}

impl Console {
    pub(crate) fn new(stdout: Stdout, verbose: bool) -> Self {
        let terminal = match stdout {
            Stdout::Text => io::stdout().is_terminal(),
            Stdout::Json => io::stderr().is_terminal(),
        };
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { stdout, verbose, colours: terminal && !refused }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.stdout == Stdout::Json
    }

    /// Prints a line: on standard output, or on standard error if the results are JSON.
    pub(crate) fn line(&self, text: impl fmt::Display) {
        self.write(&format!("{text}\n"));
    }

    /// Prints the results on standard output.
    pub(crate) fn results_json(&self, value: &Value) {
        println!("{value:#}");
    }

    /// Runs a step and prints its line. A program that cannot be started is a failed step.
    pub(crate) fn run(&self, mut step: Step) -> Finished {
        let shown = self.verbose || step.show == Show::Always;
        self.write(&format!("{:<14} {}", step.name, command_line(&step.command)));
        if shown {
            self.write("\n");
        }
        let (finished, ending) = self.complete(&mut step, shown);
        let indent = if shown { format!("{:<14}", step.name) } else { String::new() };
        self.write(&format!("{indent}{ending}"));
        finished
    }

    /// Runs steps at the same time. Prints the line of each when it has ended.
    pub(crate) fn run_together(&self, steps: Vec<Step>) -> Vec<Finished> {
        let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
        self.line(format_args!("{:<14} {}", "together", names.join(", ")));
        let run = |mut step: Step| {
            let (finished, ending) = self.complete(&mut step, self.verbose);
            self.write(&format!("{:<14} {}{ending}", step.name, finished.command));
            finished
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                steps.into_iter().map(|step| scope.spawn(move || run(step))).collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, Finished>| thread.join();
            threads.into_iter().map(join).map(|it| it.expect("no step panics")).collect()
        })
    }

    /// Runs the program of a step to its end. The text is what follows the command in the line of the step,
    /// and after a failure also the output and the advice.
    fn complete(&self, step: &mut Step, shown: bool) -> (Finished, String) {
        let command = command_line(&step.command);
        if self.colours {
            step.command.env("CARGO_TERM_COLOR", "always");
        }
        let start = Instant::now();
        let ran = self.capture(&mut step.command, shown);
        let took = start.elapsed();

        let (status, output) = match ran {
            Ok((status, output)) => (Some(status), output),
            Err(error) => {
                let transcript = format!("cannot start it: {error}\n");
                (None, Output { stdout: String::new(), transcript })
            }
        };
        let succeeded = status.is_some_and(|status| status.success());
        let verdict = if succeeded { self.paint(GREEN, "ok") } else { self.paint(RED, "FAILED") };
        let mut ending = format!(" {verdict} {:.1} s\n", took.as_secs_f64());
        if !succeeded {
            if !shown || status.is_none() {
                ending += &output.transcript;
            }
            if let Some(status) = status.filter(|status| status.code().is_none()) {
                ending += &format!("{:<14} ended by a {status}\n", step.name);
            }
            ending += &format!("{:<14} next: {}\n", step.name, step.advice);
        }
        let stdout = output.stdout;
        (Finished { name: step.name, command, succeeded, took, stdout }, ending)
    }

    /// Runs a program to its end and captures its output. If `shown`, the output is printed too.
    fn capture(&self, command: &mut Command, shown: bool) -> io::Result<(ExitStatus, Output)> {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().expect("standard output is piped");
        let stderr = child.stderr.take().expect("standard error is piped");

        let transcript = Mutex::new(String::new());
        let keep = |line: &str| {
            if shown {
                self.write(line);
            }
            transcript.lock().expect("no reader panics").push_str(line);
        };
        // Results are read from standard output alone, so that nothing can split their lines.
        let mut results = String::new();
        std::thread::scope(|scope| {
            scope.spawn(|| each_line(stderr, keep));
            each_line(stdout, |line| {
                results.push_str(line);
                keep(line);
            });
        });
        let transcript = transcript.into_inner().expect("no reader panics");
        Ok((child.wait()?, Output { stdout: results, transcript }))
    }

    fn write(&self, text: &str) {
        // The work continues if the reader has closed the pipe.
        let _ = match self.stdout {
            Stdout::Text => {
                let mut out = io::stdout().lock();
                out.write_all(text.as_bytes()).and_then(|()| out.flush())
            }
            Stdout::Json => io::stderr().lock().write_all(text.as_bytes()),
        };
    }

    fn paint(&self, colour: &str, text: &str) -> String {
        if self.colours { format!("{colour}{text}\x1b[0m") } else { text.to_owned() }
    }
}

const RED: &str = "\x1b[31;1m";
const GREEN: &str = "\x1b[32m";

struct Output {
    stdout: String,
    /// The lines of both streams, in the order in which they were read.
    transcript: String,
}

fn each_line(stream: impl Read, mut take: impl FnMut(&str)) {
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    while matches!(reader.read_until(b'\n', &mut line), Ok(read) if read > 0) {
        take(&String::from_utf8_lossy(&line));
        line.clear();
    }
}

/// Seconds for JSON, rounded to milliseconds.
pub(crate) fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1000.0).round() / 1000.0
}

/// The command as a line for a shell, with the variables that are set for it, except `PATH`.
fn command_line(command: &Command) -> String {
    let variables =
        command.get_envs().filter(|(name, _)| *name != "PATH").filter_map(|(name, value)| {
            Some(format!("{}={}", name.to_string_lossy(), quoted(&value?.to_string_lossy())))
        });
    let program = command.get_program().to_string_lossy();
    let args = command.get_args().map(|arg| quoted(&arg.to_string_lossy()));
    let words: Vec<String> =
        variables.chain(std::iter::once(quoted(&program))).chain(args).collect();
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_quoted_for_a_shell() {
        let mut command = Command::new("cargo");
        command.args(["doc", "it's"]).env("RUSTDOCFLAGS", "-D warnings").env("PATH", "/bin");
        assert_eq!(command_line(&command), r"RUSTDOCFLAGS='-D warnings' cargo doc 'it'\''s'");
    }

    #[test]
    fn a_program_that_cannot_start_is_a_failed_step() {
        let console = Console::new(Stdout::Json, false);
        let command = Command::new("no-such-program-anywhere");
        assert!(!console.run(Step::new("none", command, "install it")).succeeded);
    }

    #[test]
    fn steps_that_run_together_keep_their_order_and_results() {
        let console = Console::new(Stdout::Json, false);
        let step = |name, script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            Step::new(name, command, "nothing")
        };
        // Each waits for the other, so neither ends if they run one after the other.
        let folder = std::env::temp_dir().join(format!("recto-together-{}", std::process::id()));
        let folder = folder.display();
        let meet = |own: &str, other: &str| {
            format!(
                "mkdir -p {folder}; touch {folder}/{own}; i=0; \
                 while [ ! -e {folder}/{other} ] && [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done; \
                 [ -e {folder}/{other} ] && echo {own}"
            )
        };
        let finished =
            console.run_together(vec![step("one", &meet("a", "b")), step("two", &meet("b", "a"))]);
        std::fs::remove_dir_all(folder.to_string()).unwrap();
        let results: Vec<_> =
            finished.iter().map(|it| (it.succeeded, it.stdout.as_str())).collect();
        assert_eq!(results, [(true, "a\n"), (true, "b\n")]);
    }

    #[test]
    fn lines_keep_their_line_breaks_and_invalid_utf8_is_replaced() {
        let mut lines = Vec::new();
        each_line(&b"one\n\xfftwo\nthree"[..], |line| lines.push(line.to_owned()));
        assert_eq!(lines, ["one\n", "\u{fffd}two\n", "three"]);
    }
}
