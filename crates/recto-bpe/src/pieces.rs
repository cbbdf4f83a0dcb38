//! Splits a text into pieces. A byte-pair encoding merges bytes within a piece, never across pieces.
//!
//! A piece is a word with the space before it, a run of spaces, up to three digits, or a run of signs
//! (punctuation and symbols).
//! The encodings define pieces by a regular expression. This module is a hand-written scanner for the
//! same pieces that reads each character at most a few times, for every text.
//!
//! The number of tokens of a piece does not depend on the text around it, so each piece is counted and
//! cached on its own.

use crate::kind::*;

const LETTER: u8 = UPPER | LOWER | CASELESS;
/// A character of these kinds before the letters of a word is part of the word: `[^\r\n\p{L}\p{N}]`.
const LEAD: u8 = MARK | SPACE | OTHER;
/// `[^\s\p{L}\p{N}]`
const SIGN: u8 = MARK | OTHER;
/// The two halves of a word in `o200k_base`, the head and the body: `CamelCase` is two words, `IT` is one.
const HEAD: u8 = UPPER | CASELESS | MARK;
const BODY: u8 = LOWER | CASELESS | MARK;

/// For each block of characters, the index of its run in [`RUNS`]. The build script writes both tables.
static BLOCKS: &[[u8; 2]] = include_bytes!(concat!(env!("OUT_DIR"), "/kinds.blocks")).as_chunks().0;
/// The distinct runs: the kinds of the characters of a block.
static RUNS: &[[u8; BLOCK]] = include_bytes!(concat!(env!("OUT_DIR"), "/kinds.runs")).as_chunks().0;

/// Splits texts by the rules of one encoding.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Splitter {
    O200kBase,
    Cl100kBase,
}

impl Splitter {
    /// The pieces of `text`, in order. Concatenated, they are the text.
    #[cfg(test)]
    pub(crate) fn pieces<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = at;
            at = self.piece_end(text, start)?;
            Some(&text[start..at])
        })
    }

    /// The end of the piece that starts at `at`; `None` at the end of the text.
    #[inline]
    pub(crate) fn piece_end(&self, text: &str, at: usize) -> Option<usize> {
        match self {
            Splitter::O200kBase => self.ascii_piece_end(text.as_bytes(), at),
            Splitter::Cl100kBase => None,
        }
        .or_else(|| self.any_piece_end(text, at))
    }

    fn any_piece_end(&self, text: &str, at: usize) -> Option<usize> {
        let (kind, len) = self.char_at(text, at)?;
        let word = match self {
            Splitter::O200kBase => self.cased_word(text, at, kind, len),
            Splitter::Cl100kBase => self.word(text, at, kind, len),
        };
        let end = word
            .or_else(|| self.number(text, at, kind))
            .or_else(|| self.signs(text, at))
            .unwrap_or_else(|| self.spaces(text, at));
        Some(end)
    }

    /// `o200k_base`: a fast path for nearly all pieces. It finds the end of a word, a number or signs in
    /// ASCII, if ASCII follows. `None` if the piece may be of another kind.
    #[inline]
    fn ascii_piece_end(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let kind = |at: usize| RUNS[0][..128].get(usize::from(*bytes.get(at)?)).copied();
        let first = kind(at)?;
        let second = kind(at + 1)?;
        let end = if first & LETTER != 0 || first & LEAD != 0 && second & LETTER != 0 {
            let mut head = if first & LETTER != 0 { at } else { at + 1 };
            while kind(head)? == UPPER {
                head += 1;
            }
            let end = lower_end(bytes, head);
            match bytes.get(end)? {
                b'a'..=b'z' | b'\'' => return None,
                _ => end,
            }
        } else if first == NUMBER {
            match (second, kind(at + 2)?) {
                (NUMBER, NUMBER) => return Some(at + 3),
                (NUMBER, _) => return Some(at + 2),
                _ => return Some(at + 1),
            }
        } else if first == OTHER || bytes[at] == b' ' && second == OTHER {
            let mut end = at + 1;
            while kind(end)? == OTHER {
                end += 1;
            }
            while matches!(bytes.get(end)?, b'\r' | b'\n' | b'/') {
                end += 1;
            }
            end
        } else {
            return None;
        };
        bytes[end].is_ascii().then_some(end)
    }

    /// `o200k_base`: a word ends where upper case follows lower case.
    #[inline]
    fn cased_word(&self, text: &str, at: usize, kind: u8, len: usize) -> Option<usize> {
        // In the order of the branches of the pattern: words with a body before words without, and each first
        // with a lead, then without.
        let is_letter =
            |at| self.char_at(text, at).is_some_and(|(kind, _)| kind & (LETTER | MARK) != 0);
        let lead = (kind & LEAD != 0 && is_letter(at + len)).then_some(at + len);
        let bare = (kind & (LETTER | MARK) != 0).then_some(at);
        let body = |from| self.head_and_body(text, from);
        let head = |from| Some(self.run(text, from, HEAD)).filter(|&end| end > from);
        let end = lead
            .and_then(body)
            .or_else(|| bare.and_then(body))
            .or_else(|| lead.and_then(head))
            .or_else(|| bare.and_then(head))?;
        Some(contraction_end(text, end).unwrap_or(end))
    }

    /// The end of a head of any length and a body of at least one character. If no lower case follows the
    /// head, the word ends after the last character of the head that may also be in a body: `中文AB` ends
    /// after `中文`.
    #[inline]
    fn head_and_body(&self, text: &str, from: usize) -> Option<usize> {
        let (mut at, mut last_body_end) = (from, None);
        while let Some((kind, len)) = self.char_at(text, at)
            && kind & HEAD != 0
        {
            at += len;
            if kind & BODY != 0 {
                last_body_end = Some(at);
            }
        }
        let end = self.run(text, lower_end(text.as_bytes(), at), BODY);
        if end > at { Some(end) } else { last_body_end }
    }

    /// `cl100k_base`: a contraction, or letters of any case.
    #[inline]
    fn word(&self, text: &str, at: usize, kind: u8, len: usize) -> Option<usize> {
        let from = if kind & LEAD != 0 { at + len } else { at };
        let letters = || {
            let end = self.run(text, lower_end(text.as_bytes(), from), LETTER);
            (end > from).then_some(end)
        };
        contraction_end(text, at).or_else(letters)
    }

    #[inline]
    fn number(&self, text: &str, at: usize, kind: u8) -> Option<usize> {
        let mut end = at;
        if kind & NUMBER == 0 {
            return None;
        }
        for _ in 0..3 {
            match self.char_at(text, end) {
                Some((NUMBER, len)) => end += len,
                _ => break,
            }
        }
        Some(end)
    }

    /// An optional space, signs, and the line ends after them.
    #[inline]
    fn signs(&self, text: &str, at: usize) -> Option<usize> {
        let bytes = text.as_bytes();
        let from = if bytes[at] == b' ' { at + 1 } else { at };
        let end = self.run(text, from, SIGN);
        if end == from {
            return None;
        }
        let in_tail = |byte: &&u8| match byte {
            b'\r' | b'\n' => true,
            b'/' => matches!(self, Splitter::O200kBase),
            _ => false,
        };
        Some(end + bytes[end..].iter().take_while(in_tail).count())
    }

    /// White space up to its last line end. Without a line end: all but the last character, which starts the
    /// next piece; or all of it, if it is one character or ends the text.
    #[inline]
    fn spaces(&self, text: &str, at: usize) -> usize {
        let (mut last, mut end, mut after_line) = (at, at, None);
        while let Some((kind, len)) = self.char_at(text, end)
            && kind & (SPACE | LINE_END) != 0
        {
            last = end;
            end += len;
            if kind == LINE_END {
                after_line = Some(end);
            }
        }
        let leaves_last = last > at && end < text.len();
        after_line.unwrap_or(if leaves_last { last } else { end })
    }

    /// The end of the run of characters of these kinds that starts at `at`.
    #[inline]
    fn run(&self, text: &str, mut at: usize, kinds: u8) -> usize {
        while let Some((kind, len)) = self.char_at(text, at)
            && kind & kinds != 0
        {
            at += len;
        }
        at
    }

    /// The kind and length of the character that starts at byte `at`.
    #[inline]
    fn char_at(&self, text: &str, at: usize) -> Option<(u8, usize)> {
        #[cfg(test)]
        tests::READS.set(tests::READS.get() + 1);
        let byte = usize::from(*text.as_bytes().get(at)?);
        if byte < 128 {
            return Some((RUNS[0][byte], 1));
        }
        let char = text[at..].chars().next()?;
        let (block, index) = (char as usize / BLOCK, char as usize % BLOCK);
        let run = u16::from_le_bytes(BLOCKS[block]);
        Some((RUNS[usize::from(run)][index], char.len_utf8()))
    }
}

/// The end of the run of `a` to `z` that starts at `at`, eight bytes at a time: words are short, and
/// the mispredicted end of a byte-wise loop costs more than the loop.
#[inline]
fn lower_end(bytes: &[u8], mut at: usize) -> usize {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    const TOP: u64 = EACH << 7;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let chunk = u64::from_le_bytes(*chunk);
        // The sums set the top bit of each byte that is at least `a`, or greater than `z`.
        let low = chunk & !TOP;
        let from_a = low + EACH * (128 - b'a' as u64);
        let past_z = low + EACH * (127 - b'z' as u64);
        let others = !(from_a & !past_z & !chunk) & TOP;
        if others != 0 {
            return at + others.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at
}

/// The end of the contraction at `at`, if there is one: `'s`, `'t`, `'re`, `'ve`, `'m`, `'ll` or `'d`,
/// in any case.
#[inline]
fn contraction_end(text: &str, at: usize) -> Option<usize> {
    let rest = text.as_bytes()[at..].strip_prefix(b"'")?;
    let len = match rest {
        [b's' | b'S' | b't' | b'T' | b'm' | b'M' | b'd' | b'D', ..] => 2,
        [b'r' | b'R' | b'v' | b'V', b'e' | b'E', ..] | [b'l' | b'L', b'l' | b'L', ..] => 3,
        // ſ, the long s, is a case variant of s.
        [0xC5, 0xBF, ..] => 3,
        _ => return None,
    };
    Some(at + len)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        /// Number of characters that this thread has read.
        pub(crate) static READS: Cell<usize> = const { Cell::new(0) };
    }

    fn split(splitter: &Splitter, text: &str) -> String {
        splitter.pieces(text).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn o200k_base_splits_words_by_case() {
        let splitter = Splitter::O200kBase;
        let cases = [
            ("the CamelCaseXMLHttp IT", "the| Camel|Case|XMLHttp| IT"),
            ("It's WE'LL x'sy 'tis", "It's| WE'LL| x's|y| '|tis"),
            ("中文AB中CD x", "中文AB中|CD| x"),
            ("a,b(c);\n//\n/\nd", "a|,b|(c|);\n//\n/\n|d"),
            ("12345 6", "123|45| |6"),
            ("  x \n\n  y   ", " | x| \n\n| | y|   "),
            ("\u{a0}\u{a0}x\u{a0}!", "\u{a0}|\u{a0}x|\u{a0}|!"),
            ("e\u{301}A\u{301}! \u{301}", "e\u{301}|A\u{301}|!| \u{301}"),
        ];
        for (text, pieces) in cases {
            assert_eq!(split(&splitter, text), pieces);
        }
    }

    #[test]
    fn cl100k_base_splits_contractions_off() {
        let splitter = Splitter::Cl100kBase;
        let cases = [
            ("the CamelCaseXMLHttp IT", "the| CamelCaseXMLHttp| IT"),
            ("It's WE'LL x'sy 'tis", "It|'s| WE|'LL| x|'s|y| '|tis"),
            ("a,b(c);\n//\n/\nd", "a|,b|(c|);\n|//\n|/\n|d"),
            ("e\u{301}A", "e|\u{301}A"),
        ];
        for (text, pieces) in cases {
            assert_eq!(split(&splitter, text), pieces);
        }
    }

    proptest::proptest! {
        #[test]
        fn the_fast_path_finds_the_same_ends(
            parts in proptest::collection::vec(
                proptest::sample::select(vec![
                    "a", "word", "B", "XML", " ", "  ", "\t", "\n", "\r\n", "1", "234", "'", "'s",
                    "'re", "/", "//", "{\"", "_", ",", "-", "\0", "\u{7f}", "é", "中", "\u{301}", "²",
                    "longer", "words",
                ]),
                0..24,
            ),
        ) {
            let splitter = Splitter::O200kBase;
            let text = parts.concat();
            let mut at = 0;
            while let Some(end) = splitter.any_piece_end(&text, at) {
                let plain = splitter.ascii_piece_end(text.as_bytes(), at);
                assert!(plain.is_none_or(|plain| plain == end), "{text:?} at {at}");
                at = end;
            }
        }
    }

    #[test]
    fn no_text_makes_the_scan_read_a_character_many_times() {
        // Texts in which a branch of the pattern reads far ahead and then backtracks.
        let cases = [
            ("", "a", ""),
            ("", "A", ""),
            ("中", "A", ""),
            ("", "中A", ""),
            ("\u{301}", "A", "!"),
            ("", "\u{301}A", "\u{301}"),
            ("!", "A中", "A"),
            ("\n", " ", ""),
            ("", "\n ", "x"),
            (" ", "\u{3000}", "x"),
            ("", "\u{a0}! ", ""),
            ("", "!\n", "/"),
            ("", "'", "s"),
            ("", "1", "²"),
        ];
        for splitter in [Splitter::O200kBase, Splitter::Cl100kBase] {
            for (head, unit, tail) in cases {
                let text = format!("{head}{}{tail}", unit.repeat(10_000));
                let before = READS.get();
                assert_eq!(splitter.pieces(&text).map(str::len).sum::<usize>(), text.len());
                let reads = READS.get() - before;
                assert!(reads <= 8 * text.chars().count() + 100, "{head:?} {unit:?}: {reads}");
            }
        }
    }

    #[test]
    fn a_run_of_lower_case_ends_at_the_first_other_byte() {
        for other in (0..=255).filter(|byte: &u8| !byte.is_ascii_lowercase()) {
            for len in 0..20 {
                let mut bytes = vec![b'a' + len as u8; len];
                bytes.push(other);
                bytes.extend([b'z'; 8]);
                assert_eq!(lower_end(&bytes, 0), len, "{other}");
            }
        }
    }
}
