//! Names, numbers, options and commands that a new user tries: they work, or the error names the correct form.

use recto_cli::StreamInfo;
use serde_json::{Value, json};

use crate::commands::shop;
use crate::stage::Stage;

#[test]
fn no_request_creates_a_conversation_whose_name_has_another_meaning() {
    let stage = Stage::new();
    stage.plain(&["new", "keep"]);
    stage.plain(&["append", "--text", "important"]);
    let id = stage.json(&["info"])["id"].as_str().unwrap().to_owned();
    let transcript = r#"[{"role":"user","content":"2 + 2?"}]"#;
    for name in ["@", &id, "\u{1}x"] {
        for answer in stage.exec(&[
            json!({ "create": name }),
            json!({ "import": name, "data": transcript }),
            json!({ "conversation": "keep", "fork": { "name": name } }),
            json!({ "conversation": "keep", "rename": name }),
        ]) {
            assert_eq!(answer["error"]["code"], "invalid_operation", "{name:?}: {answer}");
        }
    }
    assert_eq!(stage.json(&["list"])["conversations"].as_array().unwrap().len(), 1);
    stage.plain(&["remove", "@", "--yes"]);
    assert!(stage.plain(&["list"]).starts_with("no conversations"));
}

#[test]
fn a_transcript_whose_file_name_is_an_id_is_imported_under_a_longer_name() {
    let stage = Stage::new();
    let transcript = r#"[{"role":"user","content":"2 + 2?"}]"#;
    let file = stage.file("0199f3a2-7c1e-7d44-9a5b-3f0e8c2d1b6a.json", transcript);
    let imported = stage.json(&["import", &file]);
    let name = &imported["conversations"][0]["conversation"];
    assert_eq!(*name, "imported 0199f3a2-7c1e-7d44-9a5b-3f0e8c2d1b6a");
}

#[test]
fn batch_end_restores_the_view_at_batch_start_and_keeps_earlier_edits() {
    let stage = Stage::new();
    stage.plain(&["new", "b1", "--counter", "approx"]);
    stage.plain(&["append", "--text", "q1"]);
    stage.plain(&["insert", "--position", "0", "--role", "system", "--text", "Answer in French."]);
    let before = stage.json(&["show"])["messages"].clone();
    let started = stage.plain(&["batch", "start"]);
    assert!(
        started.contains("batch    2; `recto batch end` returns to batch 1"),
        "it names the batch and the command that ends it: {started}"
    );
    stage.plain(&["append", "--text", "temporary"]);
    stage.plain(&["batch", "end"]);
    assert_eq!(stage.json(&["show"])["messages"], before);
    let none = stage.run(&["batch", "end"]);
    assert_eq!(none.code, 1, "{none:?}");
    assert!(none.errors.contains("no `recto batch start` is open"), "{none:?}");
}

#[test]
fn tools_are_accepted_in_the_forms_of_providers() {
    let stage = Stage::new();
    stage.plain(&["new", "t"]);
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let function = json!({"name": "ls", "description": "List a folder.", "parameters": schema});
    let openai = json!([{"type": "function", "function": function}]);
    let file = stage.file("tools.json", &openai.to_string());
    stage.plain(&["settings", "--tools", &file]);
    stage.plain(&["append", "--text", "hi"]);
    let request: Value =
        serde_json::from_str(&stage.plain(&["render", "--for", "anthropic", "--quiet"])).unwrap();
    assert_eq!(request["tools"][0]["name"], "ls");
    assert_eq!(request["tools"][0]["input_schema"], schema);
    stage.plain(&["new", "u", "--tools", &file]);
    let wrong = stage.file("wrong.json", r#"[{"title": "ls"}]"#);
    for arguments in [&["settings", "--tools", &wrong][..], &["new", "v", "--tools", &wrong]] {
        let refused = stage.run(arguments);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.errors.contains(r#"Example: [{"name": "ls""#), "{refused:?}");
    }
}

#[test]
fn help_of_truncate_lists_the_steps_in_the_order_in_which_they_apply() {
    let help = Stage::new().plain(&["truncate", "--help"]);
    let at = |option: &str| help.find(&format!("  {option} <")).unwrap_or_else(|| panic!("{help}"));
    let order =
        ["--role", "--keep-first", "--keep-last", "--remove-first", "--remove-last", "--range"];
    assert!(order.map(at).is_sorted(), "{help}");
    // The role is applied first: two of the six messages have the role user.
    let stage = shop();
    stage.plain(&["truncate", "--keep-last", "3", "--role", "user"]);
    assert_eq!(stage.json(&["show"])["messages"].as_array().unwrap().len(), 2);
}

#[test]
fn positions_versions_and_entries_have_one_option_name_each() {
    let stage = shop();
    stage.plain(&["replace", "--position", "4", "--role", "assistant", "--text", "x"]);
    for (arguments, words) in [
        (&["replace", "--position", "#4", "--text", "x"][..], "#4 is a log entry"),
        (&["insert", "--position", "#4", "--text", "x"], "the first column of `recto show`"),
        (&["replace", "--at", "4", "--text", "x"], "use `--position`"),
        (&["insert", "--at=4", "--text", "x"], "use `--position`"),
        (&["replace", "4", "--text", "x"], "use `--position 4`"),
        (&["show", "--at", "#4"], "# precedes log entries"),
        (&["rollback", "--to-version", "#4"], "# precedes log entries"),
        (&["delete", "--position", "4"], "log entries, such as 3 or 5-8"),
    ] {
        let refused = stage.run(arguments);
        assert_eq!(refused.code, 2, "{arguments:?} {refused:?}");
        assert!(refused.errors.contains(words), "{arguments:?} {refused:?}");
    }
    // `#4` is accepted for a log entry.
    stage.plain(&["pin", "#4"]);
    stage.plain(&["delete", "#2", "#3"]);
    stage.plain(&["batch", "start", "--boundary", "#1"]);
    stage.plain(&["blame", "#1"]);
}

#[test]
fn lists_have_headings() {
    let stage = shop();
    stage.plain(&["delete", "2-3"]);
    for (arguments, heading) in [
        (&["show"][..], "position entry role      tokens  text"),
        (&["show", "--hidden"], "position entry role      tokens  text"),
        (&["grep", "checkout"], "position entry role      tokens  text"),
        (&["grep", "--everywhere", "checkout"], "conversation  entry role      tokens  text"),
        (&["tokens"], " entry role      tokens  text"),
        (&["diff", "1", "2"], "   entry role      tokens  text"),
        (&["restore", "2-3", "--dry-run"], "   entry role      tokens  text"),
        (&["blame", "2"], "version effect    operation   reason"),
        (&["list"], "name  version  messages  updated"),
    ] {
        let printed = stage.plain(arguments);
        assert!(printed.lines().any(|line| line == heading), "{arguments:?}:\n{printed}");
    }
    let file = stage.file("a.json", r#"[{"role":"user","content":"2 + 2?"}]"#);
    let imported = stage.plain(&["import", &file]);
    assert!(imported.starts_with("conversation  messages  version"), "{imported}");
}

#[test]
fn lines_in_a_pipe_are_cut_at_a_hundred_columns_without_the_option_full() {
    let stage = Stage::new();
    stage.plain(&["new", "long"]);
    let text = "word ".repeat(5_000);
    stage.plain(&["append", "--text", &text]);
    for command in
        [&["show"][..], &["tokens"], &["grep", "word"], &["diff", "0", "1"], &["blame", "0"]]
    {
        let cut = stage.plain(command);
        let widest = cut.lines().map(|line| line.chars().count()).max().unwrap();
        assert_eq!(widest, 100, "{command:?}: {cut}");
        let full: Vec<&str> = command.iter().copied().chain(["--full"]).collect();
        assert!(stage.plain(&full).contains(text.trim_end()), "{command:?}");
        let document: Vec<&str> = command.iter().copied().chain(["--json"]).collect();
        assert!(stage.plain(&document).contains(text.trim_end()), "{command:?}");
    }
    for command in [&["export"][..], &["render", "--for", "openai-chat"]] {
        assert!(stage.plain(command).contains(text.trim_end()), "{command:?}");
    }
}

#[test]
fn hidden_messages_are_listed_with_the_version_and_the_reason_that_hid_them() {
    let stage = shop();
    stage.plain(&["delete", "2-3", "--reason", "noise"]);
    stage.plain(&["truncate", "--keep-first", "3"]);
    let shown = stage.plain(&["show", "--hidden"]);
    for words in [
        "hidden    #2 call",
        "hidden by v2 DELETE 2 entries · noise",
        "hidden    #5 user",
        "hidden by v3 TRUNCATE",
        "3 messages",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(!shown.contains("#1 user"), "visible messages are not listed: {shown}");
    let document = stage.json(&["show", "--hidden", "--first", "1"]);
    assert_eq!(document["messages"].as_array().unwrap().len(), 1);
    let by = &document["hiddenBy"][0];
    assert_eq!((by["version"].as_u64(), by["operation"].as_str()), (Some(2), Some("DELETE")));
    assert_eq!(by["description"], "DELETE 2 entries · noise");
    let result = stage.json(&["show", "--hidden", "--role", "tool"]);
    assert_eq!(result["messages"][0]["index"], 3);
    assert!(stage.json(&["show"]).get("hiddenBy").is_none());
}

#[test]
fn blame_accepts_several_entries() {
    let stage = shop();
    stage.plain(&["delete", "2-3"]);
    let shown = stage.plain(&["blame", "1-2", "5"]);
    assert_eq!(shown.matches(" added ").count(), 3, "{shown}");
    assert_eq!(shown.matches(" hidden ").count(), 1, "{shown}");
    let document = stage.json(&["blame", "1-2"]);
    assert_eq!(document["entries"][1]["index"], 2);
    assert_eq!(document["entries"][1]["history"][1]["effect"], "hidden");
    assert_eq!(stage.json(&["blame", "2"])["history"][1]["version"], 2);
}

#[test]
fn a_reason_is_kept_beside_the_description() {
    let stage = shop();
    stage.plain(&["fit", "--max-tokens", "100", "--reason", "budget"]);
    let log = stage.plain(&["log"]);
    assert!(log.contains("FIT into 100 tokens · budget"), "{log}");
    assert_eq!(
        stage.json(&["log", "-n", "1"])["versions"][0]["description"],
        "FIT into 100 tokens · budget"
    );
    let list = stage.file(
        "list.json",
        r#"[{"operation":"UNMARK","indices":[1],"mark":"x"},
        {"operation":"CLEAR","description":"start again"}]"#,
    );
    let printed = stage.plain(&["apply", &list, "--reason", "tidy"]);
    assert!(printed.contains("UNMARK 1 entry \"x\"; start again · tidy"), "{printed}");
}

#[test]
fn equal_remarks_are_grouped_and_can_be_omitted() {
    let stage = Stage::new();
    let mut lines =
        vec![json!({"type": "user", "uuid": "u0", "parentUuid": null, "sessionId": "s",
        "message": {"role": "user", "content": "hi"}})];
    for number in 0..30 {
        lines.push(json!({"type": "attachment", "uuid": format!("a{number}"), "sessionId": "s",
            "parentUuid": "u0", "attachment": {"type": "note"}}));
    }
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let file = stage.file("session.jsonl", &lines.join("\n"));
    let import = ["import", &file, "--format", "claude-code", "--dry-run"];
    let printed = stage.plain(&import);
    assert!(printed.lines().count() < 8, "{printed}");
    assert!(printed.contains("(×30)"), "{printed}");
    let remarks = stage.json(&import)["remarks"].as_array().unwrap().len();
    assert!(remarks >= 30, "a document lists each remark: {remarks}");
    let quiet = stage.plain(&[&import[..], &["--quiet"]].concat());
    assert!(!quiet.contains("attachment") && quiet.contains("1 conversation"), "{quiet}");
}

#[test]
fn repairs_of_a_request_are_grouped_and_can_be_omitted() {
    let stage = Stage::new();
    stage.plain(&["new", "talk"]);
    for number in 0..10 {
        stage.plain(&["append", "--text", &format!("question {number}")]);
        stage.plain(&["append", "--role", "assistant", "--text", &format!("answer {number}")]);
        stage.plain(&["append", "--role", "assistant", "--text", &format!("more {number}")]);
    }
    let ran = stage.run(&["render", "--for", "gemini"]);
    assert_eq!(ran.code, 0);
    assert_eq!(ran.errors.lines().count(), 1, "{}", ran.errors);
    assert!(ran.errors.starts_with("#2, #5, #8, #11, #14, …: "), "{}", ran.errors);
    assert!(ran.errors.ends_with("(×10)\n"), "{}", ran.errors);
    let quiet = stage.run(&["render", "--for", "gemini", "--quiet"]);
    assert_eq!((quiet.errors.as_str(), &quiet.out), ("", &ran.out));
}

#[test]
fn likely_names_are_accepted_or_the_error_has_the_correct_name() {
    let stage = shop();
    stage.plain(&["pin", "1"]);
    assert_eq!(stage.run(&["delete", "1"]).code, 1, "it is pinned");
    stage.plain(&["unpin", "1"]);
    stage.plain(&["delete", "1", "--dry-run"]);
    let everywhere = stage.plain(&["grep", "--everywhere", "GATEWAY"]);
    assert_eq!(stage.plain(&["search", "GATEWAY"]), everywhere);
    assert!(everywhere.contains("1 message found"), "{everywhere}");
    stage.plain(&["filter", "--keyword", "checkout", "--dry-run"]);
    stage.plain(&["show", "--keywords", "checkout"]);
    assert!(stage.plain(&["verify", "-c", "shop"]).contains("1 conversation verified"));
    let results = stage.json(&["show", "--role", "result"]);
    assert_eq!(results["messages"].as_array().unwrap().len(), 1);
    let refused = stage.run(&["show", "--role", "call"]);
    assert!(refused.code == 2 && refused.errors.contains("use `--role assistant`"), "{refused:?}");
    let refused = stage.perform(
        &["apply", "-"],
        r#"{"operation":"APPEND","messages":[{"role":"assistant","content":[{"type":"tool_use","name":"f","input":{}}]}]}"#,
        StreamInfo::default(),
    );
    assert!(refused.errors.contains("needs the field id"), "{refused:?}");
}

#[test]
fn usage_errors_follow_the_option_color() {
    let stage = Stage::new();
    let screen = StreamInfo { size: Some((80, 24)), colours: true };
    let plain = StreamInfo { size: Some((80, 24)), colours: false };
    let errors = |arguments: &[&str], info| stage.perform_on(arguments, "", info, info).errors;
    assert!(errors(&["nonsense"], screen).contains('\u{1b}'));
    for arguments in [
        &["nonsense", "--color", "never"][..],
        &["--color=never", "nonsense"],
        &["show", "--nonsense", "--color", "never"],
    ] {
        assert!(!errors(arguments, screen).contains('\u{1b}'), "{arguments:?}");
    }
    // NO_COLOR switches off the colours of the stream.
    assert!(!errors(&["nonsense"], plain).contains('\u{1b}'));
    assert!(errors(&["nonsense", "--color", "always"], plain).contains('\u{1b}'));
    // Arguments after `--` are not options.
    assert!(errors(&["nonsense", "--", "--color=never"], screen).contains('\u{1b}'));
}

#[test]
fn a_field_that_is_given_twice_in_an_operation_is_refused() {
    let stage = shop();
    let twice = r#"{"operation":"TRUNCATE","keepLast":1,"keepLast":2}"#;
    for request in [
        twice.to_owned(),
        format!("[{twice}]"),
        format!(r#"{{"op":{twice}}}"#),
        format!(r#"{{"ops":[{twice}]}}"#),
    ] {
        let ran = stage.perform(&["apply", "-", "--json"], &request, StreamInfo::default());
        let document: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(document["error"]["code"], "invalid_operation", "{request}: {document}");
        let message = document["error"]["message"].as_str().unwrap();
        assert!(message.contains("keepLast is given twice"), "{message}");
    }
    assert_eq!(stage.json(&["info"])["version"], 1, "nothing was changed");
}
