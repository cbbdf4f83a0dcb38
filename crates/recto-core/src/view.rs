//! What the model reads: an ordered, immutable list of log entries.
//!
//! A view never owns message bodies, so keeping one costs O(1). It holds no entry twice.
//! Edits live in `operation/`; the tree itself in `sum-tree`.

use std::ops::RangeBounds;

use serde::{Serialize, Serializer};
use sum_tree::{Dimension, Item, Keep, Seen, SumTree, Summary};

use crate::tool_exchange::Edges;
use crate::{LogIndex, MessageLog, Position, Role, RoleSet};

/// The most tokens that one message counts for; more is cut to this.
pub const MAX_MESSAGE_TOKENS: u64 = (1 << 30) - 1;

/// A log entry as it stands in a view: all that reading by role, tokens or tool exchange needs.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    index: u32,
    /// The role in the lowest two bits, the tokens above.
    measure: u32,
    pub(crate) edges: Edges,
}

impl Placed {
    pub(crate) fn new(index: LogIndex, role: Role, tokens: u64, edges: Edges) -> Placed {
        let tokens = tokens.min(MAX_MESSAGE_TOKENS) as u32;
        Placed { index: index.0, measure: tokens << 2 | role.number() as u32, edges }
    }

    pub(crate) fn index(&self) -> LogIndex {
        LogIndex(self.index)
    }

    pub(crate) fn role(&self) -> Role {
        Role::from_number(self.measure)
    }

    pub(crate) fn tokens(&self) -> u64 {
        u64::from(self.measure >> 2)
    }
}

impl Placed {
    /// Adds all but the tool exchanges.
    fn measure_into(&self, sums: &mut Sums) {
        let role = self.role().number();
        sums.counts[role] += 1;
        sums.tokens[role] += self.tokens();
        sums.least = sums.least.min(self.index);
        sums.most = sums.most.max(self.index);
    }
}

impl PartialEq for Placed {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index && self.measure == other.measure && self.edges == other.edges
    }
}

impl Item for Placed {
    type Summary = Sums;

    fn add_to(&self, sums: &mut Sums) {
        self.measure_into(sums);
        sums.open.add(&self.edges);
    }

    fn sum<'a>(entries: impl Iterator<Item = &'a Self> + Clone) -> Sums {
        let open = Edges::sum(entries.clone().map(|entry| &entry.edges));
        let mut sums = Sums { open, ..Sums::default() };
        entries.for_each(|entry| entry.measure_into(&mut sums));
        sums
    }
}

/// What a stretch of the view adds up to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sums {
    counts: [u32; 4],
    tokens: [u64; 4],
    /// The smallest and the largest log index; `least` above `most` if there is none.
    least: u32,
    most: u32,
    /// The tool calls and results without a partner in this stretch.
    pub(crate) open: Edges,
}

impl Default for Sums {
    fn default() -> Self {
        Sums { counts: [0; 4], tokens: [0; 4], least: u32::MAX, most: 0, open: Edges::default() }
    }
}

impl Summary for Sums {
    fn add(&mut self, later: &Self) {
        self.measure(later);
        self.open.add(&later.open);
    }

    fn sum<'a>(parts: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let open = Edges::sum(parts.clone().map(|part| &part.open));
        let mut sums = Sums { open, ..Sums::default() };
        parts.for_each(|part| sums.measure(part));
        sums
    }

    fn count(&self) -> usize {
        self.counts.iter().map(|&count| count as usize).sum()
    }
}

impl Sums {
    /// Adds all but the tool exchanges.
    fn measure(&mut self, later: &Self) {
        for role in 0..4 {
            self.counts[role] += later.counts[role];
            self.tokens[role] += later.tokens[role];
        }
        self.least = self.least.min(later.least);
        self.most = self.most.max(later.most);
    }

    pub(crate) fn count_of(&self, roles: RoleSet) -> u64 {
        roles.iter().map(|role| u64::from(self.counts[role.number()])).sum()
    }

    pub(crate) fn tokens_of(&self, roles: RoleSet) -> u64 {
        roles.iter().map(|role| self.tokens[role.number()]).sum()
    }

    /// The smallest log index, if there is any entry.
    pub(crate) fn least(&self) -> Option<LogIndex> {
        (self.least <= self.most).then_some(LogIndex(self.least))
    }

    /// Whether the entries have an index from `boundary` on.
    pub(crate) fn judge_from(&self, boundary: LogIndex) -> Keep {
        if self.most < boundary.0 {
            Keep::None
        } else if self.least >= boundary.0 {
            Keep::All
        } else {
            Keep::Some
        }
    }

    pub(crate) fn may_hold(&self, index: LogIndex) -> bool {
        self.least <= index.0 && index.0 <= self.most
    }

    /// Whether one of `indices` (sorted) may be among the entries.
    fn may_hold_any(&self, indices: &[LogIndex]) -> bool {
        let next = indices.partition_point(|index| index.0 < self.least);
        indices.get(next).is_some_and(|index| index.0 <= self.most)
    }
}

/// How many entries have one of these roles.
#[derive(Clone, Copy)]
pub(crate) struct CountOf(pub(crate) RoleSet);

impl Dimension<Placed> for CountOf {
    fn of_summary(&self, sums: &Sums) -> u64 {
        sums.count_of(self.0)
    }

    fn of_item(&self, entry: &Placed) -> u64 {
        u64::from(self.0.contains(entry.role()))
    }
}

/// How many tokens the entries of these roles have.
#[derive(Clone, Copy)]
pub(crate) struct TokensOf(pub(crate) RoleSet);

impl Dimension<Placed> for TokensOf {
    fn of_summary(&self, sums: &Sums) -> u64 {
        sums.tokens_of(self.0)
    }

    fn of_item(&self, entry: &Placed) -> u64 {
        if self.0.contains(entry.role()) { entry.tokens() } else { 0 }
    }
}

/// An ordered list of log entries. Cloning one costs O(1).
#[derive(Clone, Debug, Default)]
pub struct View(pub(crate) SumTree<Placed>);

impl View {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The tokens of all entries.
    pub fn tokens(&self) -> u64 {
        self.tokens_of(RoleSet::ALL)
    }

    /// The tokens of all entries with one of these roles.
    pub fn tokens_of(&self, roles: impl Into<RoleSet>) -> u64 {
        self.0.measure(.., &TokensOf(roles.into()))
    }

    /// The tokens of the entries at these places. O(log n).
    pub fn tokens_in(&self, range: impl RangeBounds<usize>) -> u64 {
        self.0.measure(range, &TokensOf(RoleSet::ALL))
    }

    /// How many entries have one of these roles. O(1).
    pub fn count_of(&self, roles: impl Into<RoleSet>) -> usize {
        self.0.measure(.., &CountOf(roles.into())) as usize
    }

    /// Where the `nth` entry (from 0) with one of these roles stands. O(log n).
    pub fn nth_of(&self, roles: impl Into<RoleSet>, nth: usize) -> Option<Position> {
        let found = self.0.seek(nth as u64, &CountOf(roles.into()))?;
        Some(Position(found.position))
    }

    /// The entry at a place. O(log n).
    pub fn get(&self, position: Position) -> Option<LogIndex> {
        self.0.get(position.0).map(Placed::index)
    }

    /// Where an entry stands, or `None` if it is hidden.
    ///
    /// O(log n) in a view that is in log order. Each entry that stands out of order (an insertion,
    /// a summary) may cost a look at one more leaf.
    pub fn position_of(&self, index: LogIndex) -> Option<Position> {
        let found = self.0.find(|sums| sums.may_hold(index), |entry| entry.index() == index);
        found.map(|(position, _)| Position(position))
    }

    /// Whether an entry is visible. As quick as [`position_of`](Self::position_of).
    pub fn contains(&self, index: LogIndex) -> bool {
        self.position_of(index).is_some()
    }

    /// Whether the two are one value, as far as can be told without looking at the entries.
    pub(crate) fn is_same_as(&self, other: &View) -> bool {
        self.0.identity() == other.0.identity()
    }

    /// Whether all entries belong to a log of this length.
    pub(crate) fn is_within(&self, log_len: usize) -> bool {
        self.is_empty() || (self.0.summary().most as usize) < log_len
    }

    /// All entries in order, from either end.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = LogIndex> + ExactSizeIterator {
        self.0.iter().map(Placed::index)
    }

    /// The visible entry with the largest index below `index`. As quick as
    /// [`position_of`](Self::position_of).
    pub(crate) fn nearest_below(&self, index: LogIndex) -> Option<LogIndex> {
        let mut nearest = None::<u32>;
        self.0.visit(.., |_, seen| {
            let (candidate, enters) = match seen {
                Seen::Item(entry) => (entry.index, true),
                // The largest of a node that is wholly below the index is the best it can offer.
                Seen::Node(sums) if sums.most < index.0 => (sums.most, false),
                Seen::Node(sums) => return sums.least < index.0,
            };
            if candidate < index.0 {
                nearest = nearest.max(Some(candidate));
            }
            enters
        });
        nearest.map(LogIndex)
    }

    /// The entries for which `keep` holds, and those at the places `pinned` (sorted). `judge`
    /// answers for whole stretches.
    pub(crate) fn retain(
        &self,
        pinned: &[Position],
        mut judge: impl FnMut(usize, &Sums) -> Keep,
        mut keep: impl FnMut(usize, &Placed) -> bool,
    ) -> View {
        let pins_in = |start: usize, end: usize| {
            let first = pinned.partition_point(|pin| pin.0 < start);
            pinned.get(first).is_some_and(|pin| pin.0 < end)
        };
        View(self.0.retain(
            |start, sums| match judge(start, sums) {
                Keep::None if pins_in(start, start + sums.count()) => Keep::Some,
                other => other,
            },
            |position, entry| {
                keep(position, entry) || pinned.binary_search(&Position(position)).is_ok()
            },
        ))
    }

    /// The place of the first entry that is one of `indices` (sorted).
    pub(crate) fn first_of(&self, indices: &[LogIndex]) -> Option<Position> {
        if is_few(indices, self) {
            return indices.iter().filter_map(|&index| self.position_of(index)).min();
        }
        let found = self.0.find(
            |sums| sums.may_hold_any(indices),
            |entry| indices.binary_search(&entry.index()).is_ok(),
        );
        found.map(|(position, _)| Position(position))
    }

    /// Takes entries (sorted, each once) out; those that are not there are passed over.
    pub(crate) fn hide(&mut self, indices: &[LogIndex]) {
        if is_few(indices, self) {
            for &index in indices {
                if let Some(Position(at)) = self.position_of(index) {
                    self.0.splice(at..=at, []);
                }
            }
            return;
        }
        *self = self.retain(
            &[],
            |_, sums| if sums.may_hold_any(indices) { Keep::Some } else { Keep::All },
            |_, entry| indices.binary_search(&entry.index()).is_err(),
        );
    }

    /// Brings entries of the log (sorted, each once) back: each right behind the nearest visible
    /// one with a smaller index, or to the front. Visible ones stay where they are.
    pub(crate) fn show(&mut self, indices: &[LogIndex], log: &MessageLog) {
        if is_few(indices, self) {
            for &index in indices {
                if self.position_of(index).is_none() {
                    let at = self.nearest_below(index).map_or(0, |nearest| {
                        let Position(at) = self.position_of(nearest).expect("it is visible");
                        at + 1
                    });
                    self.0.splice(at..at, [log.placed(index).clone()]);
                }
            }
            return;
        }
        // Entries that come back behind the same visible one form a group in log order.
        let mut places: Vec<(LogIndex, usize)> =
            self.0.iter().enumerate().map(|(at, entry)| (entry.index(), at)).collect();
        places.sort_unstable();
        let mut groups: Vec<(usize, LogIndex)> = Vec::new();
        for &index in indices {
            let nearest = places.partition_point(|&(visible, _)| visible <= index);
            match nearest.checked_sub(1).map(|at| places[at]) {
                Some((visible, _)) if visible == index => {}
                Some((_, at)) => groups.push((at + 1, index)),
                None => groups.push((0, index)),
            }
        }
        groups.sort_unstable();
        let mut groups = groups.into_iter().peekable();
        let mut all = Vec::with_capacity(self.len() + groups.len());
        for (at, entry) in self.0.iter().enumerate() {
            while let Some((_, index)) = groups.next_if(|&(place, _)| place <= at) {
                all.push(log.placed(index).clone());
            }
            all.push(entry.clone());
        }
        all.extend(groups.map(|(_, index)| log.placed(index).clone()));
        *self = View(all.into_iter().collect());
    }

    /// How many entries at the front are the same as in `other`.
    pub(crate) fn common_prefix(&self, other: &View) -> usize {
        self.0.common_prefix(&other.0, |a, b| a.index == b.index)
    }

    pub(crate) fn push(&mut self, entry: Placed) {
        self.0.push(entry);
    }
}

/// Whether it is cheaper to look for each index by itself than to walk over the view once.
fn is_few(indices: &[LogIndex], view: &View) -> bool {
    indices.len() <= 1 || indices.len() * 64 <= view.len()
}

impl Serialize for View {
    /// As the list of its entries.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}
