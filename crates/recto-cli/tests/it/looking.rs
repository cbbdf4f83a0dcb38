//! Commands that read: versions, entries, sizes, and stores that do not exist.

use serde_json::{Value, json};

use crate::commands::{apply_changes, shop};
use crate::stage::Stage;

#[test]
fn the_output_says_if_a_change_leaves_the_view_unchanged() {
    let stage = shop();
    stage.plain(&["delete", "2"]);
    for arguments in [&["delete", "2"][..], &["mark", "x", "1"], &["batch", "start"]] {
        let printed = stage.plain(arguments);
        assert!(printed.contains("view     5 messages, 139 tokens, as before\n"), "{printed}");
        assert!(!printed.contains("process again"), "{printed}");
    }
    let printed = stage.plain(&["restore", "2"]);
    assert!(printed.contains("view     5 → 6 messages"), "{printed}");
    assert!(printed.contains("process again"), "{printed}");
}

#[test]
fn a_dry_run_and_the_change_print_the_same_lines_about_the_view() {
    for operation in [&["delete", "5"][..], &["fit", "--max-tokens", "70"], &["mark", "x", "1"]] {
        let stage = shop();
        let about = |text: String| -> Vec<String> {
            let is_about = |line: &&str| line.starts_with("view ") || line.starts_with("prefix ");
            text.lines().filter(is_about).map(str::to_owned).collect()
        };
        let dry = about(stage.plain(&[operation, &["--dry-run"]].concat()));
        let done = stage.plain(operation);
        assert!(!done.contains("cached"), "only a dry run has a cache plan: {done}");
        assert_eq!(dry, about(done), "{operation:?}");
        assert!(!dry.is_empty());
    }
}

#[test]
fn names_of_tools_are_cut_without_the_option_full() {
    let stage = shop();
    let name = "mcp__github__search_pull_requests_by_label_and_milestone";
    let call = json!({ "role": "assistant", "content": [
        { "type": "tool_use", "id": "c9", "name": name, "input": {} }] });
    let file = stage.file("call.json", &call.to_string());
    stage.plain(&["append", "--messages", &file]);
    assert!(stage.plain(&["tokens", "--largest", "0", "--full"]).contains(name));
    let shown = stage.terminal(&["tokens", "--largest", "0"]);
    let shown = anstream::adapter::strip_str(&shown).to_string();
    assert!(!shown.contains(name) && shown.contains("mcp__github__searc"), "{shown}");
    for line in shown.lines() {
        assert!(line.chars().count() <= 80 && !line.ends_with('…'), "{line}");
    }
}

#[test]
fn sizes_and_times_are_not_cut_on_a_terminal_of_eighty_columns() {
    let stage = shop();
    let because = "the tool printed so much that nothing else was left to be read by anybody";
    stage.plain(&["delete", "3", "--because", because]);
    let log = anstream::adapter::strip_str(&stage.terminal(&["log"])).to_string();
    let first = log.lines().next().unwrap();
    assert!(
        first.contains("DELETE 1 entry · the tool") && first.contains("…  (5 msgs, "),
        "{first}"
    );
    assert_eq!(first.chars().count(), 80, "{first}");
    assert!(first.ends_with(|last: char| last.is_ascii_digit()), "{first}");
    assert!(stage.plain(&["log", "--full"]).contains(because));
}

#[test]
fn a_read_of_a_missing_store_fails_and_creates_no_file() {
    let stage = Stage::new();
    let file = stage.folder.path().join("misspelt.db");
    let address = format!("sqlite:{}", file.display());
    for arguments in [
        &["list"][..],
        &["info"],
        &["show"],
        &["log"],
        &["tokens"],
        &["grep", "x"],
        &["grep", "--everywhere", "x"],
        &["verify"],
        &["settings"],
        &["export"],
        &["render"],
        &["lint"],
        &["markmap"],
        &["timeline"],
        &["append", "--text", "x"],
        &["undo"],
        &["remove", "x", "--yes"],
        &["rename", "x", "y"],
        &["fork", "x"],
        &["backup", "x.db"],
    ] {
        let with_store: Vec<&str> =
            arguments.iter().copied().chain(["--store", &address]).collect();
        let ran = stage.run(&with_store);
        assert_eq!((ran.code, &*ran.out), (3, ""), "{arguments:?} {ran:?}");
        for word in ["there is no store at", "misspelt.db", "--store", "recto new", "recto import"]
        {
            assert!(ran.errors.contains(word), "{arguments:?} {}", ran.errors);
        }
        let by_variable = Stage::with_store(address.clone()).run(arguments);
        assert_eq!(by_variable.code, 3, "{arguments:?} {by_variable:?}");
        assert!(by_variable.errors.contains("RECTO_STORE"), "{}", by_variable.errors);
    }
    assert!(stage.plain(&["doctor", "--store", &address]).contains("it does not exist yet"));
    assert!(!file.exists(), "a read creates no file");
}

#[test]
fn commands_with_at_show_the_state_of_that_version() {
    let stage = shop();
    apply_changes(&stage);
    let tokens = |version: &str| stage.json(&["tokens", "--at", version]);
    assert_eq!(tokens("now")["tokens"], stage.json(&["tokens"])["tokens"]);
    for version in 0..=8_u32 {
        let text = version.to_string();
        let (shown, then) = (stage.json(&["show", "--at", &text]), tokens(&text));
        assert_eq!((&then["version"], &then["tokens"]), (&json!(version), &shown["tokens"]));
        let map = stage.json(&["markmap", "--at", &text]);
        let shown = shown["messages"].as_array().unwrap().clone();
        let indices: Vec<&Value> = shown.iter().map(|entry| &entry["index"]).collect();
        assert_eq!(json!(indices), map["originalIndices"], "{version}");
        // The label was set at version 4.
        let is_labelled = shown.iter().any(|entry| entry.get("marks").is_some());
        assert_eq!(is_labelled, version >= 4, "{version}");
    }
    assert_eq!(stage.json(&["markmap", "--at", "now"]), stage.json(&["markmap"]));
    for command in ["tokens", "markmap", "show", "grep x", "export", "render", "lint"] {
        let words = command.split(' ').chain(["--at", "99", "--json"]);
        let refused = stage.run(&words.collect::<Vec<_>>());
        assert_eq!(refused.code, 1, "{command}");
        assert!(refused.out.contains("version_not_found"), "{command}: {}", refused.out);
    }
}

#[test]
fn grep_ignores_case_with_the_option_i() {
    let stage = shop();
    let found = |arguments: &[&str]| {
        let found = stage.json(&[&["grep"], arguments].concat());
        let messages = found["messages"].as_array().unwrap().clone();
        messages.iter().map(|entry| entry["index"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(found(&["error"]), [0; 0]);
    assert_eq!(found(&["-i", "error"]), [3]);
    assert_eq!(found(&["--ignore-case", "THE"]), [4]);
    assert_eq!(found(&["-i", "eU-1"]), [1, 3]);
    assert_eq!(found(&["-i", "eU-1", "--role", "tool"]), [3]);
    assert_eq!(found(&["-i", "eU-1", "--limit", "1"]), [1]);
    stage.plain(&["delete", "3"]);
    assert_eq!(found(&["-i", "error"]), [0; 0]);
    assert_eq!(found(&["-i", "error", "--all"]), [3]);
    assert_eq!(found(&["-i", "error", "--at", "1"]), [3]);
    assert_eq!(stage.run(&["grep", "-i", ""]).code, 2);
    assert_eq!(stage.run(&["grep", ""]).code, 2);
    let nothing = stage.plain(&["grep", "ERROR"]);
    assert_eq!(nothing, "0 messages found; --all also searches hidden messages\n");
    assert_eq!(stage.plain(&["grep", "nobody", "--all"]), "0 messages found\n");
    // The other filters apply too.
    assert_eq!(found(&["eu-1", "--all", "--contains", "checkout"]), [1]);
    assert_eq!(found(&["-i", "EU-1", "--all", "--contains", "ERROR"]), [3]);
    assert_eq!(found(&["eu-1", "--all", "--contains", "nobody"]), [0; 0]);
    assert_eq!(stage.run(&["grep", "-i", "--everywhere", "x"]).code, 2);
}

#[test]
fn log_entries_are_shown_whole_whether_they_are_visible_or_not() {
    let stage = shop();
    stage.plain(&["mark", "x", "3"]);
    stage.plain(&["delete", "3"]);
    let shown = stage.plain(&["show", "3", "#0-1"]);
    assert!(shown.starts_with("result #3 hidden, 44 tokens, "), "{shown}");
    assert!(shown.contains("[x]\n  08:02 eu-1 ERROR no answer\n  08:02"), "{shown}");
    assert!(
        shown.contains("system #0 at position 0") && shown.contains("  Never restart eu-1!"),
        "{shown}"
    );
    let document = stage.json(&["show", "3"]);
    assert_eq!((&document["messages"][0]["index"], &document["tokens"]), (&json!(3), &json!(44)));
    let refused = stage.run(&["show", "99", "--json"]);
    assert!(refused.code == 1 && refused.out.contains("index_out_of_range"), "{refused:?}");
    assert_eq!(stage.run(&["show", "3", "--at", "1"]).code, 2);
}
