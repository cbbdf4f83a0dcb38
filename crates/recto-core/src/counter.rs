//! How many tokens a text has.
//! A counter sees one text at a time; what a message costs on top of its text
//! (3 tokens, and `mediaTokens` for each image, audio or file) is the engine's to add.
//! The exact counters and their vocabularies are in `counter/bpe.rs` (feature `bpe`).

use std::fmt::Debug;
use std::sync::Arc;

#[cfg(feature = "bpe")]
mod bpe;

#[cfg(feature = "bpe")]
pub use bpe::Bpe;

/// Counts the tokens of one text.
///
/// Implement it for a tokenizer of your own. The same text must always give the same
/// number, because a message is counted once, when it enters the log.
///
/// ```
/// use recto_core::Counter;
///
/// #[derive(Debug)]
/// struct Words;
///
/// impl Counter for Words {
///     fn name(&self) -> &str {
///         "words"
///     }
///     fn count(&self, text: &str) -> u64 {
///         text.split_whitespace().count() as u64
///     }
/// }
///
/// assert_eq!(Words.count("keep the last two"), 4);
/// ```
pub trait Counter: Send + Sync + Debug {
    /// The name that is stored with a conversation, such as `o200k_base`.
    fn name(&self) -> &str;

    /// Whether the counts are those of the model's own tokenizer, not an estimate.
    fn is_exact(&self) -> bool {
        false
    }

    /// Whether [`count`](Self::count) looks at the text. A counter that does not (because nobody
    /// asks for tokens) is handed an empty one, and no message has to be decoded for it.
    fn reads_text(&self) -> bool {
        true
    }

    /// The number of tokens in `text`. An empty text has none.
    fn count(&self, text: &str) -> u64;
}

impl dyn Counter {
    /// The names that `named` knows in this build.
    pub const BUILT_IN: &'static [&'static str] =
        if cfg!(feature = "bpe") { &["o200k_base", "cl100k_base", "approx"] } else { &["approx"] };

    /// The built-in counter of that name. Nothing is loaded before its first count.
    ///
    /// ```
    /// use recto_core::Counter;
    ///
    /// let counter = <dyn Counter>::named("approx").unwrap();
    /// assert_eq!(counter.count("hello"), 2);
    /// assert!(<dyn Counter>::named("abacus").is_none());
    /// ```
    pub fn named(name: &str) -> Option<Arc<dyn Counter>> {
        match name {
            "approx" => Some(Arc::new(Approx)),
            #[cfg(feature = "bpe")]
            "o200k_base" => Some(Arc::new(Bpe::O200kBase)),
            #[cfg(feature = "bpe")]
            "cl100k_base" => Some(Arc::new(Bpe::Cl100kBase)),
            _ => None,
        }
    }
}

/// An estimate that needs no vocabulary: a token for every four UTF-8 bytes begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Approx;

impl Counter for Approx {
    fn name(&self) -> &str {
        "approx"
    }

    fn count(&self, text: &str) -> u64 {
        text.len().div_ceil(4) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approx_counts_bytes_not_characters_and_rounds_up() {
        let cases = [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("中文", 2), ("👍🏽", 2)];
        for (text, tokens) in cases {
            assert_eq!(Approx.count(text), tokens, "{text:?}");
        }
    }

    #[test]
    fn every_built_in_name_leads_to_a_counter_of_that_name() {
        for name in <dyn Counter>::BUILT_IN {
            let counter = <dyn Counter>::named(name).expect("built in");
            assert_eq!(counter.name(), *name);
            assert_eq!(counter.is_exact(), *name != "approx");
        }
        for unknown in ["", "Approx", "o200k", "p50k_base"] {
            assert!(<dyn Counter>::named(unknown).is_none(), "{unknown:?}");
        }
    }
}
