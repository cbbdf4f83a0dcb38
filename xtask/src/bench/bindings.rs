//! `cargo xtask bench bindings`: measures the packages for Python and Node, and compares them with the
//! frameworks' own implementations.
//!
//! `python/bench` builds the wheel, installs it with the frameworks in a virtual environment in the target
//! directory, and measures. `node/bench` builds the package with the profile `dist`, and measures. The
//! arguments are the parts of the Python benchmark to run, or `node` for only the Node benchmark.

use serde_json::json;

use crate::requirement;
use crate::step::{Console, Step};
use crate::workspace::Workspace;

const ADVICE: &str = "read the rows marked MISSED";

pub(super) fn run(
    arguments: &[String],
    workspace: &Workspace,
    console: &Console,
) -> anyhow::Result<()> {
    requirement::ensure(&[requirement::python(), requirement::node()], workspace, console)?;
    let parts: Vec<&String> = arguments.iter().filter(|part| *part != "node").collect();
    let mut steps = Vec::new();
    let is_all = arguments.is_empty();
    if is_all || !parts.is_empty() {
        let mut command = workspace.command("python3");
        command.arg("python/bench").arg(workspace.target()).args(&parts);
        steps.push(Step::new("bench python", command, ADVICE));
    }
    if is_all || parts.len() < arguments.len() {
        let mut command = workspace.command("node");
        command.arg("node/bench/bindings.mjs");
        steps.push(Step::new("bench node", command, ADVICE));
    }
    let finished: Vec<_> = steps.into_iter().map(|step| console.run(step.shown())).collect();
    if console.is_json() {
        let values = finished.iter().map(|step| {
            let mut value = step.to_json();
            value["output"] = json!(step.stdout);
            value
        });
        console.results_json(&values.collect());
    }
    for step in finished {
        step.required()?;
    }
    Ok(())
}
