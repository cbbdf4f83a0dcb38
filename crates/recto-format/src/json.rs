//! Values as slices of the text they came in, and writing without changing them.
//!
//! Everything here works on text that was checked to be JSON when it came in. On anything else it
//! answers nonsense, but it ends and never panics. Nothing recurses, so depth costs no stack.

use std::borrow::Cow;

use memchr::memchr;
use recto_core::json::next_value;

/// A JSON string as it stands between its quotes: it can be written again without decoding it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Str<'a>(&'a str);

impl<'a> Str<'a> {
    /// The string that a JSON value is; `None` if it is something else.
    pub fn of(value: &'a str) -> Option<Str<'a>> {
        recto_core::json::quoted(value).map(Str)
    }

    /// A text that needs no escapes.
    pub(crate) fn plain(text: &'a str) -> Str<'a> {
        debug_assert!(!needs_escapes(text));
        Str(text)
    }

    /// A text that already is as it stands between quotes.
    pub(crate) fn escaped_text(text: &'a str) -> Str<'a> {
        Str(text)
    }

    /// As it stands between the quotes.
    pub fn escaped(self) -> &'a str {
        self.0
    }

    /// What it says. Half a surrogate pair is read as U+FFFD.
    pub fn text(self) -> Cow<'a, str> {
        recto_core::json::unescape(self.0)
    }

    /// Whether it says this.
    pub fn is(self, text: &str) -> bool {
        // An escape is longer than what it stands for.
        self.0 == text || (self.0.len() > text.len() && self.has_escapes() && self.text() == text)
    }

    fn has_escapes(self) -> bool {
        self.0.bytes().any(|byte| byte == b'\\')
    }

    /// Whether it says nothing.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Whether it says nothing but white space.
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

/// What kind of value a text holds.
pub(crate) fn is_object(value: &str) -> bool {
    value.starts_with('{')
}

pub(crate) fn is_list(value: &str) -> bool {
    value.starts_with('[')
}

/// The fields of an object, in their order; nothing for any other value.
pub(crate) fn fields(object: &str) -> Fields<'_> {
    let at = if is_object(object) { 1 } else { object.len() };
    Fields { text: object, at }
}

/// The values of a list, in their order; nothing for any other value.
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

/// The fields of an object, gone through once, for those who look for several.
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

    /// Whether a field is `true`.
    pub(crate) fn is(&self, key: &str) -> bool {
        self.get(key) == Some("true")
    }

    /// The only field, if there is one.
    pub(crate) fn only(&self) -> Option<(Str<'a>, &'a str)> {
        match self.0[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Adds the fields that are not among `known`, each with a comma in front.
    pub(crate) fn push_others(&self, known: &[&str], out: &mut String) {
        for (key, value) in &self.0 {
            if !known.iter().any(|name| key.is(name)) {
                push_field(*key, value, out);
            }
        }
    }

    /// Adds those fields that are among `wanted`, each with a comma in front.
    pub(crate) fn push_some(&self, wanted: &[&str], out: &mut String) {
        for (key, value) in &self.0 {
            if wanted.iter().any(|name| key.is(name)) {
                push_field(*key, value, out);
            }
        }
    }

    /// Whether it has no fields but these.
    pub(crate) fn has_only(&self, known: &[&str]) -> bool {
        self.0.iter().all(|(key, _)| known.iter().any(|name| key.is(name)))
    }
}

/// The values of a list, each with its fields: gone through once.
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

/// The next value, gone over; empty at the end.
fn take_value<'a>(text: &'a str, at: &mut usize) -> &'a str {
    let place = next_value(text, *at);
    *at = place.end;
    &text[place]
}

/// Goes through a JSON text once: values can be gone over, or gone into.
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Cursor<'a> {
        Cursor { text, at: 0 }
    }

    /// Goes into the list or object that comes next.
    pub(crate) fn enter(&mut self) -> usize {
        let start = self.skip();
        self.at = (start + 1).min(self.text.len());
        start
    }

    /// What the next value starts with; `None` at the end of the list or object, which is left.
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

    /// The next value, gone over.
    pub(crate) fn value(&mut self) -> &'a str {
        take_value(self.text, &mut self.at)
    }

    /// The object that comes next, gone over, with its fields.
    fn object(&mut self) -> (&'a str, Object<'a>) {
        let start = self.enter();
        let mut fields = Fields { text: self.text, at: self.at };
        let mut read = Vec::with_capacity(8);
        read.extend(fields.by_ref());
        // Its fields end in front of its brace.
        self.at = (fields.at + 1).min(self.text.len());
        (self.since(start), Object(read))
    }

    fn skip(&self) -> usize {
        let is_between = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | b',' | b':');
        let rest = &self.text.as_bytes()[self.at..];
        self.at + rest.iter().position(|byte| !is_between(byte)).unwrap_or(rest.len())
    }

    /// The text from `start` to here.
    pub(crate) fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }
}

/// Where the value at the start of a text ends.
pub(crate) fn end_of(text: &str) -> usize {
    next_value(text, 0).end
}

/// Whether a text cannot stand between quotes as it is.
fn needs_escapes(text: &str) -> bool {
    text.bytes().any(|byte| byte < 0x20 || byte == b'"' || byte == b'\\')
}

/// Adds a text as what stands between the quotes of a string.
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

/// A text as a JSON string, with its quotes.
pub(crate) fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    escape_into(text, &mut out);
    out.push('"');
    out
}

/// Adds a string that holds `inner`, which itself stands between quotes, quoted once more: the way
/// that OpenAI's `arguments` hold JSON in a string.
pub(crate) fn push_string(text: &str, out: &mut String) {
    out.push('"');
    escape_into(text, out);
    out.push('"');
}

/// Adds a string as it came.
pub(crate) fn push_str(text: Str<'_>, out: &mut String) {
    out.push('"');
    out.push_str(text.escaped());
    out.push('"');
}

/// Adds the fields of an object that are not among `known`, each with a comma in front.
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

/// Adds those fields of an object that are among `wanted`, each with a comma in front.
pub(crate) fn push_fields(object: &str, wanted: &[&str], out: &mut String) {
    for (key, value) in fields(object).filter(|(key, _)| wanted.iter().any(|name| key.is(name))) {
        push_field(key, value, out);
    }
}

/// The same JSON as Python's `json.dumps` lays it out: a space behind every comma and colon, none
/// elsewhere.
pub(crate) fn spaced(text: &str) -> String {
    laid_out(text, true)
}

/// The same JSON without any space between values.
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

/// Whether the text is one JSON value from end to end, and which: without the space around it.
pub(crate) fn checked(text: &str) -> Option<&str> {
    recto_core::json::value(text).ok()
}

/// Whether a JSON text has a number that no double can hold, such as `1e400`.
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

/// Where halves of surrogate pairs stand in a JSON text: `\ud800` and the like, which no provider
/// accepts. Places are of the backslash.
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

/// The number of the escape `\uXXXX` at `at`, if one stands there.
fn unit(bytes: &[u8], at: usize) -> Option<u32> {
    let escape = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u32::from_str_radix(std::str::from_utf8(escape).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_handed_out_as_they_came() {
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
    fn escaping_says_what_serde_says() {
        let text = "a\"b\\c\n\r\t\u{8}\u{c}\u{0}\u{1f}é🙂\u{7f}";
        assert_eq!(string(text), serde_json::to_string(text).unwrap());
    }

    #[test]
    fn halves_of_surrogate_pairs_are_found() {
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
