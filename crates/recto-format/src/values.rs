//! A stream of JSON values. Memory use is bounded by the largest value that the caller takes.
//!
//! A value is validated as a whole before it is taken. A value over the limit stays in the stream, so
//! that the caller can read its items one by one or fail with `too_large`.

use std::io::Read;

use memchr::{memchr, memchr_iter, memchr2};

use crate::Error;

const CHUNK: usize = 64 << 10;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// A stream of JSON values: one value, or several in sequence, as in JSON lines.
pub(crate) struct Values<'r> {
    reader: Box<dyn Read + 'r>,
    buffer: Vec<u8>,
    /// End of the data in the buffer.
    end: usize,
    /// Start of the data in the buffer that is not taken yet.
    at: usize,
    is_at_end: bool,
    /// True until the first byte is examined.
    is_fresh: bool,
    /// True if values are separated by white space other than one line break, or follow a byte order mark.
    has_other_space: bool,
    /// Number of bytes removed from the front of the buffer.
    dropped: u64,
    /// The line of `at`, from 1.
    line: u64,
    /// Offset in the stream up to which [`peek_line`](Self::peek_line) has searched without success.
    line_searched: u64,
    limit: usize,
}

/// Result of examining the next value.
pub(crate) enum Peeked {
    /// The value is valid JSON: its length in bytes and its depth.
    Whole { len: usize, depth: usize },
    /// The value is longer than the limit.
    TooLarge,
    /// The value is not JSON, for this reason.
    Broken(String),
}

impl<'r> Values<'r> {
    /// `limit` is the maximum length of a value in bytes.
    pub(crate) fn new(reader: impl Read + 'r, limit: usize) -> Values<'r> {
        Values {
            reader: Box::new(reader),
            buffer: Vec::new(),
            end: 0,
            at: 0,
            is_at_end: false,
            is_fresh: true,
            has_other_space: false,
            dropped: 0,
            line: 1,
            line_searched: 0,
            limit,
        }
    }

    /// The line of the next value, from 1.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// True if the white space so far is not that of JSON lines: one line break between the values. A byte
    /// order mark is white space too.
    pub(crate) fn has_other_space(&self) -> bool {
        self.has_other_space
    }

    /// Number of bytes taken from the stream.
    pub(crate) fn bytes_taken(&self) -> u64 {
        self.dropped + self.at as u64
    }

    /// Reads more data and discards what was taken. Returns false at the end of the stream.
    fn fill(&mut self) -> Result<bool, Error> {
        if self.is_at_end {
            return Ok(false);
        }
        if self.at > 0 {
            self.buffer.copy_within(self.at..self.end, 0);
            self.dropped += self.at as u64;
            self.end -= self.at;
            self.at = 0;
        }
        // The buffer doubles, so that a long value is not read in many small steps.
        let more = CHUNK.max(self.end).min(self.limit.max(CHUNK));
        if self.buffer.len() < self.end + more {
            self.buffer.resize(self.end + more, 0);
        }
        let space = &mut self.buffer[self.end..self.end + more];
        let count = loop {
            match self.reader.read(space) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.end += count;
        self.is_at_end = count == 0;
        Ok(count > 0)
    }

    /// The data in the buffer that is not taken yet.
    fn rest(&self) -> &[u8] {
        &self.buffer[self.at..self.end]
    }

    /// Takes bytes, such as a value that [`peek_value`](Self::peek_value) found.
    pub(crate) fn take(&mut self, count: usize) {
        let count = count.min(self.end - self.at);
        self.line += memchr_iter(b'\n', &self.buffer[self.at..self.at + count]).count() as u64;
        self.at += count;
    }

    /// The first byte of the next value, after white space; `None` at the end of the stream.
    pub(crate) fn peek_byte(&mut self) -> Result<Option<u8>, Error> {
        if std::mem::replace(&mut self.is_fresh, false) {
            while self.end < BYTE_ORDER_MARK.len() && self.fill()? {}
            if self.rest().starts_with(BYTE_ORDER_MARK) {
                self.at = BYTE_ORDER_MARK.len();
                self.has_other_space = true;
            }
        }
        let mut has_space = false;
        loop {
            let rest = self.rest();
            let is_other = |byte: &u8| !matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
            let space = rest.iter().position(is_other).unwrap_or(rest.len());
            let byte = rest.get(space).copied();
            let is_line_break = rest[..space] == *b"\n" && !has_space;
            has_space |= space > 0;
            self.has_other_space |= space > 0 && !is_line_break;
            self.take(space);
            if byte.is_some() || !self.fill()? {
                return Ok(byte);
            }
        }
    }

    /// Takes the byte that [`peek_byte`](Self::peek_byte) returned.
    pub(crate) fn take_byte(&mut self) {
        if self.at < self.end {
            self.take(1);
        }
    }

    /// Finds the end of the next value and validates it, without taking it.
    pub(crate) fn peek_value(&mut self) -> Result<Peeked, Error> {
        self.peek_byte()?;
        if let Some(whole) = self.peek_line() {
            return Ok(whole);
        }
        let mut scan = Scan::default();
        let len = loop {
            if let Some(len) = scan.find_end(self.rest()) {
                break len;
            }
            let so_far = self.end - self.at;
            if so_far > self.limit {
                return Ok(Peeked::TooLarge);
            }
            if !self.fill()? {
                break so_far; // a number can end here; any other value fails the check below
            }
        };
        if len > self.limit {
            return Ok(Peeked::TooLarge);
        }
        let text = match std::str::from_utf8(&self.rest()[..len]) {
            Ok(text) => text,
            Err(error) => {
                return Ok(Peeked::Broken(format!(
                    "byte {} is not UTF-8; JSON is written in UTF-8",
                    error.valid_up_to()
                )));
            }
        };
        if let Some(checked) = recto_core::json::check(text) {
            return Ok(Peeked::Whole { len, depth: checked.depth });
        }
        Ok(match recto_core::json::value(text) {
            Ok(value) => Peeked::Whole { len, depth: recto_core::json::depth(value) },
            Err(error) => Peeked::Broken(error.to_string()),
        })
    }

    /// The next value, if it is an object that is the whole rest of the line, and the line is in the
    /// buffer. This is the fast path for JSON lines: one search for the end of the line. A line that was
    /// searched without success is not searched again, because it may contain many values.
    fn peek_line(&mut self) -> Option<Peeked> {
        if self.bytes_taken() < self.line_searched {
            return None;
        }
        let rest = self.rest();
        let end = memchr(b'\n', rest);
        let line = end.filter(|&end| end <= self.limit).and_then(|end| {
            let line = rest[..end].trim_ascii_end();
            let is_object = matches!(line, [b'{', .., b'}']);
            let text = is_object.then(|| std::str::from_utf8(line).ok()).flatten()?;
            let depth = recto_core::json::check(text)?.depth;
            Some(Peeked::Whole { len: text.len(), depth })
        });
        if line.is_none() {
            self.line_searched = self.bytes_taken() + end.unwrap_or(rest.len()) as u64;
        }
        line
    }

    /// The value that [`peek_value`](Self::peek_value) found. Valid until the next call of
    /// [`take`](Self::take).
    pub(crate) fn peeked(&self, len: usize) -> &str {
        // `peek_value` validated these bytes. A longer `len` gives an empty text.
        self.rest().get(..len).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default()
    }

    /// Takes the next value. Fails if it is not valid JSON or exceeds the limit.
    pub(crate) fn value(&mut self) -> Result<&str, Error> {
        match self.peek_value()? {
            Peeked::Whole { len, .. } => {
                let start = self.at;
                self.take(len);
                std::str::from_utf8(&self.buffer[start..start + len])
                    .map_err(|_| self.malformed("not UTF-8"))
            }
            Peeked::TooLarge => Err(self.too_large()),
            Peeked::Broken(reason) => Err(self.malformed(&reason)),
        }
    }

    /// Skips the next value, of any size, without buffering it.
    pub(crate) fn skip_value(&mut self) -> Result<(), Error> {
        self.peek_byte()?;
        let mut scan = Scan::default();
        loop {
            let rest = self.rest();
            if let Some(len) = scan.find_end(rest) {
                self.take(len);
                return Ok(());
            }
            self.take(scan.at);
            scan.at = 0;
            if !self.fill()? {
                return Err(self.malformed("the input ends inside a value"));
            }
        }
    }

    /// Skips the rest of the line.
    pub(crate) fn skip_line(&mut self) -> Result<(), Error> {
        loop {
            match memchr(b'\n', self.rest()) {
                Some(end) => {
                    self.take(end + 1);
                    return Ok(());
                }
                None => {
                    self.take(self.end - self.at);
                    if !self.fill()? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Reads a list whose bracket is next. Calls `each` at the start of every item; `each` must take
    /// the item.
    pub(crate) fn each_item(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.expect(b'[')?;
        if self.peek_byte()? == Some(b']') {
            self.take_byte();
            return Ok(());
        }
        loop {
            each(self)?;
            match self.peek_byte()? {
                Some(b',') => self.take_byte(),
                Some(b']') => {
                    self.take_byte();
                    return Ok(());
                }
                _ => return Err(self.malformed("a comma or the end of the list is missing")),
            }
        }
    }

    /// Reads an object whose brace is next. Calls `each` with every key at the start of its value;
    /// `each` must take the value.
    pub(crate) fn each_field(
        &mut self,
        mut each: impl FnMut(&mut Self, &str) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.expect(b'{')?;
        if self.peek_byte()? == Some(b'}') {
            self.take_byte();
            return Ok(());
        }
        loop {
            if self.peek_byte()? != Some(b'"') {
                return Err(self.malformed("a key is missing"));
            }
            let key = self.value()?;
            let key = recto_core::json::quoted(key).map(recto_core::json::unescape);
            let key = key.unwrap_or_default().into_owned();
            self.expect(b':')?;
            self.peek_byte()?;
            each(self, &key)?;
            match self.peek_byte()? {
                Some(b',') => self.take_byte(),
                Some(b'}') => {
                    self.take_byte();
                    return Ok(());
                }
                _ => return Err(self.malformed("a comma or the end of the object is missing")),
            }
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), Error> {
        if self.peek_byte()? == Some(byte) {
            self.take_byte();
            return Ok(());
        }
        Err(self.malformed(&format!("expected {:?}", char::from(byte))))
    }

    pub(crate) fn malformed(&self, reason: &str) -> Error {
        Error::Malformed {
            format: None,
            line: self.line,
            field: String::new(),
            reason: reason.to_owned(),
        }
    }

    pub(crate) fn too_large(&self) -> Error {
        Error::TooLarge {
            line: self.line,
            what: "a value's size in bytes",
            size: (self.end - self.at) as u64,
            limit: self.limit as u64,
        }
    }
}

/// Incremental search for the end of a value.
#[derive(Default)]
struct Scan {
    at: usize,
    depth: usize,
    state: ScanState,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum ScanState {
    #[default]
    Start,
    Between,
    InString,
    Escaped,
    Scalar,
}

impl Scan {
    /// Continues the search and returns the end of the value. `bytes` must start with the bytes of the
    /// previous call.
    fn find_end(&mut self, bytes: &[u8]) -> Option<usize> {
        while let Some(&byte) = bytes.get(self.at) {
            match self.state {
                ScanState::Escaped => self.state = ScanState::InString,
                ScanState::InString => match memchr2(b'"', b'\\', &bytes[self.at..]) {
                    None => {
                        self.at = bytes.len();
                        return None;
                    }
                    Some(found) => {
                        self.at += found;
                        self.state = match bytes[self.at] {
                            b'\\' => ScanState::Escaped,
                            _ if self.depth == 0 => return Some(self.at + 1),
                            _ => ScanState::Between,
                        };
                    }
                },
                ScanState::Scalar => {
                    if matches!(byte, b',' | b']' | b'}' | b':' | b' ' | b'\n' | b'\r' | b'\t') {
                        return Some(self.at);
                    }
                }
                ScanState::Start | ScanState::Between => match byte {
                    b'"' => self.state = ScanState::InString,
                    b'{' | b'[' => {
                        self.depth += 1;
                        self.state = ScanState::Between;
                    }
                    b'}' | b']' => {
                        self.depth = self.depth.saturating_sub(1);
                        if self.depth == 0 {
                            return Some(self.at + 1);
                        }
                    }
                    _ if self.state == ScanState::Start => self.state = ScanState::Scalar,
                    _ => {}
                },
            }
            self.at += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one byte per read, so that every value is split at every position.
    struct OneByteReader<'a>(&'a [u8]);

    impl Read for OneByteReader<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            match self.0 {
                [first, rest @ ..] => {
                    out[0] = *first;
                    self.0 = rest;
                    Ok(1)
                }
                [] => Ok(0),
            }
        }
    }

    #[test]
    fn values_are_taken_one_at_a_time_wherever_the_stream_is_split() {
        let text = "\u{feff}{\"a\":\"}\\\"\"}\n[1,[2]] \"x\" 12\n\ntrue";
        let mut values = Values::new(OneByteReader(text.as_bytes()), 100);
        let mut read = Vec::new();
        while values.peek_byte().unwrap().is_some() {
            read.push((values.line(), values.value().unwrap().to_owned()));
        }
        let read: Vec<(u64, &str)> = read.iter().map(|(line, text)| (*line, &**text)).collect();
        assert_eq!(
            read,
            [(1, "{\"a\":\"}\\\"\"}"), (2, "[1,[2]]"), (2, "\"x\""), (2, "12"), (4, "true")]
        );
    }

    #[test]
    fn lists_and_objects_are_walked_without_taking_them_whole() {
        let text = br#"{"x": {"deep": [1,2,3]}, "list": [ {"n":1} , {"n":2} ], "y": 3}"#;
        let mut values = Values::new(OneByteReader(text), 9);
        let mut items = Vec::new();
        values
            .each_field(|values, key| match key {
                "list" => values.each_item(|values| {
                    items.push(values.value()?.to_owned());
                    Ok(())
                }),
                _ => values.skip_value(),
            })
            .unwrap();
        assert_eq!(items, [r#"{"n":1}"#, r#"{"n":2}"#]);
        assert_eq!(values.peek_byte().unwrap(), None);
    }

    #[test]
    fn a_value_that_is_too_large_or_broken_stays_in_the_stream() {
        let mut values = Values::new(&b"[1,2,3,4,5,6]\n{\"a\":}\n7"[..], 8);
        assert!(matches!(values.peek_value().unwrap(), Peeked::TooLarge));
        assert!(matches!(values.value(), Err(Error::TooLarge { line: 1, .. })));
        values.skip_value().unwrap();
        assert!(matches!(values.peek_value().unwrap(), Peeked::Broken(_)));
        let error = values.value().unwrap_err();
        assert!(error.to_string().starts_with("line 2: "), "{error}");
        values.skip_line().unwrap();
        assert_eq!(values.value().unwrap(), "7");
    }

    #[test]
    fn an_endless_value_does_not_fill_the_memory() {
        let mut values = Values::new(std::io::repeat(b'['), 1 << 20);
        assert!(matches!(values.value(), Err(Error::TooLarge { .. })));
        assert!(values.buffer.len() < 4 << 20);
    }
}
