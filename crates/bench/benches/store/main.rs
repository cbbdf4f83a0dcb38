//! Costs of stored conversations in a SQLite file: size, appends, opening, reads, forks. Each figure is
//! compared with its limit, or with bare SQLite measured in the same run. With the feature `postgres` it
//! also appends to a PostgreSQL server that it starts.
//!
//! `cargo bench -p bench --bench store` prints a table. `-- --messages 1000` makes the agent run
//! shorter, `-- --json` prints the numbers as JSON, and a name selects a part: `size`, `appends`,
//! `postgres`, `opening`, `reads`, `million`, `forks`, `depth`, `imports`.
//!
//! Each part has its own file. All data is written to a temporary folder on the disk of the target
//! folder, because the cost of a commit depends on the disk.
#![allow(clippy::print_stdout, clippy::print_stderr)] // it prints its figures

mod appends;
mod bare;
mod bench;
mod depth;
mod forks;
mod imports;
mod long;
mod million;
mod opening;
mod postgres;
mod reads;
mod size;
mod table;

use std::time::Instant;

use bench::Bench;
use table::Table;

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|argument| argument == opening::CHILD) {
        return opening::read_as_child(&arguments[1..]);
    }
    if arguments.first().is_some_and(|argument| argument == million::CHILD) {
        return million::work_as_child(&arguments[1..]);
    }
    if arguments.first().is_some_and(|argument| argument == imports::CHILD) {
        return imports::import_as_child(&arguments[1..]);
    }
    if arguments.first().is_some_and(|argument| argument == depth::CHILD) {
        return depth::measure_as_child(&arguments[1..]);
    }
    let messages = take_messages(&mut arguments);
    let (options, words): (Vec<String>, Vec<String>) =
        arguments.into_iter().partition(|argument| argument.starts_with("--"));
    let has = |name: &str| options.iter().any(|option| option == name);
    let known = ["--bench", "--json"];
    if let Some(unknown) = options.iter().find(|option| !known.contains(&option.as_str())) {
        stop(&format!(
            "unknown option {unknown}; use --messages N or --json, or the name of a part"
        ));
    }
    // `cargo test --benches` runs this without `--bench`, with small sizes.
    let is_test = !has("--bench");
    let bench = Bench::new(messages.unwrap_or(if is_test { 200 } else { 10_000 }), is_test);

    let begin = Instant::now();
    let mut table = Table::default();
    let wants = |part: &str| words.is_empty() || words.iter().any(|word| word == part);
    for (name, measure) in PARTS {
        if wants(name) {
            measure(&bench, &mut table);
        }
    }
    if has("--json") {
        println!("{:#}", table.to_json());
    } else {
        println!("{}", table.to_text());
        bench::note(&format!("in {:.0} s", begin.elapsed().as_secs_f64()));
    }
}

type Measure = fn(&Bench, &mut Table);

const PARTS: &[(&str, Measure)] = &[
    ("size", size::measure),
    ("appends", appends::measure),
    ("postgres", postgres::measure),
    ("opening", opening::measure),
    ("reads", reads::measure),
    ("million", million::measure),
    ("forks", forks::measure),
    ("depth", depth::measure),
    ("imports", imports::measure),
];

fn take_messages(arguments: &mut Vec<String>) -> Option<usize> {
    let at = arguments.iter().position(|argument| argument == "--messages")?;
    let number = arguments.get(at + 1).and_then(|number| number.parse().ok());
    let Some(number) = number.filter(|number| (100..=1_000_000).contains(number)) else {
        stop("--messages needs a number from 100 to 1000000");
    };
    arguments.drain(at..at + 2);
    Some(number)
}

fn stop(reason: &str) -> ! {
    eprintln!("{reason}");
    std::process::exit(2);
}
