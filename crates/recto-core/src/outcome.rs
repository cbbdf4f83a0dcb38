//! The outcome of a request.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::edges::Edge;
use crate::history::History;
use crate::operation::{Modification, OperationKind, Request};
use crate::tool_exchange::{OpenEdges, open_entries};
use crate::{BatchIndex, Conversation, Diff, LogIndex, Version, View, tools};

/// The outcome of a request. Its lists are computed when they are read, at a cost that depends on the size
/// of the change.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The version afterwards.
    pub version: Version,
    /// Whether the request made a version. It makes none if no operation did anything, such as a FIT of
    /// a view that fits already.
    pub changed: bool,
    /// The history before the request.
    pub(crate) before: History,
    /// The history after the request.
    pub(crate) after: History,
    /// The whole log, as a view.
    pub(crate) log: View,
    /// The warnings that cannot be computed from the views.
    pub(crate) other_warnings: Vec<Warning>,
}

/// Sizes of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// Length of the log.
    pub total_messages: usize,
    /// Length of the view.
    pub current_batch_messages: usize,
    /// Length of the live path.
    pub total_batches: usize,
    /// The current batch.
    pub current_batch_index: BatchIndex,
    /// Tokens of the view.
    pub tokens: u64,
}

/// The common prefix of the views before and after a request, which a prompt cache can reuse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SharedPrefix {
    /// Number of messages.
    pub messages: usize,
    /// Number of tokens.
    pub tokens: u64,
}

/// A fact about a successful request that the caller should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Warning {
    /// The kind of the warning.
    pub code: WarningCode,
    /// The entries concerned, in log order.
    pub indices: Vec<LogIndex>,
    /// What the warning means and what to do, as text.
    pub message: String,
}

/// The kinds of warnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WarningCode {
    /// A tool call is visible, and its result is hidden or before it.
    TornCall,
    /// A tool result is visible, and its call is hidden or after it.
    TornResult,
    /// A visible tool description contradicts the tools of the conversation.
    StaleTools,
    /// A new message has tool calls or call ids in a field of another format, which the engine does not read.
    ForeignMessage,
    /// The view is empty.
    ViewEmpty,
    /// The request gave indices to an operation that does not use them.
    IgnoredIndices,
}

impl WarningCode {
    /// What the warning means and what to do.
    fn message(self) -> &'static str {
        match self {
            WarningCode::TornCall => {
                "these tool calls are visible without their results; RESTORE the results or hide \
                 the calls"
            }
            WarningCode::TornResult => {
                "these tool results are visible without their calls; RESTORE the calls or hide the \
                 results"
            }
            WarningCode::StaleTools => {
                "these tool descriptions do not describe the tools of the conversation; hide them, or \
                 set the tools that they describe"
            }
            WarningCode::ForeignMessage => {
                "these messages have tool calls in a field of another format, where they are \
                 neither paired nor rendered; write them as tool_use and tool_result parts, or \
                 convert them with `append` and their `format`"
            }
            WarningCode::ViewEmpty => "the view is empty",
            WarningCode::IgnoredIndices => {
                "insert adds to the end and does not use indices; use INSERT or REPLACE for a position"
            }
        }
    }
}

impl Warning {
    /// A warning about entries; `None` if there are none.
    pub fn about(code: WarningCode, mut indices: Vec<LogIndex>) -> Option<Warning> {
        if indices.is_empty() {
            return None;
        }
        indices.sort_unstable();
        indices.dedup();
        Some(Warning { code, indices, message: code.message().to_owned() })
    }

    /// The warning that the view is empty. It names the operation that restores the view before the request,
    /// if one is given.
    fn view_empty(restored_by: Option<OperationKind>) -> Warning {
        let code = WarningCode::ViewEmpty;
        let advice = restored_by.map(|kind| format!("; {} restores it", kind.as_str()));
        let message = format!("{}{}", code.message(), advice.unwrap_or_default());
        Warning { code, indices: Vec::new(), message }
    }
}

impl Request {
    /// The warning about indices that the request does not use.
    pub(crate) fn ignored_indices(&self) -> Option<Warning> {
        let ignored = self.steps.iter().filter_map(|step| match &step.modification {
            Some(Modification::IgnoredIndices(indices)) => Some(indices),
            _ => None,
        });
        Warning::about(WarningCode::IgnoredIndices, ignored.flatten().copied().collect())
    }
}

impl Outcome {
    pub(crate) fn new(
        before: &History,
        after: &Conversation,
        changed: bool,
        other_warnings: Vec<Warning>,
    ) -> Outcome {
        let version = after.version();
        let log = after.log.as_view().clone();
        let (before, after) = (before.clone(), after.history.clone());
        Outcome { version, changed, before, after, log, other_warnings }
    }

    /// The current batch after the request.
    pub fn affected_batch(&self) -> BatchIndex {
        self.after.state().path.current_number()
    }

    /// The sizes after the request.
    pub fn stats(&self) -> Stats {
        Stats {
            total_messages: self.log.len(),
            current_batch_messages: self.view().len(),
            total_batches: self.after.state().path.len(),
            current_batch_index: self.affected_batch(),
            tokens: self.view().tokens(),
        }
    }

    /// The entries that the request hid, in log order.
    pub fn hidden(&self) -> Vec<LogIndex> {
        missing_in(self.before(), self.view())
    }

    /// The hidden entries that the request showed, in log order. New entries are not among them.
    pub fn shown(&self) -> Vec<LogIndex> {
        let mut shown = missing_in(self.view(), self.before());
        shown.retain(|index| index.0 < self.log_len_before());
        shown
    }

    /// The new log entries, visible or hidden.
    pub fn added(&self) -> Vec<LogIndex> {
        LogIndex::range(self.log_len_before()..self.log.len() as u32)
    }

    fn log_len_before(&self) -> u32 {
        self.before.current().log_len
    }

    /// The common prefix of the views before and after the request.
    pub fn shared_prefix(&self) -> SharedPrefix {
        let messages = self.view().common_prefix(self.before());
        SharedPrefix { messages, tokens: self.view().tokens_in(..messages) }
    }

    /// The warnings: torn tool exchanges, stale tool descriptions, messages of other formats, indices that
    /// are not used, an empty view.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = torn_exchanges(self.view(), &self.log);
        warnings.extend(self.other_warnings.iter().cloned());
        if self.view().is_empty() {
            warnings.push(Warning::view_empty(self.restored_by()));
        }
        warnings
    }

    /// The operation that restores the view that the request emptied: UNDO, or REDO after UNDO. `None` if the
    /// request did not empty the view.
    pub fn restored_by(&self) -> Option<OperationKind> {
        if self.before().is_empty() || !self.view().is_empty() {
            return None;
        }
        Some(match self.after.current().kind {
            OperationKind::Undo => OperationKind::Redo,
            _ => OperationKind::Undo,
        })
    }

    /// Adds the warnings about the request itself, if they are not there yet. The outcome of a repeated
    /// request, which is not performed again, then has the same warnings.
    pub fn add_warnings_of(&mut self, request: &Request) {
        if request.steps.iter().any(|step| step.modification.is_some()) {
            let warning =
                request.ignored_indices().filter(|warning| !self.other_warnings.contains(warning));
            self.other_warnings.extend(warning);
        }
    }

    /// Whether the request changed the tools.
    pub fn tools_changed(&self) -> bool {
        let (before, after) = (self.before.current(), self.after.current());
        !tools::are_same(before.tools.as_deref(), after.tools.as_deref())
    }

    /// The difference between the views before and after the request.
    pub fn diff(&self) -> Diff {
        Diff::between(self.before(), self.view())
    }

    /// The view before the request.
    pub fn before(&self) -> &View {
        &self.before.state().view
    }

    /// The view after the request.
    pub fn view(&self) -> &View {
        &self.after.state().view
    }

    /// The outcome in the form of the contract. [Serializing](Serialize) the outcome directly gives the same
    /// JSON in less time.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("plain data can be written")
    }
}

impl Serialize for Outcome {
    /// Writes the form of the contract.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.write(serializer, true)
    }
}

/// An outcome that is written without `hidden`, `shown` and `added`, at a cost that does not depend on the
/// number of these entries.
///
/// ```
/// use recto_core::{Approx, Conversation, Message, Settings, Truncate, WithoutLists};
///
/// let start = Conversation::new(Settings::counting_with(Approx), 0)?;
/// let (conversation, _) = start.append([Message::user("a"), Message::user("b")], 1)?;
/// let (_, outcome) = conversation.apply(Truncate::keep_last(1), 2)?;
///
/// let mut expected = outcome.to_json();
/// for list in ["hidden", "shown", "added"] {
///     assert!(expected.as_object_mut().unwrap().shift_remove(list).is_some());
/// }
/// assert_eq!(serde_json::to_string(&WithoutLists(&outcome)).unwrap(), expected.to_string());
/// # Ok::<(), recto_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct WithoutLists<'a>(pub &'a Outcome);

impl Serialize for WithoutLists<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.write(serializer, false)
    }
}

impl Outcome {
    fn write<S: Serializer>(&self, serializer: S, has_lists: bool) -> Result<S::Ok, S::Error> {
        let tools_changed = self.tools_changed();
        let fields = 6 + if has_lists { 3 } else { 0 } + usize::from(tools_changed);
        let mut result = serializer.serialize_struct("Outcome", fields)?;
        result.serialize_field("version", &self.version)?;
        result.serialize_field("affectedBatchIndex", &self.affected_batch())?;
        result.serialize_field("changed", &self.changed)?;
        if has_lists {
            result.serialize_field("hidden", &self.hidden())?;
            result.serialize_field("shown", &self.shown())?;
            result.serialize_field("added", &self.added())?;
        }
        result.serialize_field("stats", &self.stats())?;
        result.serialize_field("sharedPrefix", &self.shared_prefix())?;
        if tools_changed {
            result.serialize_field("toolsChanged", &true)?;
        }
        result.serialize_field("warnings", &self.warnings())?;
        result.end()
    }
}

/// The entries of `view` that `other` does not have, in log order.
pub(crate) fn missing_in(view: &View, other: &View) -> Vec<LogIndex> {
    let difference = view.0.difference(&other.0);
    let mut in_other: Vec<LogIndex> = difference
        .right
        .iter()
        .flat_map(|block| block.items())
        .map(|entry| entry.index())
        .collect();
    in_other.sort_unstable();
    let mut missing: Vec<LogIndex> = difference
        .left
        .iter()
        .flat_map(|block| block.items())
        .map(|entry| entry.index())
        .filter(|index| in_other.binary_search(index).is_err())
        .collect();
    missing.sort_unstable();
    missing
}

/// The visible calls and results whose partner is in the log, but hidden or in the wrong order.
pub(crate) fn torn_exchanges(view: &View, log: &View) -> Vec<Warning> {
    let wanted = OpenEdges::of(view, ..);
    if wanted.is_empty() {
        return Vec::new();
    }
    let open = open_entries(view, .., &wanted);
    // An edge that has no partner in the log either is not torn. An example is a call without a result.
    let unpaired = open_entries(log, .., &wanted);
    let mut unpaired_edges: Vec<Edge> = unpaired.iter().map(|&(_, edge)| edge).collect();
    unpaired_edges.sort_unstable();

    let (mut calls, mut results) = (Vec::new(), Vec::new());
    for (at, edge) in open {
        let index = view.get(crate::Position(at)).expect("the position is in the view");
        let is_unpaired = unpaired.binary_search(&(index.as_usize(), edge)).is_ok();
        if is_unpaired && unpaired_edges.binary_search(&edge.partner()).is_err() {
            continue;
        }
        let torn = if edge.is_call() { &mut calls } else { &mut results };
        torn.push(index);
    }
    let torn = [(WarningCode::TornCall, calls), (WarningCode::TornResult, results)];
    torn.into_iter().filter_map(|(code, indices)| Warning::about(code, indices)).collect()
}
