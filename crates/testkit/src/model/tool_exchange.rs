//! Tool calls and their results.
//!
//! In a list of entries, a result belongs to the nearest call before it (or in the
//! same message) that has the same id and no result yet. An id may be reused.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::message::Entry;

/// The pairs of calls and results in a list of entries.
#[derive(Default)]
pub(super) struct Pairing {
    /// The entries of a call and of its result.
    pub(super) exchanges: Vec<(usize, usize)>,
    /// Calls without a result, by entry and id.
    pub(super) without_result: BTreeSet<(usize, String)>,
    /// Results without a call, by entry and id.
    pub(super) without_call: BTreeSet<(usize, String)>,
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
                    None => _ = pairing.without_call.insert((index, id.clone())),
                }
            }
            for &id in calls.difference(&results) {
                waiting.entry(id.clone()).or_default().push(index);
            }
        }
        for (id, calls) in waiting {
            pairing.without_result.extend(calls.into_iter().map(|index| (index, id.clone())));
        }
        pairing
    }
}

/// The visible entries with torn calls, and those with torn results (section 7), each in log order.
///
/// A call or result without a partner in the log is not torn. A call and a result with one id that are
/// unpaired in the log because the result is first are partners too.
pub(super) fn torn(log: &[Arc<Entry>], view: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let in_view = Pairing::of(log, view);
    let all: Vec<usize> = (0..log.len()).collect();
    let in_log = Pairing::of(log, &all);
    let has_id = |list: &BTreeSet<(usize, String)>, id: &String| list.iter().any(|e| e.1 == *id);
    let calls: BTreeSet<usize> = (in_view.without_result.iter())
        .filter(|call| {
            !in_log.without_result.contains(call) || has_id(&in_log.without_call, &call.1)
        })
        .map(|call| call.0)
        .collect();
    let results: BTreeSet<usize> = (in_view.without_call.iter())
        .filter(|result| {
            !in_log.without_call.contains(result) || has_id(&in_log.without_result, &result.1)
        })
        .map(|result| result.0)
        .collect();
    (calls.into_iter().collect(), results.into_iter().collect())
}
