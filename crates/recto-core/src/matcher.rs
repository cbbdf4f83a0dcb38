//! Matching of messages that contain or do not contain given words.

use std::cell::RefCell;

use crate::message::PartText;
use crate::word_search::WordSearch;
use crate::{Error, Message};

/// Tests whether the text of a message contains at least one word of one list and no word of another.
/// Matching is case-sensitive.
pub(crate) struct TextMatcher {
    contains: Option<Words>,
    excludes: Option<Words>,
    /// Buffer for decoded texts.
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

    /// Whether every message passes, because there are no words.
    pub(crate) fn passes_all(&self) -> bool {
        self.contains.is_none() && self.excludes.is_none()
    }

    pub(crate) fn passes(&self, message: &Message) -> bool {
        let mut scratch = self.scratch.borrow_mut();
        self.contains.as_ref().is_none_or(|words| words.any_is_in(message, &mut scratch))
            && self.excludes.as_ref().is_none_or(|words| !words.any_is_in(message, &mut scratch))
    }
}

/// A list of words to search for.
struct Words {
    search: WordSearch,
    /// Whether a word contains a newline, so that it can span two parts of a message, whose texts are
    /// joined by newlines.
    spans_parts: bool,
    /// Whether no word has a character that JSON writes as an escape.
    needs_no_escape: bool,
}

impl Words {
    fn new(words: &[String]) -> Result<Words, Error> {
        let is_escaped = |c: char| matches!(c, '"' | '\\') || c.is_control();
        Ok(Words {
            search: WordSearch::new(words)?,
            spans_parts: words.iter().any(|word| word.contains('\n')),
            needs_no_escape: !words.iter().any(|word| word.contains(is_escaped)),
        })
    }

    fn any_is_in(&self, message: &Message, scratch: &mut String) -> bool {
        if self.spans_parts {
            scratch.clear();
            message.text_into(scratch);
            return self.search.is_match(scratch);
        }
        let reads_raw = self.needs_no_escape && message.uses_minimal_escapes();
        let mut found = false;
        message.for_each_text(|text| {
            // A word that is not in the escaped text is not in the decoded text either.
            let is_ruled_out = match text {
                PartText::String(escaped) => reads_raw && !self.search.is_match(escaped),
                PartText::Call { .. } => false,
            };
            found = !is_ruled_out && self.search.is_match(text.read(scratch));
            !found
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The text as JSON, with every character escaped or with the fewest escapes.
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
        fn words_are_found_with_any_escapes(
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
