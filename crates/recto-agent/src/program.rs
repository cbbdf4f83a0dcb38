//! Child processes of tools and MCP servers: their environment, and killing them with their
//! descendants.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use tokio::process::{Child, Command};

use crate::Secret;

/// Environment variables that every program inherits.
const INHERITED: [&str; 12] = [
    "HOME",
    "LANG",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TEMP",
    "TERM",
    "TMPDIR",
    "USER",
    "APPDATA",
    "SYSTEMROOT",
    "USERPROFILE",
];

/// The process groups of running programs.
static RUNNING: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// A program with piped standard streams. Its environment has the inherited variables and the given
/// ones, so that it does not see API keys.
pub(crate) fn command(
    program: &str,
    arguments: &[String],
    variables: &[(String, Secret)],
) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().kill_on_drop(true);
    command.envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.envs(variables.iter().map(|(name, value)| (name, value.reveal())));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // In its own process group, so that Ctrl-C in the terminal does not reach the program.
    #[cfg(unix)]
    command.process_group(0);
    command
}

/// The process group of a program. Dropping it kills the program and its descendants.
#[derive(Debug)]
pub(crate) struct ProcessGroup(Option<u32>);

impl ProcessGroup {
    pub(crate) fn of(program: &Child) -> ProcessGroup {
        let id = program.id();
        running(|running| running.extend(id));
        ProcessGroup(id)
    }

    /// Gives up the group without killing it, after the program has exited. Descendants that still run
    /// keep running.
    pub(crate) fn release(mut self) {
        let id = self.0.take();
        running(|running| id.is_some_and(|id| running.remove(&id)));
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(id) = self.0.take() {
            running(|running| running.remove(&id));
            kill(id);
        }
    }
}

/// Kills all running programs that tools of this process started. Call it before
/// [`std::process::exit`], which does not drop tools.
pub fn kill_programs() {
    for id in running(std::mem::take) {
        kill(id);
    }
}

fn running<T>(work: impl FnOnce(&mut BTreeSet<u32>) -> T) -> T {
    work(&mut RUNNING.lock().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(unix)]
fn kill(group: u32) {
    use rustix::process::{Pid, Signal, kill_process_group};
    if let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) {
        match kill_process_group(group, Signal::KILL) {
            // The group may have exited already.
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => tracing::warn!(%error, "a program was not killed"),
        }
    }
}

/// On other platforms only the program itself is killed, by `kill_on_drop`.
#[cfg(not(unix))]
fn kill(_: u32) {}
