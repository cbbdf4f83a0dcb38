//! Import and export of transcripts.

use recto_cli::StreamInfo;
use serde_json::{Value, json};
use testkit::provider::Provider;

use crate::commands::{normalized, shop};
use crate::stage::{Ran, Stage};

/// A session in which a tool was interrupted, so its call has no result.
pub(crate) const SESSION: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/nightly-export.jsonl");

pub(crate) fn imported() -> Stage {
    let stage = Stage::new();
    stage.plain(&["import", SESSION, "--name", "export", "--counter", "approx"]);
    stage
}

/// The output and the errors of a command, in a pipe and on a terminal.
pub(crate) fn everything(stage: &Stage, arguments: &[&str]) -> String {
    let screen = StreamInfo { size: Some((80, 10_000)), colours: true };
    let shown = |ran: Ran| match &*ran.errors {
        "" => format!("{}[{}]\n", ran.out, ran.code),
        errors => format!("{}[{}, and on standard error]\n{errors}", ran.out, ran.code),
    };
    let plain = shown(stage.run(arguments));
    assert!(!plain.contains('\u{1b}'), "{plain}");
    let terminal = shown(stage.perform(arguments, "", screen)).replace('\u{1b}', "␛");
    let command = arguments.join(" ");
    let text = format!("$ recto {command}\n{plain}\n$ recto {command} # on a terminal\n{terminal}");
    normalized(&text.replace(SESSION, "SESSION"), stage)
}

/// Tests that compare the output of a command with a snapshot.
macro_rules! looks {
    ($($name:ident: $($argument:expr),*;)*) => {
        $(#[test]
        fn $name() {
            insta::assert_snapshot!(everything(&imported(), &[$($argument),*]));
        })*
    };
}

pub(crate) use looks;

looks! {
    export_writes_messages: "export", "--at", "1", "--format", "openai-chat";
    import_numbers_names_that_are_taken: "import", SESSION;
}

#[test]
fn an_import_lists_conversations_and_remarks() {
    let stage = Stage::new();
    let request = json!({ "model": "gpt-5", "temperature": 0, "messages": [
        { "role": "user", "content": "Hi" }, { "role": "assistant", "content": "Hello." }] });
    let file = stage.file("request.json", &request.to_string());
    insta::assert_snapshot!(everything(&stage, &["import", &file, "--dry-run"]));
    assert!(!stage.folder.path().join("recto.db").exists(), "a dry run makes no store");
    let document = stage.json(&["import", &file]);
    assert_eq!(document["conversations"][0]["conversation"], "request");
    assert_eq!(document["format"], "openai-chat");
    assert_eq!(document["dryRun"], false);
    let message = document["remarks"][0]["message"].as_str().unwrap();
    assert_eq!(message, "not kept: model, temperature");
}

#[test]
fn tools_of_an_imported_request_become_tools_of_the_conversation() {
    let stage = Stage::new();
    let schema = json!({ "type": "object", "properties": {} });
    let text = json!([{ "role": "user", "content": "Hi" }]);
    let function = json!({ "name": "ls", "parameters": schema.clone() });
    for (number, request) in [
        json!({ "model": "claude-haiku-4-5", "max_tokens": 9, "messages": text.clone(),
            "tools": [{ "name": "ls", "input_schema": schema.clone() }] }),
        json!({ "model": "gpt-5", "messages": text.clone(),
            "tools": [{ "type": "function", "function": function.clone() }] }),
        json!({ "model": "gpt-5", "input": text,
            "tools": [{ "type": "function", "name": "ls", "parameters": schema }] }),
        json!({ "contents": [{ "role": "user", "parts": [{ "text": "Hi" }] }],
            "tools": [{ "functionDeclarations": [function] }] }),
    ]
    .into_iter()
    .enumerate()
    {
        let file = stage.file(&format!("request{number}.json"), &request.to_string());
        stage.json(&["import", &file]);
        let settings = stage.json(&["settings", "-c", &format!("request{number}")]);
        assert_eq!(settings["tools"][0]["name"], "ls", "{request}: {settings}");
    }
}

#[test]
fn messages_inside_a_larger_document_are_found_and_reported() {
    let stage = Stage::new();
    let messages = |text: &str| json!([{ "role": "user", "content": text }]);
    let log = json!({ "info": { "cost": 1 }, "history": messages("One"),
        "steps": [{ "query": messages("Two") }, { "query": messages("Three") }] });
    let file = stage.file("log.json", &log.to_string());
    let document = stage.json(&["import", &file]);
    assert_eq!(document["conversations"].as_array().unwrap().len(), 1);
    let remark = &document["remarks"][0];
    assert_eq!(remark["field"], "history");
    assert_eq!(remark["message"], "1 list of messages was found here; others: steps[*].query");
    let document = stage.json(&["import", &file, "--select", "steps[*].query"]);
    assert_eq!(document["conversations"].as_array().unwrap().len(), 2);
    let failed = stage.run(&["import", &file, "--select", "nowhere"]);
    assert_eq!(failed.code, 1);
    let errors = failed.errors;
    assert!(errors.contains("there are messages at history, steps[*].query"), "{errors}");
}

/// A session with a rewind, a side chain, a line of an unknown type and a line that is not JSON.
fn tree() -> String {
    let line = |parent: Value, id: &str, side: bool, role: &str, text: &str| {
        let content = match role {
            "user" => json!(text),
            _ => json!([{ "type": "text", "text": text }]),
        };
        json!({ "parentUuid": parent, "isSidechain": side, "agentId": side.then_some("scout"),
            "sessionId": "s", "type": role, "uuid": id, "timestamp": "2026-03-02T09:00:00.000Z",
            "message": { "id": format!("m-{id}"), "role": role, "content": content } })
        .to_string()
    };
    [
        line(Value::Null, "a1", false, "user", "Fix the build."),
        line(json!("a1"), "a2", false, "assistant", "I delete the lock file."),
        line(Value::Null, "b1", true, "user", "Find the failing crate."),
        line(json!("b1"), "b2", true, "assistant", "It is sum-tree."),
        line(json!("a1"), "a3", false, "user", "No: fix the cause."),
        json!({ "type": "future-kind", "data": 1 }).to_string(),
        line(json!("a3"), "a4", false, "assistant", "Then I look."),
        "no json".to_owned(),
    ]
    .join("\n")
}

#[test]
fn rewinds_become_versions_and_side_chains_forks() {
    let stage = Stage::new();
    let file = stage.file("tree.jsonl", &tree());
    insta::assert_snapshot!(everything(&stage, &["import", &file]));
    // The abandoned messages are a branch, and messages have their timestamps from the session.
    insta::assert_snapshot!(
        "a_rewind_is_drawn_as_a_branch",
        everything(&stage, &["log", "-c", "tree"])
    );
    let log = stage.json(&["log", "-c", "tree"]);
    let parents: Vec<&Value> =
        log["versions"].as_array().unwrap().iter().map(|version| &version["parent"]).collect();
    assert_eq!(json!(parents), json!([4, 3, 1, 1, 0, null]));
    let said = "2026-03-02T09:00:00Z".parse::<jiff::Timestamp>().unwrap().as_millisecond();
    assert_eq!(log["versions"][0]["saidAt"], said);
    assert!(log["versions"][0]["timestamp"].as_i64().unwrap() > said);
    assert_eq!(log["versions"][2].get("saidAt"), None, "a rewind adds nothing");
    let newest = stage.json(&["log", "-c", "tree", "-n", "1"])["versions"][0].clone();
    assert_eq!(newest, log["versions"][0], "even if the version before it is not listed");
    let operations: Vec<&str> = log["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| version["operation"].as_str().unwrap())
        .collect();
    assert_eq!(operations, ["APPEND", "APPEND", "ROLLBACK", "APPEND", "APPEND", "CREATE"]);
    let shown = stage.plain(&["show", "-c", "tree"]);
    assert!(!shown.contains("lock file") && shown.contains("Then I look."), "{shown}");
    assert!(stage.plain(&["show", "-c", "tree", "--at", "2"]).contains("lock file"));
    assert!(stage.plain(&["show", "-c", "tree/scout"]).contains("It is sum-tree."));
    assert!(stage.plain(&["verify"]).contains("4 conversations verified"));
}

#[test]
fn an_imported_session_has_its_versions_and_is_the_last_one_used() {
    let stage = Stage::new();
    let document = stage.json(&["import", SESSION]);
    let made = &document["conversations"][0];
    assert_eq!(made["conversation"], "Nightly export misses its window", "its title");
    assert_eq!((&made["version"], &made["messages"]), (&json!(12), &json!(12)));
    assert_eq!(stage.json(&["info"])["id"], made["id"]);
    assert_eq!(stage.json(&["show", "--at", "3"])["messages"].as_array().unwrap().len(), 3);
}

#[test]
fn imported_messages_are_exported_byte_for_byte() {
    let stage = imported();
    let file = std::fs::read_to_string(SESSION).unwrap();
    let out = stage.folder.path().join("out.jsonl").display().to_string();
    let written = stage.plain(&["export", "--all", "-o", &out]);
    assert!(
        written.contains("12 messages of export written to") && written.contains("claude-code")
    );
    assert_eq!(std::fs::read_to_string(&out).unwrap(), file);
    assert_eq!(stage.plain(&["export"]), file, "to standard output");
    assert_eq!(stage.json(&["export"])["data"], file);

    // Imports from standard input, exports in another format, and imports the result.
    let ran = stage.perform(&["import", "-", "--name", "again"], &file, StreamInfo::default());
    assert_eq!(ran.code, 0, "{}", ran.errors);
    for format in ["openai-chat", "openai-responses", "anthropic", "gemini", "recto", "vercel"] {
        // Content that the format cannot represent is reported on standard error.
        let other = stage.run(&["export", "-c", "again", "--format", format]).out;
        let name = format!("from {format}");
        let arguments = ["import", "-", "--format", format, "--name", &name];
        let ran = stage.perform(&arguments, &other, StreamInfo::default());
        assert_eq!(ran.code, 0, "{format}: {}", ran.errors);
        let shown = stage.plain(&["show", "-c", &name, "--full"]);
        assert!(shown.contains("Stop, that machine is needed"), "{format}: {shown}");
    }
    let failed = stage.run(&["export", "-o", "/no/such/folder/file"]);
    assert_eq!(failed.code, 2, "{}", failed.errors);
}

#[test]
fn a_message_without_a_time_is_exported_with_the_time_when_it_was_added() {
    let stage = Stage::new();
    stage.plain(&["new", "talk \"x\""]);
    stage.plain(&["append", "--text", "Hi"]);
    let arrival = stage.json(&["show"])["messages"][0]["timestamp"].as_i64().unwrap();
    let time = jiff::Timestamp::from_millisecond(arrival).unwrap();
    for format in ["claude-code", "codex"] {
        let line: Value =
            serde_json::from_str(&stage.plain(&["export", "--format", format])).unwrap();
        let written: jiff::Timestamp = line["timestamp"].as_str().unwrap().parse().unwrap();
        assert_eq!(written, time, "{format}");
    }
    let list: Value =
        serde_json::from_str(&stage.plain(&["export", "--format", "chatgpt"])).unwrap();
    assert_eq!(list[0]["title"], "talk \"x\"");
    let node = list[0]["mapping"].as_object().unwrap().values().next().unwrap();
    let written = node["message"]["create_time"].as_f64().unwrap();
    assert!((written * 1000.0 - arrival as f64).abs() < 1.0, "{written} {arrival}");
    // A format that requires no time exports the message unchanged.
    assert!(!stage.plain(&["export", "--format", "recto"]).contains("timestamp"));
}

#[test]
fn the_option_lines_writes_one_message_per_line() {
    let stage = shop();
    let lines = stage.plain(&["export", "--lines"]);
    assert_eq!(lines.lines().count(), 6);
    for line in lines.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
    let list: Value = serde_json::from_str(&stage.plain(&["export"])).unwrap();
    assert_eq!(list.as_array().unwrap().len(), 6);
    stage.plain(&["delete", "2-3"]);
    let count = |arguments: &[&str]| stage.plain(arguments).lines().count();
    assert_eq!(count(&["export", "--lines"]), 4);
    assert_eq!(count(&["export", "--lines", "--all"]), 6);
    assert_eq!(count(&["export", "--lines", "--at", "1"]), 6);
}

#[test]
fn a_failed_import_stores_nothing_and_says_so() {
    let stage = shop();
    // Enough messages that some are stored before the missing end is detected.
    let list = "{\"role\": \"user\", \"content\": \"Hi\"},\n".repeat(600);
    let broken = stage.file("broken.json", &format!("[{list}{{\"role\": "));
    let cases = [
        (vec!["import", &*broken], 1, "line 601"),
        (vec!["import", SESSION, "--name", "shop"], 1, "already"),
        (vec!["import", "/no/such/file"], 2, "cannot read"),
        (vec!["import", SESSION, "--format", "yaml"], 2, "possible values"),
        (vec!["import", SESSION, "--format", "chatgpt"], 1, "chatgpt"),
    ];
    for (arguments, code, why) in cases {
        let ran = stage.run(&arguments);
        assert_eq!(ran.code, code, "{arguments:?}: {}", ran.errors);
        assert!(ran.errors.contains(why), "{arguments:?}: {}", ran.errors);
        assert_eq!(stage.plain(&["list"]).lines().count(), 2, "{arguments:?} left something");
    }
    let errors = stage.run(&["import", &broken]).errors;
    assert!(errors.contains("nothing was imported"), "{errors}");
    let document: Value =
        serde_json::from_str(&stage.run(&["import", &broken, "--json"]).out).unwrap();
    assert_eq!(document["error"]["code"], "invalid_json");
    assert_eq!(document["error"]["details"], json!({ "line": 601, "left": [] }));
    for (text, code) in [("[]", 1), ("", 2), ("no json", 2), ("{\"messages\": []}", 1)] {
        let ran = stage.perform(&["import", "-"], text, StreamInfo::default());
        assert_eq!(ran.code, code, "{text:?}: {}", ran.errors);
    }
    assert_eq!(stage.plain(&["list"]).lines().count(), 2);
}

#[test]
fn a_stream_above_the_memory_limit_is_imported_like_a_file() {
    let stage = Stage::new();
    let text = "word ".repeat(20_000);
    let lines: Vec<String> = (0..60)
        .map(|number| json!({ "role": "user", "content": format!("{number} {text}") }).to_string())
        .collect();
    let lines = lines.join("\n");
    assert!(lines.len() > 5 << 20);
    let file = stage.file("long.jsonl", &lines);
    let arguments = ["--counter", "approx", "--format", "recto", "--json"];
    let ran = stage.perform(
        &[&["import", "-", "--name", "streamed"], &arguments[..]].concat(),
        &lines,
        StreamInfo::default(),
    );
    assert_eq!((ran.code, &*ran.errors), (0, ""), "{}", ran.out);
    stage.plain(&[&["import", &file, "--name", "read"], &arguments[..]].concat());
    let shown = |name: &str| stage.json(&["show", "-c", name])["messages"].to_string();
    let without_times = |text: String| -> Vec<Value> {
        let mut messages: Vec<Value> = serde_json::from_str(&text).unwrap();
        messages.iter_mut().for_each(|entry| entry["timestamp"] = Value::Null);
        messages
    };
    assert_eq!(without_times(shown("streamed")), without_times(shown("read")));
}

#[test]
fn programs_import_render_and_lint() {
    let stage = Stage::with_store("memory:");
    let session = std::fs::read_to_string(SESSION).unwrap();
    let chat = json!([{ "role": "user", "content": "Hi" },
        { "role": "tool", "tool_call_id": "lost", "content": "?" }]);
    let answers = stage.exec(&[
        json!({ "import": "export", "format": "claude-code", "data": session,
            "settings": { "counter": "approx", "tokenLimit": 9 } }),
        json!({ "conversation": "export", "render": "anthropic", "model": "claude-sonnet-4-5",
            "fields": { "max_tokens": 64 } }),
        json!({ "conversation": "export", "lint": "anthropic" }),
        json!({ "import": "chat", "format": "openai-chat", "data": chat }),
        json!({ "conversation": "chat", "render": "openai-chat" }),
        json!({ "conversation": "chat", "lint": "gemini" }),
    ]);
    let [imported, request, found, chat, repaired, linted] = &answers[..] else { panic!() };
    assert_eq!((&imported["conversation"], &imported["version"]), (&json!("export"), &json!(12)));
    assert_eq!(imported["conversations"][0]["messages"], 12);
    assert_eq!(imported["remarks"], json!([]));
    assert_eq!(request["request"]["max_tokens"], 64);
    assert_eq!(request["request"]["model"], "claude-sonnet-4-5");
    Provider::Anthropic.check(&request["request"]).unwrap();
    assert_eq!(request["repairs"][0]["rule"], "answered_calls");
    assert_eq!(request["warnings"], json!([]));
    assert_eq!(found["findings"], request["repairs"]);
    assert_eq!(chat["format"], "openai-chat");
    Provider::OpenAiChat.check(&repaired["request"]).unwrap();
    assert_eq!(repaired["repairs"][0]["rule"], "results_have_calls");
    assert_eq!(linted["findings"][0]["severity"], "error");
}

#[test]
fn errors_of_exec_have_the_number_of_the_line() {
    let stage = Stage::with_store("memory:");
    let hi = json!([{ "role": "user", "content": "Hi" }]);
    let cases = [
        (json!({ "import": "a", "format": "openai-chat", "data": hi }), ""),
        (json!({ "import": "a", "format": "openai-chat", "data": hi }), "conversation_exists"),
        (json!({ "import": "b", "format": "yaml", "data": hi }), "invalid_operation"),
        (json!({ "import": "b" }), "invalid_operation"),
        (json!({ "import": "b", "data": "\n{\"role\"" }), "invalid_operation"),
        (json!({ "import": "b", "format": "recto", "data": "\n{\"role\"" }), "invalid_json"),
        (json!({ "import": "b", "data": hi, "conversation": "a" }), "invalid_operation"),
        (
            json!({ "import": "b", "data": hi, "settings": { "tools":
                [{ "name": "t", "description": "d" }] } }),
            "invalid_operation",
        ),
        (json!({ "conversation": "b", "ask": {} }), "conversation_not_found"),
        (json!({ "conversation": "a", "render": "acme" }), "invalid_operation"),
        (json!({ "conversation": "a", "render": 1 }), "invalid_operation"),
        (json!({ "conversation": "a", "render": "gemini", "lint": "gemini" }), "invalid_operation"),
        (json!({ "conversation": "a", "lint": "gemini", "window": {} }), "invalid_operation"),
        (
            json!({ "conversation": "a", "render": "gemini", "fields": { "contents": [] } }),
            "invalid_operation",
        ),
        (json!({ "conversation": "a", "lint": "gemini" }), ""),
    ];
    let requests: Vec<Value> = cases.iter().map(|(request, _)| request.clone()).collect();
    for ((number, (request, code)), answer) in (1..).zip(&cases).zip(stage.exec(&requests)) {
        if code.is_empty() {
            assert_eq!(answer.get("error"), None, "{request}: {answer}");
            continue;
        }
        assert_eq!(
            (&answer["error"]["code"], &answer["error"]["line"]),
            (&json!(code), &json!(number)),
            "{request}: {answer}"
        );
    }
}

#[test]
fn messages_of_another_format_are_refused_by_number_or_converted() {
    let stage = shop();
    let turn = [
        json!({ "role": "user", "content": "Which day is it?" }),
        json!({ "role": "assistant", "content": null, "tool_calls": [{ "id": "c1", "type": "function",
            "function": { "name": "today", "arguments": "{}" } }] }),
        json!({ "role": "tool", "tool_call_id": "c1", "content": "Monday" }),
    ];
    let file = stage.file("turn.json", &json!(turn).to_string());
    let before = stage.json(&["info"])["version"].clone();
    let refused = stage.run(&["append", "--messages", &file]);
    assert_eq!((refused.code, &*refused.out), (1, ""));
    assert!(refused.errors.contains("message 2 is in the format openai-chat"), "{refused:?}");
    assert!(refused.errors.contains("--format openai-chat"), "{refused:?}");
    let refused = stage.run(&["append", "--messages", &file, "--json"]);
    let refused: Value = serde_json::from_str(&refused.out).unwrap();
    assert_eq!(refused["error"]["code"], "invalid_message");
    assert_eq!(refused["error"]["details"], json!({ "number": 2, "format": "openai-chat" }));
    assert_eq!(stage.json(&["info"])["version"], before);

    // After conversion the call has its result.
    let done = stage.json(&["append", "--messages", &file, "--format", "openai-chat"]);
    assert_eq!(done["added"].as_array().unwrap().len(), 3);
    assert_eq!(done["warnings"], json!([]));
    let shown = stage.json(&["show", "--last", "2"]);
    assert_eq!(shown["messages"][0]["message"]["content"][0]["name"], "today");
    assert_eq!(shown["messages"][1]["message"]["content"][0]["tool_use_id"], "c1");

    // Other errors have the number of the message too.
    let file = stage.file(
        "nobody.jsonl",
        "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"nobody\",\"content\":\"a\"}",
    );
    let refused = stage.run(&["append", "--messages", &file]);
    assert_eq!(refused.code, 1);
    assert!(refused.errors.contains("message 2: role must be"), "{refused:?}");

    // `apply` stores messages unchanged and prints a note.
    let append = json!({ "operation": "APPEND", "messages": [turn[1].as_object().map(|call| {
        let mut call = call.clone();
        call["content"] = json!("Let me look.");
        call
    })] });
    let file = stage.file("append.json", &append.to_string());
    let done = stage.run(&["apply", &file]);
    assert_eq!(done.code, 0);
    assert!(done.errors.contains("is in the format openai-chat"), "{done:?}");
    // A compacted session cannot be converted to a list of messages.
    let said =
        r#"{"type":"response_item","payload":{"type":"message","role":"user","content":"One"}}"#;
    let compacted = r#"{"type":"compacted","payload":{"message":"They counted."}}"#;
    let file = stage.file("rollout.jsonl", &format!("{said}\n{compacted}\n"));
    let refused = stage.run(&["append", "--messages", &file, "--format", "codex"]);
    assert_eq!(refused.code, 2, "{refused:?}");
}

/// Thinking and refusals are not part of the text of a message, but `show --full` prints them.
#[test]
fn thinking_and_refusals_are_shown() {
    let stage = Stage::new();
    let file = stage.file(
        "talk.json",
        r#"[{"role":"user","content":"q"},
{"role":"assistant","content":[{"type":"thinking","text":"Hm, a \u001b[31mriddle."}]},
{"role":"assistant","content":[{"type":"thinking","text":"Easy."},{"type":"text","text":"Four."}]},
{"role":"assistant","content":[{"type":"refusal","refusal":"I cannot."}]}]"#,
    );
    stage.plain(&["import", &file, "--format", "recto", "--name", "talk"]);
    let shown = stage.plain(&["show"]);
    assert!(shown.contains("[thought] Hm, a") && !shown.contains('\u{1b}'), "{shown}");
    assert!(shown.contains("[refusal] I cannot.") && !shown.contains("Easy."), "{shown}");
    assert!(stage.plain(&["show", "--full"]).contains("[thought] Easy."));
    assert!(!stage.run(&["grep", "riddle"]).out.contains("riddle"));
}

#[test]
fn an_export_has_the_times_of_messages() {
    let stage = Stage::new();
    stage.plain(&["new", "talk"]);
    stage.plain(&["append", "--text", "Well?"]);
    for format in ["claude-code", "codex"] {
        let written = stage.plain(&["export", "--format", format]);
        assert!(!written.contains("\"1970-"), "{written}");
        assert!(written.contains("\"timestamp\":\"20"), "{written}");
    }
}

#[test]
fn the_maximum_size_of_one_value_can_be_set() {
    let stage = Stage::new();
    let text = "a".repeat(5_000);
    let file = stage.file("talk.json", &format!(r#"[{{"role":"user","content":"{text}"}}]"#));
    let refused = stage.run(&["import", &file, "--max-bytes", "4000"]);
    assert_eq!(refused.code, 1, "{}", refused.errors);
    assert!(
        refused.errors.contains("4000") || refused.errors.contains("4,000"),
        "{}",
        refused.errors
    );
    stage.plain(&["import", &file, "--max-bytes", "6000"]);
}

#[test]
fn tools_of_a_request_are_imported_and_long_texts_are_cut() {
    let stage = Stage::new();
    let tool = json!({ "type": "function", "function": {
        "name": "weather", "description": "d", "parameters": { "type": "object" } } });
    let message = json!({ "role": "user", "content": "word ".repeat(20_000) });
    let request = json!({ "model": "gpt-5", "messages": [message], "tools": [tool] });
    let file = stage.file("request.json", &request.to_string());
    stage.plain(&["import", &file, "--name", "a", "--counter", "approx"]);
    assert!(stage.plain(&["settings", "-c", "a"]).contains("weather: d"));
    let shown = stage.plain(&["tokens", "-c", "a"]);
    assert!(shown.len() < 4_000, "{} bytes", shown.len());
}

#[test]
fn sessions_of_opencode_are_imported_from_its_storage_folder() {
    let stage = Stage::new();
    let write = |path: &str, json: Value| {
        let file =
            std::path::PathBuf::from(stage.file("anchor", "")).with_file_name("storage").join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, format!("{json:#}\n")).unwrap();
        file.to_string_lossy().into_owned()
    };
    let session = |id: &str, title: &str| json!({ "id": id, "projectID": "p", "title": title, "time": { "created": 1 } });
    let message = |id: &str, of: &str, role: &str| json!({ "id": id, "sessionID": of, "role": role, "time": { "created": 2 } });
    let text = |id: &str, of: &str, text: &str| json!({ "id": id, "messageID": of, "type": "text", "text": text });
    let first = write("session/p/ses_1.json", session("ses_1", "First"));
    write("message/ses_1/msg_1.json", message("msg_1", "ses_1", "user"));
    write("message/ses_1/msg_2.json", message("msg_2", "ses_1", "assistant"));
    write("part/msg_1/prt_1.json", text("prt_1", "msg_1", "Which port?"));
    write("part/msg_2/prt_2.json", text("prt_2", "msg_2", "8080."));
    write("session/p/ses_2.json", session("ses_2", "Second"));
    write("message/ses_2/msg_3.json", message("msg_3", "ses_2", "user"));
    // Older releases have all parts in one folder.
    write("part/prt_3.json", text("prt_3", "msg_3", "And the host?"));
    let storage =
        std::path::Path::new(&first).ancestors().nth(3).unwrap().to_string_lossy().into_owned();
    let imported = stage.json(&["import", &storage]);
    assert_eq!(imported["format"], "opencode", "{imported}");
    assert_eq!(imported["conversations"].as_array().unwrap().len(), 2, "{imported}");
    assert!(stage.plain(&["show", "-c", "First"]).contains("8080."));
    assert!(stage.plain(&["show", "-c", "Second"]).contains("And the host?"));
    let one = stage.json(&["import", &first, "--name", "one"]);
    assert_eq!(one["conversations"][0]["messages"], 2, "{one}");
    // A damaged file is named, and nothing is imported.
    let damaged = write("message/ses_2/msg_4.json", json!("text"));
    let refused = stage.run(&["import", &storage]);
    assert_eq!(refused.code, 2, "{}", refused.errors);
    assert!(refused.errors.contains(&damaged), "{}", refused.errors);
}
