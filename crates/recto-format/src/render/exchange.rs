//! Which result answers which call.
//!
//! As in the engine, calls and results of one id pair off like brackets: a result answers the nearest
//! message before it with an open call of its id, and a call and a result of one id in the same message
//! belong together. Where one message calls twice with the same id (some servers give all parallel
//! calls the same, or none), its calls are answered in their order.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use crate::parts::{MessageParts, Part};

/// The place of a part: its message, and its number there.
pub(super) type Place = (usize, usize);

/// Which result answers which call, in a view.
#[derive(Default)]
pub(super) struct Exchanges {
    results: HashMap<Place, Place>,
    calls: HashMap<Place, Place>,
    /// Results whose calls all have answers.
    repeated: HashSet<Place>,
}

impl Exchanges {
    /// Pairs off the calls that `is_call` takes.
    pub(super) fn of(messages: &[MessageParts<'_>], is_call: impl Fn(usize) -> bool) -> Exchanges {
        let mut exchanges = Exchanges::default();
        // The calls that are open, by id, and the ids of those that were answered.
        let mut open: HashMap<Cow<'_, str>, Vec<VecDeque<Place>>> = HashMap::new();
        let mut answered: HashSet<Cow<'_, str>> = HashSet::new();
        let mut calls: Vec<(Cow<'_, str>, Place)> = Vec::new();
        let mut results: Vec<(Cow<'_, str>, Place)> = Vec::new();
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
            let mut called: HashMap<Cow<'_, str>, VecDeque<Place>> = HashMap::new();
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
    pub(super) fn result_of(&self, call: Place) -> Option<Place> {
        self.results.get(&call).copied()
    }

    /// The call that a result answers.
    pub(super) fn call_of(&self, result: Place) -> Option<Place> {
        self.calls.get(&result).copied()
    }

    /// Whether the result answers a call that has an answer.
    pub(super) fn is_repeated(&self, result: Place) -> bool {
        self.repeated.contains(&result)
    }
}

/// The first open call of the newest message that has one.
fn newest(messages: &mut Vec<VecDeque<Place>>) -> Option<Place> {
    while let Some(calls) = messages.last_mut() {
        match calls.pop_front() {
            Some(call) => return Some(call),
            None => drop(messages.pop()),
        }
    }
    None
}
