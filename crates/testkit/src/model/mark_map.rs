//! The mark map (section 7).

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::message::Entry;
use super::operation::Scope;
use super::role::Role;
use super::state::State;

/// `{originalIndices, typeIndices, batchBoundaries, boundaryToBatch, currentBatch}`.
/// `scope` decides what `typeIndices` lists: the visible entries in view order,
/// or the whole log.
pub(super) fn mark_map(log: &[Arc<Entry>], state: &State, scope: Scope) -> Value {
    let listed = match scope {
        Scope::Visible => state.view().to_vec(),
        Scope::All => (0..log.len()).collect(),
    };
    let mut type_indices = Map::new();
    for role in Role::ALL {
        let of_role = |index: &usize| log[*index].message.role == role;
        let indices: Vec<usize> = listed.iter().copied().filter(of_role).collect();
        type_indices.insert(role.name().to_owned(), json!(indices));
    }
    let boundaries: Vec<usize> = state.path.iter().map(|batch| batch.boundary).collect();
    let batches: Vec<usize> = (0..state.path.len()).collect();
    json!({
        "originalIndices": state.view(),
        "typeIndices": type_indices,
        "batchBoundaries": boundaries,
        "boundaryToBatch": batches,
        "currentBatch": state.batch_index(),
    })
}
