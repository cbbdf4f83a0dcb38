//! Queries of every kind, a few of them invalid.

use serde_json::{Value, json};

use super::choices::Choices;
use super::message::{role, word};
use super::{invalid, to_count};
use crate::model::Model;

pub(super) fn query(choices: &mut Choices, model: &Model) -> Value {
    let mut query = json!({});
    if choices.chance(6) {
        query["scope"] = choices.pick(&[json!("all"), json!("visible"), json!(null)]).clone();
    }
    match choices.below(6) {
        3 | 4 => query["role"] = json!(role(choices)),
        5 => query["roles"] = json!([role(choices), role(choices)]),
        _ => {}
    }
    for field in ["contains", "excludes"] {
        match choices.below(10) {
            8 => query[field] = json!(word(choices)),
            9 => query[field] = json!([word(choices), word(choices)]),
            _ => {}
        }
    }
    if choices.chance(4) {
        query["mark"] = choices.pick(&[json!("pinned"), json!("important"), json!("草稿")]).clone();
    }
    for field in ["from", "to"] {
        if choices.chance(2) {
            query[field] = json!(1_000 + choices.below(500));
        }
    }
    pick(choices, model, &mut query);
    query_at(choices, model, &mut query);
    invalid::maybe_invalid_query(choices, query)
}

fn pick(choices: &mut Choices, model: &Model, query: &mut Value) {
    let length = model.view().len() + 2;
    match choices.below(8) {
        4 => query["first"] = json!(choices.below(length)),
        5 | 6 => query["last"] = json!(choices.below(length)),
        7 => {
            let start = choices.below(length);
            query["range"] = json!({"start": start, "end": start + choices.below(length)});
        }
        _ => {}
    }
}

fn query_at(choices: &mut Choices, model: &Model, query: &mut Value) {
    match choices.below(8) {
        4 | 5 => query["batchIndex"] = json!(choices.below(model.batches())),
        6 => query["version"] = json!(choices.below(to_count(model.version()) + 1)),
        7 => query["version"] = json!(to_count(model.version()) + choices.below(2)),
        _ => {}
    }
}
