//! Long output on a terminal goes through a pager: RECTO_PAGER, PAGER, or less.

use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};

use crate::Surroundings;
use crate::failure::Failure;

/// Shows a text in a pager. `false`: there is none.
pub(crate) fn show(text: &str, surroundings: &mut Surroundings) -> Result<bool, Failure> {
    let chosen = surroundings.text("RECTO_PAGER").or_else(|| surroundings.text("PAGER"));
    let chosen = chosen.unwrap_or_else(|| "less".to_owned());
    if chosen == "cat" {
        return Ok(false);
    }
    // What was printed so far comes first.
    surroundings.output.flush()?;
    let mut command = shell(&chosen);
    if surroundings.text("LESS").is_none() {
        // Show colours, end at once if it fits, and leave it on the screen.
        command.env("LESS", "FRX");
    }
    let _interrupts = ignore_interrupts();
    let Ok(mut child) = command.stdin(Stdio::piped()).spawn() else { return Ok(false) };
    let mut input = child.stdin.take().expect("it was asked for");
    let written = input.write_all(text.as_bytes());
    drop(input);
    let ended = child.wait();
    match written {
        // Whoever has seen enough leaves early.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        // The shell did not find it.
        _ => Ok(!ended.is_ok_and(|status| matches!(status.code(), Some(126 | 127)))),
    }
}

/// While a pager is open, Ctrl-C is for the pager: a prompt of the shell in the middle of it would
/// confuse everybody.
#[cfg(unix)]
fn ignore_interrupts() -> Option<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    // Whoever listens, even without looking, is not ended.
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
