//! The model against every conformance case, field by field.

use testkit::conformance::{Case, Expect, ExpectedOutcome, Kind, all_cases, comparable_state};
use testkit::{Model, Refusal, Settings, Tool};

/// Performs a step and returns the result in the form of the cases.
fn result(model: &mut Model, kind: &Kind) -> Expect {
    let result = match kind {
        Kind::Request(request) => model
            .apply(request, 5_000)
            .map(|outcome| Expect::Outcome(ExpectedOutcome::from(outcome))),
        Kind::Ask(query) => model.query(query).map(Expect::Indices),
        Kind::SetTools(tools) => model
            .set_tools(tools, 5_000)
            .map(|outcome| Expect::Outcome(ExpectedOutcome::from(outcome))),
        Kind::MarkMap => Ok(Expect::MarkMap(model.mark_map())),
        Kind::MarkMapOfAll => Ok(Expect::MarkMap(model.mark_map_of_all())),
        Kind::State => Ok(Expect::State(comparable_state(&model.state()))),
    };
    result.unwrap_or_else(|Refusal { code, .. }| Expect::Error(code.to_owned()))
}

/// Removes the tokens. The model counts only with `approx`, so tokens of other counters are not compared.
fn without_tokens(expect: Expect) -> Expect {
    match expect {
        Expect::Outcome(outcome) => Expect::Outcome(ExpectedOutcome { tokens: 0, ..outcome }),
        other => other,
    }
}

fn failures(case: &Case) -> Vec<String> {
    let tools = Tool::read_list(&case.tools).expect("the tools of a case");
    let settings = Settings { tools, ..Settings::default() };
    let mut model =
        Model::with_messages(settings, &case.messages, 5_000).expect("the messages of a case");
    let mut failures = Vec::new();
    for (number, step) in case.steps.iter().enumerate() {
        let (version, log_len) = (model.version(), model.log_len());
        let mut actual = result(&mut model, &step.kind);
        let mut expect = step.expect.clone();
        if case.counter != "approx" {
            actual = without_tokens(actual);
            expect = without_tokens(expect);
        }
        if actual != expect {
            failures.push(format!(
                "{}, step {number}: {:?}\n  expected {expect:?}\n  actual {actual:?}",
                case.name, step.kind
            ));
        }
        let refused = matches!(actual, Expect::Error(_));
        if refused && (model.version(), model.log_len()) != (version, log_len) {
            failures.push(format!("{}, step {number}: refused, but the state changed", case.name));
        }
    }
    failures
}

#[test]
fn every_conformance_case_has_the_expected_results() {
    let cases = all_cases();
    let failures: Vec<String> = cases.iter().flat_map(failures).collect();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    let steps: usize = cases.iter().map(|case| case.steps.len()).sum();
    assert!(cases.len() >= 403 && steps >= 6_845, "{} cases, {steps} steps", cases.len());
}

#[test]
fn every_conformance_case_counts_with_approx() {
    let others = all_cases().iter().filter(|case| case.counter != "approx").count();
    assert_eq!(others, 0);
}
