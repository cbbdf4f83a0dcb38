//! Copies JSON text and abridges its long strings and long lists.
//!
//! A format is recognised by the fields of an envelope, which may come after megabytes of messages. In the
//! copy, a long string becomes `"…"`, and a long list ends after the items that fit. The outermost list is
//! never abridged, because its items are the records of the file: the caller stops when the copy is full.

/// Maximum length of a string that is kept, in bytes.
const MAX_STRING: usize = 4 << 10;
/// Number of nested lists and objects, from the outermost, whose lists may be abridged.
const MAX_DEPTH: usize = 8;

/// An abridged copy of JSON. It is full at [`max_bytes`](Self::new), but grows as long as bytes are added.
pub(super) struct Abridged {
    out: Vec<u8>,
    max_bytes: usize,
    /// Offset in `out` of the content of the string that is being copied.
    string: Option<usize>,
    /// True if the string is too long and its rest is omitted.
    is_string_omitted: bool,
    /// True if the last byte was a backslash that escapes the next one.
    is_escape: bool,
    /// The lists and objects that contain the current byte, from the outermost.
    open: Vec<Container>,
    /// Number of lists and objects that are open inside the omitted rest of the innermost list of `open`.
    omitted_depth: Option<usize>,
}

/// A list or object that is being copied.
struct Container {
    is_list: bool,
    /// Offset in `out` of the content.
    start: usize,
    /// Offset in `out` after the last complete item of a list.
    items_end: usize,
    /// Maximum number of bytes of a list.
    max_bytes: usize,
}

impl Abridged {
    /// An empty copy, which is full at `max_bytes`.
    pub(super) fn new(max_bytes: usize) -> Abridged {
        Abridged {
            out: Vec::new(),
            max_bytes,
            string: None,
            is_string_omitted: false,
            is_escape: false,
            open: Vec::new(),
            omitted_depth: None,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.out.len() >= self.max_bytes
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// Adds the next bytes of the text.
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let len = match self.string {
                None => self.push_outside(bytes),
                Some(start) => self.push_string(start, bytes),
            };
            bytes = &bytes[len..];
        }
    }

    /// Adds bytes up to the start of the next string. Returns their number.
    fn push_outside(&mut self, bytes: &[u8]) -> usize {
        let quote = memchr::memchr(b'"', bytes);
        for &byte in &bytes[..quote.unwrap_or(bytes.len())] {
            match (&mut self.omitted_depth, byte) {
                (Some(depth), b'{' | b'[') => *depth += 1,
                (Some(0), b'}' | b']') => {
                    self.omitted_depth = None;
                    self.close(byte);
                }
                (Some(depth), b'}' | b']') => *depth -= 1,
                (Some(_), _) => {}
                (None, b'{' | b'[') => self.open(byte),
                (None, b'}' | b']') => self.close(byte),
                (None, b',') => self.end_item(),
                (None, byte) => self.out.push(byte),
            }
        }
        let Some(quote) = quote else { return bytes.len() };
        if self.omitted_depth.is_none() {
            self.out.push(b'"');
        }
        self.string = Some(self.out.len());
        quote + 1
    }

    fn open(&mut self, bracket: u8) {
        self.out.push(bracket);
        let start = self.out.len();
        // The last quarter is reserved for the fields after the list.
        let max_bytes = self.max_bytes.saturating_sub(start) / 4 * 3;
        self.open.push(Container { is_list: bracket == b'[', start, items_end: start, max_bytes });
    }

    fn close(&mut self, bracket: u8) {
        self.out.push(bracket);
        self.open.pop();
    }

    /// Adds a comma. If a list is too long, its rest is omitted instead.
    fn end_item(&mut self) {
        let len = self.out.len();
        if let Some(list) = self.open.last_mut() {
            list.items_end = len;
        }
        let is_long = |container: &Container| {
            container.is_list
                && len - container.start > container.max_bytes
                && container.items_end > container.start
        };
        let inner = self.open.iter().take(MAX_DEPTH).skip(1);
        match inner.into_iter().position(is_long) {
            None => self.out.push(b','),
            Some(at) => {
                let list = at + 1; // the search skips the outermost container
                self.omitted_depth = Some(self.open.len() - (list + 1));
                self.out.truncate(self.open[list].items_end);
                self.open.truncate(list + 1);
            }
        }
    }

    /// Adds bytes of a string up to its end or to the next escape. Returns their number.
    fn push_string(&mut self, start: usize, bytes: &[u8]) -> usize {
        let special = match std::mem::take(&mut self.is_escape) {
            true => None,
            false => Some(memchr::memchr2(b'"', b'\\', bytes)),
        };
        let (len, last) = match special {
            None => (1, None), // an escaped byte
            Some(None) => (bytes.len(), None),
            Some(Some(at)) => (at + 1, Some(bytes[at])),
        };
        self.is_escape = last == Some(b'\\');
        if !self.is_string_omitted && self.omitted_depth.is_none() {
            self.out.extend(&bytes[..len]);
            if self.out.len() - start > MAX_STRING {
                self.out.truncate(start);
                self.out.extend("…\"".as_bytes());
                self.is_string_omitted = true;
            }
        }
        if last == Some(b'"') {
            (self.string, self.is_string_omitted) = (None, false);
        }
        len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The copy of a text. Asserts that chunks of several sizes give equal copies.
    fn abridged(text: &str, max_bytes: usize) -> String {
        let copy = |chunk: usize| {
            let mut copy = Abridged::new(max_bytes);
            text.as_bytes().chunks(chunk).for_each(|bytes| copy.push(bytes));
            String::from_utf8(copy.into_bytes()).unwrap()
        };
        let whole = copy(text.len());
        for chunk in [1, 2, 3, 7, 64] {
            assert_eq!(copy(chunk), whole, "{chunk}");
        }
        whole
    }

    #[test]
    fn long_strings_are_shortened_wherever_a_chunk_ends() {
        let long = "\\\"\\\\é".repeat(2_000);
        let text = format!(r#"{{"a":"short \" é","b":"{long}","c":["{long}",1]}}"#);
        assert_eq!(abridged(&text, 256 << 10), r#"{"a":"short \" é","b":"…","c":["…",1]}"#);
    }

    #[test]
    fn fields_behind_a_long_list_are_kept() {
        let items = r#"{"role":"user","content":["]",{"a":"}"}]},"#.repeat(1_000);
        let text = format!(r#"{{"messages":[{items}1],"tools":[{items}2],"model":"m"}}"#);
        let short = abridged(&text, 1_000);
        assert!(short.len() < 1_000, "{}", short.len());
        let value: serde_json::Value = serde_json::from_str(&short).unwrap();
        assert_eq!(value["model"], "m");
        assert!(value["messages"].as_array().unwrap().len() > 10, "{short}");
        assert!(!value["tools"].as_array().unwrap().is_empty(), "{short}");
        assert_eq!(value["messages"][9]["content"][1]["a"], "}");
    }

    #[test]
    fn a_long_list_inside_the_first_item_is_abridged() {
        let blocks = r#"{"type":"text"},"#.repeat(1_000);
        let text = format!(r#"{{"messages":[{{"content":[{blocks}1],"role":"user"}},2],"b":3}}"#);
        let short = abridged(&text, 1_000);
        let value: serde_json::Value = serde_json::from_str(&short).unwrap();
        assert_eq!((&value["messages"][0]["role"], &value["b"]), (&"user".into(), &3.into()));
    }

    #[test]
    fn the_outermost_list_and_json_lines_are_not_abridged() {
        let list = format!("[{}1]", "1,".repeat(2_000));
        assert_eq!(abridged(&list, 1_000), list);
        let lines = "{\"a\":1,\"b\":[1,2]}\n".repeat(50);
        assert_eq!(abridged(&lines, 2_000), lines);
    }

    #[test]
    fn broken_text_ends_without_a_panic() {
        let deep = "[".repeat(100_000) + &"1,".repeat(1_000);
        for text in ["}", "]]", "{]", "[,,,]", "{\"a\":[1,2,", "\"\\", &deep] {
            let mut copy = Abridged::new(100);
            copy.push(text.as_bytes());
        }
    }
}
