//! JSON values as slices of their text, and writers that keep that text unchanged.
//!
//! All functions expect text that was validated as JSON when it was imported. On other text the result
//! is meaningless, but every function terminates and none panics. No function recurses, so nested values
//! use no stack; `has_huge_number` calls `serde_json`, which limits its recursion.

use std::borrow::Cow;

use memchr::memchr;
use recto_core::json::next_value;

/// A JSON string in its escaped form, without the quotes. It can be written again without decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Str<'a>(&'a str);

impl<'a> Str<'a> {
    /// The string in a JSON value; `None` if the value is not a string.
    pub fn of(value: &'a str) -> Option<Str<'a>> {
        recto_core::json::quoted(value).map(Str)
    }

    /// A text that contains no character that needs an escape.
    pub(crate) fn plain(text: &'a str) -> Str<'a> {
        debug_assert!(!needs_escapes(text));
        Str(text)
    }

    /// A text that is already in escaped form.
    pub(crate) fn escaped_text(text: &'a str) -> Str<'a> {
        Str(text)
    }

    /// The escaped form, without the quotes.
    pub fn escaped(self) -> &'a str {
        self.0
    }

    /// The decoded text. A lone surrogate is decoded as U+FFFD.
    pub fn text(self) -> Cow<'a, str> {
        recto_core::json::unescape(self.0)
    }

    /// True if the decoded text equals `text`.
    pub fn is(self, text: &str) -> bool {
        // An escape is longer than its character, so a shorter escaped form cannot match.
        self.0 == text || (self.0.len() > text.len() && self.has_escapes() && self.text() == text)
    }

    fn has_escapes(self) -> bool {
        self.0.bytes().any(|byte| byte == b'\\')
    }

    /// True if the string is empty.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// True if the decoded text is empty or only white space.
    pub fn is_blank(self) -> bool {
        let first = self.0.trim_ascii_start().as_bytes().first();
        match first {
            None => true,
            Some(b'\\') => self.text().trim().is_empty(),
            Some(byte) if byte.is_ascii() => false,
            Some(_) => self.text().trim().is_empty(),
        }
    }
}

/// True if the value is an object.
pub(crate) fn is_object(value: &str) -> bool {
    value.starts_with('{')
}

/// True if the value is a list.
pub(crate) fn is_list(value: &str) -> bool {
    value.starts_with('[')
}

/// The fields of an object, in order. Empty for any other value.
pub(crate) fn fields(object: &str) -> Fields<'_> {
    let at = if is_object(object) { 1 } else { object.len() };
    Fields { text: object, at }
}

/// The values of a list, in order. Empty for any other value.
pub(crate) fn items(list: &str) -> Items<'_> {
    let at = if is_list(list) { 1 } else { list.len() };
    Items { text: list, at }
}

/// The last value of `key` in an object; `null` counts as absent.
pub(crate) fn get<'a>(object: &'a str, key: &str) -> Option<&'a str> {
    let found = fields(object).filter(|(name, _)| name.is(key));
    found.last().map(|(_, value)| value).filter(|&value| value != "null")
}

/// The string under `key` in an object.
pub(crate) fn get_str<'a>(object: &'a str, key: &str) -> Option<Str<'a>> {
    get(object, key).and_then(Str::of)
}

/// The fields of an object, parsed once for several lookups.
pub(crate) struct Object<'a>(Vec<(Str<'a>, &'a str)>);

impl<'a> Object<'a> {
    pub(crate) fn of(object: &'a str) -> Object<'a> {
        let mut read = Vec::with_capacity(8);
        read.extend(fields(object));
        Object(read)
    }

    /// The last value of `key`, which may be `null`.
    pub(crate) fn get_or_null(&self, key: &str) -> Option<&'a str> {
        self.0.iter().rev().find(|(name, _)| name.is(key)).map(|&(_, value)| value)
    }

    /// The last value of `key`; `null` counts as absent.
    pub(crate) fn get(&self, key: &str) -> Option<&'a str> {
        self.get_or_null(key).filter(|&value| value != "null")
    }

    /// The string under `key`.
    pub(crate) fn get_str(&self, key: &str) -> Option<Str<'a>> {
        self.get(key).and_then(Str::of)
    }

    /// True if the field is `true`.
    pub(crate) fn is_true(&self, key: &str) -> bool {
        self.get(key) == Some("true")
    }

    /// The field of an object that has exactly one.
    pub(crate) fn only(&self) -> Option<(Str<'a>, &'a str)> {
        match self.0[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Appends the fields that are not in `known`, each preceded by a comma.
    pub(crate) fn push_others(&self, known: &[&str], out: &mut String) {
        for (key, value) in &self.0 {
            if !known.iter().any(|name| key.is(name)) {
                push_field(*key, value, out);
            }
        }
    }

    /// Appends the fields that are in `wanted`, each preceded by a comma.
    pub(crate) fn push_some(&self, wanted: &[&str], out: &mut String) {
        for (key, value) in &self.0 {
            if wanted.iter().any(|name| key.is(name)) {
                push_field(*key, value, out);
            }
        }
    }

    /// True if every field is in `known`.
    pub(crate) fn has_only(&self, known: &[&str]) -> bool {
        self.0.iter().all(|(key, _)| known.iter().any(|name| key.is(name)))
    }
}

/// The values of a list, each with its fields, in one pass.
pub(crate) fn objects(list: &str) -> impl Iterator<Item = (&str, Object<'_>)> {
    let mut cursor = Cursor::new(list);
    if is_list(list) {
        cursor.enter();
    } else {
        cursor.at = list.len();
    }
    std::iter::from_fn(move || {
        Some(match cursor.peek()? {
            b'{' => cursor.object(),
            _ => (cursor.value(), Object(Vec::new())),
        })
    })
}

/// See [`fields`].
#[derive(Clone)]
pub(crate) struct Fields<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (Str<'a>, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let key = Str::of(take_value(self.text, &mut self.at))?;
        Some((key, take_value(self.text, &mut self.at)))
    }
}

/// See [`items`].
#[derive(Clone)]
pub(crate) struct Items<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Items<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let value = take_value(self.text, &mut self.at);
        (!value.is_empty()).then_some(value)
    }
}

/// Reads the next value and advances behind it. Empty at the end.
fn take_value<'a>(text: &'a str, at: &mut usize) -> &'a str {
    let place = next_value(text, *at);
    *at = place.end;
    &text[place]
}

/// A cursor over a JSON text, for one pass. A value can be read as a whole or entered.
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Cursor<'a> {
        Cursor { text, at: 0 }
    }

    /// Enters the next value, a list or object. Returns its start.
    pub(crate) fn enter(&mut self) -> usize {
        let start = self.skip();
        self.at = (start + 1).min(self.text.len());
        start
    }

    /// The first byte of the next value. At the end of the current list or object, leaves it and
    /// returns `None`.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        self.at = self.skip();
        match self.text.as_bytes().get(self.at) {
            Some(b']' | b'}') => {
                self.at += 1;
                None
            }
            other => other.copied(),
        }
    }

    /// Reads the next value and advances behind it.
    pub(crate) fn value(&mut self) -> &'a str {
        take_value(self.text, &mut self.at)
    }

    /// Reads the next value, an object, with its fields.
    fn object(&mut self) -> (&'a str, Object<'a>) {
        let start = self.enter();
        let mut fields = Fields { text: self.text, at: self.at };
        let mut read = Vec::with_capacity(8);
        read.extend(fields.by_ref());
        // The fields end in front of the closing brace.
        self.at = (fields.at + 1).min(self.text.len());
        (self.since(start), Object(read))
    }

    fn skip(&self) -> usize {
        let is_between = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | b',' | b':');
        let rest = &self.text.as_bytes()[self.at..];
        self.at + rest.iter().position(|byte| !is_between(byte)).unwrap_or(rest.len())
    }

    /// The text from `start` to the cursor.
    pub(crate) fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }
}

/// End of the value at the start of a text.
pub(crate) fn end_of(text: &str) -> usize {
    next_value(text, 0).end
}

/// True if a text contains a character that needs an escape.
fn needs_escapes(text: &str) -> bool {
    text.bytes().any(|byte| byte < 0x20 || byte == b'"' || byte == b'\\')
}

/// Appends the escaped form of a text, without quotes.
pub(crate) fn escape_into(text: &str, out: &mut String) {
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        let short = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[plain..at]);
        plain = at + 1;
        if short.is_empty() {
            out.push_str("\\u00");
            out.push(if byte < 0x10 { '0' } else { '1' });
            out.push(char::from_digit(u32::from(byte % 16), 16).unwrap_or('0'));
        } else {
            out.push_str(short);
        }
    }
    out.push_str(&text[plain..]);
}

/// A text as a JSON string, with quotes.
pub(crate) fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    escape_into(text, &mut out);
    out.push('"');
    out
}

/// Appends a text as a JSON string, with quotes.
pub(crate) fn push_string(text: &str, out: &mut String) {
    out.push('"');
    escape_into(text, out);
    out.push('"');
}

/// Appends a string in its original escaped form, with quotes.
pub(crate) fn push_str(text: Str<'_>, out: &mut String) {
    out.push('"');
    out.push_str(text.escaped());
    out.push('"');
}

/// Appends an item to a list whose items start at `start`. If `write` returns false, nothing is appended.
/// Returns what `write` returned.
pub(crate) fn push_item(
    start: usize,
    out: &mut String,
    write: impl FnOnce(&mut String) -> bool,
) -> bool {
    let before = out.len();
    if before > start {
        out.push(',');
    }
    let is_written = write(out);
    if !is_written {
        out.truncate(before);
    }
    is_written
}

/// Appends the fields of an object that are not in `known`, each preceded by a comma.
pub(crate) fn push_other_fields(object: &str, known: &[&str], out: &mut String) {
    for (key, value) in fields(object).filter(|(key, _)| !known.iter().any(|name| key.is(name))) {
        push_field(key, value, out);
    }
}

fn push_field(key: Str<'_>, value: &str, out: &mut String) {
    out.push(',');
    push_str(key, out);
    out.push(':');
    out.push_str(value);
}

/// Appends the fields of an object that are in `wanted`, each preceded by a comma.
pub(crate) fn push_fields(object: &str, wanted: &[&str], out: &mut String) {
    for (key, value) in fields(object).filter(|(key, _)| wanted.iter().any(|name| key.is(name))) {
        push_field(key, value, out);
    }
}

/// The same JSON in the layout of Python's `json.dumps`: a space after every comma and colon and no
/// other white space.
pub(crate) fn spaced(text: &str) -> String {
    laid_out(text, true)
}

/// The same JSON without white space between values.
pub(crate) fn without_space(text: &str) -> String {
    laid_out(text, false)
}

fn laid_out(text: &str, is_spaced: bool) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let end = if byte == b'"' { next_value(text, at).end } else { at + 1 };
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => {}
            b'"' => out.push_str(&text[at..end]),
            _ => out.push(char::from(byte)),
        }
        if is_spaced && matches!(byte, b',' | b':') {
            out.push(' ');
        }
        at = end;
    }
    out
}

/// The JSON value in a text, without the white space around it; `None` if the text is not exactly one
/// value.
pub(crate) fn checked(text: &str) -> Option<&str> {
    recto_core::json::value(text).ok()
}

/// True if a JSON text contains a number that exceeds a double, such as `1e400`.
pub(crate) fn has_huge_number(text: &str) -> bool {
    let mut digits = 0;
    let is_suspect = text.bytes().any(|byte| {
        let is_exponent = digits > 0 && matches!(byte, b'e' | b'E');
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        is_exponent || digits > 300
    });
    let read = || serde_json::from_str::<serde_json::Value>(text);
    is_suspect && read().is_err_and(|error| error.is_syntax())
}

/// Byte offsets of lone surrogates in a JSON text, such as `\ud800`, which no provider accepts. An
/// offset is that of the backslash.
pub(crate) fn lone_surrogates(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(step) = bytes.get(at..).and_then(|rest| memchr(b'\\', rest)) {
        at += step;
        if bytes.get(at + 1) != Some(&b'u') {
            at += 2;
            continue;
        }
        match (unit(bytes, at), unit(bytes, at + 6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => at += 12,
            (Some(0xD800..=0xDFFF), _) => {
                found.push(at);
                at += 6;
            }
            _ => at += 6,
        }
    }
    found
}

/// The code unit of the escape `\uXXXX` at `at`, if there is one.
fn unit(bytes: &[u8], at: usize) -> Option<u32> {
    let escape = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u32::from_str_radix(std::str::from_utf8(escape).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_slices_of_the_object() {
        let object = r#"{ "a" : 1.50 , "b":[1,{"c":"]"}],"a":"x\"y" }"#;
        let read: Vec<_> = fields(object).map(|(key, value)| (key.escaped(), value)).collect();
        assert_eq!(read, [("a", "1.50"), ("b", r#"[1,{"c":"]"}]"#), ("a", r#""x\"y""#)]);
        assert_eq!(get(object, "a"), Some(r#""x\"y""#));
        assert_eq!(get(r#"{"a":null}"#, "a"), None);
        assert_eq!(get("[1]", "a"), None);
    }

    #[test]
    fn items_of_a_list_are_slices_of_it() {
        let read: Vec<_> = items(r#"[1, "a,b" ,[2,3],{} , null]"#).collect();
        assert_eq!(read, ["1", r#""a,b""#, "[2,3]", "{}", "null"]);
        assert_eq!(items("[]").count(), 0);
        assert_eq!(items("{}").count(), 0);
    }

    #[test]
    fn objects_of_a_list_come_with_their_fields() {
        let list = r#"[ {"a":1, "b":{"c":[2]}} ,3,{} , {"a":"}"}]"#;
        let read: Vec<_> = objects(list).map(|(text, fields)| (text, fields.get("a"))).collect();
        let objects = [r#"{"a":1, "b":{"c":[2]}}"#, "3", "{}", r#"{"a":"}"}"#];
        assert_eq!(
            read,
            [objects[0], objects[1], objects[2], objects[3]]
                .into_iter()
                .zip([Some("1"), None, None, Some("\"}\"")])
                .collect::<Vec<_>>()
        );
        assert_eq!(super::objects("{}").count() + super::objects("[]").count(), 0);
    }

    #[test]
    fn broken_text_ends_without_a_panic() {
        for text in ["{", "[", "{\"", "{\"a\"", "{\"a\":", "[1,", "[\"\\", "{\"a\":{", "{]", "[}}"]
        {
            let _ = (fields(text).count(), items(text).count(), objects(text).count());
            let _ = spaced(text);
        }
    }

    #[test]
    fn escapes_equal_those_of_serde() {
        let text = "a\"b\\c\n\r\t\u{8}\u{c}\u{0}\u{1f}é🙂\u{7f}";
        assert_eq!(string(text), serde_json::to_string(text).unwrap());
    }

    #[test]
    fn lone_surrogates_are_found() {
        assert!(lone_surrogates(r#""\ud83d\ude00 \\ud800 é""#).is_empty());
        assert_eq!(lone_surrogates(r#""\ud800x\udc00""#), [1, 8]);
    }

    #[test]
    fn spaced_is_pythons_layout() {
        assert_eq!(spaced(r#"{"a":[1,2],"b":"x,y:z"}"#), r#"{"a": [1, 2], "b": "x,y:z"}"#);
        assert_eq!(spaced("{ \"a\" :\n1 }"), r#"{"a": 1}"#);
        assert_eq!(without_space("{ \"a\" :\n\"b c\" }"), r#"{"a":"b c"}"#);
    }

    #[test]
    fn blank_means_white_space_only() {
        for (value, blank) in [("", true), (" \\n\\t", true), (" a", false), ("\\u0020", true)] {
            assert_eq!(Str(value).is_blank(), blank, "{value:?}");
        }
    }
}
