//! The modification form: `indices` is required, `data` contains the messages.

use super::body::{Body, MessageReader};
use super::operation::{carry, refuse_empty};
use crate::json::Kind;
use crate::operation::{
    Append, BatchEnd, BatchStart, Compress, Delete, Modification, Operation, ReplaceEntries, Step,
};
use crate::{BatchIndex, Error, LogIndex, Message};

pub(super) fn read(
    name: &str,
    body: &Body<'_>,
    messages: &mut MessageReader<'_>,
) -> Result<Step, Error> {
    let own_fields: &[&str] = match name {
        "insert" | "replace" => &["data"],
        "batch_start" => &["batch"],
        "batch_end" => &["batch", "carry"],
        _ => &[],
    };
    let fields = [&["operation", "description", "indices"], own_fields].concat();
    body.allow_beside_null_sections(&fields)?;
    body.string("description")?;
    let indices = body.indices()?;
    let batch = body.size("batch")?.map(BatchIndex);
    let is_empty = indices.is_empty();
    match name {
        "insert" => {
            let ignored = (!is_empty).then_some(Modification::IgnoredIndices(indices));
            Ok(step(Append { messages: data(body, messages)? }, ignored))
        }
        "replace" => {
            refuse_empty(&indices)?;
            Ok(ReplaceEntries { indices, messages: data(body, messages)? }.into())
        }
        "delete" => Ok(step(Delete { indices }, is_empty.then_some(Modification::Nothing))),
        "compress" => {
            let nothing = is_empty.then_some(Modification::Nothing);
            Ok(step(Compress { indices, summary: None }, nothing))
        }
        "batch_start" => {
            let boundary = Some(single(&indices)?);
            let expected = batch.map(Modification::ExpectedBatch);
            Ok(step(BatchStart { boundary, ..BatchStart::default() }, expected))
        }
        _ => {
            let target = match (&*indices, batch) {
                ([], batch) => batch,
                (indices, batch) => {
                    let target = BatchIndex(single(indices)?.as_usize());
                    if batch.is_some_and(|batch| batch != target) {
                        let reason = "indices and batch name different batches; give one of them";
                        return Err(Error::operation_field("batch", reason));
                    }
                    Some(target)
                }
            };
            Ok(BatchEnd { target, carry: carry(body)? }.into())
        }
    }
}

fn step(operation: impl Into<Operation>, modification: Option<Modification>) -> Step {
    Step { modification, ..Step::from(operation.into()) }
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
        _ => Err(Error::operation_field(
            "indices",
            "indices must have exactly one element in this operation",
        )),
    }
}
