//! Sessions in a real terminal: pager, progress, colours, confirmation and Ctrl-C.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use serde_json::json;

use crate::commands::shop;
use crate::emulator;
use crate::stage::Stage;

/// A `recto` process in a pseudo-terminal.
pub(crate) struct Session {
    child: Box<dyn Child + Send + Sync>,
    keyboard: Box<dyn Write + Send>,
    /// The bytes that the process has printed.
    printed: Arc<Mutex<Vec<u8>>>,
    _master: Box<dyn MasterPty + Send>,
}

const ROWS: u16 = 24;

impl Session {
    pub(crate) fn start(stage: &Stage, arguments: &[&str], variables: &[(&str, &str)]) -> Session {
        let size = PtySize { rows: ROWS, cols: 80, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a terminal can be opened");
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_recto"));
        command.args(arguments);
        command.env_clear();
        command.env("PATH", std::env::var("PATH").unwrap_or_default());
        command.env("TERM", "xterm-256color");
        command.env("TZ", "UTC");
        command.env("HOME", stage.folder.path());
        command.env("XDG_DATA_HOME", stage.folder.path());
        command.env("RECTO_STORE", &stage.store);
        command.env("RECTO_PAGER", "cat");
        for (name, value) in variables {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).expect("recto starts");
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().expect("it can be read");
        let printed = Arc::new(Mutex::new(Vec::new()));
        let kept = printed.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                kept.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        let keyboard = pair.master.take_writer().expect("it can be written to");
        Session { child, keyboard, printed, _master: pair.master }
    }

    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.printed.lock().unwrap()).into_owned()
    }

    /// The present content of the screen.
    fn screen(&self) -> String {
        let mut terminal = emulator(ROWS);
        terminal.process(&self.printed.lock().unwrap());
        terminal.screen().contents()
    }

    pub(crate) fn wait_for(&self, text: &str) {
        let start = Instant::now();
        while !self.raw().contains(text) {
            assert!(start.elapsed() < Duration::from_secs(60), "no {text:?} in {:?}", self.raw());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("it is open");
        self.keyboard.flush().expect("it is open");
    }

    /// Waits for the process to exit and returns its exit code.
    pub(crate) fn end(&mut self) -> u32 {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("its status can be read") {
                // The last output may not have been read yet.
                std::thread::sleep(Duration::from_millis(100));
                return status.exit_code();
            }
            assert!(
                start.elapsed() < Duration::from_secs(120),
                "it does not end: {:?}",
                self.raw()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn run(stage: &Stage, arguments: &[&str], variables: &[(&str, &str)]) -> Session {
    let mut session = Session::start(stage, arguments, variables);
    assert_eq!(session.end(), 0, "{}", session.raw());
    session
}

/// A conversation whose verification takes long enough for a progress bar on this machine.
fn long() -> Stage {
    let stage = Stage::new();
    let text = "word ".repeat(200);
    let messages: Vec<_> = (0..40).map(|_| json!({ "role": "user", "content": text })).collect();
    let append =
        json!({ "conversation": "long", "op": { "operation": "APPEND", "messages": messages } });
    stage.exec(&[json!({ "create": "long", "settings": { "counter": "approx" } })]);
    let grow = |chunks: usize| stage.exec(&vec![append.clone(); 400 * chunks]);
    let is_slow = || run(&stage, &["verify"], &[]).raw().contains("verifying");
    let chunks = (1..20).find(|_| {
        grow(1);
        is_slow()
    });
    // Other processes may have made that run slow: three times as much takes long without them.
    grow(2 * chunks.expect("a long command shows a progress bar"));
    stage
}

#[test]
fn a_terminal_has_colours_unless_they_are_disabled() {
    let stage = shop();
    let coloured = run(&stage, &["show"], &[]);
    assert!(coloured.raw().contains("\u{1b}[36m"), "{:?}", coloured.raw());
    assert!(coloured.screen().contains("#1 user"), "{}", coloured.screen());
    for (arguments, variables) in [
        (&["show"][..], &[("NO_COLOR", "1")][..]),
        (&["show"], &[("TERM", "dumb")]),
        (&["show", "--color", "never"], &[]),
    ] {
        let plain = run(&stage, arguments, variables);
        assert!(!plain.raw().contains('\u{1b}'), "{:?}", plain.raw());
        assert_eq!(plain.screen(), coloured.screen());
    }
}

#[test]
fn long_output_goes_through_the_pager_and_short_output_does_not() {
    let stage = shop();
    let pager = ("RECTO_PAGER", "head -n 3; echo PAGED");
    let short = run(&stage, &["show"], &[pager]);
    assert!(!short.raw().contains("PAGED"));
    for _ in 0..30 {
        stage.plain(&["append", "--text", "more"]);
    }
    let long = run(&stage, &["show"], &[pager]);
    let screen = long.screen();
    assert!(
        screen.contains("PAGED") && screen.contains("#1 user") && !screen.contains("#9 user"),
        "{screen}"
    );
    for (arguments, variables) in [
        (&["show", "--no-pager"][..], &[pager][..]),
        (&["show"], &[("RECTO_PAGER", "cat")]),
        (&["show"], &[("RECTO_PAGER", "no-such-pager-here")]),
    ] {
        let unpaged = run(&stage, arguments, variables);
        assert!(unpaged.screen().contains("36 messages"), "{}", unpaged.screen());
        assert!(!unpaged.raw().contains("PAGED"));
    }
    // PAGER is used if RECTO_PAGER is empty.
    let other = run(&stage, &["show"], &[("RECTO_PAGER", ""), ("PAGER", "tail -n 1; echo OTHER")]);
    assert!(other.screen().contains("OTHER"));
}

#[test]
fn ctrl_c_does_not_end_recto_while_the_pager_runs() {
    let stage = shop();
    for _ in 0..30 {
        stage.plain(&["append", "--text", "more"]);
    }
    let pager = (
        "RECTO_PAGER",
        "trap 'echo NOTICED' INT; cat > /dev/null; echo READY; sleep 1; echo ENDED",
    );
    let mut session = Session::start(&stage, &["show"], &[pager]);
    session.wait_for("READY");
    session.press("\u{3}");
    assert_eq!(session.end(), 0, "{}", session.raw());
    assert!(session.raw().contains("ENDED"), "{}", session.raw());
}

#[test]
fn a_long_command_shows_a_progress_bar_and_erases_it() {
    let stage = long();
    let session = run(&stage, &["verify"], &[]);
    let raw = session.raw();
    assert!(raw.contains("verifying long ") && raw.contains('━') && raw.contains(" %"), "{raw:?}");
    let screen = session.screen();
    assert!(screen.starts_with("sound    long  "), "{screen}");
    assert!(!screen.contains('%') && !screen.contains('━'), "{screen}");
    // In a pipe no progress is printed.
    assert!(!stage.plain(&["verify"]).contains('━'));
}

#[test]
fn ctrl_c_ends_a_long_command_and_the_store_stays_sound() {
    let stage = long();
    let mut session = Session::start(&stage, &["verify"], &[]);
    session.wait_for("verifying");
    session.press("\u{3}");
    assert_eq!(session.end(), 130, "{}", session.raw());
    assert!(session.screen().contains("recto: interrupted"), "{}", session.screen());
    assert!(stage.plain(&["verify"]).starts_with("sound"));

    // An interrupted backup leaves no file.
    let file = stage.folder.path().join("backup.db");
    let mut session = Session::start(&stage, &["backup", &file.display().to_string()], &[]);
    std::thread::sleep(Duration::from_millis(30));
    session.press("\u{3}");
    match session.end() {
        0 => assert!(file.exists()),
        code => {
            assert!(code == 130 || code == 1, "{code} {}", session.raw());
            assert!(!file.exists());
        }
    }
    assert!(!stage.folder.path().join("backup.db.partial").exists());
}

#[test]
fn acknowledged_requests_are_stored_after_ctrl_c() {
    let stage = shop();
    for round in 0_u32..5 {
        let mut session = Session::start(&stage, &["exec"], &[]);
        let request = json!({ "conversation": "shop",
            "op": { "operation": "APPEND", "messages": [{ "role": "user", "content": "x" }] } });
        for _ in 0..20 {
            session.press(&format!("{request}\n"));
        }
        session.wait_for("\"version\":");
        std::thread::sleep(Duration::from_millis(u64::from(round) * 7));
        session.press("\u{3}");
        assert_ne!(session.end(), 0);
        let answered = session.raw().matches("\"changed\":true").count() as u64;
        let info = stage.json(&["info"]);
        assert!(info["version"].as_u64().unwrap() > answered, "{info}");
        assert_eq!(info["messages"].as_u64().unwrap(), info["version"].as_u64().unwrap() + 5);
        assert!(stage.plain(&["verify"]).starts_with("sound"));
    }
}

#[test]
fn an_irreversible_change_asks_for_confirmation() {
    let stage = shop();
    for (answer, code) in [("n\r", 2), ("\r", 2), ("y\r", 0)] {
        let mut session = Session::start(&stage, &["erase", "1"], &[]);
        session.wait_for("Continue? [y/N]");
        session.press(answer);
        assert_eq!(session.end(), code, "{}", session.raw());
        let is_erased = stage.plain(&["show"]).contains("[erased]");
        assert_eq!(is_erased, code == 0);
    }
}

/// A transcript of 20,000 messages, whose import takes long enough to be interrupted.
fn long_transcript(stage: &Stage) -> String {
    let text = "word ".repeat(400);
    let line = json!({ "role": "user", "content": text }).to_string() + "\n";
    stage.file("long.jsonl", &line.repeat(20_000))
}

#[test]
fn an_import_shows_a_progress_bar() {
    let stage = shop();
    let file = long_transcript(&stage);
    let session = run(&stage, &["import", &file, "--counter", "approx"], &[]);
    let raw = session.raw();
    assert!(raw.contains("importing") && raw.contains('━') && raw.contains(" %"), "{raw:?}");
    let screen = session.screen();
    assert!(screen.lines().any(|line| line.starts_with("long            20,000")), "{screen}");
    assert!(!screen.contains('━'), "{screen}");
}

#[test]
fn ctrl_c_ends_an_import_and_removes_the_conversation() {
    let stage = shop();
    let file = long_transcript(&stage);
    let before = stage.plain(&["list"]);
    let mut session = Session::start(&stage, &["import", &file, "--counter", "approx"], &[]);
    session.wait_for("importing");
    // Other processes list the conversation under a name that ends with `(importing)`.
    let during = stage.plain(&["list"]);
    assert!(during.contains("long (importing)"), "{during}");
    session.press("\u{3}");
    assert_eq!(session.end(), 130, "{}", session.raw());
    assert!(session.screen().contains("nothing was imported"), "{}", session.screen());
    assert_eq!(stage.plain(&["list"]), before);
    assert!(stage.plain(&["verify"]).starts_with("sound"));
}

#[test]
fn doctor_reports_an_import_that_was_killed() {
    let stage = shop();
    let file = long_transcript(&stage);
    let mut session = Session::start(&stage, &["import", &file, "--counter", "approx"], &[]);
    session.wait_for("importing");
    session.child.kill().expect("it runs");
    session.end();
    let found = stage.plain(&["doctor"]);
    assert!(
        found.contains("long (importing): its import is running, or was interrupted"),
        "{found}"
    );
    assert!(stage.plain(&["verify"]).starts_with("sound"));
    stage.plain(&["remove", "long (importing)", "--yes"]);
    assert!(!stage.plain(&["doctor"]).contains("importing"));
}
