//! TRUNCATE: keeps a range of the entries, or of those of one role.

use std::ops::Range;

use sum_tree::{Keep, Summary};

use super::Scope;
use crate::draft::Draft;
use crate::view::{Sums, View};
use crate::{Error, Position, Role, RoleSet};

/// Keeps a range of entries and the visible pinned entries, in a new batch. At least one criterion must be
/// given. `role` selects the entries that are counted. The other criteria are applied in the order of the
/// fields, each to the entries that the previous one kept.
///
/// ```
/// use recto_core::{Role, Truncate};
///
/// let last_five = Truncate::keep_last(5);
/// let last_five_questions =
///     Truncate { role: Some(Role::User), keep_others: true, ..Truncate::keep_last(5) };
/// # let _ = (last_five, last_five_questions);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Truncate {
    /// Keep this many entries at the start.
    pub keep_first: Option<usize>,
    /// Keep this many entries at the end; 0 keeps none.
    pub keep_last: Option<usize>,
    /// Drop this many entries at the start.
    pub remove_first: Option<usize>,
    /// Drop this many entries at the end.
    pub remove_last: Option<usize>,
    /// Keep the entries in this range. A range that ends beyond the last entry ends after the last entry.
    pub range: Option<Range<usize>>,
    /// Count only entries of this role.
    pub role: Option<Role>,
    /// With `role`: keep the entries of other roles instead of dropping them.
    pub keep_others: bool,
    /// The entries to select from.
    pub scope: Scope,
}

impl Truncate {
    /// Keeps the first `count` entries.
    pub fn keep_first(count: usize) -> Truncate {
        Truncate { keep_first: Some(count), ..Truncate::default() }
    }

    /// Keeps the last `count` entries.
    pub fn keep_last(count: usize) -> Truncate {
        Truncate { keep_last: Some(count), ..Truncate::default() }
    }

    /// Drops the first `count` entries.
    pub fn remove_first(count: usize) -> Truncate {
        Truncate { remove_first: Some(count), ..Truncate::default() }
    }

    /// Drops the last `count` entries.
    pub fn remove_last(count: usize) -> Truncate {
        Truncate { remove_last: Some(count), ..Truncate::default() }
    }

    /// Keeps the entries in a range.
    pub fn range(range: Range<usize>) -> Truncate {
        Truncate { range: Some(range), ..Truncate::default() }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let Truncate { keep_first, keep_last, remove_first, remove_last, range, role, .. } = self;
        let counts = [keep_first, keep_last, remove_first, remove_last];
        if counts.iter().all(|count| count.is_none()) && range.is_none() && role.is_none() {
            return Err(Error::operation(
                "TRUNCATE needs a criterion: keepFirst, keepLast, removeFirst, removeLast, range or role",
            ));
        }
        if self.keep_others && role.is_none() {
            let reason = "keepOthers needs role; give a role or leave keepOthers out";
            return Err(Error::operation_field("keepOthers", reason));
        }
        Ok(())
    }

    pub(super) fn describe(&self) -> String {
        let mut words = vec!["TRUNCATE".to_owned()];
        let counts = [
            ("keepFirst", self.keep_first),
            ("keepLast", self.keep_last),
            ("removeFirst", self.remove_first),
            ("removeLast", self.remove_last),
        ];
        words.extend(
            counts.iter().filter_map(|(name, count)| Some(format!("{name} {}", (*count)?))),
        );
        words.extend(
            self.range.as_ref().map(|range| format!("range {}..{}", range.start, range.end)),
        );
        words.extend(self.role.map(|role| format!("role {role}")));
        words.extend(self.keep_others.then(|| "keepOthers".to_owned()));
        words.extend((self.scope == Scope::All).then(|| "of the whole log".to_owned()));
        words.join(" ")
    }

    pub(super) fn perform(&self, draft: &mut Draft<'_>) -> Result<(), Error> {
        if let Some(Range { start, end }) = self.range
            && start > end
        {
            return Err(Error::InvalidRange { start, end });
        }
        let base = draft.base(self.scope);
        let pinned = draft.pinned(self.scope);
        let view = match self.role {
            None => keep_range(&base, self.kept_range(base.len()), &pinned),
            Some(role) => self.keep_range_of_role(&base, role, &pinned),
        };
        draft.open_batch(view);
        Ok(())
    }

    /// The range of `len` entries that is kept.
    fn kept_range(&self, len: usize) -> Range<usize> {
        let Range { mut start, mut end } = 0..len;
        if let Some(count) = self.keep_first {
            end = end.min(start.saturating_add(count));
        }
        if let Some(count) = self.keep_last {
            // keepLast 0 keeps none, unlike `slice(-0)` in JavaScript.
            start = start.max(end.saturating_sub(count));
        }
        if let Some(count) = self.remove_first {
            start = end.min(start.saturating_add(count));
        }
        if let Some(count) = self.remove_last {
            end = start.max(end.saturating_sub(count));
        }
        if let Some(range) = &self.range {
            let from = end.min(start.saturating_add(range.start));
            end = end.min(start.saturating_add(range.end));
            start = from;
        }
        start..end
    }

    fn keep_range_of_role(&self, base: &View, role: Role, pinned: &[Position]) -> View {
        let kept = self.kept_range(base.count_of(role));
        // The window reaches from the first kept entry of the role to the last one.
        let position =
            |nth: usize| base.nth_of(role, nth).map_or(base.len(), |position| position.0);
        let window =
            if kept.is_empty() { 0..0 } else { position(kept.start)..position(kept.end - 1) + 1 };
        let roles_at = |inside: bool| match (inside, self.keep_others) {
            (true, true) => RoleSet::ALL,
            (true, false) => role.into(),
            (false, true) => RoleSet::ALL.without(role),
            (false, false) => RoleSet::NONE,
        };
        base.retain(
            pinned,
            |start, sums| {
                let end = start + sums.count();
                if window.start <= start && end <= window.end {
                    keep_by_role(sums, roles_at(true))
                } else if end <= window.start || window.end <= start {
                    keep_by_role(sums, roles_at(false))
                } else {
                    Keep::Some
                }
            },
            |at, entry| roles_at(window.contains(&at)).contains(entry.role()),
        )
    }
}

/// Whether all, some or none of the entries have one of these roles.
pub(super) fn keep_by_role(sums: &Sums, roles: RoleSet) -> Keep {
    match sums.count_of(roles) as usize {
        0 => Keep::None,
        count if count == sums.count() => Keep::All,
        _ => Keep::Some,
    }
}

/// The range, and the pinned entries before and after it.
fn keep_range(base: &View, range: Range<usize>, pinned: &[Position]) -> View {
    let before = pinned.iter().filter(|pin| pin.0 < range.start);
    let after = pinned.iter().filter(|pin| pin.0 >= range.end.max(range.start));
    let entry =
        |pin: &Position| base.0.get(pin.0).expect("pinned positions are in the view").clone();
    let mut kept = base.0.slice(range.clone());
    if before.clone().next().is_some() {
        let mut front: sum_tree::SumTree<_> = before.map(entry).collect();
        front.append(&kept);
        kept = front;
    }
    kept.extend(after.map(entry));
    View(kept)
}
