//! Token counters: the trait [`Counter`], the estimate [`Approx`] and the exact counters of the crate
//! `recto-bpe` (feature `bpe`).
//!
//! A counter receives one text at a time. The engine adds the rest of a message: 3 tokens, and
//! `mediaTokens` for each image, audio or file.

use std::fmt::Debug;
use std::sync::Arc;

#[cfg(feature = "bpe")]
pub use recto_bpe::Bpe;

/// Counts the tokens of one text.
///
/// Implement this trait to use another tokenizer. The same text must always have the same count,
/// because a message is counted once, when it enters the log.
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

    /// Whether the counts are those of the model's tokenizer, not an estimate.
    fn is_exact(&self) -> bool {
        false
    }

    /// Whether [`count`](Self::count) reads the text. If not, the engine passes an empty text and does
    /// not decode messages.
    fn reads_text(&self) -> bool {
        true
    }

    /// Number of tokens in `text`; 0 for an empty text.
    fn count(&self, text: &str) -> u64;
}

impl dyn Counter {
    /// The names of the built-in counters, for `named`.
    pub const BUILT_IN: &'static [&'static str] =
        if cfg!(feature = "bpe") { &["o200k_base", "cl100k_base", "approx"] } else { &["approx"] };

    /// The built-in counter with this name.
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
            name => Bpe::named(name).map(|bpe| Arc::new(bpe) as Arc<dyn Counter>),
            #[cfg(not(feature = "bpe"))]
            _ => None,
        }
    }
}

/// An estimate without a vocabulary: one token for every four UTF-8 bytes, rounded up.
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

#[cfg(feature = "bpe")]
impl Counter for Bpe {
    fn name(&self) -> &str {
        Bpe::name(*self)
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn count(&self, text: &str) -> u64 {
        Bpe::count(*self, text)
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
    fn every_built_in_name_has_a_counter_with_that_name() {
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
