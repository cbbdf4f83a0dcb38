//! The exact counters: OpenAI's byte-pair encodings, with the vocabulary in the binary.
//! A vocabulary is unpacked once a process, by the first count that needs it.
//! `pieces.rs` keeps hostile text from costing more than its share.

use std::sync::OnceLock;

use tiktoken::{CoreBpe, encoding};

use super::Counter;
use super::pieces::{self, Splitter};

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
struct Loaded {
    core: OnceLock<CoreBpe>,
    // Apart, because almost no text needs it.
    splitter: OnceLock<Splitter>,
}

static O200K_BASE: Loaded = Loaded::nothing();
static CL100K_BASE: Loaded = Loaded::nothing();

impl Loaded {
    const fn nothing() -> Self {
        Loaded { core: OnceLock::new(), splitter: OnceLock::new() }
    }
}

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
        self.loaded().core.get().is_some()
    }

    fn loaded(self) -> &'static Loaded {
        match self {
            Bpe::O200kBase => &O200K_BASE,
            Bpe::Cl100kBase => &CL100K_BASE,
        }
    }

    fn core(self) -> &'static CoreBpe {
        self.loaded().core.get_or_init(match self {
            Bpe::O200kBase => encoding::o200k_base,
            Bpe::Cl100kBase => encoding::cl100k_base,
        })
    }

    fn splitter(self) -> &'static Splitter {
        self.loaded().splitter.get_or_init(match self {
            Bpe::O200kBase => Splitter::o200k_base,
            Bpe::Cl100kBase => Splitter::cl100k_base,
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

    fn count(&self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        let core = self.core();
        if pieces::are_cheap(text) {
            return core.count(text) as u64;
        }
        let parts = self.splitter().pieces(text).flat_map(pieces::parts);
        parts.map(|part| core.count(part) as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted_piece_by_piece(bpe: Bpe, text: &str) -> u64 {
        let pieces = bpe.splitter().pieces(text);
        pieces.map(|piece| bpe.core().count(piece) as u64).sum()
    }

    #[test]
    fn counting_piece_by_piece_gives_the_count_of_the_whole() {
        let samples = [
            "It's we'LL they'Ve 12345 x²³ naïve CamelCaseXMLHttp  \n\n  \r\n\t end ",
            "fn main() {\n    println!(\"{}\", 1_000);\n}\n\n// ---\n/\n",
            "\u{a0}! \u{3000}中文，。 \u{3000} a \u{2003}\u{2003}1 \u{85}x\u{2028}\n\u{a0}",
            "e\u{301}\u{301}A\u{301} \u{a0}\u{301}! 👩‍👩‍👧‍👦 ǅ ʰ ª ١٢٣٤ Ⅷ \0\0",
        ];
        for bpe in [Bpe::O200kBase, Bpe::Cl100kBase] {
            for text in samples {
                let whole = bpe.core().count(text) as u64;
                assert_eq!(counted_piece_by_piece(bpe, text), whole, "{bpe:?} {text:?}");
            }
        }
    }
}
