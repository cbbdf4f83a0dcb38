//! Hand-written requests for every rule of every provider: accepted ones, and refused ones that
//! break one rule.

use serde_json::{Value, json};
use testkit::provider::Provider;

mod anthropic;
mod bedrock_converse;
mod gemini;
mod openai_chat;
mod openai_responses;
mod tools;

/// A rule, the path of the wrong value, and a request that breaks the rule there.
struct Refused(&'static str, &'static str, Value);

fn accepts(provider: Provider, requests: Vec<Value>) {
    for request in requests {
        let result = provider.check(&request);
        assert!(result.is_ok(), "{}: {:?} for {request:#}", provider.name(), result);
    }
}

fn refuses(provider: Provider, cases: Vec<Refused>) {
    for Refused(rule, at, request) in cases {
        let Err(violation) = provider.check(&request) else {
            panic!("{} accepts a request that breaks {rule}: {request:#}", provider.name());
        };
        assert_eq!((violation.rule, violation.at.as_str()), (rule, at), "{violation}\n{request:#}");
    }
}

/// Every rule has a request that breaks it.
fn covers(provider: Provider, cases: &[Refused], others: &[&str]) {
    for rule in provider.rules() {
        let covered = cases.iter().any(|case| case.0 == *rule) || others.contains(rule);
        assert!(covered, "{} has no refused request for {rule}", provider.name());
    }
    for case in cases {
        assert!(provider.rules().contains(&case.0), "{} is not in the list", case.0);
    }
}

#[test]
fn values_that_are_not_requests_are_refused_by_all() {
    for provider in Provider::ALL {
        for request in [json!(null), json!([]), json!("hi"), json!({}), json!({"messages": {}})] {
            assert!(provider.check(&request).is_err(), "{} accepts {request}", provider.name());
        }
    }
}
