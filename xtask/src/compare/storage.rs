//! `cargo xtask compare storage`: stores an agent run durably, one step per message, with Recto and with
//! other libraries.
//!
//! The example `store_run` of the crate `recto` generates the run and stores it with Recto; `storage.py`
//! stores the same file with the other libraries. Each prints one line of JSON. A slow library is stopped,
//! and its values for the whole run are estimated and marked as estimates. Fast libraries run several times,
//! in turn, and the fastest run is reported, because other processes may use the disk.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::kept_run::{self, Growth, KeptRun};
use super::venv::Venv;
use crate::requirement;
use crate::step::{Console, Step, StepsFailed};
use crate::workspace::Workspace;

/// A library that stores the run.
struct Library {
    name: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Recto { options: &'static [&'static str], needs_postgres: bool },
    Python { peer: &'static str, growth: Growth, needs_postgres: bool },
}

const fn recto(options: &'static [&'static str], needs_postgres: bool) -> Kind {
    Kind::Recto { options, needs_postgres }
}

const fn python(peer: &'static str, growth: Growth, needs_postgres: bool) -> Kind {
    Kind::Python { peer, growth, needs_postgres }
}

const LIBRARIES: &[Library] = &[
    Library { name: "Recto, SQLite", kind: recto(&[], false) },
    Library { name: "Recto, SQLite, with search", kind: recto(&["--search"], false) },
    Library { name: "Recto, PostgreSQL", kind: recto(&["--postgres"], true) },
    Library {
        name: "LangGraph, SQLite, full state",
        kind: python("langgraph-sqlite", Growth::Quadratic, false),
    },
    Library {
        name: "LangGraph, SQLite, DeltaChannel",
        kind: python("langgraph-sqlite-delta", Growth::Quadratic, false),
    },
    Library {
        name: "LangGraph, PostgreSQL, full state",
        kind: python("langgraph-postgres", Growth::Quadratic, true),
    },
    Library {
        name: "LangGraph, PostgreSQL, DeltaChannel",
        kind: python("langgraph-postgres-delta", Growth::Quadratic, true),
    },
    Library {
        name: "OpenAI Agents, SQLiteSession",
        kind: python("agents-session", Growth::Linear, false),
    },
];

/// Seconds after which another library that is still writing the run is stopped.
const MAX_SECONDS: u32 = 75;
/// Maximum time of a run that is repeated, in seconds. A slower library runs only once.
const MAX_REPEATED_SECONDS: f64 = 15.0;

pub(super) fn run(
    messages: u32,
    runs: u32,
    workspace: &Workspace,
    console: &Console,
) -> anyhow::Result<()> {
    requirement::ensure(&[requirement::python()], workspace, console)?;
    let folder = workspace.root().join("xtask/src/compare");
    let requirements = folder.join("storage.requirements.txt");
    let venv = Venv::ready("storage", &requirements, workspace, console)?;
    build(workspace, console)?;
    let comparison = Comparison {
        venv,
        script: folder.join("storage.py"),
        has_postgres: requirement::postgresql().is_met(workspace),
        workspace,
        console,
    };
    let file = comparison.write_run(messages)?;
    let raw = std::fs::metadata(&file)?.len();

    let mut best: Vec<Option<KeptRun>> = vec![None; LIBRARIES.len()];
    for round in 0..runs {
        for (library, best) in LIBRARIES.iter().zip(&mut best) {
            let runs_now = match &best {
                Some(run) => run.took() < MAX_REPEATED_SECONDS,
                None => round == 0,
            };
            if runs_now && let Some(run) = comparison.store(library, &file)? {
                *best = Some(run.or_faster(best.take()));
            }
        }
    }
    let names = LIBRARIES.iter().map(|library| library.name);
    let runs: Vec<(&str, KeptRun)> =
        names.zip(best).filter_map(|(name, run)| Some((name, run?))).collect();
    if console.is_json() {
        let runs = runs.iter().map(|(name, run)| run.to_json(name, raw));
        console.results_json(&json!({
            "comparison": "storage",
            "messages": messages,
            "jsonBytes": raw,
            "runs": runs.collect::<Vec<Value>>(),
        }));
    } else {
        console.line("");
        console.line(format_args!("{messages} messages, {:.1} MB of JSON", raw as f64 / 1e6));
        console.line(kept_run::table(&runs, raw));
    }
    Ok(())
}

/// Builds the example first, so that no run waits for the compiler.
fn build(workspace: &Workspace, console: &Console) -> Result<(), StepsFailed> {
    let mut command = workspace.cargo(["build", "--release", "-p", "recto"]);
    command.args(["--features", "postgres", "--example", "store_run"]);
    let advice = "make the example store_run compile again";
    console.run(Step::new("build", command, advice)).required()?;
    Ok(())
}

struct Comparison<'a> {
    venv: Venv,
    script: PathBuf,
    has_postgres: bool,
    workspace: &'a Workspace,
    console: &'a Console,
}

impl Comparison<'_> {
    fn example(&self) -> Command {
        Command::new(self.workspace.target().join("release/examples/store_run"))
    }

    fn write_run(&self, messages: u32) -> anyhow::Result<PathBuf> {
        let directory = self.workspace.target().join("compare");
        std::fs::create_dir_all(&directory)?;
        let path = directory.join(format!("storage-{messages}.jsonl"));
        let mut command = self.example();
        command.arg("write").arg(&path).arg(messages.to_string());
        let step = Step::new("messages", command, "see what the example store_run needs");
        self.console.run(step).required()?;
        Ok(path)
    }

    /// Stores the run with a library. `None` if a requirement of the library is not installed.
    fn store(&self, library: &Library, file: &Path) -> anyhow::Result<Option<KeptRun>> {
        let (command, growth) = match library.kind {
            Kind::Recto { needs_postgres: true, .. }
            | Kind::Python { needs_postgres: true, .. }
                if !self.has_postgres =>
            {
                let name = library.name;
                self.console
                    .line(format_args!("{name}: skipped, because PostgreSQL is not installed"));
                return Ok(None);
            }
            Kind::Recto { options, .. } => {
                let mut command = self.example();
                command.arg(file).args(options);
                (command, Growth::Linear)
            }
            Kind::Python { peer, growth, .. } => {
                let mut command = self.venv.python();
                command.arg(&self.script).arg(peer).arg(file).arg(MAX_SECONDS.to_string());
                (command, growth)
            }
        };
        let advice = "run the command by hand to see what it needs";
        let finished = self.console.run(Step::new("run", command, advice)).required()?;
        let run = KeptRun::from_output(&finished.stdout, growth);
        run.map(Some).with_context(|| library.name.to_owned())
    }
}
