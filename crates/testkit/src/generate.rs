//! A generator of random steps. Its input is a stream of small numbers, so that
//! proptest, fuzzers and seeded loops can use it.
//!
//! It reads the model to pick mostly valid indices, positions, batches and
//! versions, and makes about one step in twelve invalid. A stream of zeros gives the
//! simplest steps, so shrinking the numbers simplifies the steps.

mod choices;
mod invalid;
mod message;
mod operation;
mod query;
mod transcript;

use serde_json::{Value, json};

use crate::model::{EARLIER_HEADING, Model, Settings, Tool};

pub use self::choices::{Choices, numbers};
pub use self::transcript::{message, transcript};

/// A request, a query or another call of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A request: `{"op": …}` or `{"ops": […]}`.
    Apply(Value),
    /// A query.
    Ask(Value),
    /// The mark map.
    MarkMap,
    /// The mark map with `scope: "all"`.
    MarkMapOfAll,
    /// The message array state.
    State,
    /// Setting the tools.
    SetTools(Value),
    /// The snapshot of a batch.
    Snapshot(usize),
    /// The difference between two versions.
    Diff(u64, u64),
}

/// Settings of a new conversation; the default ones for a stream of zeros.
pub fn settings(choices: &mut Choices) -> Settings {
    let mut settings = Settings::default();
    if choices.chance(8) {
        settings.tools = Tool::read_list(&valid_tools(choices)).expect("these tools are valid");
    }
    if choices.chance(4) {
        settings.media_tokens = *choices.pick(&[0, 7, 85]);
    }
    if choices.chance(6) {
        settings.heading = choices.pick(&["Tools:", EARLIER_HEADING]).to_string();
    }
    settings
}

/// A new conversation with settings, and in half of the cases with messages. An empty one with the
/// default settings for a stream of zeros.
pub fn conversation(choices: &mut Choices, now: i64) -> Model {
    let empty = Model::new(settings(choices), now);
    let count = if choices.chance(8) { 1 + choices.below(3) } else { 0 };
    let messages: Vec<Value> =
        (0..count).flat_map(|_| message::messages(choices, &empty)).collect();
    Model::with_messages(empty.settings().clone(), &json!(messages), now)
        .expect("these messages are valid")
}

/// The next step for a conversation that is in the state of the model.
pub fn step(choices: &mut Choices, model: &Model) -> Step {
    match choices.below(29) {
        0..=14 => Step::Apply(single(choices, model)),
        15..=17 => Step::Apply(list(choices, model)),
        18..=21 => Step::Ask(query::query(choices, model)),
        22 => Step::MarkMap,
        23 => Step::MarkMapOfAll,
        24 => Step::State,
        25 | 26 => Step::SetTools(tools(choices, model)),
        27 => {
            let batches = model.batches() + usize::from(choices.chance(2));
            Step::Snapshot(choices.below(batches))
        }
        _ => {
            let versions = to_count(model.version()) + 1 + usize::from(choices.chance(2));
            Step::Diff(choices.below(versions) as u64, choices.below(versions) as u64)
        }
    }
}

fn single(choices: &mut Choices, model: &Model) -> Value {
    let operation = match choices.below(28) {
        // REDO is rarely possible, so it is generated often when it is.
        10..=22 if model.can_redo() => {
            let name = *choices.pick(&["REDO", "REDO", "UNDO"]);
            described(choices, json!({"operation": name}))
        }
        0..=22 => operation::operation(choices, model, model.version()),
        23..=25 => described(choices, json!({"operation": "UNDO"})),
        _ => described(choices, json!({"operation": "REDO"})),
    };
    json!({"op": invalid::maybe_invalid(choices, model, operation)})
}

/// A list of operations, each mostly valid in the state after the previous ones.
fn list(choices: &mut Choices, model: &Model) -> Value {
    if choices.chance(1) {
        let malformed = [json!({"ops": []}), json!({}), json!({"ops": {}}), json!({"op": null})];
        return choices.pick(&malformed).clone();
    }
    let mut after = model.clone();
    let mut operations = Vec::new();
    for _ in 0..1 + choices.below(4) {
        let operation = match choices.below(32) {
            31 => json!({"operation": "UNDO"}),
            _ => operation::operation(choices, &after, model.version()),
        };
        let operation = invalid::maybe_invalid(choices, &after, operation);
        // If this operation is refused, the whole list is, so the state for the next ones does not matter.
        let _ = after.apply(&json!({"op": operation}), 0);
        operations.push(operation);
    }
    json!({"ops": operations})
}

/// A list of tools, mostly valid: other tools, the present ones, the present ones with another schema
/// (which the description does not contain), or none.
fn tools(choices: &mut Choices, model: &Model) -> Value {
    if choices.chance(1) {
        let malformed = [
            json!(null),
            json!("search"),
            json!({"name": "search", "description": "find"}),
            json!(["search"]),
            json!([{"description": "nameless"}]),
            json!([{"name": 7, "description": "numbered"}]),
        ];
        return choices.pick(&malformed).clone();
    }
    let mut present = Value::from_iter(model.tools().iter().map(|tool| tool.json.clone()));
    match choices.below(12) {
        0..=7 => valid_tools(choices),
        8 | 9 => present,
        10 => json!([]),
        _ => {
            for tool in present.as_array_mut().expect("a list of tools") {
                tool["input_schema"] = json!({"type": "object", "n": choices.below(2)});
            }
            present
        }
    }
}

fn valid_tools(choices: &mut Choices) -> Value {
    let known = [
        json!({"name": "search", "description": "find pages"}),
        json!({"name": "read", "description": "open a page", "input_schema": {"type": "object"}}),
        json!({"name": "计算", "description": "算\"数\"\n两行"}),
    ];
    let count = [1, 2, 3, 1, 2, 0][choices.below(6)];
    let first = choices.below(known.len());
    Value::from_iter((0..count).map(|offset| known[(first + offset) % known.len()].clone()))
}

/// Adds a description to some operations.
fn described(choices: &mut Choices, mut operation: Value) -> Value {
    if choices.chance(2) {
        let descriptions = [json!("why"), json!("压缩 \"旧\" 消息"), json!(""), json!(null)];
        operation["description"] = choices.pick(&descriptions).clone();
    }
    operation
}

fn to_count(number: u64) -> usize {
    usize::try_from(number).expect("a model's numbers are small")
}
