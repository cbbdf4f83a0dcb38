//! Benchmark of import, export and rendering, compared with limits and with parsing the same JSON by
//! serde_json.
//!
//! `cargo bench -p bench --bench format` prints a table. The arguments `import`, `export` and
//! `render` select parts; `-- --json` prints the numbers as JSON; `-- --report-only` does not fail if a
//! limit is missed; `-- --write FILE` writes the measured chat completions to a file, for comparison with
//! other programs.
#![allow(clippy::print_stdout, clippy::print_stderr)] // a program with output

use std::time::{Duration, Instant};

use recto_core::Message;
use recto_format::{
    Container, Error, ExportOptions, Format, ImportOptions, RenderOptions, Sink, Step, Target,
    export, import, lint, render,
};
use serde_json::{Value, json};
use testkit::AgentRun;

/// Maximum time to render a view of 1,000 messages.
const MOST_MILLISECONDS: f64 = 2.0;
/// Minimum rate of rendering messages unchanged, for the provider that they were imported from.
const LEAST_UNTOUCHED_MEGABYTES: f64 = 1_000.0;
/// Minimum rate of importing JSON lines.
const LEAST_MEGABYTES: f64 = 200.0;

struct Row {
    name: String,
    value: f64,
    unit: &'static str,
    limit: Option<f64>,
    passes: bool,
}

/// A sink that drops all steps.
#[derive(Default)]
struct CountingReader(usize);

impl Sink for CountingReader {
    fn step(&mut self, step: Step) -> Result<(), Error> {
        if let Step::Append(messages) = step {
            self.0 += messages.len();
        }
        Ok(())
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    // `cargo test --benches` runs this without `--bench`: it then runs once, without measuring.
    let is_test = !has("--bench");
    let time = Duration::from_millis(if is_test { 1 } else { 1_500 });
    let messages: Vec<Message> = AgentRun::new(1)
        .take(1_000)
        .map(|json| Message::from_json(&json).expect("the run is well-formed"))
        .collect();
    // Short runs, so that the fastest one is undisturbed.
    let file = chat_lines(&messages, 1);
    if let Some(at) = arguments.iter().position(|argument| argument == "--write") {
        let path = arguments.get(at + 1).expect("--write names a file");
        std::fs::write(path, &file).expect("the file can be written");
        return;
    }

    let parts = ["import", "export", "render"];
    let chosen: Vec<&str> =
        parts.into_iter().filter(|part| arguments.iter().any(|word| word == part)).collect();
    let wants = |part: &str| chosen.is_empty() || chosen.contains(&part);
    let mut rows = Vec::new();
    if wants("import") {
        measure_import(&file, time, &mut rows);
    }
    if wants("export") {
        measure_export(&file, time, &mut rows);
    }
    if wants("render") {
        measure_render(&messages, time, &mut rows);
    }
    if has("--json") {
        println!("{:#}", Value::from_iter(rows.iter().map(Row::to_json)));
    } else {
        rows.iter().for_each(|row| println!("{}", row.to_text()));
    }
    if !is_test && !has("--report-only") && rows.iter().any(|row| !row.passes) {
        eprintln!("a limit was missed; next: see what became slower, on an idle machine");
        std::process::exit(1);
    }
}

fn megabytes(took: Duration, bytes: usize) -> f64 {
    bytes as f64 / took.as_secs_f64() / 1e6
}

fn measure_import(file: &str, time: Duration, rows: &mut Vec<Row>) {
    let took = fastest(time, || {
        let mut counted = CountingReader::default();
        let format = Some(Format::OpenAiChat);
        import(file, format, &ImportOptions::default(), &mut counted).expect("it is read");
        counted.0
    });
    let speed = megabytes(took, file.len());
    rows.push(Row::least("import of JSON lines, chat completions", speed, LEAST_MEGABYTES));
    let took = fastest(time, || {
        let lines = file.lines().map(serde_json::from_str::<Value>);
        lines.filter(Result::is_ok).count()
    });
    rows.push(Row::plain("… serde_json alone, into values", megabytes(took, file.len()), "MB/s"));
}

fn measure_export(file: &str, time: Duration, rows: &mut Vec<Row>) {
    let imported = imported(file);
    let took = fastest(time, || {
        let mut out = Vec::with_capacity(file.len());
        let options = ExportOptions { container: Container::Lines, ..Default::default() };
        export(&imported, Format::OpenAiChat, &options, &mut out).expect("it is written");
        out.len()
    });
    rows.push(Row::plain("export to the same", megabytes(took, file.len()), "MB/s"));
}

fn measure_render(messages: &[Message], time: Duration, rows: &mut Vec<Row>) {
    let options = RenderOptions::default();
    let milliseconds = |took: Duration| took.as_secs_f64() * 1e3;
    for target in Target::ALL {
        let took =
            fastest(time, || render(messages, target, &options).map(|it| it.body.len()).ok());
        let name = format!("render 1,000 messages for {target}");
        rows.push(Row::most(&name, milliseconds(took), MOST_MILLISECONDS));
    }
    // Texts of about 4 kB, as tools return them.
    let long = "A line of a file, with a \"word\" in it, and an end.\n".repeat(80);
    let line = |number: usize| {
        let role = if number.is_multiple_of(2) { "user" } else { "assistant" };
        let content = if role == "user" { format!("{long}{number}") } else { format!("{number}.") };
        json!({"role": role, "content": [{"type": "text", "text": content, "unknown": number}]})
            .to_string()
    };
    let lines: Vec<String> = (0..1_000).map(line).collect();
    for format in [Format::Anthropic, Format::OpenAiChat] {
        let imported = imported_as(&lines.join("\n"), Some(format));
        let target = Target::named(format.name()).expect("the format is a target");
        let mut len = 0;
        let took = fastest(time, || {
            len = render(&imported, target, &options).map_or(0, |it| it.body.len());
        });
        let name = format!("render untouched messages for {target}");
        rows.push(Row::least(&name, megabytes(took, len), LEAST_UNTOUCHED_MEGABYTES));
    }
    // The whole agent run, with its calls and results.
    for format in [
        Format::Anthropic,
        Format::OpenAiChat,
        Format::OpenAiResponses,
        Format::Gemini,
        Format::BedrockConverse,
    ] {
        let mut file = Vec::new();
        export(messages, format, &ExportOptions::default(), &mut file).expect("it is written");
        let file = String::from_utf8(file).expect("JSON is UTF-8");
        let imported = imported_as(&file, Some(format));
        let target = Target::named(format.name()).expect("the format is a target");
        let mut len = 0;
        let took = fastest(time, || {
            len = render(&imported, target, &options).map_or(0, |it| it.body.len());
        });
        let name = format!("render an agent run imported from {target}");
        rows.push(Row::plain(&name, megabytes(took, len), "MB/s"));
    }
    let took = fastest(time, || lint(messages, Target::Anthropic, &options).len());
    rows.push(Row::plain("lint them for anthropic", milliseconds(took), "ms"));
    let bodies: Vec<&str> = messages.iter().map(Message::json).collect();
    let took = fastest(time, || {
        let values = bodies.iter().map(|json| serde_json::from_str::<Value>(json));
        values.filter(Result::is_ok).count()
    });
    rows.push(Row::plain("… serde_json alone, into values", milliseconds(took), "ms"));
}

/// The run as chat completions, repeated `times` times.
fn chat_lines(messages: &[Message], times: usize) -> String {
    let mut file = Vec::new();
    let options = ExportOptions { container: Container::Lines, ..Default::default() };
    for _ in 0..times {
        export(messages, Format::OpenAiChat, &options, &mut file).expect("it is written");
    }
    String::from_utf8(file).expect("JSON is UTF-8")
}

fn imported(file: &str) -> Vec<Message> {
    imported_as(file, None)
}

fn imported_as(file: &str, format: Option<Format>) -> Vec<Message> {
    let mut collected = recto_format::Collected::default();
    import(file, format, &ImportOptions::default(), &mut collected).expect("it is read");
    let messages = collected.steps.into_iter().filter_map(|step| match step {
        Step::Append(messages) => Some(messages),
        _ => None,
    });
    messages.flatten().collect()
}

/// The fastest of the runs within the time limit.
fn fastest<T>(time: Duration, mut run: impl FnMut() -> T) -> Duration {
    let begin = Instant::now();
    let mut best = Duration::MAX;
    while best == Duration::MAX || begin.elapsed() < time {
        let start = Instant::now();
        std::hint::black_box(run());
        best = best.min(start.elapsed());
    }
    best
}

impl Row {
    fn plain(name: &str, value: f64, unit: &'static str) -> Row {
        Row { name: name.to_owned(), value, unit, limit: None, passes: true }
    }

    fn least(name: &str, value: f64, limit: f64) -> Row {
        Row { limit: Some(limit), passes: value >= limit, ..Row::plain(name, value, "MB/s") }
    }

    fn most(name: &str, value: f64, limit: f64) -> Row {
        Row { limit: Some(limit), passes: value <= limit, ..Row::plain(name, value, "ms") }
    }

    fn to_json(&self) -> Value {
        json!({
            "name": self.name, "value": self.value, "unit": self.unit,
            "limit": self.limit, "passes": self.passes,
        })
    }

    fn to_text(&self) -> String {
        let limit = match self.limit {
            Some(limit) => format!("limit {limit} {}", self.unit),
            None => String::new(),
        };
        let missed = if self.passes { "" } else { "  MISSED" };
        format!("{:<48} {:>9.2} {:<5} {limit}{missed}", self.name, self.value, self.unit)
    }
}
