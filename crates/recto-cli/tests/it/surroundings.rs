//! Restricted environments: files that cannot be written, and limits of the file size.

#![cfg(unix)]

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::stage::Stage;

/// A store with a conversation of three messages.
fn store() -> (Stage, std::path::PathBuf) {
    let stage = Stage::new();
    stage.plain(&["new", "a"]);
    for text in ["one", "two", "three"] {
        stage.plain(&["append", "-c", "a", "--text", text]);
    }
    let file = stage.folder.path().join("recto.db");
    (stage, file)
}

/// Runs the program as a user that cannot write to the folder.
fn run_without_permission(store: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_recto"));
    command.env_clear().env("HOME", "/nowhere").args(arguments);
    command.arg("--store").arg(format!("sqlite:{}", store.display()));
    let folder = store.parent().unwrap();
    if fs::metadata(folder).unwrap().uid() == 0 {
        // Root can write everywhere.
        command.uid(65_534).gid(65_534).current_dir("/");
    }
    command.output().unwrap()
}

#[test]
fn a_store_that_cannot_be_written_can_be_read() {
    let (_stage, file) = store();
    let folder = file.parent().unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(folder, Permissions::from_mode(0o555)).unwrap();
    for arguments in [&["list"][..], &["show", "-c", "a"], &["log", "-c", "a"], &["verify"]] {
        let ran = run_without_permission(&file, arguments);
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(0), "{arguments:?}: {errors}");
    }
    let shown = run_without_permission(&file, &["show", "-c", "a"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("three"));
    let refused = run_without_permission(&file, &["append", "-c", "a", "--text", "x"]);
    assert_eq!(refused.status.code(), Some(3));
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(errors.contains("cannot be written"), "{errors}");
    fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_limit_of_the_file_size_is_a_storage_error() {
    let (stage, file) = store();
    let program = env!("CARGO_BIN_EXE_recto");
    let mut child = Command::new("sh")
        .arg("-c")
        .arg("ulimit -f 600; exec \"$@\"")
        .args(["sh", program, "exec", "--store", &format!("sqlite:{}", file.display())])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let text: String = (0..8_000_u32)
        .map(|number| format!("{:x} ", number.wrapping_mul(2_654_435_761) % 65_521))
        .collect();
    for _ in 0..60 {
        let message = json!({ "role": "user", "content": text });
        let op = json!({ "operation": "APPEND", "messages": [message] });
        writeln!(input, "{}", json!({ "conversation": "a", "op": op })).unwrap();
    }
    drop(input);
    let ran = child.wait_with_output().unwrap();
    assert!(ran.status.code().is_some(), "{:?}", ran.status);
    let answers: Vec<Value> = String::from_utf8_lossy(&ran.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), 60);
    let accepted = answers.iter().filter(|answer| answer.get("error").is_none()).count();
    let refused = answers.iter().filter(|answer| answer["error"]["code"] == "storage").count();
    assert!(refused > 0 && accepted + refused == 60, "{accepted} {refused}");
    // Acknowledged messages are stored.
    assert_eq!(stage.json(&["info", "-c", "a"])["version"], 3 + accepted);
    assert_eq!(stage.run(&["verify"]).code, 0);
}

#[test]
fn a_deleted_store_acknowledges_nothing() {
    let (_stage, file) = store();
    let mut child = Command::new(env!("CARGO_BIN_EXE_recto"))
        .args(["exec", "--store", &format!("sqlite:{}", file.display())])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut append = || {
        let message = json!({ "role": "user", "content": "x" });
        let op = json!({ "operation": "APPEND", "messages": [message] });
        writeln!(input, "{}", json!({ "conversation": "a", "op": op })).unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut output, &mut line).unwrap();
        serde_json::from_str::<Value>(&line).unwrap()
    };
    assert!(append().get("error").is_none());
    fs::remove_file(&file).unwrap();
    let refused = append();
    assert_eq!(refused["error"]["code"], "storage", "{refused}");
    drop(input);
    assert!(child.wait().unwrap().code().is_some());
}
