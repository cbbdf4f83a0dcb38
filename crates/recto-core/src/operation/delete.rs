//! DELETE: hides entries.

use super::sorted;
use crate::draft::Draft;
use crate::{Error, LogIndex};

/// Hides entries, in a new batch. Entries that are hidden already stay hidden.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delete {
    /// The entries; at least one.
    pub indices: Vec<LogIndex>,
}

impl Delete {
    /// Hides these entries.
    pub fn entries(indices: impl IntoIterator<Item = LogIndex>) -> Delete {
        Delete { indices: indices.into_iter().collect() }
    }

    pub(super) fn perform(&self, draft: &mut Draft<'_>) -> Result<(), Error> {
        let indices = sorted(&self.indices);
        draft.check_exist(&indices)?;
        draft.check_none_pinned(&indices)?;
        let mut view = draft.state.view.clone();
        view.hide(&view.positions_of(&indices));
        draft.open_batch(view);
        Ok(())
    }
}
