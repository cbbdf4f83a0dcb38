//! The README's walk-through, word by word: its commands are run, and print what stands there.

use std::path::Path;
use std::process::Command;

use crate::stage::Stage;

const README: &str = include_str!("../../../../README.md");

/// A command of the README, and what it says that is printed.
struct Shown {
    command: String,
    prints: String,
}

/// The commands in all blocks of the kind `console`, in order.
fn shown(text: &str) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    let mut is_console = false;
    for line in text.lines() {
        match (is_console, line.strip_prefix("$ ")) {
            (false, _) => is_console = line == "```console",
            (true, _) if line == "```" => is_console = false,
            (true, Some(command)) => {
                all.push(Shown { command: command.to_owned(), prints: String::new() });
            }
            (true, None) => {
                let last = all.last_mut().expect("a block begins with a command");
                last.prints.push_str(&format!("{line}\n"));
            }
        }
    }
    all
}

#[cfg(unix)]
#[test]
fn the_readme_s_walk_through_is_true_word_by_word() {
    let stage = Stage::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let programs = Path::new(env!("CARGO_BIN_EXE_recto")).parent().expect("it is in a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", programs.display());
    let walk = shown(README);
    for part in ["import", "lint", "compress", "--dry-run", "rollback", "render"] {
        let is_part = |shown: &&Shown| shown.command.contains(part);
        assert!(walk.iter().any(|shown| is_part(&shown)), "{part} is missing");
    }
    for Shown { command, prints } in walk {
        let output = Command::new("sh")
            .args(["-c", &format!("{{ {command}\n}} 2>&1")])
            .current_dir(&root)
            .env_clear()
            .envs([("PATH", &*path), ("RECTO_STORE", &stage.store)])
            .env("HOME", stage.folder.path())
            .output()
            .expect("there is a shell");
        let printed = String::from_utf8(output.stdout).expect("recto prints UTF-8");
        assert_eq!(printed, prints, "$ {command}");
    }
}

#[test]
fn commands_are_found_with_what_they_print() {
    let text = "before\n```console\n$ one\na\n\nb\n$ two\n```\n$ no\n```sh\n$ no\n```\n";
    let found: Vec<(String, String)> =
        shown(text).into_iter().map(|shown| (shown.command, shown.prints)).collect();
    let pair = |command: &str, prints: &str| (command.to_owned(), prints.to_owned());
    assert_eq!(found, [pair("one", "a\n\nb\n"), pair("two", "")]);
}
