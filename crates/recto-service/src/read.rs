//! Reads requests from JSON text, and explains errors with the path of the wrong field.

use std::borrow::Cow;

use recto::EngineError;
use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_path_to_error::Segment;

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
        let AllFields(fields) = AllFields::deserialize(deserializer)?;
        match given_twice(&fields) {
            Some(name) => Err(serde::de::Error::custom(format_args!("duplicate field `{name}`"))),
            None => Ok(Fields(fields)),
        }
    }
}

/// The fields of an object, also those that are given twice.
struct AllFields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for AllFields<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = AllFields<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AllFields<'de>, A::Error> {
                let mut fields = Vec::with_capacity(4);
                while let Some(Key(name)) = map.next_key()? {
                    fields.push((name, map.next_value()?));
                }
                Ok(AllFields(fields))
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

/// The kind of a request: its row in the table.
pub(crate) fn kind_of(text: &str) -> Result<&'static RequestKind, EngineError> {
    let fields: Fields<'_> = read(text)?;
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
    let error = match serde_json::from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    if error.classify() != serde_json::error::Category::Data {
        return Err(EngineError::InvalidJson { reason: error.to_string() });
    }
    // The text is read again to find the field. A request without errors does not pay for that.
    let mut again = serde_json::Deserializer::from_str(text);
    let path = match serde_path_to_error::deserialize::<_, T>(&mut again) {
        Err(error) => path_of(error.path()),
        Ok(_) => String::new(),
    };
    Err(explain(&path, &without_position(&error)))
}

/// A path in the form of the contract: `settings.tokenLimit`, `erase[1]`.
fn path_of(path: &serde_path_to_error::Path) -> String {
    let mut text = String::new();
    for segment in path {
        match segment {
            Segment::Map { key } => add_name(&mut text, key),
            Segment::Seq { index } => text.push_str(&format!("[{index}]")),
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    text
}

fn add_name(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

/// The text of an error without line and column, which mean nothing to a program.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&position).map_or(text.clone(), str::to_owned)
}

/// Rewrites an error of serde at a path: which field is wrong, and what it may be.
fn explain(path: &str, error: &str) -> EngineError {
    let mut quoted = error.split('`').skip(1).step_by(2);
    let parent = || path.rsplit_once('.').map_or("", |(parent, _)| parent);
    for (start, end) in [
        ("unknown field", "is not known here"),
        ("missing field", "is missing"),
        ("duplicate field", "is given twice"),
    ] {
        if !error.starts_with(start) {
            continue;
        }
        let name = quoted.next().unwrap_or_default();
        // The path of an unknown field ends with its name, the others are errors of the object.
        let object = if start == "unknown field" { parent() } else { path };
        let mut field = object.to_owned();
        add_name(&mut field, name);
        let mut reason = format!("{name} {end}");
        if start == "unknown field" {
            reason.push_str(&known_names(name, &quoted.collect::<Vec<_>>()));
        }
        return wrong(&field, reason);
    }
    let subject = if path.is_empty() { "the request" } else { path };
    let reason = if let Some(name) = error.strip_prefix("unknown variant `") {
        let given = name.split('`').next().unwrap_or_default();
        let known: Vec<&str> = quoted.skip(1).collect();
        format!("{subject} cannot be {given:?}{}", known_names(given, &known))
    } else if let Some((found, expected)) = mismatch(error) {
        format!("{subject} must be {}, not {}", expected_text(expected), found_text(found))
    } else {
        format!("{subject}: {error}")
    };
    let field = (!path.is_empty()).then(|| path.to_owned());
    EngineError::InvalidOperation { reason, field }
}

/// The two parts of `invalid type: FOUND, expected EXPECTED`.
fn mismatch(error: &str) -> Option<(&str, &str)> {
    let rest = error.strip_prefix("invalid type: ").or(error.strip_prefix("invalid value: "))?;
    rest.split_once(", expected ")
}

/// What serde expected, in the words of JSON.
fn expected_text(expected: &str) -> &str {
    match expected {
        "u64" | "u32" | "usize" | "u8" => "a whole number from 0",
        "i64" | "i32" => "a whole number",
        "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "an object",
        "a borrowed string" => "a string",
        expected if expected.starts_with("struct ") => "an object",
        expected => expected,
    }
}

/// What serde found, in the words of JSON: ``integer `7` `` is 7.
fn found_text(found: &str) -> String {
    match found {
        "map" => "an object".to_owned(),
        "sequence" => "a list".to_owned(),
        _ => match found.split_once(' ') {
            Some(("string", text)) => text.chars().take(80).collect(),
            Some((_, value)) => {
                value.rsplit(' ').next().unwrap_or(value).trim_matches('`').to_owned()
            }
            None => found.to_owned(),
        },
    }
}

/// Fields whose values are messages. Messages keep their bytes, so their fields are not checked.
const MESSAGE_FIELDS: [&str; 4] = ["messages", "message", "summary", "data"];

/// Refuses a name that is given twice in an operation, a query or a tool. The engine would use the last
/// one. The field of the error starts with `path`, which may be empty.
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
    let AllFields(fields) = serde_json::from_str(text)
        .map_err(|error| EngineError::InvalidJson { reason: error.to_string() })?;
    let inside = |name: &str| {
        let mut inside = path.to_owned();
        add_name(&mut inside, name);
        inside
    };
    if let Some(name) = given_twice(&fields) {
        return Err(wrong(&inside(name), format!("{name} is given twice")));
    }
    fields.iter().try_for_each(|(name, value)| {
        match value.get().starts_with(['{', '[']) && !MESSAGE_FIELDS.contains(&&**name) {
            true => check_names(value, &inside(name)),
            false => Ok(()),
        }
    })
}

/// [`check_names`] of each tool of a list, but not of the schemas in them, which are the provider's.
pub(crate) fn check_tool_names(tools: &RawValue, path: &str) -> Result<(), EngineError> {
    let Ok(tools) = serde_json::from_str::<Vec<&RawValue>>(tools.get()) else { return Ok(()) };
    for (number, tool) in tools.iter().enumerate() {
        let Ok(AllFields(fields)) = serde_json::from_str(tool.get()) else { continue };
        if let Some(name) = given_twice(&fields) {
            let field = format!("{path}[{number}].{name}");
            return Err(wrong(&field, format!("{name} is given twice")));
        }
    }
    Ok(())
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
    fn errors_of_serde_are_rewritten() {
        for (error, reason) in [
            (
                "invalid type: string \"many\", expected u64",
                "a.b must be a whole number from 0, not \"many\"",
            ),
            (
                "invalid value: integer `-1`, expected u64",
                "a.b must be a whole number from 0, not -1",
            ),
            (
                "invalid type: floating point `0.5`, expected u32",
                "a.b must be a whole number from 0, not 0.5",
            ),
            ("invalid type: map, expected a sequence", "a.b must be a list, not an object"),
            ("invalid type: null, expected struct DiffOptions", "a.b must be an object, not null"),
            ("invalid type: boolean `false`, expected true", "a.b must be true, not false"),
            (
                "unknown variant `some`, expected `visible` or `all`",
                "a.b cannot be \"some\"; use visible, all",
            ),
            ("there is no provider \"x\"; use y", "a.b: there is no provider \"x\"; use y"),
        ] {
            let EngineError::InvalidOperation { reason: explained, field } = explain("a.b", error)
            else {
                panic!("{error}")
            };
            assert_eq!((&*explained, field.as_deref()), (reason, Some("a.b")), "{error}");
        }
    }

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
