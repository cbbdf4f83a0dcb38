//! A Python virtual environment under `target/`. It is created again when its requirements change.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::step::{Console, Step};
use crate::workspace::Workspace;

/// A virtual environment with all requirements installed.
pub(crate) struct Venv {
    directory: PathBuf,
}

/// File with the installed requirements. It is written last, so an incomplete environment has none.
const STAMP: &str = "installed.txt";

impl Venv {
    /// Creates the environment with this name, or reuses the one of an earlier run.
    pub(crate) fn ready(
        name: &str,
        requirements: &Path,
        workspace: &Workspace,
        console: &Console,
    ) -> anyhow::Result<Self> {
        let wanted = std::fs::read_to_string(requirements)
            .with_context(|| format!("cannot read {}", requirements.display()))?;
        let venv = Self { directory: workspace.target().join("venv").join(name) };
        let stamp = venv.directory.join(STAMP);
        let installed = std::fs::read_to_string(&stamp);
        if installed.is_ok_and(|installed| installed == wanted) && venv.runs() {
            return Ok(venv);
        }

        let mut create = workspace.command("python3");
        create.args(["-m", "venv", "--clear"]).arg(&venv.directory);
        let advice = "install Python's venv module, then run this again";
        console.run(Step::new("venv", create, advice)).required()?;

        let mut install = venv.python();
        // Without dependencies, because the file lists all packages with their versions.
        install.args(["-m", "pip", "install", "--no-deps", "--disable-pip-version-check"]);
        install.arg("--requirement").arg(requirements);
        let advice = "check whether the package index can be reached";
        console.run(Step::new("pip", install, advice)).required()?;
        std::fs::write(&stamp, wanted)?;
        Ok(venv)
    }

    /// The interpreter with the installed packages.
    pub(crate) fn python(&self) -> Command {
        let python = if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" };
        Command::new(self.directory.join(python))
    }

    /// Whether the interpreter starts. It may have been removed since the environment was created.
    fn runs(&self) -> bool {
        self.python().arg("--version").output().is_ok_and(|output| output.status.success())
    }
}
