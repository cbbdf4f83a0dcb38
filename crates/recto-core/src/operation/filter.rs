//! FILTER: keeps the entries that match.

use sum_tree::Keep;

use super::Scope;
use super::truncate::keep_by_role;
use crate::draft::Draft;
use crate::matcher::TextMatcher;
use crate::message::shorten;
use crate::message_log::{check_loaded, is_loaded};
use crate::{Error, RoleSet};

/// Keeps the entries that pass every criterion and the visible pinned entries, in a new batch. At least one
/// criterion must be given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Keep only these roles.
    pub roles: Option<RoleSet>,
    /// Keep only entries whose text contains at least one of these.
    pub content_contains: Option<Vec<String>>,
    /// Keep only entries whose text contains none of these.
    pub content_excludes: Option<Vec<String>>,
    /// The entries to select from.
    pub scope: Scope,
}

impl Filter {
    /// Keeps the entries of these roles.
    pub fn roles(roles: impl Into<RoleSet>) -> Filter {
        Filter { roles: Some(roles.into()), ..Filter::default() }
    }

    /// Keeps the entries whose text contains at least one of these words.
    pub fn containing<T: Into<String>>(words: impl IntoIterator<Item = T>) -> Filter {
        let words = words.into_iter().map(Into::into).collect();
        Filter { content_contains: Some(words), ..Filter::default() }
    }

    /// Keeps the entries whose text contains none of these words.
    pub fn excluding<T: Into<String>>(words: impl IntoIterator<Item = T>) -> Filter {
        let words = words.into_iter().map(Into::into).collect();
        Filter { content_excludes: Some(words), ..Filter::default() }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let Filter { roles, content_contains, content_excludes, .. } = self;
        if roles.is_none() && content_contains.is_none() && content_excludes.is_none() {
            return Err(Error::operation(
                "FILTER needs a criterion: roles, contentContains or contentExcludes",
            ));
        }
        if roles.is_some_and(RoleSet::is_empty) {
            return Err(Error::operation_field("roles", "roles is empty; name at least one role"));
        }
        check_words("contentContains", content_contains)?;
        check_words("contentExcludes", content_excludes)
    }

    pub(super) fn describe(&self) -> String {
        let mut words = vec!["FILTER".to_owned()];
        words.extend(self.roles.map(|roles| format!("roles {}", list_roles(roles))));
        let listed = |texts: &Option<Vec<String>>| texts.as_deref().map(list_texts);
        words.extend(listed(&self.content_contains).map(|texts| format!("containing {texts}")));
        words.extend(listed(&self.content_excludes).map(|texts| format!("without {texts}")));
        words.extend((self.scope == Scope::All).then(|| "of the whole log".to_owned()));
        words.join(" ")
    }

    pub(super) fn perform(&self, draft: &mut Draft<'_>) -> Result<(), Error> {
        let roles = self.roles.unwrap_or(RoleSet::ALL);
        let contains = self.content_contains.as_deref();
        let excludes = self.content_excludes.as_deref();
        let matcher = TextMatcher::new(contains, excludes)?;
        let mut log = draft.log.reader();
        let mut absent = Vec::new();
        let view = draft.base(self.scope).retain(
            &draft.pinned(self.scope),
            |_, sums| match keep_by_role(sums, roles) {
                Keep::All if !matcher.passes_all() => Keep::Some,
                keep => keep,
            },
            |_, view_entry| {
                roles.contains(view_entry.role())
                    && (matcher.passes_all() || {
                        let entry = log.entry(view_entry.index());
                        is_loaded(entry, view_entry.index(), &mut absent)
                            && matcher.passes(&entry.message)
                    })
            },
        );
        check_loaded(absent)?;
        draft.open_batch(view);
        Ok(())
    }
}

fn check_words(field: &str, words: &Option<Vec<String>>) -> Result<(), Error> {
    let Some(words) = words else { return Ok(()) };
    if words.is_empty() || words.iter().any(String::is_empty) {
        let reason = format!("{field} must be a list of texts, none of them empty");
        return Err(Error::operation_field(field, reason));
    }
    Ok(())
}

fn list_roles(roles: RoleSet) -> String {
    roles.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(", ")
}

/// The first four texts, for the reason of the operation.
fn list_texts(texts: &[String]) -> String {
    const SHOWN: usize = 4;
    let shown = texts.iter().take(SHOWN).map(|text| format!("{:?}", shorten(text)));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match texts.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
