//! Search for any of several words in a text.
//!
//! For every input the cost is linear in the length of the text and of the words, even if a prefix of a word
//! matches at every position of the text.
//!
//! - A few words: a vectorised search looks for at most eight bytes of each word, its *window*. If a text
//!   contains one of the windows, `memmem` searches the text for each word. The vectorised search compares
//!   the windows one by one at each candidate, so their number and length are bounded.
//! - Many words: an Aho-Corasick automaton.

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind, packed};
use memchr::memmem::Finder;

use crate::Error;

/// Maximum number of words without an automaton.
const MAX_WORDS_WITHOUT_AUTOMATON: usize = 16;
/// Maximum length of a window, in bytes.
const WINDOW_BYTES: usize = 8;
/// Maximum size of all words for a DFA, in bytes. A DFA is about four times as fast as an NFA, but
/// building it takes a microsecond per byte.
const MAX_DFA_BYTES: usize = 4 << 10;

/// Words, prepared for searching.
pub(crate) enum WordSearch {
    Few {
        /// Finds the windows. `None` if there are fewer than two words, or if the processor has no
        /// instructions for a vectorised search.
        windows: Option<packed::Searcher>,
        words: Vec<Finder<'static>>,
    },
    Many(AhoCorasick),
}

impl WordSearch {
    /// Prepares a search for words, none of which is empty.
    pub(crate) fn new(words: &[String]) -> Result<WordSearch, Error> {
        if words.len() > MAX_WORDS_WITHOUT_AUTOMATON {
            return Ok(WordSearch::Many(automaton(words)?));
        }
        let finders = words.iter().map(|word| Finder::new(word).into_owned());
        Ok(WordSearch::Few { windows: window_search(words), words: finders.collect() })
    }

    /// Whether one of the words is in the text.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        let text = text.as_bytes();
        match self {
            WordSearch::Few { windows, words } => {
                windows.as_ref().is_none_or(|windows| windows.find(text).is_some())
                    && words.iter().any(|word| word.find(text).is_some())
            }
            WordSearch::Many(automaton) => automaton.is_match(text),
        }
    }
}

/// A search for the windows of several words.
fn window_search(words: &[String]) -> Option<packed::Searcher> {
    if words.len() < 2 {
        return None;
    }
    let window = |word: &String| word.as_bytes()[window(word.as_bytes())].to_vec();
    let mut windows: Vec<Vec<u8>> = words.iter().map(window).collect();
    windows.sort_unstable();
    windows.dedup();
    packed::Searcher::new(windows)
}

/// The range of a word that ordinary text is least likely to contain: the last one with the fewest
/// lower-case letters and spaces.
fn window(word: &[u8]) -> Range<usize> {
    let len = word.len().min(WINDOW_BYTES);
    let rare = |bytes: &[u8]| bytes.iter().filter(|b| !matches!(b, b'a'..=b'z' | b' ')).count();
    let starts = 0..=word.len() - len;
    let start = starts.max_by_key(|&start| rare(&word[start..start + len])).unwrap_or(0);
    start..start + len
}

fn automaton(words: &[String]) -> Result<AhoCorasick, Error> {
    let bytes: usize = words.iter().map(String::len).sum();
    let kind = match bytes <= MAX_DFA_BYTES {
        true => AhoCorasickKind::DFA,
        false => AhoCorasickKind::ContiguousNFA,
    };
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostFirst)
        .kind(Some(kind))
        // The prefilter of the crate compares whole words, which may be long, at every candidate.
        .prefilter(false)
        .build(words)
        .map_err(|error| {
            Error::operation(format!("there are too many words to search for: {error}"))
        })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    fn search(words: &[String]) -> WordSearch {
        WordSearch::new(words).expect("the words fit into an automaton")
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn words_are_found_at_any_position(
            words in prop::collection::vec("[ab]{1,14}|[ab计]{2,5}", 1..6),
            text in "[abc计]{0,40}",
            inserted in any::<prop::sample::Index>(),
            at in any::<prop::sample::Index>(),
            is_inserted in any::<bool>(),
        ) {
            let mut text = text;
            if is_inserted {
                let position = at.index(text.chars().count() + 1);
                let position = text.char_indices().nth(position).map_or(text.len(), |(at, _)| at);
                text.insert_str(position, &words[inserted.index(words.len())]);
            }
            let expected = words.iter().any(|word| text.contains(&**word));
            prop_assert_eq!(search(&words).is_match(&text), expected);
        }
    }

    #[test]
    fn each_of_many_words_is_found_at_any_position() {
        let lists = [
            (9, 4),
            (9, 20),
            (20, 4),
            (20, 20),
            (300, 5),
            (300, 9),
            (2_000, 7),
            (2_000, 12),
            (5_000, 16),
        ];
        for (count, len) in lists {
            let word = |number: usize| format!("{number:0>len$}");
            let words: Vec<String> = (0..count).map(word).collect();
            let search = search(&words);
            for number in (0..count).step_by(7) {
                let text = format!("{}{}{}", "-".repeat(number % 41), word(number), "-".repeat(9));
                assert!(search.is_match(&text), "{text}");
                let text = text.replace(&word(number), &word(number)[1..]);
                assert!(!search.is_match(&text), "{text}");
            }
            assert!(!search.is_match(&"1-2-34-5678-9".repeat(50)));
        }
    }

    /// Maximum growth of the time for four times as much input. Linear growth is 4, quadratic growth is 16.
    const MAX_GROWTH: f64 = 10.0;

    /// Compares the shortest times, because other processes can only make a time longer.
    fn assert_linear(what: &str, words: impl Fn(usize) -> Vec<String>) {
        let search = |size: usize| {
            let (words, text) = (words(size), "a".repeat(40 * size));
            let start = Instant::now();
            assert!(!search(&words).is_match(&text));
            start.elapsed()
        };
        let (mut short, mut long) = (Duration::MAX, Duration::MAX);
        let mut growth = f64::INFINITY;
        for _ in 0..100 {
            short = short.min(search(4_000));
            long = long.min(search(16_000));
            growth = long.as_secs_f64() / short.as_secs_f64();
            if growth < MAX_GROWTH {
                return;
            }
        }
        panic!("{what}: {short:?}, with four times as much input {long:?}: {growth:.1} times");
    }

    #[test]
    fn the_window_is_the_rarest_part_of_a_word() {
        let window = |word: &str| word[window(word.as_bytes())].to_owned();
        assert_eq!(window("short"), "short");
        assert_eq!(window("function_42 of a list"), "_42 of a");
    }

    #[test]
    fn the_time_is_linear_if_prefixes_of_the_words_match_everywhere() {
        let nearly = |size: usize, end: usize| format!("{}{end}", "a".repeat(size));
        assert_linear("20 long words", |size| (0..20).map(|end| nearly(size, end)).collect());
        assert_linear("10 long words", |size| (0..10).map(|end| nearly(size, end)).collect());
        assert_linear("2 words of half the text", |size| {
            (0..2).map(|end| nearly(20 * size, end)).collect()
        });
        assert_linear("many short words", |size| (0..size).map(|end| nearly(4, end)).collect());
    }
}
