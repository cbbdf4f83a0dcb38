//! The output of commands that need files or input, and a check that every command has a snapshot.

use std::collections::BTreeSet;

use recto_cli::StreamInfo;
use serde_json::json;

use crate::commands::{apply_changes, normalized, shop};
use crate::stage::{Ran, Stage};

const TERMINAL: StreamInfo = StreamInfo { size: Some((80, 10_000)), colours: true };

/// The output of a command in a pipe and on a terminal, each with its own store.
fn twice(command: &str, perform: impl Fn(&Stage, StreamInfo) -> Ran) -> String {
    let shown = |screen: StreamInfo| {
        let stage = shop();
        apply_changes(&stage);
        let ran = perform(&stage, screen);
        assert_eq!((ran.code, &*ran.errors), (0, ""), "{command}: {}", ran.out);
        normalized(&ran.out, &stage).replace('\u{1b}', "␛")
    };
    let (plain, terminal) = (shown(StreamInfo::default()), shown(TERMINAL));
    format!("$ recto {command}\n{plain}\n$ recto {command} # on a terminal\n{terminal}")
}

/// The numbers before these words differ between machines.
fn without_sizes(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let is_size = |at: usize| words.get(at + 1).is_some_and(|next| next.starts_with("kB"));
    let shown = words.iter().enumerate().map(|(at, word)| if is_size(at) { "SIZE" } else { word });
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_command_prints_the_response_of_its_request() {
    let stage = shop();
    apply_changes(&stage);
    let batch = stage.json(&["info"])["stats"]["currentBatchIndex"].as_u64().unwrap();
    for (arguments, request) in [
        (&["list"][..], json!({ "list": true })),
        (&["verify"], json!({ "verify": true })),
        (&["search", "gateway"], json!({ "search": "gateway" })),
        (&["info"], json!({ "conversation": "shop", "info": true })),
        (&["log", "-n", "3"], json!({ "conversation": "shop", "log": { "limit": 3 } })),
        (&["log", "--calls"], json!({ "conversation": "shop", "calls": true })),
        (&["blame", "2"], json!({ "conversation": "shop", "blame": 2 })),
        (&["tokens"], json!({ "conversation": "shop", "tokens": true })),
        (&["timeline"], json!({ "conversation": "shop", "timeline": true })),
        (&["markmap"], json!({ "conversation": "shop", "markMap": true })),
        (
            &["markmap", "--all", "--at", "3"],
            json!({ "conversation": "shop", "markMap": { "scope": "all" }, "at": 3 }),
        ),
        (&["snapshot", &batch.to_string()], json!({ "conversation": "shop", "snapshot": batch })),
        (
            &["cache-plan", "1", "--for", "gemini", "--turns", "3"],
            json!({ "conversation": "shop", "cachePlan": { "from": 1, "for": "gemini", "turns": 3 } }),
        ),
        (
            &["export", "--format", "anthropic"],
            json!({ "conversation": "shop", "export": { "format": "anthropic" } }),
        ),
        (
            &["prune", "--keep-versions", "1", "--dry-run"],
            json!({ "conversation": "shop", "prune": { "keepVersions": 1 }, "dryRun": true }),
        ),
        (
            &["remove", "shop", "--dry-run"],
            json!({ "conversation": "shop", "remove": true, "dryRun": true }),
        ),
        (
            &["rename", "shop", "till", "--dry-run"],
            json!({ "conversation": "shop", "rename": "till", "dryRun": true }),
        ),
    ] {
        let response = stage.exec(std::slice::from_ref(&request)).remove(0);
        assert_eq!(response.get("error"), None, "{request}: {response}");
        assert_eq!(stage.json(arguments), response, "{arguments:?}");
    }
}

#[test]
fn redo_repeats_the_request() {
    insta::assert_snapshot!(twice("redo", |stage, screen| {
        stage.plain(&["delete", "5"]);
        stage.plain(&["undo"]);
        stage.perform(&["redo"], "", screen)
    }));
}

#[test]
fn apply_applies_operations() {
    let operations = json!([
        { "operation": "DELETE", "indices": [5] },
        { "operation": "truncate", "truncate": { "keepLast": 2 } },
    ]);
    insta::assert_snapshot!(twice("apply -", |stage, screen| {
        stage.perform(&["apply", "-"], &operations.to_string(), screen)
    }));
}

#[test]
fn backup_copies_everything() {
    let shown = twice("backup monday.db", |stage, screen| {
        let file = stage.folder.path().join("monday.db").display().to_string();
        stage.perform(&["backup", &file], "", screen)
    });
    insta::assert_snapshot!(without_sizes(&shown));
}

#[test]
fn restore_backup_restores_everything() {
    insta::assert_snapshot!(twice("restore-backup monday.db", |stage, screen| {
        let file = stage.folder.path().join("monday.db").display().to_string();
        stage.plain(&["backup", &file]);
        Stage::new().perform(&["restore-backup", &file], "", screen)
    }));
}

#[test]
fn clean_compacts_the_store() {
    let shown = twice("clean", |stage, screen| stage.perform(&["clean"], "", screen));
    insta::assert_snapshot!(without_sizes(&shown));
}

#[test]
fn salvage_copies_what_can_be_read() {
    insta::assert_snapshot!(twice("salvage shop --to shop-2", |stage, screen| {
        stage.perform(&["salvage", "shop", "--to", "shop-2"], "", screen)
    }));
}

#[test]
fn doctor_lists_the_checks() {
    let shown = twice("doctor", |stage, screen| {
        stage.plain(&["delete", "0"]);
        stage.plain(&["restore", "3"]);
        stage.perform(&["doctor"], "", screen)
    });
    let program = format!(
        "recto {} on {} {}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    );
    insta::assert_snapshot!(without_sizes(&shown).replace(&program, "PROGRAM"));
}

#[test]
fn exec_executes_requests() {
    let lines = [
        json!({ "conversation": "shop", "ask": { "last": 1 } }).to_string(),
        "{".to_owned(),
        json!({ "conversation": "shop", "op": { "operation": "UNDO" } }).to_string(),
    ];
    insta::assert_snapshot!(twice("exec", |stage, screen| {
        stage.perform(&["exec"], &lines.join("\n"), screen)
    }));
}

#[test]
fn completions_are_a_script_of_the_shell() {
    let shown = twice("completions fish", |stage, screen| {
        let mut ran = stage.perform(&["completions", "fish"], "", screen);
        ran.out = ran.out.lines().take(3).map(|line| format!("{line}\n")).collect();
        ran
    });
    insta::assert_snapshot!(shown);
}

#[test]
fn demo_prints_the_scenario() {
    insta::assert_snapshot!(twice("demo", |stage, screen| stage.perform(&["demo"], "", screen)));
}

#[test]
fn every_command_has_a_snapshot_in_a_pipe_and_on_a_terminal() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/snapshots");
    let mut shown: BTreeSet<(String, bool)> = BTreeSet::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for line in text.lines().filter_map(|line| line.strip_prefix("$ recto ")) {
            let name = line.split(' ').next().unwrap_or_default();
            shown.insert((name.to_owned(), line.ends_with("# on a terminal")));
        }
    }
    for command in crate::rules::commands() {
        // `chat` needs a model: `chat.rs` tests it with a scripted one.
        if command == "chat" {
            continue;
        }
        for is_terminal in [false, true] {
            assert!(shown.contains(&(command.clone(), is_terminal)), "{command} {is_terminal}");
        }
    }
}
