//! The view: an ordered, immutable list of the log entries that the model reads.
//!
//! A view contains indices of log entries, not their messages, and no index twice. It is a tree of the crate
//! `sum-tree`, so a clone costs O(1). The operations that edit views are in `operation/`.

use std::collections::HashMap;
use std::fmt;
use std::ops::RangeBounds;

use serde::{Serialize, Serializer};
use sum_tree::{Dimension, Item, Keep, Seen, SumTree, Summary};

use crate::edges::Edges;
use crate::{LogIndex, Position, Role, RoleSet};

/// Maximum tokens of one message. A larger count is reduced to this.
pub const MAX_MESSAGE_TOKENS: u64 = (1 << 30) - 1;

/// An entry of a view: the log index, the role, the tokens, and the tool calls without a result and results
/// without a call in the message.
#[derive(Clone, Debug)]
pub(crate) struct ViewEntry {
    index: u32,
    /// The role in the lowest two bits, the tokens in the others.
    role_and_tokens: u32,
    pub(crate) edges: Edges,
}

impl ViewEntry {
    pub(crate) fn new(index: LogIndex, role: Role, tokens: u64, edges: Edges) -> ViewEntry {
        let tokens = tokens.min(MAX_MESSAGE_TOKENS) as u32;
        ViewEntry { index: index.0, role_and_tokens: tokens << 2 | role.number() as u32, edges }
    }

    pub(crate) fn index(&self) -> LogIndex {
        LogIndex(self.index)
    }

    pub(crate) fn role(&self) -> Role {
        Role::from_number(self.role_and_tokens)
    }

    pub(crate) fn tokens(&self) -> u64 {
        u64::from(self.role_and_tokens >> 2)
    }
}

impl ViewEntry {
    /// Adds everything except the edges.
    fn add_counts_to(&self, sums: &mut Sums) {
        let role = self.role().number();
        sums.counts[role] += 1;
        sums.tokens[role] += self.tokens();
        sums.min_index = sums.min_index.min(self.index);
        sums.max_index = sums.max_index.max(self.index);
    }
}

impl PartialEq for ViewEntry {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index
            && self.role_and_tokens == other.role_and_tokens
            && self.edges == other.edges
    }
}

impl Item for ViewEntry {
    type Summary = Sums;

    fn add_to(&self, sums: &mut Sums) {
        self.add_counts_to(sums);
        sums.open.add(&self.edges);
    }

    fn sum<'a>(entries: impl Iterator<Item = &'a Self> + Clone) -> Sums {
        let open = Edges::sum(entries.clone().map(|entry| &entry.edges));
        let mut sums = Sums { open, ..Sums::default() };
        entries.for_each(|entry| entry.add_counts_to(&mut sums));
        sums
    }
}

/// The summary of a range of the view.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sums {
    counts: [u32; 4],
    tokens: [u64; 4],
    /// The smallest and the largest log index; `min_index > max_index` if the range is empty.
    min_index: u32,
    max_index: u32,
    /// The tool calls without a result and results without a call in this range.
    pub(crate) open: Edges,
}

impl Default for Sums {
    fn default() -> Self {
        Sums {
            counts: [0; 4],
            tokens: [0; 4],
            min_index: u32::MAX,
            max_index: 0,
            open: Edges::default(),
        }
    }
}

impl Summary for Sums {
    fn add(&mut self, later: &Self) {
        self.add_counts(later);
        self.open.add(&later.open);
    }

    fn sum<'a>(parts: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let open = Edges::sum(parts.clone().map(|part| &part.open));
        let mut sums = Sums { open, ..Sums::default() };
        parts.for_each(|part| sums.add_counts(part));
        sums
    }

    fn count(&self) -> usize {
        self.counts.iter().map(|&count| count as usize).sum()
    }
}

impl Sums {
    /// Adds everything except the edges.
    fn add_counts(&mut self, later: &Self) {
        for role in 0..4 {
            self.counts[role] += later.counts[role];
            self.tokens[role] += later.tokens[role];
        }
        self.min_index = self.min_index.min(later.min_index);
        self.max_index = self.max_index.max(later.max_index);
    }

    pub(crate) fn count_of(&self, roles: RoleSet) -> u64 {
        roles.iter().map(|role| u64::from(self.counts[role.number()])).sum()
    }

    pub(crate) fn tokens_of(&self, roles: RoleSet) -> u64 {
        roles.iter().map(|role| self.tokens[role.number()]).sum()
    }

    /// The smallest log index, if there is any entry.
    pub(crate) fn min_index(&self) -> Option<LogIndex> {
        (self.min_index <= self.max_index).then_some(LogIndex(self.min_index))
    }

    /// Whether all, some or none of the entries have an index from `boundary` on.
    pub(crate) fn keep_from(&self, boundary: LogIndex) -> Keep {
        if self.max_index < boundary.0 {
            Keep::None
        } else if self.min_index >= boundary.0 {
            Keep::All
        } else {
            Keep::Some
        }
    }

    pub(crate) fn may_contain(&self, index: LogIndex) -> bool {
        self.min_index <= index.0 && index.0 <= self.max_index
    }

    /// Whether one of `indices` (sorted) may be in the range.
    fn may_contain_any(&self, indices: &[LogIndex]) -> bool {
        let next = indices.partition_point(|index| index.0 < self.min_index);
        indices.get(next).is_some_and(|index| index.0 <= self.max_index)
    }
}

/// Counts the entries with one of these roles.
#[derive(Clone, Copy)]
pub(crate) struct CountOf(pub(crate) RoleSet);

impl Dimension<ViewEntry> for CountOf {
    fn of_summary(&self, sums: &Sums) -> u64 {
        sums.count_of(self.0)
    }

    fn of_item(&self, entry: &ViewEntry) -> u64 {
        u64::from(self.0.contains(entry.role()))
    }
}

/// Counts the tokens of the entries with one of these roles.
#[derive(Clone, Copy)]
pub(crate) struct TokensOf(pub(crate) RoleSet);

impl Dimension<ViewEntry> for TokensOf {
    fn of_summary(&self, sums: &Sums) -> u64 {
        sums.tokens_of(self.0)
    }

    fn of_item(&self, entry: &ViewEntry) -> u64 {
        if self.0.contains(entry.role()) { entry.tokens() } else { 0 }
    }
}

/// An ordered list of log entries. A clone costs O(1).
#[derive(Clone, Default)]
pub struct View(pub(crate) SumTree<ViewEntry>);

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|index| index.0)).finish()
    }
}

impl View {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the view is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sum of the tokens of all entries.
    pub fn tokens(&self) -> u64 {
        self.tokens_of(RoleSet::ALL)
    }

    /// Sum of the tokens of the entries with one of these roles.
    pub fn tokens_of(&self, roles: impl Into<RoleSet>) -> u64 {
        self.0.measure(.., &TokensOf(roles.into()))
    }

    /// Sum of the tokens of the entries at these positions. O(log n).
    pub fn tokens_in(&self, range: impl RangeBounds<usize>) -> u64 {
        self.0.measure(range, &TokensOf(RoleSet::ALL))
    }

    /// Number of entries with one of these roles. O(1).
    pub fn count_of(&self, roles: impl Into<RoleSet>) -> usize {
        self.0.measure(.., &CountOf(roles.into())) as usize
    }

    /// The position of the `nth` entry (from 0) with one of these roles. O(log n).
    pub fn nth_of(&self, roles: impl Into<RoleSet>, nth: usize) -> Option<Position> {
        let found = self.0.seek(nth as u64, &CountOf(roles.into()))?;
        Some(Position(found.position))
    }

    /// The entry at a position. O(log n).
    pub fn get(&self, position: Position) -> Option<LogIndex> {
        self.0.get(position.0).map(ViewEntry::index)
    }

    /// The position of an entry; `None` if it is hidden.
    ///
    /// O(log n) in a view that is in log order. Each entry out of log order (an insertion, a summary) may
    /// cost a visit of one more leaf.
    pub fn position_of(&self, index: LogIndex) -> Option<Position> {
        self.find_position(index, &mut 0).map(Position)
    }

    /// Whether an entry is visible. Costs as much as [`position_of`](Self::position_of).
    pub fn contains(&self, index: LogIndex) -> bool {
        self.position_of(index).is_some()
    }

    /// Whether the two views share all nodes. If not, they may still have the same entries.
    pub(crate) fn is_same_as(&self, other: &View) -> bool {
        self.0.is_clone_of(&other.0)
    }

    /// Whether all entries belong to a log of this length.
    pub(crate) fn is_within(&self, log_len: usize) -> bool {
        self.is_empty() || (self.0.summary().max_index as usize) < log_len
    }

    /// Length of the longest prefix of `indices` that equals the view from a position on.
    pub fn run_length(&self, from: Position, indices: &[LogIndex]) -> usize {
        let entries = self.0.iter_range(from.0..).map(ViewEntry::index);
        entries.zip(indices).take_while(|(entry, index)| entry == *index).count()
    }

    /// All entries in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = LogIndex> + ExactSizeIterator {
        self.0.iter().map(ViewEntry::index)
    }

    /// Calls `each` with the position and index of every system message, in order. O(number of
    /// system messages · log n).
    pub(crate) fn visit_system_messages(&self, mut each: impl FnMut(usize, LogIndex)) {
        let system = RoleSet::from(Role::System);
        self.0.visit(.., |at, seen| match seen {
            Seen::Node(sums) => sums.count_of(system) > 0,
            Seen::Item(entry) => {
                if entry.role().is_system() {
                    each(at, entry.index());
                }
                true
            }
        });
    }

    /// The visible entry with the largest index below `index`. Costs as much as
    /// [`position_of`](Self::position_of). Adds the number of visited nodes to `visited`.
    fn nearest_below(&self, index: LogIndex, visited: &mut usize) -> Option<LogIndex> {
        let mut nearest = None::<u32>;
        self.0.visit(.., |_, seen| {
            *visited += 1;
            let (candidate, enters) = match seen {
                Seen::Item(entry) => (entry.index, true),
                // All indices of the node are below `index`: its largest is the only candidate.
                Seen::Node(sums) if sums.max_index < index.0 => (sums.max_index, false),
                Seen::Node(sums) => return sums.min_index < index.0,
            };
            if candidate < index.0 {
                nearest = nearest.max(Some(candidate));
            }
            enters
        });
        nearest.map(LogIndex)
    }

    /// The entries for which `keep` returns true, and those at the positions `pinned` (sorted).
    /// `keep_range` decides for a whole range whether all, none or some of its entries are kept.
    pub(crate) fn retain(
        &self,
        pinned: &[Position],
        mut keep_range: impl FnMut(usize, &Sums) -> Keep,
        mut keep: impl FnMut(usize, &ViewEntry) -> bool,
    ) -> View {
        let pins_in = |start: usize, end: usize| {
            let first = pinned.partition_point(|pin| pin.0 < start);
            pinned.get(first).is_some_and(|pin| pin.0 < end)
        };
        View(self.0.retain(
            |start, sums| match keep_range(start, sums) {
                Keep::None if pins_in(start, start + sums.count()) => Keep::Some,
                other => other,
            },
            |position, entry| {
                keep(position, entry) || pinned.binary_search(&Position(position)).is_ok()
            },
        ))
    }

    /// A [`Locator`] for the positions of many entries.
    pub(crate) fn locator(&self) -> Locator<'_> {
        Locator { view: self, visited: 0, table: None }
    }

    /// The positions of those of `indices` (sorted) that are visible, in order.
    pub(crate) fn positions_of(&self, indices: &[LogIndex]) -> Vec<usize> {
        let mut positions = Vec::new();
        if is_few(indices.len(), self) {
            let mut locator = self.locator();
            positions.extend(indices.iter().filter_map(|&index| locator.position_of(index)));
            positions.sort_unstable();
            return positions;
        }
        self.0.visit(.., |at, seen| match seen {
            Seen::Node(sums) => sums.may_contain_any(indices),
            Seen::Item(entry) => {
                if indices.binary_search(&entry.index()).is_ok() {
                    positions.push(at);
                }
                true
            }
        });
        positions
    }

    /// Removes the entries at these positions (sorted).
    pub(crate) fn hide(&mut self, positions: &[usize]) {
        if is_few(positions.len(), self) {
            // Consecutive positions are removed together, from the end, so that the other positions stay
            // valid.
            for run in positions.chunk_by(|a, b| a + 1 == *b).rev() {
                self.0.splice(run[0]..run[0] + run.len(), []);
            }
            return;
        }
        *self = self.retain(
            &[],
            |start, sums| {
                let next = positions.partition_point(|&at| at < start);
                let hides_any = positions.get(next).is_some_and(|&at| at < start + sums.count());
                if hides_any { Keep::Some } else { Keep::All }
            },
            |at, _| positions.binary_search(&at).is_err(),
        );
    }

    /// Inserts the entries `indices` (sorted, without duplicates): each right after the visible entry with
    /// the nearest smaller index, or at the start. Visible entries do not move. `log` is the whole log as a
    /// view.
    pub(crate) fn show(&mut self, indices: &[LogIndex], log: &View) {
        let is_shown = is_few(indices.len(), self) && self.show_one_by_one(indices, log);
        if !is_shown {
            self.show_all(indices, log);
        }
    }

    /// [`show`](Self::show) for a few entries; all other nodes stay shared. Returns false and changes
    /// nothing if the view is so far out of order that one pass over it is cheaper.
    fn show_one_by_one(&mut self, indices: &[LogIndex], log: &View) -> bool {
        let mut view = self.clone();
        let mut visited = 0;
        for &index in indices {
            if visited > self.cost_of_a_pass() {
                return false;
            }
            if view.find_position(index, &mut visited).is_some() {
                continue;
            }
            let nearest = view.nearest_below(index, &mut visited);
            let at = nearest.and_then(|nearest| view.find_position(nearest, &mut visited));
            let at = at.map_or(0, |at| at + 1);
            view.0.splice(at..at, [log.at(index)]);
        }
        *self = view;
        true
    }

    /// [`show`](Self::show) in one pass over the view.
    fn show_all(&mut self, indices: &[LogIndex], log: &View) {
        // For each entry to show: the visible entry with the nearest smaller index, if that is not below
        // the previous entry to show, and its position.
        let mut nearest: Vec<Option<(LogIndex, usize)>> = vec![None; indices.len()];
        let mut is_visible = vec![false; indices.len()];
        for (at, entry) in self.0.iter().enumerate() {
            let slot = indices.partition_point(|&index| index < entry.index());
            match indices.get(slot) {
                Some(&index) if index == entry.index() => {
                    is_visible[slot] = true;
                    if let Some(next) = nearest.get_mut(slot + 1) {
                        *next = (*next).max(Some((index, at)));
                    }
                }
                Some(_) => nearest[slot] = nearest[slot].max(Some((entry.index(), at))),
                None => {}
            }
        }
        let mut groups: Vec<(usize, LogIndex)> = Vec::new();
        let mut below = None;
        for (number, &index) in indices.iter().enumerate() {
            below = below.max(nearest[number]);
            if !is_visible[number] {
                groups.push((below.map_or(0, |(_, at)| at + 1), index));
            }
        }
        groups.sort_unstable();
        self.insert_groups(&groups, log);
    }

    /// Inserts log entries at positions, both in order. Entries with the same position form a group.
    fn insert_groups(&mut self, groups: &[(usize, LogIndex)], log: &View) {
        let entry = |&(_, index): &(usize, LogIndex)| log.at(index);
        if is_few(groups.len(), self) {
            for group in groups.chunk_by(|a, b| a.0 == b.0).rev() {
                self.0.splice(group[0].0..group[0].0, group.iter().map(entry));
            }
            return;
        }
        let mut all = Vec::with_capacity(self.len() + groups.len());
        let mut groups = groups.iter().peekable();
        for (at, visible) in self.0.iter().enumerate() {
            while let Some(group) = groups.next_if(|group| group.0 <= at) {
                all.push(entry(group));
            }
            all.push(visible.clone());
        }
        all.extend(groups.map(entry));
        *self = View(all.into_iter().collect());
    }

    /// Number of visited nodes above which one pass over the whole view is cheaper.
    fn cost_of_a_pass(&self) -> usize {
        if cfg!(recto_tiny_nodes) { 8 } else { self.len() / 8 + 256 }
    }

    /// [`position_of`](Self::position_of), adding the number of visited nodes to `visited`.
    fn find_position(&self, index: LogIndex, visited: &mut usize) -> Option<usize> {
        let nodes = std::cell::Cell::new(0);
        let found = self.0.find(
            |sums| {
                nodes.set(nodes.get() + 1);
                sums.may_contain(index)
            },
            |entry| entry.index() == index,
        );
        *visited += nodes.get();
        found.map(|(at, _)| at)
    }

    /// Length of the common prefix with `other`.
    pub(crate) fn common_prefix(&self, other: &View) -> usize {
        self.0.common_prefix(&other.0, |a, b| a.index == b.index)
    }

    /// The entry with this index in a view that is the whole log.
    fn at(&self, index: LogIndex) -> ViewEntry {
        self.0.get(index.as_usize()).expect("a view holds only entries of the log").clone()
    }

    pub(crate) fn push(&mut self, entry: ViewEntry) {
        self.0.push(entry);
    }
}

/// Whether searching for each of `count` entries is cheaper than one pass over the view.
fn is_few(count: usize, view: &View) -> bool {
    let worth = if cfg!(recto_tiny_nodes) { 3 } else { 64 };
    count <= 1 || count * worth <= view.len()
}

/// Finds the positions of many entries of one view. In a view that is far out of order, single searches
/// are slow. Once they have cost as much as one pass over the view, it makes that pass and keeps a table
/// of all positions.
pub(crate) struct Locator<'a> {
    view: &'a View,
    /// Number of nodes visited so far.
    visited: usize,
    table: Option<HashMap<LogIndex, usize>>,
}

impl Locator<'_> {
    pub(crate) fn position_of(&mut self, index: LogIndex) -> Option<usize> {
        if let Some(table) = &self.table {
            return table.get(&index).copied();
        }
        if self.visited > self.view.cost_of_a_pass() {
            let positions = self.view.iter().enumerate().map(|(at, index)| (index, at));
            return self.table.insert(positions.collect()).get(&index).copied();
        }
        self.view.find_position(index, &mut self.visited)
    }
}

impl Serialize for View {
    /// Writes the list of indices.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}
