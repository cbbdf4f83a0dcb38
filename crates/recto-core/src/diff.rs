//! What changed between two versions.

use std::collections::HashMap;

use serde::Serialize;

use crate::view::{Placed, View};
use crate::{Conversation, Error, LogIndex, Version};

/// The difference between the views of two versions. Entries are in log order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diff {
    /// How many entries are in both.
    pub kept: Portion,
    /// The entries that only the first one shows.
    pub hidden: Vec<LogIndex>,
    /// How many, and their tokens.
    pub hidden_size: Portion,
    /// The entries that only the second one shows.
    pub shown: Vec<LogIndex>,
    /// How many, and their tokens.
    pub shown_size: Portion,
    /// Entries that are in both, but in another order: as few as explain it.
    pub moved: Vec<LogIndex>,
}

/// A number of messages and their tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Portion {
    /// How many messages.
    pub messages: usize,
    /// How many tokens.
    pub tokens: u64,
}

impl Conversation {
    /// Compares the views of two versions. The cost is that of what differs, not that of the views.
    pub fn diff(&self, from: Version, to: Version) -> Result<Diff, Error> {
        let before = &self.history.record(from)?.state.view;
        let after = &self.history.record(to)?.state.view;
        Ok(Diff::between(before, after))
    }
}

/// A stretch that both views have: a shared part of the trees, or a single entry.
struct Common {
    start: usize,
    elsewhere: usize,
    len: usize,
}

impl Diff {
    pub(crate) fn between(before: &View, after: &View) -> Diff {
        let difference = before.0.difference(&after.0);
        let mut places: HashMap<LogIndex, (usize, u64)> = HashMap::new();
        for block in difference.right.iter().filter(|block| block.shared.is_none()) {
            for (number, entry) in block.items().enumerate() {
                places.insert(entry.index(), (block.start + number, entry.tokens()));
            }
        }
        let mut diff = Diff::default();
        let mut common = Vec::new();
        for block in &difference.left {
            if let Some(elsewhere) = block.shared {
                common.push(Common { start: block.start, elsewhere, len: block.len });
                continue;
            }
            for (number, entry) in block.items().enumerate() {
                match places.remove(&entry.index()) {
                    Some((elsewhere, _)) => {
                        common.push(Common { start: block.start + number, elsewhere, len: 1 });
                    }
                    None => {
                        diff.hidden.push(entry.index());
                        diff.hidden_size.add(entry);
                    }
                }
            }
        }
        for (index, (_, tokens)) in places {
            diff.shown.push(index);
            diff.shown_size.messages += 1;
            diff.shown_size.tokens += tokens;
        }
        diff.kept.messages = before.len() - diff.hidden.len();
        diff.kept.tokens = before.tokens() - diff.hidden_size.tokens;
        diff.moved = moved(&common, before);
        diff.hidden.sort_unstable();
        diff.shown.sort_unstable();
        diff
    }
}

impl Portion {
    fn add(&mut self, entry: &Placed) {
        self.messages += 1;
        self.tokens += entry.tokens();
    }
}

/// The entries outside the heaviest series of stretches that stand in the same order in both views.
/// `common` is in the order of the first view.
fn moved(common: &[Common], before: &View) -> Vec<LogIndex> {
    if common.is_sorted_by_key(|stretch| stretch.elsewhere) {
        return Vec::new();
    }
    // By place in the second view: the heaviest series that ends at or before it.
    let mut order: Vec<usize> = (0..common.len()).collect();
    order.sort_unstable_by_key(|&number| common[number].elsewhere);
    let mut rank = vec![0; common.len()];
    for (place, &number) in order.iter().enumerate() {
        rank[number] = place;
    }
    let mut heaviest = Heaviest::new(common.len());
    let mut previous: Vec<Option<usize>> = Vec::with_capacity(common.len());
    for (number, stretch) in common.iter().enumerate() {
        let (weight, end) = heaviest.before(rank[number]);
        previous.push(end);
        heaviest.offer(rank[number], weight + stretch.len, number);
    }
    let mut stays = vec![false; common.len()];
    let mut at = heaviest.before(common.len()).1;
    while let Some(number) = at {
        stays[number] = true;
        at = previous[number];
    }
    let mut moved: Vec<LogIndex> = common
        .iter()
        .zip(stays)
        .filter(|(_, stays)| !stays)
        .flat_map(|(stretch, _)| before.0.iter_range(stretch.start..stretch.start + stretch.len))
        .map(Placed::index)
        .collect();
    moved.sort_unstable();
    moved
}

/// The heaviest series that ends before a place (a Fenwick tree of maxima).
struct Heaviest(Vec<(usize, Option<usize>)>);

impl Heaviest {
    fn new(len: usize) -> Self {
        Heaviest(vec![(0, None); len + 1])
    }

    /// The weight and the last stretch of the heaviest series that ends before `place`.
    fn before(&self, place: usize) -> (usize, Option<usize>) {
        let mut best = (0, None);
        let mut at = place;
        while at > 0 {
            if self.0[at].0 > best.0 {
                best = self.0[at];
            }
            at &= at - 1;
        }
        best
    }

    fn offer(&mut self, place: usize, weight: usize, number: usize) {
        let mut at = place + 1;
        while at < self.0.len() {
            if weight > self.0[at].0 {
                self.0[at] = (weight, Some(number));
            }
            at += at & at.wrapping_neg();
        }
    }
}
