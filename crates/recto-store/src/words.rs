//! Words for the search, the same in every store.
//!
//! Stores receive words instead of text, so that all of them find the same entries.

use std::collections::BTreeMap;

use crate::ConversationId;

/// The length in bytes from which a word gets no more letters; its last letter can end after this length.
/// Long words are truncated, because keys, hashes and base64 images would inflate the index.
pub const MAX_WORD: usize = 64;

/// The words of a text in lower case, each once, ordered by their bytes.
///
/// A word is a run of letters and digits. In scripts without spaces each letter is a word, so that a
/// search finds parts of a text.
///
/// ```
/// use recto_store::Words;
///
/// let words = Words::of("Retry: the retry 2 of 日本");
/// assert!(words.iter().eq(["2", "of", "retry", "the", "日", "本"]));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words(
    /// The words, separated by spaces, in one allocation.
    String,
);

impl Words {
    /// The words of a text.
    pub fn of(text: &str) -> Words {
        let mut finder = Finder::default();
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            let run = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
            if run > 0 {
                finder.extend(&rest[..run]);
                rest = &rest[run..];
                continue;
            }
            rest = &rest[letter.len_utf8()..];
            if !letter.is_alphanumeric() {
                finder.finish();
            } else if is_written_without_spaces(letter) {
                finder.finish();
                finder.lower.push(letter);
                finder.finish();
            } else if finder.len() < MAX_WORD {
                finder.lower.extend(letter.to_lowercase());
            }
        }
        finder.finish();
        finder.words()
    }

    /// Iterates over the words.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.split_terminator(' ')
    }

    /// All words, separated by spaces.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it contains a word.
    pub fn contains(&self, word: &str) -> bool {
        self.iter().any(|other| other == word)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A log entry found by the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit {
    /// The conversation that holds the entry. Its forks can share it.
    pub conversation: ConversationId,
    /// The entry.
    pub entry: u32,
}

/// For each entry of a search index, one number: the sum of the hashes of its words. A verification compares
/// the numbers with the messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WordSums(BTreeMap<Hit, u64>);

impl WordSums {
    /// Adds an entry without words.
    pub fn add_entry(&mut self, hit: Hit) {
        self.0.entry(hit).or_default();
    }

    /// Adds a word to an entry.
    pub fn add_word(&mut self, hit: Hit, word: &[u8]) {
        let sum = self.0.entry(hit).or_default();
        *sum = sum.wrapping_add(hash_of_word(word));
    }

    /// Replaces the words of an entry.
    pub fn replace<'a>(&mut self, hit: Hit, words: impl IntoIterator<Item = &'a [u8]>) {
        let sum = words.into_iter().map(hash_of_word).fold(0, u64::wrapping_add);
        self.0.insert(hit, sum);
    }

    /// Removes an entry. Returns whether it was there with exactly these words.
    pub fn take(&mut self, hit: Hit, words: &Words) -> bool {
        let sum = words.iter().map(|word| hash_of_word(word.as_bytes()));
        self.0.remove(&hit) == Some(sum.fold(0, u64::wrapping_add))
    }

    /// Removes an entry. Returns whether it was there.
    pub fn remove(&mut self, hit: Hit) -> bool {
        self.0.remove(&hit).is_some()
    }
}

/// A hash that detects accidental changes (FNV-1a).
fn hash_of_word(word: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    word.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

/// The words of a text as a list, as a search takes them.
///
/// ```
/// assert_eq!(recto_store::words_of("Retry: the retry"), ["retry", "the"]);
/// ```
pub fn words_of(text: &str) -> Vec<String> {
    Words::of(text).iter().map(str::to_owned).collect()
}

/// The words found so far, in lower case.
#[derive(Default)]
struct Finder {
    lower: String,
    found: Vec<Found>,
    /// Start of the current word.
    start: usize,
}

/// A word with its first bytes as a number, which decides most comparisons.
struct Found {
    front: u64,
    start: usize,
    end: usize,
}

impl Finder {
    /// Length of the current word.
    fn len(&self) -> usize {
        self.lower.len() - self.start
    }

    fn extend(&mut self, ascii: &str) {
        let from = self.lower.len();
        let room = MAX_WORD.saturating_sub(self.len());
        self.lower.push_str(&ascii[..ascii.len().min(room)]);
        self.lower[from..].make_ascii_lowercase();
    }

    fn finish(&mut self) {
        let (start, end) = (self.start, self.lower.len());
        if start < end {
            let mut front = [0; 8];
            let len = front.len().min(end - start);
            front[..len].copy_from_slice(&self.lower.as_bytes()[start..start + len]);
            self.found.push(Found { front: u64::from_be_bytes(front), start, end });
            self.start = end;
        }
    }

    fn words(mut self) -> Words {
        let word = |found: &Found| &self.lower[found.start..found.end];
        self.found
            .sort_unstable_by(|a, b| a.front.cmp(&b.front).then_with(|| word(a).cmp(word(b))));
        self.found.dedup_by(|a, b| a.front == b.front && word(a) == word(b));
        let mut words = String::with_capacity(self.lower.len() + self.found.len());
        for found in &self.found {
            if !words.is_empty() {
                words.push(' ');
            }
            words.push_str(word(found));
        }
        Words(words)
    }
}

/// Whether a letter is of a script without spaces: Chinese, Japanese, Thai, Lao, Khmer, Myanmar.
fn is_written_without_spaces(letter: char) -> bool {
    matches!(letter,
        '\u{0E00}'..='\u{0EFF}'
        | '\u{1000}'..='\u{109F}'
        | '\u{1780}'..='\u{17FF}'
        | '\u{3040}'..='\u{30FF}'
        | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_too_long_is_cut_and_found_by_its_whole() {
        let long = "A".repeat(1_000);
        assert_eq!(words_of(&long), words_of(&long[..MAX_WORD]));
    }

    /// The plain implementation.
    fn plainly(text: &str) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        let mut word = String::new();
        for letter in text.chars().chain([' ']) {
            let stands_alone = is_written_without_spaces(letter);
            if !letter.is_alphanumeric() || stands_alone {
                words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
                words
                    .extend((letter.is_alphanumeric() && stands_alone).then(|| letter.to_string()));
            } else if word.len() < MAX_WORD {
                word.extend(letter.to_lowercase());
            }
        }
        words.sort();
        words.dedup();
        words
    }

    proptest::proptest! {
        #[test]
        fn words_are_found_as_the_plain_way_finds_them(
            text in "(\\PC|[a-cA-C]{1,9}|[A-B]{60,70}|[ßİ日本ก\u{301}²½]| |, ){0,60}",
        ) {
            proptest::prop_assert_eq!(words_of(&text), plainly(&text));
        }

        #[test]
        fn words_that_are_words_stay_so(mut words in proptest::collection::vec("[a-z]{1,12}", 0..20)) {
            let given = Words::of(&words.join(" "));
            words.sort();
            words.dedup();
            proptest::prop_assert!(given.iter().eq(&words));
            proptest::prop_assert_eq!(given.as_str(), words.join(" "));
        }
    }

    #[test]
    fn a_letter_that_grows_in_lower_case_stays_near_the_limit() {
        assert!(words_of(&"İ".repeat(100))[0].len() <= MAX_WORD + 8);
    }
}
