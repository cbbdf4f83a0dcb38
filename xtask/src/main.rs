//! The commands of this repository: `cargo xtask test` and longer runs.
//!
//! Each command has a file. It prints one line per step with the step's duration and, after a failure, what to
//! do next. `step.rs` runs programs, `requirement.rs` installs what they need, `workspace.rs` finds files.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command prints its results")]

mod bench;
mod compare;
mod fuzz;
mod prices;
mod requirement;
mod seed;
mod semver;
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

/// The commands of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    /// Print the results as JSON on standard output, and the steps on standard error.
    #[arg(long, global = true)]
    json: bool,

    /// Show the output of each step while it runs.
    #[arg(long, short, global = true)]
    verbose: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check formatting, dependencies, lints and docs, and run all tests.
    Test(test::Options),
    /// Fuzz each target for a bounded time.
    Fuzz(fuzz::Options),
    /// Measure times, sizes or instruction counts.
    Bench(bench::Options),
    /// Compare Recto with other libraries.
    Compare(compare::Options),
    /// Compare random requests with the plain model for a bounded time.
    Sim(sim::Options),
    /// Compare Recto with recorded verdicts of real providers.
    Verdicts(verdicts::Options),
    /// Generate the price table from the Python package genai-prices.
    Prices(prices::Options),
    /// List breaking changes of the public API since a release.
    Semver(semver::Options),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let stdout = if cli.json { Stdout::Json } else { Stdout::Text };
    let console = Console::new(stdout, cli.verbose);

    match run(&cli.command, &console) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<StepsFailed>() => ExitCode::FAILURE, // printed already, step by step
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
        Command::Prices(options) => prices::run(options, &workspace, console),
        Command::Semver(options) => semver::run(options, &workspace, console),
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
