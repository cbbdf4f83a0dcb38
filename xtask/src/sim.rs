//! `cargo xtask sim`: long random runs, for as long as asked: requests to the engine and to every
//! store beside the plain model, and stores whose process, disk or server fails.

use anyhow::bail;
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::seed;
use crate::step::{Console, Step};
use crate::test_results::TestResults;
use crate::workspace::Workspace;

/// Ignored tests that read `RECTO_SIM_SEED` and `RECTO_SIM_SECONDS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The engine beside the model.
    Engine,
    /// Every store beside the model.
    Stores,
    /// Kills, power losses, failing disks, changed bits.
    Faults,
    /// Random views, rendered for every provider and judged by its rules.
    Format,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Engine => "sim engine",
            Part::Stores => "sim stores",
            Part::Faults => "sim faults",
            Part::Format => "sim format",
        }
    }

    /// The package, its features, and the filter of its tests.
    fn tests(self) -> [&'static str; 3] {
        match self {
            Part::Engine => ["recto-core", "", "model::simulation"],
            Part::Stores => ["recto", "postgres", "model::simulation"],
            Part::Faults => ["recto-store", "postgres", "faults::simulation"],
            Part::Format => ["recto-format", "", "render::simulation"],
        }
    }
}

#[derive(Args)]
pub(crate) struct Options {
    /// What to run; everything without it.
    #[arg(value_enum)]
    part: Option<Part>,

    /// The seed that decides everything; a fresh one without it.
    #[arg(long)]
    seed: Option<u64>,

    /// How long each part runs.
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

    let mut results = Vec::new();
    for part in parts {
        let [package, features, filter] = part.tests();
        let mut command = workspace.cargo(["test", "--release", "-p", package]);
        command.args(["--features", features, "--test", "it", "--"]);
        command.args(["--ignored", "--nocapture", "--exact", filter]);
        command.env("RECTO_SIM_SEED", seed.to_string());
        command.env("RECTO_SIM_SECONDS", seconds.to_string());

        let word = part.name().replace("sim ", "");
        let again = format!("cargo xtask sim {word} --seed {seed} --seconds {seconds}");
        let step = Step::new(part.name(), command, format!("repeat it: {again}")).shown();
        let finished = console.run(step);
        results.push(finished.to_json());
        let output = finished.required()?.stdout;
        if TestResults::from_output(&output).passed == 0 {
            bail!("nothing ran; next: see whether {package} still has the tests {filter}");
        }
    }
    if console.wants_json() {
        console.results_json(&json!({ "seed": seed, "steps": results }));
    }
    Ok(())
}
