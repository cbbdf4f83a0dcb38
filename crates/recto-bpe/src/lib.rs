//! Exact token counts of OpenAI's byte-pair encodings, offline.
//!
//! ```
//! use recto_bpe::Bpe;
//!
//! assert_eq!(Bpe::O200kBase.count("The side the model reads"), 5);
//! assert_eq!(Bpe::named("cl100k_base"), Some(Bpe::Cl100kBase));
//! ```
//!
//! The crate counts tokens; it does not return them. The vocabularies are hash tables in the binary
//! (about 5 MB). They are read without unpacking, so the first count of a process needs no start-up time.
//!
//! # How a text is counted
//!
//! ```text
//!   text ── pieces.rs ──► pieces ── short_pieces.rs: pieces counted before ──► tokens
//!                                └─ vocabulary.rs: all other pieces ─────────┘
//! ```
//!
//! 1. `pieces.rs` splits the text into pieces (a word, a run of spaces, up to three digits) as the
//!    regular expression of the encoding does. It reads each character a bounded number of times.
//! 2. `short_pieces.rs` is a cache per thread, because most of a text repeats a few thousand words.
//! 3. `vocabulary.rs` merges the bytes of the other pieces into tokens.
//!
//! The build script (`build/`) writes the tables. It takes the vocabularies from the crate `tiktoken`.
//! That crate can count as well, but each process would have to unpack the vocabulary first (0.1 s and
//! 26 MB), and version 4.1.2 takes quadratic time on spaces outside ASCII such as U+00A0: a second for
//! 64 KB of them.
//!
//! # Exactness
//!
//! The counts equal those of tiktoken; tests compare them with `tiktoken-rs`. The exception is a piece
//! longer than 32 KiB (one word, one run of spaces, one run of punctuation), which ordinary text, code
//! and data do not contain. It is counted in parts, and each cut may change the count by a token or two.

mod kind;
mod pieces;
mod short_pieces;
mod slot;
mod vocabulary;

use std::ops::Range;

use pieces::Splitter;
use short_pieces::{Batch, Key, ShortPieces};
use vocabulary::Vocabulary;

/// A byte-pair encoding of OpenAI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Bpe {
    /// `o200k_base`: GPT-4o and later.
    O200kBase,
    /// `cl100k_base`: GPT-4 and GPT-3.5 Turbo.
    Cl100kBase,
}

impl Bpe {
    /// Every encoding of this crate.
    pub const ALL: [Bpe; 2] = [Bpe::O200kBase, Bpe::Cl100kBase];

    /// The encoding with this name.
    pub fn named(name: &str) -> Option<Bpe> {
        Bpe::ALL.into_iter().find(|bpe| bpe.name() == name)
    }

    /// The name of the encoding, such as `o200k_base`.
    pub fn name(self) -> &'static str {
        match self {
            Bpe::O200kBase => "o200k_base",
            Bpe::Cl100kBase => "cl100k_base",
        }
    }

    /// Number of tokens in `text`.
    ///
    /// Text that looks like a special token, such as `<|endoftext|>`, is counted as ordinary text,
    /// because in a message it is ordinary text.
    pub fn count(self, text: &str) -> u64 {
        let (vocabulary, splitter) = (self.vocabulary(), self.splitter());
        let count_piece = |piece: Range<usize>| vocabulary.count(&text.as_bytes()[piece]);
        ShortPieces::with(|cache| {
            let (mut tokens, mut at) = (0, 0);
            let mut batch = Batch::EMPTY;
            while let Some(end) = splitter.piece_end(text, at) {
                match end - at {
                    1 => tokens += 1, // every byte is a token
                    2..=short_pieces::MAX_LEN => {
                        let key = Key::new(text.as_bytes(), at, end, self as u8);
                        let is_full = batch.push(key, at);
                        if is_full {
                            tokens += cache.count(&mut batch, count_piece);
                        }
                    }
                    _ => tokens += count_parts(vocabulary, &text[at..end]),
                }
                at = end;
            }
            tokens + cache.count(&mut batch, count_piece)
        })
    }

    fn vocabulary(self) -> &'static Vocabulary {
        match self {
            Bpe::O200kBase => &vocabulary::O200K_BASE,
            Bpe::Cl100kBase => &vocabulary::CL100K_BASE,
        }
    }

    fn splitter(self) -> Splitter {
        match self {
            Bpe::O200kBase => Splitter::O200kBase,
            Bpe::Cl100kBase => Splitter::Cl100kBase,
        }
    }
}

/// Maximum length of a piece that is merged as a whole, in bytes; a longer piece is counted in parts,
/// because merging takes n log n time and 20 bytes of memory per byte. Words, lines of dashes and
/// indentation are far shorter, and so are base64 and hexadecimal, since digits and signs split them.
const MAX_PIECE: usize = 32 * 1024;

fn count_parts(vocabulary: &Vocabulary, piece: &str) -> u64 {
    let mut last = ("", 0);
    let count = |part| {
        // The parts of a long run of one character are equal.
        if part != last.0 {
            last = (part, vocabulary.count(part.as_bytes()));
        }
        last.1
    };
    parts(piece).map(count).sum()
}

/// The parts of a piece, each of at most [`MAX_PIECE`] bytes. A short piece is one part.
fn parts(piece: &str) -> impl Iterator<Item = &str> {
    let mut rest = piece;
    std::iter::from_fn(move || {
        let (part, after) = rest.split_at(rest.floor_char_boundary(MAX_PIECE));
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_piece_by_piece_gives_the_count_of_the_whole() {
        let samples = [
            "It's we'LL they'Ve 'ſ 12345 x²³ naïve CamelCaseXMLHttp  \n\n  \r\n\t end ",
            "fn main() {\n    println!(\"{}\", 1_000);\n}\n\n// ---\n/\n",
            "\u{a0}! \u{3000}中文，。 \u{3000} a \u{2003}\u{2003}1 \u{85}x\u{2028}\n\u{a0}",
            "e\u{301}\u{301}A\u{301} \u{a0}\u{301}! 👩‍👩‍👧‍👦 ǅ ʰ ª 中AB ١٢٣٤ Ⅷ \0\0",
        ];
        for bpe in [Bpe::O200kBase, Bpe::Cl100kBase] {
            for text in samples {
                let whole = match bpe {
                    Bpe::O200kBase => tiktoken_rs::o200k_base_singleton(),
                    Bpe::Cl100kBase => tiktoken_rs::cl100k_base_singleton(),
                };
                let whole = whole.encode_ordinary(text).len() as u64;
                assert_eq!(bpe.count(text), whole, "{bpe:?} {text:?}");
                let pieces: Vec<&str> = bpe.splitter().pieces(text).collect();
                assert_eq!(pieces.concat(), text);
            }
        }
    }

    #[test]
    fn no_part_of_a_long_piece_is_longer_than_the_limit() {
        let units = ["a", " ", "\n", "\r\n", "😀", "ab", "=", "/", "e\u{301}", "中", " \u{3000}"];
        for bpe in [Bpe::O200kBase, Bpe::Cl100kBase] {
            for unit in units {
                let text = unit.repeat(5 * MAX_PIECE / unit.len());
                let splitter = bpe.splitter();
                let pieces = splitter.pieces(&text);
                let all: Vec<&str> = pieces.flat_map(parts).collect();
                assert!(all.iter().all(|part| part.len() <= MAX_PIECE), "{unit:?}");
                assert_eq!(all.concat(), text);
            }
        }
    }

    #[test]
    fn a_long_piece_is_counted_in_parts() {
        // No cut at 32 KiB falls between two `hello`s, so each cut adds a token.
        let text = "hello".repeat(MAX_PIECE);
        for bpe in [Bpe::O200kBase, Bpe::Cl100kBase] {
            let whole = bpe.vocabulary().count(text.as_bytes());
            assert!((whole + 1..=whole + 8).contains(&bpe.count(&text)), "{bpe:?}");
        }
    }
}
