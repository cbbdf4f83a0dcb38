//! Rules for all commands: names, stores, exit codes, JSON, dry runs, expected versions.

use recto_cli::StreamInfo;
use serde_json::{Value, json};

use crate::commands::{apply_changes, shop};
use crate::stage::Stage;

#[test]
fn a_conversation_is_given_by_name_id_unique_prefix_or_at_sign() {
    let stage = shop();
    stage.plain(&["new", "shopping"]);
    let id = stage.json(&["info", "-c", "shop"])["id"].as_str().unwrap().to_owned();
    let other = stage.json(&["info", "-c", "shopping"])["id"].as_str().unwrap().to_owned();
    let named =
        |given: &str| stage.json(&["info", "-c", given])["name"].as_str().map(str::to_owned);
    assert_eq!(named("shop").unwrap(), "shop");
    assert_eq!(named(&id).unwrap(), "shop");
    assert_eq!(named(&id.to_uppercase()).unwrap(), "shop");
    assert_eq!(named("shopp").unwrap(), "shopping");
    let differ = id.chars().zip(other.chars()).take_while(|(one, two)| one == two).count();
    assert_eq!(named(&other[..=differ]).unwrap(), "shopping");
    assert_eq!(named("@").unwrap(), "shopping");
    stage.plain(&["show", "-c", "shop"]);
    assert_eq!(named("@").unwrap(), "shop");
    // A renamed conversation is still the last one used; a removed one is not.
    stage.plain(&["rename", "@", "renamed"]);
    assert_eq!(named("@").unwrap(), "renamed");
    stage.plain(&["remove", "@", "--yes"]);
    let gone = stage.run(&["show", "--json"]);
    assert_eq!(gone.code, 1);
    assert!(gone.out.contains("no conversation was used"), "{}", gone.out);

    stage.plain(&["new", "shop"]);
    let ambiguous = stage.run(&["info", "-c", "sho", "--json"]);
    assert_eq!(ambiguous.code, 1);
    let error: Value = serde_json::from_str(&ambiguous.out).unwrap();
    assert_eq!(error["error"]["details"]["candidates"], json!(["\"shop\"", "\"shopping\""]));
    assert_eq!(stage.run(&["info", "-c", "nobody"]).code, 1);
    assert_eq!(stage.run(&["info", "-c", ""]).code, 1);
}

#[test]
fn a_new_conversation_in_memory_is_announced_as_gone() {
    let made = Stage::with_store("memory:").run(&["new", "shop"]);
    assert_eq!(made.code, 0, "{made:?}");
    assert!(made.errors.contains("ends with this command"), "{made:?}");
    assert_eq!(Stage::new().run(&["new", "shop"]).errors, "");
}

/// For example in a store that another program has made.
#[test]
fn the_only_conversation_of_a_store_is_the_default() {
    let made = shop();
    let stage = Stage::with_store(made.store.clone());
    assert_eq!(stage.json(&["info"])["name"], "shop");
    made.plain(&["new", "other"]);
    let stage = Stage::with_store(made.store.clone());
    let refused = stage.run(&["info"]);
    assert_eq!(refused.code, 1);
    assert!(refused.errors.contains("`recto list` lists all"), "{refused:?}");
}

#[test]
fn the_warning_about_an_empty_view_names_the_command_that_restores_it() {
    let stage = Stage::new();
    stage.plain(&["new", "empty"]);
    let started = stage.plain(&["batch", "start"]);
    assert!(started.contains("no message is visible\n"), "{started}");
    stage.plain(&["append", "--text", "Hi"]);
    let undone = stage.plain(&["undo"]);
    assert!(undone.contains("no message is visible; `recto redo` restores the view"), "{undone}");
    stage.plain(&["redo"]);
    let cleared = stage.plain(&["clear"]);
    assert!(cleared.contains("no message is visible; `recto undo` restores the view"), "{cleared}");
}

#[test]
fn exit_codes_distinguish_kinds_of_failures() {
    let stage = shop();
    let cases: &[(&[&str], u8, &str)] = &[
        (&["show"], 0, ""),
        (&["delete", "99"], 1, "index_out_of_range"),
        (&["rollback", "--to-version", "99"], 1, "version_not_found"),
        (&["show", "--at", "now-99"], 1, "version_not_found"),
        (&["rollback", "--to-version", "now-99"], 1, "version_not_found"),
        (&["diff", "now-99"], 1, "version_not_found"),
        (&["fork", "other", "--at", "now-99"], 1, "version_not_found"),
        (&["new", "@"], 1, "invalid_operation"),
        (&["new", "0199f3a2-7c1e-7d44-9a5b-3f0e8c2d1b6a"], 1, "invalid_operation"),
        (&["rename", "shop", "@"], 1, "invalid_operation"),
        (&["fork", "@"], 1, "invalid_operation"),
        (&["import", "x.json", "--name", "@"], 1, "invalid_operation"),
        (&["export", "-o", "/nowhere/talk.json"], 2, "usage"),
        (&["export", "-o", "/"], 2, "usage"),
        (&["timeline", "--svg", "/nowhere/plot.svg"], 2, "usage"),
        (&["backup", "/nowhere/copy.db"], 2, "usage"),
        (&["redo"], 1, "nothing_to_redo"),
        (&["new", "shop"], 1, "conversation_exists"),
        (&["show", "-c", "nobody"], 1, "conversation_not_found"),
        (&["append", "--text", ""], 1, "empty_content"),
        (&["append", "--text", "x", "--expect-version", "7"], 1, "version_conflict"),
        (&["apply", "nowhere.json"], 2, "usage"),
        (&["remove", "shop"], 2, "usage"),
        (&["list", "--store", "nonsense"], 2, "invalid_operation"),
        (&["show", "--store", "sqlite:/nowhere/x.db"], 3, "storage"),
        (&["new", "a", "--store", "sqlite:/nowhere/x.db"], 3, "storage"),
        (&["show", "--store", "postgres://127.0.0.1:1/none?connect_timeout=1"], 3, "storage"),
    ];
    for (arguments, code, word) in cases {
        let people = stage.run(arguments);
        assert_eq!(people.code, *code, "{arguments:?} {people:?}");
        let with_json: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        let programs = stage.run(&with_json);
        assert_eq!(programs.code, *code, "{arguments:?}");
        if *code > 0 {
            assert!(people.errors.starts_with("recto: "), "{people:?}");
            assert_eq!(people.out, "");
            assert_eq!(programs.errors, "", "one document says it all");
            let document: Value = serde_json::from_str(&programs.out).unwrap();
            assert_eq!(document["error"]["code"], *word, "{arguments:?}");
        }
    }
    // Errors of clap.
    for arguments in [
        &["show", "--first", "1", "--last", "1"][..],
        &["truncate"],
        &["filter"],
        &["append"],
        &["rollback"],
        &["prune"],
        &["truncate", "--keep-others", "--keep-last", "1"],
        &["delete", "7-3"],
        &["diff", "x", "y"],
        &["show", "--since", "someday"],
        &["truncate", "--keep-last", "-1"],
        &["batch"],
    ] {
        let people = stage.run(arguments);
        assert_eq!((people.code, &*people.out), (2, ""), "{arguments:?}");
        let with_json: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        let programs = stage.run(&with_json);
        assert_eq!((programs.code, &*programs.errors), (2, ""), "{arguments:?}");
        let document: Value = serde_json::from_str(&programs.out).unwrap();
        assert_eq!(document["error"]["code"], "usage", "{arguments:?}");
        let message = document["error"]["message"].as_str().unwrap();
        assert!(message.len() > 10 && !message.contains("Usage:"), "{message}");
    }
    let missing = stage.run(&["--json"]);
    assert_eq!(missing.code, 2);
    assert!(missing.out.starts_with(r#"{"error":{"code":"usage""#), "{missing:?}");
    // `--help` and `help` print help and succeed.
    let help = stage.run(&["show", "--json", "--help"]);
    assert!(help.code == 0 && help.out.contains("Usage:"), "{help:?}");
}

/// The names of all commands, as help lists them.
pub(crate) fn commands() -> Vec<String> {
    let help = Stage::new().plain(&["--help"]);
    let commands: Vec<String> = help
        .lines()
        .skip_while(|line| *line != "Start here:")
        .take_while(|line| *line != "Options:")
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next())
        .map(str::to_owned)
        .collect();
    assert!(commands.len() >= 40, "{commands:?}");
    commands
}

#[test]
fn help_lists_the_commands_by_task_in_all_its_forms() {
    let stage = Stage::new();
    let (long, help, none) = (stage.run(&["--help"]), stage.run(&["help"]), stage.run(&[]));
    assert_eq!((help.code, &help.out), (0, &long.out));
    assert_eq!((none.code, &*none.out), (2, ""), "a command is missing, so this is an error");
    let groups =
        ["Start here", "Look", "Change", "Undo", "Providers", "Maintenance", "Programs", "Options"];
    for text in [&long.out, &none.errors, &stage.run(&["-h"]).out] {
        let places: Vec<usize> =
            groups.iter().map(|group| text.find(&format!("\n{group}:\n")).expect(group)).collect();
        assert!(places.is_sorted(), "{text}");
        assert!(text.contains("  undo            Undo "), "{text}");
    }
}

#[test]
fn a_similar_name_is_suggested() {
    let stage = shop();
    stage.plain(&["new", "Nightly export"]);
    for given in ["nightly", "EXPORT", "Nightly Export"] {
        let ran = stage.run(&["show", "-c", given]);
        assert_eq!(ran.code, 1);
        assert!(ran.errors.contains("did you mean \"Nightly export\"?"), "{}", ran.errors);
    }
    let document = stage.run(&["show", "-c", "HOP", "--json"]);
    let document: Value = serde_json::from_str(&document.out).unwrap();
    assert_eq!(document["error"]["code"], "conversation_not_found");
    assert_eq!(document["error"]["details"]["candidates"], json!(["\"shop\""]));
    assert!(stage.run(&["show", "-c", "nobody"]).errors.contains("recto list"));
}

#[test]
fn every_command_has_json_help_and_examples() {
    for command in commands() {
        let stage = Stage::new();
        let help = match &*command {
            "batch" => stage.plain(&["batch", "start", "--help"]),
            command => stage.plain(&[command, "--help"]),
        };
        assert!(help.contains("--json"), "{command}");
        assert!(
            help.contains("Example") && help.contains(&format!("recto {command}")),
            "{command}: {help}"
        );
        assert!(help.contains("--store"), "{command}");
    }
}

#[test]
fn a_dry_run_changes_nothing_and_prints_the_result_of_the_change() {
    let text = |stage: &Stage| stage.file("text.txt", "So far.");
    let operations: &[&[&str]] = &[
        &["append", "--text", "x"],
        &["insert", "--position", "1", "--text", "x"],
        &["replace", "--position", "1", "--text", "x", "--because", "why not"],
        &["delete", "2"],
        &["compress", "0", "5", "--summary-file", "TEXT"],
        &["truncate", "--keep-last", "2", "--role", "user", "--keep-others"],
        &["filter", "--contains", "eu-1", "--excludes", "ERROR"],
        &["clear", "--drop-system"],
        &["restore", "2"],
        &["fit", "--max-tokens", "80"],
        &["batch", "start", "--boundary", "3"],
        &["batch", "end", "0", "--carry", "all"],
        &["rollback", "--to-batch", "0"],
        &["undo"],
        &["mark", "x", "0-2"],
        &["unmark", "pinned", "1"],
    ];
    for operation in operations {
        let stage = shop();
        apply_changes(&stage);
        stage.plain(&["unmark", "pinned", "1"]);
        let summary = text(&stage);
        let operation: Vec<&str> =
            operation.iter().map(|word| if *word == "TEXT" { &*summary } else { word }).collect();
        let versions = |stage: &Stage| stage.json(&["log"])["versions"].as_array().unwrap().len();
        let before = (versions(&stage), stage.plain(&["show", "--all"]));
        let mut dry = operation.clone();
        dry.push("--dry-run");
        let mut preview = stage.json(&dry);
        assert_eq!((versions(&stage), stage.plain(&["show", "--all"])), before, "{operation:?}");
        assert_eq!(preview["dryRun"], true);
        assert!(preview["diff"].is_object() && preview["cachePlan"]["reused"].is_object());
        let done = stage.json(&operation);
        preview.as_object_mut().unwrap().shift_remove("diff");
        preview["dryRun"] = false.into();
        // The cache plan is that of `cache-plan` for the two versions.
        let planned = stage.json(&["cache-plan", "now-1", "now"]);
        let plan = preview["cachePlan"].as_object_mut().unwrap();
        for field in [
            "for",
            "pricesOf",
            "firstDifference",
            "cachedTokens",
            "newTokens",
            "oldTokens",
            "costNow",
            "savedATurn",
            "paysOffAfter",
        ] {
            assert_eq!(
                plan.shift_remove(field),
                Some(planned[field].clone()),
                "{operation:?} {field}"
            );
        }
        assert_eq!(done, preview, "{operation:?}");
    }
}

#[test]
fn operations_as_json_are_applied_in_all_three_forms_as_one_version() {
    let stage = shop();
    let apply = |text: &str| {
        let ran = stage.perform(&["apply", "-", "--json"], text, StreamInfo::default());
        (ran.code, serde_json::from_str::<Value>(&ran.out).unwrap())
    };
    let (_, list) = apply(
        r#"[{"operation": "DELETE", "indices": [2]}, {"operation": "delete", "indices": [3]}]"#,
    );
    assert_eq!((&list["version"], &list["hidden"]), (&json!(2), &json!([2, 3])));
    assert_eq!(apply(r#"{"operation": "truncate", "truncate": {"keepLast": 1}}"#).1["version"], 3);
    assert_eq!(apply(r#"{"op": {"operation": "UNDO"}}"#).1["version"], 4);
    let (code, refused) = apply(r#"{"ops": [{"operation": "UNDO"}, {"operation": "UNDO"}]}"#);
    assert_eq!((code, &refused["error"]["field"]), (1, &json!("ops[0]")));
    let (_, kept) = apply(r#"{"operation": "CLEAR", "description": "from the file"}"#);
    assert_eq!(kept["version"], 5);
    assert_eq!(stage.json(&["log", "-n", "1"])["versions"][0]["description"], "from the file");
    let key = &["append", "--text", "once", "--key", "k"];
    assert_eq!(stage.json(key), stage.json(key));
    assert_eq!(stage.json(&["info"])["version"], 6);
}

#[test]
fn the_store_is_that_of_the_option_the_variable_or_the_data_folder() {
    let stage = shop();
    let other = format!("sqlite:{}", stage.folder.path().join("other.db").display());
    stage.plain(&["new", "elsewhere", "--store", &other]);
    let names = |arguments: &[&str]| {
        let list = stage.json(arguments);
        list["conversations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&["list"]), ["shop"]);
    assert_eq!(names(&["list", "--store", &other]), ["elsewhere"]);
    // The last conversation used is stored for each store separately.
    assert_eq!(stage.json(&["info", "--store", &other])["name"], "elsewhere");
    assert_eq!(stage.json(&["info"])["name"], "shop");

    let at_home = Stage::with_store("");
    let begin = "`recto new NAME` creates one, `recto import FILE` imports one";
    assert_eq!(at_home.plain(&["list"]), format!("no conversations yet; {begin}\n"));
    assert_eq!(at_home.run(&["show", "-c", "x"]).code, 3);
    assert!(!at_home.folder.path().join("recto").exists(), "a read creates no file");
    at_home.plain(&["new", "mine"]);
    assert!(at_home.folder.path().join("recto/store.db").exists());
    assert_eq!(at_home.json(&["info"])["name"], "mine");
}

#[test]
fn tools_are_set_and_removed() {
    let stage = shop();
    let tools = stage.file("tools.json", r#"[{"name": "ls", "description": "lists", "more": 1}]"#);
    let set = stage.json(&["settings", "--tools", &tools]);
    assert_eq!((&set["version"], &set["tools"][0]["more"]), (&json!(2), &json!(1)));
    assert!(stage.plain(&["show", "--last", "1"]).contains("ls: lists"));
    assert_eq!(
        stage.json(&["settings", "--no-tools", "--expect-version", "2"])["tools"],
        json!([])
    );
    assert_eq!(stage.run(&["settings", "--no-tools", "--expect-version", "2"]).code, 1);
}

#[test]
fn limits_and_compression_are_set_and_removed() {
    let stage = shop();
    let compress =
        ["--compress-over", "800", "--compress-to", "400", "--compress-with", "keepRecent"];
    let set = stage.json(&[&["settings", "--token-limit", "900"][..], &compress].concat());
    assert_eq!(set["tokenLimit"], 900);
    let expected = json!({ "enabled": true, "threshold": 800, "targetTokens": 400, "strategy": "keep-recent" });
    assert_eq!(set["compression"], expected);
    assert_eq!(set.get("version"), None, "it is no version");
    let less = stage.json(&["settings", "--no-compression"]);
    assert_eq!((&less["tokenLimit"], less.get("compression")), (&json!(900), None));
    assert_eq!(stage.json(&["settings", "--no-token-limit"]).get("tokenLimit"), None);
    let with = |to: &str, strategy: &str| {
        let numbers = ["--compress-over", "10", "--compress-to", to];
        stage.run(&[&["settings"], &numbers[..], &["--compress-with", strategy]].concat())
    };
    assert_eq!(with("20", "summarise").code, 1);
    assert_eq!(stage.run(&["settings", "--compress-over", "1"]).code, 2);
    // Only existing strategies are accepted, and the error lists them.
    for nonsense in ["foo", "keep-recent,foo", ""] {
        let refused = with("5", nonsense);
        assert_eq!(refused.code, 2, "{refused:?}");
        for known in recto_agent::Strategy::NAMES {
            assert!(refused.errors.contains(known), "{refused:?}");
        }
    }
    assert_eq!(stage.json(&["settings"]).get("compression"), None);
    assert_eq!(with("5", "clear-tool-results,summarise").code, 0);
    let new = |name: &str, to: &str, strategy: &str| {
        let numbers = ["--compress-over", "800", "--compress-to", to, "--compress-with", strategy];
        stage.run(&[&["new", name, "--token-limit", "900"], &numbers[..]].concat()).code
    };
    assert_eq!((new("never", "400", "foo"), new("never", "900", "keep-recent")), (2, 1));
    assert_eq!(stage.run(&["info", "-c", "never"]).code, 1);
    assert_eq!(new("limited", "400", "keep_recent"), 0);
    let made = stage.json(&["settings"]);
    assert_eq!((&made["tokenLimit"], &made["compression"]), (&json!(900), &expected));
    let mut nonsense = expected.clone();
    nonsense["strategy"] = "foo".into();
    let refused = json!({ "create": "never", "settings": { "compression": nonsense } });
    let error = stage.exec(&[refused]).remove(0)["error"].clone();
    assert_eq!(
        (&error["code"], &error["field"]),
        (&json!("invalid_operation"), &json!("settings.compression.strategy"))
    );
    assert!(error["message"].as_str().unwrap().contains("sliding-window"), "{error}");

    let request =
        json!({ "create": "made", "settings": { "tokenLimit": 800, "compression": expected } });
    stage.exec(&[request]);
    assert_eq!(stage.json(&["settings", "-c", "made"])["tokenLimit"], 800);
    // A request is never longer than the limit, so it never reaches a higher threshold.
    let limit = stage.run(&["settings", "--token-limit", "799", "-c", "made"]);
    assert!(limit.code == 1 && limit.errors.contains("above the token limit of 799"), "{limit:?}");
    let limit = json!({ "conversation": "made", "settings": { "tokenLimit": 799 } });
    let error = stage.exec(&[limit]).remove(0)["error"].clone();
    assert_eq!(
        (&error["code"], &error["field"]),
        (&json!("invalid_operation"), &json!("settings.compression.threshold"))
    );
    assert_eq!(stage.json(&["settings", "-c", "made"])["tokenLimit"], 800);
    let set = stage.plain(&["settings", "--token-limit", "801", "-c", "made"]);
    assert!(set.starts_with("conversation made\n"), "{set}");
    let refused = json!({ "create": "never", "settings": { "tokenLimit": "7" } });
    assert_eq!(stage.exec(&[refused])[0]["error"]["code"], "invalid_operation");
    assert_eq!(stage.run(&["info", "-c", "never"]).code, 1);
}

#[test]
fn destructive_commands_have_a_dry_run_and_an_expected_version() {
    let stage = shop();
    apply_changes(&stage);
    stage.plain(&["fork", "what-if", "--at", "1"]);
    stage.plain(&["show", "-c", "shop"]);
    let state = |stage: &Stage| {
        (stage.plain(&["list"]), stage.plain(&["show", "--all"]), stage.plain(&["settings"]))
    };
    let tools = stage.file("tools.json", r#"[{"name": "ls", "description": "lists"}]"#);
    let before = state(&stage);
    let careful: &[&[&str]] = &[
        &["prune", "--keep-versions", "1", "-c", "shop"],
        &["erase", "0", "3", "-c", "shop"],
        &["remove", "shop"],
        &["settings", "--tools", &tools, "--token-limit", "9", "-c", "shop"],
    ];
    for command in careful {
        let with = |more: &[&str]| stage.run(&[command, more].concat());
        let shown = with(&["--dry-run", "--json"]);
        assert_eq!(shown.code, 0, "{command:?} {shown:?}");
        let document: Value = serde_json::from_str(&shown.out).unwrap();
        assert_eq!(document["dryRun"], true, "{document}");
        let yes: &[&str] = if command[0] == "settings" { &[] } else { &["--yes"] };
        for words in [&["--dry-run"], yes] {
            let refused = with(&[words, &["--expect-version", "3"]].concat());
            assert_eq!(refused.code, 1, "{command:?} {refused:?}");
        }
        assert_eq!(state(&stage), before, "{command:?}");
    }
    let would = |arguments: &[&str]| stage.json(&[arguments, &["--dry-run"]].concat());
    assert_eq!(would(careful[0])["entries"], json!([7]), "what a fork shows is kept");
    let erased = would(careful[1]);
    assert_eq!(erased["entries"][1]["index"], 3);
    assert!(erased["cachePlan"]["newTokens"].as_u64().unwrap() > 0, "{erased}");
    assert_eq!(would(careful[2])["forks"], json!(["what-if"]));
    let set = would(careful[3]);
    assert_eq!((&set["tokenLimit"], &set["tools"][0]["name"]), (&json!(9), &json!("ls")));
    assert_eq!(set["change"]["version"], 9);
    // Tools are at the start of a request.
    assert_eq!(set["change"]["cachePlan"]["cachedTokens"], 0);
    assert_eq!(would(&["rename", "shop", "other"])["to"], "other");
    assert_eq!(stage.run(&["rename", "shop", "what-if", "--dry-run"]).code, 1);
    assert_eq!(state(&stage), before);
    // The change has the result of the dry run.
    let pruned = stage.json(&[careful[0], &["--yes", "--expect-version", "8"]].concat());
    assert_eq!((&pruned["entries"], &pruned["dryRun"]), (&json!([7]), &json!(false)));
    stage.json(&[careful[1], &["--yes", "--expect-version", "8"]].concat());
    stage.json(&[careful[2], &["--yes", "--expect-version", "8"]].concat());
}

#[test]
fn removing_tools_hides_their_description() {
    let stage = Stage::new();
    let tools = stage.file("tools.json", r#"[{"name":"look","description":"reads the logs"}]"#);
    stage.plain(&["new", "shop", "--tools", &tools]);
    stage.plain(&["append", "--text", "Hi"]);
    assert!(stage.plain(&["render", "--quiet"]).contains("reads the logs"));
    stage.plain(&["settings", "--no-tools"]);
    assert!(!stage.plain(&["render", "--quiet"]).contains("reads the logs"));
    assert_eq!(stage.json(&["info"])["stats"]["currentBatchMessages"], 1);
    stage.plain(&["undo"]);
    assert!(stage.plain(&["render", "--quiet"]).contains("reads the logs"));
}

#[test]
fn error_messages_name_commands_and_options() {
    let stage = shop();
    stage.plain(&["mark", "pinned", "0"]);
    stage.plain(&["delete", "1"]);
    for (arguments, advice) in [
        (&["delete", "0"][..], "`recto unpin 0`"),
        (&["fit", "--max-tokens", "1"], "--drop-system"),
        (&["show", "-c", "nobody"], "`recto list`"),
        (&["new", "shop"], "`recto rename`"),
        (&["redo"], "`recto undo`"),
        (&["append", "--text", "a", "--expect-version", "99"], "`recto log`"),
        (&["compress", "1", "--summary", "a"], "`recto show`"),
    ] {
        let people = stage.run(arguments);
        assert_eq!(people.code, 1, "{arguments:?}");
        assert!(people.errors.contains(advice), "{people:?}");
        let with_json: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        assert!(stage.run(&with_json).out.contains(advice), "{arguments:?}");
    }
    // Errors in JSON name fields and operations instead.
    let answers = stage.exec(&[
        json!({ "conversation": "shop", "op": { "operation": "DELETE", "indices": [0] } }),
        json!({ "conversation": "shop", "peek": true }),
    ]);
    let message = |answer: &Value| answer["error"]["message"].as_str().unwrap().to_owned();
    assert!(message(&answers[0]).contains("UNMARK"), "{answers:?}");
    for question in ["op", "ops", "ask", "markMap", "snapshot", "diff", "render", "lint"] {
        assert!(message(&answers[1]).contains(question), "{answers:?}");
    }
}

#[test]
fn a_conversation_without_the_option_c_gets_a_hint() {
    let stage = shop();
    for command in ["show", "log", "info", "undo"] {
        let ran = stage.run(&[command, "shop"]);
        assert_eq!(ran.code, 2);
        assert!(ran.errors.contains("`-c shop`"), "{}", ran.errors);
    }
    assert!(stage.run(&["show", "shop", "--json"]).out.contains("`-c shop`"));
    assert!(!stage.run(&["list", "shop"]).errors.contains("-c shop"));
    assert!(!stage.run(&["show", "--shop"]).errors.contains("-c --shop"));
    assert!(stage.run(&["delete", "shop"]).errors.contains("`-c shop`"));
    for (command, hint) in [
        (&["fit", "800"][..], "`--max-tokens 800`"),
        (&["rollback", "v1"], "`--to-version v1`"),
        (&["log", "5"], "`-n 5`"),
        (&["truncate", "5"], "`--keep-last 5`"),
        (&["append", "hello"], "`--text 'hello'`"),
        (&["show", "--version", "2"], "use `--at VERSION`"),
        (&["show", "--for", "anthropic"], "`recto render --for PROVIDER`"),
        (&["delete", "1,2"], "separate entries by spaces: `1 2`"),
        (&["mark", "1", "foo"], "the mark precedes the entries: `recto mark foo ENTRIES`"),
    ] {
        let ran = stage.run(command);
        assert!(ran.code == 2 && ran.errors.contains(hint), "{command:?} {}", ran.errors);
        assert!(!ran.errors.contains("-c "), "{command:?} {}", ran.errors);
    }
    assert!(!stage.run(&["append"]).errors.contains("--format"), "a format is no message");
}

#[test]
fn log_and_changes_print_operation_and_reason() {
    let stage = shop();
    let done = stage.plain(&["delete", "1", "--because", "noise"]);
    assert!(done.starts_with("v2 of shop: DELETE 1 entry · noise\n"), "{done}");
    let both = r#"[{"operation":"DELETE","indices":[2],"description":"noise"},{"operation":"DELETE","indices":[3],"description":"noise"}]"#;
    let file = stage.file("both.json", both);
    stage.plain(&["apply", &file]);
    let log = stage.plain(&["log"]);
    assert!(log.contains("LIST · noise  ("), "{log}");
    assert!(log.contains("DELETE 1 entry · noise  ("), "{log}");
}

#[test]
fn info_reports_a_view_over_the_limit() {
    let stage = shop();
    let tokens = stage.json(&["info"])["stats"]["tokens"].as_u64().unwrap();
    assert!(!stage.plain(&["info"]).contains("limit"));
    stage.plain(&["settings", "--token-limit", &tokens.to_string()]);
    let info = stage.plain(&["info"]);
    assert!(info.contains("limit    ") && !info.contains("over it"), "{info}");
    stage.plain(&["settings", "--token-limit", &(tokens - 7).to_string()]);
    let info = stage.plain(&["info"]);
    assert!(info.contains("the view is 7 over it"), "{info}");
    assert_eq!(stage.json(&["info"])["tokenLimit"], tokens - 7);
}

#[test]
fn a_backup_never_overwrites_a_file_and_a_damaged_one_creates_no_store() {
    let stage = shop();
    let copy = stage.folder.path().join("copy.db").display().to_string();
    stage.plain(&["backup", &copy]);
    let before = std::fs::read(&copy).unwrap();
    let again = stage.run(&["backup", &copy]);
    assert_eq!(again.code, 2);
    assert!(again.errors.contains("choose a new name"), "{again:?}");
    assert_eq!(std::fs::read(&copy).unwrap(), before);

    let damaged = stage.folder.path().join("damaged.db");
    std::fs::write(&damaged, &before[..3_000]).unwrap();
    let damaged = damaged.display().to_string();
    let new = stage.folder.path().join("new.db");
    let store = format!("sqlite:{}", new.display());
    assert_eq!(stage.run(&["restore-backup", &damaged, "--store", &store]).code, 3);
    assert!(!new.exists());
    // An existing store is kept, and an undamaged backup is restored.
    assert_eq!(stage.run(&["restore-backup", &damaged]).code, 3);
    assert_eq!(stage.json(&["info"])["name"], "shop");
    stage.plain(&["restore-backup", &copy, "--store", &store]);
    assert!(new.exists());
}
