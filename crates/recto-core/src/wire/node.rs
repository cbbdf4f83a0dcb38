//! The node form, which a context-processor node of a workflow uses for TRUNCATE, FILTER, CLEAR, INSERT and
//! REPLACE: the fields are in an object with the name of the operation. Only in this form, an INSERT at
//! position -1 means APPEND.

use super::body::{Body, MessageReader};
use super::operation::{CLEAR_FIELDS, FILTER_FIELDS, TRUNCATE_FIELDS, clear, filter, truncate};
use crate::json::{self, Fields};
use crate::operation::{Append, Insert, Operation, Replace};
use crate::{Error, Position};

pub(super) fn read(
    name: &str,
    outer: &Body<'_>,
    messages: &mut MessageReader<'_>,
) -> Result<Operation, Error> {
    outer.allow_beside_null_sections(&["operation", "description", name])?;
    outer.string("description")?;
    let fields = match outer.get(name) {
        Some(value) => json::object(value).ok_or_else(|| {
            let reason = format!("{name} must be an object with the operation's fields");
            Error::operation_field(name, reason)
        })?,
        None if name == "clear" => Fields(Vec::new()),
        None => {
            let reason = format!("the operation {name} needs its fields in an object {name:?}");
            return Err(Error::operation_field(name, reason));
        }
    };
    let body = Body::new(name, &fields);
    match name {
        "truncate" => {
            body.allow(TRUNCATE_FIELDS)?;
            truncate(&body)
        }
        "filter" => {
            body.allow(FILTER_FIELDS)?;
            filter(&body)
        }
        "clear" => {
            body.allow(CLEAR_FIELDS)?;
            clear(&body)
        }
        "insert" => {
            body.allow(&["position", "messages"])?;
            if body.required("position")? == "-1" {
                let list = body.list("messages")?;
                return Ok(Append { messages: messages.all("insert.messages", &list)? }.into());
            }
            let position = Position(body.required_size("position")?);
            let list = body.list("messages")?;
            Ok(Insert { position, messages: messages.all("insert.messages", &list)? }.into())
        }
        _ => {
            body.allow(&["index", "message"])?;
            let index = Position(body.required_size("index")?);
            let message = body.required("message")?;
            Ok(Replace { index, message: messages.one("replace.message", message)? }.into())
        }
    }
}
