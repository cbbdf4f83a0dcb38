//! Finding words in messages.

use std::cell::RefCell;

use aho_corasick::AhoCorasick;
use memchr::memmem;

use crate::gram_search::GramSearch;
use crate::message::PartText;
use crate::{Error, Message};

/// Tests whether the text of a message contains some of one list of words and none of another.
/// Matching is case-sensitive.
pub(crate) struct TextMatcher {
    contains: Option<Words>,
    excludes: Option<Words>,
    /// Reused for texts that have to be decoded.
    scratch: RefCell<String>,
}

impl TextMatcher {
    pub(crate) fn new(
        contains: Option<&[String]>,
        excludes: Option<&[String]>,
    ) -> Result<TextMatcher, Error> {
        let words = |words: Option<&[String]>| words.map(Words::new).transpose();
        let (contains, excludes) = (words(contains)?, words(excludes)?);
        Ok(TextMatcher { contains, excludes, scratch: RefCell::default() })
    }

    /// Whether every message passes.
    pub(crate) fn passes_all(&self) -> bool {
        self.contains.is_none() && self.excludes.is_none()
    }

    pub(crate) fn passes(&self, message: &Message) -> bool {
        let mut scratch = self.scratch.borrow_mut();
        self.contains.as_ref().is_none_or(|words| words.are_in(message, &mut scratch))
            && self.excludes.as_ref().is_none_or(|words| !words.are_in(message, &mut scratch))
    }
}

/// Words of which at least one is sought.
struct Words {
    searchers: Vec<Searcher>,
    /// Whether a word may reach from one part of a message into the next, over the newline that
    /// joins their texts.
    spans_parts: bool,
    /// Whether no word has a character that JSON writes as an escape.
    needs_no_escape: bool,
}

enum Searcher {
    One(Box<memmem::Finder<'static>>),
    /// Words of at least four bytes.
    Grams(GramSearch),
    /// Shorter ones.
    Short(AhoCorasick),
}

impl Words {
    fn new(words: &[String]) -> Result<Words, Error> {
        let searchers = match words {
            [word] => {
                vec![Searcher::One(Box::new(memmem::Finder::new(word.as_bytes()).into_owned()))]
            }
            _ => {
                let (long, short) = GramSearch::split(words);
                let mut searchers: Vec<Searcher> = long.into_iter().map(Searcher::Grams).collect();
                if !short.is_empty() {
                    searchers.push(Searcher::Short(AhoCorasick::new(short).map_err(|error| {
                        Error::operation(format!("there are too many words to search for: {error}"))
                    })?));
                }
                searchers
            }
        };
        let is_escaped = |c: char| matches!(c, '"' | '\\') || c.is_control();
        Ok(Words {
            searchers,
            spans_parts: words.iter().any(|word| word.contains('\n')),
            needs_no_escape: !words.iter().any(|word| word.contains(is_escaped)),
        })
    }

    fn are_in(&self, message: &Message, scratch: &mut String) -> bool {
        if self.spans_parts {
            scratch.clear();
            message.text_into(scratch);
            return self.is_match(scratch);
        }
        let reads_raw = self.needs_no_escape && message.has_plain_escapes();
        let mut found = false;
        message.for_each_text(|text| {
            // What is not in the text as it stands in the JSON need not be decoded.
            let is_ruled_out = match text {
                PartText::String(escaped) => reads_raw && !self.is_match(escaped),
                PartText::Call { .. } => false,
            };
            found = !is_ruled_out && self.is_match(text.read(scratch));
            !found
        });
        found
    }

    fn is_match(&self, text: &str) -> bool {
        self.searchers.iter().any(|searcher| match searcher {
            Searcher::One(finder) => finder.find(text.as_bytes()).is_some(),
            Searcher::Grams(grams) => grams.is_match(text),
            Searcher::Short(automaton) => automaton.is_match(text),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same text, with every character or none but the necessary ones written as an escape.
    fn spelled(text: &str, escapes_all: bool) -> String {
        if !escapes_all {
            return serde_json::to_string(text).expect("a string can always be written");
        }
        let units = text.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
        format!("\"{}\"", units.collect::<String>())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn words_are_found_however_the_text_is_spelled(
            text in "[anu/\\\\\"\n计]{1,30}",
            words in prop::collection::vec("[anu/\\\\\"\n计]{1,8}", 1..4),
            escapes_all in any::<bool>(),
        ) {
            let json = format!(r#"{{"role":"user","content":{}}}"#, spelled(&text, escapes_all));
            let message = Message::from_json(&json).expect("it is a message");
            let matcher = TextMatcher::new(Some(&words), None).expect("they are words");
            let expected = words.iter().any(|word| text.contains(&**word));
            prop_assert_eq!(matcher.passes(&message), expected);
        }
    }
}
