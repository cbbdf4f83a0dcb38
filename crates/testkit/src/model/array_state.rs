//! The message array state (section 7).

use std::sync::Arc;

use serde_json::{Value, json};

use super::message::Entry;
use super::state::State;

/// `{messages, batchSnapshots, currentBatchIndex, totalMessageCount}`: the
/// visible messages, a snapshot of each batch below the current one, and the
/// number of visible messages.
///
/// A snapshot has no `description` here, because the contract does not define its text
/// if the caller gave none.
pub(super) fn array_state(log: &[Arc<Entry>], state: &State) -> Value {
    let messages = |view: &[usize]| {
        Value::from_iter(view.iter().map(|&index| log[index].message.json.clone()))
    };
    let below = state.path.iter().take(state.batch_index()).enumerate();
    let snapshots = below.map(|(number, batch)| {
        json!({
            "batchIndex": number,
            "timestamp": batch.opened_at,
            "messageCount": batch.view.len(),
            "messages": messages(&batch.view),
        })
    });
    json!({
        "messages": messages(state.view()),
        "batchSnapshots": Value::from_iter(snapshots),
        "currentBatchIndex": state.batch_index(),
        "totalMessageCount": state.view().len(),
    })
}
