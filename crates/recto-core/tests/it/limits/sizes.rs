//! The limits on bytes, depth and counts, and input just over them.

use super::*;

fn of_size(bytes: usize) -> String {
    let frame = r#"{"role":"user","content":""}"#.len();
    format!(r#"{{"role":"user","content":"{}"}}"#, "x".repeat(bytes - frame))
}

fn of_depth(depth: usize) -> String {
    let inner = (1..depth).fold("1".to_owned(), |inner, _| format!("[{inner}]"));
    format!(r#"{{"role":"user","content":"x","y":{inner}}}"#)
}

#[test]
fn a_limit_is_the_largest_allowed_value() {
    let request = |messages: &[String]| {
        Request::from_json(&format!(
            r#"{{"operation":"APPEND","messages":[{}]}}"#,
            messages.join(",")
        ))
    };
    let small = || of_depth(1);
    let cases = [
        (request(&[of_size(32 << 20)]), "ok"),
        (request(&[of_size((32 << 20) + 1)]), "too_large"),
        (request(&[of_depth(64)]), "ok"),
        (request(&[of_depth(65)]), "too_large"),
        (request(&vec![small(); 10_000]), "ok"),
        (request(&vec![small(); 10_001]), "too_large"),
    ];
    for (number, (read, expected)) in cases.iter().enumerate() {
        assert_eq!(code_of(read), *expected, "case {number}");
    }
}

#[test]
fn the_messages_of_all_operations_count_together() {
    let one = append(1);
    let list = |count: usize| format!(r#"{{"ops":[{}]}}"#, vec![&*one; count].join(","));
    assert_eq!(code_of(&Request::from_json(&list(10_000))), "ok");
    assert_eq!(code_of(&Request::from_json(&list(10_001))), "too_large");
}

#[test]
fn limits_of_zero_refuse_every_message() {
    let zero = Limits { message_bytes: 0, depth: 0, messages: 0 };
    let json = of_depth(1);
    assert_eq!(code_of(&Message::from_json_within(&json, &zero)), "too_large");
    let read = Request::from_json_within(&append(1), &zero);
    assert_eq!(code_of(&read), "too_large");
    let clear = Request::from_json_within(r#"{"operation":"CLEAR"}"#, &zero);
    assert_eq!(code_of(&clear), "ok");
}

#[test]
fn a_million_messages_are_too_many_for_one_request() {
    let zeros = vec!["0"; 1_000_000].join(",");
    let request = format!(r#"{{"operation":"APPEND","messages":[{zeros}]}}"#);
    assert_eq!(code_of(&Request::from_json(&request)), "too_large", "before any is read");
}

#[test]
fn without_limits_a_hundred_thousand_messages_are_one_request() {
    let request =
        Request::from_json_within(&append(100_000), &Limits::NONE).expect("there is no limit");
    let (conversation, _) = fresh().apply(request, 1).expect("it is accepted");
    assert_eq!(conversation.view().len(), 100_000);
}

/// The limits apply to JSON that is read. Messages of constructors may be larger, because a tool may print
/// any amount of text.
#[test]
fn constructors_accept_large_texts_without_a_panic() {
    let text = "x".repeat(5 << 20);
    assert_eq!(Message::tool_result("c", &text).text().len(), text.len());
    assert_eq!(Message::user(&text).text().len(), text.len());
    assert_eq!(Message::assistant(&text).text().len(), text.len());
    assert_eq!(Message::system(&text).text().len(), text.len());
    let deep = (0..100).fold(serde_json::json!(1), |inner, _| serde_json::json!([inner]));
    let call = Message::tool_call("c", "f", &deep);
    assert_eq!(call.tool_calls().map(|call| call.id).collect::<Vec<_>>(), ["c"]);
    let long = Message::tool_call("c", "f", &serde_json::json!(text));
    assert_eq!(long.tool_calls().count(), 1);
}

#[test]
fn the_name_of_an_unknown_field_is_cut_in_the_error() {
    let name = "k".repeat(1 << 20);
    let error = Request::from_json(&format!(r#"{{"operation":"CLEAR","{name}":1}}"#))
        .expect_err("there is no such field");
    assert_eq!(error.code(), Code::InvalidOperation);
    assert!(error.to_json().to_string().len() < 1_000, "an error is short");
}
