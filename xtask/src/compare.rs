//! `cargo xtask compare`: compares Recto with other libraries on the same input.
//!
//! A comparison is a Python script with its `requirements.txt`, both beside this file, and an
//! example of a crate. Each takes the input file and prints one line of JSON. To add one, write
//! those three and a value of [`Comparison`], or a file like `storage.rs` if there are more sides
//! than two.

mod frameworks;
mod kept_run;
mod measurement;
mod sample_text;
mod storage;
pub(crate) mod venv;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use serde_json::json;

use self::measurement::Measurement;
use self::venv::Venv;
use crate::requirement;
use crate::step::{Console, Step, StepsFailed};
use crate::workspace::Workspace;

#[derive(Args)]
pub(crate) struct Options {
    /// Comparison to run.
    #[arg(value_enum)]
    what: What,

    /// For storage: number of messages of the agent run.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(10..))]
    messages: u32,

    /// For tokens: the seed of the input text.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Number of runs of each side, in turn. The fastest run counts.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// Counting tokens: Python's tiktoken and the engine.
    Tokens,
    /// Storing an agent run: LangGraph, the OpenAI Agents SDK and Recto.
    Storage,
    /// Agents of each framework with its own means and with Recto, and a provider that refuses bad requests.
    Frameworks,
}

/// Two programs that do the same work.
struct Comparison {
    /// The name of the script and of its requirements in `compare/`.
    name: &'static str,
    /// The name of the Python side in the table.
    python: &'static str,
    package: &'static str,
    example: &'static str,
    /// Bytes of sample text.
    input: usize,
}

const TOKENS: Comparison = Comparison {
    name: "tokens",
    python: "python tiktoken",
    package: "recto-core",
    example: "count_lines",
    input: 5_000_000,
};

pub(crate) fn run(
    options: &Options,
    workspace: &Workspace,
    console: &Console,
) -> anyhow::Result<()> {
    match options.what {
        What::Tokens => TOKENS.run(options, workspace, console),
        What::Frameworks => frameworks::run(workspace, console),
        What::Storage => storage::run(options.messages, options.runs, workspace, console),
    }
}

impl Comparison {
    fn run(
        &self,
        options: &Options,
        workspace: &Workspace,
        console: &Console,
    ) -> anyhow::Result<()> {
        requirement::ensure(&[requirement::python()], workspace, console)?;
        let beside = workspace.root().join("xtask/src/compare");
        let script = beside.join(format!("{}.py", self.name));
        let requirements = beside.join(format!("{}.requirements.txt", self.name));
        let venv = Venv::ready(self.name, &requirements, workspace, console)?;
        let input = self.write_input(options.seed, workspace)?;
        self.build(workspace, console)?;

        let mut python: Option<Measurement> = None;
        let mut rust: Option<Measurement> = None;
        for _ in 0..options.runs {
            let run = self.python(&venv, &script, &input, console)?;
            python = Some(run.or_faster(python));
            let run = self.rust(&input, workspace, console)?;
            rust = Some(run.or_faster(rust));
        }
        let python = python.context("there is at least one run")?;
        let rust = rust.context("there is at least one run")?;
        self.report(&python, &rust, options, console)
    }

    fn write_input(&self, seed: u64, workspace: &Workspace) -> anyhow::Result<PathBuf> {
        let directory = workspace.target().join("compare");
        std::fs::create_dir_all(&directory)?;
        let path = directory.join(format!("{}-{seed}.jsonl", self.name));
        let text = sample_text::json_lines(seed, self.input);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    /// Builds the example first, so that no run waits for the compiler.
    fn build(&self, workspace: &Workspace, console: &Console) -> Result<(), StepsFailed> {
        let command =
            workspace.cargo(["build", "--release", "-p", self.package, "--example", self.example]);
        let advice = format!("make the example {} compile again", self.example);
        console.run(Step::new("build", command, advice)).required()?;
        Ok(())
    }

    fn python(
        &self,
        venv: &Venv,
        script: &Path,
        input: &Path,
        console: &Console,
    ) -> anyhow::Result<Measurement> {
        let mut command = venv.python();
        command.arg(script).arg(input);
        let advice = format!("see what {} needs", script.display());
        let finished = console.run(Step::new("python", command, advice)).required()?;
        Measurement::from_output(&finished.stdout).context("the Python script")
    }

    fn rust(
        &self,
        input: &Path,
        workspace: &Workspace,
        console: &Console,
    ) -> anyhow::Result<Measurement> {
        let mut command = workspace.cargo(["run", "--release", "-p", self.package]);
        command.args(["--example", self.example, "--"]).arg(input);
        let advice = format!("see what the example {} needs", self.example);
        let finished = console.run(Step::new("recto", command, advice)).required()?;
        Measurement::from_output(&finished.stdout).context("the Rust example")
    }

    fn report(
        &self,
        python: &Measurement,
        rust: &Measurement,
        options: &Options,
        console: &Console,
    ) -> anyhow::Result<()> {
        if console.is_json() {
            console.results_json(&json!({
                "comparison": self.name,
                "seed": options.seed,
                "runs": options.runs,
                "python": python.to_json(),
                "recto": rust.to_json(),
                "ratio": rust.speed() / python.speed(),
            }));
        } else {
            console.line("");
            console.line(measurement::table(&[(self.python, python), ("recto", rust)]));
        }
        if !rust.agrees_with(python) {
            anyhow::bail!(
                "the two sides did not do the same work, so the ratio means nothing; \
                 next: find the first line of the input that they count differently"
            );
        }
        Ok(())
    }
}
