//! COMPRESS: hides entries and shows a summary instead.

use super::{check_indices, sorted};
use crate::draft::Draft;
use crate::{Error, LogIndex, Message};

/// Hides entries, in a new batch. The summary is shown at the position of the first visible one of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compress {
    /// The entries; at least one.
    pub indices: Vec<LogIndex>,
    /// The summary of the entries. Default: none.
    pub summary: Option<Message>,
}

impl Compress {
    /// Replaces entries by a summary.
    pub fn with_summary(indices: impl IntoIterator<Item = LogIndex>, summary: Message) -> Compress {
        Compress { indices: indices.into_iter().collect(), summary: Some(summary) }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        check_indices(&self.indices)?;
        let checked = self.summary.as_ref().map_or(Ok(()), Message::check_content);
        checked.map_err(|error| error.within("summary"))
    }

    pub(super) fn perform(&self, draft: &mut Draft<'_>) -> Result<(), Error> {
        let indices = sorted(&self.indices);
        draft.check_exist(&indices)?;
        let positions = draft.state.view.positions_of(&indices);
        if self.summary.is_some() && positions.is_empty() {
            return Err(Error::NothingToCompress);
        }
        draft.check_none_pinned(&indices)?;
        let mut view = draft.state.view.clone();
        view.hide(&positions);
        if let (Some(summary), Some(&first)) = (&self.summary, positions.first()) {
            let added = draft.add_to_log(std::slice::from_ref(summary))?;
            view.0.splice(first..first, added);
        }
        draft.open_batch(view);
        Ok(())
    }
}
