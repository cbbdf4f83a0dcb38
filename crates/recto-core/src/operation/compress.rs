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
        let places = draft.state.view.places_of(&indices);
        if self.summary.is_some() && places.is_empty() {
            return Err(Error::NothingToCompress);
        }
        draft.check_none_pinned(&indices)?;
        let mut view = draft.state.view.clone();
        view.hide(&places);
        if let (Some(summary), Some(&first)) = (&self.summary, places.first()) {
            let added = draft.add_to_log(std::slice::from_ref(summary))?;
            view.0.splice(first..first, added);
        }
        draft.open_batch(view);
        Ok(())
    }
}
