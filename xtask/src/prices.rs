//! `cargo xtask prices`: generates the price table of `recto-format` from the Python package `genai-prices`.

use anyhow::Context as _;
use clap::Args;

use crate::compare::venv::Venv;
use crate::requirement;
use crate::step::{Console, Step};
use crate::workspace::Workspace;

#[derive(Args)]
pub(crate) struct Options {
    /// Day whose prices are used, such as 2026-11-18. Default: today.
    #[arg(long, value_name = "DATE")]
    date: Option<String>,

    /// Compare the table with the package, and change nothing.
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(
    options: &Options,
    workspace: &Workspace,
    console: &Console,
) -> anyhow::Result<()> {
    requirement::ensure(&[requirement::python()], workspace, console)?;
    let folder = workspace.root().join("xtask/src/prices");
    let venv = Venv::ready("prices", &folder.join("requirements.txt"), workspace, console)?;
    let path = workspace.root().join("crates/recto-format/src/prices.json");
    let present = std::fs::read_to_string(&path).unwrap_or_default();
    let present_date = present.split("\"date\": \"").nth(1).and_then(|rest| rest.get(..10));
    let today = || {
        let mut command = venv.python();
        command.args(["-c", "import datetime; print(datetime.date.today().isoformat())"]);
        let output = command.output().context("cannot run Python")?;
        Ok::<String, anyhow::Error>(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let date = match (&options.date, options.check, present_date) {
        (Some(date), ..) => date.clone(),
        (None, true, Some(date)) => date.to_owned(),
        (None, ..) => today()?,
    };
    let mut command = venv.python();
    command.arg(folder.join("table.py")).arg(&date);
    let advice = "compare xtask/src/prices/table.py with the types of the package";
    let finished = console.run(Step::new("prices", command, advice));
    let table = finished.required()?.stdout.clone();
    if options.check {
        anyhow::ensure!(
            table == present,
            "{} is out of date; run cargo xtask prices",
            path.display()
        );
        return Ok(());
    }
    std::fs::write(&path, table).with_context(|| format!("cannot write {}", path.display()))
}
