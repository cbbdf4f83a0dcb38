//! Operations of every kind in all three input forms. The plain model of testkit accepts most of them.

use serde_json::{Map, Value, json};

use super::choices::Choices;
use super::message::{message, messages, role, word};
use super::{described, to_count};
use crate::model::{Model, Role};

const MARKS: [&str; 4] = ["pinned", "important", "草稿", "pinned"];

/// Any operation except UNDO and REDO. `newest` is the newest version.
pub(super) fn operation(choices: &mut Choices, model: &Model, newest: u64) -> Value {
    let plain = match choices.below(43) {
        0..=8 => json!({"operation": "APPEND", "messages": messages(choices, model)}),
        9 | 10 => json!({
            "operation": "INSERT",
            "position": choices.below(model.view().len() + 1),
            "messages": messages(choices, model),
        }),
        11 | 12 => replace(choices, model),
        13 | 14 => json!({"operation": "DELETE", "indices": indices(choices, model)}),
        15 | 16 => compress(choices, model),
        17 | 18 => truncate(choices, model),
        19 => filter(choices),
        20 => clear(choices),
        21..=23 => json!({"operation": "RESTORE", "indices": hidden_indices(choices, model)}),
        24..=26 => fit(choices, model),
        27 | 28 => batch_start(choices, model),
        29 | 30 => batch_end(choices, model),
        31..=33 => rollback(choices, model, newest),
        34..=36 => {
            let indices = indices(choices, model);
            json!({"operation": "MARK", "indices": indices, "mark": choices.pick(&MARKS)})
        }
        37..=39 => unmark(choices, model),
        _ => arrange(choices, model),
    };
    let plain = described(choices, plain);
    if choices.chance(5) { in_older_form(choices, model, plain) } else { plain }
}

/// Log indices, mostly of visible entries: single entries, a range of the view, or any log entries.
fn indices(choices: &mut Choices, model: &Model) -> Vec<usize> {
    let view = model.view();
    let count = 1 + choices.below(4);
    match choices.below(8) {
        _ if view.is_empty() => vec![choices.below(model.log_len())],
        0..=4 => (0..count).map(|_| *choices.pick(view)).collect(),
        5 | 6 => {
            let start = choices.below(view.len());
            view[start..view.len().min(start + 2 * count)].to_vec()
        }
        _ => (0..count).map(|_| choices.below(model.log_len())).collect(),
    }
}

/// Log indices, mostly hidden ones.
fn hidden_indices(choices: &mut Choices, model: &Model) -> Vec<usize> {
    let is_hidden = |index: &usize| !model.view().contains(index);
    let hidden: Vec<usize> = (0..model.log_len()).filter(is_hidden).collect();
    if hidden.is_empty() || choices.chance(3) {
        return indices(choices, model);
    }
    let count = 1 + choices.below(8);
    (0..count).map(|_| *choices.pick(&hidden)).collect()
}

/// The view with one entry moved, in reverse order, shortened, empty, with a repeated index or with
/// hidden entries. Visible pinned entries are mostly included.
fn arrange(choices: &mut Choices, model: &Model) -> Value {
    let mut indices = model.view().to_vec();
    match choices.below(8) {
        0 | 1 if !indices.is_empty() => {
            let moved = indices.remove(choices.below(indices.len()));
            indices.insert(choices.below(indices.len() + 1), moved);
        }
        2 => indices.reverse(),
        3 => indices.truncate(amount(choices, model.view().len())),
        4 => indices.clear(),
        5 if !indices.is_empty() => {
            // An index that is listed twice counts at its first position.
            let twice = *choices.pick(&indices);
            indices.insert(choices.below(indices.len() + 1), twice);
        }
        _ if model.log_len() > 0 => {
            for index in hidden_indices(choices, model) {
                indices.insert(choices.below(indices.len() + 1), index);
            }
        }
        _ => {}
    }
    if !choices.chance(2) {
        let pinned = model.marks().get("pinned").into_iter().flatten().copied();
        let is_left_out = |index: &usize| model.view().contains(index) && !indices.contains(index);
        let left_out: Vec<usize> = pinned.filter(is_left_out).collect();
        indices.extend(left_out);
    }
    json!({"operation": "ARRANGE", "indices": indices})
}

/// A number for a list of this length: small, almost the length, or any.
fn amount(choices: &mut Choices, length: usize) -> usize {
    match choices.below(4) {
        0 => choices.below(4),
        1 | 2 => length.saturating_sub(choices.below(5)),
        _ => choices.below(length + 3),
    }
}

fn replace(choices: &mut Choices, model: &Model) -> Value {
    if choices.chance(5) {
        let data = match choices.below(2) {
            0 => message(choices, model),
            _ => json!(messages(choices, model)),
        };
        return json!({"operation": "replace", "indices": indices(choices, model), "data": data});
    }
    let index = choices.below(model.view().len());
    json!({"operation": "REPLACE", "index": index, "message": message(choices, model)})
}

fn compress(choices: &mut Choices, model: &Model) -> Value {
    let indices = match choices.below(6) {
        5 => hidden_indices(choices, model),
        _ => indices(choices, model),
    };
    let mut compress = json!({"operation": "COMPRESS", "indices": indices});
    match choices.below(8) {
        0..=4 => compress["summary"] = message(choices, model),
        5 => compress["summary"] = json!(null),
        _ => {}
    }
    compress
}

fn truncate(choices: &mut Choices, model: &Model) -> Value {
    let scope_all = choices.chance(2);
    let length = if scope_all { model.log_len() } else { model.view().len() };
    let mut truncate = json!({"operation": "TRUNCATE"});
    for _ in 0..1 + choices.below(2) + choices.below(2) {
        match choices.below(6) {
            0 => truncate["keepLast"] = json!(amount(choices, length)),
            1 => truncate["keepFirst"] = json!(amount(choices, length)),
            2 => truncate["removeFirst"] = json!(choices.below(4)),
            3 => truncate["removeLast"] = json!(choices.below(4)),
            4 => {
                let start = choices.below(4);
                let end = start + amount(choices, length);
                truncate["range"] = json!({"start": start, "end": end});
            }
            _ => {
                truncate["role"] = json!(role(choices));
                if choices.chance(12) {
                    truncate["keepOthers"] = json!(!choices.chance(2));
                }
            }
        }
    }
    with_scope(choices, truncate, scope_all)
}

fn with_scope(choices: &mut Choices, mut operation: Value, scope_all: bool) -> Value {
    if scope_all {
        operation["scope"] = json!("all");
    } else if choices.chance(1) {
        operation["scope"] = choices.pick(&[json!("visible"), json!(null)]).clone();
    }
    operation
}

fn roles(choices: &mut Choices) -> Vec<&'static str> {
    (0..1 + choices.below(4)).map(|_| role(choices)).collect()
}

fn words(choices: &mut Choices) -> Vec<&'static str> {
    (0..1 + choices.below(3)).map(|_| word(choices)).collect()
}

fn filter(choices: &mut Choices) -> Value {
    let mut filter = json!({"operation": "FILTER"});
    let kind = choices.below(6);
    if kind <= 1 || kind == 5 {
        filter["roles"] = json!(roles(choices));
    }
    if kind == 2 || kind == 4 {
        filter["contentContains"] = json!(words(choices));
    }
    if kind == 3 || kind >= 4 {
        filter["contentExcludes"] = json!(words(choices));
    }
    let scope_all = choices.chance(4);
    with_scope(choices, filter, scope_all)
}

fn clear(choices: &mut Choices) -> Value {
    let mut clear = json!({"operation": "CLEAR"});
    if choices.chance(8) {
        let values = [json!(false), json!(true), json!(null)];
        clear["keepSystemMessage"] = choices.pick(&values).clone();
    }
    let scope_all = choices.chance(4);
    with_scope(choices, clear, scope_all)
}

/// Budgets near the tokens of the view, near those of the entries that must stay, near the smallest
/// budget that succeeds, and near 0.
fn fit(choices: &mut Choices, model: &Model) -> Value {
    let stays = |index: &usize| {
        let pinned = model.marks().get("pinned").is_some_and(|pinned| pinned.contains(index));
        pinned || model.role(*index) == Role::System
    };
    let must_stay: u64 = model
        .view()
        .iter()
        .filter(|index| stays(index))
        .map(|&index| model.entry_tokens(index))
        .sum();
    let sum = to_count(model.tokens());
    let must_stay = to_count(must_stay);
    let max_tokens = match choices.below(10) {
        0 | 1 => sum.saturating_sub(choices.below(40)),
        2 => sum + choices.below(10),
        3..=5 => must_stay + choices.below(120.max(sum - must_stay)),
        6 => must_stay.saturating_sub(choices.below(4)),
        7 | 8 => {
            let fit = json!({"op": {"operation": "FIT", "maxTokens": 0}});
            let details = model.clone().apply(&fit, 0).err().and_then(|error| error.details);
            let needed = details.and_then(|details| details["needed"].as_u64()).unwrap_or(0);
            (to_count(needed) + choices.below(3)).saturating_sub(choices.below(2))
        }
        _ => choices.below(20),
    };
    let mut fit = json!({"operation": "FIT", "maxTokens": max_tokens});
    if choices.chance(5) {
        fit["keepSystem"] = choices.pick(&[json!(false), json!(true), json!(null)]).clone();
    }
    if choices.chance(5) {
        fit["startOn"] = json!(role(choices));
    }
    fit
}

fn batch_start(choices: &mut Choices, model: &Model) -> Value {
    let mut start = json!({"operation": "BATCH_START"});
    if choices.chance(7) {
        let boundary = match choices.below(3) {
            0 => choices.below(model.log_len() + 1),
            1 => model.log_len(),
            _ => model.view().first().copied().unwrap_or(0) + choices.below(2),
        };
        start["boundary"] = json!(boundary);
    }
    if choices.chance(6) {
        start["withTools"] =
            choices.pick(&[json!(true), json!(true), json!(false), json!(null)]).clone();
    }
    start
}

/// Mostly a batch near the current one, so that the live path becomes long.
fn target_batch(choices: &mut Choices, model: &Model) -> usize {
    match choices.below(8) {
        0..=4 => model.batch().saturating_sub(choices.below(4)),
        5 | 6 => choices.below(model.batches()),
        _ => choices.below(model.batches() + 1),
    }
}

fn batch_end(choices: &mut Choices, model: &Model) -> Value {
    let mut end = json!({"operation": "BATCH_END"});
    if choices.below(3) < 2 {
        end["targetBatchIndex"] = json!(target_batch(choices, model));
    }
    match choices.below(8) {
        0 | 1 => {}
        2..=4 => end["carry"] = json!("all"),
        5 => end["carry"] = choices.pick(&[json!("none"), json!(null)]).clone(),
        _ => end["carry"] = json!(roles(choices)),
    }
    end
}

fn rollback(choices: &mut Choices, model: &Model, newest: u64) -> Value {
    if choices.below(2) == 0 {
        return json!({"operation": "ROLLBACK", "targetBatchIndex": target_batch(choices, model)});
    }
    let newest = to_count(newest);
    let version = match choices.below(8) {
        0..=4 => newest.saturating_sub(choices.below(6)),
        _ => choices.below(newest + 2),
    };
    json!({"operation": "ROLLBACK", "targetVersion": version})
}

/// UNMARK, mostly of entries that have the mark.
fn unmark(choices: &mut Choices, model: &Model) -> Value {
    let mark = *choices.pick(&MARKS);
    let marked: Vec<usize> = model.marks().get(mark).into_iter().flatten().copied().collect();
    let indices = match choices.below(4) {
        _ if marked.is_empty() => indices(choices, model),
        0 => marked,
        1 | 2 => (0..1 + choices.below(5)).map(|_| *choices.pick(&marked)).collect(),
        _ => indices(choices, model),
    };
    json!({"operation": "UNMARK", "indices": indices, "mark": mark})
}

/// The same operation in the node or the modification form, if it exists there.
fn in_older_form(choices: &mut Choices, model: &Model, plain: Value) -> Value {
    let fields = plain.as_object().expect("an operation is an object");
    let name = fields["operation"].as_str().expect("an operation has a name");
    match name {
        "APPEND" if choices.chance(8) => {
            let insert = json!({"position": -1, "messages": fields["messages"]});
            with_description_of(fields, json!({"operation": "insert", "insert": insert}))
        }
        "APPEND" => {
            let data = match fields["messages"].as_array().map(Vec::as_slice) {
                Some([only]) => only.clone(),
                _ => fields["messages"].clone(),
            };
            let ignored = choices.pick(&[json!([]), json!([]), json!([0]), json!([7, 2])]).clone();
            let insert = json!({"operation": "insert", "indices": ignored, "data": data});
            with_description_of(fields, insert)
        }
        "INSERT" | "REPLACE" | "TRUNCATE" | "FILTER" | "CLEAR" => node_form(choices, name, fields),
        "DELETE" | "COMPRESS" if choices.chance(3) => modification_form(fields, json!([])),
        "DELETE" => modification_form(fields, fields["indices"].clone()),
        "COMPRESS" if !fields.contains_key("summary") => {
            modification_form(fields, fields["indices"].clone())
        }
        "BATCH_START" if !fields.contains_key("withTools") => {
            let boundary = fields.get("boundary").cloned().unwrap_or(json!(0));
            let mut start = modification_form(fields, json!([boundary]));
            if choices.chance(8) {
                let wrong = usize::from(choices.chance(3));
                start["batch"] = json!(model.batches() + wrong);
            }
            start
        }
        "BATCH_END" => modification_batch_end(choices, fields),
        _ => plain,
    }
}

/// BATCH_END in the modification form: the target in `indices`, in `batch`, in both or in neither, and
/// the same `carry`.
fn modification_batch_end(choices: &mut Choices, fields: &Map<String, Value>) -> Value {
    let mut end = modification_form(fields, json!([]));
    if let Some(target) = fields.get("targetBatchIndex") {
        let choice = choices.below(3);
        if choice != 1 {
            end["indices"] = json!([target]);
        }
        if choice != 0 {
            end["batch"] = target.clone();
        }
    }
    if let Some(carry) = fields.get("carry") {
        end["carry"] = carry.clone();
    }
    end
}

fn node_form(choices: &mut Choices, name: &str, fields: &Map<String, Value>) -> Value {
    let is_own = |(field, _): &(&String, &Value)| *field != "operation" && *field != "description";
    let own: Map<String, Value> =
        fields.iter().filter(is_own).map(|(field, value)| (field.clone(), value.clone())).collect();
    let name = name.to_lowercase();
    let body_may_be_missing = name == "clear" && own.is_empty();
    let mut node = json!({"operation": name});
    if !body_may_be_missing || choices.chance(8) {
        node[&name] = Value::Object(own);
    }
    if choices.chance(6) {
        for section in ["truncate", "insert", "replace", "clear", "filter"] {
            if node.get(section).is_none() && choices.chance(8) {
                node[section] = json!(null);
            }
        }
    }
    with_description_of(fields, node)
}

/// The modification form: the name of the operation in lower case, and `indices`.
fn modification_form(fields: &Map<String, Value>, indices: Value) -> Value {
    let name = fields["operation"].as_str().expect("an operation has a name").to_lowercase();
    with_description_of(fields, json!({"operation": name, "indices": indices}))
}

/// Copies the description from `fields`.
fn with_description_of(fields: &Map<String, Value>, mut operation: Value) -> Value {
    if let Some(description) = fields.get("description") {
        operation["description"] = description.clone();
    }
    operation
}
