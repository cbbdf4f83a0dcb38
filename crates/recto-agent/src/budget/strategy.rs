//! The compression strategies: which entries each hides. They use ordinary operations: UNDO and ROLLBACK
//! revert them, and RESTORE shows the hidden entries again.

use std::collections::HashMap;
use std::fmt;

use recto::{Delete, Message, Replace, Request, Role};
use serde_json::json;

use super::ViewToSend;
use crate::Error;

/// A way to compress a view. Every strategy keeps pinned messages, the newest user messages and the newest
/// exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// Replaces old tool results by placeholders, the oldest first.
    ClearToolResults,
    /// Keeps the newest messages and hides the others, system messages included.
    KeepRecent,
    /// Keeps the system messages and the newest other messages.
    KeepSystemAndRecent,
    /// Keeps the system messages and the newest other messages, starting at a user message.
    SlidingWindow,
    /// Replaces the oldest messages by a summary that a model writes.
    Summarise,
}

/// Number of tool results that are not cleared: the newest ones before the newest exchange, pinned results
/// not counted.
const KEPT_RESULTS: usize = 2;
/// Minimum tokens of a tool result that is cleared. A placeholder for a shorter one would save few tokens.
const MIN_RESULT_TOKENS: u64 = 40;

impl Strategy {
    /// All strategies.
    pub const ALL: [Strategy; 5] = [
        Strategy::ClearToolResults,
        Strategy::KeepRecent,
        Strategy::KeepSystemAndRecent,
        Strategy::SlidingWindow,
        Strategy::Summarise,
    ];

    /// The names of all strategies, in the order of `ALL`.
    pub const NAMES: [&str; 5] = [
        "clear-tool-results",
        "keep-recent",
        "keep-system-and-recent",
        "sliding-window",
        "summarise",
    ];

    /// The name, as policies use it.
    pub fn name(self) -> &'static str {
        let at = Strategy::ALL.iter().position(|strategy| *strategy == self);
        Strategy::NAMES[at.expect("ALL lists every strategy")]
    }

    /// The strategy of a name. `_` is accepted instead of `-`.
    pub fn named(name: &str) -> Result<Strategy, Error> {
        let plain = name.trim().replace('_', "-");
        let at = Strategy::NAMES.iter().position(|name| *name == plain);
        at.map(|at| Strategy::ALL[at]).ok_or_else(|| Error::UnknownStrategy {
            name: name.trim().to_owned(),
            known: Strategy::NAMES.join(", "),
        })
    }

    /// The strategies of names that are separated by commas.
    pub fn list(names: &str) -> Result<Vec<Strategy>, Error> {
        names.split(',').map(Strategy::named).collect()
    }

    /// The request that reduces a view towards `target` tokens. The error is the reason why there is no
    /// request; [`Summarise`](Self::Summarise) has none, because it needs a model call.
    pub(super) fn plan(
        self,
        view: &ViewToSend,
        target: u64,
        reason: &str,
    ) -> Result<Request, String> {
        match self {
            Strategy::ClearToolResults => clear_results(view, target, reason),
            Strategy::KeepRecent | Strategy::KeepSystemAndRecent | Strategy::SlidingWindow => {
                self.keep_newest(view, target, reason)
            }
            Strategy::Summarise => Err("a summary needs a model call".into()),
        }
    }

    /// Whether the strategy can always reduce the view to its floor.
    pub(super) fn reaches_floor(self) -> bool {
        !matches!(self, Strategy::ClearToolResults | Strategy::Summarise)
    }

    /// Whether the strategy never hides the entry at a position.
    pub(super) fn keeps(self, view: &ViewToSend, at: usize) -> bool {
        let entry = &view.entries[at];
        let is_old_system =
            entry.message.role() == Role::System && at < view.tail && !view.is_pinned(entry.index);
        view.is_in_floor(at) && !(self == Strategy::KeepRecent && is_old_system)
    }

    /// Hides all entries except those that the strategy always [keeps](Self::keeps) and the longest suffix
    /// of other entries that fits. The suffix never starts inside a tool exchange. With
    /// [`SlidingWindow`](Self::SlidingWindow) it starts at a user message, if a suffix that starts at one
    /// fits.
    fn keep_newest(self, view: &ViewToSend, target: u64, reason: &str) -> Result<Request, String> {
        let keeps = |at: usize| self.keeps(view, at);
        let tokens = |at: usize| view.entries[at].tokens;
        let mut kept: u64 = (0..view.entries.len()).filter(|&at| keeps(at)).map(tokens).sum();
        if kept > target {
            return Err(format!("{kept} tokens cannot be hidden, and the target is {target}"));
        }
        let inside = inside_exchanges(view, keeps);
        let (mut start, mut turn) = (view.tail, None);
        for at in (0..=view.tail.min(view.entries.len().saturating_sub(1))).rev() {
            if !keeps(at) {
                kept += tokens(at);
            }
            if kept > target {
                break;
            }
            if !inside[at] {
                start = at;
                if view.entries[at].message.role() == Role::User {
                    turn = Some(at);
                }
            }
        }
        if self == Strategy::SlidingWindow {
            start = turn.unwrap_or(start);
        }
        let hidden = (0..start).filter(|&at| !keeps(at));
        let indices: Vec<_> = hidden.map(|at| view.entries[at].index).collect();
        match indices.is_empty() {
            true => Err("no messages can be hidden".into()),
            false => Ok(Delete { indices }.reason(reason).into()),
        }
    }
}

/// For each position, whether a suffix that starts there would separate a tool call from its result.
/// A tool exchange is ignored if its call or its result is kept anyway.
fn inside_exchanges(view: &ViewToSend, keeps: impl Fn(usize) -> bool) -> Vec<bool> {
    let mut inside = vec![false; view.entries.len()];
    let mut open: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, entry) in view.entries.iter().enumerate() {
        for call in entry.message.tool_calls() {
            open.entry(call.id.into_owned()).or_default().push(at);
        }
        for id in entry.message.tool_result_ids() {
            let Some(from) = open.get_mut(&*id).and_then(Vec::pop) else { continue };
            if !keeps(from) && !keeps(at) {
                inside[from + 1..=at].fill(true);
            }
        }
    }
    inside
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Replaces old tool results by placeholders until the view has about `target` tokens, or no result that can
/// be cleared is left.
fn clear_results(view: &ViewToSend, target: u64, reason: &str) -> Result<Request, String> {
    let is_old = |at: &usize| *at < view.tail;
    let results = (0..view.entries.len()).filter(|&at| {
        let entry = &view.entries[at];
        entry.message.role() == Role::Tool && !view.is_pinned(entry.index)
    });
    let results: Vec<usize> = results.filter(is_old).collect();
    let old = results.len().saturating_sub(KEPT_RESULTS);
    let mut left = view.tokens;
    let mut steps = Vec::new();
    for &at in &results[..old] {
        if left <= target {
            break;
        }
        let entry = &view.entries[at];
        if entry.tokens < MIN_RESULT_TOKENS {
            continue;
        }
        let Some(position) = entry.position else { continue };
        let message = match placeholder(entry) {
            Ok(message) => message,
            Err(error) => {
                let (entry, code) = (entry.index.0, error.code());
                tracing::warn!(entry, ?code, "a tool result was not cleared");
                continue;
            }
        };
        left = left.saturating_sub(entry.tokens - MIN_RESULT_TOKENS / 2);
        steps.push(Replace { index: position, message }.reason(reason));
    }
    match steps.is_empty() {
        true => Err("no old tool result is long enough to clear".into()),
        false => Ok(Request { steps }),
    }
}

/// The placeholder of a cleared tool result. It names the log entry of the result.
fn placeholder(entry: &recto::Entry) -> Result<Message, recto::EngineError> {
    let index = entry.index;
    let text = format!("[cleared: entry {index} of the log]");
    let results: Vec<serde_json::Value> = entry
        .message
        .tool_result_ids()
        .map(|id| json!({ "type": "tool_result", "tool_use_id": id, "content": text }))
        .collect();
    let content = if results.is_empty() { json!(text) } else { json!(results) };
    let metadata = json!({ "summary": { "of": [index] } });
    Message::from_json(
        &json!({ "role": "tool", "content": content, "metadata": metadata }).to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_are_found_by_name() {
        for strategy in Strategy::ALL {
            assert_eq!(Strategy::named(strategy.name()).unwrap(), strategy);
        }
        let listed = Strategy::list("clear_tool_results, summarise").unwrap();
        assert_eq!(listed, [Strategy::ClearToolResults, Strategy::Summarise]);
        let error = Strategy::list("summarise,shorten").unwrap_err().to_string();
        assert!(error.contains("\"shorten\"") && error.contains("sliding-window"), "{error}");
    }
}
