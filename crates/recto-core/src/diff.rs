//! Differences between two versions.

use std::collections::HashMap;

use serde::Serialize;

use crate::view::View;
use crate::{Conversation, Error, LogIndex, Version};

/// The difference between the views of two versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Diff {
    /// The entries that both show.
    pub kept: Portion,
    /// The entries that only the first one shows.
    pub hidden: Entries,
    /// The entries that only the second one shows, hidden before or new.
    pub shown: Entries,
    /// The fewest entries that explain the different order of the entries that both show.
    pub moved: Entries,
}

/// A number of messages and their tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Portion {
    /// Number of messages.
    pub messages: usize,
    /// Number of tokens.
    pub tokens: u64,
}

/// Log entries and the sum of their tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Entries {
    /// The indices, in log order.
    pub indices: Vec<LogIndex>,
    /// Sum of the tokens.
    pub tokens: u64,
}

impl FromIterator<(LogIndex, u64)> for Entries {
    fn from_iter<I: IntoIterator<Item = (LogIndex, u64)>>(entries: I) -> Self {
        let mut tokens = 0;
        let entries = entries.into_iter().inspect(|entry| tokens += entry.1);
        let mut indices: Vec<LogIndex> = entries.map(|entry| entry.0).collect();
        indices.sort_unstable();
        Entries { indices, tokens }
    }
}

impl Conversation {
    /// Compares the views of two versions. The cost depends on the difference, not on the views.
    pub fn diff(&self, from: Version, to: Version) -> Result<Diff, Error> {
        let before = self.history.record(from, "from")?;
        let after = self.history.record(to, "to")?;
        let view = |record| &self.history.state_of(record).view;
        Ok(Diff::between(view(before), view(after)))
    }
}

/// A run that both views have: a shared part of the trees, or a single entry.
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
        let mut hidden = Vec::new();
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
                    None => hidden.push((entry.index(), entry.tokens())),
                }
            }
        }
        let hidden: Entries = hidden.into_iter().collect();
        let kept = Portion {
            messages: before.len() - hidden.indices.len(),
            tokens: before.tokens() - hidden.tokens,
        };
        let shown = places.into_iter().map(|(index, (_, tokens))| (index, tokens)).collect();
        Diff { kept, hidden, shown, moved: moved(&common, before) }
    }
}

/// The entries outside the heaviest series of runs that have the same order in both views. `common` is
/// in the order of the first view.
fn moved(common: &[Common], before: &View) -> Entries {
    if common.is_sorted_by_key(|run| run.elsewhere) {
        return Entries::default();
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
    for (number, run) in common.iter().enumerate() {
        let (weight, end) = heaviest.before(rank[number]);
        previous.push(end);
        heaviest.offer(rank[number], weight + run.len, number);
    }
    let mut stays = vec![false; common.len()];
    let mut at = heaviest.before(common.len()).1;
    while let Some(number) = at {
        stays[number] = true;
        at = previous[number];
    }
    let moved = common.iter().zip(stays).filter(|(_, stays)| !stays);
    moved
        .flat_map(|(run, _)| before.0.iter_range(run.start..run.start + run.len))
        .map(|entry| (entry.index(), entry.tokens()))
        .collect()
}

/// The heaviest series that ends before a place (a Fenwick tree of maxima).
struct Heaviest(Vec<(usize, Option<usize>)>);

impl Heaviest {
    fn new(len: usize) -> Self {
        Heaviest(vec![(0, None); len + 1])
    }

    /// The weight and the last run of the heaviest series that ends before `place`.
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
