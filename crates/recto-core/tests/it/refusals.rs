//! Every error of the contract: reachable, typed, telling what would be right, and without a trace
//! in the conversation that refused.

mod cases;
mod typed;

use std::collections::BTreeSet;

use recto_core::{Conversation, Error, Query, Role};
use serde_json::Value;

use self::cases::{Case, MISFITS, ON_NOTHING, QUESTIONS, SHAPES, oversized};
use crate::driver::fingerprint;
use crate::talk::{after, append, fresh, send, view};

/// Seven log entries of which 1 and 6 are hidden and 4 is pinned; version 6, batch 2, and a request
/// that was taken back.
fn worked() -> Conversation {
    let talk = after(
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
    assert_eq!(view(&talk), [0, 2, 3, 4, 5]);
    talk
}

/// What an error does not say as its case wants it, or as JSON says it otherwise.
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

/// Tests all cases on one conversation, and that none of them left a trace in it.
fn check_all(start: impl Fn() -> Conversation, cases: &[Case<'_>]) {
    let talk = start();
    let before = fingerprint(&talk);
    let mut found = Vec::new();
    for &case in cases {
        match send(&talk, case.0, 50) {
            Err(error) => found.extend(faults(&error, case)),
            Ok((_, outcome)) => {
                found.push(format!("{} is accepted: {}", case.0, outcome.to_json()))
            }
        }
        assert_eq!(fingerprint(&talk), before, "{}", case.0);
    }
    assert!(found.is_empty(), "{}", found.concat());
    // What is hidden from the outside did not change either: both go on alike.
    talk.verify().expect("it holds together");
    for next in [r#"{"operation":"REDO"}"#, &append(40), r#"{"operation":"UNDO"}"#] {
        let (tried, twin) = (send(&talk, next, 60), send(&start(), next, 60));
        match (tried, twin) {
            (Ok((tried, _)), Ok((twin, _))) => assert_eq!(fingerprint(&tried), fingerprint(&twin)),
            (tried, twin) => assert_eq!(tried.err(), twin.err()),
        }
    }
}

#[test]
fn a_malformed_request_is_refused_without_a_trace() {
    check_all(worked, SHAPES);
}

#[test]
fn a_request_that_does_not_fit_the_conversation_is_refused_without_a_trace() {
    check_all(worked, MISFITS);
}

#[test]
fn an_empty_conversation_refuses_without_a_trace() {
    check_all(fresh, ON_NOTHING);
}

#[test]
fn what_is_over_the_limits_is_too_large_and_leaves_no_trace() {
    let requests = oversized();
    let cases: Vec<Case<'_>> = requests
        .iter()
        .map(|(request, field, words)| (&**request, "too_large", *field, *words))
        .collect();
    check_all(worked, &cases);
}

#[test]
fn a_malformed_or_misplaced_question_is_refused() {
    let talk = worked();
    let before = fingerprint(&talk);
    let refused = |&case: &Case<'_>| {
        let asked = Query::from_json(case.0).and_then(|query| talk.query(&query));
        faults(&asked.expect_err(case.0), case)
    };
    let found: Vec<String> = QUESTIONS.iter().flat_map(refused).collect();
    assert!(found.is_empty(), "{}", found.concat());
    assert_eq!(fingerprint(&talk), before);
}

#[test]
fn a_pinned_entry_named_by_its_place_is_refused_for_that_field() {
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
fn a_list_is_refused_whole_for_one_of_its_operations() {
    let talk = worked();
    let before = fingerprint(&talk);
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
            let error = send(&talk, &request, 50).expect_err(&request);
            assert_eq!(error.code().as_str(), code, "{request}: {error}");
            assert_eq!(fingerprint(&talk), before, "{request}");
        }
    }
}

#[test]
fn a_refusal_in_a_list_says_which_operation_it_is() {
    let talk = worked();
    let second = [
        r#"{"operation":"TRUNCATE","keeplast":1}"#,
        r#"{"operation":"UNDO"}"#,
        r#"{"operation":"APPEND","messages":[{"role":"user","content":""}]}"#,
        r#"{"operation":"DELETE","indices":[99]}"#,
        r#"{"operation":"DELETE","indices":[4]}"#,
    ];
    for operation in second {
        let request = format!(r#"{{"ops":[{{"operation":"BATCH_START"}},{operation}]}}"#);
        let error = send(&talk, &request, 50).expect_err(&request);
        let json = error.to_json().to_string();
        assert!(json.contains("ops[1]"), "{request}: {json}");
    }
}

#[test]
fn an_error_carries_the_numbers_that_it_is_about() {
    let talk = worked();
    let details = |request: &str| {
        let error = send(&talk, request, 50).expect_err(request);
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
fn an_empty_label_is_refused_however_it_is_asked_for() {
    let talk = worked();
    let by_rust = talk.query(&Query { mark: Some(String::new()), ..Query::default() });
    let by_json = Query::from_json(r#"{"mark":""}"#).and_then(|query| talk.query(&query));
    let marked = talk.marked_by_role(Role::User, "");
    for answer in [by_rust, by_json, marked] {
        assert_eq!(answer.map_err(|error| error.code().as_str()), Err("invalid_operation"));
    }
}

#[test]
fn a_refused_request_does_not_end_redo() {
    let talk = worked();
    for (request, ..) in SHAPES.iter().chain(MISFITS) {
        send(&talk, request, 50).expect_err(request);
    }
    let (again, _) = send(&talk, r#"{"operation":"REDO"}"#, 51).expect("REDO is still possible");
    assert_eq!(view(&again), [0, 2, 3, 4, 5, 6]);
}

#[test]
fn every_code_of_the_engine_is_reached_by_a_request() {
    // The list of codes is read from where it is written, so that a new one cannot be forgotten.
    let source = include_str!("../../src/error.rs");
    let written: BTreeSet<&str> = source
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Code::")?.split_once(" => \""))
        .filter_map(|(_, code)| code.strip_suffix("\","))
        // Only a saved conversation that is damaged gives this one; `saved` tests it.
        .filter(|&code| code != "storage")
        .collect();
    let tables = SHAPES.iter().chain(MISFITS).chain(ON_NOTHING);
    let mut reached: BTreeSet<&str> = tables.map(|&(_, code, ..)| code).collect();
    reached.insert("too_large");
    assert_eq!(reached, written);
    assert_eq!(reached.len(), 16, "the contract names sixteen codes that an engine can give");
}
