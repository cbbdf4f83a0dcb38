//! Text to request: which request it is, and what is wrong with it.

use std::borrow::Cow;

use recto::EngineError;
use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::wrong;
use crate::request::{RequestKind, Scoped};

/// The fields of an object, in order, each with its JSON. A name that is given twice is an error.
#[derive(Clone, Debug, Default)]
pub struct Fields<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

impl Fields<'_> {
    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::with_capacity(4);
                while let Some(Key(name)) = map.next_key()? {
                    fields.push((name, map.next_value()?));
                }
                match given_twice(&fields) {
                    Some(name) => {
                        Err(serde::de::Error::custom(format_args!("duplicate field `{name}`")))
                    }
                    None => Ok(Fields(fields)),
                }
            }
        }
        deserializer.deserialize_map(Object)
    }
}

fn given_twice<'f>(fields: &'f [(Cow<'_, str>, &RawValue)]) -> Option<&'f str> {
    let mut names: Vec<&str> = fields.iter().map(|(name, _)| &**name).collect();
    names.sort_unstable();
    names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

/// The name of a field, borrowed where it has no escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// Finds out which request a text is: its place in the table.
pub(crate) fn kind_of(text: &str) -> Result<&'static RequestKind, EngineError> {
    let fields: Fields<'_> = read(text)?;
    // What creates a conversation also has `settings`, which asks a conversation for its settings.
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

/// No field names a request.
fn nothing_named(fields: &Fields<'_>, scoped: Scoped) -> EngineError {
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
            wrong(name, format!("no request is called {name:?}{}", known_names(name, &names)))
        }
        None => EngineError::InvalidOperation {
            reason: format!("a request asks for something: {}", names.join(", ")),
            field: None,
        },
    }
}

/// Reads a request of a known type. An error names the field.
pub(crate) fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, EngineError> {
    serde_json::from_str(text).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => explain(text, &error),
        _ => EngineError::InvalidJson { reason: error.to_string() },
    })
}

/// Which field is wrong, and what it may be.
fn explain(text: &str, error: &serde_json::Error) -> EngineError {
    let offset = offset_of(text, error.line(), error.column());
    let reason = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let reason = reason.strip_suffix(&place).unwrap_or(&reason);
    let mut quoted = reason.split('`').skip(1).step_by(2);
    for (start, end) in [
        ("unknown field", "is not known here"),
        ("missing field", "is missing"),
        ("duplicate field", "is given twice"),
    ] {
        if !reason.starts_with(start) {
            continue;
        }
        let name = quoted.next().unwrap_or_default();
        // The error is at the end of the name, or of the object that lacks it.
        let mut path = path_at(text, offset.saturating_sub(1), 0);
        path.push(name.to_owned());
        let known: Vec<&str> = quoted.collect();
        let mut said = format!("{name} {end}");
        if start == "unknown field" {
            said.push_str(&known_names(name, &known));
        }
        return wrong(&path.join("."), said);
    }
    let reason =
        ["u64", "u32", "usize", "i64"].iter().fold(reason.to_owned(), |reason, kind| match reason
            .strip_suffix(&format!("expected {kind}"))
        {
            Some(start) => format!("{start}expected a whole number from 0"),
            None => reason,
        });
    // A number is known to have ended only with the byte behind it.
    let field = path_at(text, offset, 2).join(".");
    match field.is_empty() {
        true => EngineError::InvalidOperation { reason, field: None },
        false => {
            let reason = format!("{field}: {reason}");
            EngineError::InvalidOperation { reason, field: Some(field) }
        }
    }
}

/// The byte at a line and a column, both counted from 1.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (before + column).min(text.len())
}

/// The fields that lead to a byte of a text, from the outermost. A value reaches `beyond` its end.
fn path_at(text: &str, offset: usize, beyond: usize) -> Vec<String> {
    let mut path = Vec::new();
    let mut object: &str = text;
    // Each level is read again, so a deep one is not followed to its end.
    while path.len() < 8
        && let Ok(Fields(fields)) = serde_json::from_str::<Fields<'_>>(object)
    {
        let start_of = |value: &RawValue| value.get().as_ptr() as usize - text.as_ptr() as usize;
        let holds = |value: &RawValue| {
            let start = start_of(value);
            (start..start + value.get().len() + beyond).contains(&offset)
        };
        let Some((name, value)) = fields.into_iter().find(|(_, value)| holds(value)) else { break };
        path.push(name.into_owned());
        object = value.get();
    }
    path
}

/// The names that are known. If one is similar, it comes first.
fn known_names(given: &str, known: &[&str]) -> String {
    let all = known.join(", ");
    match similar(given, known) {
        Some(name) => format!("; did you mean {name}? Known are {all}"),
        None => format!("; use {all}"),
    }
}

/// The known name that is most similar to the given one, if there is one.
fn similar<'k>(given: &str, known: &[&'k str]) -> Option<&'k str> {
    let similar = known.iter().copied().filter(|name| is_similar(given, name));
    similar.min_by_key(|name| (distance(given, name), name.len().abs_diff(given.len())))
}

fn is_similar(given: &str, known: &str) -> bool {
    let plain = |text: &str| text.replace(['_', '-'], "").to_lowercase();
    let (given, known) = (plain(given), plain(known));
    given.len() <= 64 && distance(&given, &known) <= (known.len() / 3).min(2)
}

/// The number of letters to insert, remove or change.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (place, known) in other.iter().enumerate() {
            let change = diagonal + usize::from(letter != *known);
            diagonal = row[place + 1];
            row[place + 1] = change.min(row[place] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_found_by_the_fields_around_it() {
        let text = r#"{"a": 1, "b": {"c": [1, 2], "d": "x"}}"#;
        let at = |part: &str| path_at(text, text.find(part).unwrap(), 0);
        assert_eq!(at("1,"), ["a"]);
        assert_eq!(at("2]"), ["b", "c"]);
        assert_eq!(at("x"), ["b", "d"]);
        assert!(path_at(text, 0, 0).is_empty());
    }

    #[test]
    fn similar_names_are_suggested() {
        let known = ["markMap", "stats", "state", "expectedVersion"];
        assert_eq!(similar("markmap", &known), Some("markMap"));
        assert_eq!(similar("expected_version", &known), Some("expectedVersion"));
        assert_eq!(similar("stat", &known), Some("stats"));
        assert_eq!(similar("render", &known), None);
        assert_eq!(known_names("x", &["a", "b"]), "; use a, b");
        assert_eq!(known_names("stat", &["stats"]), "; did you mean stats? Known are stats");
    }
}
