//! All cases of `conformance/`, on the Rust API.

use recto_core::{Conversation, Counter, Outcome, Query, Request, Settings, Tool};
use serde_json::Value;
use testkit::conformance::{Case, Expect, ExpectedOutcome, Kind, all_cases};

use crate::driver::{fingerprint, numbers};

#[test]
fn every_case_is_answered_as_the_contract_says() {
    let cases = all_cases();
    assert!(cases.len() > 300, "the conformance folder is complete");
    for case in cases {
        run(&case);
    }
}

fn run(case: &Case) {
    let counter = <dyn Counter>::named(&case.counter).expect("the counter is built in");
    let settings = Settings {
        counter,
        tools: Tool::list_from_json(&case.tools.to_string()).expect("the tools are well-formed"),
        ..Settings::counting_with(recto_core::Approx)
    };
    let mut conversation = Conversation::new(settings, 0).expect("the settings are right");
    for (number, step) in case.steps.iter().enumerate() {
        let answer = perform(&mut conversation, &step.kind);
        assert_eq!(answer, step.expect, "{}, step {number}: {:?}", case.name, step.kind);
    }
    conversation.verify().expect("the conversation holds together");
}

fn perform(conversation: &mut Conversation, kind: &Kind) -> Expect {
    let result = match kind {
        Kind::Request(request) => apply(conversation, request),
        Kind::Ask(query) => Query::from_json(&query.to_string())
            .and_then(|query| conversation.ask(&query))
            .map(|hits| Expect::Indices(numbers(hits.into_iter().map(|hit| hit.index)))),
        Kind::MarkMap => {
            let map =
                serde_json::to_value(conversation.mark_map().unwrap()).expect("it can be written");
            Ok(Expect::MarkMap(map))
        }
    };
    result.unwrap_or_else(|error| Expect::Error(error.code().to_string()))
}

fn apply(conversation: &mut Conversation, request: &Value) -> Result<Expect, recto_core::Error> {
    let before = fingerprint(conversation);
    let result = Request::from_json(&request.to_string())
        .and_then(|request| conversation.apply(request, 1_000_000));
    match result {
        Ok((next, outcome)) => {
            *conversation = next;
            Ok(Expect::Outcome(expected(&outcome)))
        }
        Err(error) => {
            assert_eq!(before, fingerprint(conversation), "a refused request changes nothing");
            Err(error)
        }
    }
}

fn expected(outcome: &Outcome) -> ExpectedOutcome {
    ExpectedOutcome {
        version: u64::from(outcome.version.0),
        batch: outcome.stats().current_batch_index.0,
        batches: outcome.stats().total_batches,
        log: outcome.stats().total_messages,
        tokens: outcome.stats().tokens,
        changed: outcome.changed,
        view: numbers(outcome.view().iter()),
        hidden: numbers(outcome.hidden()),
        shown: numbers(outcome.shown()),
        added: numbers(outcome.added()),
        shared_prefix: outcome.shared_prefix().messages,
    }
}
