//! Stores an agent run with one version per message, in a SQLite file or in a PostgreSQL server that it
//! starts, and prints the time and the size. `xtask/src/compare/storage.py` does the same with other
//! libraries.
//!
//! ```text
//! cargo run --release -p recto --example store_run -- write run.jsonl 1000
//! cargo run --release -p recto --example store_run -- run.jsonl [--search]
//! cargo run --release -p recto --features postgres --example store_run -- run.jsonl --postgres
//! ```
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use recto::blocking::Recto;
use recto::{Message, Options, Settings, Version};
use serde_json::json;
use testkit::AgentRun;

/// The number of samples for reading the newest and the middle version, each from a newly opened store.
const LOADS: usize = 9;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["write", path, count] => write(path, count.parse()?),
        [path] => in_a_file(path, false),
        [path, "--search"] => in_a_file(path, true),
        [path, "--postgres"] => in_postgres(path),
        _ => Err("usage: store_run write FILE MESSAGES, or store_run FILE [--search | --postgres]"
            .into()),
    }
}

fn write(path: &str, count: usize) -> Result<(), Box<dyn Error>> {
    let lines: String = AgentRun::new(1).take(count).map(|json| json + "\n").collect();
    Ok(std::fs::write(path, lines)?)
}

fn in_a_file(path: &str, search: bool) -> Result<(), Box<dyn Error>> {
    let beside = Path::new(path).parent().ok_or("the file is in no folder")?;
    let folder = tempfile::tempdir_in(beside)?;
    let file = folder.path().join("run.db");
    run(path, &format!("sqlite:{}", file.display()), search)
}

#[cfg(feature = "postgres")]
fn in_postgres(path: &str) -> Result<(), Box<dyn Error>> {
    let server = testserver::PostgresServer::shared();
    run(path, &server.database(), false)
}

#[cfg(not(feature = "postgres"))]
fn in_postgres(_path: &str) -> Result<(), Box<dyn Error>> {
    Err("build it with --features postgres".into())
}

fn run(path: &str, address: &str, search: bool) -> Result<(), Box<dyn Error>> {
    let lines = std::fs::read_to_string(path)?;
    let messages = lines.lines().map(Message::from_json).collect::<Result<Vec<_>, _>>()?;
    let open = || Recto::open_with(address, Options { search, ..Options::default() });
    let size = || -> Result<u64, Box<dyn Error>> {
        let recto = open()?;
        let store = recto.inner().store();
        Ok(recto.wait(store.size())?.ok_or("it has a size")?)
    };
    let empty = if address.starts_with("sqlite:") { 0 } else { size()? };

    let recto = open()?;
    let conversation = recto.create("run", Settings::default())?;
    let mut appends = Vec::new();
    let start = Instant::now();
    for message in &messages {
        let clock = Instant::now();
        conversation.append([message.clone()])?;
        appends.push(clock.elapsed().as_secs_f64());
    }
    let seconds = start.elapsed().as_secs_f64();
    drop((conversation, recto)); // closes the file, so that no log is left beside it

    let load = |version: usize| -> Result<f64, Box<dyn Error>> {
        let mut times = Vec::new();
        for _ in 0..LOADS {
            let clock = Instant::now();
            let recto = open()?;
            let read = recto.conversation("run")?.messages_at(Version(version as u32))?;
            times.push(clock.elapsed().as_secs_f64());
            let is_same = read.iter().map(|entry| &entry.message).eq(&messages[..version]);
            assert!(is_same, "version {version} is not what was written");
        }
        Ok(middle(times))
    };
    let (newest, half) = (load(messages.len())?, load(messages.len() / 2)?);
    let result = json!({
        "messages": messages.len(),
        "done": messages.len(),
        "bytes": size()? - empty,
        "seconds": seconds,
        "append": middle(appends),
        "newest": newest,
        "middle": half,
    });
    println!("{result}");
    Ok(())
}

fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}
