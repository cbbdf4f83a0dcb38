//! `cargo xtask bench loop`: a turn of Recto's loop, and the same turn with LangGraph, LangChain's
//! SummarizationMiddleware and the SQLite saver, in the same run and against the same server.

use super::benchmark;
use crate::compare::venv::Venv;
use crate::requirement;
use crate::step::{Console, Step};
use crate::workspace::Workspace;

pub(super) fn run(
    arguments: &[String],
    workspace: &Workspace,
    console: &Console,
) -> anyhow::Result<()> {
    requirement::ensure(&[requirement::python()], workspace, console)?;
    let beside = workspace.root().join("xtask/src/compare");
    let requirements = beside.join("loop.requirements.txt");
    let venv = Venv::ready("loop", &requirements, workspace, console)?;
    // The benchmark runs the server, so it starts the other side too.
    let python = venv.python().get_program().to_string_lossy().into_owned();
    let script = beside.join("loop.py").to_string_lossy().into_owned();
    let mut with_peer = vec!["--peer".to_owned(), python, script];
    if console.is_json() {
        with_peer.push("--json".into());
    }
    with_peer.extend_from_slice(arguments);
    let command = benchmark("loop", &with_peer, workspace);
    let step = Step::new("bench", command, "read the output above");
    let finished = console.run(if console.is_json() { step } else { step.shown() });
    if console.is_json() {
        let line = finished.stdout.lines().rev().find_map(|line| serde_json::from_str(line).ok());
        console.results_json(&line.unwrap_or(serde_json::Value::Null));
    }
    finished.required()?;
    Ok(())
}
