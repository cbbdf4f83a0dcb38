//! Reads operations from JSON. Checks only the fields.
//!
//! Unknown fields are checked first, then the operation's own fields, then its
//! messages. `null` in an optional field means absent.

mod fields;
mod modification_form;
mod node_form;
mod plain_form;

use serde_json::Value;

use super::operation::{Described, Operation, Request};
use super::refusal::Refusal;
pub(super) use fields::Fields;

/// Reads `{"op": {…}}` or `{"ops": […]}`.
pub(super) fn read_request(json: &Value) -> Result<Request, Refusal> {
    let request = Fields::of(json)?;
    request.only(&["op", "ops"])?;
    match (request.get("op"), request.get("ops")) {
        (Some(op), None) => {
            let step = read_operation(op)?;
            Ok(match step.operation {
                Operation::Undo => Request::Undo,
                Operation::Redo => Request::Redo,
                _ => Request::Edit(vec![step]),
            })
        }
        (None, Some(Value::Array(ops))) if !ops.is_empty() => {
            let steps = ops.iter().map(read_listed_operation).collect::<Result<_, _>>()?;
            Ok(Request::Edit(steps))
        }
        _ => Err(Refusal::operation("a request has op, or ops: a list that is not empty")),
    }
}

/// UNDO and REDO in a list are `invalid_operation`.
fn read_listed_operation(json: &Value) -> Result<Described, Refusal> {
    let step = read_operation(json)?;
    match step.operation {
        Operation::Undo | Operation::Redo => {
            Err(Refusal::operation("UNDO and REDO must be the only operation of a request"))
        }
        _ => Ok(step),
    }
}

/// Reads one operation in any of the three input forms. A name in capitals means
/// the plain form. `insert` and `replace` have the node form if they have a body
/// of that name, otherwise the modification form.
fn read_operation(json: &Value) -> Result<Described, Refusal> {
    let fields = Fields::of(json)?;
    let name = fields.required_text("operation")?;
    let description = fields.text("description")?;
    let operation = match name.as_str() {
        "truncate" | "filter" | "clear" => node_form::read(&name, &fields)?,
        "insert" | "replace" if fields.get(&name).is_some() => node_form::read(&name, &fields)?,
        "insert" | "replace" | "delete" | "compress" | "batch_start" | "batch_end" => {
            modification_form::read(&name, &fields)?
        }
        _ => plain_form::read(&name, &fields, &["operation", "description"])?,
    };
    Ok(Described { operation, description })
}
