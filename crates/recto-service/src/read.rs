//! Determines which request a JSON text contains, and refuses names that are given twice, also in operations,
//! queries and tools. `recto_lists::read` reads the request into its type.

use recto::engine::json::Pairs;
use recto::{EngineError, OperationKind};
use recto_lists::read::{Fields, add_name, known_names, read};
use serde_json::value::RawValue;

use crate::error::wrong;
use crate::request::{RequestKind, Scoped};

/// The kind of a request: its row in the table.
pub(crate) fn kind_of(text: &str) -> Result<&'static RequestKind, EngineError> {
    let Fields(fields) = read(text)?;
    // `settings` is an option of requests that create a conversation, and the name of another request.
    let creating = RequestKind::ALL.iter().find(|kind| {
        kind.scoped == Scoped::Creating && kind.names.iter().any(|name| fields.has(name))
    });
    let is_of_conversation = fields.has("conversation");
    match (creating, is_of_conversation) {
        (Some(kind), false) => return Ok(kind),
        (Some(kind), true) => {
            let name = kind.names[0];
            let reason = format!("{name} and conversation exclude each other; give one of them");
            return Err(wrong(name, reason));
        }
        (None, _) => {}
    }
    let scoped = if is_of_conversation { Scoped::Conversation } else { Scoped::Store };
    let mut found = RequestKind::ALL.iter().filter(|kind| kind.scoped == scoped).flat_map(|kind| {
        let given = kind.names.iter().filter(|name| fields.has(name));
        given.map(move |name| (*name, kind))
    });
    match (found.next(), found.next()) {
        (Some((_, kind)), None) => Ok(kind),
        (Some((one, _)), Some((other, _))) => {
            let reason = format!("{one} and {other} exclude each other; give one of them");
            Err(wrong(other, reason))
        }
        (None, _) => Err(nothing_named(&fields, scoped)),
    }
}

/// The error if no field names a request.
fn nothing_named(fields: &Pairs<&RawValue>, scoped: Scoped) -> EngineError {
    let names: Vec<&str> = RequestKind::ALL
        .iter()
        .filter(|kind| kind.scoped == scoped || scoped == Scoped::Store)
        .flat_map(|kind| kind.names)
        .copied()
        .collect();
    let unknown = fields.0.iter().map(|(name, _)| &**name).find(|name| *name != "conversation");
    if scoped == Scoped::Store && unknown.is_none_or(|name| names.contains(&name)) {
        let reason = "a request names a conversation, or is one about the store: \
                      {\"create\": NAME}, {\"import\": NAME}, {\"list\": true}";
        return wrong("conversation", reason);
    }
    let is_of_store = |name: &str| {
        let of_store = RequestKind::ALL.iter().filter(|kind| kind.scoped == Scoped::Store);
        of_store.flat_map(|kind| kind.names).any(|known| *known == name)
    };
    match unknown {
        Some(name) if is_of_store(name) => {
            wrong(name, format!("{name} is a request about the store; leave conversation out"))
        }
        Some(name) => {
            let advice = match operation_meant(name) {
                Some(operation) => format!(
                    "; an operation is sent as {{\"conversation\": NAME, \"op\": {{\"operation\": \
                     \"{operation}\", …}}}}"
                ),
                None => known_names(name, &names),
            };
            wrong(name, format!("no request is called {name:?}{advice}"))
        }
        None => EngineError::InvalidOperation {
            reason: format!("a request asks for something: {}", names.join(", ")),
            field: None,
        },
    }
}

/// The operation that the caller probably means by the name of an unknown request.
fn operation_meant(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_uppercase();
    let name = match name.as_str() {
        "PIN" => "MARK",
        "UNPIN" => "UNMARK",
        "MESSAGE" | "MESSAGES" => "APPEND",
        name => name,
    };
    OperationKind::OPERATIONS.iter().map(|kind| kind.as_str()).find(|known| *known == name)
}

/// Fields whose values are messages. Messages keep their bytes, so their fields are not checked.
const MESSAGE_FIELDS: [&str; 4] = ["messages", "message", "summary", "data"];

/// Refuses a name that is given twice in an operation, a list of operations or a query. The engine would use
/// the value that is given last. The field of the error starts with `path`, which may be empty.
pub fn check_names(value: &RawValue, path: &str) -> Result<(), EngineError> {
    let text = value.get();
    if text.starts_with('[') {
        let items: Vec<&RawValue> = read(text)?;
        return items.iter().enumerate().try_for_each(|(number, item)| {
            match item.get().starts_with('{') {
                true => check_names(item, &format!("{path}[{number}]")),
                false => Ok(()),
            }
        });
    }
    if !text.starts_with('{') {
        return Ok(());
    }
    let fields: Pairs<&RawValue> = serde_json::from_str(text)
        .map_err(|error| EngineError::InvalidJson { reason: error.to_string() })?;
    let inside = |name: &str| {
        let mut inside = path.to_owned();
        add_name(&mut inside, name);
        inside
    };
    if let Some(name) = fields.repeated_name() {
        return Err(wrong(&inside(name), format!("{name} is given twice")));
    }
    fields.0.iter().try_for_each(|(name, value)| {
        match value.get().starts_with(['{', '[']) && !MESSAGE_FIELDS.contains(&&**name) {
            true => check_names(value, &inside(name)),
            false => Ok(()),
        }
    })
}

/// Refuses a name that is given twice in a tool of a list. The values of the fields, such as the JSON Schema
/// of the tool, are not checked, because Recto does not read them.
pub(crate) fn check_tool_names(tools: &RawValue, path: &str) -> Result<(), EngineError> {
    let Ok(tools) = serde_json::from_str::<Vec<&RawValue>>(tools.get()) else { return Ok(()) };
    for (number, tool) in tools.iter().enumerate() {
        let Ok(fields) = serde_json::from_str::<Pairs<&RawValue>>(tool.get()) else { continue };
        if let Some(name) = fields.repeated_name() {
            let field = format!("{path}[{number}].{name}");
            return Err(wrong(&field, format!("{name} is given twice")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_in_nested_objects_but_not_in_messages() {
        let twice = |text: &str| {
            let value: &RawValue = serde_json::from_str(text).unwrap();
            check_names(value, "ops").err().and_then(|error| error.field().map(|f| f.into_owned()))
        };
        assert_eq!(twice(r#"[{"a": 1}, {"b": {"c": 1, "c": 2}}]"#).as_deref(), Some("ops[1].b.c"));
        assert_eq!(
            twice(r#"[{"messages": [{"x": 1, "x": 2}], "summary": {"x": 1, "x": 2}}]"#),
            None
        );
        assert_eq!(twice(r#"{"\u0061": 1, "a": 2}"#).as_deref(), Some("ops.a"));
        assert_eq!(twice("7"), None);
    }
}
