//! Benchmark of import: JSON lines of several formats, from memory, on one core.
//!
//! The input is a generated agent run (`testkit::AgentRun`), in each format as its own programs write it.
//! Steps are dropped; stores have their own benchmarks. The measure is CPU time, where the system reports
//! it, because other processes may use the machine.
//!
//! `cargo bench -p bench --bench import` prints a table; names of formats select some;
//! `-- --json` prints the numbers as JSON; `-- --report-only` does not fail if a limit is missed;
//! `-- --once` reads each file once, for programs that count instructions.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the table is the result")]

use std::time::Instant;

use recto_core::Message;
use recto_format::{
    Container, Error, ExportOptions, Format, ImportOptions, Sink, Step, export, import,
};
use serde_json::{Value, json};
use testkit::AgentRun;

/// Number of messages of the run: about 50 MB of JSON.
const MESSAGES: usize = 40_000;

/// Minimum rate at which JSON lines are read; below it the benchmark fails.
const LEAST_MEGABYTES: f64 = 200.0;

/// Formats that are written as JSON lines.
const FORMATS: [Format; 7] = [
    Format::Recto,
    Format::OpenAiChat,
    Format::OpenAiResponses,
    Format::Anthropic,
    Format::Gemini,
    Format::ClaudeCode,
    Format::Codex,
];

/// A sink that counts messages and drops them.
#[derive(Default)]
struct Dropped {
    messages: usize,
}

impl Sink for Dropped {
    fn step(&mut self, step: Step) -> Result<(), Error> {
        if let Step::Append(messages) = &step {
            self.messages += messages.len();
        }
        Ok(())
    }
}

/// Measured rate of one format.
struct Row {
    format: Format,
    bytes: usize,
    messages: usize,
    seconds: f64,
}

impl Row {
    fn megabytes(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.seconds
    }

    fn passes(&self) -> bool {
        self.megabytes() >= LEAST_MEGABYTES
    }

    fn to_json(&self) -> Value {
        json!({
            "name": format!("import of JSON lines of {}", self.format),
            "value": self.megabytes(), "unit": "MB/s", "limit": LEAST_MEGABYTES,
            "passes": self.passes(), "bytes": self.bytes, "messages": self.messages,
        })
    }

    fn to_text(&self) -> String {
        let rate = self.messages as f64 / self.seconds;
        let missed = if self.passes() { "" } else { "  MISSED" };
        format!(
            "{:<20} {:>8.1} {:>10.0} {rate:>10.0}{missed}",
            self.format.name(),
            self.bytes as f64 / 1e6,
            self.megabytes()
        )
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    // `cargo test --benches` runs this without `--bench`: it then runs once, without measuring.
    let is_test = !has("--bench");
    let (count, runs) = match (is_test, has("--once")) {
        (true, _) => (100, 1),
        (false, true) => (MESSAGES / 10, 1),
        (false, false) => (MESSAGES, 5),
    };
    let run: Vec<Message> = AgentRun::new(1)
        .take(count)
        .map(|json| Message::from_json(&json).expect("it is a message"))
        .collect();
    let chosen: Vec<Format> = FORMATS.into_iter().filter(|format| has(format.name())).collect();
    let formats = if chosen.is_empty() { FORMATS.to_vec() } else { chosen };
    let rows: Vec<Row> = formats.into_iter().map(|format| measured(&run, format, runs)).collect();
    if has("--json") {
        println!("{:#}", Value::from_iter(rows.iter().map(Row::to_json)));
    } else {
        println!("{:<20} {:>8} {:>10} {:>10}", "JSON lines of", "MB", "MB/s", "messages/s");
        rows.iter().for_each(|row| println!("{}", row.to_text()));
    }
    if !is_test && !has("--report-only") && !rows.iter().all(Row::passes) {
        eprintln!("slower than {LEAST_MEGABYTES} MB/s; next: see what became slower");
        std::process::exit(1);
    }
}

/// The fastest of several runs.
fn measured(run: &[Message], format: Format, runs: usize) -> Row {
    let mut file = Vec::new();
    let options = ExportOptions { container: Container::Lines, ..Default::default() };
    export(run, format, &options, &mut file).expect("it can be written");
    let mut row = Row { format, bytes: file.len(), messages: 0, seconds: f64::INFINITY };
    for _ in 0..runs {
        let clock = Clock::start();
        row.messages = read(&file, format);
        row.seconds = row.seconds.min(clock.seconds());
    }
    row
}

#[inline(never)]
fn read(file: &Vec<u8>, format: Format) -> usize {
    let mut sink = Dropped::default();
    import(file, Some(format), &ImportOptions::default(), &mut sink).expect("it can be read");
    sink.messages
}

/// CPU time, or wall time where the system does not report it.
enum Clock {
    Processor(u64),
    Wall(Instant),
}

impl Clock {
    fn start() -> Clock {
        on_processor().map_or_else(|| Clock::Wall(Instant::now()), Clock::Processor)
    }

    fn seconds(&self) -> f64 {
        match self {
            Clock::Processor(start) => (on_processor().unwrap_or(*start) - start) as f64 / 1e9,
            Clock::Wall(start) => start.elapsed().as_secs_f64(),
        }
    }
}

/// CPU time of this thread in nanoseconds. Available on Linux.
fn on_processor() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok()
}
