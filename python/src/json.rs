//! Python objects as JSON, and JSON as Python objects.
//!
//! Both directions handle only what is frequent: the exact types that `json.loads` produces, text that is
//! valid Unicode, integers of 64 bits, and [`MAX_DEPTH`] levels. For everything else they return `None`,
//! and `recto/_json.py` converts the whole value or raises the error. The results are the same.

use std::fmt::Write as _;

use memchr::memchr2;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// Maximum levels of nested values. A string or number in a list is a level too. The functions recurse, so
/// the number is small.
const MAX_DEPTH: usize = 64;

/// The value as JSON, with the bytes that `encode` of `recto/_json.py` writes.
pub(crate) fn written(value: &Bound<'_, PyAny>) -> Option<String> {
    let mut text = String::with_capacity(512);
    write(value, &mut text, MAX_DEPTH)?;
    Some(text)
}

fn write(value: &Bound<'_, PyAny>, text: &mut String, depth: usize) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    if let Ok(string) = value.cast_exact::<PyString>() {
        write_string(string.to_str().ok()?, text);
    } else if let Ok(dictionary) = value.cast_exact::<PyDict>() {
        let mut separator = '{';
        // A copy: without the GIL another thread may change the dictionary, and its iterator panics then.
        for item in dictionary.items() {
            let (key, value) = item.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>().ok()?;
            text.push(separator);
            separator = ',';
            write_string(key.cast_exact::<PyString>().ok()?.to_str().ok()?, text);
            text.push(':');
            write(&value, text, depth)?;
        }
        text.push_str(if separator == '{' { "{}" } else { "}" });
    } else if let Ok(list) = value.cast_exact::<PyList>() {
        write_items(list.iter(), text, depth)?;
    } else if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        write_items(tuple.iter(), text, depth)?;
    } else if value.is_none() {
        text.push_str("null");
    } else if let Ok(boolean) = value.cast_exact::<PyBool>() {
        text.push_str(if boolean.is_true() { "true" } else { "false" });
    } else if value.is_exact_instance_of::<PyInt>() {
        write!(text, "{}", value.extract::<i64>().ok()?).ok()?;
    } else if value.is_exact_instance_of::<PyFloat>() {
        if !value.extract::<f64>().ok()?.is_finite() {
            return None;
        }
        text.push_str(value.repr().ok()?.to_str().ok()?);
    } else {
        return None;
    }
    Some(())
}

fn write_items<'py>(
    items: impl Iterator<Item = Bound<'py, PyAny>>,
    text: &mut String,
    depth: usize,
) -> Option<()> {
    let mut separator = '[';
    for item in items {
        text.push(separator);
        separator = ',';
        write(&item, text, depth)?;
    }
    text.push_str(if separator == '[' { "[]" } else { "]" });
    Some(())
}

fn write_string(string: &str, text: &mut String) {
    text.push('"');
    let mut rest = string;
    while let Some(at) = rest.bytes().position(|byte| byte < 0x20 || matches!(byte, b'"' | b'\\')) {
        text.push_str(&rest[..at]);
        match rest.as_bytes()[at] {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            0x08 => text.push_str("\\b"),
            0x0c => text.push_str("\\f"),
            control => write!(text, "\\u{control:04x}").expect("a string accepts all writes"),
        }
        rest = &rest[at + 1..];
    }
    text.push_str(rest);
    text.push('"');
}

/// The value of JSON text without spaces.
pub(crate) fn read<'py>(py: Python<'py>, text: &str) -> Option<Bound<'py, PyAny>> {
    let mut reader = Reader { py, text, at: 0, keys: [const { None }; KEY_SLOTS] };
    let value = reader.value(MAX_DEPTH)?;
    (reader.at == text.len()).then_some(value)
}

/// Number of slots for keys.
const KEY_SLOTS: usize = 64;

/// The slot of a key. A hash table takes several times as long to find a short key.
fn slot_of(key: &str) -> usize {
    let ends = key.as_bytes().first().zip(key.as_bytes().last());
    ends.map_or(0, |(&first, &last)| usize::from(first) * 5 + usize::from(last) + key.len() * 3)
        % KEY_SLOTS
}

struct Reader<'py, 'text> {
    py: Python<'py>,
    text: &'text str,
    at: usize,
    /// The last key of each slot: most objects of a response have the same keys.
    keys: [Option<(&'text str, Bound<'py, PyString>)>; KEY_SLOTS],
}

impl<'py, 'text> Reader<'py, 'text> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn next_is(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn value(&mut self, depth: usize) -> Option<Bound<'py, PyAny>> {
        let depth = depth.checked_sub(1)?;
        match self.peek()? {
            b'"' => {
                let text = self.string()?;
                Some(PyString::new(self.py, text.as_str()).into_any())
            }
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b't' => self.word("true", PyBool::new(self.py, true).to_owned().into_any()),
            b'f' => self.word("false", PyBool::new(self.py, false).to_owned().into_any()),
            b'n' => self.word("null", self.py.None().into_bound(self.py)),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &str, value: Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
        self.text[self.at..].starts_with(word).then_some(())?;
        self.at += word.len();
        Some(value)
    }

    fn object(&mut self, depth: usize) -> Option<Bound<'py, PyAny>> {
        let object = PyDict::new(self.py);
        self.at += 1;
        if self.next_is(b'}') {
            return Some(object.into_any());
        }
        loop {
            let key = self.key()?;
            self.next_is(b':').then_some(())?;
            object.set_item(key, self.value(depth)?).ok()?;
            if self.next_is(b'}') {
                return Some(object.into_any());
            }
            self.next_is(b',').then_some(())?;
        }
    }

    fn key(&mut self) -> Option<Bound<'py, PyString>> {
        (self.peek()? == b'"').then_some(())?;
        match self.string()? {
            Text::Slice(key) => {
                let slot = &mut self.keys[slot_of(key)];
                if slot.as_ref().is_none_or(|(known, _)| *known != key) {
                    *slot = Some((key, PyString::new(self.py, key)));
                }
                slot.as_ref().map(|(_, string)| string.clone())
            }
            Text::Unescaped(key) => Some(PyString::new(self.py, &key)),
        }
    }

    fn array(&mut self, depth: usize) -> Option<Bound<'py, PyAny>> {
        let array = PyList::empty(self.py);
        self.at += 1;
        if self.next_is(b']') {
            return Some(array.into_any());
        }
        loop {
            array.append(self.value(depth)?).ok()?;
            if self.next_is(b']') {
                return Some(array.into_any());
            }
            self.next_is(b',').then_some(())?;
        }
    }

    fn number(&mut self) -> Option<Bound<'py, PyAny>> {
        let rest = &self.text[self.at..];
        let is_number = |byte: u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let end = rest.bytes().position(|byte| !is_number(byte)).unwrap_or(rest.len());
        let digits = &rest[..end];
        self.at += end;
        if digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
            return Some(digits.parse::<i64>().ok()?.into_pyobject(self.py).ok()?.into_any());
        }
        Some(PyFloat::new(self.py, digits.parse().ok()?).into_any())
    }

    fn string(&mut self) -> Option<Text<'text>> {
        let rest = &self.text[self.at + 1..];
        let end = memchr2(b'"', b'\\', rest.as_bytes())?;
        if rest.as_bytes()[end] == b'"' {
            self.at += end + 2;
            return Some(Text::Slice(&rest[..end]));
        }
        let mut unescaped = String::with_capacity(rest.len().min(4096));
        let mut rest = rest;
        loop {
            let end = memchr2(b'"', b'\\', rest.as_bytes())?;
            unescaped.push_str(&rest[..end]);
            if rest.as_bytes()[end] == b'"' {
                self.at = self.text.len() - rest.len() + end + 1;
                return Some(Text::Unescaped(unescaped));
            }
            let (character, length) = escaped(&rest[end + 1..])?;
            unescaped.push(character);
            rest = &rest[end + 1 + length..];
        }
    }
}

enum Text<'text> {
    Slice(&'text str),
    Unescaped(String),
}

impl Text<'_> {
    fn as_str(&self) -> &str {
        match self {
            Text::Slice(text) => text,
            Text::Unescaped(text) => text,
        }
    }
}

/// The character of an escape without its backslash, and the length of the escape.
fn escaped(rest: &str) -> Option<(char, usize)> {
    let character = match rest.as_bytes().first()? {
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'u' => {
            let unit = |at: usize| u32::from_str_radix(rest.get(at..at + 4)?, 16).ok();
            let first = unit(1)?;
            if let Some(character) = char::from_u32(first) {
                return Some((character, 5));
            }
            // A surrogate without its partner is no character: `recto/_json.py` then reads the whole text.
            let second = (rest.get(5..7)? == "\\u").then(|| unit(7))??;
            let is_pair = (0xd800..0xdc00).contains(&first) && (0xdc00..0xe000).contains(&second);
            let code = is_pair.then(|| 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))?;
            return Some((char::from_u32(code)?, 11));
        }
        byte @ (b'"' | b'\\' | b'/') => char::from(*byte),
        _ => return None,
    };
    Some((character, 1))
}
