//! The operation form: the name of the operation in capitals, and its fields beside it.

use super::body::{Body, MessageReader, is_similar};
use crate::operation::{
    Append, Arrange, BatchEnd, BatchStart, Carry, Clear, Compress, Delete, Filter, Fit, Insert,
    Mark, Operation, OperationKind, Redo, Replace, Restore, Rollback, Truncate, Undo, Unmark,
};
use crate::{BatchIndex, Error, LogIndex, Position, Version};

/// The fields of an operation in addition to `operation` and `description`; `None` for an unknown
/// operation.
fn fields_of(name: &str) -> Option<&'static [&'static str]> {
    Some(match name {
        "APPEND" => &["messages"],
        "INSERT" => &["position", "messages"],
        "REPLACE" => &["index", "message"],
        "DELETE" | "RESTORE" | "ARRANGE" => &["indices"],
        "COMPRESS" => &["indices", "summary"],
        "TRUNCATE" => TRUNCATE_FIELDS,
        "FILTER" => FILTER_FIELDS,
        "CLEAR" => CLEAR_FIELDS,
        "FIT" => &["maxTokens", "keepSystem", "startOn"],
        "BATCH_START" => &["boundary", "withTools"],
        "BATCH_END" => &["targetBatchIndex", "carry"],
        "ROLLBACK" => &["targetBatchIndex", "targetVersion"],
        "MARK" | "UNMARK" => &["indices", "mark"],
        "UNDO" | "REDO" => &[],
        _ => return None,
    })
}

pub(super) const TRUNCATE_FIELDS: &[&str] =
    &["keepFirst", "keepLast", "removeFirst", "removeLast", "range", "role", "keepOthers", "scope"];
pub(super) const FILTER_FIELDS: &[&str] = &["roles", "contentContains", "contentExcludes", "scope"];
pub(super) const CLEAR_FIELDS: &[&str] = &["keepSystemMessage", "scope"];

/// The names of the operation form.
fn names() -> impl Iterator<Item = &'static str> {
    let kinds = OperationKind::OPERATIONS.iter().map(|kind| kind.as_str());
    kinds.filter(|name| fields_of(name).is_some())
}

pub(super) fn read(
    name: &str,
    body: &Body<'_>,
    messages: &mut MessageReader<'_>,
) -> Result<Operation, Error> {
    let Some(fields) = fields_of(name) else {
        let name = crate::message::shorten(name);
        let similar = names().find(|known| is_similar(known, &name));
        let reason = match similar {
            Some(known) => format!("there is no operation {name:?}; did you mean {known}?"),
            None => {
                let names: Vec<&str> = names().collect();
                format!("there is no operation {name:?}; use one of {}", names.join(", "))
            }
        };
        return Err(Error::operation_field("operation", reason));
    };
    body.allow(&[fields, &["operation", "description"]].concat())?;
    body.string("description")?;
    match name {
        "APPEND" => {
            let list = body.list("messages")?;
            Ok(Append { messages: messages.all("messages", &list)? }.into())
        }
        "INSERT" => {
            let position = Position(body.required_size("position")?);
            let list = body.list("messages")?;
            Ok(Insert { position, messages: messages.all("messages", &list)? }.into())
        }
        "REPLACE" => {
            let index = Position(body.required_size("index")?);
            let message = body.required("message")?;
            Ok(Replace { index, message: messages.one("message", message)? }.into())
        }
        "DELETE" => Ok(Delete { indices: body.indices()? }.into()),
        "ARRANGE" => Ok(Arrange { indices: body.indices()? }.into()),
        "RESTORE" => Ok(Restore { indices: body.indices()? }.into()),
        "COMPRESS" => {
            let indices = body.indices()?;
            refuse_empty(&indices)?;
            let summary = body.get("summary");
            let summary = summary.map(|summary| messages.one("summary", summary)).transpose()?;
            Ok(Compress { indices, summary }.into())
        }
        "TRUNCATE" => truncate(body),
        "FILTER" => filter(body),
        "CLEAR" => clear(body),
        "FIT" => Ok(Fit {
            max_tokens: {
                body.required("maxTokens")?;
                body.number("maxTokens")?.unwrap_or_default()
            },
            keep_system: body.flag("keepSystem")?.unwrap_or(true),
            start_on: body.role("startOn")?,
        }
        .into()),
        "BATCH_START" => {
            let boundary = body.number("boundary")?.map(log_index);
            let with_tools = body.flag("withTools")?.unwrap_or(false);
            Ok(BatchStart { boundary, with_tools }.into())
        }
        "BATCH_END" => {
            let target = body.size("targetBatchIndex")?.map(BatchIndex);
            Ok(BatchEnd { target, carry: carry(body)? }.into())
        }
        "ROLLBACK" => rollback(body),
        "MARK" | "UNMARK" => {
            let indices = body.indices()?;
            body.required("mark")?;
            let mark = body.string("mark")?.unwrap_or_default().into_owned();
            if name == "MARK" {
                Ok(Mark { indices, mark }.into())
            } else {
                Ok(Unmark { indices, mark }.into())
            }
        }
        "UNDO" => Ok(Undo.into()),
        "REDO" => Ok(Redo.into()),
        _ => unreachable!("every operation that has fields is read"),
    }
}

/// Refuses an empty list before the other fields are read.
pub(super) fn refuse_empty(indices: &[LogIndex]) -> Result<(), Error> {
    Operation::from(Delete { indices: indices.to_vec() }).check()
}

pub(super) fn log_index(number: u64) -> LogIndex {
    LogIndex(u32::try_from(number).unwrap_or(u32::MAX))
}

pub(super) fn truncate(body: &Body<'_>) -> Result<Operation, Error> {
    let keep_others = body.flag("keepOthers")?;
    let role = body.role("role")?;
    if keep_others.is_some() && role.is_none() {
        let reason = "keepOthers needs role; give a role or leave keepOthers out";
        return Err(Error::operation_field("keepOthers", reason));
    }
    Ok(Truncate {
        keep_first: body.size("keepFirst")?,
        keep_last: body.size("keepLast")?,
        remove_first: body.size("removeFirst")?,
        remove_last: body.size("removeLast")?,
        range: body.range()?,
        role,
        keep_others: keep_others.unwrap_or(false),
        scope: body.scope()?,
    }
    .into())
}

pub(super) fn filter(body: &Body<'_>) -> Result<Operation, Error> {
    Ok(Filter {
        roles: body.roles("roles")?,
        content_contains: body.words("contentContains", false)?,
        content_excludes: body.words("contentExcludes", false)?,
        scope: body.scope()?,
    }
    .into())
}

pub(super) fn clear(body: &Body<'_>) -> Result<Operation, Error> {
    let keep_system_message = body.flag("keepSystemMessage")?.unwrap_or(true);
    Ok(Clear { keep_system_message, scope: body.scope()? }.into())
}

pub(super) fn carry(body: &Body<'_>) -> Result<Carry, Error> {
    match body.get("carry") {
        None => Ok(Carry::None),
        Some(value) if value.starts_with('[') => {
            Ok(body.roles("carry")?.map_or(Carry::None, Carry::Roles))
        }
        Some(_) => match body.string("carry")?.as_deref() {
            Some("all") => Ok(Carry::All),
            Some("none") => Ok(Carry::None),
            _ => Err(Error::operation_field(
                "carry",
                "carry must be \"none\", \"all\" or a list of roles",
            )),
        },
    }
}

fn rollback(body: &Body<'_>) -> Result<Operation, Error> {
    let batch = body.size("targetBatchIndex")?;
    let version = body.number("targetVersion")?;
    match (batch, version) {
        (Some(batch), None) => Ok(Rollback::ToBatch(BatchIndex(batch)).into()),
        (None, Some(version)) => {
            let version = Version(u32::try_from(version).unwrap_or(u32::MAX));
            Ok(Rollback::ToVersion(version).into())
        }
        _ => Err(Error::operation(
            "ROLLBACK needs a target: either targetBatchIndex or targetVersion",
        )),
    }
}
