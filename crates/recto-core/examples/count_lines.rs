//! Counts the tokens of a file with one JSON string per line, and prints the time.
//! `xtask/src/compare/tokens.py` does the same with Python's tiktoken.
//!
//! ```text
//! cargo run --release -p recto-core --example count_lines -- texts.jsonl [runs]
//! ```
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use std::error::Error;
use std::time::Instant;

use recto_core::Counter;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: count_lines FILE [RUNS]")?;
    let runs: u32 = arguments.next().as_deref().unwrap_or("7").parse()?;
    let lines = std::fs::read_to_string(path)?;
    let texts = lines.lines().map(serde_json::from_str).collect::<Result<Vec<String>, _>>()?;

    let counter = <dyn Counter>::named("o200k_base").ok_or("this build has no feature `bpe`")?;
    let start = Instant::now();
    counter.count("load the vocabulary");
    let load = start.elapsed().as_secs_f64();

    let mut tokens = 0;
    let mut count_all = || {
        let start = Instant::now();
        tokens = texts.iter().map(|text| counter.count(text)).sum();
        start.elapsed().as_secs_f64()
    };
    let first = count_all(); // every text for the first time; also the warm-up
    let seconds = (0..runs).map(|_| count_all()).fold(first, f64::min);

    let bytes: usize = texts.iter().map(String::len).sum();
    let result = serde_json::json!({
        "seconds": seconds, "tokens": tokens, "bytes": bytes, "firstSeconds": first, "loadSeconds": load,
    });
    println!("{result}");
    Ok(())
}
