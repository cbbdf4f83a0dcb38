//! The outcome of an accepted request (section 7).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::message::Entry;
use super::settings::{Settings, Tool};
use super::state::State;
use super::tool_description::Descriptions;
use super::tool_exchange::torn;

/// The outcome of an accepted request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The version afterwards.
    pub version: u64,
    /// The batch that is current afterwards.
    pub batch: usize,
    /// The length of the live path.
    pub batches: usize,
    /// The length of the log.
    pub log: usize,
    /// The tokens of the view.
    pub tokens: u64,
    /// Whether the request made a version.
    pub changed: bool,
    /// The view afterwards.
    pub view: Vec<usize>,
    /// Entries that were visible before and are not now, sorted.
    pub hidden: Vec<usize>,
    /// Entries that are visible now and were hidden before, without new ones, sorted.
    pub shown: Vec<usize>,
    /// New log entries, visible or not, sorted.
    pub added: Vec<usize>,
    /// Length of the common prefix of the views before and after.
    pub shared_prefix_messages: usize,
    /// Tokens of the common prefix.
    pub shared_prefix_tokens: u64,
    /// Whether the tools differ from those before the request.
    pub tools_changed: bool,
    /// The warnings: each code with its log indices in ascending order.
    /// See [`Outcome::warned`].
    pub warnings: Vec<(&'static str, Vec<usize>)>,
    /// Visible entries with a torn call, sorted.
    pub torn_calls: Vec<usize>,
    /// Visible entries with a torn result, sorted.
    pub torn_results: Vec<usize>,
}

impl Outcome {
    /// The indices of the warning with this code; `None` if there is no such
    /// warning.
    pub fn warned(&self, code: &str) -> Option<&[usize]> {
        let found = self.warnings.iter().find(|warning| warning.0 == code);
        found.map(|warning| &warning.1[..])
    }
}

/// The states before and after a request.
pub(super) struct Comparison<'a> {
    pub(super) log: &'a [Arc<Entry>],
    pub(super) state: &'a State,
    pub(super) version: u64,
    pub(super) settings: &'a Settings,
    pub(super) tools_before: &'a [Tool],
    pub(super) view_before: &'a [usize],
    pub(super) log_len_before: usize,
    pub(super) changed: bool,
    pub(super) ignored_indices: &'a BTreeSet<usize>,
}

impl Comparison<'_> {
    pub(super) fn outcome(&self) -> Outcome {
        let view = self.state.view();
        let added: Vec<usize> = (self.log_len_before..self.log.len()).collect();
        let hidden = without(self.view_before, view);
        let shown = without(&without(view, self.view_before), &added);
        let same = |(before, now): &(&usize, &usize)| before == now;
        let shared_prefix = self.view_before.iter().zip(view).take_while(same).count();
        let warnings = self.warnings();
        let warned = |code: &str| {
            let found = warnings.iter().find(|warning| warning.0 == code);
            found.map_or(Vec::new(), |warning| warning.1.clone())
        };
        Outcome {
            version: self.version,
            batch: self.state.batch_index(),
            batches: self.state.path.len(),
            log: self.log.len(),
            tokens: self.tokens_of(view),
            changed: self.changed,
            view: view.to_vec(),
            hidden,
            shown,
            added,
            shared_prefix_messages: shared_prefix,
            shared_prefix_tokens: self.tokens_of(&view[..shared_prefix]),
            tools_changed: self.state.tools != self.tools_before,
            torn_calls: warned("torn_call"),
            torn_results: warned("torn_result"),
            warnings,
        }
    }

    /// The warnings about the view after the request, then those about its new
    /// messages:
    /// - `torn_call`, `torn_result`: visible entries of torn tool exchanges.
    /// - `stale_tools`: visible stale descriptions, pinned or not.
    /// - `view_empty`: nothing is visible; no indices.
    /// - `foreign_message`: new entries, visible or hidden, with a tool call in a
    ///   field of another format.
    /// - `ignored_indices`: the indices of `insert` in the modification form.
    pub(super) fn warnings(&self) -> Vec<(&'static str, Vec<usize>)> {
        let view = self.state.view();
        let (torn_calls, torn_results) = torn(self.log, view);
        let descriptions = Descriptions::of(self.settings, &self.state.tools);
        let mut stale: Vec<usize> = (view.iter().copied())
            .filter(|&index| descriptions.is_warned_about(&self.log[index]))
            .collect();
        stale.sort_unstable();
        let foreign: Vec<usize> = (self.log_len_before..self.log.len())
            .filter(|&index| self.log[index].message.is_foreign)
            .collect();
        let ignored = self.ignored_indices.iter().copied().collect();
        let mut warnings =
            vec![("torn_call", torn_calls), ("torn_result", torn_results), ("stale_tools", stale)];
        warnings.extend([("foreign_message", foreign), ("ignored_indices", ignored)]);
        warnings.retain(|warning| !warning.1.is_empty());
        if view.is_empty() {
            warnings.push(("view_empty", Vec::new()));
        }
        warnings
    }

    fn tokens_of(&self, indices: &[usize]) -> u64 {
        indices.iter().map(|&index| self.log[index].tokens).sum()
    }
}

/// The entries of one list that are not in the other, sorted.
pub(super) fn without(list: &[usize], other: &[usize]) -> Vec<usize> {
    let mut left: Vec<usize> =
        list.iter().copied().filter(|index| !other.contains(index)).collect();
    left.sort_unstable();
    left
}
