//! Reading JSON without losing anything: values stay slices of the text they came in.
//!
//! What is public here is what other crates need to read messages in the same way.

mod check;
mod scan;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::Error;

pub use check::Checked;

/// The fields of a JSON object in their order, each value as the text it came in. Of a key that
/// stands twice, both are there.
pub(crate) struct Fields<'a>(pub(crate) Vec<(Cow<'a, str>, &'a str)>);

impl<'a> Fields<'a> {
    /// The last value of `key`; `null` counts as absent.
    pub(crate) fn get(&self, key: &str) -> Option<&'a str> {
        self.get_or_null(key).filter(|&value| value != "null")
    }

    /// The last value of `key`, which may be `null`.
    pub(crate) fn get_or_null(&self, key: &str) -> Option<&'a str> {
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

/// What kind of value a JSON text holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    Array,
    String,
    Number,
    Bool,
    Null,
}

impl Kind {
    /// The kind of a text that is known to be one JSON value without space around it.
    pub(crate) fn of(text: &str) -> Kind {
        match text.as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') => Kind::Null,
            _ => Kind::Number,
        }
    }

    pub(crate) fn name(self) -> &'static str {
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

/// One JSON value, checked from end to end, without the space around it.
pub fn value(text: &str) -> Result<&str, Error> {
    let inner = trimmed(text);
    if check::check(inner.as_bytes()).is_some() {
        return Ok(inner);
    }
    match serde_json::from_str::<&RawValue>(text) {
        Ok(raw) => Ok(raw.get()),
        Err(error) => Err(Error::InvalidJson { reason: error.to_string() }),
    }
}

/// Whether a text is one JSON value from end to end, without space around it, and how deep it goes.
/// Why it is not, [`value`] says.
pub fn check(text: &str) -> Option<Checked> {
    check::check(text.as_bytes())
}

/// The text without the space that may stand around a JSON value.
pub(crate) fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}

/// A text that was checked before, for writing it out as it is.
pub(crate) fn raw(text: &str) -> &RawValue {
    serde_json::from_str(text).expect("the text was checked when it came in")
}

/// The fields of an object; `None` for any other kind of value, and for what is no JSON.
pub(crate) fn object(text: &str) -> Option<Fields<'_>> {
    serde_json::from_str(text).ok()
}

/// The values of a list; `None` for any other kind of value. The text was checked before.
pub(crate) fn list(text: &str) -> Option<Vec<&str>> {
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

/// Where the next value stands in a text that was checked to be JSON: behind space, commas and
/// colons. Empty where a list or object ends, and at the end of the text.
///
/// To go through a list or object, start behind its bracket. Text that is not JSON gives places that
/// mean nothing, but every value that is found ends behind its start.
///
/// ```
/// use recto_core::json::next_value;
///
/// let list = r#"[1, {"a": "]"}]"#;
/// assert_eq!(&list[next_value(list, 1)], "1");
/// assert_eq!(&list[next_value(list, 2)], r#"{"a": "]"}"#);
/// assert!(next_value(list, list.len() - 1).is_empty());
/// ```
pub fn next_value(text: &str, at: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let start = start_of_value(text, at);
    let end = match bytes.get(start) {
        None => return bytes.len()..bytes.len(),
        Some(b']' | b'}') => start,
        Some(b'"') => end_of_string(bytes, start),
        Some(b'{' | b'[') => end_of_nested(bytes, start),
        Some(_) => {
            let is_end = |byte: &u8| is_between(*byte) || matches!(byte, b']' | b'}');
            let rest = &bytes[start..];
            start + rest.iter().position(is_end).unwrap_or(rest.len())
        }
    };
    start..end
}

/// Where the next value starts: behind space, commas and colons.
#[inline(always)]
pub(crate) fn start_of_value(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let mut start = at;
    while bytes.get(start).is_some_and(|byte| is_between(*byte)) {
        start += 1;
    }
    start
}

/// Whether a byte stands between values.
#[inline(always)]
fn is_between(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | b',' | b':')
}

/// Where the string that starts at `start` ends, behind its quote.
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

/// What stands between the quotes of a string; `None` for any other kind of value.
pub fn quoted(text: &str) -> Option<&str> {
    text.strip_prefix('"')?.strip_suffix('"')
}

/// The string that a JSON string literal stands for.
pub(crate) fn decode_string(literal: &str) -> Cow<'_, str> {
    unescape(quoted(literal).unwrap_or(literal))
}

/// What the text between the quotes of a JSON string stands for. Half a surrogate pair, which no
/// string can hold, is read as U+FFFD.
pub fn unescape(escaped: &str) -> Cow<'_, str> {
    if memchr::memchr(b'\\', escaped.as_bytes()).is_none() {
        return Cow::Borrowed(escaped);
    }
    let mut plain = String::with_capacity(escaped.len());
    unescape_into(escaped, &mut plain);
    Cow::Owned(plain)
}

/// Whether all escapes are of characters that cannot stand in a string themselves.
pub(crate) fn has_plain_escapes(text: &str) -> bool {
    // Most texts have no such pair of characters, and need not be looked at closely.
    static PAIRS: LazyLock<[Finder<'static>; 2]> =
        LazyLock::new(|| ["\\u", "\\/"].map(Finder::new));
    let bytes = text.as_bytes();
    if PAIRS.iter().all(|pair| pair.find(bytes).is_none()) {
        return true;
    }
    let mut rest = bytes;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        if matches!(rest.get(at + 1), Some(b'u' | b'/')) {
            return false;
        }
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    true
}

/// Adds what `escaped` stands for to `plain`.
pub fn unescape_into(escaped: &str, plain: &mut String) {
    let mut rest = escaped;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        plain.push_str(&rest[..at]);
        let (character, len) = escape(&rest[at..]);
        plain.push(character);
        rest = &rest[at + len..];
    }
    plain.push_str(rest);
}

/// The character that the escape at the start of `text` stands for, and the escape's length.
fn escape(text: &str) -> (char, usize) {
    let plain = match text.as_bytes().get(1) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'u') => return unicode_escape(text),
        Some(&other) => char::from(other),
        None => return (char::REPLACEMENT_CHARACTER, 1),
    };
    (plain, 2)
}

fn unicode_escape(text: &str) -> (char, usize) {
    let unit = |from: usize| {
        let digits = text.get(from..from + 4)?;
        u32::from_str_radix(digits, 16).ok()
    };
    match unit(2) {
        Some(high @ 0xD800..=0xDBFF) => match (text.get(6..8), unit(8)) {
            (Some("\\u"), Some(low @ 0xDC00..=0xDFFF)) => {
                let code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
            }
            _ => (char::REPLACEMENT_CHARACTER, 6),
        },
        Some(code) => (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 6),
        None => (char::REPLACEMENT_CHARACTER, text.len().min(2)),
    }
}

/// Adds `text` as compact JSON: no space between values, strings with no more escapes than needed,
/// keys and numbers as they came. The text was checked before.
pub fn compact_into(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(quote) = memchr::memchr(b'"', rest.as_bytes()) {
        push_without_space(&rest[..quote], out);
        let literal = string_literal(&rest[quote..]);
        push_literal(literal, out);
        rest = &rest[quote + literal.len()..];
    }
    push_without_space(rest, out);
}

fn push_without_space(text: &str, out: &mut String) {
    out.extend(text.chars().filter(|c| !matches!(c, ' ' | '\t' | '\n' | '\r')));
}

/// The string literal at the start of `text`, with its quotes.
fn string_literal(text: &str) -> &str {
    let bytes = text.as_bytes();
    let mut at = 1;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if bytes[at] == b'"' {
            return &text[..=at];
        }
        at += 2;
    }
    text
}

fn push_literal(literal: &str, out: &mut String) {
    let inner = quoted(literal).unwrap_or(literal);
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        out.push_str(literal);
        return;
    }
    let plain = serde_json::to_string(&unescape(inner)).expect("a string can always be written");
    out.push_str(&plain);
}

/// How deep the lists and objects of a JSON text go. The text was checked before.
pub fn depth(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut now, mut most) = (0, 0usize, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'[' => {
                now += 1;
                most = most.max(now);
            }
            b'}' | b']' => now = now.saturating_sub(1),
            b'"' => {
                at = end_of_string(bytes, at);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compact(text: &str) -> String {
        let mut out = String::new();
        compact_into(text, &mut out);
        out
    }

    #[test]
    fn compact_json_keeps_keys_and_numbers_as_they_came() {
        assert_eq!(
            compact(r#" { "b" : 1.50 , "a" : [ 1e400 , -0 ] } "#),
            r#"{"b":1.50,"a":[1e400,-0]}"#
        );
        assert_eq!(compact(r#"{"a":1,"a":2}"#), r#"{"a":1,"a":2}"#);
        assert_eq!(compact("\"a b\\n\\u00e9\\\"\""), "\"a b\\né\\\"\"");
    }

    #[test]
    fn escapes_are_read_as_json_means_them() {
        assert_eq!(unescape(r#"a\n\t\"\\\/\u00e9\ud83d\ude00"#), "a\n\t\"\\/é😀");
    }

    #[test]
    fn half_a_surrogate_pair_is_replaced() {
        assert_eq!(unescape(r"a\ud800b"), "a\u{fffd}b");
        assert_eq!(unescape(r"\udc00"), "\u{fffd}");
        assert_eq!(unescape(r"\ud800\u0041"), "\u{fffd}A");
    }

    #[test]
    fn depth_does_not_count_brackets_in_strings() {
        assert_eq!(depth(r#"{"a":"[[[[\"{","b":[1]}"#), 2);
        assert_eq!(depth(&"[".repeat(100_000)), 100_000);
    }
}
