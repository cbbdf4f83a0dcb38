//! What the search looks for: words, the same in every store.
//!
//! Stores are given words, not text, so that all of them find the same.

/// The longest word that is kept, in bytes. What is longer is cut: keys, hashes and pictures in
/// base64 would swell the index.
pub const MAX_WORD: usize = 64;

/// The words of a text in lower case, each once, in alphabetical order.
///
/// A word is a run of letters and digits. Letters of scripts that are written without spaces are
/// words of their own, so that a search finds what stands between others.
///
/// ```
/// assert_eq!(recto_store::words_of("Retry: the retry 2 of 日本"), ["2", "of", "retry", "the", "日", "本"]);
/// ```
pub fn words_of(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    for letter in text.chars() {
        if !letter.is_alphanumeric() {
            finish(&mut word, &mut words);
        } else if is_written_without_spaces(letter) {
            finish(&mut word, &mut words);
            words.push(letter.to_string());
        } else if word.len() < MAX_WORD {
            word.extend(letter.to_lowercase());
        }
    }
    finish(&mut word, &mut words);
    words.sort_unstable();
    words.dedup();
    words
}

fn finish(word: &mut String, words: &mut Vec<String>) {
    if !word.is_empty() {
        words.push(std::mem::take(word));
    }
}

/// Chinese, Japanese, Thai, Lao, Khmer, Myanmar.
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

    #[test]
    fn a_letter_that_grows_in_lower_case_stays_near_the_limit() {
        assert!(words_of(&"İ".repeat(100))[0].len() <= MAX_WORD + 8);
    }
}
