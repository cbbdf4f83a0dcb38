//! The pieces of a text, for the few texts that are dear to count whole.
//! A byte-pair encoding first splits a text into pieces (a word with the space before it,
//! a run of spaces, up to three digits) and then merges the bytes within each. `tiktoken`
//! does both fast, except for two kinds of text, which we split ourselves:
//!
//! - a piece of megabytes: merging takes n log n time and 30 bytes of memory a byte;
//! - a space outside ASCII (`U+00A0`, `U+3000`): at each one, `tiktoken` 4.1.2 reads the
//!   whole rest of the text again, so 64 KB of them take a second and 4 MB an hour.
//!
//! A piece counted alone has as many tokens as it has within its text.

use regex::Regex;

/// A longer piece is counted in parts. No word, line of dashes or indentation is near it;
/// base64 and hexadecimal are not either, since digits and signs split them.
const MAX_PIECE: usize = 32 * 1024;

/// Below this many bytes the rest of a text is read again faster than it is split.
const SHORT: usize = 1024;

/// Whether counting `text` whole takes time in proportion to its length.
pub(super) fn are_cheap(text: &str) -> bool {
    text.len() <= SHORT || !(has_wide_space(text) || may_have_long_piece(text))
}

/// Whether there is white space outside ASCII.
fn has_wide_space(text: &str) -> bool {
    // The first bytes of all such characters: looking at bytes is faster than at characters.
    let starts = |byte: u8| matches!(byte, 0xC2 | 0xE1 | 0xE2 | 0xE3);
    let at = |i: usize| text[i..].chars().next().is_some_and(char::is_whitespace);
    !text.is_ascii() && text.bytes().enumerate().any(|(i, byte)| starts(byte) && at(i))
}

/// False only if no piece is longer than [`MAX_PIECE`].
/// Looks for a place that no long piece spans in every stretch of that length, from behind,
/// so that in common text a few bytes of each stretch are read.
fn may_have_long_piece(text: &str) -> bool {
    let mut rest = text.as_bytes();
    while let Some(stretch) = rest.get(..=MAX_PIECE) {
        match stretch.windows(2).rposition(|pair| splits(pair[0], pair[1])) {
            Some(i) => rest = &rest[i + 1..],
            None => return true,
        }
    }
    false
}

/// Whether both encodings split between these bytes, give or take a short ending such as `'s`.
fn splits(before: u8, after: u8) -> bool {
    let after_word =
        before.is_ascii_alphanumeric() && after.is_ascii() && !after.is_ascii_alphanumeric();
    // A slash may belong to the line ends before it.
    let after_line =
        before == b'\n' && after != b'/' && !after.is_ascii_whitespace() && after != 0x0B;
    after_word || after_line || after.is_ascii_digit()
}

/// `piece` itself, or its parts if it is too long.
pub(super) fn parts(piece: &str) -> impl Iterator<Item = &str> {
    let mut rest = piece;
    std::iter::from_fn(move || {
        let (part, after) = rest.split_at(rest.floor_char_boundary(MAX_PIECE));
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}

/// Splits a text as an encoding does.
#[derive(Debug)]
pub(super) struct Splitter {
    pattern: Regex,
}

// The published patterns, without `\s+(?!\S)` before their last branch: it would need a
// backtracking engine. `piece_len` does what it does.
const O200K_BASE: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+",
);
const CL100K_BASE: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+",
);

impl Splitter {
    pub(super) fn o200k_base() -> Self {
        Self::new(O200K_BASE)
    }

    pub(super) fn cl100k_base() -> Self {
        Self::new(CL100K_BASE)
    }

    fn new(pattern: &str) -> Self {
        Splitter { pattern: Regex::new(pattern).expect("the patterns are constants that compile") }
    }

    /// The pieces of `text`, in order; together they are the text.
    pub(super) fn pieces<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        let mut at = 0;
        std::iter::from_fn(move || {
            // Every character fits some branch, so a match starts where the last one ended.
            let found = self.pattern.find_at(text, at)?;
            let start = at;
            at = found.end() - given_back(found.as_str(), &text[found.end()..]);
            Some(&text[start..at])
        })
    }
}

/// How many bytes at the end of a match belong to the next piece: a run of spaces gives its
/// last one to the word after it. A run that ends in a line break does not.
fn given_back(found: &str, rest: &str) -> usize {
    match found.chars().next_back() {
        Some('\r' | '\n') | None => 0,
        Some(last) if !last.is_whitespace() || last.len_utf8() == found.len() => 0,
        Some(last) => {
            if rest.is_empty() {
                0
            } else {
                last.len_utf8()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: [&str; 12] =
        ["a", " ", "\n", "\r\n", "😀", "ab", "=", "/", "\n/", "e\u{301}", "中", " \u{3000}"];

    #[test]
    fn no_part_is_longer_than_the_limit() {
        for splitter in [Splitter::o200k_base(), Splitter::cl100k_base()] {
            for unit in HOSTILE {
                let text = unit.repeat(5 * MAX_PIECE / unit.len());
                assert!(!are_cheap(&text), "{unit:?}");
                let all: Vec<&str> = splitter.pieces(&text).flat_map(parts).collect();
                assert!(all.iter().all(|part| part.len() <= MAX_PIECE), "{unit:?}");
                assert_eq!(all.concat(), text);
            }
        }
    }

    #[test]
    fn a_long_run_is_found_wherever_it_stands() {
        let prose = "A line of prose, 80 characters or so.\n".repeat(5_000);
        assert!(are_cheap(&prose));
        for unit in HOSTILE {
            let run = unit.repeat(3 * MAX_PIECE / unit.len());
            assert!(!are_cheap(&format!("{run}{prose}")), "{unit:?} first");
            assert!(!are_cheap(&format!("{prose}{run}{prose}")), "{unit:?} within");
            assert!(!are_cheap(&format!("{prose}{run}")), "{unit:?} last");
        }
    }

    #[test]
    fn common_large_texts_are_counted_whole() {
        let base64 = "TWFuIGlzIGRpc3Rpbmd1aXNoZWQsIG5vdCBvbmx5".repeat(4_000);
        let minified = "function(e,t){return e&&t.n(e)}".repeat(4_000);
        let chinese = "版本一旦写入，便不再改变；视图只是它的一个投影。\n".repeat(2_000);
        for text in [base64, minified, chinese] {
            assert!(are_cheap(&text), "{}", &text[..30]);
        }
    }

    #[test]
    fn every_wide_space_is_seen() {
        for space in ('\u{80}'..=char::MAX).filter(|c| c.is_whitespace()) {
            assert!(has_wide_space(&format!("a{space}b")), "{space:?}");
        }
        assert!(!has_wide_space("naïve Âé 中文。ぁ“x” \t\r\n\u{200b}"));
    }
}
