//! What a request did.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::history::History;
use crate::operation::{Modification, Request};
use crate::tool_exchange::{Edge, OpenEdges, open_entries};
use crate::{BatchIndex, Conversation, Diff, LogIndex, Version, View, tools};

/// What a request did. Lists are made when they are asked for: they cost what changed.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The version afterwards.
    pub version: Version,
    /// Whether the request made a version. It makes none where none of its operations did
    /// anything, such as a FIT where everything fits already.
    pub changed: bool,
    /// The versions before the request, and those after it.
    pub(crate) before: History,
    pub(crate) after: History,
    /// The whole log, as a view.
    pub(crate) log: View,
    /// The warnings that take more than the view to find.
    pub(crate) notices: Vec<Warning>,
}

/// The figures of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// The length of the log.
    pub total_messages: usize,
    /// The length of the view.
    pub current_batch_messages: usize,
    /// The length of the live path.
    pub total_batches: usize,
    /// The current batch.
    pub current_batch_index: BatchIndex,
    /// The tokens of the view.
    pub tokens: u64,
}

/// How much of the front of the view is as it was before: what a prompt cache can still use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SharedPrefix {
    /// How many messages.
    pub messages: usize,
    /// How many tokens.
    pub tokens: u64,
}

/// Something that is not wrong, but that a user should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// Which kind it is.
    pub code: WarningCode,
    /// The entries that it is about, in log order.
    pub indices: Vec<LogIndex>,
    /// What it means, for people.
    pub message: String,
}

/// The kinds of warnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WarningCode {
    /// A tool call is visible, its result is hidden or stands before it.
    TornCall,
    /// A tool result is visible, its call is hidden or stands behind it.
    TornResult,
    /// A visible tool description contradicts the tools of the conversation.
    StaleTools,
    /// A new message has tool calls in a field of another format, where they are not read.
    ForeignMessage,
    /// Nothing is visible any more.
    ViewEmpty,
    /// Indices were given to an operation that does not use them.
    IgnoredIndices,
}

impl WarningCode {
    /// What it means and what to do about it.
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
                 import them"
            }
            WarningCode::ViewEmpty => "nothing is visible; UNDO brings the view back",
            WarningCode::IgnoredIndices => {
                "insert adds to the end and does not use indices; use REPLACE or INSERT for a place"
            }
        }
    }
}

impl Warning {
    /// A warning about entries, if there are any.
    pub(crate) fn about(code: WarningCode, mut indices: Vec<LogIndex>) -> Option<Warning> {
        if indices.is_empty() {
            return None;
        }
        indices.sort_unstable();
        indices.dedup();
        Some(Warning { code, indices, message: code.message().to_owned() })
    }

    /// The warning that the view is empty.
    pub(crate) fn view_empty() -> Warning {
        let code = WarningCode::ViewEmpty;
        Warning { code, indices: Vec::new(), message: code.message().to_owned() }
    }
}

impl Request {
    /// What a user should know of the request itself.
    pub(crate) fn warnings(&self) -> Option<Warning> {
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
        notices: Vec<Warning>,
    ) -> Outcome {
        let version = after.version();
        let log = after.log.as_view().clone();
        let (before, after) = (before.clone(), after.history.clone());
        Outcome { version, changed, before, after, log, notices }
    }

    /// The batch that is current afterwards.
    pub fn affected_batch(&self) -> BatchIndex {
        self.after.state().path.current_number()
    }

    /// The figures afterwards.
    pub fn stats(&self) -> Stats {
        Stats {
            total_messages: self.log.len(),
            current_batch_messages: self.view().len(),
            total_batches: self.after.state().path.len(),
            current_batch_index: self.affected_batch(),
            tokens: self.view().tokens(),
        }
    }

    /// The entries that were visible and are not any more, in log order.
    pub fn hidden(&self) -> Vec<LogIndex> {
        missing_in(self.before(), self.view())
    }

    /// The entries that were hidden and are visible now, in log order; new ones are not among them.
    pub fn shown(&self) -> Vec<LogIndex> {
        let mut shown = missing_in(self.view(), self.before());
        shown.retain(|index| index.0 < self.log_len_before());
        shown
    }

    /// The new log entries, visible or not.
    pub fn added(&self) -> Vec<LogIndex> {
        LogIndex::range(self.log_len_before()..self.log.len() as u32)
    }

    fn log_len_before(&self) -> u32 {
        self.before.current().log_len
    }

    /// How much of the front of the view is as it was before.
    pub fn shared_prefix(&self) -> SharedPrefix {
        let messages = self.view().common_prefix(self.before());
        SharedPrefix { messages, tokens: self.view().tokens_in(..messages) }
    }

    /// What a user should know: tool calls and results that the view has torn apart, descriptions
    /// of other tools, messages of other formats, an empty view.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = torn_exchanges(self.view(), &self.log);
        warnings.extend(self.notices.iter().cloned());
        if self.view().is_empty() {
            warnings.push(Warning::view_empty());
        }
        warnings
    }

    /// Adds the warnings about the request itself, unless they are there already: a repeated
    /// request that is not performed again has the same.
    pub fn add_warnings_of(&mut self, request: &Request) {
        if request.steps.iter().any(|step| step.modification.is_some()) {
            let warning = request.warnings().filter(|warning| !self.notices.contains(warning));
            self.notices.extend(warning);
        }
    }

    /// Whether the request set other tools, or brought them back.
    pub fn tools_changed(&self) -> bool {
        let (before, after) = (self.before.current(), self.after.current());
        !tools::are_same(before.tools.as_deref(), after.tools.as_deref())
    }

    /// What the views before and after have in common, and what not.
    pub fn diff(&self) -> Diff {
        Diff::between(self.before(), self.view())
    }

    /// The view that the model read before.
    pub fn before(&self) -> &View {
        &self.before.state().view
    }

    /// The view that the model reads afterwards.
    pub fn view(&self) -> &View {
        &self.after.state().view
    }

    /// The result as the contract writes it; [serializing](Serialize) it writes the same, sooner.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("plain data can be written")
    }
}

impl Serialize for Outcome {
    /// As the contract writes it.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tools_changed = self.tools_changed();
        let fields = if tools_changed { 10 } else { 9 };
        let mut result = serializer.serialize_struct("Outcome", fields)?;
        result.serialize_field("version", &self.version)?;
        result.serialize_field("affectedBatchIndex", &self.affected_batch())?;
        result.serialize_field("changed", &self.changed)?;
        result.serialize_field("hidden", &self.hidden())?;
        result.serialize_field("shown", &self.shown())?;
        result.serialize_field("added", &self.added())?;
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
    let mut theirs: Vec<LogIndex> = difference
        .right
        .iter()
        .flat_map(|block| block.items())
        .map(|entry| entry.index())
        .collect();
    theirs.sort_unstable();
    let mut missing: Vec<LogIndex> = difference
        .left
        .iter()
        .flat_map(|block| block.items())
        .map(|entry| entry.index())
        .filter(|index| theirs.binary_search(index).is_err())
        .collect();
    missing.sort_unstable();
    missing
}

/// The visible calls and results whose partner is in the log, but not where it belongs in the view.
pub(crate) fn torn_exchanges(view: &View, log: &View) -> Vec<Warning> {
    let wanted = OpenEdges::of(view, ..);
    if wanted.is_empty() {
        return Vec::new();
    }
    let open = open_entries(view, .., &wanted);
    // What the log itself leaves open was not torn by the view: a call that is not answered yet, a
    // result that nobody asked for.
    let unpaired = open_entries(log, .., &wanted);
    let mut unpaired_edges: Vec<Edge> = unpaired.iter().map(|&(_, edge)| edge).collect();
    unpaired_edges.sort_unstable();

    let (mut calls, mut results) = (Vec::new(), Vec::new());
    for (at, edge) in open {
        let index = view.get(crate::Position(at)).expect("the place was found in the view");
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
