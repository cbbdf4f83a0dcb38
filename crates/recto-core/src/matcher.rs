//! Finding words in messages.

use std::cell::RefCell;

use aho_corasick::AhoCorasick;
use memchr::memmem;

use crate::gram_search::GramSearch;
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
                let (groups, short) = GramSearch::split(words);
                let mut searchers: Vec<Searcher> =
                    groups.into_iter().map(Searcher::Grams).collect();
                if !short.is_empty() {
                    searchers.push(Searcher::Short(AhoCorasick::new(short).map_err(|error| {
                        Error::operation(format!("there are too many words to search for: {error}"))
                    })?));
                }
                searchers
            }
        };
        Ok(Words { searchers, spans_parts: words.iter().any(|word| word.contains('\n')) })
    }

    fn are_in(&self, message: &Message, scratch: &mut String) -> bool {
        if self.spans_parts {
            scratch.clear();
            message.text_into(scratch);
            return self.is_match(scratch);
        }
        let mut found = false;
        message.for_each_text(|text| {
            found = self.is_match(text.read(scratch));
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
