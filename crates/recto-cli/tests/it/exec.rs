//! `recto exec`: the conformance cases on every store, errors, long lines and buffering.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use recto_cli::StreamInfo;
use serde_json::{Value, json};
use testkit::conformance::{Expect, ExpectedOutcome, Kind, all_cases, comparable_state};

use crate::recto;
use crate::stage::Stage;

/// Runs all cases through one `exec`, and compares every response.
fn check_all_cases(stage: &Stage) {
    let cases = all_cases();
    let mut requests = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let name = format!("{number} {}", case.name);
        let settings = json!({ "counter": case.counter, "tools": case.tools });
        let messages = &case.messages;
        requests.push(json!({ "create": name, "settings": settings, "messages": messages }));
        for step in &case.steps {
            let mut request = match &step.kind {
                Kind::Request(request) => request.clone(),
                Kind::Ask(query) => json!({ "ask": query }),
                Kind::MarkMap => json!({ "markMap": true }),
                Kind::MarkMapOfAll => json!({ "markMap": { "scope": "all" } }),
                Kind::SetTools(tools) => json!({ "setTools": tools }),
                Kind::State => json!({ "state": true }),
            };
            request["conversation"] = name.clone().into();
            requests.push(request);
            if changes(&step.kind) {
                requests.push(json!({ "conversation": name, "ask": {} }));
            }
        }
    }
    let mut answers = stage.exec(&requests).into_iter();
    let mut next = || answers.next().expect("an answer for each request");
    for (number, case) in cases.iter().enumerate() {
        let created = next();
        assert_eq!(created["conversation"], format!("{number} {}", case.name), "{created}");
        let mut view_before = None;
        for (number, step) in case.steps.iter().enumerate() {
            let answer = next();
            let view = changes(&step.kind).then(|| indices(&next()));
            let found = read(&step.kind, &answer, view.clone());
            assert_eq!(found, step.expect, "{}, step {number}: {:?}", case.name, step.kind);
            if let (Expect::Error(_), Some(view), Some(before)) = (&found, &view, &view_before) {
                assert_eq!(view, before, "{}, step {number} was refused", case.name);
            }
            view_before = view.or(view_before);
        }
    }
}

/// Whether a step may change the conversation. The view is read after it.
fn changes(kind: &Kind) -> bool {
    matches!(kind, Kind::Request(_) | Kind::SetTools(_))
}

fn read(kind: &Kind, answer: &Value, view: Option<Vec<usize>>) -> Expect {
    if let Some(code) = answer["error"]["code"].as_str() {
        return Expect::Error(code.to_owned());
    }
    let number = |value: &Value| value.as_u64().expect("a number") as usize;
    let list = |value: &Value| value.as_array().expect("a list").iter().map(number).collect();
    match kind {
        Kind::Request(_) | Kind::SetTools(_) => Expect::Outcome(ExpectedOutcome {
            version: answer["version"].as_u64().expect("a version"),
            batch: number(&answer["stats"]["currentBatchIndex"]),
            batches: number(&answer["stats"]["totalBatches"]),
            log: number(&answer["stats"]["totalMessages"]),
            tokens: answer["stats"]["tokens"].as_u64().expect("a number"),
            changed: answer["changed"].as_bool().expect("changed"),
            view: view.expect("it was asked for"),
            hidden: list(&answer["hidden"]),
            shown: list(&answer["shown"]),
            added: list(&answer["added"]),
            shared_prefix: number(&answer["sharedPrefix"]["messages"]),
        }),
        Kind::Ask(_) => Expect::Indices(indices(answer)),
        Kind::MarkMap | Kind::MarkMapOfAll => Expect::MarkMap(answer.clone()),
        Kind::State => Expect::State(comparable_state(answer)),
    }
}

fn indices(answer: &Value) -> Vec<usize> {
    let messages = answer["messages"].as_array().unwrap_or_else(|| panic!("{answer}"));
    messages.iter().map(|message| message["index"].as_u64().expect("an index") as usize).collect()
}

#[test]
fn conformance_in_memory() {
    check_all_cases(&Stage::with_store("memory:"));
}

#[test]
fn conformance_in_sqlite() {
    check_all_cases(&Stage::new());
}

#[cfg(unix)]
#[test]
fn conformance_in_postgres() {
    let address = testserver::PostgresServer::shared().database();
    check_all_cases(&Stage::with_store(address));
}

fn say(text: &str) -> Value {
    json!({ "operation": "APPEND", "messages": [{ "role": "user", "content": text }] })
}

#[test]
fn an_error_has_the_number_of_its_line_and_the_next_line_is_executed() {
    let stage = Stage::with_store("memory:");
    let lines = [
        "",
        "{",
        "[]",
        r#""text""#,
        r#"{"conversation": "a"}"#,
        r#"{"conversation": "a", "op": {}, "ask": {}}"#,
        r#"{"conversation": "a", "ask": {}, "expectedVersion": 1}"#,
        r#"{"conversation": "a", "ask": {}, "asks": {}}"#,
        r#"{"create": "a", "conversation": "a"}"#,
        r#"{"create": 7}"#,
        r#"{"create": "a", "settings": {"counter": "abacus"}}"#,
        r#"{"create": "a", "settings": {"counters": "approx"}}"#,
        r#"{"create": "a", "create": "b"}"#,
        r#"{"conversation": "a", "markMap": false}"#,
        r#"{"conversation": "a", "snapshot": -1}"#,
        r#"{"conversation": "a", "diff": {"from": 0}}"#,
        r#"{"conversation": "a", "diff": {"from": 0, "to": 0.5}}"#,
        r#"{"conversation": "nobody", "ask": {}}"#,
        r#"{"create": "a"} trailing"#,
    ];
    let mut input = lines.join("\n").into_bytes();
    input.extend(b"\n\xff\xfe\n{\"create\": \"a\"}\n{\"create\": \"a\"}");
    let mut child = recto(&["exec", "--store", "memory:"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &*output.stderr), (Some(0), &b""[..]));
    let answers: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), lines.len() + 3);
    let codes: Vec<&str> =
        answers.iter().map(|answer| answer["error"]["code"].as_str().unwrap_or("done")).collect();
    let (json, operation) = ("invalid_json", "invalid_operation");
    let mut expected = vec![json, json, operation, operation];
    expected.extend([operation; 13]);
    expected.extend(["conversation_not_found", json, json, "done", "conversation_exists"]);
    assert_eq!(codes, expected);
    for (number, answer) in answers.iter().enumerate() {
        if codes[number] != "done" {
            assert_eq!(answer["error"]["line"], number + 1, "{answer}");
            assert!(!answer["error"]["message"].as_str().unwrap().is_empty());
        }
    }
    drop(stage);
}

#[test]
fn a_line_above_the_limit_is_too_large_and_the_next_line_is_executed() {
    let limit = 64 << 20;
    let lines = [" ".repeat(limit + 7), json!({ "create": "a" }).to_string(), " ".repeat(limit)];
    let stage = Stage::with_store("memory:");
    let ran = stage.perform(&["exec"], &lines.join("\n"), StreamInfo::default());
    let answers: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((ran.code, answers.len()), (0, 3), "{answers:?}");
    let error = &answers[0]["error"];
    assert_eq!((&error["code"], &error["line"]), (&json!("too_large"), &json!(1)), "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("67108871") && message.contains("67108864"), "{message}");
    assert_eq!(answers[1]["version"], 0);
    assert_eq!(answers[2]["error"]["code"], "invalid_json", "a line of exactly the limit is read");
}

#[test]
fn a_response_is_flushed_before_the_next_request_is_read() {
    let mut child = recto(&["exec", "--store", "memory:"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut ask = |request: Value| -> Value {
        writeln!(input, "{request}").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    assert_eq!(ask(json!({ "create": "a" }))["version"], 0);
    for version in 1..=50 {
        let answer = ask(json!({ "conversation": "a", "op": say("hello") }));
        assert_eq!(answer["version"], version);
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn requests_about_a_conversation_have_responses_in_order() {
    let stage = Stage::with_store("memory:");
    let of = |what: &str, value: Value| json!({ "conversation": "a", what: value });
    let odd = json!({ "role": "user", "content": "x", "index": 99, "position": "\n", "more": 1 });
    let answers = stage.exec(&[
        json!({ "create": "a", "settings": { "counter": "approx", "mediaTokens": 7, "heading": "Tools:",
            "tools": [{ "name": "ls", "description": "lists", "extra": true }] } }),
        of("op", say("one")),
        of("ops", json!([say("two"), { "operation": "DELETE", "indices": [1] }])),
        json!({ "conversation": "a", "op": say("three"), "expectedVersion": 1 }),
        json!({ "conversation": "a", "op": say("three"), "expectedVersion": 2, "idempotencyKey": "k" }),
        json!({ "conversation": "a", "op": say("three"), "expectedVersion": 2, "idempotencyKey": "k" }),
        of("op", json!({ "operation": "insert", "insert": { "position": -1, "messages": [odd.clone()] } })),
        of("ask", json!({ "scope": "all" })),
        of("snapshot", json!(0)),
        of("snapshot", json!(9)),
        of("diff", json!({ "from": 1, "to": 2 })),
        of("markMap", json!(true)),
    ]);
    assert_eq!(answers[1]["version"], 1);
    assert_eq!(answers[2]["hidden"], json!([1]));
    assert_eq!(answers[3]["error"]["code"], "version_conflict");
    assert_eq!(answers[3]["error"]["details"]["currentVersion"], 2);
    assert_eq!(answers[4]["version"], 3);
    assert_eq!(answers[5], answers[4]);
    assert_eq!(answers[6]["version"], 4);
    let messages = answers[7]["messages"].as_array().unwrap();
    assert_eq!(messages[0]["message"]["content"], "Tools:\n- ls: lists");
    assert_eq!((&messages[1]["index"], messages[1].get("position")), (&json!(1), None));
    assert_eq!((&messages[2]["index"], &messages[2]["position"]), (&json!(2), &json!(1)));
    // The message is returned whole, with its own field `index`.
    let last = &messages[4];
    assert_eq!((&last["index"], &last["position"], &last["message"]), (&json!(4), &json!(3), &odd));
    assert_eq!(answers[8]["messageCount"], 3);
    assert_eq!(answers[9]["error"]["code"], "batch_not_found");
    assert_eq!(answers[10]["hidden"]["indices"], json!([1]));
    assert_eq!(answers[11]["originalIndices"], json!([0, 2, 3, 4]));
}

#[test]
fn a_message_is_returned_unchanged_on_one_line() {
    let stage = Stage::with_store("memory:");
    let message = r#"{ "content" : "a\u000Ab\ud800" , "role":"user", "n": 1e400, "big": 123456789012345678901234567890}"#;
    let input = format!(
        "{}\n{{\"conversation\":\"a\",\"op\":{{\"operation\":\"APPEND\",\"messages\":[{message}]}}}}\n{}",
        json!({ "create": "a" }),
        json!({ "conversation": "a", "ask": {} }),
    );
    let out = stage.perform(&["exec"], &input, StreamInfo::default()).out;
    assert_eq!(out.lines().count(), 3);
    let answer = out.lines().nth(2).unwrap();
    assert!(answer.ends_with(&format!("\"message\":{message}}}]}}")), "{answer}");
}

#[test]
fn a_program_names_a_conversation_by_its_whole_name_or_id() {
    let stage = Stage::new();
    let created = stage.exec(&[json!({ "create": "support" })]).remove(0);
    let id = created["id"].as_str().unwrap();
    let ask = |name: &str| json!({ "conversation": name, "ask": {} });
    let answers = stage.exec(&[ask("support"), ask(id), ask("supp"), ask(&id[..35]), ask("@")]);
    assert_eq!(answers[1], json!({ "messages": [] }));
    for answer in &answers[2..] {
        assert_eq!(answer["error"]["code"], "conversation_not_found", "{answer}");
    }
}

#[test]
fn the_schema_of_all_requests_is_printed() {
    let stage = Stage::with_store("memory:");
    let out = stage.perform(&["exec", "--schema"], "", StreamInfo::default()).succeeded(&["exec"]);
    let schema: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(schema, recto_service::schema());
    let help = stage.perform(&["help", "exec"], "", StreamInfo::default()).out;
    for row in schema["requests"].as_array().unwrap() {
        assert!(help.contains(row["names"][0].as_str().unwrap()), "{row} is not in the help");
    }
}

#[test]
fn a_store_in_memory_is_searched_without_an_index() {
    let answers = Stage::with_store("memory:").exec(&[
        json!({ "create": "a", "messages": [{ "role": "user", "content": "the gateway" }] }),
        json!({ "search": "gateway" }),
    ]);
    assert_eq!(answers[1]["messages"][0]["conversation"], "a");
}
