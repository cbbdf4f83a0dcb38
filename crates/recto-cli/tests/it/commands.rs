//! The output of every command, on a terminal and in a pipe.

use serde_json::json;

use crate::stage::Stage;

/// A stage with a conversation in which an agent looks into a failing checkout.
pub(crate) fn shop() -> Stage {
    let stage = Stage::new();
    let messages = [
        json!({ "role": "system", "content": "You are on call for a web shop.", "timestamp": 1000 }),
        json!({ "role": "user", "content": "Find out why checkout fails.\nNever restart eu-1!", "timestamp": 2000 }),
        json!({ "role": "assistant", "timestamp": 3000, "content": [
            { "type": "tool_use", "id": "c1", "name": "read_logs", "input": { "service": "checkout" } }] }),
        json!({ "role": "tool", "timestamp": 4000, "content": [
            { "type": "tool_result", "tool_use_id": "c1", "content": "08:02 eu-1 ERROR no answer\n".repeat(6) }] }),
        json!({ "role": "assistant", "content": "The gateway times out since release 4.2.", "timestamp": 5000 }),
        json!({ "role": "user", "content": [{ "type": "text", "text": "This one?" }, { "type": "image", "source": {} }], "timestamp": 6000 }),
    ];
    let lines: Vec<String> = messages.iter().map(ToString::to_string).collect();
    let file = stage.file("messages.jsonl", &lines.join("\n"));
    stage.plain(&["new", "shop", "--counter", "approx", "--media-tokens", "50"]);
    stage.plain(&["append", "--messages", &file]);
    stage
}

/// Makes versions 2 to 8: a DELETE that is undone, a summary, and a batch that is rolled back.
pub(crate) fn apply_changes(stage: &Stage) {
    for command in [
        &["delete", "2"][..],
        &["undo"],
        &["mark", "pinned", "1"],
        &[
            "compress",
            "2-4",
            "--summary",
            "So far: release 4.2 is to blame.",
            "--because",
            "the cause is found",
        ],
        &["batch", "start", "--because", "let the agent try"],
        &["append", "--role", "assistant", "--text", "I restart eu-1."],
        &["rollback", "--to-batch", "1"],
    ] {
        stage.plain(command);
    }
}

/// Replaces texts that differ between runs: times of versions, ids and hashes.
pub(crate) fn normalized(text: &str, stage: &Stage) -> String {
    let text = text.replace(&stage.folder.path().display().to_string(), "FOLDER");
    let mut normalized = String::new();
    let mut rest = &*text;
    while let Some(first) = rest.chars().next() {
        let is_hex = |text: &str| text.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        let bounded = |len: usize| {
            rest.get(..len).filter(|_| !rest[len..].starts_with(|c: char| c.is_ascii_hexdigit()))
        };
        if bounded(64).is_some_and(|text| is_hex(text) && !text.contains('-')) {
            normalized.push_str("HASH");
            rest = &rest[64..];
        } else if bounded(36).is_some_and(|text| is_hex(text) && text.matches('-').count() == 4) {
            normalized.push_str("ID");
            rest = &rest[36..];
        } else if bounded(16)
            .is_some_and(|text| shape(text) == "9999-99-99 99:99" && !text.starts_with("1970"))
        {
            normalized.push_str("YYYY-MM-DD HH:MM");
            rest = &rest[16..];
        } else if rest.get(..10).is_some_and(|text| shape(text) == "9999-99-99")
            && rest[10..].starts_with(" …")
        {
            // Cut at the edge of the terminal.
            normalized.push_str("YYYY-MM-DD");
            rest = &rest[10..];
        } else if bounded(13).is_some_and(|text| shape(text) == "9999999999999") {
            normalized.push_str("TIME");
            rest = &rest[13..];
        } else {
            normalized.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    normalized
}

fn shape(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_digit() { '9' } else { c }).collect()
}

/// The output of a command in a pipe and on a terminal, with visible escape characters.
fn both(stage: &Stage, arguments: &[&str]) -> String {
    let plain = stage.plain(arguments);
    let terminal = stage.terminal(arguments);
    // A terminal cuts lines, except for whole messages and for reasons.
    let is_whole = arguments.contains(&"--full") || arguments[0] == "blame";
    for line in anstream::adapter::strip_str(&terminal).to_string().lines() {
        assert!(line.chars().count() <= 80 || is_whole, "{line}");
    }
    assert!(!plain.contains('\u{1b}'), "{plain}");
    let text = format!(
        "$ recto {}\n{plain}\n$ recto {} # on a terminal\n{}",
        arguments.join(" "),
        arguments.join(" "),
        terminal.replace('\u{1b}', "␛")
    );
    normalized(&text, stage)
}

macro_rules! reads {
    ($($name:ident: $($argument:expr),*;)*) => {
        $(#[test]
        fn $name() {
            let stage = shop();
            apply_changes(&stage);
            insta::assert_snapshot!(both(&stage, &[$($argument),*]));
        })*
    };
}

reads! {
    list_shows_every_conversation: "list";
    info_shows_the_sizes: "info";
    settings_are_shown: "settings";
    show_lists_what_the_model_reads: "show";
    show_all_lists_hidden_messages_too: "show", "--all";
    show_full_prints_whole_messages: "show", "--full", "--role", "user";
    show_at_a_version_shows_its_view: "show", "--at", "v2";
    show_highlights_the_searched_text: "show", "--all", "--contains", "release";
    log_draws_batches_and_branches: "log";
    log_can_be_short: "log", "-n", "2";
    diff_shows_both_sides: "diff", "1", "now";
    blame_shows_the_reason: "blame", "2";
    tokens_show_where_the_budget_goes: "tokens", "--largest", "2";
    tokens_at_a_version_are_those_of_its_view: "tokens", "--at", "1", "--largest", "1";
    grep_finds_texts: "grep", "eu-1", "--all";
    grep_finds_texts_in_any_case: "grep", "-i", "ERROR", "--at", "v1";
    grep_everywhere_finds_words: "grep", "--everywhere", "gateway release";
    search_finds_words_in_any_case: "search", "Gateway release";
    timeline_plots_tokens: "timeline";
    markmap_shows_entries_and_batches: "markmap";
    markmap_at_a_version_is_that_of_its_view: "markmap", "--at", "now-2";
    snapshot_shows_a_batch: "snapshot", "0";
    verify_reads_everything: "verify";
    a_dry_run_shows_the_difference_and_the_cache: "fit", "--max-tokens", "80", "--drop-system", "--dry-run";
    a_dry_run_of_a_prune_changes_nothing: "prune", "--keep-versions", "1", "--dry-run";
    a_dry_run_of_an_erasure_changes_nothing: "erase", "1", "3", "--dry-run", "--for", "openai-chat";
    a_dry_run_of_a_removal_changes_nothing: "remove", "shop", "--dry-run";
    a_dry_run_of_a_rename_changes_nothing: "rename", "shop", "store", "--dry-run";
    a_dry_run_of_settings_changes_nothing: "settings", "--no-tools", "--token-limit", "900", "--dry-run";
}

/// Tests of commands that change the store, so each form of the output needs its own store.
macro_rules! changes {
    ($($name:ident: $($argument:expr),*;)*) => {
        $(#[test]
        fn $name() {
            let (stage, other) = (shop(), shop());
            apply_changes(&stage);
            apply_changes(&other);
            let arguments = &[$($argument),*];
            let plain = normalized(&stage.plain(arguments), &stage);
            let terminal = normalized(&other.terminal(arguments), &other).replace('\u{1b}', "␛");
            let command = arguments.join(" ");
            insta::assert_snapshot!(
                format!("$ recto {command}\n{plain}\n$ recto {command} # on a terminal\n{terminal}"));
        })*
    };
}

changes! {
    new_creates: "new", "other", "--counter", "approx";
    rename_renames: "rename", "shop", "store";
    remove_removes: "remove", "shop", "--yes";
    fork_forks: "fork", "what-if", "--at", "now-4";
    append_adds: "append", "--text", "Well?";
    insert_adds_at_a_position: "insert", "--position", "0", "--role", "system", "--text", "Be brief.";
    replace_replaces: "replace", "--position", "2", "--role", "assistant", "--text", "Yes.";
    delete_hides: "delete", "5";
    compress_hides_behind_a_summary: "compress", "0", "5", "--summary", "All is well.";
    truncate_keeps_a_range: "truncate", "--keep-last", "1";
    filter_keeps_what_matches: "filter", "--role", "system";
    clear_keeps_system_messages: "clear";
    restore_shows_again: "restore", "2-3";
    fit_keeps_what_fits: "fit", "--max-tokens", "80", "--drop-system";
    arrange_shows_exactly_these: "arrange", "5", "1";
    fit_of_a_view_that_fits_changes_nothing: "fit", "--max-tokens", "5000";
    batch_start_opens: "batch", "start";
    batch_end_returns_to_a_batch: "batch", "end", "0";
    rollback_returns_to_a_version: "rollback", "--to-version", "1";
    undo_reverts: "undo";
    mark_labels: "mark", "important", "0", "5";
    unmark_removes_the_mark: "unmark", "pinned", "1";
    pin_keeps_visible: "pin", "0";
    unpin_removes_the_pin: "unpin", "1";
    prune_overwrites: "prune", "--keep-versions", "1", "--yes";
    erase_overwrites: "erase", "3", "--yes";
}

#[test]
fn backups_are_made_and_restored() {
    let stage = shop();
    let file = stage.folder.path().join("monday.db").display().to_string();
    let made = stage.plain(&["backup", &file]);
    assert!(made.contains("copied the store to") && made.contains("kB"), "{made}");
    let again = stage.run(&["backup", &file]);
    assert_eq!(again.code, 2, "{}", again.errors);
    let fresh = Stage::new();
    assert_eq!(
        fresh.plain(&["restore-backup", &file]),
        "1 conversation with 6 messages restored\n"
    );
    // The second restore finds every conversation already restored.
    let again = fresh.json(&["restore-backup", &file]);
    assert_eq!((&again["conversations"], &again["alreadyThere"]), (&json!(0), &json!(1)));
    // Another conversation of the same name.
    let other = Stage::new();
    other.plain(&["new", "shop"]);
    let refused = other.run(&["restore-backup", &file, "--json"]);
    assert_eq!(refused.code, 1);
    assert!(refused.out.contains("conversation_exists"));
    assert_eq!(fresh.run(&["restore-backup", "nowhere.db"]).code, 2);
    let shown = |stage: &Stage| stage.plain(&["show", "-c", "shop"]);
    assert_eq!(shown(&fresh), shown(&stage));
}

#[test]
fn doctor_reports_problems_and_advice() {
    let stage = shop();
    let well = stage.plain(&["doctor"]);
    for line in ["no row is damaged", "1 conversation, 6 messages", "(RECTO_STORE)"] {
        assert!(well.contains(line), "{well}");
    }
    stage.plain(&["delete", "2"]);
    assert!(stage.plain(&["doctor"]).contains("! conversation shop: #3 these tool results"));
    let file = stage.folder.path().join("recto.db");
    let mut bytes = std::fs::read(&file).unwrap();
    // Flips one bit in every page except the first.
    for page in bytes.chunks_mut(4096).skip(1) {
        page[4_090] ^= 4;
    }
    std::fs::write(&file, bytes).unwrap();
    let ill = stage.run(&["doctor"]);
    assert_eq!(ill.code, 3, "{}", ill.out);
    assert!(ill.out.contains('✗'), "{}", ill.out);
    let document = stage.run(&["doctor", "--json"]);
    assert_eq!(document.code, 3);
    let document: serde_json::Value = serde_json::from_str(&document.out).unwrap();
    assert_eq!(document["well"], false);
    assert_eq!(stage.run(&["verify"]).code, 3);
}

#[test]
fn doctor_finds_changed_words_of_the_search_index() {
    let stage = Stage::new();
    stage.plain(&["new", "fruit"]);
    stage.plain(&["append", "--text", "Cherry! Zebra!"]);
    assert!(stage.plain(&["doctor"]).contains("it has an index"));
    let file = stage.folder.path().join("recto.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let (words, changed) = (b"cherry zebra", b"cherrx zebra");
    let at = bytes.windows(words.len()).position(|part| part == words).unwrap();
    bytes[at..at + words.len()].copy_from_slice(changed);
    std::fs::write(&file, bytes).unwrap();
    let ill = stage.run(&["doctor"]);
    assert_eq!(ill.code, 3, "{}", ill.out);
    for part in ["search index lacks words", "recto clean", "no row is damaged"] {
        assert!(ill.out.contains(part), "{}", ill.out);
    }
    stage.plain(&["clean"]);
    assert!(stage.plain(&["doctor"]).contains("it has an index"));
}

/// A store with a damaged conversation and a sound one.
fn damaged() -> Stage {
    let stage = Stage::new();
    for name in ["bad", "good"] {
        stage.plain(&["new", name]);
        for number in 0..5 {
            let text = format!("{name} says {number} loudly");
            stage.plain(&["append", "-c", name, "--text", &text]);
        }
    }
    let file = stage.folder.path().join("recto.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let text = b"bad says 3 loudly";
    let at = bytes.windows(text.len()).position(|found| found == text).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    stage
}

#[test]
fn a_damaged_conversation_is_reported_and_the_others_are_saved() {
    let stage = damaged();
    let verified = stage.run(&["verify", "--json"]);
    assert_eq!(verified.code, 3);
    let verified: serde_json::Value = serde_json::from_str(&verified.out).unwrap();
    assert_eq!(verified["sound"], false);
    let sound = |at: usize| &verified["conversations"][at]["sound"];
    assert_eq!((sound(0), sound(1)), (&json!(false), &json!(true)));
    assert!(!verified["store"].as_array().unwrap().is_empty());
    assert_eq!(stage.run(&["verify", "bad"]).code, 3);

    let copy = stage.folder.path().join("copy.db").display().to_string();
    assert_eq!(stage.run(&["backup", &copy]).code, 3);
    assert!(!std::path::Path::new(&copy).exists());
    let copied = stage.run(&["backup", &copy, "--keep-going", "--json"]);
    assert_eq!(copied.code, 3);
    assert!(copied.out.contains("damage"), "{copied:?}");
    let fresh = Stage::new();
    let restored = fresh.run(&["restore-backup", &copy, "--json"]);
    assert_eq!(restored.code, 3);
    let restored: serde_json::Value = serde_json::from_str(&restored.out).unwrap();
    assert_eq!(restored["conversations"], 1);
    assert_eq!(restored["damaged"][0]["name"], "bad");
    assert!(fresh.plain(&["show", "-c", "good"]).contains("good says 4 loudly"));

    // Versions before the damage can be read.
    assert_eq!(stage.run(&["show", "-c", "bad"]).code, 3);
    let earlier = stage.plain(&["show", "-c", "bad", "--at", "3"]);
    assert!(earlier.contains("bad says 2 loudly"), "{earlier}");
    stage.plain(&["fork", "before", "-c", "bad", "--at", "3"]);

    let salvaged = stage.json(&["salvage", "bad", "--to", "rescued"]);
    assert_eq!(salvaged["messages"], 4);
    assert_eq!(salvaged["missingMessages"], json!([3]));
    let rescued = stage.plain(&["show", "-c", "rescued"]);
    assert!(rescued.contains("bad says 4 loudly"), "{rescued}");
    let other = format!("sqlite:{}", stage.folder.path().join("other.db").display());
    stage.plain(&["salvage", "bad", "--to", "bad", "--into", &other]);
    let rescued = stage.plain(&["show", "-c", "bad", "--store", &other]);
    assert!(rescued.contains("bad says 4 loudly"), "{rescued}");
}

#[test]
fn erasing_in_a_damaged_conversation_says_what_to_do() {
    let stage = damaged();
    let refused = stage.run(&["erase", "1", "-c", "bad", "--yes"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.errors.contains("salvage the conversation, erase in the copy"), "{refused:?}");
}

#[test]
fn clean_builds_damaged_indexes_again() {
    let stage = Stage::new();
    for name in ["a", "b"] {
        stage.plain(&["new", name]);
        stage.plain(&["append", "-c", name, "--text", "lemonade"]);
    }
    let file = stage.folder.path().join("recto.db");
    let mut bytes = std::fs::read(&file).unwrap();
    // In the message the word is in quotes, in the search index it is not.
    let is_indexed = |found: &[u8]| found[0] != b'"' && &found[1..] == b"lemonade";
    let at = bytes.windows(9).position(is_indexed).unwrap();
    bytes[at + 1] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let verified = stage.run(&["verify"]);
    assert_eq!(verified.code, 3, "{verified:?}");
    assert!(verified.errors.contains("build its indexes again with `recto clean`"), "{verified:?}");
    stage.plain(&["clean"]);
    assert_eq!(stage.run(&["verify"]).code, 0);
    assert!(stage.plain(&["grep", "lemonade", "-c", "a"]).contains("lemonade"));
}

#[test]
fn removed_text_is_not_in_the_file() {
    let stage = Stage::new();
    stage.plain(&["new", "a"]);
    stage.plain(&["new", "b"]);
    for number in 0..150 {
        let text = format!("quitesecretmarker {number}");
        stage.plain(&["append", "-c", "a", "--text", &text]);
    }
    let traces = || {
        let files = std::fs::read_dir(stage.folder.path()).unwrap();
        let files = files.map(|file| file.unwrap().path()).filter(|file| file.is_file());
        let is_there = |bytes: Vec<u8>| {
            bytes.windows(17).filter(|found| *found == b"quitesecretmarker").count()
        };
        files.map(|file| is_there(std::fs::read(file).unwrap())).sum::<usize>()
    };
    assert!(traces() > 0);
    stage.plain(&["remove", "a", "--yes"]);
    assert_eq!(traces(), 0);
    let before = std::fs::metadata(stage.folder.path().join("recto.db")).unwrap().len();
    stage.plain(&["clean"]);
    let after = std::fs::metadata(stage.folder.path().join("recto.db")).unwrap().len();
    assert!(after < before, "{after} {before}");
}

#[cfg(unix)]
#[test]
fn files_with_messages_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let stage = shop();
    let file = |name: &str| stage.folder.path().join(name);
    let (copy, export) = (file("copy.db"), file("export.json"));
    stage.plain(&["backup", &copy.display().to_string()]);
    stage.plain(&["export", "--output", &export.display().to_string()]);
    for file in [file("recto.db"), copy, export] {
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
}

#[test]
fn a_timeline_is_written_as_svg() {
    let stage = shop();
    apply_changes(&stage);
    let file = stage.folder.path().join("budget.svg").display().to_string();
    assert_eq!(stage.plain(&["timeline", "--svg", &file]), format!("9 versions drawn in {file}\n"));
    let svg = std::fs::read_to_string(&file).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("v5 COMPRESS: compressed, batch 1"), "{svg}");
    assert_eq!(stage.plain(&["timeline", "--svg", "-"]), svg);
}
