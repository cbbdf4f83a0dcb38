//! How fast files are read: JSON lines of several formats, from memory, on one core.
//!
//! The bytes are those of a made-up agent's run (`testkit::AgentRun`), in each format as its own
//! programs write it. Steps are made and dropped; what a store does with them is measured elsewhere.
//! The best of some runs counts: others may use the machine.

#![allow(clippy::print_stdout, reason = "it is a program that prints a table")]

use std::time::Instant;

use recto_core::Message;
use recto_format::{
    Container, Error, ExportOptions, Format, ImportOptions, Sink, Step, export, import,
};
use testkit::AgentRun;

/// How many messages the run has: about 50 MB of JSON.
const MESSAGES: usize = 40_000;
const RUNS: usize = 7;

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

fn main() {
    let run: Vec<Message> = AgentRun::new(1)
        .take(MESSAGES)
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
        let (seconds, messages) = best(&file, format);
        let megabytes = file.len() as f64 / 1e6;
        println!(
            "{:<20} {megabytes:>8.1} {:>10.0} {:>10.0}",
            format.name(),
            megabytes / seconds,
            messages as f64 / seconds
        );
    }
}

fn best(file: &Vec<u8>, format: Format) -> (f64, usize) {
    let mut best = f64::INFINITY;
    let mut messages = 0;
    for _ in 0..RUNS {
        let mut sink = Dropped::default();
        let clock = Instant::now();
        import(file, Some(format), &ImportOptions::default(), &mut sink).expect("it can be read");
        best = best.min(clock.elapsed().as_secs_f64());
        messages = sink.messages;
    }
    (best, messages)
}
