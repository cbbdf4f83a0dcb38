//! JSON: reads requests in three forms, and queries. Writes requests in the operation form, or in the
//! modification form if only that form can express the operation (`write.rs`).
//!
//! | form | looks like |
//! |---|---|
//! | operation | `{"operation": "TRUNCATE", "keepLast": 2}` |
//! | node | `{"operation": "truncate", "truncate": {"keepLast": 2}}` |
//! | modification | `{"operation": "delete", "indices": [1, 2]}` |
//!
//! An unknown field is an error, so that a misspelt field is never ignored. The fields of an operation are
//! tested before its messages.

mod body;
mod mark_map;
mod modification;
mod node;
mod operation;
mod query;
mod write;

pub use mark_map::{MarkMap, TypeIndices};

use crate::json::{self, Kind};
use crate::operation::{Operation, Request, Step, only_operation_error};
use crate::{Error, Limits};
use body::Body;

impl Request {
    /// Reads a request within the default [`Limits`]: an operation in any form, `{"op": …}`, or
    /// `{"ops": […]}`.
    ///
    /// ```
    /// use recto_core::{Operation, Request};
    ///
    /// let request = Request::from_json(r#"{"operation": "truncate", "truncate": {"keepLast": 2}}"#)?;
    /// assert!(matches!(request.steps[0].operation, Operation::Truncate(_)));
    ///
    /// let error = Request::from_json(r#"{"operation": "TRUNCATE", "keeplast": 2}"#).unwrap_err();
    /// assert_eq!(error.code().as_str(), "invalid_operation");
    /// assert!(error.to_string().contains("did you mean keepLast?"));
    /// # Ok::<(), recto_core::Error>(())
    /// ```
    pub fn from_json(text: &str) -> Result<Request, Error> {
        Self::from_json_within(text, &Limits::default())
    }

    /// [`from_json`](Self::from_json) with other limits.
    pub fn from_json_within(text: &str, limits: &Limits) -> Result<Request, Error> {
        let text = json::value(text)?;
        let fields = json::object(text).ok_or_else(|| {
            Error::operation(format!("a request is an object, not {}", Kind::of(text).name()))
        })?;
        if fields.get_or_null("operation").is_none() {
            let body = Body::new("a request", &fields);
            if fields.get_or_null("ops").is_some() {
                body.allow(&["ops"])?;
                return read_list(body.list("ops")?, limits);
            }
            if fields.get_or_null("op").is_some() {
                body.allow(&["op"])?;
                return Ok(read_step(body.required("op")?, limits, &mut 0)?.into());
            }
        }
        Ok(read_step(text, limits, &mut 0)?.into())
    }
}

fn read_list(list: Vec<&str>, limits: &Limits) -> Result<Request, Error> {
    let mut messages = 0;
    let mut request = Request { steps: Vec::new() };
    if list.is_empty() {
        return Err(Error::operation_field("ops", "ops is empty; give at least one operation"));
    }
    for (number, text) in list.into_iter().enumerate() {
        let step = read_step(text, limits, &mut messages).map_err(|error| error.in_list(number))?;
        if matches!(step.operation, Operation::Undo(_) | Operation::Redo(_)) {
            return Err(only_operation_error(step.operation.kind()).in_list(number));
        }
        request.steps.push(step);
    }
    Ok(request)
}

/// Reads one operation. `messages` counts the messages of the request so far.
fn read_step(text: &str, limits: &Limits, messages: &mut usize) -> Result<Step, Error> {
    let fields = json::object(text).ok_or_else(|| {
        Error::operation(format!("an operation is an object, not {}", Kind::of(text).name()))
    })?;
    let name = Body::new("an operation", &fields).string("operation")?.ok_or_else(|| {
        Error::operation_field(
            "operation",
            "operation is missing; name an operation, such as APPEND",
        )
    })?;
    let body = Body::new(&name, &fields);
    let mut reader = body::MessageReader { limits, count: messages };
    let mut step: Step = match &*name {
        "truncate" | "filter" | "clear" => node::read(&name, &body, &mut reader)?.into(),
        "insert" | "replace" if fields.get(&name).is_some() => {
            node::read(&name, &body, &mut reader)?.into()
        }
        "insert" | "replace" | "delete" | "compress" | "batch_start" | "batch_end" => {
            modification::read(&name, &body, &mut reader)?
        }
        _ => operation::read(&name, &body, &mut reader)?.into(),
    };
    step.check()?;
    step.reason = body.string("description")?.map(|text| text.into_owned());
    Ok(step)
}
