//! Ids and names that fit a provider.
//!
//! A word that does not fit is encoded by a function of the word alone, so that a call and its result
//! agree and the bytes stay the same from one request to the next.

use std::borrow::Cow;
use std::collections::HashMap;

use super::dialect::Word;
use crate::json::{self, Str};
use crate::source::hash;

/// A word that fits, as it stands between quotes; `None` if it fits as it is.
pub(super) fn fit(word: Str<'_>, form: &Word) -> Option<String> {
    let text = word.text();
    if form.takes(&text) {
        return None;
    }
    let hash = hash(&text);
    let room = form.longest.min(40) - hash.len() - 2;
    let readable = text.chars().map(|c| match c {
        c if c.is_ascii_alphanumeric() || c == '_' || c == '-' => c,
        _ => '_',
    });
    let readable: String = readable.take(room).collect();
    // A letter in front fits everywhere.
    Some(format!("t{}_{hash}", readable.trim_start_matches('-')))
}

/// The ids that were given out, each with the number to try next.
#[derive(Default)]
pub(super) struct Ids<'a>(HashMap<Cow<'a, str>, u64>);

impl<'a> Ids<'a> {
    /// The id itself if it is new, else one with a number behind it. It depends only on the ids
    /// that were given out before.
    pub(super) fn give(&mut self, id: Cow<'a, str>, form: &Word) -> (Cow<'a, str>, bool) {
        let Some(&first) = self.0.get(&id) else {
            self.0.insert(id.clone(), 2);
            return (id, false);
        };
        let mut number = first;
        loop {
            let given = with_suffix(&id, &format!("_{number}"), form);
            number += 1;
            if !self.0.contains_key(&*given) {
                self.0.insert(Cow::Owned(given.clone()), 2);
                self.0.insert(id, number);
                return (Cow::Owned(given), true);
            }
        }
    }
}

/// The id with something behind it. One that gets too long is shortened, with its hash: ids that
/// start alike stay apart.
fn with_suffix(id: &str, suffix: &str, form: &Word) -> String {
    let text = recto_core::json::unescape(id);
    let mut given = String::new();
    if text.len() <= form.longest - suffix.len() {
        json::escape_into(&text, &mut given);
    } else {
        let hash = hash(&text);
        let mut end = text.len().min(form.longest - suffix.len() - hash.len() - 1);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        json::escape_into(&text[..end], &mut given);
        given.push('_');
        given.push_str(&hash);
    }
    given.push_str(suffix);
    given
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Target;

    #[test]
    fn what_does_not_fit_is_encoded_by_itself_alone() {
        let form = &Target::Anthropic.dialect().ids;
        assert_eq!(fit(Str::plain("toolu_1"), form), None);
        for odd in ["call.1", "", "计算", "a b", &"x".repeat(500)] {
            let fitted = fit(Str::plain(odd), form).unwrap();
            assert!(form.takes(&fitted), "{fitted}");
            assert_eq!(fit(Str::plain(odd), form).unwrap(), fitted);
        }
        assert_ne!(fit(Str::plain("a.b"), form), fit(Str::plain("a_b."), form));
    }

    #[test]
    fn every_target_takes_what_is_encoded_for_it() {
        for target in Target::ALL {
            for form in [&target.dialect().ids, &target.dialect().names] {
                for odd in ["", "计算", "9.", "-", "é".repeat(300).as_str()] {
                    if let Some(fitted) = fit(Str::plain(odd), form) {
                        assert!(form.takes(&fitted), "{target:?} {odd:?} {fitted}");
                    }
                }
            }
        }
    }

    #[test]
    fn an_id_that_is_taken_gets_a_number() {
        let form = &Target::OpenAiChat.dialect().ids;
        let mut ids = Ids::default();
        let given: Vec<String> = ["a", "a", "a_2", "a"]
            .map(|id| ids.give(Cow::Borrowed(id), form).0.into_owned())
            .to_vec();
        assert_eq!(given, ["a", "a_2", "a_2_2", "a_3"]);
        let long = "é".repeat(20);
        ids.give(Cow::Borrowed(&long), form);
        let (second, is_new) = ids.give(Cow::Borrowed(&long), form);
        assert!(is_new && form.takes(&second), "{second}");
    }
}
