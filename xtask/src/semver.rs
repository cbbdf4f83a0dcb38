//! `cargo xtask semver`: compares the public API with that of an earlier commit.

use anyhow::Context as _;
use clap::Args;
use serde_json::json;

use crate::requirement;
use crate::step::{Console, Step};
use crate::workspace::Workspace;

/// The libraries that are published.
const PACKAGES: [&str; 10] = [
    "recto",
    "recto-agent",
    "recto-bpe",
    "recto-core",
    "recto-format",
    "recto-json",
    "recto-lists",
    "recto-service",
    "recto-store",
    "sum-tree",
];

#[derive(Args)]
pub(crate) struct Options {
    /// The commit or tag to compare with. Default: the newest tag.
    #[arg(long)]
    baseline: Option<String>,
}

pub(crate) fn run(
    options: &Options,
    workspace: &Workspace,
    console: &Console,
) -> anyhow::Result<()> {
    let baseline = match &options.baseline {
        Some(baseline) => baseline.clone(),
        None => workspace.newest_tag()?.context(
            "no release is tagged yet, so there is nothing to compare with; next: name a commit with `--baseline`",
        )?,
    };
    requirement::ensure(&[requirement::cargo_semver_checks()], workspace, console)?;
    let mut command = workspace.cargo(["semver-checks", "--baseline-rev", &baseline]);
    for package in PACKAGES {
        command.args(["--package", package]);
    }
    let advice = "undo the breaking change, or raise the version";
    let finished = console.run(Step::new("semver", command, advice).shown());
    if console.is_json() {
        console.results_json(&json!({ "baseline": baseline, "output": finished.stdout }));
    }
    finished.required()?;
    Ok(())
}
