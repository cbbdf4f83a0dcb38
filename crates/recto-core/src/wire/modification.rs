//! The modification form: `indices` is always there, `data` brings messages.

use super::body::{Body, MessageReader};
use super::operation::refuse_empty;
use crate::json::Kind;
use crate::operation::{
    Append, BatchEnd, BatchStart, Carry, Compress, Delete, Operation, ReplaceEntries,
};
use crate::{BatchIndex, Error, LogIndex, Message};

pub(super) fn read(
    name: &str,
    body: &Body<'_>,
    messages: &mut MessageReader<'_>,
) -> Result<Operation, Error> {
    let brings_data = matches!(name, "insert" | "replace");
    let fields: &[&str] = if brings_data {
        &["operation", "description", "indices", "data"]
    } else {
        &["operation", "description", "indices"]
    };
    body.allow(fields)?;
    body.string("description")?;
    let indices = body.indices()?;
    match name {
        "insert" => {
            if !indices.is_empty() {
                let reason = "insert adds to the end, so indices must be empty";
                return Err(Error::operation_field("indices", reason));
            }
            Ok(Append { messages: data(body, messages)? }.into())
        }
        "replace" => {
            refuse_empty(&indices)?;
            Ok(ReplaceEntries { indices, messages: data(body, messages)? }.into())
        }
        "delete" => Ok(Delete { indices }.into()),
        "compress" => Ok(Compress { indices, summary: None }.into()),
        "batch_start" => Ok(BatchStart { boundary: Some(single(&indices)?) }.into()),
        _ => {
            let target = BatchIndex(single(&indices)?.as_usize());
            Ok(BatchEnd { target, carry: Carry::None }.into())
        }
    }
}

/// A message or a list of messages.
fn data(body: &Body<'_>, messages: &mut MessageReader<'_>) -> Result<Vec<Message>, Error> {
    let data = body.required("data")?;
    match Kind::of(data) {
        Kind::Array => {
            let list = body.list("data")?;
            if list.is_empty() {
                return Err(Error::operation_field(
                    "data",
                    "data is empty; give at least one message",
                ));
            }
            messages.all("data", &list)
        }
        _ => Ok(vec![messages.one("data", data)?]),
    }
}

fn single(indices: &[LogIndex]) -> Result<LogIndex, Error> {
    match indices {
        [index] => Ok(*index),
        _ => Err(Error::operation_field("indices", "indices must hold exactly one number here")),
    }
}
