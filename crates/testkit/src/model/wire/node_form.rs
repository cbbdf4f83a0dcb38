//! The node form: `{"operation": "truncate", "truncate": {"keepLast": 2}}`.

use serde_json::{Value, json};

use super::{Fields, plain_form};
use crate::model::operation::Operation;
use crate::model::refusal::Refusal;

/// The sections of a node. Sections of other operations may be `null`.
pub(super) const SECTIONS: [&str; 5] = ["truncate", "insert", "replace", "clear", "filter"];

/// Reads a body whose fields and meaning are those of the plain form. The body
/// of `clear` may be missing; `description` is beside `operation`.
pub(super) fn read(name: &str, fields: &Fields) -> Result<Operation, Refusal> {
    fields.only_or_null(&["operation", "description", name], &SECTIONS)?;
    let missing = json!({});
    let body = match fields.get(name) {
        Some(body) => body,
        None if name == "clear" => &missing,
        None => return Err(Refusal::operation(format!("{name} has no body"))),
    };
    if name == "insert" && body.get("position").and_then(Value::as_i64) == Some(-1) {
        return read_append(body);
    }
    plain_form::read(&name.to_uppercase(), &Fields::of(body)?, &[])
}

/// `insert.position: -1` means APPEND.
fn read_append(body: &Value) -> Result<Operation, Refusal> {
    let fields = Fields::of(body)?;
    fields.only(&["position", "messages"])?;
    let messages = fields.messages("messages")?;
    Ok(Operation::Append { messages, ignored_indices: Vec::new() })
}
