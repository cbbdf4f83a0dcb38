//! Tool calls and their results.
//!
//! In a list of entries, a result belongs to the nearest call before it (or in the
//! same message) that has the same id and no result yet. An id may be reused.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::message::Entry;

/// How the calls and results of a list of entries pair off.
#[derive(Default)]
pub(super) struct Pairing {
    /// The entries of a call and of its result.
    pub(super) exchanges: Vec<(usize, usize)>,
    /// Calls without a result, by entry and id.
    pub(super) unanswered: BTreeSet<(usize, String)>,
    /// Results without a call, by entry and id.
    pub(super) unasked: BTreeSet<(usize, String)>,
}

impl Pairing {
    pub(super) fn of(log: &[Arc<Entry>], list: &[usize]) -> Pairing {
        let mut pairing = Pairing::default();
        let mut waiting: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for &index in list {
            let calls: BTreeSet<&String> = log[index].message.calls.iter().collect();
            let results: BTreeSet<&String> = log[index].message.results.iter().collect();
            for &id in results.difference(&calls) {
                match waiting.entry(id.clone()).or_default().pop() {
                    Some(call) => pairing.exchanges.push((call, index)),
                    None => _ = pairing.unasked.insert((index, id.clone())),
                }
            }
            for &id in calls.difference(&results) {
                waiting.entry(id.clone()).or_default().push(index);
            }
        }
        for (id, calls) in waiting {
            pairing.unanswered.extend(calls.into_iter().map(|index| (index, id.clone())));
        }
        pairing
    }
}

/// The visible entries with calls, and those with results, that the view has
/// torn from their partners (section 7), each in log order.
///
/// The view has not torn what has no partner in the log: a pending call, a result
/// without a call. A call and a result of one id that are unpaired in the log
/// because the result is first are partners too.
pub(super) fn torn(log: &[Arc<Entry>], view: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let in_view = Pairing::of(log, view);
    let all: Vec<usize> = (0..log.len()).collect();
    let in_log = Pairing::of(log, &all);
    let has_id = |list: &BTreeSet<(usize, String)>, id: &String| list.iter().any(|e| e.1 == *id);
    let calls: BTreeSet<usize> = (in_view.unanswered.iter())
        .filter(|call| !in_log.unanswered.contains(call) || has_id(&in_log.unasked, &call.1))
        .map(|call| call.0)
        .collect();
    let results: BTreeSet<usize> = (in_view.unasked.iter())
        .filter(|result| !in_log.unasked.contains(result) || has_id(&in_log.unanswered, &result.1))
        .map(|result| result.0)
        .collect();
    (calls.into_iter().collect(), results.into_iter().collect())
}
