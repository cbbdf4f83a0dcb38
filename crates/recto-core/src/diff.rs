//! Differences between two versions.

use std::collections::HashMap;

use serde::Serialize;

use crate::view::View;
use crate::{Conversation, Error, LogIndex, Version};

/// The difference between the views of two versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Diff {
    /// The entries that both versions show.
    pub kept: MessageTotals,
    /// The entries that only the first version shows.
    pub hidden: Entries,
    /// The entries that only the second version shows: hidden before, or new.
    pub shown: Entries,
    /// The smallest set of entries whose move explains the different order of the kept entries.
    pub moved: Entries,
}

/// A number of messages and their tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MessageTotals {
    /// Number of messages.
    pub messages: usize,
    /// Number of tokens.
    pub tokens: u64,
}

impl MessageTotals {
    /// Totals with this number of messages and this number of tokens.
    pub fn new(messages: usize, tokens: u64) -> MessageTotals {
        MessageTotals { messages, tokens }
    }
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

/// A run of entries that both views have: a part that their trees share, or a single entry.
struct CommonRun {
    /// Its position in the first view.
    start: usize,
    /// Its position in the second view.
    other_start: usize,
    len: usize,
}

impl Diff {
    pub(crate) fn between(before: &View, after: &View) -> Diff {
        let difference = before.0.difference(&after.0);
        // Entries of the second view outside shared parts: their positions and tokens.
        let mut unshared: HashMap<LogIndex, (usize, u64)> = HashMap::new();
        for block in difference.right.iter().filter(|block| block.shared.is_none()) {
            for (number, entry) in block.items().enumerate() {
                unshared.insert(entry.index(), (block.start + number, entry.tokens()));
            }
        }
        let mut hidden = Vec::new();
        let mut common = Vec::new();
        for block in &difference.left {
            if let Some(other_start) = block.shared {
                common.push(CommonRun { start: block.start, other_start, len: block.len });
                continue;
            }
            for (number, entry) in block.items().enumerate() {
                match unshared.remove(&entry.index()) {
                    Some((other_start, _)) => {
                        let start = block.start + number;
                        common.push(CommonRun { start, other_start, len: 1 });
                    }
                    None => hidden.push((entry.index(), entry.tokens())),
                }
            }
        }
        let hidden: Entries = hidden.into_iter().collect();
        let kept = MessageTotals {
            messages: before.len() - hidden.indices.len(),
            tokens: before.tokens() - hidden.tokens,
        };
        let shown = unshared.into_iter().map(|(index, (_, tokens))| (index, tokens)).collect();
        Diff { kept, hidden, shown, moved: moved(&common, before) }
    }
}

/// The entries outside the longest series of runs that has the same order in both views. The length of a
/// series is its number of entries. `common` is in the order of the first view.
fn moved(common: &[CommonRun], before: &View) -> Entries {
    if common.is_sorted_by_key(|run| run.other_start) {
        return Entries::default();
    }
    let mut order: Vec<usize> = (0..common.len()).collect();
    order.sort_unstable_by_key(|&number| common[number].other_start);
    // The ranks of the runs in the order of the second view.
    let mut ranks = vec![0; common.len()];
    for (rank, &number) in order.iter().enumerate() {
        ranks[number] = rank;
    }
    let mut longest = LongestSeries::new(common.len());
    let mut previous: Vec<Option<usize>> = Vec::with_capacity(common.len());
    for (number, run) in common.iter().enumerate() {
        let (len, end) = longest.before(ranks[number]);
        previous.push(end);
        longest.insert(ranks[number], len + run.len, number);
    }
    let mut stays = vec![false; common.len()];
    let mut at = longest.before(common.len()).1;
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

/// Finds the longest series of runs that ends before a rank: a Fenwick tree of maxima.
struct LongestSeries(Vec<(usize, Option<usize>)>);

impl LongestSeries {
    fn new(len: usize) -> Self {
        LongestSeries(vec![(0, None); len + 1])
    }

    /// The length and the last run of the longest series that ends before `rank`.
    fn before(&self, rank: usize) -> (usize, Option<usize>) {
        let mut best = (0, None);
        let mut at = rank;
        while at > 0 {
            if self.0[at].0 > best.0 {
                best = self.0[at];
            }
            at &= at - 1;
        }
        best
    }

    /// Adds a series of length `len` that ends at `rank` with the run `number`.
    fn insert(&mut self, rank: usize, len: usize, number: usize) {
        let mut at = rank + 1;
        while at < self.0.len() {
            if len > self.0[at].0 {
                self.0[at] = (len, Some(number));
            }
            at += at & at.wrapping_neg();
        }
    }
}
