//! Child processes of tools and MCP servers: their environment, and killing them with their
//! descendants.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

#[cfg(target_os = "linux")]
use self::linux::{adopts_orphans, descendants};

use tokio::process::{Child, Command};

use crate::Secret;

/// Environment variables that every program inherits.
pub(crate) const INHERITED: [&str; 12] = [
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

/// Kills all running programs of tools and MCP servers that this process started. Call it before
/// [`std::process::exit`], which does not drop tools.
///
/// After [`isolate_programs`], it kills all descendants of this process, also those whose tool call has
/// ended and those that have left their process group (`setsid`).
pub fn kill_programs() {
    for id in running(std::mem::take) {
        kill(id);
    }
    #[cfg(target_os = "linux")]
    if adopts_orphans() {
        linux::kill_all_descendants();
    }
}

/// Prepares this process for programs that must not read its secrets and must not outlive it. On Linux:
///
/// - Other processes of the same user cannot read the memory and the environment of this process
///   (`PR_SET_DUMPABLE`), so a tool does not find API keys in `/proc/PID/environ`. Core dumps and debuggers
///   are refused as well. Processes of the superuser can still read both.
///   [`hide_variables`](crate::hide_variables) removes the keys from the environment, so that the superuser
///   does not find them there either.
/// - This process becomes the parent of its orphaned descendants (`PR_SET_CHILD_SUBREAPER`), so that
///   [`kill_programs`] finds them.
///
/// Both apply to the whole process, so a program calls this function itself, before it starts tools; a
/// program that starts other child processes should not call it. On other systems it does nothing.
pub fn isolate_programs() {
    #[cfg(target_os = "linux")]
    linux::isolate();
}

fn running<T>(work: impl FnOnce(&mut BTreeSet<u32>) -> T) -> T {
    work(&mut RUNNING.lock().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(unix)]
fn kill(group: u32) {
    use rustix::process::{Pid, Signal, kill_process_group};
    if let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) {
        // Descendants in other groups can be found only while their parents run, so they are killed first.
        #[cfg(target_os = "linux")]
        for process in descendants(group) {
            linux::kill_process(process);
        }
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

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::process::{
        DumpableBehavior, Pid, Signal, getpid, set_child_subreaper, set_dumpable_behavior,
    };

    /// Whether orphaned descendants become children of this process.
    static ADOPTS_ORPHANS: AtomicBool = AtomicBool::new(false);

    /// Maximum number of passes over the processes. A program that starts processes without end could
    /// otherwise keep this process busy.
    const MAX_PASSES: usize = 100;

    pub(super) fn isolate() {
        if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
            tracing::warn!(%error, "programs can read the environment of this process");
        }
        match set_child_subreaper(Some(getpid())) {
            Ok(()) => ADOPTS_ORPHANS.store(true, Ordering::Relaxed),
            Err(error) => tracing::warn!(%error, "orphaned descendants of programs keep running"),
        }
    }

    pub(super) fn adopts_orphans() -> bool {
        ADOPTS_ORPHANS.load(Ordering::Relaxed)
    }

    /// Kills the descendants of this process until there are none. The children of a killed process become
    /// children of this process, so one pass is not enough.
    pub(super) fn kill_all_descendants() {
        for _ in 0..MAX_PASSES {
            let found = descendants(getpid());
            if found.is_empty() {
                return;
            }
            found.into_iter().for_each(kill_process);
        }
    }

    pub(super) fn kill_process(process: Pid) {
        match rustix::process::kill_process(process, Signal::KILL) {
            // It may have exited already.
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => tracing::warn!(%error, "a program was not killed"),
        }
    }

    /// The running descendants of a process, without itself.
    pub(super) fn descendants(of: Pid) -> Vec<Pid> {
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        for (process, parent) in processes() {
            children.entry(parent).or_default().push(process);
        }
        let mut found = vec![of.as_raw_nonzero().get()];
        let mut next = 0;
        while let Some(parent) = found.get(next) {
            found.extend(children.remove(parent).unwrap_or_default());
            next += 1;
        }
        found.into_iter().skip(1).filter_map(Pid::from_raw).collect()
    }

    /// The running processes, each with its parent.
    fn processes() -> impl Iterator<Item = (i32, i32)> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| {
            let process: i32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            // `PID (NAME) STATE PARENT …`; the name may contain parentheses and spaces.
            let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
            let is_running = fields.next().is_some_and(|state| state != "Z" && state != "X");
            let parent = fields.next()?.parse().ok()?;
            is_running.then_some((process, parent))
        })
    }
}
