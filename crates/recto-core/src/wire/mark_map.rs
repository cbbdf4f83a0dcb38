//! The mark map: boundaries and index lists in the form of older tools. It is only written.

use serde::Serialize;

use crate::{BatchIndex, Conversation, Error, LogIndex, Role, Scope};

/// The view, the entries by role and the batches, in the form of older tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct MarkMap {
    /// The view.
    pub original_indices: Vec<LogIndex>,
    /// The visible entries of each role in view order, or all log entries of each role.
    pub type_indices: TypeIndices,
    /// For each batch of the live path, the smallest index in its view when it was opened; the length of the
    /// log if that view was empty.
    pub batch_boundaries: Vec<LogIndex>,
    /// The numbers of these batches.
    pub boundary_to_batch: Vec<BatchIndex>,
    /// The current batch.
    pub current_batch: BatchIndex,
}

/// Log entries by role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names are the roles")]
pub struct TypeIndices {
    pub system: Vec<LogIndex>,
    pub user: Vec<LogIndex>,
    pub assistant: Vec<LogIndex>,
    pub tool: Vec<LogIndex>,
}

impl Conversation {
    /// The mark map. Its `typeIndices` list the visible entries, or with [`Scope::All`] the whole log.
    pub fn mark_map(&self, scope: Scope) -> Result<MarkMap, Error> {
        let listed = match scope {
            Scope::Visible => self.view(),
            Scope::All => {
                self.log.check_metadata()?;
                self.log.as_view()
            }
        };
        let mut by_role = TypeIndices::default();
        for entry in listed.0.iter() {
            let list = match entry.role() {
                Role::System => &mut by_role.system,
                Role::User => &mut by_role.user,
                Role::Assistant => &mut by_role.assistant,
                Role::Tool => &mut by_role.tool,
            };
            list.push(entry.index());
        }
        let path = &self.state().path;
        let openings = path.openings(&self.shared.loaded_batches)?;
        Ok(MarkMap {
            original_indices: self.view().iter().collect(),
            type_indices: by_role,
            batch_boundaries: openings.iter().map(|opening| opening.boundary).collect(),
            boundary_to_batch: (0..path.len()).map(BatchIndex).collect(),
            current_batch: path.current_number(),
        })
    }
}
