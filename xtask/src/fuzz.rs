//! `cargo xtask fuzz`: runs each fuzz target for a bounded time, and prints the seed.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Value, json};

use crate::requirement;
use crate::seed;
use crate::step::{Console, Finished, Step, StepsFailed};
use crate::workspace::{TINY_NODES, Workspace};

#[derive(Args)]
pub(crate) struct Options {
    /// Duration of each target, in seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u64,

    /// Only this target: the name of a file in fuzz/fuzz_targets.
    #[arg(long)]
    target: Option<String>,

    /// Seed of the random numbers. Default: a new one.
    #[arg(long)]
    seed: Option<u64>,
}

pub(crate) fn run(
    options: &Options,
    workspace: &Workspace,
    console: &Console,
) -> anyhow::Result<()> {
    let mut targets = targets(&workspace.root().join("fuzz/fuzz_targets"))?;
    if let Some(wanted) = &options.target {
        if !targets.contains(wanted) {
            bail!("there is no fuzz target {wanted:?}; use one of {}", targets.join(", "));
        }
        targets = vec![wanted.clone()];
    }
    requirement::ensure(&[requirement::cargo_fuzz()], workspace, console)?;

    let seed = options.seed.unwrap_or_else(seed::fresh);
    console.line(format_args!("seed {seed}"));
    let mut results = Vec::new();
    let mut succeeded = true;
    for target in &targets {
        let finished = console.run(build(target, workspace));
        if !finished.succeeded {
            succeeded = false;
            continue;
        }
        let finished = console.run(fuzz(target, seed, options.seconds, workspace));
        succeeded &= finished.succeeded;
        results.push(result(target, seed, &finished));
    }
    if console.is_json() {
        console.results_json(&Value::Array(results));
    }
    if succeeded { Ok(()) } else { Err(StepsFailed.into()) }
}

/// Builds the target first, so that a compile error is not reported as a failure of the target.
fn build(target: &str, workspace: &Workspace) -> Step {
    Step::new("fuzz build", cargo_fuzz("build", target, workspace), "make the target compile again")
}

fn fuzz(target: &str, seed: u64, seconds: u64, workspace: &Workspace) -> Step {
    let mut command = cargo_fuzz("run", target, workspace);
    command.arg("--").arg(format!("-seed={seed}")).arg(format!("-max_total_time={seconds}"));
    let advice =
        format!("repeat the input named above: cargo run -p recto-fuzz --bin {target} -- FILE");
    Step::new("fuzz", command, advice)
}

/// `cargo fuzz` without sanitizers. They need a nightly toolchain, and the code of the workspace is safe Rust.
fn cargo_fuzz(action: &str, target: &str, workspace: &Workspace) -> Command {
    let mut command = workspace.cargo(["fuzz", action, "--sanitizer", "none", target]);
    command.env("RUSTFLAGS", TINY_NODES);
    // A report needs function names and line numbers.
    command.env("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only");
    command.env("CARGO_PROFILE_RELEASE_STRIP", "none");
    command
}

fn result(target: &str, seed: u64, finished: &Finished) -> Value {
    let mut value = finished.to_json();
    value["target"] = json!(target);
    value["seed"] = json!(seed);
    value
}

/// The names of the targets, in order.
fn targets(directory: &Path) -> anyhow::Result<Vec<String>> {
    let files = std::fs::read_dir(directory)
        .with_context(|| format!("cannot list {}", directory.display()))?;
    let mut names = Vec::new();
    for file in files {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}
