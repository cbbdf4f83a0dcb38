//! All cases of `conformance/`, on every store. Every few steps the store is opened again.

use recto::{
    Counter, Error, Message, Options, Outcome, Query, Recto, Request, Scope, Settings, Tool,
};
use serde_json::json;
use testkit::conformance::{Case, Expect, ExpectedOutcome, Kind, all_cases, comparable_state};

use crate::driver::numbers;
use crate::places::{self, Place};

async fn every_case_has_the_outcome_of_the_contract(place: Place) {
    for (number, case) in all_cases().iter().enumerate() {
        run(&place, number, case).await;
    }
}

#[tokio::test]
async fn in_memory() {
    every_case_has_the_outcome_of_the_contract(places::memory().await).await;
}

#[tokio::test]
async fn in_sqlite() {
    every_case_has_the_outcome_of_the_contract(places::sqlite().await).await;
}

#[cfg(all(unix, feature = "postgres"))]
#[tokio::test]
async fn in_postgres() {
    every_case_has_the_outcome_of_the_contract(places::postgres().await).await;
}

async fn run(place: &Place, number: usize, case: &Case) {
    let name = format!("{number} {}", case.name);
    let counter = <dyn Counter>::named(&case.counter).expect("the counter is built in");
    let settings = Settings {
        counter,
        tools: Tool::list_from_json(&case.tools.to_string()).expect("the tools are well-formed"),
        ..Settings::counting_with(recto::Approx)
    };
    // Without a search index: no case searches.
    let start = || {
        let options = Options { search: false, ..Options::default() };
        Recto::with_store(place.store.clone(), options)
    };
    let mut recto = start();
    let messages = case.messages.as_array().expect("a list of messages").iter();
    let messages: Vec<Message> = messages
        .map(|message| Message::from_json(&message.to_string()).expect("it is well-formed"))
        .collect();
    let created = recto.create_with_messages(&name, settings, &messages).await;
    created.expect("the settings are right");
    for (number, step) in case.steps.iter().enumerate() {
        if number % 7 == 3 {
            recto = start();
        }
        let answer = perform(&recto, &name, &step.kind).await;
        let answer = answer.unwrap_or_else(|error| Expect::Error(error.code().to_owned()));
        assert_eq!(answer, step.expect, "{name}, step {number}: {:?}", step.kind);
    }
}

async fn perform(recto: &Recto, name: &str, kind: &Kind) -> Result<Expect, Error> {
    let conversation = recto.conversation(name).await?;
    match kind {
        Kind::Request(request) => {
            let outcome = conversation.apply(Request::from_json(&request.to_string())?).await?;
            Ok(Expect::Outcome(expected(&outcome)))
        }
        Kind::Ask(query) => {
            let entries = conversation.query(&Query::from_json(&query.to_string())?).await?;
            Ok(Expect::Indices(numbers(entries.into_iter().map(|entry| entry.index))))
        }
        Kind::SetTools(tools) => {
            let tools = Tool::list_from_json(&tools.to_string())?;
            Ok(Expect::Outcome(expected(&conversation.set_tools(tools).await?)))
        }
        Kind::MarkMap => Ok(Expect::MarkMap(json!(conversation.mark_map(Scope::Visible).await?))),
        Kind::MarkMapOfAll => Ok(Expect::MarkMap(json!(conversation.mark_map(Scope::All).await?))),
        Kind::State => Ok(Expect::State(comparable_state(&json!(conversation.state().await?)))),
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
