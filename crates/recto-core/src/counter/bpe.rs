//! The exact counters: OpenAI's byte-pair encodings, with the vocabulary in the binary.
//! A vocabulary is unpacked once a process, by the first count that needs it.
//!
//! `tiktoken` knows the vocabulary and merges; we split (`pieces.rs`) and remember what short
//! pieces count (`short_pieces.rs`). That is twice as fast, and it keeps hostile text cheap:
//! given a whole text, `tiktoken` 4.1.2 reads the rest of it again at every space outside
//! ASCII (`U+00A0`), so that 64 KB of them take a second and 4 MB an hour.

use std::ops::Range;
use std::sync::OnceLock;

use tiktoken::{CoreBpe, encoding};

use super::Counter;
use super::pieces::Splitter;
use super::short_pieces::{self, Batch, Key, ShortPieces};

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

/// What the first count of an encoding unpacks.
struct Encoding {
    vocabulary: CoreBpe,
    splitter: Splitter,
}

static O200K_BASE: OnceLock<Encoding> = OnceLock::new();
static CL100K_BASE: OnceLock<Encoding> = OnceLock::new();

impl Bpe {
    /// Whether this process has unpacked the vocabulary: false until the first count.
    ///
    /// ```standalone_crate
    /// use recto_core::{Bpe, Counter};
    ///
    /// let counter = <dyn Counter>::named("o200k_base").unwrap();
    /// assert!(!Bpe::O200kBase.is_loaded());
    ///
    /// assert_eq!(counter.count("hello world"), 2);
    /// assert!(Bpe::O200kBase.is_loaded());
    /// assert!(!Bpe::Cl100kBase.is_loaded());
    /// ```
    pub fn is_loaded(self) -> bool {
        self.cell().get().is_some()
    }

    fn cell(self) -> &'static OnceLock<Encoding> {
        match self {
            Bpe::O200kBase => &O200K_BASE,
            Bpe::Cl100kBase => &CL100K_BASE,
        }
    }

    fn encoding(self) -> &'static Encoding {
        self.cell().get_or_init(|| match self {
            Bpe::O200kBase => {
                Encoding { vocabulary: encoding::o200k_base(), splitter: Splitter::o200k_base() }
            }
            Bpe::Cl100kBase => {
                Encoding { vocabulary: encoding::cl100k_base(), splitter: Splitter::cl100k_base() }
            }
        })
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
        let Encoding { vocabulary, splitter } = self.encoding();
        let count_piece = |piece: Range<usize>| vocabulary.count(&text[piece]) as u64;
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

/// A longer piece is counted in parts, because merging takes n log n time and 30 bytes of
/// memory a byte. No word, line of dashes or indentation is near it; base64 and hexadecimal
/// are not either, since digits and signs split them.
const MAX_PIECE: usize = 32 * 1024;

fn count_parts(vocabulary: &CoreBpe, piece: &str) -> u64 {
    let mut last = ("", 0);
    let count = |part| {
        // Megabytes of one character are the same part again and again.
        if part != last.0 {
            last = (part, vocabulary.count(part) as u64);
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
                let whole = bpe.encoding().vocabulary.count(text) as u64;
                assert_eq!(bpe.count(text), whole, "{bpe:?} {text:?}");
                let pieces: Vec<&str> = bpe.encoding().splitter.pieces(text).collect();
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
                let pieces = bpe.encoding().splitter.pieces(&text);
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
            let whole = bpe.encoding().vocabulary.count(&text) as u64;
            assert!((whole + 1..=whole + 8).contains(&bpe.count(&text)), "{bpe:?}");
        }
    }
}
