//! Programs that are started for a model: what they see of our environment, and how they are ended
//! together with whatever they have started.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use tokio::process::{Child, Command};

use crate::Secret;

/// What every program gets of our environment.
const USUAL: [&str; 12] = [
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

/// The groups of programs that run now.
static RUNNING: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// A program that sees `HOME`, `PATH` and the like, and these variables. Keys of others are none of its
/// business.
pub(crate) fn command(
    program: &str,
    arguments: &[String],
    variables: &[(String, Secret)],
) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().kill_on_drop(true);
    command.envs(USUAL.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.envs(variables.iter().map(|(name, value)| (name, value.reveal())));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Ctrl-C in our terminal is for us.
    #[cfg(unix)]
    command.process_group(0);
    command
}

/// A program with all that it has started. They are killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Group(Option<u32>);

impl Group {
    pub(crate) fn of(program: &Child) -> Group {
        let id = program.id();
        running(|running| running.extend(id));
        Group(id)
    }

    /// It has ended by itself. What it left running is left alone.
    pub(crate) fn release(mut self) {
        let id = self.0.take();
        running(|running| id.is_some_and(|id| running.remove(&id)));
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(id) = self.0.take() {
            running(|running| running.remove(&id));
            kill(id);
        }
    }
}

/// Kills every program that tools of this process have started and that still runs. It is for those
/// who leave without dropping their tools, as [`std::process::exit`] does.
pub fn end_programs() {
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
        // Who has ended already need not be killed.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Elsewhere a program is killed alone, when it is dropped.
#[cfg(not(unix))]
fn kill(_: u32) {}
