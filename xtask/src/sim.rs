//! `cargo xtask sim`: random requests to the engine and to the plain model, for as long as asked.

use anyhow::bail;
use clap::Args;
use serde_json::json;

use crate::seed;
use crate::step::{Console, Step};
use crate::test_results::TestResults;
use crate::workspace::Workspace;

/// An ignored test in recto-core's `tests/it`.
const SIMULATION: &str = "model::simulation";

#[derive(Args)]
pub(crate) struct Options {
    /// The seed that decides everything; a fresh one without it.
    #[arg(long)]
    seed: Option<u64>,

    /// How long to run.
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

    let mut command = workspace.cargo(["test", "--release", "-p", "recto-core"]);
    command.args(["--test", "it", "--", "--ignored", "--nocapture", "--exact", SIMULATION]);
    command.env("RECTO_SIM_SEED", seed.to_string());
    command.env("RECTO_SIM_SECONDS", seconds.to_string());

    let again = format!("cargo xtask sim --seed {seed} --seconds {seconds}");
    let finished = console.run(Step::new("sim", command, format!("repeat it: {again}")).shown());
    if console.wants_json() {
        console.results_json(&json!({ "seed": seed, "step": finished.to_json() }));
    }
    let output = finished.required()?.stdout;
    if TestResults::from_output(&output).passed == 0 {
        bail!("nothing ran; next: see whether recto-core still has the test {SIMULATION}");
    }
    Ok(())
}
