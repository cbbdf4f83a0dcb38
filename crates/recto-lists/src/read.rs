//! Reads requests from JSON text, and explains errors with the path of the wrong field.

use recto_core::Error as EngineError;
use recto_core::json::Pairs;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_path_to_error::Segment;

use crate::error::wrong;

/// The fields of an object, in order, each with its JSON. A name that is given twice is an error.
#[derive(Clone, Debug, Default)]
pub struct Fields<'a>(pub Pairs<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Pairs::deserialize(deserializer)?;
        match fields.repeated_name() {
            Some(name) => Err(serde::de::Error::custom(format_args!("duplicate field `{name}`"))),
            None => Ok(Fields(fields)),
        }
    }
}

/// Reads a request of a known type. An error names the field.
pub fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, EngineError> {
    read_as(text, "the request")
}

/// Reads a value from JSON text. An error names the field, or `whole` if no single field is wrong.
pub fn read_as<'a, T: Deserialize<'a>>(text: &'a str, whole: &str) -> Result<T, EngineError> {
    let error = match serde_json::from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    if error.classify() != serde_json::error::Category::Data {
        return Err(EngineError::InvalidJson { reason: error.to_string() });
    }
    // The text is read again to find the field. Only a request with an error is read twice.
    let mut again = serde_json::Deserializer::from_str(text);
    let path = match serde_path_to_error::deserialize::<_, T>(&mut again) {
        Err(error) => path_of(error.path()),
        Ok(_) => String::new(),
    };
    Err(explain(&path, whole, &without_position(&error)))
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

/// Adds the name of a field to a path.
pub fn add_name(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

/// The text of an error without line and column. The path of the field replaces them.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&position).map_or(text.clone(), str::to_owned)
}

/// Rewrites an error of serde at a path: which field is wrong, and what it may be.
fn explain(path: &str, whole: &str, error: &str) -> EngineError {
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
        // The path of an unknown field ends with the name of the field. The path of the other errors is
        // that of the object.
        let object = if start == "unknown field" { parent() } else { path };
        let mut field = object.to_owned();
        add_name(&mut field, name);
        let mut reason = format!("{name} {end}");
        if start == "unknown field" {
            reason.push_str(&known_names(name, &quoted.collect::<Vec<_>>()));
        }
        return wrong(&field, reason);
    }
    let subject = if path.is_empty() { whole } else { path };
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

/// FOUND and EXPECTED of `invalid type: FOUND, expected EXPECTED` or `invalid value: …`.
fn mismatch(error: &str) -> Option<(&str, &str)> {
    let rest = error.strip_prefix("invalid type: ").or(error.strip_prefix("invalid value: "))?;
    rest.split_once(", expected ")
}

/// The expected type of a serde error, in the terms of JSON.
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

/// The found value of a serde error, in the terms of JSON: ``integer `7` `` becomes 7.
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

/// The list of known names for an error message. A similar name comes first.
pub fn known_names(given: &str, known: &[&str]) -> String {
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
            let EngineError::InvalidOperation { reason: explained, field } =
                explain("a.b", "the request", error)
            else {
                panic!("{error}")
            };
            assert_eq!((&*explained, field.as_deref()), (reason, Some("a.b")), "{error}");
        }
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
