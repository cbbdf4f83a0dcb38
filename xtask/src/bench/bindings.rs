//! `cargo xtask bench bindings`: the Python package, beside what the frameworks bring themselves.
//!
//! `python/bench` builds the wheel, installs it with the frameworks in a virtual environment in the target
//! directory, and measures.

use serde_json::json;

use crate::requirement;
use crate::step::{Console, Step};
use crate::workspace::Workspace;

pub(super) fn run(
    arguments: &[String],
    workspace: &Workspace,
    console: &Console,
) -> anyhow::Result<()> {
    requirement::ensure(&[requirement::python()], workspace, console)?;
    let mut command = workspace.command("python3");
    command.arg("python/bench").arg(workspace.target()).args(arguments);
    let step = Step::new("bench python", command, "read the rows marked MISSED");
    let finished = console.run(step.shown());
    if console.is_json() {
        let mut value = finished.to_json();
        value["output"] = json!(finished.stdout);
        console.results_json(&value);
    }
    finished.required()?;
    Ok(())
}
