//! Fresh conformance cases: random steps with the responses of the model.
//!
//! A case has the form of a line of `conformance/random.jsonl`, so the packages for Python and Node run fresh cases
//! with the code that runs the stored ones. The binary `random-cases` writes them.

use serde_json::{Value, json};

use crate::conformance::comparable_state;
use crate::generate::{Choices, Step, conversation, numbers, step};
use crate::model::{Model, Outcome, Refusal, Settings};

/// The time of all requests to the model, in milliseconds. A message without a timestamp gets the time of its
/// request, which a store takes from the clock. Queries name times below 2,000, so every later time selects the same
/// messages.
const NOW: i64 = 1_800_000_000_000;

/// Steps of a case.
const STEPS: std::ops::Range<usize> = 5..45;

/// The case of a seed.
pub fn random_case(seed: u64) -> Value {
    let start = numbers(seed, 61);
    let mut model = with_default_settings(&conversation(&mut Choices::new(&start[1..]), NOW));
    let mut case = json!({"name": format!("random {seed}"), "counter": "approx"});
    if !model.tools().is_empty() {
        case["tools"] = Value::from_iter(model.tools().iter().map(|tool| tool.json.clone()));
    }
    if model.initial_messages() != &json!([]) {
        case["messages"] = model.initial_messages().clone();
    }
    let count = STEPS.start + usize::from(start[0]) % STEPS.len();
    let steps = (0..count as u64).filter_map(|number| {
        let numbers = numbers(seed.wrapping_mul(1_000_003).wrapping_add(number), 120);
        let step = step(&mut Choices::new(&numbers), &model);
        written(&step, &mut model)
    });
    case["steps"] = Value::from_iter(steps);
    case
}

/// A case has only tools and messages; everything else is the default.
fn with_default_settings(model: &Model) -> Model {
    let settings = Settings { tools: model.settings().tools.clone(), ..Settings::default() };
    Model::with_messages(settings, model.initial_messages(), NOW).expect("these messages are valid")
}

/// The step in the form of a case, with the response of the model. `None` if cases have no such step.
fn written(step: &Step, model: &mut Model) -> Option<Value> {
    let (mut written, expect) = match step {
        Step::Apply(request) => {
            // A request without an operation does not concern a conversation.
            request.get("op").or_else(|| request.get("ops"))?;
            (request.clone(), outcome(model.apply(request, NOW)))
        }
        Step::SetTools(tools) => (json!({"setTools": tools}), outcome(model.set_tools(tools, NOW))),
        Step::Ask(query) => {
            let found = model.query(query).map(|indices| json!({"indices": indices}));
            (json!({"ask": query}), found.unwrap_or_else(|refusal| error(&refusal)))
        }
        Step::MarkMap => (json!({"markMap": true}), model.mark_map()),
        Step::MarkMapOfAll => (json!({"markMap": {"scope": "all"}}), model.mark_map_of_all()),
        Step::State => (json!({"state": true}), comparable_state(&model.state())),
        Step::Snapshot(_) | Step::Diff(..) => return None,
    };
    written["expect"] = expect;
    Some(written)
}

fn outcome(result: Result<Outcome, Refusal>) -> Value {
    match result {
        Ok(outcome) => json!({
            "version": outcome.version,
            "batch": outcome.batch,
            "batches": outcome.batches,
            "view": outcome.view,
            "log": outcome.log,
            "changed": outcome.changed,
            "tokens": outcome.tokens,
            "hidden": outcome.hidden,
            "shown": outcome.shown,
            "added": outcome.added,
            "sharedPrefix": outcome.shared_prefix_messages,
        }),
        Err(refusal) => error(&refusal),
    }
}

fn error(refusal: &Refusal) -> Value {
    json!({"error": refusal.code})
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::conformance::Case;

    #[test]
    fn a_seed_always_gives_the_same_case() {
        assert_eq!(random_case(7), random_case(7));
        assert_ne!(random_case(7)["steps"], random_case(8)["steps"]);
    }

    #[test]
    fn cases_have_the_form_of_the_stored_ones() {
        let cases: Vec<Value> = (0..50).map(random_case).collect();
        let steps: usize = cases.iter().map(|case| Case::read(case).steps.len()).sum();
        assert!(steps > 50 * STEPS.start, "{steps} steps");
        let fields = |one: &Value| one.as_object().expect("an object").keys().cloned().collect();
        let found: Vec<Vec<String>> = cases.iter().map(fields).collect();
        let found: BTreeSet<String> = found.concat().into_iter().collect();
        assert_eq!(Vec::from_iter(found), ["counter", "messages", "name", "steps", "tools"]);
        let steps = cases.iter().flat_map(|case| case["steps"].as_array().expect("steps"));
        let expected: Vec<&Value> = steps.map(|step| &step["expect"]).collect();
        for field in ["version", "error", "indices", "originalIndices", "batchSnapshots"] {
            assert!(expected.iter().any(|expect| expect.get(field).is_some()), "{field}");
        }
    }
}
