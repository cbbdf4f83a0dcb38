//! `cargo xtask bench format`: the benchmarks of recto-format (every format of JSON lines, with its limit), and
//! the same work in Python, with `json` and LangChain's converters, in the same run.

use anyhow::Context as _;
use serde_json::{Value, json};

use super::benchmark;
use crate::compare::venv::Venv;
use crate::requirement;
use crate::step::{Console, Step};
use crate::workspace::Workspace;

/// The measurements of both sides: the name in the output of the script, and the start of the name of the row.
const SHARED: [(&str, &str); 3] = [
    ("import", "import of JSON lines"),
    ("export", "export to the same"),
    ("render", "render 1,000 messages for openai-chat"),
];

pub(super) fn run(
    arguments: &[String],
    workspace: &Workspace,
    console: &Console,
) -> anyhow::Result<()> {
    let mut rows = measured("format", arguments, workspace, console)?;
    if arguments.is_empty() || arguments.iter().any(|word| word == "import") {
        rows.extend(measured("import", arguments, workspace, console)?);
    }
    let python = in_python(workspace, console)?;
    let lines: Vec<Value> = SHARED
        .iter()
        .filter_map(|(key, name)| {
            let row = rows.iter().find(|row| is_named(row, name))?;
            let (ours, theirs) = (row["value"].as_f64()?, python[key].as_f64()?);
            let ratio = if row["unit"] == "ms" { theirs / ours } else { ours / theirs };
            Some(json!({ "name": row["name"], "unit": row["unit"], "recto": ours,
                         "python": theirs, "ratio": ratio }))
        })
        .collect();
    if console.is_json() {
        console.results_json(&json!({ "rows": rows, "python": lines }));
    } else {
        console.line("");
        for row in &rows {
            let limit = row["limit"].as_f64().map(|limit| format!("limit {limit}"));
            let missed = if row["passes"] == false { "  MISSED" } else { "" };
            console.line(format!(
                "{:<48} {:>9.2} {:<5} {}{missed}",
                row["name"].as_str().unwrap_or_default(),
                row["value"].as_f64().unwrap_or_default(),
                row["unit"].as_str().unwrap_or_default(),
                limit.unwrap_or_default(),
            ));
        }
        for line in &lines {
            console.line(format!(
                "{:<48} {:>9.2} {:<5} in Python: Recto is {:.0} × as fast",
                line["name"].as_str().unwrap_or_default(),
                line["python"].as_f64().unwrap_or_default(),
                line["unit"].as_str().unwrap_or_default(),
                line["ratio"].as_f64().unwrap_or_default(),
            ));
        }
    }
    let missed = rows.iter().filter(|row| row["passes"] == false).count();
    anyhow::ensure!(missed == 0, "{missed} limits were missed; next: see what became slower");
    Ok(())
}

/// True if the name of a row starts with this.
fn is_named(row: &Value, name: &str) -> bool {
    row["name"].as_str().is_some_and(|it| it.starts_with(name))
}

/// The rows of a benchmark.
fn measured(
    name: &'static str,
    arguments: &[String],
    workspace: &Workspace,
    console: &Console,
) -> anyhow::Result<Vec<Value>> {
    let mut with_json = vec!["--json".to_owned(), "--report-only".to_owned()];
    with_json.extend_from_slice(arguments);
    let command = benchmark(name, &with_json, workspace);
    let step = Step::new(name, command, "read the output above");
    let output = console.run(step).required()?.stdout;
    let start = output.find('[').context("the benchmark printed no JSON")?;
    Ok(serde_json::from_str(&output[start..])?)
}

fn in_python(workspace: &Workspace, console: &Console) -> anyhow::Result<Value> {
    requirement::ensure(&[requirement::python()], workspace, console)?;
    let beside = workspace.root().join("xtask/src/compare");
    let requirements = beside.join("storage.requirements.txt");
    let venv = Venv::ready("storage", &requirements, workspace, console)?;
    let input = workspace.target().join("compare").join("format.jsonl");
    std::fs::create_dir_all(workspace.target().join("compare"))?;
    let path = input.to_string_lossy().into_owned();
    let write = benchmark("format", &["--write".into(), path], workspace);
    console.run(Step::new("input", write, "read the output above")).required()?;

    let mut command = venv.python();
    command.arg(beside.join("format.py")).arg(&input);
    let step = Step::new("python", command, "see what format.py needs");
    let output = console.run(step).required()?.stdout;
    let answer = output.lines().rev().find_map(|line| serde_json::from_str(line).ok());
    answer.context("the Python script printed no JSON")
}
