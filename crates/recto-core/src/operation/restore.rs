//! RESTORE: hidden entries back into the view.

use super::sorted;
use crate::draft::Draft;
use crate::{Error, LogIndex};

/// Brings hidden entries back, in a new batch: each right behind the nearest visible entry with a
/// smaller index, or to the front. Visible ones are left where they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Restore {
    /// The entries; at least one.
    pub indices: Vec<LogIndex>,
}

impl Restore {
    pub(super) fn perform(&self, draft: &mut Draft<'_>) -> Result<(), Error> {
        let indices = sorted(&self.indices);
        draft.check_exist(&indices)?;
        let mut view = draft.state.view.clone();
        view.show(&indices, &draft.log);
        draft.open_batch(view);
        Ok(())
    }
}
