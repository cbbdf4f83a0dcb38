//! Checks whether a text is JSON, and measures its depth, in one pass.
//!
//! The check accepts exactly what serde_json accepts. For a text that is not accepted, serde_json
//! supplies the reason.

use crate::scan;

/// The result of a successful check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checked {
    /// Maximum nesting of lists and objects; 0 for other values.
    pub depth: usize,
}

/// Checks that `bytes`, which must be UTF-8, are one JSON value without space around it.
pub(crate) fn check(bytes: &[u8]) -> Option<Checked> {
    let mut open = Open::default();
    let mut deepest = 0;
    let mut at = 0;
    loop {
        // A value starts at `at`.
        at = match bytes.get(at)? {
            b'"' => scan::end_of_checked_string(bytes, at + 1)?,
            b'{' => {
                open.push(true);
                deepest = deepest.max(open.depth);
                at = skip_space(bytes, at + 1);
                match bytes.get(at)? {
                    b'}' => {
                        open.pop();
                        at + 1
                    }
                    _ => {
                        at = skip_key(bytes, at)?;
                        continue;
                    }
                }
            }
            b'[' => {
                open.push(false);
                deepest = deepest.max(open.depth);
                at = skip_space(bytes, at + 1);
                match bytes.get(at)? {
                    b']' => {
                        open.pop();
                        at + 1
                    }
                    _ => continue,
                }
            }
            b't' => literal(bytes, at, b"true")?,
            b'f' => literal(bytes, at, b"false")?,
            b'n' => literal(bytes, at, b"null")?,
            _ => number(bytes, at)?,
        };
        // A value has ended: another value follows, or the end of its list or object.
        loop {
            if open.depth == 0 {
                return (at == bytes.len()).then_some(Checked { depth: deepest });
            }
            at = skip_space(bytes, at);
            match (bytes.get(at)?, open.is_object) {
                (b',', true) => {
                    at = skip_key(bytes, skip_space(bytes, at + 1))?;
                    break;
                }
                (b',', false) => {
                    at = skip_space(bytes, at + 1);
                    break;
                }
                (b'}', true) | (b']', false) => {
                    open.pop();
                    at += 1;
                }
                _ => return None,
            }
        }
    }
}

/// The open lists and objects, one bit per level. So deep nesting needs no recursion.
#[derive(Default)]
struct Open {
    depth: usize,
    /// Whether the innermost one is an object.
    is_object: bool,
    /// The 64 levels around the innermost one, each as one bit: whether it is an object. The innermost of
    /// them is the lowest bit.
    enclosing: u64,
    /// The levels outside `enclosing`.
    outer: Vec<u64>,
}

impl Open {
    #[inline(always)]
    fn push(&mut self, is_object: bool) {
        if self.depth.is_multiple_of(64) && self.depth > 0 {
            self.outer.push(self.enclosing);
        }
        self.enclosing = self.enclosing << 1 | u64::from(self.is_object);
        self.is_object = is_object;
        self.depth += 1;
    }

    #[inline(always)]
    fn pop(&mut self) {
        self.depth -= 1;
        self.is_object = self.enclosing & 1 == 1;
        self.enclosing >>= 1;
        if self.depth.is_multiple_of(64) && self.depth > 0 {
            self.enclosing = self.outer.pop().unwrap_or_default();
        }
    }
}

#[inline(always)]
fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Skips a key, its colon and the space around it. Returns the start of its value.
#[inline(always)]
fn skip_key(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let colon = skip_space(bytes, scan::end_of_checked_string(bytes, at + 1)?);
    (bytes.get(colon) == Some(&b':')).then(|| skip_space(bytes, colon + 1))
}

fn literal(bytes: &[u8], at: usize, literal: &[u8]) -> Option<usize> {
    bytes[at..].starts_with(literal).then_some(at + literal.len())
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let digits = |at: usize| {
        let count = bytes[at.min(bytes.len())..].iter().take_while(|byte| byte.is_ascii_digit());
        at + count.count()
    };
    let some_digits = |at: usize| Some(digits(at)).filter(|end| *end > at);
    let start = if bytes.get(at) == Some(&b'-') { at + 1 } else { at };
    let mut end = match bytes.get(start)? {
        b'0' => start + 1,
        _ => some_digits(start)?,
    };
    if bytes.get(end) == Some(&b'.') {
        end = some_digits(end + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(end) {
        let has_sign = matches!(bytes.get(end + 1), Some(b'+' | b'-'));
        end = some_digits(end + 1 + usize::from(has_sign))?;
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    proptest! {
        /// Texts made of fragments of JSON, alone and inside a string.
        #[test]
        fn it_accepts_what_serde_json_accepts_of_any_text(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "{", "}", "[", "]", ",", ":", "\"", "\\", "\\\"", "\\u00e9", "\\n", "\"a\":", "\"a\"", "1", "-",
                "0.5", "e9", "true", "null", " ", "\n", "é", "\u{1}", "[{\"a\":[", "]}]",
            ]), 0..40),
            pad in 0..80_usize,
        ) {
            agrees(&pieces.concat());
            agrees(&format!("[\"{}{}\"]", "x".repeat(pad), pieces.concat()));
        }
    }

    fn agrees(text: &str) {
        let expected = serde_json::from_str::<&RawValue>(text).is_ok();
        let text = crate::trimmed(text);
        assert_eq!(check(text.as_bytes()).is_some(), expected, "{text:?}");
    }

    #[test]
    fn it_accepts_what_serde_json_accepts() {
        let long = "x".repeat(70);
        let wholes = [
            "",
            " ",
            "1",
            "-",
            "-0",
            "01",
            "0.",
            "0.5",
            "1e",
            "1e+",
            "1e+5",
            "1E-5",
            ".5",
            "+1",
            "1.e1",
            "-a",
            "true",
            "tru",
            "nul",
            "null ",
            "[",
            "]",
            "[]",
            "[ ]",
            "[,]",
            "[1,]",
            "[1 2]",
            "[1,2]",
            "[1}",
            "{",
            "{}",
            "{ }",
            "{]",
            "{,}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1}"#,
            r#"{"a" : 1 , "b" : [ ] }"#,
            r#"{"a":1,}"#,
            r#"{a:1}"#,
            r#"{"a":1 "b":2}"#,
            r#"{"a",1}"#,
            r#"["a":1]"#,
            r#""a"#,
            "\"a\nb\"",
            "\"\u{7f}é\"",
            r#""\x""#,
            r#""\u12""#,
            r#""\u12g4""#,
            r#""\ud800""#,
            r#""\/\b\f""#,
            "1 1",
            "{} {}",
            "nulltrue",
            "[[[[]]]]",
            "1e400",
            "\u{a0}1",
            "[1\u{c}]",
        ];
        wholes.iter().for_each(|text| agrees(text));
        // Escapes, control characters and quotes before and after the boundary of two blocks of 64 bytes,
        // and in keys.
        for inner in
            [r"\x", r"\u12", r"\u12g4", r"\ud800", "\n", "\u{1f}", r"\\", r"\", "\\\"", "é"]
        {
            for pad in 0..70 {
                agrees(&format!("\"{long}{}{inner}\"", &long[..pad]));
                agrees(&format!("[\"{long}{}{inner}\",1]", &long[..pad]));
                agrees(&format!("{{\"{}{inner}\":{{}}}}", &long[..pad]));
            }
        }
    }

    #[test]
    fn the_depth_is_measured_and_has_no_limit() {
        let depth = |text: &str| check(text.as_bytes()).map(|checked| checked.depth);
        assert_eq!(depth("1"), Some(0));
        assert_eq!(depth(r#"{"a":"[[[[\"{","b":[1],"c":{}}"#), Some(2));
        for levels in [63, 64, 65, 66, 128, 129, 200, 100_000] {
            let text = "[".repeat(levels) + &"]".repeat(levels);
            assert_eq!(depth(&text), Some(levels));
            let text = r#"[{"a":"#.repeat(levels) + "1" + &"}]".repeat(levels);
            assert_eq!(depth(&text), Some(2 * levels));
            let wrong = r#"[{"a":"#.repeat(levels) + "1" + &"}]".repeat(levels - 1) + "]}";
            assert_eq!(depth(&wrong), None);
        }
    }
}
