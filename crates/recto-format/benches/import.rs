//! How fast files are read: JSON lines of several formats, from memory, on one core.
//!
//! The bytes are those of a made-up agent's run (`testkit::AgentRun`), in each format as its own
//! programs write it. Steps are made and dropped; what a store does with them is measured elsewhere.
//! What counts is the time on the processor, where the system says it: others may use the machine.

#![allow(clippy::print_stdout, reason = "it is a program that prints a table")]

use std::time::Instant;

use recto_core::Message;
use recto_format::{
    Container, Error, ExportOptions, Format, ImportOptions, Sink, Step, export, import,
};
use testkit::AgentRun;

/// How many messages the run has: about 50 MB of JSON.
const MESSAGES: usize = 40_000;

/// Counts what comes and keeps nothing.
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

/// JSON lines are read at this rate, or the benchmark fails.
const LEAST_MEGABYTES: f64 = 200.0;

fn main() {
    // `cargo test --benches` runs this without `--bench`: then it only has to work.
    let is_test = !std::env::args().any(|argument| argument == "--bench");
    let (count, runs) = if is_test { (100, 1) } else { (MESSAGES, 5) };
    let mut is_fast = true;
    let run: Vec<Message> = AgentRun::new(1)
        .take(count)
        .map(|json| Message::from_json(&json).expect("it is a message"))
        .collect();
    println!("{:<20} {:>8} {:>10} {:>10}", "JSON lines of", "MB", "MB/s", "messages/s");
    let formats = [
        Format::Recto,
        Format::OpenAiChat,
        Format::OpenAiResponses,
        Format::Anthropic,
        Format::Gemini,
        Format::ClaudeCode,
        Format::Codex,
    ];
    for format in formats {
        let mut file = Vec::new();
        let options = ExportOptions { container: Container::Lines };
        export(&run, format, &options, &mut file).expect("it can be written");
        let (seconds, messages) = best(&file, format, runs);
        let megabytes = file.len() as f64 / 1e6;
        println!(
            "{:<20} {megabytes:>8.1} {:>10.0} {:>10.0}",
            format.name(),
            megabytes / seconds,
            messages as f64 / seconds
        );
        is_fast &= megabytes / seconds >= LEAST_MEGABYTES;
    }
    if !is_test && !is_fast {
        println!("slower than {LEAST_MEGABYTES} MB/s");
        std::process::exit(1);
    }
}

fn best(file: &Vec<u8>, format: Format, runs: usize) -> (f64, usize) {
    let mut best = f64::INFINITY;
    let mut messages = 0;
    for _ in 0..runs {
        let mut sink = Dropped::default();
        let clock = Clock::start();
        import(file, Some(format), &ImportOptions::default(), &mut sink).expect("it can be read");
        best = best.min(clock.seconds());
        messages = sink.messages;
    }
    (best, messages)
}

/// Time on the processor; where the system does not say it, time that passes.
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

/// How long this thread was on a processor, in nanoseconds. Linux says it.
fn on_processor() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok()
}
