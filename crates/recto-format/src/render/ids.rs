//! Ids and names that a provider accepts.
//!
//! An id or name that violates the provider's rules is encoded by a function of its text alone. A call
//! and its result therefore agree, and the bytes are the same in every request.

use std::borrow::Cow;
use std::collections::HashMap;

use super::dialect::IdentifierRules;
use crate::json::{self, Str};
use crate::source::hash;

/// Encodes an identifier that violates the rules. The result needs no escapes. `None` if the identifier
/// is valid.
pub(super) fn encode(identifier: Str<'_>, rules: &IdentifierRules) -> Option<String> {
    let text = identifier.text();
    if rules.accepts(&text) {
        return None;
    }
    let hash = hash(&text);
    let room = rules.max_len.min(40) - hash.len() - 2;
    let readable = text.chars().map(|c| match c {
        c if c.is_ascii_alphanumeric() || c == '_' || c == '-' => c,
        _ => '_',
    });
    let readable: String = readable.take(room).collect();
    // Every provider accepts a letter in front.
    Some(format!("t{}_{hash}", readable.trim_start_matches('-')))
}

/// The ids in use, each with the next number to append.
#[derive(Default)]
pub(super) struct Ids<'a>(HashMap<Cow<'a, str>, u64>);

impl<'a> Ids<'a> {
    /// Marks an id as used.
    pub(super) fn reserve(&mut self, id: Cow<'a, str>) {
        self.0.entry(id).or_insert(2);
    }

    /// Returns the id if it is not in use, otherwise the id with a number appended, and whether it
    /// differs. The result depends only on the ids that were reserved or assigned before.
    pub(super) fn assign(
        &mut self,
        id: Cow<'a, str>,
        rules: &IdentifierRules,
    ) -> (Cow<'a, str>, bool) {
        let Some(&first) = self.0.get(&id) else {
            self.0.insert(id.clone(), 2);
            return (id, false);
        };
        let mut number = first;
        loop {
            let numbered = with_suffix(&id, &format!("_{number}"), rules);
            number += 1;
            if !self.0.contains_key(&*numbered) {
                self.0.insert(Cow::Owned(numbered.clone()), 2);
                self.0.insert(id, number);
                return (Cow::Owned(numbered), true);
            }
        }
    }
}

/// The id with a suffix. If that is too long, the id is truncated and its hash is inserted, so that ids
/// with a common prefix stay distinct.
fn with_suffix(id: &str, suffix: &str, rules: &IdentifierRules) -> String {
    let text = recto_core::json::unescape(id);
    let mut out = String::new();
    if text.len() <= rules.max_len - suffix.len() {
        json::escape_into(&text, &mut out);
    } else {
        let hash = hash(&text);
        let mut end = text.len().min(rules.max_len - suffix.len() - hash.len() - 1);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        json::escape_into(&text[..end], &mut out);
        out.push('_');
        out.push_str(&hash);
    }
    out.push_str(suffix);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Target;

    #[test]
    fn an_invalid_identifier_is_encoded_by_a_function_of_its_text() {
        let rules = &Target::Anthropic.dialect().ids;
        assert_eq!(encode(Str::plain("toolu_1"), rules), None);
        for invalid in ["call.1", "", "计算", "a b", &"x".repeat(500)] {
            let encoded = encode(Str::plain(invalid), rules).unwrap();
            assert!(rules.accepts(&encoded), "{encoded}");
            assert_eq!(encode(Str::plain(invalid), rules).unwrap(), encoded);
        }
        assert_ne!(encode(Str::plain("a.b"), rules), encode(Str::plain("a_b."), rules));
    }

    #[test]
    fn every_target_accepts_what_is_encoded_for_it() {
        for target in Target::ALL {
            for rules in [&target.dialect().ids, &target.dialect().names] {
                for invalid in ["", "计算", "9.", "-", "é".repeat(300).as_str()] {
                    if let Some(encoded) = encode(Str::plain(invalid), rules) {
                        assert!(rules.accepts(&encoded), "{target:?} {invalid:?} {encoded}");
                    }
                }
            }
        }
    }

    #[test]
    fn an_id_that_is_in_use_gets_a_number() {
        let rules = &Target::OpenAiChat.dialect().ids;
        let mut ids = Ids::default();
        let assigned: Vec<String> = ["a", "a", "a_2", "a"]
            .map(|id| ids.assign(Cow::Borrowed(id), rules).0.into_owned())
            .to_vec();
        assert_eq!(assigned, ["a", "a_2", "a_2_2", "a_3"]);
        let long = "é".repeat(20);
        ids.assign(Cow::Borrowed(&long), rules);
        let (second, is_other) = ids.assign(Cow::Borrowed(&long), rules);
        assert!(is_other && rules.accepts(&second), "{second}");
    }
}
