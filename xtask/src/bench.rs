//! `cargo xtask bench`: timings of the engine, of stores and of the command, and exact instruction
//! counts.
//!
//! Counts come from Valgrind by way of gungraun. They do not depend on how busy a machine is, so
//! the benchmark itself sets hard limits and a regression fails.

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
    /// What to measure.
    #[arg(value_enum, default_value = "engine")]
    what: What,

    /// For store: how long the agent run is.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..))]
    messages: u32,

    /// Passed on to the benchmark, such as a filter.
    #[arg(last = true)]
    arguments: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// How long the operations take.
    Engine,
    /// How many instructions they need; fails above a limit.
    Counts,
    /// What it costs to keep conversations in a file.
    Store,
    /// How fast transcripts are read and views rendered; fails above a limit.
    Format,
    /// How quick the `recto` command is, beside git and sqlite3.
    Cli,
    /// What Recto adds to a call of a model, beside LangGraph; fails above a limit.
    Loop,
}

/// The command's file.
const EXECUTABLE: &str = if cfg!(windows) { "recto.exe" } else { "recto" };

pub(crate) fn run(
    options: &Options,
    workspace: &Workspace,
    console: &Console,
) -> anyhow::Result<()> {
    match options.what {
        What::Loop => model_loop::run(&options.arguments, workspace, console),
        What::Engine => timings("engine", &options.arguments, workspace, console),
        What::Format => format::run(&options.arguments, workspace, console),
        What::Counts => counts(&options.arguments, workspace, console),
        What::Cli => {
            // The command as it is released, not as benchmarks are built.
            let build = workspace.cargo(["build", "--release", "-p", "recto-cli"]);
            console.run(Step::new("build", build, "see what the compiler says")).required()?;
            // Building the benchmark builds the command anew, with its profile, in the same place.
            let built = workspace.target().join("release").join(EXECUTABLE);
            let binary = workspace.target().join("bench-cli").join(EXECUTABLE);
            std::fs::create_dir_all(binary.parent().context("it is in a folder")?)?;
            std::fs::copy(&built, &binary)
                .with_context(|| format!("cannot copy {}", built.display()))?;
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
    let command = match name {
        "store" => {
            benchmark(&["-p", "recto", "--features", "postgres"], name, arguments, workspace)
        }
        "cli" => benchmark(&["-p", "recto-cli"], name, arguments, workspace),
        _ => benchmark(&["-p", "recto-core"], name, arguments, workspace),
    };
    let step = Step::new("bench", command, "see what the benchmark says above");
    let finished = console.run(step.shown());
    if console.wants_json() {
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
         add it to recto-core's dev-dependencies, with a bench named `counts`",
    )?;
    let needed = [requirement::valgrind(), requirement::gungraun_runner(version)];
    requirement::ensure(&needed, workspace, console)?;

    let mut arguments = arguments.to_vec();
    if console.wants_json() {
        arguments.push("--output-format=json".to_owned());
    }
    let command = benchmark(&["-p", "recto-core"], "counts", &arguments, workspace);
    let advice = "make it cheaper, or raise the limit in benches/counts.rs and say why";
    let step = Step::new("bench counts", command, advice);
    let finished = console.run(if console.wants_json() { step } else { step.shown() });
    if console.wants_json() {
        console.results_json(&json!({
            "step": finished.to_json(),
            "counts": instruction_counts(&finished),
        }));
    }
    finished.required()?;
    Ok(())
}

fn benchmark(package: &[&str], name: &str, arguments: &[String], workspace: &Workspace) -> Command {
    let mut command = workspace.cargo(["bench"]);
    command.args(package).args(["--bench", name]);
    if !arguments.is_empty() {
        command.arg("--").args(arguments);
    }
    command
}

/// What is worth keeping of gungraun's summaries, one JSON line a benchmark.
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
