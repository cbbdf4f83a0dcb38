//! The modification form: `{"operation": "delete", "indices": [1, 2]}`.

use super::Fields;
use crate::model::operation::{Carry, Operation};
use crate::model::refusal::Refusal;

/// `indices` is always there (empty for insert); `data` belongs to insert and
/// replace only.
pub(super) fn read(name: &str, fields: &Fields) -> Result<Operation, Refusal> {
    match name {
        "insert" | "replace" => fields.only(&["operation", "description", "indices", "data"])?,
        _ => fields.only(&["operation", "description", "indices"])?,
    }
    match name {
        "insert" => {
            if !fields.numbers("indices")?.is_empty() {
                return Err(Refusal::operation("the indices of insert are empty"));
            }
            Ok(Operation::Append { messages: fields.one_or_more_messages("data")? })
        }
        "replace" => Ok(Operation::ReplaceEntries {
            indices: fields.indices("indices")?,
            messages: fields.one_or_more_messages("data")?,
        }),
        "delete" => Ok(Operation::Delete { indices: fields.indices("indices")? }),
        "compress" => {
            Ok(Operation::Compress { indices: fields.indices("indices")?, summary: None })
        }
        "batch_start" => Ok(Operation::BatchStart { boundary: Some(one_number(fields)?) }),
        _ => Ok(Operation::BatchEnd { target_batch: one_number(fields)?, carry: Carry::None }),
    }
}

fn one_number(fields: &Fields) -> Result<usize, Refusal> {
    match fields.numbers("indices")?[..] {
        [number] => Ok(number),
        _ => Err(Refusal::operation("indices holds one number")),
    }
}
