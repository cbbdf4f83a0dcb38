//! Times of the `recto` command: cold starts on a long conversation, compared with `git` and `sqlite3` on
//! comparable data, and requests per second through `exec`.
//!
//! Most rows are the time of a process from its start to its end: the median, the fastest run, and the limit of the
//! median, which is only printed. The fastest run is close to the time on an idle machine. The last two rows are the
//! size of the command and the rate of requests through `exec`.

#![allow(clippy::print_stdout, reason = "it prints its results")]

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::AgentRun;

/// Runs of each command.
const RUNS: usize = 21;
/// Requests through `exec`.
const REQUESTS: u32 = 200_000;

struct Bench {
    binary: PathBuf,
    folder: tempfile::TempDir,
    messages: usize,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let bench = Bench {
        binary: value("--binary")
            .expect("--binary PATH is required; `cargo xtask bench cli` passes it")
            .into(),
        folder: tempfile::tempdir().expect("a folder can be made"),
        messages: value("--messages").map_or(100_000, |count| count.parse().expect("a number")),
    };
    let messages: Vec<String> = AgentRun::new(1).take(bench.messages).collect();
    bench.fill_store(&messages);
    let has_git = bench.fill_git(&messages);
    let has_sqlite = bench.fill_sqlite(&messages);

    println!("a conversation of {} messages, all of them in view", bench.messages);
    println!("{:<44} {:>10} {:>10} {:>9}", "", "median ms", "fastest ms", "limit ms");
    for (name, arguments, limit) in [
        ("recto --help", &["--help"][..], 10),
        ("recto info", &["info"], 50),
        ("recto show --last 5", &["show", "--last", "5"], 50),
        ("recto show --last 5 --json", &["show", "--last", "5", "--json"], 50),
        ("recto log -n 1", &["log", "-n", "1"], 50),
        ("recto diff now-1", &["diff", "now-1"], 50),
        ("recto append --text hello", &["append", "--text", "hello"], 50),
        (
            "recto truncate --remove-last 1 --dry-run",
            &["truncate", "--remove-last", "1", "--dry-run"],
            50,
        ),
        ("recto undo", &["undo"], 50),
    ] {
        bench.time(name, || bench.recto(arguments), Some(limit));
    }
    if has_git {
        bench.time("git log -1", || bench.git(&["log", "-1"]), None);
        bench.time("git show --stat", || bench.git(&["show", "--stat"]), None);
    }
    if has_sqlite {
        let query = "SELECT * FROM messages ORDER BY id DESC LIMIT 5";
        bench.time("sqlite3, the last 5 rows", || bench.sqlite(query), None);
        let insert = "INSERT INTO messages (body) VALUES ('hello')";
        bench.time("sqlite3, one row more", || bench.sqlite(insert), None);
    }
    let size = std::fs::metadata(&bench.binary).map_or(0, |metadata| metadata.len());
    println!("{:<44} {:>10.1} {:>10} {:>9}", "size of the command, MB", size as f64 / 1e6, "", 25);
    let rate = bench.exec();
    println!(
        "{:<44} {:>10.0} {:>10} {:>9}",
        "exec in memory, requests per second", rate, "", "> 50000"
    );
}

impl Bench {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn recto(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(arguments);
        command.env("XDG_DATA_HOME", self.folder.path());
        command.env("RECTO_STORE", format!("sqlite:{}", self.path("recto.db").display()));
        command
    }

    fn git(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.args(["-C"]).arg(self.path("repository")).arg("--no-pager").args(arguments);
        command
    }

    fn sqlite(&self, query: &str) -> Command {
        let mut command = Command::new("sqlite3");
        command.arg(self.path("plain.db")).arg(format!("PRAGMA synchronous=FULL; {query}"));
        command
    }

    fn fill_store(&self, messages: &[String]) {
        let mut child = self.recto(&["exec"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let child = child.as_mut().expect("recto starts");
        let mut input = BufWriter::new(child.stdin.take().expect("standard input is piped"));
        let output = BufReader::new(child.stdout.take().expect("standard output is piped"));
        let reader = std::thread::spawn(move || {
            let answers = output.lines().map(|line| line.expect("the output is text"));
            answers.filter(|answer| answer.contains("\"error\"")).count()
        });
        writeln!(input, "{}", json!({ "create": "long" })).expect("recto reads");
        for some in messages.chunks(500) {
            let some = some.join(",");
            let operation = format!("{{\"operation\":\"APPEND\",\"messages\":[{some}]}}");
            writeln!(input, "{{\"conversation\":\"long\",\"op\":{operation}}}")
                .expect("recto reads");
        }
        drop(input);
        assert_eq!(
            reader.join().expect("the reader does not panic"),
            0,
            "every request is accepted"
        );
        child.wait().expect("recto ends");
        let status = self.recto(&["info", "-c", "long"]).stdout(Stdio::null()).status();
        assert!(status.is_ok_and(|status| status.success()));
    }

    /// Makes a repository with a commit for each message. Returns false if git is missing or fails.
    fn fill_git(&self, messages: &[String]) -> bool {
        let folder = self.path("repository");
        let init = Command::new("git").args(["init", "-q", "-b", "main"]).arg(&folder).status();
        if !init.is_ok_and(|status| status.success()) {
            println!("git is not installed; its rows are omitted");
            return false;
        }
        let mut import = self.git(&["fast-import", "--quiet"]).stdin(Stdio::piped()).spawn();
        let import = import.as_mut().expect("git starts");
        let mut input = BufWriter::new(import.stdin.take().expect("standard input is piped"));
        for (number, message) in messages.iter().enumerate() {
            let (time, size) = (1_700_000_000 + number, message.len());
            let word = format!("message {number}");
            let commit = format!(
                "commit refs/heads/main\ncommitter a <a@example.org> {time} +0000\ndata {}\n{word}\n\
                 M 100644 inline message.json\ndata {size}\n{message}\n",
                word.len()
            );
            input.write_all(commit.as_bytes()).expect("git reads");
        }
        drop(input);
        let is_done = import.wait().is_ok_and(|status| status.success());
        is_done
            && self.git(&["reset", "-q", "--hard"]).status().is_ok_and(|status| status.success())
    }

    /// Makes a database with a row for each message. Returns false if sqlite3 is missing or fails.
    fn fill_sqlite(&self, messages: &[String]) -> bool {
        let script = self.path("plain.sql");
        let mut file = BufWriter::new(File::create(&script).expect("the file can be made"));
        let start = "PRAGMA journal_mode=WAL;\nCREATE TABLE messages (id INTEGER PRIMARY KEY, body TEXT);\nBEGIN;";
        writeln!(file, "{start}").expect("the file can be written");
        for message in messages {
            let quoted = message.replace('\'', "''");
            writeln!(file, "INSERT INTO messages (body) VALUES ('{quoted}');")
                .expect("the file can be written");
        }
        writeln!(file, "COMMIT;").expect("the file can be written");
        drop(file);
        let input = File::open(&script).expect("the file was made");
        let done = Command::new("sqlite3")
            .arg(self.path("plain.db"))
            .stdin(input)
            .stdout(Stdio::null())
            .status();
        if !done.is_ok_and(|status| status.success()) {
            println!("sqlite3 is not installed; its rows are omitted");
            return false;
        }
        true
    }

    fn time(&self, name: &str, command: impl Fn() -> Command, limit: Option<u64>) {
        let mut times: Vec<Duration> = (0..RUNS).map(|_| time_of(command())).collect();
        times.sort();
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        let (median, fastest) = (milliseconds(times[RUNS / 2]), milliseconds(times[0]));
        let limit = limit.map_or(String::new(), |limit| limit.to_string());
        println!("{name:<44} {median:>10.1} {fastest:>10.1} {limit:>9}");
    }

    /// Requests per second through a pipe, with a store in memory.
    fn exec(&self) -> f64 {
        let mut input =
            format!("{}\n", json!({ "create": "a", "settings": { "counter": "approx" } }));
        for number in 0..REQUESTS {
            let message = json!({ "role": "user", "content": format!("hello number {number}") });
            let operation = json!({ "operation": "APPEND", "messages": [message] });
            input.push_str(&json!({ "conversation": "a", "op": operation }).to_string());
            input.push('\n');
        }
        let mut command = Command::new(&self.binary);
        command.args(["exec", "--store", "memory:"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let start = Instant::now();
        let mut child = command.spawn().expect("recto starts");
        let mut pipe = child.stdin.take().expect("standard input is piped");
        let writer = std::thread::spawn(move || pipe.write_all(input.as_bytes()));
        let answers =
            BufReader::new(child.stdout.take().expect("standard output is piped")).lines();
        let (mut count, mut last) = (0_u32, String::new());
        for answer in answers {
            last = answer.expect("the output is text");
            count += 1;
        }
        let took = start.elapsed();
        writer.join().expect("the writer does not panic").expect("recto reads");
        child.wait().expect("recto ends");
        assert_eq!(count, REQUESTS + 1);
        let last: Value = serde_json::from_str(&last).expect("the response is JSON");
        assert_eq!(last["version"], REQUESTS);
        f64::from(REQUESTS) / took.as_secs_f64()
    }
}

fn time_of(mut command: Command) -> Duration {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let start = Instant::now();
    let status = command.status().expect("the command starts");
    let took = start.elapsed();
    assert!(status.success(), "{command:?}");
    took
}
