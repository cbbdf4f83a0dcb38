//! ARRANGE: sets the view to a list of log entries.
//!
//! The list is split into hidden entries and runs of entries that follow each other in the present view too.
//! If the runs are long on average, the new view shares them with the old one. Apart from reading the list,
//! the cost then depends on the difference: a moved entry cuts the view into at most four runs.

use std::ops::Range;

use sum_tree::SumTree;

use crate::draft::Draft;
use crate::view::{View, ViewEntry};
use crate::{Error, LogIndex, Position};

/// Sets the view to exactly these log entries in this order, in a new batch. The list may name hidden
/// entries. An index that is listed twice counts once, at its first position. Leaving out a visible pinned
/// entry is an error.
///
/// Intended for programs that maintain the list of messages themselves and mirror it in a conversation.
///
/// ```
/// use recto_core::{Approx, Arrange, Conversation, LogIndex, Message, Settings};
///
/// let start = Conversation::new(Settings::counting_with(Approx), 0)?;
/// let (all, _) = start.append(["a", "b", "c", "d"].map(Message::user), 1)?;
/// let (arranged, _) = all.apply(Arrange::entries([0, 3, 1].map(LogIndex)), 2)?;
/// assert_eq!(arranged.view().iter().collect::<Vec<_>>(), [0, 3, 1].map(LogIndex));
/// # Ok::<(), recto_core::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arrange {
    /// The entries in order; an empty list for an empty view.
    pub indices: Vec<LogIndex>,
}

impl Arrange {
    /// Shows exactly these entries, in this order.
    pub fn entries(indices: impl IntoIterator<Item = LogIndex>) -> Arrange {
        Arrange { indices: indices.into_iter().collect() }
    }

    pub(super) fn perform(&self, draft: &mut Draft<'_>) -> Result<(), Error> {
        let view = &draft.state.view;
        let mut runs = Runs::read(&self.indices, view);
        for &index in &runs.shown {
            draft.log.check_index(index)?;
        }
        if runs.have_duplicates() {
            runs = Runs::read(&without_duplicates(&self.indices), view);
        }
        let dropped = draft.pinned_in(view).into_iter().find(|pin| !runs.keep(pin.0));
        if let Some(index) = dropped.and_then(|pin| view.get(pin)) {
            return Err(Error::Pinned { index, field: "indices" });
        }
        let arranged = runs.build_view(draft);
        draft.open_batch(arranged);
        Ok(())
    }
}

/// The indices in order, without the later ones of equal indices.
fn without_duplicates(indices: &[LogIndex]) -> Vec<LogIndex> {
    let mut seen = std::collections::HashSet::with_capacity(indices.len());
    indices.iter().copied().filter(|index| seen.insert(*index)).collect()
}

/// A run of the new view.
enum Run {
    /// This range of the old view.
    Kept(Range<usize>),
    /// A hidden entry.
    Shown(LogIndex),
}

/// The new view as runs.
struct Runs {
    runs: Vec<Run>,
    /// The ranges of the old view that are kept, in order.
    kept: Vec<Range<usize>>,
    /// The hidden entries that are shown, in log order.
    shown: Vec<LogIndex>,
}

impl Runs {
    fn read(indices: &[LogIndex], view: &View) -> Runs {
        let mut runs = Vec::new();
        let mut locator = view.locator();
        let mut rest = indices;
        while let Some((&first, _)) = rest.split_first() {
            let Some(start) = locator.position_of(first) else {
                runs.push(Run::Shown(first));
                rest = &rest[1..];
                continue;
            };
            let len = view.run_length(Position(start), rest);
            runs.push(Run::Kept(start..start + len));
            rest = &rest[len..];
        }
        let mut kept: Vec<Range<usize>> = Vec::new();
        let mut shown = Vec::new();
        for run in &runs {
            match run {
                Run::Kept(range) => kept.push(range.clone()),
                Run::Shown(index) => shown.push(*index),
            }
        }
        kept.sort_unstable_by_key(|range| range.start);
        shown.sort_unstable();
        Runs { runs, kept, shown }
    }

    /// Whether the list names an entry more than once.
    fn have_duplicates(&self) -> bool {
        self.kept.windows(2).any(|pair| pair[1].start < pair[0].end)
            || self.shown.windows(2).any(|pair| pair[0] == pair[1])
    }

    /// Whether the entry at a position of the old view is in the new view.
    fn keep(&self, position: usize) -> bool {
        let next = self.kept.partition_point(|range| range.end <= position);
        self.kept.get(next).is_some_and(|range| range.contains(&position))
    }

    fn build_view(&self, draft: &Draft<'_>) -> View {
        /// Average length of runs below which entries are copied, because joining trees would take longer.
        const SHORT: usize = 64;
        let old = &draft.state.view.0;
        let entries: usize = self.kept.iter().map(ExactSizeIterator::len).sum();
        if entries < SHORT * self.runs.len() {
            let copied = self.runs.iter().flat_map(|run| match run {
                Run::Kept(range) => old.iter_range(range.clone()).cloned().collect(),
                Run::Shown(index) => vec![draft.log.view_entry(*index).clone()],
            });
            return View(copied.collect());
        }
        let mut new: SumTree<ViewEntry> = SumTree::new();
        for run in &self.runs {
            match run {
                Run::Kept(range) => new.append(&old.slice(range.clone())),
                Run::Shown(index) => new.push(draft.log.view_entry(*index).clone()),
            }
        }
        View(new)
    }
}
