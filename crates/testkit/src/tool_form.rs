//! The two forms of tool parts.
//!
//! Flat: `{"type":"tool_use","id":…,"name":…,"input":…}`.
//! Nested: `{"type":"tool_use","tool_use":{"id":…,"name":…,"input":…}}`.
//! Fields that do not belong to the part's type are beside the nested object.

use serde_json::{Map, Value};

/// The message with all tool parts in the flat form, including those inside results.
#[must_use]
pub fn flat(message: &Value) -> Value {
    with_parts(message, &flat_part)
}

/// The message with all tool parts in the nested form, including those inside results.
#[must_use]
pub fn nested(message: &Value) -> Value {
    with_parts(message, &nested_part)
}

/// The type of a tool part, and the names of the fields that its nested object contains. `None` for any
/// other part.
fn fields(part: &Value) -> Option<(&'static str, [&'static str; 3])> {
    match part["type"].as_str()? {
        "tool_use" => Some(("tool_use", ["id", "name", "input"])),
        "tool_result" => Some(("tool_result", ["tool_use_id", "content", "is_error"])),
        _ => None,
    }
}

/// The value with `change` applied to each part of its `content`.
fn with_parts(holder: &Value, change: &dyn Fn(&Value) -> Value) -> Value {
    let mut holder = holder.clone();
    if let Some(Value::Array(parts)) = holder.get_mut("content") {
        *parts = parts.iter().map(change).collect();
    }
    holder
}

fn flat_part(part: &Value) -> Value {
    match fields(part) {
        Some(_) => with_parts(&flat_shallow(part), &flat_part),
        None => part.clone(),
    }
}

/// A tool part in the nested form.
#[must_use]
pub fn nested_part(part: &Value) -> Value {
    let Some((kind, names)) = fields(part) else { return part.clone() };
    let flat = with_parts(&flat_shallow(part), &nested_part);
    let (mut outer, mut inner) = (Map::new(), Map::new());
    for (field, value) in flat.as_object().expect("a part is an object") {
        let target = if names.contains(&field.as_str()) { &mut inner } else { &mut outer };
        target.insert(field.clone(), value.clone());
    }
    outer.insert(kind.to_owned(), Value::Object(inner));
    Value::Object(outer)
}

/// The part in the flat form. The parts inside it do not change.
fn flat_shallow(part: &Value) -> Value {
    let Some((kind, _)) = fields(part) else { return part.clone() };
    let (Some(Value::Object(inner)), Some(outer)) = (part.get(kind), part.as_object()) else {
        return part.clone();
    };
    let mut flat = outer.clone();
    flat.shift_remove(kind);
    flat.extend(inner.clone());
    Value::Object(flat)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_forms_are_inverse_to_each_other() {
        let mixed = json!({"role": "user", "content": [
            {"type": "tool_use", "id": "a", "name": "n", "input": {}, "signature": "s"},
            {"type": "tool_result", "tool_result": {"tool_use_id": "a", "content": [
                {"type": "tool_use", "id": "b", "name": "n", "input": 1},
                {"type": "text", "text": "t"},
            ]}},
        ]});
        let nested_form = json!({"role": "user", "content": [
            {"type": "tool_use", "tool_use": {"id": "a", "name": "n", "input": {}}, "signature": "s"},
            {"type": "tool_result", "tool_result": {"tool_use_id": "a", "content": [
                {"type": "tool_use", "tool_use": {"id": "b", "name": "n", "input": 1}},
                {"type": "text", "text": "t"},
            ]}},
        ]});
        assert_eq!(nested(&mixed), nested_form);
        assert_eq!(nested(&flat(&mixed)), nested_form);
        assert_eq!(flat(&nested_form), flat(&mixed));
        assert_eq!(flat(&mixed)["content"][1]["content"][0]["id"], "b");
    }
}
