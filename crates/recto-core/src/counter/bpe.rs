//! The exact counters: OpenAI's byte-pair encodings, with the vocabulary in the binary.
//!
//! ```text
//!   text ── pieces.rs ──► pieces ── short_pieces.rs: what this thread has met ──► tokens
//!                                └─ vocabulary.rs: all others ──────────────────┘
//! ```
//!
//! The vocabularies come from the crate `tiktoken`, which the build script asks for them. It could
//! count, too, but would have to be unpacked by every process that counts (0.1 s and 26 MB), and
//! given a whole text, version 4.1.2 reads the rest of it again at every space outside ASCII
//! (`U+00A0`), so that 64 KB of them take a second and 4 MB an hour.

mod kind;
mod pieces;
mod short_pieces;
mod slot;
mod vocabulary;

use std::ops::Range;

use super::Counter;
use pieces::Splitter;
use short_pieces::{Batch, Key, ShortPieces};
use vocabulary::Vocabulary;

/// Counts as OpenAI's tiktoken does, offline.
///
/// What looks like a special token (`<|endoftext|>`) is ordinary text here, because in a
/// message that is what it is.
///
/// The count is exact for every text that real writing, code or data makes. Only where one
/// unbroken piece (one word, one run of spaces, one run of punctuation) is longer than
/// 32 KiB, that piece is counted in parts, and each cut may move the count by a token or two.
///
/// ```
/// use recto_core::{Bpe, Counter};
///
/// assert_eq!(Bpe::O200kBase.count("The side the model reads"), 5);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bpe {
    /// `o200k_base`: GPT-4o and later.
    O200kBase,
    /// `cl100k_base`: GPT-4 and GPT-3.5 Turbo.
    Cl100kBase,
}

impl Bpe {
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

impl Counter for Bpe {
    fn name(&self) -> &str {
        match self {
            Bpe::O200kBase => "o200k_base",
            Bpe::Cl100kBase => "cl100k_base",
        }
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn count(&self, text: &str) -> u64 {
        let (vocabulary, splitter) = (self.vocabulary(), self.splitter());
        let count_piece = |piece: Range<usize>| vocabulary.count(&text.as_bytes()[piece]);
        ShortPieces::lend(|known| {
            let (mut tokens, mut at) = (0, 0);
            let mut batch = Batch::EMPTY;
            while let Some(end) = splitter.piece_end(text, at) {
                match end - at {
                    1 => tokens += 1, // every byte is a token
                    2..=short_pieces::MAX_LEN => {
                        let key = Key::new(text.as_bytes(), at, end, *self as u8);
                        if batch.is_full_with(key, at) {
                            tokens += known.count(&mut batch, count_piece);
                        }
                    }
                    _ => tokens += count_parts(vocabulary, &text[at..end]),
                }
                at = end;
            }
            tokens + known.count(&mut batch, count_piece)
        })
    }
}

/// A longer piece is counted in parts, because merging takes n log n time and 20 bytes of
/// memory a byte. No word, line of dashes or indentation is near it; base64 and hexadecimal
/// are not either, since digits and signs split them.
const MAX_PIECE: usize = 32 * 1024;

fn count_parts(vocabulary: &Vocabulary, piece: &str) -> u64 {
    let mut last = ("", 0);
    let count = |part| {
        // Megabytes of one character are the same part again and again.
        if part != last.0 {
            last = (part, vocabulary.count(part.as_bytes()));
        }
        last.1
    };
    parts(piece).map(count).sum()
}

/// `piece` itself, or its parts if it is too long.
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
    fn no_part_of_an_endless_piece_is_longer_than_the_limit() {
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
    fn an_endless_piece_is_not_merged_whole() {
        // No cut at 32 KiB falls between two `hello`s, so that one more token shows each.
        let text = "hello".repeat(MAX_PIECE);
        for bpe in [Bpe::O200kBase, Bpe::Cl100kBase] {
            let whole = bpe.vocabulary().count(text.as_bytes());
            assert!((whole + 1..=whole + 8).contains(&bpe.count(&text)), "{bpe:?}");
        }
    }
}
