//! Hostile messages and requests: each is returned byte for byte or refused with a typed error. The lists
//! are in `testkit`, because other surfaces and the stores use them too.

use recto_core::{
    Conversation, Error, LogIndex, Message, Query, Request, Restore, Rollback, Version,
};
use testkit::corpus::{
    KEPT, MESSAGES, QUERIES, REQUESTS, START, made_messages, name, without_space_around,
};

use crate::conversations::{after, fresh, send};
use crate::driver::fingerprint;

/// The conversation to which the requests and queries are sent.
fn conversation() -> Conversation {
    after(fresh(), START)
}

fn code_of<T>(result: &Result<T, Error>) -> &'static str {
    match result {
        Ok(_) => KEPT,
        Err(error) => error.code().as_str(),
    }
}

#[test]
fn the_corpus_is_long_enough() {
    let count = MESSAGES.len() + made_messages().len() + REQUESTS.len() + QUERIES.len();
    assert!(count >= 300, "{count}");
}

#[test]
fn a_hostile_message_is_returned_byte_for_byte_or_refused() {
    for &(json, expected) in MESSAGES {
        check_message(json, expected);
    }
}

#[test]
fn a_hostile_message_of_any_length_is_returned_byte_for_byte_or_refused() {
    for (json, expected) in made_messages() {
        check_message(&json, expected);
    }
}

/// Tests one message alone and inside a request.
fn check_message(json: &str, expected: &str) {
    let message = Message::from_json(json);
    assert_eq!(code_of(&message), expected, "{}", name(json));
    if expected == "invalid_json" {
        return;
    }
    let request = format!(r#"{{"operation":"APPEND","messages":[{json}]}}"#);
    let appended = send(&fresh(), &request, 5);
    assert_eq!(code_of(&appended), expected, "{}", name(&request));
    if let (Ok(message), Ok((conversation, _))) = (message, appended) {
        assert_eq!(message.json(), without_space_around(json));
        check_returned(&message, conversation);
    }
}

/// Checks that every read of an appended message returns the same bytes.
fn check_returned(message: &Message, conversation: Conversation) {
    let shown = name(message.json());
    let is_same = |conversation: &Conversation| {
        let entry = conversation.log().get(LogIndex(0)).expect("it is in the log");
        assert_eq!(entry.message.json(), message.json(), "{shown}");
        assert_eq!(entry.message.text(), message.text(), "{shown}");
    };
    is_same(&conversation);
    conversation.verify().unwrap_or_else(|fault| panic!("{shown}: {fault}"));

    let text = message.text();
    if !message.json().contains("thinking") {
        let tokens = text.len().div_ceil(4) + 3 + 1_000 * message.media_count();
        assert_eq!(conversation.view().tokens(), tokens as u64, "{shown}");
    }
    if !text.is_empty() {
        assert_eq!(
            conversation.search(&text).map(|hits| hits.len()),
            Ok(1),
            "{shown}: it has its text"
        );
    }

    let hide = format!(
        r#"{{"operation":"COMPRESS","indices":[0],"summary":{}}}"#,
        r#"{"role":"user","content":"s"}"#
    );
    let (hidden, _) = send(&conversation, &hide, 6).expect("it can be hidden");
    is_same(&hidden);
    let (shown_again, outcome) =
        hidden.apply(Restore { indices: vec![LogIndex(0)] }, 7).expect("it can be restored");
    is_same(&shown_again);
    outcome.to_json();
    let (back, _) =
        shown_again.apply(Rollback::ToVersion(Version(1)), 8).expect("the version exists");
    assert_eq!(back.messages().next().map(Message::json), Some(message.json()));
    is_same(&back.at(Version(1)).expect("it exists"));
    is_same(&crate::driver::reloaded(&back));
}

#[test]
fn a_hostile_request_is_applied_completely_or_changes_nothing() {
    let conversation = conversation();
    let before = fingerprint(&conversation);
    for &(request, expected) in REQUESTS {
        let answer = send(&conversation, request, 9);
        assert_eq!(code_of(&answer), expected, "{request}");
        if let Ok((next, outcome)) = answer {
            next.verify().unwrap_or_else(|fault| panic!("{request}: {fault}"));
            outcome.to_json();
            let at = next.at(conversation.version()).expect("it exists");
            assert_eq!(fingerprint(&at), before, "{request}: the version before is as it was");
        }
        assert_eq!(fingerprint(&conversation), before, "{request}");
    }
}

#[test]
fn a_hostile_query_is_answered_or_refused() {
    let conversation = conversation();
    for &(query, expected) in QUERIES {
        let answer = Query::from_json(query).and_then(|query| conversation.query(&query));
        assert_eq!(code_of(&answer), expected, "{query}");
    }
}

#[test]
fn every_prefix_of_a_request_is_refused() {
    let request = r#"{"ops":[{"operation":"APPEND","messages":[{"role":"user","content":"\ud83d\ude00é"}]}]}"#;
    assert!(Request::from_json(request).is_ok());
    for (end, _) in request.char_indices() {
        let cut = &request[..end];
        assert_eq!(code_of(&Request::from_json(cut)), "invalid_json", "{cut}");
        assert_eq!(code_of(&Message::from_json(cut)), "invalid_json", "{cut}");
    }
}

#[test]
fn half_a_surrogate_pair_is_read_as_a_replacement_and_kept_unchanged() {
    let json = r#"{"role":"user","content":"a\ud800b"}"#;
    let message = Message::from_json(json).expect("it is kept");
    assert_eq!((message.json(), &*message.text()), (json, "a\u{fffd}b"));
}

#[test]
fn one_id_in_two_spellings_is_one_id() {
    let conversation = after(
        fresh(),
        &[r#"{"operation":"APPEND","messages":[
            {"role":"assistant","content":[{"type":"tool_use","id":"c\/1","name":"f","input":{}}]},
            {"role":"tool","content":[{"type":"tool_result","tool_use_id":"\u0063/1"}]}]}"#],
    );
    let (_, outcome) =
        send(&conversation, r#"{"operation":"BATCH_START"}"#, 2).expect("it is accepted");
    assert_eq!(outcome.warnings(), []);
    let (_, outcome) =
        send(&conversation, r#"{"operation":"DELETE","indices":[0]}"#, 2).expect("it is accepted");
    assert_eq!(outcome.warnings().len(), 1, "the result is torn");
}
