//! What each strategy hides. All of them are ordinary operations: one RESTORE or ROLLBACK brings
//! everything back.

use std::collections::HashMap;
use std::fmt;

use recto::{Delete, Message, Replace, Request, Role};
use serde_json::json;

use super::Seen;
use crate::Error;

/// A way to make a view shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// Puts a placeholder in the place of old results of tools, the oldest first.
    ClearToolResults,
    /// Keeps the newest messages, system messages or not.
    KeepRecent,
    /// Keeps system messages and the newest others.
    KeepSystemAndRecent,
    /// Keeps system messages and the newest others, from a message of the user on.
    SlidingWindow,
    /// Has a model write a summary of the oldest messages, which takes their place.
    Summarise,
}

/// Results that stay as they are, the newest ones.
const KEPT_RESULTS: usize = 2;
/// Shorter results are not worth a placeholder.
const SHORTEST_RESULT: u64 = 40;

impl Strategy {
    /// Every strategy.
    pub const ALL: [Strategy; 5] = [
        Strategy::ClearToolResults,
        Strategy::KeepRecent,
        Strategy::KeepSystemAndRecent,
        Strategy::SlidingWindow,
        Strategy::Summarise,
    ];

    /// Their names.
    pub const NAMES: [&str; 5] = [
        "clear-tool-results",
        "keep-recent",
        "keep-system-and-recent",
        "sliding-window",
        "summarise",
    ];

    /// The name, as it is written in policies.
    pub fn name(self) -> &'static str {
        let at = Strategy::ALL.iter().position(|strategy| *strategy == self);
        Strategy::NAMES[at.expect("all are listed")]
    }

    /// The strategy of that name; `_` counts as `-`.
    pub fn named(name: &str) -> Result<Strategy, Error> {
        let plain = name.trim().replace('_', "-");
        let at = Strategy::NAMES.iter().position(|name| *name == plain);
        at.map(|at| Strategy::ALL[at])
            .ok_or_else(|| Error::UnknownStrategy { name: name.trim().to_owned() })
    }

    /// Several, separated by commas.
    pub fn list(names: &str) -> Result<Vec<Strategy>, Error> {
        names.split(',').map(Strategy::named).collect()
    }

    /// The operations that bring a view down to `target` tokens, for all but
    /// [`Summarise`](Self::Summarise), which asks a model. An error says why there are none.
    pub(super) fn plan(self, seen: &Seen, target: u64, why: &str) -> Result<Request, String> {
        match self {
            Strategy::ClearToolResults => clear_results(seen, target, why),
            Strategy::KeepRecent | Strategy::KeepSystemAndRecent | Strategy::SlidingWindow => {
                self.keep_newest(seen, target, why)
            }
            Strategy::Summarise => Err("a model has to be asked".into()),
        }
    }

    /// Whether it always comes down to what has to stay.
    pub(super) fn is_sure(self) -> bool {
        !matches!(self, Strategy::ClearToolResults | Strategy::Summarise)
    }

    /// Whether it never hides the entry at a place.
    pub(super) fn keeps(self, seen: &Seen, at: usize) -> bool {
        let entry = &seen.entries[at];
        let is_old_system =
            entry.message.role() == Role::System && at < seen.tail && !seen.is_pinned(entry.index);
        seen.stays(at) && !(self == Strategy::KeepRecent && is_old_system)
    }

    /// Hides all but what stays, and the longest run of the newest others that fits. The run never
    /// starts inside a tool exchange. A window starts at a message of the user; if not even the
    /// newest turn fits, it is the newest part of that turn, behind its question.
    fn keep_newest(self, seen: &Seen, target: u64, why: &str) -> Result<Request, String> {
        let keeps = |at: usize| self.keeps(seen, at);
        let tokens = |at: usize| seen.entries[at].tokens;
        let mut kept: u64 = (0..seen.entries.len()).filter(|&at| keeps(at)).map(tokens).sum();
        if kept > target {
            return Err(format!("{kept} tokens have to stay, and {target} are wanted"));
        }
        let inside = inside_exchanges(seen, keeps);
        let (mut start, mut turn) = (seen.tail, None);
        for at in (0..=seen.tail.min(seen.entries.len().saturating_sub(1))).rev() {
            if !keeps(at) {
                kept += tokens(at);
            }
            if kept > target {
                break;
            }
            if !inside[at] {
                start = at;
                if seen.entries[at].message.role() == Role::User {
                    turn = Some(at);
                }
            }
        }
        if self == Strategy::SlidingWindow {
            start = turn.unwrap_or(start);
        }
        let hidden = (0..start).filter(|&at| !keeps(at));
        let indices: Vec<_> = hidden.map(|at| seen.entries[at].index).collect();
        match indices.is_empty() {
            true => Err("there is nothing that could be left out".into()),
            false => Ok(Delete { indices }.reason(why).into()),
        }
    }
}

/// For each place, whether a run that starts there would tear a tool exchange apart. What stays anyway
/// is no obstacle.
fn inside_exchanges(seen: &Seen, keeps: impl Fn(usize) -> bool) -> Vec<bool> {
    let mut inside = vec![false; seen.entries.len()];
    let mut open: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, entry) in seen.entries.iter().enumerate() {
        for call in entry.message.tool_calls() {
            open.entry(call.id.into_owned()).or_default().push(at);
        }
        for id in entry.message.tool_results() {
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

/// Placeholders for old results, until the view is short enough.
fn clear_results(seen: &Seen, target: u64, why: &str) -> Result<Request, String> {
    let is_old = |at: &usize| *at < seen.tail;
    let results = (0..seen.entries.len()).filter(|&at| {
        let entry = &seen.entries[at];
        entry.message.role() == Role::Tool && !seen.is_pinned(entry.index)
    });
    let results: Vec<usize> = results.filter(is_old).collect();
    let old = results.len().saturating_sub(KEPT_RESULTS);
    let mut left = seen.tokens;
    let mut steps = Vec::new();
    for &at in &results[..old] {
        if left <= target {
            break;
        }
        let entry = &seen.entries[at];
        if entry.tokens < SHORTEST_RESULT {
            continue;
        }
        let (Some(position), Ok(message)) = (entry.position, placeholder(entry)) else { continue };
        left = left.saturating_sub(entry.tokens - SHORTEST_RESULT / 2);
        steps.push(Replace { index: position, message }.reason(why));
    }
    match steps.is_empty() {
        true => Err("there are no old results of tools that are worth clearing".into()),
        false => Ok(Request { steps }),
    }
}

/// What stands for a result that was cleared. It says where the result is.
fn placeholder(entry: &recto::Entry) -> Result<Message, recto::EngineError> {
    let index = entry.index;
    let text = format!("[cleared: entry {index} of the log]");
    let results: Vec<serde_json::Value> = entry
        .message
        .tool_results()
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
    fn strategies_are_known_by_name() {
        for strategy in Strategy::ALL {
            assert_eq!(Strategy::named(strategy.name()).unwrap(), strategy);
        }
        let ladder = Strategy::list("clear_tool_results, summarise").unwrap();
        assert_eq!(ladder, [Strategy::ClearToolResults, Strategy::Summarise]);
        let error = Strategy::list("summarise,shorten").unwrap_err().to_string();
        assert!(error.contains("\"shorten\"") && error.contains("sliding-window"), "{error}");
    }
}
