//! Strings: escapes, and compact writing.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;

/// The text between the quotes of a string; `None` for another kind of value.
#[inline]
pub fn quoted(text: &str) -> Option<&str> {
    text.strip_prefix('"')?.strip_suffix('"')
}

/// Decodes a string with or without its quotes.
#[inline]
pub fn decode_string(literal: &str) -> Cow<'_, str> {
    unescape(quoted(literal).unwrap_or(literal))
}

/// Decodes the text between the quotes of a string. Half a surrogate pair, which a Rust string cannot
/// contain, becomes U+FFFD.
#[inline]
pub fn unescape(escaped: &str) -> Cow<'_, str> {
    if memchr::memchr(b'\\', escaped.as_bytes()).is_none() {
        return Cow::Borrowed(escaped);
    }
    let mut plain = String::with_capacity(escaped.len());
    unescape_into(escaped, &mut plain);
    Cow::Owned(plain)
}

/// Whether the text has no `\u` and no `\/` escapes. If so, only quotes, backslashes and control
/// characters are escaped, and a word that contains none of them occurs before decoding if it occurs
/// after decoding.
pub fn uses_minimal_escapes(text: &str) -> bool {
    // Most texts have none of these pairs of characters. Others are read escape by escape.
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

/// Decodes the text between the quotes of a string and appends it to `plain`.
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

/// The character of the escape at the start of `text`, and the length of the escape.
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

/// Appends `text` as compact JSON: without space between values, and with the fewest escapes in strings
/// and keys. The order of fields, duplicate keys and the spelling of numbers do not change. `text` must be
/// valid JSON.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn compact(text: &str) -> String {
        let mut out = String::new();
        compact_into(text, &mut out);
        out
    }

    #[test]
    fn compact_json_keeps_the_spelling_of_keys_and_numbers() {
        assert_eq!(
            compact(r#" { "b" : 1.50 , "a" : [ 1e400 , -0 ] } "#),
            r#"{"b":1.50,"a":[1e400,-0]}"#
        );
        assert_eq!(compact(r#"{"a":1,"a":2}"#), r#"{"a":1,"a":2}"#);
        assert_eq!(compact("\"a b\\n\\u00e9\\\"\""), "\"a b\\né\\\"\"");
    }

    #[test]
    fn escapes_are_decoded() {
        assert_eq!(unescape(r#"a\n\t\"\\\/\u00e9\ud83d\ude00"#), "a\n\t\"\\/é😀");
    }

    #[test]
    fn half_a_surrogate_pair_is_replaced() {
        assert_eq!(unescape(r"a\ud800b"), "a\u{fffd}b");
        assert_eq!(unescape(r"\udc00"), "\u{fffd}");
        assert_eq!(unescape(r"\ud800\u0041"), "\u{fffd}A");
    }
}
