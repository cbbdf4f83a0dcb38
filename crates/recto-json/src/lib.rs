//! Lossless JSON reading: values are slices of the text.
//!
//! Parsing into a tree such as `serde_json::Value` and writing it again changes a text: `1.50` becomes
//! `1.5`, and one of two equal keys is lost. This crate reads JSON without such changes. It checks
//! a text once, and then finds values in it as ranges and slices.
//!
//! ```
//! use recto_json::{object, unescape, quoted, value};
//!
//! let text = value(r#" {"price": 1.50, "name": "caf\u00e9"} "#)?;
//! let fields = object(text).expect("it is an object");
//! assert_eq!(fields.get("price"), Some("1.50"));
//!
//! let name = fields.get("name").and_then(quoted).map(unescape);
//! assert_eq!(name.as_deref(), Some("café"));
//! # Ok::<(), recto_json::InvalidJson>(())
//! ```
//!
//! | to | use |
//! |---|---|
//! | check a text | [`value`], which explains what is wrong; [`check`], which also returns the depth |
//! | read an object or a list | [`object`], [`list`] |
//! | read, change and write an object with serde | [`Pairs`] |
//! | walk through values without allocating | [`next_value`] |
//! | decode a string | [`quoted`], then [`unescape`] |
//! | write compact JSON | [`compact_into`] |
//!
//! Functions whose documentation says "must be valid JSON" do not check again. For other texts they
//! return meaningless values, but do not panic.
//!
//! The check accepts exactly what serde_json accepts, at about twice its speed: it finds the ends of
//! strings 64 bytes at a time. No function recurses, so deep nesting needs no stack.

mod check;
mod pairs;
mod scan;
mod string;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

pub use check::Checked;
pub use pairs::Pairs;
pub use string::{
    compact_into, decode_string, quoted, unescape, unescape_into, uses_minimal_escapes,
};

/// The text is not JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not JSON: {reason}")]
#[non_exhaustive]
pub struct InvalidJson {
    /// What the parser found, with line and column.
    pub reason: String,
}

/// The fields of a JSON object in order, each value as a slice of the text. Duplicate keys are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields<'a>(pub Vec<(Cow<'a, str>, &'a str)>);

impl<'a> Fields<'a> {
    /// The last value of `key`. `null` counts as absent.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.get_or_null(key).filter(|&value| value != "null")
    }

    /// The last value of `key`, which may be `null`.
    pub fn get_or_null(&self, key: &str) -> Option<&'a str> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|&(_, value)| value)
    }
}

impl<'de> de::Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(key) = map.next_key::<&'de RawValue>()? {
                    let value: &'de RawValue = map.next_value()?;
                    fields.push((decode_string(key.get()), value.get()));
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

/// The kinds of JSON values. JSON has no others, so the enum is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of JSON")]
pub enum Kind {
    Object,
    Array,
    String,
    Number,
    Bool,
    Null,
}

impl Kind {
    /// The kind of a value, which must be valid JSON without space around it.
    #[inline]
    pub fn of(text: &str) -> Kind {
        match text.as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') => Kind::Null,
            _ => Kind::Number,
        }
    }

    /// The kind with an article, for error messages: `an object`, `a list`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Object => "an object",
            Kind::Array => "a list",
            Kind::String => "a string",
            Kind::Number => "a number",
            Kind::Bool => "true or false",
            Kind::Null => "null",
        }
    }
}

/// Checks that a text is one JSON value. Returns it without the space around it.
pub fn value(text: &str) -> Result<&str, InvalidJson> {
    let inner = trimmed(text);
    if check::check(inner.as_bytes()).is_some() {
        return Ok(inner);
    }
    match serde_json::from_str::<&RawValue>(text) {
        Ok(raw) => Ok(raw.get()),
        Err(error) => Err(InvalidJson { reason: error.to_string() }),
    }
}

/// Checks that a text is one JSON value without space around it, and measures its depth. `None` if it
/// is not; [`value`] returns the reason.
pub fn check(text: &str) -> Option<Checked> {
    check::check(text.as_bytes())
}

/// The text without the space that JSON allows around a value.
#[inline]
pub fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}

/// A value as serde_json's raw value, which is serialized unchanged.
///
/// # Panics
/// If `text` is not valid JSON.
pub fn raw(text: &str) -> &RawValue {
    serde_json::from_str(text).expect("the text is valid JSON")
}

/// The fields of an object; `None` for another kind of value and for invalid JSON.
pub fn object(text: &str) -> Option<Fields<'_>> {
    serde_json::from_str(text).ok()
}

/// The values of a list; `None` for another kind of value. `text` must be valid JSON.
pub fn list(text: &str) -> Option<Vec<&str>> {
    if Kind::of(text) != Kind::Array {
        return None;
    }
    let mut values = Vec::new();
    let mut at = 1;
    loop {
        let value = next_value(text, at);
        if value.is_empty() {
            return Some(values);
        }
        at = value.end;
        values.push(&text[value]);
    }
}

/// The range of the next value at or after `at`: space, commas and colons are skipped. Empty at the end
/// of a list, of an object and of the text. `text` must be valid JSON.
///
/// To walk through a list or an object, start after its bracket. The range of a value is never empty,
/// so the walk advances with every call, for invalid JSON as well.
///
/// ```
/// use recto_json::next_value;
///
/// let list = r#"[1, {"a": "]"}]"#;
/// assert_eq!(&list[next_value(list, 1)], "1");
/// assert_eq!(&list[next_value(list, 2)], r#"{"a": "]"}"#);
/// assert!(next_value(list, list.len() - 1).is_empty());
/// ```
#[inline]
pub fn next_value(text: &str, at: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let start = start_of_value(text, at);
    let end = match bytes.get(start) {
        None => return bytes.len()..bytes.len(),
        Some(b']' | b'}') => start,
        Some(b'"') => end_of_string(bytes, start),
        Some(b'{' | b'[') => end_of_nested(bytes, start),
        Some(_) => {
            let is_end = |byte: &u8| is_separator(*byte) || matches!(byte, b']' | b'}');
            let rest = &bytes[start..];
            start + rest.iter().position(is_end).unwrap_or(rest.len())
        }
    };
    start..end
}

/// The start of the next value at or after `at`: space, commas and colons are skipped.
#[inline(always)]
pub fn start_of_value(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let mut start = at;
    while bytes.get(start).is_some_and(|byte| is_separator(*byte)) {
        start += 1;
    }
    start
}

/// Whether a byte is space, a comma or a colon.
#[inline(always)]
fn is_separator(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | b',' | b':')
}

/// The offset after the closing quote of the string that starts at `start`.
#[inline(always)]
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    scan::end_of_string(bytes, start + 1).unwrap_or(bytes.len())
}

fn end_of_nested(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = end_of_string(bytes, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => return at + 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// Maximum nesting of lists and objects; 0 for other values. `text` must be valid JSON.
pub fn depth(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut deepest) = (0, 0usize, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                at = end_of_string(bytes, at);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_does_not_count_brackets_in_strings() {
        assert_eq!(depth(r#"{"a":"[[[[\"{","b":[1]}"#), 2);
        assert_eq!(depth(&"[".repeat(100_000)), 100_000);
    }

    #[test]
    fn an_invalid_text_is_refused_with_line_and_column() {
        let error = value("[1,]").unwrap_err();
        assert_eq!(error.to_string(), "this is not JSON: expected value at line 1 column 4");
    }
}
