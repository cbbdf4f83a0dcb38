//! COMPRESS: entries out of the view, and a summary in their place.

use super::sorted;
use crate::draft::Draft;
use crate::{Error, LogIndex, Message};

/// Takes entries out of the view, in a new batch; a summary takes the place of the first of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compress {
    /// The entries; at least one.
    pub indices: Vec<LogIndex>,
    /// What stands for them.
    pub summary: Option<Message>,
}

impl Compress {
    pub(super) fn perform(&self, draft: &mut Draft<'_>) -> Result<(), Error> {
        let indices = sorted(&self.indices);
        draft.check_exist(&indices)?;
        let first = draft.state.view.first_of(&indices);
        if self.summary.is_some() && first.is_none() {
            return Err(Error::NothingToCompress);
        }
        draft.check_none_pinned(&indices)?;
        let mut view = draft.state.view.clone();
        view.hide(&indices);
        if let (Some(summary), Some(first)) = (&self.summary, first) {
            let added = draft.add_to_log(std::slice::from_ref(summary))?;
            view.0.splice(first.0..first.0, added);
        }
        draft.open_batch(view);
        Ok(())
    }
}
