//! `cargo xtask bench`: timings of the engine, of stores and of the command, and exact instruction
//! counts.
//!
//! Valgrind counts the instructions, through gungraun. The counts do not depend on the load of the machine, so
//! the benchmark has hard limits and fails on a regression.

mod bindings;
mod format;
mod model_loop;

use std::process::Command;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::requirement;
use crate::step::{Console, Finished, Step};
use crate::workspace::Workspace;

#[derive(Args)]
pub(crate) struct Options {
    /// Benchmark to run.
    #[arg(value_enum, default_value = "engine")]
    what: What,

    /// For store: number of messages of the agent run.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..))]
    messages: u32,

    /// Arguments for the benchmark, such as a filter.
    #[arg(last = true)]
    arguments: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// Times of the engine's operations.
    Engine,
    /// Instruction counts of the engine's operations; fails above a limit.
    Counts,
    /// Times and sizes of stored conversations.
    Store,
    /// Rates of import and rendering; fails above a limit.
    Format,
    /// Times of the `recto` command, compared with git and sqlite3.
    Cli,
    /// Recto's own time in a model call, compared with LangGraph; fails above a limit.
    Loop,
    /// Times and sizes of the packages for Python and Node, compared with frameworks; fails above a limit.
    Bindings,
}

/// File name of the command.
const EXECUTABLE: &str = if cfg!(windows) { "recto.exe" } else { "recto" };

pub(crate) fn run(
    options: &Options,
    workspace: &Workspace,
    console: &Console,
) -> anyhow::Result<()> {
    match options.what {
        What::Bindings => bindings::run(&options.arguments, workspace, console),
        What::Loop => model_loop::run(&options.arguments, workspace, console),
        What::Engine => timings("engine", &options.arguments, workspace, console),
        What::Format => format::run(&options.arguments, workspace, console),
        What::Counts => counts(&options.arguments, workspace, console),
        What::Cli => {
            let build = workspace.cargo(["build", "--release", "-p", "recto-cli"]);
            console.run(Step::new("build", build, "read the output above")).required()?;
            let binary = workspace.target().join("release").join(EXECUTABLE);
            let mut arguments = vec!["--binary".to_owned(), binary.display().to_string()];
            arguments.extend_from_slice(&options.arguments);
            timings("cli", &arguments, workspace, console)
        }
        What::Store => {
            requirement::ensure(&[requirement::postgresql()], workspace, console)?;
            let mut arguments = vec!["--messages".to_owned(), options.messages.to_string()];
            arguments.extend_from_slice(&options.arguments);
            timings("store", &arguments, workspace, console)
        }
    }
}

fn timings(
    name: &'static str,
    arguments: &[String],
    workspace: &Workspace,
    console: &Console,
) -> anyhow::Result<()> {
    let command = benchmark(name, arguments, workspace);
    let step = Step::new("bench", command, "read the output above");
    let finished = console.run(step.shown());
    if console.is_json() {
        let mut value = finished.to_json();
        value["output"] = json!(finished.stdout);
        console.results_json(&value);
    }
    finished.required()?;
    Ok(())
}

fn counts(arguments: &[String], workspace: &Workspace, console: &Console) -> anyhow::Result<()> {
    let version = workspace.locked_version("gungraun")?.context(
        "no package uses gungraun; \
         add it to the dev-dependencies of crates/bench",
    )?;
    let needed = [requirement::valgrind(), requirement::gungraun_runner(version)];
    requirement::ensure(&needed, workspace, console)?;

    let mut arguments = arguments.to_vec();
    if console.is_json() {
        arguments.push("--output-format=json".to_owned());
    }
    let command = benchmark("counts", &arguments, workspace);
    let advice =
        "make it cheaper, or raise the limit in crates/bench/benches/counts.rs and say why";
    let step = Step::new("bench counts", command, advice);
    let finished = console.run(if console.is_json() { step } else { step.shown() });
    if console.is_json() {
        console.results_json(&json!({
            "step": finished.to_json(),
            "counts": instruction_counts(&finished),
        }));
    }
    finished.required()?;
    Ok(())
}

fn benchmark(name: &str, arguments: &[String], workspace: &Workspace) -> Command {
    let mut command = workspace.cargo(["bench", "-p", "bench", "--bench", name]);
    if !arguments.is_empty() {
        command.arg("--").args(arguments);
    }
    command
}

/// The important fields of gungraun's summaries, one JSON line per benchmark.
fn instruction_counts(finished: &Finished) -> Vec<Value> {
    let summaries = finished.stdout.lines().filter_map(|line| serde_json::from_str(line).ok());
    summaries.map(|summary: Value| instruction_count(&summary)).collect()
}

fn instruction_count(summary: &Value) -> Value {
    let total = &summary["profiles"][0]["data"]["total"];
    let instructions = &total["metrics"]["Ir"]["values"];
    json!({
        "benchmark": summary["module_path"],
        "case": summary["id"],
        "instructions": instructions["new"],
        "before": instructions["old"], // null on the first run
        "regressions": total["regressions"],
    })
}
