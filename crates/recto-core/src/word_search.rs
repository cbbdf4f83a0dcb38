//! Search for any of several words in a text.
//!
//! The cost is linear in the text plus the words for every input: a word that nearly occurs at every
//! place of the text costs no more than any other. One word is found with `memmem`. Several words are
//! found with an Aho-Corasick automaton. A vectorised search for the first bytes of the words runs
//! before it where there are few words: it reads a text without any of the words about ten times as
//! fast as the automaton. It compares words one by one at each candidate, so the number and the length
//! of what it compares are bounded.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind, packed};
use memchr::memmem;

use crate::Error;

/// Maximum number of words for the vectorised search.
const MAX_PREFIXES: usize = 48;
/// Maximum length of the prefixes that the vectorised search looks for, in bytes.
const MAX_PREFIX_BYTES: usize = 8;

/// Words, prepared for searching.
pub(crate) enum WordSearch {
    One(Box<memmem::Finder<'static>>),
    Many {
        /// Finds the first bytes of each word; `None` if there are too many words, or if the processor
        /// has no instructions for it.
        prefixes: Option<packed::Searcher>,
        /// Finds the words; `None` if the prefixes are the whole words.
        automaton: Option<AhoCorasick>,
    },
}

impl WordSearch {
    /// Prepares a search for words, none of which is empty.
    pub(crate) fn new(words: &[String]) -> Result<WordSearch, Error> {
        if let [word] = words {
            let finder = memmem::Finder::new(word.as_bytes()).into_owned();
            return Ok(WordSearch::One(Box::new(finder)));
        }
        let prefixes = prefix_search(words);
        let are_whole = words.iter().all(|word| word.len() <= MAX_PREFIX_BYTES);
        let automaton = match prefixes.is_some() && are_whole {
            true => None,
            false => Some(automaton(words)?),
        };
        Ok(WordSearch::Many { prefixes, automaton })
    }

    /// Whether one of the words is in the text.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        let text = text.as_bytes();
        match self {
            WordSearch::One(finder) => finder.find(text).is_some(),
            WordSearch::Many { prefixes, automaton } => {
                let start = match prefixes {
                    Some(prefixes) => prefixes.find(text).map(|found| found.start()),
                    None => Some(0),
                };
                // The automaton reads everything behind the first prefix, so the text is read at most
                // twice.
                start.is_some_and(|start| {
                    automaton.as_ref().is_none_or(|automaton| automaton.is_match(&text[start..]))
                })
            }
        }
    }
}

/// A search for the first bytes of each word.
fn prefix_search(words: &[String]) -> Option<packed::Searcher> {
    if words.len() > MAX_PREFIXES {
        return None;
    }
    let prefix = |word: &String| word.as_bytes()[..word.len().min(MAX_PREFIX_BYTES)].to_vec();
    let mut prefixes: Vec<Vec<u8>> = words.iter().map(prefix).collect();
    prefixes.sort_unstable();
    prefixes.dedup();
    packed::Searcher::new(prefixes)
}

fn automaton(words: &[String]) -> Result<AhoCorasick, Error> {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostFirst)
        // The states of a DFA take time and memory for each byte value; those of long words would be
        // built for longer than the search takes.
        .kind(Some(AhoCorasickKind::ContiguousNFA))
        // The prefilter of the crate compares whole words at every candidate, however long they are.
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
        fn words_are_found_at_any_place(
            words in prop::collection::vec("[ab]{1,14}|[ab计]{2,5}", 1..6),
            text in "[abc计]{0,40}",
            planted in any::<prop::sample::Index>(),
            at in any::<prop::sample::Index>(),
            plants in any::<bool>(),
        ) {
            let mut text = text;
            if plants {
                let place = at.index(text.chars().count() + 1);
                let place = text.char_indices().nth(place).map_or(text.len(), |(at, _)| at);
                text.insert_str(place, &words[planted.index(words.len())]);
            }
            let expected = words.iter().any(|word| text.contains(&**word));
            prop_assert_eq!(search(&words).is_match(&text), expected);
        }
    }

    #[test]
    fn each_of_many_words_is_found_at_any_place() {
        let lists = [(20, 4), (20, 20), (300, 5), (300, 9), (2_000, 7), (2_000, 12), (5_000, 16)];
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

    /// Halfway between linear and quadratic growth, for four times as much input.
    const MAX_GROWTH: f64 = 8.0;

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
        for _ in 0..20 {
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
    fn words_that_nearly_match_everywhere_take_time_in_proportion_to_the_input() {
        let nearly = |size: usize, end: usize| format!("{}{end}", "a".repeat(size));
        assert_linear("20 long words", |size| (0..20).map(|end| nearly(size, end)).collect());
        assert_linear("2 words of half the text", |size| {
            (0..2).map(|end| nearly(20 * size, end)).collect()
        });
        assert_linear("1 word", |size| vec![nearly(20 * size, 0)]);
        assert_linear("many short words", |size| (0..size).map(|end| nearly(4, end)).collect());
    }
}
