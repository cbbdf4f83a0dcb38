//! Typed reading of the fields of an operation or a query.

use std::borrow::Cow;
use std::ops::Range;

use crate::json::{self, Fields, Kind};
use crate::message::shorten;
use crate::operation::Scope;
use crate::{Error, Limits, LogIndex, Message, Role, RoleSet};

/// Reads the messages of a request, and checks their number against the limit.
pub(super) struct MessageReader<'a> {
    pub(super) limits: &'a Limits,
    pub(super) count: &'a mut usize,
}

impl MessageReader<'_> {
    pub(super) fn one(&mut self, field: &str, text: &str) -> Result<Message, Error> {
        *self.count += 1;
        self.limits.check_messages(*self.count)?;
        Message::from_checked_json(text, self.limits).map_err(|error| error.within(field))
    }

    pub(super) fn all(&mut self, field: &str, texts: &[&str]) -> Result<Vec<Message>, Error> {
        self.limits.check_messages(*self.count + texts.len())?;
        let numbered = texts.iter().enumerate();
        numbered.map(|(number, text)| self.one(&format!("{field}[{number}]"), text)).collect()
    }
}

/// The fields of an object, and its name for errors. `null` counts as absent.
pub(super) struct Body<'a> {
    name: &'a str,
    fields: &'a Fields<'a>,
}

impl<'a> Body<'a> {
    pub(super) fn new(name: &'a str, fields: &'a Fields<'a>) -> Self {
        Body { name, fields }
    }

    /// Refuses fields that are not listed.
    pub(super) fn allow(&self, allowed: &[&str]) -> Result<(), Error> {
        self.allow_if(allowed, |_| false)
    }

    /// Refuses fields that are neither listed nor ignored.
    fn allow_if(&self, allowed: &[&str], is_ignored: impl Fn(&str) -> bool) -> Result<(), Error> {
        let is_known = |name: &str| allowed.contains(&name) || is_ignored(name);
        let unknown = self.fields.0.iter().find(|(name, _)| !is_known(name));
        let Some((unknown, _)) = unknown else { return Ok(()) };
        let unknown = shorten(unknown);
        let name = self.name;
        let similar = allowed.iter().find(|known| is_similar(known, &unknown));
        let reason = match (similar, allowed) {
            (Some(known), _) => format!("{name} has no field {unknown:?}; did you mean {known}?"),
            (None, []) => format!("{name} has no fields, so {unknown:?} is not one of them"),
            (None, _) => {
                format!("{name} has no field {unknown:?}; its fields are {}", allowed.join(", "))
            }
        };
        Err(Error::operation_field(unknown, reason))
    }

    /// [`allow`](Self::allow) for the node form and the modification form, in which the objects of the node
    /// form may be present as `null`.
    pub(super) fn allow_beside_null_sections(&self, allowed: &[&str]) -> Result<(), Error> {
        let sections = ["truncate", "insert", "replace", "clear", "filter"];
        let is_absent = |name: &str| sections.contains(&name) && !self.has(name);
        self.allow_if(allowed, is_absent)
    }

    pub(super) fn get(&self, field: &str) -> Option<&'a str> {
        self.fields.get(field)
    }

    pub(super) fn has(&self, field: &str) -> bool {
        self.get(field).is_some()
    }

    pub(super) fn required(&self, field: &'static str) -> Result<&'a str, Error> {
        self.get(field).ok_or_else(|| {
            let reason = format!("{} needs the field {field}", self.name);
            Error::operation_field(field, reason)
        })
    }

    fn wrong(&self, field: &str, value: &str, expected: &str) -> Error {
        let reason = format!("{field} must be {expected}, not {}", shorten(value));
        Error::operation_field(field, reason)
    }

    pub(super) fn string(&self, field: &str) -> Result<Option<Cow<'a, str>>, Error> {
        self.get(field).map(|value| self.as_string(field, value)).transpose()
    }

    fn as_string(&self, field: &str, value: &'a str) -> Result<Cow<'a, str>, Error> {
        match json::quoted(value) {
            Some(inner) => Ok(json::unescape(inner)),
            None => Err(self.wrong(field, value, "a string")),
        }
    }

    /// A whole number from 0. A number above `u64::MAX` is read as `u64::MAX`.
    fn as_number(&self, field: &str, value: &str) -> Result<u64, Error> {
        if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(self.wrong(field, value, "a whole number from 0"));
        }
        Ok(value.parse().unwrap_or(u64::MAX))
    }

    pub(super) fn number(&self, field: &str) -> Result<Option<u64>, Error> {
        self.get(field).map(|value| self.as_number(field, value)).transpose()
    }

    pub(super) fn size(&self, field: &str) -> Result<Option<usize>, Error> {
        Ok(self.number(field)?.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
    }

    pub(super) fn required_size(&self, field: &'static str) -> Result<usize, Error> {
        self.required(field)?;
        Ok(self.size(field)?.unwrap_or_default())
    }

    pub(super) fn flag(&self, field: &str) -> Result<Option<bool>, Error> {
        match self.get(field) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(value) => Err(self.wrong(field, value, "true or false")),
        }
    }

    pub(super) fn list(&self, field: &'static str) -> Result<Vec<&'a str>, Error> {
        let value = self.required(field)?;
        self.as_list(field, value)
    }

    fn as_list(&self, field: &str, value: &'a str) -> Result<Vec<&'a str>, Error> {
        json::list(value).ok_or_else(|| self.wrong(field, value, "a list"))
    }

    pub(super) fn indices(&self) -> Result<Vec<LogIndex>, Error> {
        let list = self.list("indices")?;
        list.into_iter()
            .map(|value| {
                let number = self.as_number("indices", value)?;
                Ok(LogIndex(u32::try_from(number).unwrap_or(u32::MAX)))
            })
            .collect()
    }

    /// A list of strings, none of which is empty. If `allows_single`, also a string.
    pub(super) fn words(
        &self,
        field: &str,
        allows_single: bool,
    ) -> Result<Option<Vec<String>>, Error> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let values = match Kind::of(value) {
            Kind::String if allows_single => vec![value],
            _ => self.as_list(field, value)?,
        };
        let words: Result<Vec<String>, Error> = values
            .into_iter()
            .map(|value| match self.as_string(field, value)? {
                word if word.is_empty() => {
                    Err(self.wrong(field, value, "texts that are not empty"))
                }
                word => Ok(word.into_owned()),
            })
            .collect();
        match words? {
            words if words.is_empty() => {
                Err(self.wrong(field, value, "a list with at least one text"))
            }
            words => Ok(Some(words)),
        }
    }

    fn as_role(&self, field: &str, value: &str) -> Result<Role, Error> {
        let name = json::quoted(value).map(json::unescape);
        name.and_then(|name| Role::named(&name))
            .ok_or_else(|| self.wrong(field, value, "system, user, assistant or tool"))
    }

    pub(super) fn role(&self, field: &str) -> Result<Option<Role>, Error> {
        self.get(field).map(|value| self.as_role(field, value)).transpose()
    }

    pub(super) fn roles(&self, field: &str) -> Result<Option<RoleSet>, Error> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let list = self.as_list(field, value)?;
        if list.is_empty() {
            return Err(self.wrong(field, value, "a list with at least one role"));
        }
        list.into_iter().map(|role| self.as_role(field, role)).collect::<Result<_, _>>().map(Some)
    }

    pub(super) fn scope(&self) -> Result<Scope, Error> {
        let Some(value) = self.get("scope") else { return Ok(Scope::Visible) };
        match &*self.as_string("scope", value)? {
            "visible" => Ok(Scope::Visible),
            "all" => Ok(Scope::All),
            _ => Err(self.wrong("scope", value, "\"visible\" or \"all\"")),
        }
    }

    pub(super) fn range(&self) -> Result<Option<Range<usize>>, Error> {
        let Some(value) = self.get("range") else { return Ok(None) };
        let fields = json::object(value)
            .ok_or_else(|| self.wrong("range", value, "an object with start and end"))?;
        let body = Body::new("range", &fields);
        body.allow(&["start", "end"])?;
        Ok(Some(body.required_size("start")?..body.required_size("end")?))
    }
}

/// Whether one name may be a misspelling of the other: apart from case and `_`, they differ in at most one
/// letter.
pub(super) fn is_similar(known: &str, given: &str) -> bool {
    let plain = |name: &str| -> Vec<char> {
        name.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect()
    };
    let (known, given) = (plain(known), plain(given));
    if known.len().abs_diff(given.len()) > 1 {
        return false;
    }
    let same_front = known.iter().zip(&given).take_while(|(a, b)| a == b).count();
    let same_back = known.iter().rev().zip(given.iter().rev()).take_while(|(a, b)| a == b).count();
    same_front + same_back + 1 >= known.len().max(given.len())
}
