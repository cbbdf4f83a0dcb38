//! Random steps on the model alone: what always holds, and whether the generator
//! reaches everything.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use testkit::generate::{Choices, Step, numbers, settings, step};
use testkit::{Model, Outcome, Refusal, Settings};

/// Long walks reach deep histories, short ones the beginnings.
const LONG: (u64, usize) = (6, 2_000);
const SHORT: (u64, usize) = (200, 30);

/// What a walk has met.
#[derive(Default)]
struct Met {
    accepted: usize,
    refused: usize,
    unchanged: usize,
    torn: usize,
    operations: BTreeMap<String, usize>,
    codes: BTreeMap<&'static str, usize>,
}

/// All that can be read of a model, to see whether it changed.
fn everything(model: &Model) -> Value {
    json!({
        "version": model.version(),
        "log": model.log_len(),
        "map": model.mark_map(),
        "marks": model.marks(),
        "tokens": model.tokens(),
        "tools": model.tool_description(),
        "undo": model.can_undo(),
        "redo": model.can_redo(),
        "path": (0..model.batches())
            .map(|batch| model.snapshot(batch).expect("a batch of the live path").messages)
            .collect::<Vec<_>>(),
    })
}

fn operation_names(request: &Value) -> Vec<String> {
    let ops = request.get("ops").and_then(Value::as_array).cloned();
    let ops = ops.unwrap_or_else(|| vec![request["op"].clone()]);
    ops.iter().filter_map(|op| op["operation"].as_str().map(str::to_owned)).collect()
}

fn check_view(model: &Model) {
    let unique: BTreeSet<usize> = model.view().iter().copied().collect();
    assert_eq!(unique.len(), model.view().len(), "an entry stands in the view once");
    assert!(unique.iter().all(|&index| index < model.log_len()), "the view is of the log");
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
}

fn check_request(
    model: &mut Model,
    request: &str,
    act: impl FnOnce(&mut Model) -> Result<Outcome, Refusal>,
    met: &mut Met,
) -> bool {
    let before = model.clone();
    let answer = act(model);
    match &answer {
        Ok(outcome) => {
            check_outcome(&before, outcome);
            met.accepted += 1;
            met.unchanged += usize::from(!outcome.changed);
            met.torn +=
                usize::from(!outcome.torn_calls.is_empty() || !outcome.torn_results.is_empty());
            if !outcome.changed {
                assert_eq!(everything(&before), everything(model), "unchanged: {request}");
            }
        }
        Err(refusal) => {
            met.refused += 1;
            *met.codes.entry(refusal.code).or_default() += 1;
            assert_eq!(everything(&before), everything(model), "refused: {request}");
        }
    }
    check_view(model);
    answer.is_ok()
}

fn take(model: &mut Model, step: &Step, now: i64, met: &mut Met) {
    let refusal = match step {
        Step::Apply(request) => {
            let text = request.to_string();
            if check_request(model, &text, |model| model.apply(request, now), met) {
                for name in operation_names(request) {
                    *met.operations.entry(name).or_default() += 1;
                }
            }
            None
        }
        Step::SetTools(tools) => {
            check_request(model, "tools", |model| model.set_tools(tools, now), met);
            None
        }
        Step::Ask(query) => model.ask(query).err(),
        Step::MarkMap => {
            assert_eq!(model.mark_map()["originalIndices"], json!(model.view()));
            None
        }
        Step::Snapshot(batch) => model.snapshot(*batch).err(),
        Step::Diff(a, b) => model.diff(*a, *b).err(),
    };
    if let Some(refusal) = refusal {
        *met.codes.entry(refusal.code).or_default() += 1;
    }
}

fn walk(seed: u64, steps: usize, met: &mut Met) {
    let numbers = numbers(seed, steps * 100 + 1_000);
    let mut choices = Choices::new(&numbers);
    let mut model = Model::new(settings(&mut choices), 1_000);
    for number in 0..steps {
        assert!(!choices.is_exhausted(), "seed {seed}: too few numbers, at step {number}");
        let step = step(&mut choices, &model);
        take(&mut model, &step, 1_000 + number as i64 / 4, met);
    }
}

#[test]
fn random_steps_keep_what_always_holds_and_reach_everything() {
    let mut met = Met::default();
    for (seeds, steps) in [LONG, SHORT] {
        for seed in 1..=seeds {
            walk(seed, steps, &mut met);
        }
    }
    let requests = met.accepted + met.refused;
    assert!(met.accepted * 10 >= requests * 4, "{} of {requests} accepted", met.accepted);
    assert!(met.unchanged > 0 && met.torn > 0);
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
        assert!(met.operations.contains_key(name), "{name} was never accepted");
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
        assert!(met.codes.contains_key(code), "{code} was never answered");
    }
}

#[test]
fn a_stream_of_zeros_appends_one_plain_message() {
    let model = Model::new(Settings::default(), 1_000);
    let simplest = step(&mut Choices::new(&[]), &model);
    let message = json!({"role": "user", "content": "a"});
    let append = json!({"op": {"operation": "APPEND", "messages": [message]}});
    assert_eq!(simplest, Step::Apply(append));
}
