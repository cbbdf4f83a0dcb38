//! `cargo xtask sim`: random runs of a given duration. Requests to the engine and to every store are compared
//! with the plain model; stores are used while their process, disk or server fails; rendered requests are
//! checked with the rules of the providers and with the types that the providers publish; property tests run
//! with other seeds than in `cargo xtask test`.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::compare::venv::Venv;
use crate::requirement;
use crate::seed;
use crate::step::{Console, Step};
use crate::test;
use crate::test_results::TestResults;
use crate::workspace::Workspace;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The engine compared with the model.
    Engine,
    /// Every store compared with the model.
    Stores,
    /// Kills, power losses, failing disks, changed bits; servers that are killed, frozen and cut off.
    Faults,
    /// Random views, rendered for every provider and checked with its rules.
    Format,
    /// All tests of the packages that have property tests, with one seed after the other.
    Properties,
}

/// The packages with property tests.
const PROPERTY_TESTS: [&str; 6] =
    ["sum-tree", "recto-json", "recto-bpe", "recto-core", "recto-store", "recto-format"];

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Engine => "sim engine",
            Part::Stores => "sim stores",
            Part::Faults => "sim faults",
            Part::Format => "sim format",
            Part::Properties => "sim properties",
        }
    }

    /// Packages, their features, and the names of their ignored tests, which read `RECTO_SIM_SEED` and
    /// `RECTO_SIM_SECONDS`. They share the time of the part.
    fn tests(self) -> &'static [[&'static str; 3]] {
        match self {
            Part::Engine => &[["recto-core", "", "model::simulation"]],
            Part::Stores => &[["recto", "postgres", "model::simulation"]],
            Part::Faults => &[
                ["recto-store", "postgres", "faults::simulation"],
                ["recto-store", "postgres", "postgres::campaign::simulation"],
                ["recto", "postgres", "faults::simulation"],
            ],
            Part::Format => &[["recto-format", "", "render::simulation"]],
            Part::Properties => &[],
        }
    }
}

#[derive(Args)]
pub(crate) struct Options {
    /// Part to run. Default: all.
    #[arg(value_enum)]
    part: Option<Part>,

    /// Seed of the random numbers. Default: a new one.
    #[arg(long)]
    seed: Option<u64>,

    /// Duration of each part, in seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

pub(crate) fn run(
    options: &Options,
    workspace: &Workspace,
    console: &Console,
) -> anyhow::Result<()> {
    let seed = options.seed.unwrap_or_else(seed::fresh);
    let seconds = options.seconds;
    let parts = options.part.map_or(Part::value_variants().to_vec(), |part| vec![part]);

    let requests = workspace.target().join("sim-requests.jsonl");
    let mut results = Vec::new();
    for (part, [package, features, filter]) in
        parts.iter().flat_map(|part| part.tests().iter().map(|test| (*part, test)))
    {
        let share = (seconds / part.tests().len() as u64).max(1);
        let mut command = workspace.cargo(["test", "--release", "-p", package]);
        command.args(["--features", features, "--test", "it", "--"]);
        command.args(["--ignored", "--nocapture", "--exact", filter]);
        command.env("RECTO_SIM_SEED", seed.to_string());
        command.env("RECTO_SIM_SECONDS", share.to_string());

        if part == Part::Format {
            command.env("RECTO_SIM_REQUESTS", &requests);
        }

        let word = part.name().replace("sim ", "");
        let again = format!("cargo xtask sim {word} --seed {seed} --seconds {seconds}");
        let step = Step::new(part.name(), command, format!("repeat it: {again}")).shown();
        let finished = console.run(step);
        results.push(finished.to_json());
        let output = finished.required()?.stdout;
        if TestResults::from_output(&output).passed == 0 {
            bail!("nothing ran; next: see whether {package} still has the tests {filter}");
        }
        if part == Part::Format {
            results.push(vendor_types(&requests, workspace, console)?);
        }
    }
    if parts.contains(&Part::Properties) {
        results.extend(properties(seed, Duration::from_secs(seconds), workspace, console)?);
    }
    if console.is_json() {
        console.results_json(&json!({ "seed": seed, "steps": results }));
    }
    Ok(())
}

/// Runs the property tests with one seed after the other until the time is over, at least once.
fn properties(
    first_seed: u64,
    duration: Duration,
    workspace: &Workspace,
    console: &Console,
) -> anyhow::Result<Vec<Value>> {
    let start = Instant::now();
    let mut rounds = Vec::new();
    for seed in first_seed.. {
        let mut command = workspace.cargo(["test", "--release", "--lib", "--tests"]);
        command.args(PROPERTY_TESTS.iter().flat_map(|package| ["-p", package]));
        test::set_seed(&mut command, seed);
        let advice = format!("repeat it: cargo xtask sim properties --seed {seed} --seconds 1");
        let finished = console.run(Step::new(Part::Properties.name(), command, advice));
        rounds.push(finished.required()?.to_json());
        if start.elapsed() >= duration {
            break;
        }
    }
    Ok(rounds)
}

/// Checks the requests of the simulation with the request types in the vendors' Python packages.
fn vendor_types(
    requests: &Path,
    workspace: &Workspace,
    console: &Console,
) -> anyhow::Result<Value> {
    requirement::ensure(&[requirement::python()], workspace, console)?;
    let folder = workspace.root().join("xtask/src/sim");
    let venv =
        Venv::ready("sim", &folder.join("vendor_types.requirements.txt"), workspace, console)?;
    let mut command = venv.python();
    command.arg(folder.join("vendor_types.py")).arg(requests);
    let advice = "compare the request with the provider's documentation; repair the rule, or list the difference \
                  in vendor_types.py with its reason";
    let finished = console.run(Step::new("vendor types", command, advice).shown());
    Ok(finished.required()?.to_json())
}
