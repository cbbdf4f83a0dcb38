//! Which result answers which call.
//!
//! As in the engine: calls and results of one id pair off like brackets, a result answers the nearest
//! call of its id before it that has no answer yet. In one message an id counts once, and a call and
//! a result of one id in the same message belong together.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::parts::{MessageParts, Part};

/// The place of a part: its message, and its number there.
pub(super) type Place = (usize, usize);

/// Which result answers which call, in a view.
#[derive(Default)]
pub(super) struct Exchanges {
    results: HashMap<Place, Place>,
    calls: HashMap<Place, Place>,
    /// Results whose call has another answer, or that stand twice in a message.
    repeated: HashSet<Place>,
}

impl Exchanges {
    /// Pairs off the calls that `is_call` takes.
    pub(super) fn of(messages: &[MessageParts<'_>], is_call: impl Fn(usize) -> bool) -> Exchanges {
        let mut exchanges = Exchanges::default();
        // The calls that are open, by id, and the ids of those that were answered.
        let mut open: HashMap<Cow<'_, str>, Vec<Place>> = HashMap::new();
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
            // An id counts once in a message.
            let mut called: HashMap<Cow<'_, str>, Place> = HashMap::new();
            for (id, call) in calls.drain(..) {
                called.entry(id).or_insert(call);
            }
            let mut seen: HashSet<Cow<'_, str>> = HashSet::new();
            for (id, result) in results.drain(..) {
                let is_second = seen.contains(&id);
                let call = match is_second {
                    true => None,
                    false => called.remove(&id).or_else(|| open.get_mut(&id).and_then(Vec::pop)),
                };
                match call {
                    Some(call) => {
                        exchanges.results.insert(call, result);
                        exchanges.calls.insert(result, call);
                        answered.insert(id.clone());
                    }
                    None if is_second || answered.contains(&id) => {
                        exchanges.repeated.insert(result);
                    }
                    None => {}
                }
                seen.insert(id);
            }
            for (id, call) in called {
                open.entry(id).or_default().push(call);
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
