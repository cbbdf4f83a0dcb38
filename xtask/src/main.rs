//! What this repository runs: `cargo xtask test` and the longer runs beside it.
//!
//! One file a command. Every command prints one line a step with its duration, and after a
//! failure what to do next. `step.rs` runs the programs, `requirement.rs` installs what they need,
//! `workspace.rs` knows where things are.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command talks to whoever started it"
)]

mod bench;
mod compare;
mod fuzz;
mod requirement;
mod seed;
mod sim;
mod step;
mod test;
mod test_results;
mod verdicts;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::step::{Console, Stdout, StepsFailed};
use crate::workspace::Workspace;

/// What this repository runs.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    /// Print the results as JSON on standard output, and the steps on standard error.
    #[arg(long, global = true)]
    json: bool,

    /// Show what each step prints while it runs.
    #[arg(long, short, global = true)]
    verbose: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Formatting, lints, docs and all tests: what a change has to pass.
    Test(test::Options),
    /// Fuzz each target for a bounded time (needs a nightly toolchain).
    Fuzz(fuzz::Options),
    /// Timings of the engine, or exact instruction counts with limits.
    Bench(bench::Options),
    /// Measure Recto beside what people use today.
    Compare(compare::Options),
    /// A long random comparison of the engine against the plain model.
    Sim(sim::Options),
    /// Compare Recto with recorded verdicts of real providers.
    Verdicts(verdicts::Options),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let stdout = if cli.json { Stdout::Json } else { Stdout::Text };
    let console = Console::new(stdout, cli.verbose);

    match run(&cli.command, &console) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<StepsFailed>() => ExitCode::FAILURE, // already told, step by step
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command, console: &Console) -> anyhow::Result<()> {
    let workspace = Workspace::load()?;
    match command {
        Command::Test(options) => test::run(options, &workspace, console),
        Command::Fuzz(options) => fuzz::run(options, &workspace, console),
        Command::Bench(options) => bench::run(options, &workspace, console),
        Command::Compare(options) => compare::run(options, &workspace, console),
        Command::Sim(options) => sim::run(options, &workspace, console),
        Command::Verdicts(options) => verdicts::run(options, &workspace, console),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
