//! RESTORE: shows hidden entries.

use super::sorted;
use crate::draft::Draft;
use crate::{Error, LogIndex};

/// Shows hidden entries, in a new batch: each right after the visible entry with the nearest smaller index,
/// or at the start if there is none. Visible entries keep their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Restore {
    /// The entries; at least one.
    pub indices: Vec<LogIndex>,
}

impl Restore {
    /// Shows these entries.
    pub fn entries(indices: impl IntoIterator<Item = LogIndex>) -> Restore {
        Restore { indices: indices.into_iter().collect() }
    }

    pub(super) fn perform(&self, draft: &mut Draft<'_>) -> Result<(), Error> {
        let indices = sorted(&self.indices);
        draft.check_exist(&indices)?;
        let mut view = draft.state.view.clone();
        view.show(&indices, draft.log.as_view());
        draft.open_batch(view);
        Ok(())
    }
}
