//! Random steps on the model: invariants, and the coverage of the generator.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use testkit::generate::{Choices, Step, conversation, numbers, step};
use testkit::{Model, Outcome, Refusal, Settings};

/// Number of sequences and their length. Long sequences reach deep histories, short ones early states.
const LONG: (u64, usize) = (6, 2_000);
const SHORT: (u64, usize) = (200, 30);

/// Coverage of the random steps.
#[derive(Default)]
struct Coverage {
    accepted: usize,
    refused: usize,
    unchanged: usize,
    warnings: BTreeMap<&'static str, usize>,
    tools_restored: usize,
    created_with_messages: usize,
    /// Fields of accepted operations, as `name.field`.
    fields: BTreeSet<String>,
    operations: BTreeMap<String, usize>,
    codes: BTreeMap<&'static str, usize>,
}

/// The readable state of a model, for comparisons.
fn whole_state(model: &Model) -> Value {
    json!({
        "version": model.version(),
        "log": model.log_len(),
        "map": model.mark_map_of_all(),
        "marks": model.marks(),
        "tokens": model.tokens(),
        "tools": model.tools().iter().map(|tool| tool.json.clone()).collect::<Vec<_>>(),
        "undo": model.can_undo(),
        "redo": model.can_redo(),
        "path": (0..model.batches())
            .map(|batch| model.snapshot(batch).expect("a batch of the live path").messages)
            .collect::<Vec<_>>(),
    })
}

fn operations(request: &Value) -> Vec<Value> {
    let ops = request.get("ops").and_then(Value::as_array).cloned();
    ops.unwrap_or_else(|| vec![request["op"].clone()])
}

fn check_view(model: &Model) {
    let unique: BTreeSet<usize> = model.view().iter().copied().collect();
    assert_eq!(unique.len(), model.view().len(), "an entry is in the view once");
    assert!(
        unique.iter().all(|&index| index < model.log_len()),
        "every entry of the view is in the log"
    );
    assert!(model.batches() >= 1 && model.batch() + 1 == model.batches());
    assert_eq!(model.snapshot(model.batch()).unwrap().messages, model.view());
}

fn check_outcome(before: &Model, outcome: &Outcome) {
    let made = u64::from(outcome.changed);
    assert_eq!(outcome.version, before.version() + made);
    assert_eq!(outcome.log, before.log_len() + outcome.added.len(), "the log only grows");
    let visible = |index: &usize| outcome.view.contains(index);
    assert!(outcome.shown.iter().all(visible) && !outcome.hidden.iter().any(visible));
    assert!(!outcome.shown.iter().any(|index| outcome.added.contains(index)));
    assert_eq!(
        outcome.view[..outcome.shared_prefix_messages],
        before.view()[..outcome.shared_prefix_messages]
    );
    for list in [&outcome.hidden, &outcome.shown, &outcome.added] {
        assert!(list.is_sorted(), "indices are in ascending order");
    }
    assert_eq!(outcome.warned("torn_call").unwrap_or_default(), outcome.torn_calls);
    assert_eq!(outcome.warned("torn_result").unwrap_or_default(), outcome.torn_results);
    assert_eq!(outcome.warned("view_empty").is_some(), outcome.view.is_empty());
}

/// After setting tools or returning to a batch, only pinned descriptions are stale. After setting tools,
/// the present description is visible.
fn check_descriptions(model: &Model, outcome: &Outcome, is_tools: bool) {
    let is_pinned =
        |index: &usize| model.marks().get("pinned").is_some_and(|pinned| pinned.contains(index));
    let stale = outcome.warned("stale_tools").unwrap_or_default();
    assert!(stale.iter().all(is_pinned), "only a pinned description may be stale");
    if is_tools && outcome.changed && !model.tools().is_empty() {
        let present = model.tool_description().expect("there are tools");
        let list = present.strip_prefix(&model.settings().heading).expect("it has its heading");
        let is_present = |&index: &usize| model.text(index).ends_with(list);
        assert!(outcome.view.iter().any(is_present), "the present description is visible");
    }
}

/// FIT succeeds with the needed budget that its error reports, and fails with one token less.
fn check_needed(model: &Model, request: &Value, refusal: &Refusal) {
    let Some(details) = refusal.details.as_ref().filter(|_| request.get("op").is_some()) else {
        return;
    };
    let Some(needed) = details["needed"].as_u64() else { return };
    let mut fit = request.clone();
    fit["op"]["maxTokens"] = json!(needed);
    let outcome = model.clone().apply(&fit, 0).expect("the needed budget is enough");
    assert!(outcome.tokens <= needed);
    fit["op"]["maxTokens"] = json!(needed - 1);
    assert_eq!(model.clone().apply(&fit, 0).unwrap_err().code, "budget_too_small");
}

fn check_request(
    model: &mut Model,
    request: &str,
    act: impl FnOnce(&mut Model) -> Result<Outcome, Refusal>,
    coverage: &mut Coverage,
) -> Result<Outcome, Refusal> {
    let before = model.clone();
    let result = act(model);
    match &result {
        Ok(outcome) => {
            check_outcome(&before, outcome);
            coverage.accepted += 1;
            coverage.unchanged += usize::from(!outcome.changed);
            for (code, _) in &outcome.warnings {
                *coverage.warnings.entry(code).or_default() += 1;
            }
            if !outcome.changed {
                assert_eq!(whole_state(&before), whole_state(model), "unchanged: {request}");
            }
        }
        Err(refusal) => {
            coverage.refused += 1;
            *coverage.codes.entry(refusal.code).or_default() += 1;
            assert_eq!(whole_state(&before), whole_state(model), "refused: {request}");
        }
    }
    check_view(model);
    result
}

fn perform(model: &mut Model, step: &Step, now: i64, coverage: &mut Coverage) {
    let refusal = match step {
        Step::Apply(request) => {
            let text = request.to_string();
            match check_request(model, &text, |model| model.apply(request, now), coverage) {
                Ok(outcome) => record_operations(model, request, &outcome, coverage),
                Err(refusal) => check_needed(model, request, &refusal),
            }
            None
        }
        Step::SetTools(tools) => {
            let result =
                check_request(model, "tools", |model| model.set_tools(tools, now), coverage);
            if let Ok(outcome) = result {
                assert_eq!(outcome.changed, outcome.tools_changed);
                if outcome.changed {
                    check_descriptions(model, &outcome, true);
                }
            }
            None
        }
        Step::MarkMapOfAll => {
            let all = model.mark_map_of_all();
            let lists = all["typeIndices"].as_object().expect("lists by role");
            let count: usize = lists.values().map(|list| list.as_array().unwrap().len()).sum();
            assert_eq!(count, model.log_len());
            None
        }
        Step::State => {
            let state = model.state();
            assert_eq!(state["totalMessageCount"], json!(model.view().len()));
            assert_eq!(state["batchSnapshots"].as_array().unwrap().len(), model.batch());
            None
        }
        Step::Ask(query) => model.query(query).err(),
        Step::MarkMap => {
            assert_eq!(model.mark_map()["originalIndices"], json!(model.view()));
            None
        }
        Step::Snapshot(batch) => model.snapshot(*batch).err(),
        Step::Diff(a, b) => model.diff(*a, *b).err(),
    };
    if let Some(refusal) = refusal {
        *coverage.codes.entry(refusal.code).or_default() += 1;
    }
}

fn record_operations(model: &Model, request: &Value, outcome: &Outcome, coverage: &mut Coverage) {
    for operation in operations(request) {
        let name = operation["operation"].as_str().expect("it was accepted").to_owned();
        for (field, value) in operation.as_object().expect("it was accepted") {
            if !value.is_null() {
                coverage.fields.insert(format!("{name}.{field}"));
            }
        }
        *coverage.operations.entry(name).or_default() += 1;
    }
    coverage.tools_restored += usize::from(outcome.tools_changed);
    let returns = |op: &Value| {
        op["operation"] == "BATCH_END" && op.get("carry").is_none()
            || op["operation"] == "ROLLBACK" && op.get("targetBatchIndex").is_some()
    };
    if returns(&request["op"]) && !model.tools().is_empty() {
        check_descriptions(model, outcome, false);
    }
}

fn run(seed: u64, steps: usize, coverage: &mut Coverage) {
    let numbers = numbers(seed, steps * 100 + 1_000);
    let mut choices = Choices::new(&numbers);
    let mut model = conversation(&mut choices, 1_000);
    coverage.created_with_messages += usize::from(model.initial_messages() != &json!([]));
    for number in 0..steps {
        assert!(!choices.is_exhausted(), "seed {seed}: too few numbers, at step {number}");
        let step = step(&mut choices, &model);
        perform(&mut model, &step, 1_000 + number as i64 / 4, coverage);
    }
}

#[test]
fn random_steps_keep_the_invariants_and_reach_every_operation_and_code() {
    let mut coverage = Coverage::default();
    for (seeds, steps) in [LONG, SHORT] {
        for seed in 1..=seeds {
            run(seed, steps, &mut coverage);
        }
    }
    let requests = coverage.accepted + coverage.refused;
    assert!(coverage.accepted * 10 >= requests * 4, "{} of {requests} accepted", coverage.accepted);
    assert!(
        coverage.unchanged > 0 && coverage.tools_restored > 0 && coverage.created_with_messages > 0
    );
    for code in [
        "torn_call",
        "torn_result",
        "stale_tools",
        "foreign_message",
        "view_empty",
        "ignored_indices",
    ] {
        assert!(coverage.warnings.contains_key(code), "there was no warning {code}");
    }
    for field in
        ["BATCH_START.withTools", "batch_start.batch", "batch_end.batch", "batch_end.carry"]
    {
        assert!(coverage.fields.contains(field), "{field} was never accepted");
    }
    for name in [
        "APPEND",
        "INSERT",
        "REPLACE",
        "DELETE",
        "COMPRESS",
        "TRUNCATE",
        "FILTER",
        "CLEAR",
        "RESTORE",
        "ARRANGE",
        "FIT",
        "BATCH_START",
        "BATCH_END",
        "ROLLBACK",
        "MARK",
        "UNMARK",
        "UNDO",
        "REDO",
        "insert",
        "replace",
        "truncate",
        "filter",
        "clear",
        "delete",
        "compress",
        "batch_start",
        "batch_end",
    ] {
        assert!(coverage.operations.contains_key(name), "{name} was never accepted");
    }
    for code in [
        "invalid_operation",
        "invalid_message",
        "empty_content",
        "position_out_of_range",
        "index_out_of_range",
        "not_visible",
        "invalid_range",
        "batch_not_found",
        "version_not_found",
        "pinned",
        "nothing_to_compress",
        "nothing_to_undo",
        "nothing_to_redo",
        "budget_too_small",
    ] {
        assert!(coverage.codes.contains_key(code), "there was no error {code}");
    }
}

#[test]
fn a_stream_of_zeros_appends_one_plain_message() {
    let model = Model::new(Settings::default(), 1_000);
    let simplest = step(&mut Choices::new(&[]), &model);
    let message = json!({"role": "user", "content": "a"});
    let append = json!({"op": {"operation": "APPEND", "messages": [message]}});
    assert_eq!(simplest, Step::Apply(append));
    let empty = conversation(&mut Choices::new(&[]), 1_000);
    assert_eq!((empty.settings(), empty.log_len()), (&Settings::default(), 0));
}
