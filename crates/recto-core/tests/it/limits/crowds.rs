//! Messages with very many parts and tool calls, and thousands of torn tool exchanges.

use super::*;

fn parts(count: usize, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect::<Vec<_>>().join(",")
}

fn call(number: usize) -> String {
    format!(r#"{{"type":"tool_use","id":"c{number}","name":"f","input":{{}}}}"#)
}

fn result(number: usize) -> String {
    format!(r#"{{"type":"tool_result","tool_use_id":"c{number}","content":"r"}}"#)
}

fn message(role: &str, parts: &str) -> Message {
    let json = format!(r#"{{"role":"{role}","content":[{parts}]}}"#);
    Message::from_json_within(&json, &Limits::NONE).expect("it is well-formed")
}

fn torn(outcome: &recto_core::Outcome) -> Vec<(WarningCode, usize)> {
    outcome.warnings().iter().map(|warning| (warning.code, warning.indices.len())).collect()
}

#[test]
fn a_message_may_have_a_hundred_thousand_parts() {
    let text = message("user", &parts(100_000, |_| r#"{"type":"text","text":"a"}"#.into()));
    assert_eq!(text.text().len(), 199_999);
    let (conversation, _) = fresh().append([text], 1).expect("it is accepted");
    assert_eq!(conversation.view().tokens(), 50_003);
}

#[test]
fn each_of_a_hundred_thousand_images_is_counted() {
    let json = format!(
        r#"{{"role":"user","content":[{}]}}"#,
        parts(100_000, |_| r#"{"type":"file"}"#.into())
    );
    let files = Message::from_json(&json).expect("it is below the default limits");
    assert_eq!(files.media_count(), 100_000);
    let (conversation, _) = fresh().append([files], 1).expect("it is accepted");
    assert_eq!(conversation.view().tokens(), 100_000 * 1_000 + 3);
}

#[test]
fn a_hundred_thousand_calls_in_one_message_keep_their_results() {
    const CALLS: usize = 100_000;
    let calls = message("assistant", &parts(CALLS, call));
    let results = message("tool", &parts(CALLS, result));
    let conversation = fresh();
    let (conversation, outcome) =
        conversation.append([calls, results, Message::user("x")], 1).expect("ok");
    assert_eq!(torn(&outcome), []);
    let tokens = conversation.view().tokens();
    let (fitted, _) = conversation.apply(Fit::within(tokens - 1), 2).expect("something fits");
    assert_eq!(view(&fitted), [2], "a run does not start between a call and its result");
    let (cut, outcome) =
        send(&conversation, r#"{"operation":"DELETE","indices":[1]}"#, 2).expect("it is accepted");
    assert_eq!(torn(&outcome), [(WarningCode::TornCall, 1)]);
    let (cut, outcome) = send(
        &cut,
        r#"{"ops":[{"operation":"RESTORE","indices":[1]},{"operation":"DELETE","indices":[0]}]}"#,
        3,
    )
    .expect("it is accepted");
    assert_eq!(torn(&outcome), [(WarningCode::TornResult, 1)]);
    cut.verify().expect("its invariants hold");
}

#[test]
fn ten_thousand_torn_exchanges_cause_warnings_and_can_be_edited() {
    const EXCHANGES: usize = 10_000;
    let calls = (0..EXCHANGES).map(|n| message("assistant", &call(n)));
    let results = (0..EXCHANGES).map(|n| message("tool", &result(n)));
    let (conversation, outcome) = fresh().append(calls.chain(results), 1).expect("it is accepted");
    assert_eq!(torn(&outcome), []);
    // All calls first, then all results: every start between them is inside an exchange.
    let budget = Fit::within(conversation.view().tokens() - 1);
    let error = conversation.apply(budget, 2).expect_err("no run can start anywhere");
    let (needed, max_tokens) = (conversation.view().tokens(), conversation.view().tokens() - 1);
    assert_eq!(error, Error::BudgetTooSmall { needed, max_tokens });

    let truncate = Truncate { keep_first: Some(EXCHANGES), ..Truncate::default() };
    let (calls, outcome) = conversation.apply(truncate.clone(), 2).expect("it is accepted");
    assert_eq!(torn(&outcome), [(WarningCode::TornCall, EXCHANGES)]);
    let last = Truncate { keep_last: Some(EXCHANGES), ..Truncate::default() };
    let (results, outcome) = conversation.apply(last, 2).expect("it is accepted");
    assert_eq!(torn(&outcome), [(WarningCode::TornResult, EXCHANGES)]);

    for torn_talk in [calls, results] {
        let tokens = torn_talk.view().tokens();
        let (half, _) = torn_talk.apply(Fit::within(tokens / 2), 3).expect("half fits");
        assert_eq!(half.view().len(), EXCHANGES / 2, "a torn exchange does not restrict the run");
        let middle = format!(
            r#"{{"operation":"INSERT","position":{},"messages":[{{"role":"user","content":"x"}}]}}"#,
            EXCHANGES / 2
        );
        let (edited, outcome) = send(&torn_talk, &middle, 3).expect("it is accepted");
        assert_eq!(outcome.warnings()[0].indices.len(), EXCHANGES);
        assert_eq!(
            edited.view().get(Position(EXCHANGES / 2)),
            Some(LogIndex(2 * EXCHANGES as u32))
        );
    }
}

#[test]
fn a_thousand_calls_with_one_id_are_paired() {
    const COUNT: usize = 1_000;
    let calls = (0..COUNT).map(|_| message("assistant", &call(0)));
    let results = (0..COUNT).map(|_| message("tool", &result(0)));
    let (conversation, outcome) = fresh().append(calls.chain(results), 1).expect("it is accepted");
    assert_eq!(torn(&outcome), []);
    let error = conversation.apply(Fit::within(100), 2).expect_err("no run can start anywhere");
    let (needed, max_tokens) = (conversation.view().tokens(), 100);
    assert_eq!(error, Error::BudgetTooSmall { needed, max_tokens });
    let (cut, outcome) =
        send(&conversation, r#"{"operation":"DELETE","indices":[0]}"#, 2).expect("it is accepted");
    assert_eq!(torn(&outcome), [(WarningCode::TornResult, 1)]);
    cut.verify().expect("its invariants hold");
}
