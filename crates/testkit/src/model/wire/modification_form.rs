//! The modification form: `{"operation": "delete", "indices": [1, 2]}`.

use super::node_form::SECTIONS;
use super::{Fields, plain_form};
use crate::model::operation::Operation;
use crate::model::refusal::Refusal;

/// `indices` is required. `data` belongs to insert and replace, `batch` to
/// batch_start and batch_end, `carry` to batch_end. Sections of the node form may be
/// present as `null`.
pub(super) fn read(name: &str, fields: &Fields) -> Result<Operation, Refusal> {
    let own: &[&str] = match name {
        "insert" | "replace" => &["data"],
        "batch_start" => &["batch"],
        "batch_end" => &["batch", "carry"],
        _ => &[],
    };
    let known = [&["operation", "description", "indices"], own].concat();
    fields.only_or_null(&known, &SECTIONS)?;
    match name {
        "insert" => Ok(Operation::Append {
            ignored_indices: fields.numbers("indices")?,
            messages: fields.one_or_more_messages("data")?,
        }),
        "replace" => Ok(Operation::ReplaceEntries {
            indices: fields.indices("indices")?,
            messages: fields.one_or_more_messages("data")?,
        }),
        "delete" => Ok(Operation::Delete { indices: fields.distinct_numbers("indices")? }),
        "compress" => {
            Ok(Operation::Compress { indices: fields.distinct_numbers("indices")?, summary: None })
        }
        "batch_start" => {
            let boundary = at_most_one_number(fields)?;
            if boundary.is_none() {
                return Err(Refusal::operation("batch_start needs its boundary in indices"));
            }
            let expected_batch = fields.count("batch")?;
            Ok(Operation::BatchStart { boundary, with_tools: false, expected_batch })
        }
        _ => {
            let target_batch = match (at_most_one_number(fields)?, fields.count("batch")?) {
                (Some(index), Some(batch)) if index != batch => {
                    return Err(Refusal::operation("indices and batch disagree"));
                }
                (index, batch) => index.or(batch),
            };
            Ok(Operation::BatchEnd { target_batch, carry: plain_form::read_carry(fields)? })
        }
    }
}

fn at_most_one_number(fields: &Fields) -> Result<Option<usize>, Refusal> {
    match fields.numbers("indices")?[..] {
        [] => Ok(None),
        [number] => Ok(Some(number)),
        _ => Err(Refusal::operation("indices must have at most one element")),
    }
}
