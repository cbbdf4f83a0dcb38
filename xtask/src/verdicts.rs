//! `cargo xtask verdicts`: compares Recto with recorded verdicts of real providers.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::step::{Console, Step};
use crate::workspace::Workspace;

#[derive(Args)]
pub(crate) struct Options {
    /// Folder with `verdicts` (recorded requests: KIND/ok/NAME.json and KIND/refused/NAME.json) and `sessions`
    /// (files of agents), or a folder of recorded requests.
    folder: PathBuf,

    /// Print each refused request, each accepted one that is not recognised, has lint errors or is changed by
    /// rendering, and each file of `sessions` that is not exported with the same bytes.
    #[arg(long)]
    show: bool,

    /// Number of random edits of all accepted requests together. Default: 120000.
    #[arg(long, value_name = "COUNT")]
    edits: Option<usize>,
}

pub(crate) fn run(
    options: &Options,
    workspace: &Workspace,
    console: &Console,
) -> anyhow::Result<()> {
    let folder = std::path::absolute(&options.folder)?;
    anyhow::ensure!(folder.is_dir(), "{} is not a folder", folder.display());
    let mut command =
        workspace.cargo(["run", "--release", "-p", "recto-format", "--example", "verdicts", "--"]);
    command.arg(folder);
    if options.show {
        command.arg("--show");
    }
    if let Some(edits) = options.edits {
        command.arg(format!("--edits={edits}"));
    }
    let step = Step::new("verdicts", command, "read the output above");
    let finished = console.run(step.shown());
    if console.is_json() {
        console.results_json(&json!({ "output": finished.stdout }));
    }
    finished.required()?;
    Ok(())
}
