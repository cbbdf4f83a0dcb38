//! The white space around the records of a list. Export restores it if all separators are equal.

use crate::Error;
use crate::json::{self, Str};
use crate::values::{Peeked, Values};

/// The white space around the records of a list.
pub(super) enum Spacing {
    /// There is no white space, or there are no records.
    None,
    /// The JSON of [`Source::spacing`](crate::Source::spacing).
    Kept(String),
    /// The separators differ from each other.
    Irregular,
    /// The list is too large to be examined, or is not valid JSON.
    Unknown,
}

impl Spacing {
    /// The spacing of the next value, which is a list.
    pub(super) fn at(values: &mut Values<'_>) -> Result<Spacing, Error> {
        Ok(match values.peek_value()? {
            Peeked::Whole { len, .. } => Spacing::of(values.peeked(len)),
            Peeked::TooLarge | Peeked::Broken(_) => Spacing::Unknown,
        })
    }

    fn of(list: &str) -> Spacing {
        let offset = |item: &str| item.as_ptr().addr() - list.as_ptr().addr();
        let mut items = json::items(list);
        let Some(first) = items.next() else { return Spacing::None };
        let before = &list[1..offset(first)];
        let mut end = offset(first) + first.len();
        let mut separator = None;
        for item in items {
            let this = &list[end..offset(item)];
            if *separator.get_or_insert(this) != this {
                return Spacing::Irregular;
            }
            end = offset(item) + item.len();
        }
        let after = list[end..].strip_suffix(']').unwrap_or_default();
        match (before, separator.unwrap_or(","), after) {
            ("", ",", "") => Spacing::None,
            gaps => {
                let gaps = [gaps.0, gaps.1, gaps.2].map(json::string);
                Spacing::Kept(format!("[{}]", gaps.join(",")))
            }
        }
    }
}

/// The text of a document with `null` in place of its list of records, and the spacing of the list. `None` if
/// no field in `keys` is a list.
pub(super) fn raw_document(text: &str, keys: &[&str]) -> Option<(String, Spacing)> {
    let is_list = |(key, value): &(Str<'_>, &str)| {
        keys.iter().any(|name| key.is(name)) && json::is_list(value)
    };
    let (_, list) = json::fields(text).find(is_list)?;
    let at = list.as_ptr().addr() - text.as_ptr().addr();
    let envelope = [&text[..at], "null", &text[at + list.len()..]].concat();
    Some((envelope, Spacing::of(list)))
}
