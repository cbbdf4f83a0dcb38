//! All cases of `conformance/`, on the Rust API.

use recto_core::{
    Conversation, Counter, MarkMap, Message, Outcome, Query, Request, Scope, Settings, Tool,
};
use testkit::conformance::{Case, Expect, ExpectedOutcome, Kind, all_cases, comparable_state};

use crate::driver::{fingerprint, numbers};

#[test]
fn every_case_has_the_response_of_the_contract() {
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
    let messages = case.messages.as_array().expect("a list of messages").iter();
    let messages: Vec<Message> = messages
        .map(|message| Message::from_json(&message.to_string()).expect("it is well-formed"))
        .collect();
    let conversation = Conversation::with_messages(settings, &messages, 0);
    let mut conversation = conversation.expect("the settings are valid");
    for (number, step) in case.steps.iter().enumerate() {
        let answer = perform(&mut conversation, &step.kind);
        assert_eq!(answer, step.expect, "{}, step {number}: {:?}", case.name, step.kind);
    }
    conversation.verify().expect("its invariants hold");
}

fn perform(conversation: &mut Conversation, kind: &Kind) -> Expect {
    let result = match kind {
        Kind::Request(request) => change(conversation, |conversation| {
            let request = Request::from_json(&request.to_string())?;
            conversation.apply(request, 1_000_000)
        }),
        Kind::SetTools(tools) => change(conversation, |conversation| {
            let tools = Tool::list_from_json(&tools.to_string())?;
            conversation.set_tools(tools, 1_000_000)
        }),
        Kind::Ask(query) => Query::from_json(&query.to_string())
            .and_then(|query| conversation.query(&query))
            .map(|hits| Expect::Indices(numbers(hits.into_iter().map(|hit| hit.index)))),
        Kind::MarkMap => conversation.mark_map(Scope::Visible).map(|map| written(&map)),
        Kind::MarkMapOfAll => conversation.mark_map(Scope::All).map(|map| written(&map)),
        Kind::State => conversation.array_state().map(|state| {
            Expect::State(comparable_state(&serde_json::to_value(state).expect("it is plain")))
        }),
    };
    result.unwrap_or_else(|error| Expect::Error(error.code().to_string()))
}

fn written(map: &MarkMap) -> Expect {
    Expect::MarkMap(serde_json::to_value(map).expect("it can be written"))
}

fn change(
    conversation: &mut Conversation,
    perform: impl FnOnce(&Conversation) -> Result<(Conversation, Outcome), recto_core::Error>,
) -> Result<Expect, recto_core::Error> {
    let before = fingerprint(conversation);
    match perform(conversation) {
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
