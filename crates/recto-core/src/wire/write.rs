//! Writes requests as JSON.
//!
//! Invariants: reading a written request gives the same request, and every release writes the same bytes
//! for the same request, because stores recognise repeated requests by a hash of these bytes. The names and
//! the order of the fields therefore never change. A field that a later release adds is left out if it has
//! its default value.

use serde::Serialize;

use crate::operation::{Carry, Modification, Operation, Request, Rollback, Scope, Step};
use crate::{LogIndex, Message, Role, RoleSet};

impl Request {
    /// The request as JSON that [`from_json`](Self::from_json) reads: in the operation form, or in the
    /// modification form if only that form can express the operation. Every release writes the same bytes
    /// for the same request. Messages are unchanged.
    ///
    /// ```
    /// use recto_core::{Request, Truncate};
    ///
    /// let request = Request::from(Truncate::keep_last(2));
    /// assert_eq!(request.to_json(), r#"{"operation":"TRUNCATE","keepLast":2}"#);
    /// assert_eq!(Request::from_json(&request.to_json())?, request);
    /// # Ok::<(), recto_core::Error>(())
    /// ```
    pub fn to_json(&self) -> String {
        match &*self.steps {
            [step] => write_step(step),
            steps => {
                let steps: Vec<String> = steps.iter().map(write_step).collect();
                format!(r#"{{"ops":[{}]}}"#, steps.join(","))
            }
        }
    }
}

/// A JSON object, written field by field.
struct Fields(String);

impl Fields {
    fn of(name: &str) -> Fields {
        Fields(format!(r#"{{"operation":"{name}""#))
    }

    fn raw(&mut self, name: &str, json: &str) -> &mut Fields {
        self.0.push_str(",\"");
        self.0.push_str(name);
        self.0.push_str("\":");
        self.0.push_str(json);
        self
    }

    fn field(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> &mut Fields {
        let json = serde_json::to_string(value).expect("plain data can be written");
        self.raw(name, &json)
    }

    fn optional(&mut self, name: &str, value: &Option<impl Serialize>) -> &mut Fields {
        match value {
            Some(value) => self.field(name, value),
            None => self,
        }
    }

    fn roles(&mut self, name: &str, roles: RoleSet) -> &mut Fields {
        self.field(name, &roles.iter().collect::<Vec<Role>>())
    }

    fn message(&mut self, name: &str, message: &Message) -> &mut Fields {
        self.raw(name, message.json())
    }

    fn messages(&mut self, name: &str, messages: &[Message]) -> &mut Fields {
        let all: Vec<&str> = messages.iter().map(Message::json).collect();
        self.raw(name, &format!("[{}]", all.join(",")))
    }

    /// Writes a flag unless it has its default value.
    fn flag(&mut self, name: &str, value: bool, default: bool) -> &mut Fields {
        if value == default { self } else { self.field(name, &value) }
    }

    fn scope(&mut self, scope: Scope) -> &mut Fields {
        match scope {
            Scope::Visible => self,
            Scope::All => self.field("scope", "all"),
        }
    }
}

fn write_step(step: &Step) -> String {
    let mut fields = match (&step.modification, &step.operation) {
        (Some(modification), operation) => modification_fields(modification, operation),
        (None, operation) => {
            // REPLACE_ENTRIES exists only in the modification form.
            let name = match operation {
                Operation::ReplaceEntries(_) => "replace",
                operation => operation.kind().as_str(),
            };
            let mut fields = Fields::of(name);
            write_fields(&mut fields, operation);
            fields
        }
    };
    fields.optional("description", &step.reason);
    fields.0 + "}"
}

/// An operation that only the modification form can express.
fn modification_fields(modification: &Modification, operation: &Operation) -> Fields {
    let mut fields = Fields::of(&modification_name(operation));
    let none: &[LogIndex] = &[];
    match (modification, operation) {
        (Modification::IgnoredIndices(indices), Operation::Append(it)) => {
            fields.field("indices", indices).messages("data", &it.messages);
        }
        (Modification::ExpectedBatch(batch), Operation::BatchStart(it)) => {
            let boundary: Vec<LogIndex> = it.boundary.into_iter().collect();
            fields.field("indices", &boundary).field("batch", &batch.0);
        }
        _ => {
            fields.field("indices", none);
        }
    }
    fields
}

/// The name of an operation in the modification form.
fn modification_name(operation: &Operation) -> String {
    match operation {
        Operation::Append(_) => "insert".to_owned(),
        operation => operation.kind().as_str().to_lowercase(),
    }
}

fn write_fields<'a>(fields: &'a mut Fields, operation: &Operation) -> &'a mut Fields {
    match operation {
        Operation::Append(it) => fields.messages("messages", &it.messages),
        Operation::Insert(it) => {
            fields.field("position", &it.position.0).messages("messages", &it.messages)
        }
        Operation::Replace(it) => {
            fields.field("index", &it.index.0).message("message", &it.message)
        }
        Operation::ReplaceEntries(it) => {
            fields.field("indices", &it.indices).messages("data", &it.messages)
        }
        Operation::Delete(it) => fields.field("indices", &it.indices),
        Operation::Arrange(it) => fields.field("indices", &it.indices),
        Operation::Restore(it) => fields.field("indices", &it.indices),
        Operation::Compress(it) => {
            fields.field("indices", &it.indices);
            match &it.summary {
                Some(summary) => fields.message("summary", summary),
                None => fields,
            }
        }
        Operation::Truncate(it) => {
            fields.optional("keepFirst", &it.keep_first).optional("keepLast", &it.keep_last);
            fields
                .optional("removeFirst", &it.remove_first)
                .optional("removeLast", &it.remove_last);
            fields.optional("range", &it.range).optional("role", &it.role);
            fields.flag("keepOthers", it.keep_others, false).scope(it.scope)
        }
        Operation::Filter(it) => {
            if let Some(roles) = it.roles {
                fields.roles("roles", roles);
            }
            fields.optional("contentContains", &it.content_contains);
            fields.optional("contentExcludes", &it.content_excludes).scope(it.scope)
        }
        Operation::Clear(it) => {
            fields.flag("keepSystemMessage", it.keep_system_message, true).scope(it.scope)
        }
        Operation::Fit(it) => {
            fields.field("maxTokens", &it.max_tokens).flag("keepSystem", it.keep_system, true);
            fields.optional("startOn", &it.start_on)
        }
        Operation::BatchStart(it) => {
            fields.optional("boundary", &it.boundary).flag("withTools", it.with_tools, false)
        }
        Operation::BatchEnd(it) => {
            fields.optional("targetBatchIndex", &it.target.map(|batch| batch.0));
            match it.carry {
                Carry::None => fields,
                Carry::All => fields.field("carry", "all"),
                Carry::Roles(roles) => fields.roles("carry", roles),
            }
        }
        Operation::Rollback(Rollback::ToBatch(batch)) => fields.field("targetBatchIndex", &batch.0),
        Operation::Rollback(Rollback::ToVersion(version)) => {
            fields.field("targetVersion", &version.0)
        }
        Operation::Mark(it) => fields.field("indices", &it.indices).field("mark", &it.mark),
        Operation::Unmark(it) => fields.field("indices", &it.indices).field("mark", &it.mark),
        Operation::Undo(_) | Operation::Redo(_) => fields,
    }
}
