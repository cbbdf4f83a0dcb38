//! `cargo xtask compare frameworks`: agents of the supported frameworks against a provider that refuses bad
//! requests, with the framework's own means and with Recto.
//!
//! `python/bench/frameworks.py` and `node/bench/frameworks.mjs` run the agents and print a row for each
//! variant. The provider is the example `scripted_provider` of the crate `testserver`.

use anyhow::Context as _;
use serde_json::Value;

use crate::requirement;
use crate::step::{Console, Step};
use crate::workspace::Workspace;

const HEAD: [&str; 10] = [
    "framework",
    "means",
    "answers",
    "model calls",
    "refused or failed",
    "tokens sent",
    "prefix kept",
    "history left",
    "bytes stored",
    "processor time",
];

pub(super) fn run(workspace: &Workspace, console: &Console) -> anyhow::Result<()> {
    requirement::ensure(&[requirement::python(), requirement::node()], workspace, console)?;
    let build = workspace.cargo(["build", "-p", "testserver", "--example", "scripted_provider"]);
    console.run(Step::new("build provider", build, "read the output above")).required()?;
    let provider = workspace.target().join("debug/examples/scripted_provider");

    let mut rows: Vec<Value> = Vec::new();
    for (name, program, script) in [
        ("agents in Python", "python3", "python/bench/frameworks.py"),
        ("agents in Node", "node", "node/bench/frameworks.mjs"),
    ] {
        let mut command = workspace.command(program);
        command.arg(script).arg(workspace.target()).arg(&provider);
        let finished = console.run(Step::new(name, command, "read the output above"));
        let finished = finished.required()?;
        let line = finished.stdout.lines().last().unwrap_or_default();
        let found: Vec<Value> = serde_json::from_str(line)
            .with_context(|| format!("the last line of {script} is not a list of rows"))?;
        rows.extend(found);
    }
    match console.is_json() {
        true => console.results_json(&Value::Array(rows)),
        false => console.line(table(&rows)),
    }
    Ok(())
}

/// The rows as a table in Markdown.
fn table(rows: &[Value]) -> String {
    let mut lines = vec![line(HEAD.map(str::to_owned)), line(HEAD.map(|_| "---".to_owned()))];
    lines.extend(rows.iter().map(|row| line(cells(row))));
    lines.join("\n")
}

fn line(cells: [String; HEAD.len()]) -> String {
    format!("| {} |", cells.join(" | "))
}

fn cells(row: &Value) -> [String; HEAD.len()] {
    let text = |field: &str| row[field].as_str().unwrap_or_default().to_owned();
    let number = |field: &str| row[field].as_f64().unwrap_or_default();
    let calls = number("accepted") + number("summaries");
    let refused = row["refused"].as_object().into_iter().flatten();
    let refused: Vec<String> =
        refused.map(|(rule, count)| format!("{count} × {}", rule.replace('_', " "))).collect();
    [
        text("framework"),
        text("variant"),
        format!("{} of {}", number("answered"), number("questions")),
        format!("{calls}"),
        if refused.is_empty() { "0".to_owned() } else { refused.join(", ") },
        format!("{}", number("tokens")),
        format!("{:.0} %", 100.0 * number("keptTokens") / number("tokens").max(1.0)),
        format!("{} of {}", number("left"), number("made")),
        format!("{:.0} KB", number("bytes") / 1000.0),
        format!("{:.1} ms per call", 1000.0 * number("seconds") / calls.max(1.0)),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_names_the_rules_of_refused_requests() {
        let row = json!({
            "framework": "F", "variant": "V", "answered": 2, "questions": 6, "accepted": 10,
            "summaries": 0, "refused": {"unanswered_call": 3}, "tokens": 200, "keptTokens": 50,
            "left": 4, "made": 8, "bytes": 4096, "seconds": 0.02,
        });
        assert_eq!(
            line(cells(&row)),
            "| F | V | 2 of 6 | 10 | 3 × unanswered call | 200 | 25 % | 4 of 8 | 4 KB | 2.0 ms per call |"
        );
    }
}
