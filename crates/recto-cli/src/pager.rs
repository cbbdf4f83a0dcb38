//! The pager for long output on a terminal: RECTO_PAGER, else PAGER, else less.

use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};

use crate::Environment;
use crate::failure::Failure;

/// Shows a text in a pager. Returns `false` if no pager can be started.
pub(crate) fn show(text: &str, environment: &mut Environment) -> Result<bool, Failure> {
    let chosen = environment.text("RECTO_PAGER").or_else(|| environment.text("PAGER"));
    let chosen = chosen.unwrap_or_else(|| "less".to_owned());
    if chosen == "cat" {
        return Ok(false);
    }
    // Earlier output must appear before that of the pager.
    environment.output.flush()?;
    let mut command = shell(&chosen);
    if environment.text("LESS").is_none() {
        // F: exit at once if the text fits; R: show colours; X: leave the text on the screen.
        command.env("LESS", "FRX");
    }
    let _interrupts = ignore_interrupts();
    let Ok(mut child) = command.stdin(Stdio::piped()).spawn() else { return Ok(false) };
    let mut input = child.stdin.take().expect("stdin is piped");
    let written = input.write_all(text.as_bytes());
    drop(input);
    let ended = child.wait();
    match written {
        // The user may quit the pager before the end.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        // 126 and 127: the shell could not run the pager.
        _ => Ok(!ended.is_ok_and(|status| matches!(status.code(), Some(126 | 127)))),
    }
}

/// Leaves Ctrl-C to the pager while it is open. If this process ended, the shell would print its prompt
/// into the pager.
#[cfg(unix)]
fn ignore_interrupts() -> Option<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    // A registered handler replaces the default action, even if nothing waits for it.
    let entered = runtime.enter();
    let listening = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt());
    drop(entered);
    listening.ok().map(|_| runtime)
}

#[cfg(not(unix))]
fn ignore_interrupts() {}

#[cfg(unix)]
fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]);
    command
}

#[cfg(not(unix))]
fn shell(line: &str) -> Command {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("more"));
    command.args(words);
    command
}
