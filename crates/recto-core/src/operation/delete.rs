//! DELETE: entries out of the view.

use super::sorted;
use crate::draft::Draft;
use crate::{Error, LogIndex};

/// Takes entries out of the view, in a new batch. Hidden ones are left as they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delete {
    /// The entries; at least one.
    pub indices: Vec<LogIndex>,
}

impl Delete {
    pub(super) fn perform(&self, draft: &mut Draft<'_>) -> Result<(), Error> {
        let indices = sorted(&self.indices);
        draft.check_exist(&indices)?;
        draft.check_none_pinned(&indices)?;
        let mut view = draft.state.view.clone();
        view.hide(&view.places_of(&indices));
        draft.open_batch(view);
        Ok(())
    }
}
