//! Pairs of tool calls and results.
//!
//! As in the engine, calls and results with the same id are paired like brackets: a result belongs to the
//! nearest message before it with an open call of its id. A call and a result in the same message belong
//! together. If one message has several calls with the same id (some servers use one id, or an
//! empty one, for all parallel calls), they are paired in order.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use crate::parts::{MessageParts, Part};

/// Position of a part: the position of its message in the view, and the index of the part.
pub(super) type PartPosition = (usize, usize);

/// The pairs of calls and results of a view.
#[derive(Clone, Default)]
pub(super) struct Exchanges {
    results: HashMap<PartPosition, PartPosition>,
    calls: HashMap<PartPosition, PartPosition>,
    /// Results of calls that already have a result.
    repeated: HashSet<PartPosition>,
}

impl Exchanges {
    /// Finds the pairs. Calls of messages for which `is_call` is false are ignored.
    pub(super) fn of(messages: &[MessageParts<'_>], is_call: impl Fn(usize) -> bool) -> Exchanges {
        let mut exchanges = Exchanges::default();
        // Open calls by id, grouped by message, and the ids of calls that have a result.
        let mut open: HashMap<Cow<'_, str>, Vec<VecDeque<PartPosition>>> = HashMap::new();
        let mut answered: HashSet<Cow<'_, str>> = HashSet::new();
        let mut calls: Vec<(Cow<'_, str>, PartPosition)> = Vec::new();
        let mut results: Vec<(Cow<'_, str>, PartPosition)> = Vec::new();
        for (at, message) in messages.iter().enumerate() {
            for (number, part) in message.parts.iter().enumerate() {
                match part {
                    Part::ToolUse { id, .. } if is_call(at) => {
                        calls.push((id.text(), (at, number)))
                    }
                    Part::ToolResult { id, .. } => results.push((id.text(), (at, number))),
                    _ => {}
                }
            }
            let mut called: HashMap<Cow<'_, str>, VecDeque<PartPosition>> = HashMap::new();
            for (id, call) in calls.drain(..) {
                called.entry(id).or_default().push_back(call);
            }
            for (id, result) in results.drain(..) {
                let inside = called.get_mut(&id).and_then(VecDeque::pop_front);
                match inside.or_else(|| newest(open.get_mut(&id)?)) {
                    Some(call) => {
                        exchanges.results.insert(call, result);
                        exchanges.calls.insert(result, call);
                        answered.insert(id);
                    }
                    None if answered.contains(&id) => drop(exchanges.repeated.insert(result)),
                    None => {}
                }
            }
            for (id, calls) in called {
                open.entry(id).or_default().push(calls);
            }
        }
        exchanges
    }

    /// The result of a call.
    pub(super) fn result_of(&self, call: PartPosition) -> Option<PartPosition> {
        self.results.get(&call).copied()
    }

    /// The call of a result.
    pub(super) fn call_of(&self, result: PartPosition) -> Option<PartPosition> {
        self.calls.get(&result).copied()
    }

    /// True if the call of the result already has another result.
    pub(super) fn is_repeated(&self, result: PartPosition) -> bool {
        self.repeated.contains(&result)
    }
}

/// The first open call of the newest message that has one.
fn newest(messages: &mut Vec<VecDeque<PartPosition>>) -> Option<PartPosition> {
    while let Some(calls) = messages.last_mut() {
        match calls.pop_front() {
            Some(call) => return Some(call),
            None => drop(messages.pop()),
        }
    }
    None
}
