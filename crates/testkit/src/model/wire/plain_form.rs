//! The plain form: `{"operation": "TRUNCATE", "keepLast": 2}`.

use serde_json::Value;

use super::Fields;
use crate::model::operation::{Carry, Filter, Fit, Operation, Truncate};
use crate::model::refusal::Refusal;

/// Reads the operation with this name. `common` lists the fields that are allowed
/// in addition to those of the operation; the node form has none.
pub(super) fn read(name: &str, fields: &Fields, common: &[&str]) -> Result<Operation, Refusal> {
    let own = own_fields(name)?;
    fields.only(&[own, common].concat())?;
    match name {
        "APPEND" => Ok(Operation::Append {
            messages: fields.messages("messages")?,
            ignored_indices: Vec::new(),
        }),
        "INSERT" => Ok(Operation::Insert {
            position: fields.required_count("position")?,
            messages: fields.messages("messages")?,
        }),
        "REPLACE" => Ok(Operation::Replace {
            position: fields.required_count("index")?,
            message: fields.required_message("message")?,
        }),
        "DELETE" => Ok(Operation::Delete { indices: fields.indices("indices")? }),
        "COMPRESS" => Ok(Operation::Compress {
            indices: fields.indices("indices")?,
            summary: fields.message("summary")?,
        }),
        "TRUNCATE" => read_truncate(fields),
        "FILTER" => read_filter(fields),
        "CLEAR" => Ok(Operation::Clear {
            keep_system_message: fields.flag("keepSystemMessage")?.unwrap_or(true),
            scope: fields.scope()?,
        }),
        "RESTORE" => Ok(Operation::Restore { indices: fields.indices("indices")? }),
        "FIT" => Ok(Operation::Fit(Fit {
            max_tokens: fields.required_number("maxTokens")?,
            keep_system: fields.flag("keepSystem")?.unwrap_or(true),
            start_on: fields.role("startOn")?,
        })),
        "ARRANGE" => Ok(Operation::Arrange { indices: fields.distinct_numbers("indices")? }),
        "BATCH_START" => Ok(Operation::BatchStart {
            boundary: fields.count("boundary")?,
            with_tools: fields.flag("withTools")?.unwrap_or(false),
            expected_batch: None,
        }),
        "BATCH_END" => Ok(Operation::BatchEnd {
            target_batch: fields.count("targetBatchIndex")?,
            carry: read_carry(fields)?,
        }),
        "ROLLBACK" => read_rollback(fields),
        "MARK" => Ok(Operation::Mark { indices: fields.indices("indices")?, mark: mark(fields)? }),
        "UNMARK" => {
            Ok(Operation::Unmark { indices: fields.indices("indices")?, mark: mark(fields)? })
        }
        "UNDO" => Ok(Operation::Undo),
        "REDO" => Ok(Operation::Redo),
        _ => unreachable!("every operation that has fields is read"),
    }
}

fn own_fields(name: &str) -> Result<&'static [&'static str], Refusal> {
    Ok(match name {
        "APPEND" => &["messages"],
        "INSERT" => &["position", "messages"],
        "REPLACE" => &["index", "message"],
        "DELETE" | "RESTORE" | "ARRANGE" => &["indices"],
        "COMPRESS" => &["indices", "summary"],
        "TRUNCATE" => &[
            "keepFirst",
            "keepLast",
            "removeFirst",
            "removeLast",
            "range",
            "role",
            "keepOthers",
            "scope",
        ],
        "FILTER" => &["roles", "contentContains", "contentExcludes", "scope"],
        "CLEAR" => &["keepSystemMessage", "scope"],
        "FIT" => &["maxTokens", "keepSystem", "startOn"],
        "BATCH_START" => &["boundary", "withTools"],
        "BATCH_END" => &["targetBatchIndex", "carry"],
        "ROLLBACK" => &["targetBatchIndex", "targetVersion"],
        "MARK" | "UNMARK" => &["indices", "mark"],
        "UNDO" | "REDO" => &[],
        _ => return Err(Refusal::operation(format!("unknown operation {name}"))),
    })
}

fn mark(fields: &Fields) -> Result<String, Refusal> {
    fields.label("mark")?.ok_or_else(|| Refusal::operation("mark is missing"))
}

fn read_truncate(fields: &Fields) -> Result<Operation, Refusal> {
    let criteria = ["keepFirst", "keepLast", "removeFirst", "removeLast", "range", "role"];
    if criteria.iter().all(|name| fields.get(name).is_none()) {
        return Err(Refusal::operation("TRUNCATE has no criterion"));
    }
    let role = fields.role("role")?;
    let keep_others = fields.flag("keepOthers")?;
    if keep_others.is_some() && role.is_none() {
        return Err(Refusal::operation("keepOthers without role"));
    }
    Ok(Operation::Truncate(Truncate {
        keep_first: fields.count("keepFirst")?,
        keep_last: fields.count("keepLast")?,
        remove_first: fields.count("removeFirst")?,
        remove_last: fields.count("removeLast")?,
        role,
        keep_others: keep_others.unwrap_or(false),
        scope: fields.scope()?,
        range: fields.range("range")?,
    }))
}

fn read_filter(fields: &Fields) -> Result<Operation, Refusal> {
    let criteria = ["roles", "contentContains", "contentExcludes"];
    if criteria.iter().all(|name| fields.get(name).is_none()) {
        return Err(Refusal::operation("FILTER has no criterion"));
    }
    Ok(Operation::Filter(Filter {
        roles: fields.roles("roles")?,
        content_contains: fields.labels("contentContains")?,
        content_excludes: fields.labels("contentExcludes")?,
        scope: fields.scope()?,
    }))
}

pub(super) fn read_carry(fields: &Fields) -> Result<Carry, Refusal> {
    match fields.get("carry") {
        None => Ok(Carry::None),
        Some(Value::String(carry)) if carry == "none" => Ok(Carry::None),
        Some(Value::String(carry)) if carry == "all" => Ok(Carry::All),
        Some(_) => Ok(Carry::Roles(fields.roles("carry")?.expect("carry is present"))),
    }
}

fn read_rollback(fields: &Fields) -> Result<Operation, Refusal> {
    match (fields.count("targetBatchIndex")?, fields.number("targetVersion")?) {
        (Some(target_batch), None) => Ok(Operation::RollbackToBatch { target_batch }),
        (None, Some(target_version)) => Ok(Operation::RollbackToVersion { target_version }),
        _ => Err(Refusal::operation("ROLLBACK needs targetBatchIndex or targetVersion, not both")),
    }
}
