//! What commands print in addition to the result: the conversation, what had no effect, and what to do next.

use serde_json::json;

use crate::commands::shop;
use crate::stage::Stage;

/// Whether a command is refused with this exit code and this text.
fn refused(stage: &Stage, arguments: &[&str], code: u8, text: &str) {
    let ran = stage.run(arguments);
    assert_eq!(ran.code, code, "{arguments:?}: {}", ran.errors);
    assert!(ran.errors.contains(text), "{arguments:?}: {}", ran.errors);
}

#[test]
fn a_backup_of_a_conversation_that_has_changed_since_is_not_restored_over_it() {
    let stage = shop();
    let backup = stage.folder.path().join("monday.db").display().to_string();
    stage.plain(&["backup", &backup]);
    stage.plain(&["new", "other"]);
    stage.plain(&["delete", "2", "-c", "shop"]);
    let output = stage.plain(&["restore-backup", &backup, "--full"]);
    assert!(output.contains("0 conversations with 0 messages restored"), "{output}");
    let line = "shop: already in this store at v2 (the backup has v1); nothing was copied";
    assert!(output.contains(line) && !output.contains("as in the backup"), "{output}");
    let show = format!("`recto show -c shop --store sqlite:{backup}` reads the backup");
    assert!(output.contains(&show), "{output}");
    assert!(
        output.contains("`recto rollback -c shop --to-version 1` returns to its state"),
        "{output}"
    );
    let document = stage.json(&["restore-backup", &backup]);
    assert_eq!(document["newer"], json!([{ "name": "shop", "version": 2, "backupVersion": 1 }]));
    // The advice works.
    let address = format!("sqlite:{backup}");
    let from_backup = stage.json(&["show", "-c", "shop", "--store", &address]);
    stage.plain(&["rollback", "-c", "shop", "--to-version", "1"]);
    assert_eq!(stage.json(&["show", "-c", "shop"])["messages"], from_backup["messages"]);
}

#[test]
fn a_backup_whose_names_are_taken_is_refused_with_advice_that_can_be_followed() {
    let stage = shop();
    let backup = stage.folder.path().join("monday.db").display().to_string();
    stage.plain(&["backup", &backup]);
    let other = Stage::new();
    other.plain(&["new", "shop"]);
    refused(&other, &["restore-backup", &backup], 1, "`recto rename`");
    assert!(!other.run(&["restore-backup", &backup]).errors.contains("choose another name"));
    other.plain(&["rename", "shop", "mine"]);
    other.plain(&["restore-backup", &backup]);
}

#[test]
fn erase_and_prune_name_the_conversation() {
    let stage = shop();
    stage.plain(&["delete", "5"]);
    assert!(stage.plain(&["erase", "2", "3", "--yes"]).ends_with("\n2 messages erased in shop\n"));
    assert!(stage.plain(&["erase", "2", "--yes"]).ends_with("\n0 messages erased in shop\n"));
    let pruned = stage.plain(&["prune", "--keep-versions", "1", "--yes"]);
    assert!(pruned.starts_with("overwrote 1 message of shop, "), "{pruned}");
}

#[test]
fn lint_and_render_name_the_placeholders_that_the_model_would_read() {
    let stage = shop();
    stage.plain(&["erase", "1", "--yes"]);
    stage.plain(&["delete", "4"]);
    stage.plain(&["prune", "--keep-versions", "1", "--yes"]);
    stage.plain(&["restore", "4"]);
    let text = "these messages were erased or pruned, so the model reads a placeholder instead";
    let lint = stage.plain(&["lint", "--for", "anthropic"]);
    assert!(lint.contains(&format!("#1, #4: {text}")), "{lint}");
    let warnings = &stage.json(&["lint", "--for", "anthropic"])["warnings"];
    assert_eq!(warnings, &json!([{ "code": "placeholder", "indices": [1, 4], "message": text }]));
    let rendered = stage.run(&["render", "--for", "anthropic"]);
    assert!(rendered.errors.contains(&format!("warning: #1 #4 {text}")), "{}", rendered.errors);
    let request = json!({ "conversation": "shop", "render": "anthropic" });
    assert_eq!(stage.exec(&[request])[0]["warnings"], *warnings);
    // Without them there is no warning.
    stage.plain(&["delete", "1", "4"]);
    assert!(stage.json(&["lint", "--for", "anthropic"]).get("warnings").is_none());
}

#[test]
fn a_budget_that_is_too_small_names_the_pinned_entries_if_there_are_any() {
    let stage = shop();
    let ran = stage.run(&["fit", "--max-tokens", "5"]);
    assert!(ran.code == 1 && ran.errors.contains("or --drop-system"), "{}", ran.errors);
    assert!(!ran.errors.contains("unpin"), "nothing is pinned: {}", ran.errors);
    stage.plain(&["pin", "1", "4-5"]);
    let advice = "or --drop-system, or `recto unpin 1 4-5` (pinned: #1 #4-#5)";
    refused(&stage, &["fit", "--max-tokens", "5"], 1, advice);
    assert!(stage.run(&["fit", "--max-tokens", "5", "--json"]).out.contains("budget_too_small"));
}

#[test]
fn a_request_without_a_field_that_anthropic_requires_gets_a_note() {
    let stage = shop();
    let note = |more: &[&str]| {
        let ran = stage.run(&[&["render", "--for", "anthropic"], more].concat());
        assert_eq!(ran.code, 0);
        ran.errors
    };
    assert!(note(&[]).contains(
        "note: the request has no `model` and no `max_tokens`; add `--model MODEL` and \
         `--field max_tokens=1024`"
    ));
    assert!(note(&["--field", "max_tokens=9"]).contains("note: the request has no `model`; add"));
    assert!(note(&["--model", "m"]).contains("note: the request has no `max_tokens`; add"));
    assert!(!note(&["--model", "m", "--field", "max_tokens=9"]).contains("note:"));
    assert!(!stage.run(&["render", "--for", "openai-chat"]).errors.contains("note:"));
}

#[test]
fn undo_and_redo_name_the_request_that_they_concern() {
    let stage = shop();
    stage.plain(&["delete", "2", "--reason", "noise"]);
    let first = |arguments: &[&str]| stage.plain(arguments).lines().next().unwrap().to_owned();
    assert_eq!(first(&["undo"]), "v3 of shop: UNDO of v2 DELETE 1 entry · noise");
    assert_eq!(first(&["redo"]), "v4 of shop: REDO of v2 DELETE 1 entry · noise");
    assert_eq!(
        first(&["undo", "--reason", "no"]),
        "v5 of shop: UNDO of v2 DELETE 1 entry · noise · no"
    );
    assert_eq!(first(&["undo"]), "v6 of shop: UNDO of v1 APPEND 6 messages");
    let log = stage.plain(&["log"]);
    assert!(log.contains("UNDO of v1 APPEND 6 messages"), "{log}");
    assert!(log.contains("REDO of v2 DELETE 1 entry · noise"), "{log}");
    let versions = &stage.json(&["log"])["versions"];
    let targets: Vec<_> = (0..7).map(|at| versions[at]["target"].clone()).collect();
    assert_eq!(json!(targets), json!([1, 2, 2, 2, null, null, null]));
    // The request is not among the listed versions.
    assert!(stage.plain(&["log", "-n", "1"]).contains("UNDO of v1  ("));
}

#[test]
fn blame_shows_who_marked_an_entry() {
    let stage = shop();
    stage.plain(&["pin", "1", "--reason", "the task"]);
    stage.plain(&["mark", "important", "1"]);
    stage.plain(&["unpin", "1"]);
    let text = stage.plain(&["blame", "1"]);
    let lines: Vec<&str> = text.lines().collect();
    for (at, parts) in [
        (3, ["v1", "added", "APPEND 6 messages"]),
        (4, ["v2", "marked    MARK", "· the task [pinned]"]),
        (5, ["v3", "marked    MARK", "[important]"]),
        (6, ["v4", "unmarked  UNMARK", "[pinned]"]),
    ] {
        assert!(parts.iter().all(|part| lines[at].contains(part)), "{parts:?}: {text}");
    }
    let marks = stage.json(&["blame", "1"])["marks"].clone();
    assert_eq!((&marks[0]["mark"], &marks[0]["marked"]), (&json!("pinned"), &json!(true)));
    assert_eq!((&marks[2]["version"], &marks[2]["marked"]), (&json!(4), &json!(false)));
    assert!(stage.json(&["blame", "0"]).get("marks").is_none());
}

#[test]
fn an_error_about_a_version_names_the_conversation() {
    let stage = shop();
    stage.plain(&["fork", "trial"]);
    refused(&stage, &["show", "--at", "3"], 1, "\"trial\" has no version 3 yet; use 0 to 1");
    let text = "\"shop\" has no version now-7; use now-0 to now-1, or v0 to v1";
    refused(&stage, &["rollback", "--to-version", "now-7", "-c", "shop"], 1, text);
    let document = stage.run(&["show", "--at", "3", "-c", "trial", "--json"]).out;
    assert!(document.contains(r#""code":"version_not_found""#), "{document}");
    assert!(document.contains(r#""currentVersion":1"#), "{document}");
}

#[test]
fn entries_on_which_a_change_had_no_effect_are_named_and_counted_once() {
    let stage = shop();
    stage.plain(&["delete", "2-3"]);
    let again = stage.plain(&["delete", "2", "3", "3"]);
    assert!(again.contains("DELETE 2 entries\n"), "{again}");
    assert!(again.contains("note     #2-#3 were hidden already\n"), "{again}");
    let compressed = stage.plain(&["compress", "3-4", "--summary", "so far"]);
    assert!(compressed.contains("note     #3 was hidden already\n"), "{compressed}");
    let restored = stage.plain(&["restore", "1", "2"]);
    assert!(restored.contains("note     #1 was visible already\n"), "{restored}");
    assert!(!stage.plain(&["delete", "2"]).contains("already"));
    assert!(!stage.plain(&["delete", "2", "--quiet"]).contains("already"));
    assert!(stage.plain(&["pin", "1", "1"]).contains("MARK 1 entry \"pinned\""));
}

#[test]
fn fit_says_that_it_hides_the_first_message_of_the_user() {
    let stage = shop();
    let note = "the first user message #1 is hidden; `recto undo` and `recto pin 1` keep it";
    assert!(stage.plain(&["fit", "--max-tokens", "80"]).contains(note));
    stage.plain(&["undo"]);
    stage.plain(&["pin", "1"]);
    assert!(!stage.plain(&["fit", "--max-tokens", "100"]).contains("first user message"));
}

#[test]
fn import_counts_the_description_of_the_tools_apart() {
    let stage = Stage::new();
    let request = json!({
        "messages": [{ "role": "user", "content": "hi" }, { "role": "assistant", "content": "hello" }],
        "tools": [{ "type": "function", "function": { "name": "ls", "parameters": { "type": "object" } } }],
    });
    let file = stage.file("run.json", &request.to_string());
    let output = stage.plain(&["import", &file]);
    assert!(output.contains("and a description of 1 tool"), "{output}");
    let cells: Vec<&str> = output.lines().nth(1).unwrap().split_whitespace().take(2).collect();
    assert_eq!(cells, ["run", "2"], "{output}");
    let document = stage.json(&["import", &file]);
    let imported = &document["conversations"][0];
    assert_eq!((&imported["messages"], &imported["tools"]), (&json!(3), &json!(1)));
}

#[test]
fn likely_mistakes_in_arguments_get_a_hint() {
    let stage = shop();
    for (arguments, hint) in [
        (&["undo", "--version", "3"][..], "use `recto rollback --to-version VERSION`"),
        (&["show", "--last", "-1"], "the number has no sign: 1"),
        (&["remove", "-c", "shop"], "the name stands without `-c`: `recto remove NAME`"),
        (&["fit", "--max-tokens", "1k"], "use a whole number, such as 8000"),
        (&["log", "-n", "x"], "use a whole number, such as 8000"),
    ] {
        refused(&stage, arguments, 2, hint);
        let errors = stage.run(arguments).errors;
        assert!(!errors.contains("invalid digit") && !errors.contains("-- -"), "{errors}");
    }
}

#[test]
fn render_reports_a_torn_exchange_once_with_the_rule_behind_the_repair() {
    let stage = shop();
    stage.plain(&["delete", "3"]);
    let ran = stage.run(&["render", "--for", "openai-chat"]);
    let repair = "#2: the call \"c1\" has no result; a marked placeholder stands for the missing result \
                [answered_calls]";
    assert_eq!(ran.errors.matches("#2").count(), 1, "{}", ran.errors);
    assert!(ran.errors.contains(repair), "{}", ran.errors);
    let document = stage.json(&["render", "--for", "openai-chat"]);
    assert_eq!(document["warnings"][0]["code"], "torn_call");
    stage.plain(&["undo"]);
    stage.plain(&["delete", "2"]);
    let errors = stage.run(&["render", "--for", "openai-chat"]).errors;
    assert!(errors.matches("#3").count() == 1 && !errors.contains("RESTORE"), "{errors}");
}
