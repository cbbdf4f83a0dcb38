//! The model has the expected results of the corpus for every input that its JSON values
//! can represent.

use serde_json::{Value, json};
use testkit::corpus::{KEPT, MESSAGES, QUERIES, REQUESTS, START};
use testkit::{Model, Refusal, Settings};

/// The conversation to which the requests and queries are applied. A JSON value cannot contain half of a
/// surrogate pair, so it is left out.
fn start() -> Model {
    let mut model = Model::new(Settings::default(), 0);
    for request in START {
        let operation: Value = serde_json::from_str(&request.replace("\\ud800", "")).unwrap();
        model.apply(&json!({"op": operation}), 0).unwrap();
    }
    model
}

fn code_or_kept<T>(result: Result<T, Refusal>) -> &'static str {
    result.map_or_else(|refusal| refusal.code, |_| KEPT)
}

/// The inputs that JSON values represent exactly, which excludes numbers with many digits and minus zero.
fn exact(inputs: &'static [(&str, &str)]) -> impl Iterator<Item = (Value, &'static str)> {
    let is_exact = |text: &&(&str, &str)| {
        let digits = text.0.split(|c: char| !c.is_ascii_digit());
        digits.map(str::len).max().unwrap_or(0) < 19 && !text.0.contains("-0")
    };
    inputs
        .iter()
        .filter(is_exact)
        .filter_map(|&(text, expected)| Some((serde_json::from_str(text).ok()?, expected)))
}

#[test]
fn messages_are_accepted_or_refused() {
    for (message, expected) in exact(MESSAGES) {
        let append = json!({"op": {"operation": "APPEND", "messages": [message]}});
        let mut model = Model::new(Settings::default(), 0);
        assert_eq!(code_or_kept(model.apply(&append, 0)), expected, "{message}");
    }
}

#[test]
fn requests_are_accepted_or_refused() {
    for (request, expected) in exact(REQUESTS) {
        let is_bare = request.get("operation").is_some()
            || request.get("op").or(request.get("ops")).is_none();
        let has_both = request.get("operation").is_some() && request.get("op").is_some();
        let wrapped = if is_bare && !has_both { json!({"op": request}) } else { request.clone() };
        assert_eq!(code_or_kept(start().apply(&wrapped, 0)), expected, "{request}");
    }
}

#[test]
fn queries_are_accepted_or_refused() {
    for (query, expected) in exact(QUERIES) {
        assert_eq!(code_or_kept(start().query(&query)), expected, "{query}");
    }
}
