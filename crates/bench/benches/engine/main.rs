//! Times and memory of the engine, compared with a plain list.
//!
//! `cargo bench -p bench --bench engine` prints a table. `-- --quick` stops at 10⁵ messages, `-- --json`
//! prints the numbers as JSON, and other arguments select rows by a word in their name. The rows and their
//! limits are in `rows.rs`, the measurements in `recto.rs`, `plain_times.rs` and `memory.rs`, the
//! conversation in `transcript.rs`.
//!
//! The allocator counts bytes during all measurements (one atomic addition per allocation), for Recto and
//! for the plain list alike.
#![allow(clippy::print_stdout, clippy::print_stderr)] // the table is the result

mod memory;
mod plain;
mod plain_times;
mod recto;
mod rows;
mod sheet;
mod stopwatch;
mod subject;
mod table;
mod transcript;

use std::time::{Duration, Instant};

use sheet::{Sheet, note};
use stopwatch::Sampling;
use subject::Subject;
use table::{Table, Way};
use transcript::Transcript;

fn main() {
    let (options, words): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let has = |name: &str| options.iter().any(|option| option == name);
    let known = ["--bench", "--quick", "--json"];
    if let Some(unknown) = options.iter().find(|option| !known.contains(&option.as_str())) {
        eprintln!("unknown option {unknown}; use --quick or --json, or a word of the rows to run");
        std::process::exit(2);
    }
    // `cargo test --benches` runs this without `--bench`: then it only has to work.
    let is_test = !has("--bench");
    let is_quick = has("--quick") || is_test;
    let largest = if is_test {
        3
    } else if is_quick {
        5
    } else {
        6
    };
    let sampling = if is_quick {
        Sampling { samples: 40, budget: Duration::from_millis(200) }
    } else {
        Sampling { samples: 200, budget: Duration::from_millis(800) }
    };

    let begin = Instant::now();
    let sizes: Vec<usize> = (3..=largest).map(|exponent| 10_usize.pow(exponent)).collect();
    let mut table = Table::new(rows::SECTIONS, sizes.clone());
    for size in sizes {
        measure(&mut table, size, sampling, &words);
    }
    note("");
    if has("--json") {
        println!("{:#}", table.to_json());
    } else {
        println!("{}", table.to_text());
        note(&format!("in {:.0} s\n", begin.elapsed().as_secs_f64()));
    }
}

fn measure(table: &mut Table, size: usize, sampling: Sampling, words: &[String]) {
    note(&format!("{size} messages: building"));
    let subject = Subject::new(&Transcript::of(size));
    let mut sheet = Sheet { table, way: Way::Recto, size, sampling, words };
    recto::measure(&subject, &mut sheet);
    memory::measure(&subject, &mut sheet);
    sheet.way = Way::Plain;
    plain_times::measure(&subject, &mut sheet);
    memory::measure_plain(&subject, &mut sheet);
}
