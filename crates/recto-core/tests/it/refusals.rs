//! Every error of the contract: it can be reached, it is typed, it says what is allowed, and the refused
//! request changes nothing.

mod cases;
mod typed;

use std::collections::BTreeSet;

use recto_core::{Code, Conversation, Error, Query, Role};
use serde_json::Value;

use self::cases::{Case, MISFITS, ON_NOTHING, QUESTIONS, SHAPES, oversized};
use crate::conversations::{after, append, fresh, send, view};
use crate::driver::fingerprint;

/// Seven log entries of which 1 and 6 are hidden and 4 is pinned; version 6, batch 2, and a request
/// that was undone.
fn worked() -> Conversation {
    let conversation = after(
        fresh(),
        &[
            r#"{"operation":"APPEND","messages":[
                {"role":"system","content":"be brief"},
                {"role":"user","content":"a"},
                {"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},
                {"role":"tool","content":[{"type":"tool_result","tool_use_id":"c","content":"b"}]},
                {"role":"user","content":"keep me"},
                {"role":"assistant","content":"d"}]}"#,
            r#"{"operation":"DELETE","indices":[1]}"#,
            r#"{"operation":"MARK","indices":[4],"mark":"pinned"}"#,
            r#"{"operation":"BATCH_START"}"#,
            r#"{"operation":"APPEND","messages":[{"role":"user","content":"e"}]}"#,
            r#"{"operation":"UNDO"}"#,
        ],
    );
    assert_eq!(view(&conversation), [0, 2, 3, 4, 5]);
    conversation
}

/// The differences between an error, its JSON and the expectations of its case.
fn faults(error: &Error, (request, code, field, words): Case<'_>) -> Vec<String> {
    let json = error.to_json();
    let inner = json["error"].as_object().expect("an error is an object");
    let known = ["code", "message", "field", "details"];
    let as_json = [
        inner.keys().all(|key| known.contains(&&**key)),
        inner["code"] == error.code().as_str(),
        inner["message"] == error.to_string(),
        inner.get("field").and_then(Value::as_str) == error.field().as_deref(),
        inner.get("details").is_none_or(Value::is_object),
    ];
    let mut faults = Vec::new();
    if error.code().as_str() != code {
        faults.push(format!("its code is {}, not {code}", error.code()));
    }
    if error.field().as_deref().unwrap_or("") != field {
        faults.push(format!("its field is {:?}, not {field:?}", error.field()));
    }
    let missing = words.iter().filter(|word| !error.to_string().contains(**word));
    faults.extend(missing.map(|word| format!("it does not say {word:?}")));
    if as_json.contains(&false) {
        faults.push(format!("it is written as {json}"));
    }
    let request: String = request.chars().take(200).collect();
    faults.iter().map(|fault| format!("{request}\n  {error}\n  {fault}\n")).collect()
}

/// Tests all cases on one conversation, and that none of them changed it.
fn check_all(start: impl Fn() -> Conversation, cases: &[Case<'_>]) {
    let conversation = start();
    let before = fingerprint(&conversation);
    let mut found = Vec::new();
    for &case in cases {
        match send(&conversation, case.0, 50) {
            Err(error) => found.extend(faults(&error, case)),
            Ok((_, outcome)) => {
                found.push(format!("{} is accepted: {}", case.0, outcome.to_json()))
            }
        }
        assert_eq!(fingerprint(&conversation), before, "{}", case.0);
    }
    assert!(found.is_empty(), "{}", found.concat());
    // Internal state did not change either: later requests have the same effect.
    conversation.verify().expect("its invariants hold");
    for next in [r#"{"operation":"REDO"}"#, &append(40), r#"{"operation":"UNDO"}"#] {
        let (tried, twin) = (send(&conversation, next, 60), send(&start(), next, 60));
        match (tried, twin) {
            (Ok((tried, _)), Ok((twin, _))) => assert_eq!(fingerprint(&tried), fingerprint(&twin)),
            (tried, twin) => assert_eq!(tried.err(), twin.err()),
        }
    }
}

#[test]
fn a_malformed_request_changes_nothing() {
    check_all(worked, SHAPES);
}

#[test]
fn a_request_that_does_not_fit_the_conversation_changes_nothing() {
    check_all(worked, MISFITS);
}

#[test]
fn a_refused_request_leaves_an_empty_conversation_empty() {
    check_all(fresh, ON_NOTHING);
}

#[test]
fn input_over_the_limits_is_too_large_and_changes_nothing() {
    let requests = oversized();
    let cases: Vec<Case<'_>> = requests
        .iter()
        .map(|(request, field, words)| (&**request, "too_large", *field, *words))
        .collect();
    check_all(worked, &cases);
}

#[test]
fn a_malformed_query_is_refused() {
    let conversation = worked();
    let before = fingerprint(&conversation);
    let refused = |&case: &Case<'_>| {
        let asked = Query::from_json(case.0).and_then(|query| conversation.query(&query));
        faults(&asked.expect_err(case.0), case)
    };
    let found: Vec<String> = QUESTIONS.iter().flat_map(refused).collect();
    assert!(found.is_empty(), "{}", found.concat());
    assert_eq!(fingerprint(&conversation), before);
}

#[test]
fn replacing_a_pinned_entry_is_refused_with_the_field_of_its_position() {
    check_all(
        worked,
        &[(
            r#"{"operation":"REPLACE","index":3,"message":{"role":"user","content":"x"}}"#,
            "pinned",
            "index",
            &["entry 4", "UNMARK"],
        )],
    );
}

#[test]
fn one_refused_operation_refuses_the_whole_list() {
    let conversation = worked();
    let before = fingerprint(&conversation);
    let good = [
        r#"{"operation":"APPEND","messages":[{"role":"user","content":"x"}]}"#,
        r#"{"operation":"CLEAR","keepSystemMessage":false}"#,
        r#"{"operation":"MARK","indices":[7],"mark":"pinned"}"#,
        r#"{"operation":"ROLLBACK","targetVersion":1}"#,
    ];
    let bad = [
        (r#"{"operation":"DELETE","indices":[8]}"#, "index_out_of_range"),
        (r#"{"operation":"ROLLBACK","targetBatchIndex":9}"#, "batch_not_found"),
        (r#"{"operation":"ROLLBACK","targetVersion":7}"#, "version_not_found"),
        (r#"{"operation":"FILTER"}"#, "invalid_operation"),
    ];
    for (bad, code) in bad {
        for place in 0..=good.len() {
            let mut list = good.to_vec();
            list.insert(place, bad);
            let request = format!(r#"{{"ops":[{}]}}"#, list.join(","));
            let error = send(&conversation, &request, 50).expect_err(&request);
            assert_eq!(error.code().as_str(), code, "{request}: {error}");
            assert_eq!(fingerprint(&conversation), before, "{request}");
        }
    }
}

#[test]
fn an_error_in_a_list_names_the_operation() {
    let conversation = worked();
    let second = [
        r#"{"operation":"TRUNCATE","keeplast":1}"#,
        r#"{"operation":"UNDO"}"#,
        r#"{"operation":"APPEND","messages":[{"role":"user","content":""}]}"#,
        r#"{"operation":"DELETE","indices":[99]}"#,
        r#"{"operation":"DELETE","indices":[4]}"#,
    ];
    for operation in second {
        let request = format!(r#"{{"ops":[{{"operation":"BATCH_START"}},{operation}]}}"#);
        let error = send(&conversation, &request, 50).expect_err(&request);
        let json = error.to_json().to_string();
        assert!(json.contains("ops[1]"), "{request}: {json}");
    }
}

#[test]
fn an_error_has_its_numbers_as_details() {
    let conversation = worked();
    let details = |request: &str| {
        let error = send(&conversation, request, 50).expect_err(request);
        error.to_json()["error"]["details"].clone()
    };
    let cases = [
        (
            r#"{"operation":"INSERT","position":9,"messages":[{"role":"user","content":"x"}]}"#,
            serde_json::json!({"position": 9, "viewLength": 5}),
        ),
        (
            r#"{"operation":"DELETE","indices":[9]}"#,
            serde_json::json!({"index": 9, "logLength": 7}),
        ),
        (
            r#"{"operation":"BATCH_START","boundary":9}"#,
            serde_json::json!({"boundary": 9, "logLength": 7}),
        ),
        (r#"{"operation":"DELETE","indices":[4]}"#, serde_json::json!({"index": 4})),
        (
            r#"{"operation":"TRUNCATE","range":{"start":3,"end":1}}"#,
            serde_json::json!({"start": 3, "end": 1}),
        ),
        (
            r#"{"operation":"ROLLBACK","targetBatchIndex":9}"#,
            serde_json::json!({"batch": 9, "currentBatch": 2}),
        ),
        (
            r#"{"operation":"ROLLBACK","targetVersion":9}"#,
            serde_json::json!({"version": 9, "currentVersion": 6}),
        ),
        (r#"{"operation":"FIT","maxTokens":9}"#, serde_json::json!({"needed": 14, "maxTokens": 9})),
        (r#"{"operation":"NOPE"}"#, Value::Null),
    ];
    for (request, expected) in cases {
        assert_eq!(details(request), expected, "{request}");
    }
}

#[test]
fn an_empty_mark_is_refused_in_every_request() {
    let conversation = worked();
    let by_rust = conversation.query(&Query { mark: Some(String::new()), ..Query::default() });
    let by_json = Query::from_json(r#"{"mark":""}"#).and_then(|query| conversation.query(&query));
    let marked = conversation.marked_by_role(Role::User, "");
    for answer in [by_rust, by_json, marked] {
        assert_eq!(answer.map_err(|error| error.code().as_str()), Err("invalid_operation"));
    }
}

#[test]
fn a_refused_request_does_not_end_redo() {
    let conversation = worked();
    for (request, ..) in SHAPES.iter().chain(MISFITS) {
        send(&conversation, request, 50).expect_err(request);
    }
    let (again, _) =
        send(&conversation, r#"{"operation":"REDO"}"#, 51).expect("REDO is still possible");
    assert_eq!(view(&again), [0, 2, 3, 4, 5, 6]);
}

#[test]
fn every_code_of_the_engine_is_reached_by_a_request() {
    // Only a damaged saved conversation causes `storage`; `saved` tests it.
    let codes = Code::ALL.iter().filter(|&&code| code != Code::Storage);
    let defined: BTreeSet<&str> = codes.map(|code| code.as_str()).collect();
    let tables = SHAPES.iter().chain(MISFITS).chain(ON_NOTHING);
    let mut reached: BTreeSet<&str> = tables.map(|&(_, code, ..)| code).collect();
    reached.insert("too_large");
    assert_eq!(reached, defined);
    assert_eq!(reached.len(), 16, "the engine has sixteen codes of the contract");
}
