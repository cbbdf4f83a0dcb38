//! The fields of a JSON object, read by type. Every refusal except those of messages is
//! `invalid_operation`.

use serde_json::{Map, Value};

use crate::model::message::Message;
use crate::model::operation::{Range, Scope};
use crate::model::refusal::Refusal;
use crate::model::role::Role;

/// An object whose fields are read one by one.
pub(in crate::model) struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    pub(in crate::model) fn of(json: &'a Value) -> Result<Fields<'a>, Refusal> {
        let object = json.as_object();
        object.map(Fields).ok_or_else(|| Refusal::operation(format!("{json} is not an object")))
    }

    /// Refuses every field that is not in `names`, with any value.
    pub(in crate::model) fn only(&self, names: &[&str]) -> Result<(), Refusal> {
        match self.0.keys().find(|key| !names.contains(&key.as_str())) {
            Some(unknown) => Err(Refusal::operation(format!("unknown field {unknown}"))),
            None => Ok(()),
        }
    }

    /// Refuses every field that is not in `names`, except those of `sections` that are `null`.
    pub(in crate::model) fn only_or_null(
        &self,
        names: &[&str],
        sections: &[&str],
    ) -> Result<(), Refusal> {
        let is_allowed = |(key, value): (&String, &Value)| {
            names.contains(&key.as_str()) || (value.is_null() && sections.contains(&key.as_str()))
        };
        match self.0.iter().find(|&field| !is_allowed(field)) {
            Some((unknown, _)) => Err(Refusal::operation(format!("unknown field {unknown}"))),
            None => Ok(()),
        }
    }

    /// A field; `null` means absent.
    pub(in crate::model) fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn required(&self, name: &str) -> Result<&'a Value, Refusal> {
        self.get(name).ok_or_else(|| Refusal::operation(format!("{name} is missing")))
    }

    pub(in crate::model) fn flag(&self, name: &str) -> Result<Option<bool>, Refusal> {
        let read = |value: &Value| {
            value.as_bool().ok_or_else(|| Refusal::operation(format!("{name} is not a boolean")))
        };
        self.get(name).map(read).transpose()
    }

    pub(in crate::model) fn text(&self, name: &str) -> Result<Option<String>, Refusal> {
        self.get(name).map(|value| read_text(name, value)).transpose()
    }

    pub(in crate::model) fn required_text(&self, name: &str) -> Result<String, Refusal> {
        read_text(name, self.required(name)?)
    }

    /// A string that is not empty, such as a mark.
    pub(in crate::model) fn label(&self, name: &str) -> Result<Option<String>, Refusal> {
        self.get(name).map(|value| read_label(name, value)).transpose()
    }

    pub(in crate::model) fn number(&self, name: &str) -> Result<Option<u64>, Refusal> {
        self.get(name).map(|value| read_number(name, value)).transpose()
    }

    pub(in crate::model) fn required_number(&self, name: &str) -> Result<u64, Refusal> {
        read_number(name, self.required(name)?)
    }

    /// A number that counts entries.
    pub(in crate::model) fn count(&self, name: &str) -> Result<Option<usize>, Refusal> {
        Ok(self.number(name)?.map(to_count))
    }

    pub(in crate::model) fn required_count(&self, name: &str) -> Result<usize, Refusal> {
        self.required_number(name).map(to_count)
    }

    /// A list of log indices that may be empty, unchanged.
    pub(in crate::model) fn numbers(&self, name: &str) -> Result<Vec<usize>, Refusal> {
        let list = read_list(name, self.required(name)?)?;
        list.iter().map(|value| read_number(name, value).map(to_count)).collect()
    }

    /// A list of log indices that is not empty. An index that is listed twice counts once.
    pub(in crate::model) fn indices(&self, name: &str) -> Result<Vec<usize>, Refusal> {
        not_empty(name, self.distinct_numbers(name)?)
    }

    /// A list of log indices that may be empty. An index that is listed twice counts once,
    /// at its first position.
    pub(in crate::model) fn distinct_numbers(&self, name: &str) -> Result<Vec<usize>, Refusal> {
        let mut indices = Vec::new();
        for index in self.numbers(name)? {
            if !indices.contains(&index) {
                indices.push(index);
            }
        }
        Ok(indices)
    }

    pub(in crate::model) fn role(&self, name: &str) -> Result<Option<Role>, Refusal> {
        self.get(name).map(|value| read_role(name, value)).transpose()
    }

    /// A list of roles that is not empty.
    pub(in crate::model) fn roles(&self, name: &str) -> Result<Option<Vec<Role>>, Refusal> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let roles = read_list(name, value)?.iter().map(|role| read_role(name, role));
        not_empty(name, roles.collect::<Result<_, _>>()?).map(Some)
    }

    /// A list of strings. Neither the list nor a string in it is empty.
    pub(in crate::model) fn labels(&self, name: &str) -> Result<Option<Vec<String>>, Refusal> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let labels = read_list(name, value)?.iter().map(|label| read_label(name, label));
        not_empty(name, labels.collect::<Result<_, _>>()?).map(Some)
    }

    /// Like [`Fields::labels`], or a single string.
    pub(in crate::model) fn one_or_more_labels(
        &self,
        name: &str,
    ) -> Result<Option<Vec<String>>, Refusal> {
        match self.get(name) {
            Some(Value::String(_)) => Ok(self.label(name)?.map(|label| vec![label])),
            _ => self.labels(name),
        }
    }

    /// `{start, end}`, in any order: see [`Range::require_order`].
    pub(in crate::model) fn range(&self, name: &str) -> Result<Option<Range>, Refusal> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let fields = Fields::of(value)?;
        fields.only(&["start", "end"])?;
        let start = fields.required_count("start")?;
        Ok(Some(Range { start, end: fields.required_count("end")? }))
    }

    /// `scope`: `"visible"` (the default) or `"all"`.
    pub(in crate::model) fn scope(&self) -> Result<Scope, Refusal> {
        match self.text("scope")?.as_deref() {
            None | Some("visible") => Ok(Scope::Visible),
            Some("all") => Ok(Scope::All),
            Some(other) => Err(Refusal::operation(format!("scope is {other}"))),
        }
    }

    pub(in crate::model) fn message(&self, name: &str) -> Result<Option<Message>, Refusal> {
        self.get(name).map(Message::read).transpose()
    }

    pub(in crate::model) fn required_message(&self, name: &str) -> Result<Message, Refusal> {
        Message::read(self.required(name)?)
    }

    /// A list of messages that is not empty.
    pub(in crate::model) fn messages(&self, name: &str) -> Result<Vec<Message>, Refusal> {
        let list = read_list(name, self.required(name)?)?;
        not_empty(name, list.iter().map(Message::read).collect::<Result<_, _>>()?)
    }

    /// One message, or a list of them that is not empty.
    pub(in crate::model) fn one_or_more_messages(
        &self,
        name: &str,
    ) -> Result<Vec<Message>, Refusal> {
        match self.required(name)? {
            Value::Array(_) => self.messages(name),
            message => Ok(vec![Message::read(message)?]),
        }
    }
}

/// A whole number from 0. 2.0, -1 and "2" are refused.
fn read_number(name: &str, value: &Value) -> Result<u64, Refusal> {
    let number = value.as_u64();
    number
        .ok_or_else(|| Refusal::operation(format!("{name}: {value} is not a whole number from 0")))
}

fn to_count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn read_text(name: &str, value: &Value) -> Result<String, Refusal> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| Refusal::operation(format!("{name}: {value} is not a string")))
}

fn read_label(name: &str, value: &Value) -> Result<String, Refusal> {
    match read_text(name, value)? {
        empty if empty.is_empty() => {
            Err(Refusal::operation(format!("{name}: a string in it is empty")))
        }
        label => Ok(label),
    }
}

fn read_role(name: &str, value: &Value) -> Result<Role, Refusal> {
    let role = value.as_str().and_then(Role::from_name);
    role.ok_or_else(|| Refusal::operation(format!("{name}: {value} is not a role")))
}

fn read_list<'a>(name: &str, value: &'a Value) -> Result<&'a Vec<Value>, Refusal> {
    value.as_array().ok_or_else(|| Refusal::operation(format!("{name} is not a list")))
}

fn not_empty<T>(name: &str, list: Vec<T>) -> Result<Vec<T>, Refusal> {
    if list.is_empty() {
        return Err(Refusal::operation(format!("{name} is empty")));
    }
    Ok(list)
}
