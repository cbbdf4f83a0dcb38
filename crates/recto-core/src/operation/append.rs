//! APPEND: more messages at the end of the current batch.

use super::check_messages;
use crate::draft::Draft;
use crate::{Error, Message};

/// Adds messages to the log and to the end of the view. Opens no batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Append {
    /// The messages in order; at least one.
    pub messages: Vec<Message>,
}

impl Append {
    pub(super) fn check(&self) -> Result<(), Error> {
        check_messages(&self.messages)
    }

    pub(super) fn perform(&self, draft: &mut Draft<'_>) -> Result<(), Error> {
        // As long as nothing was ever shaped, the view is the log, and shares its memory.
        if draft.state.view.is_same_as(draft.log.as_view()) {
            draft.log.append(&self.messages, draft.now, draft.meter)?;
            draft.state.view = draft.log.as_view().clone();
        } else {
            let added = draft.add_to_log(&self.messages)?;
            draft.state.view.0.extend(added);
        }
        Ok(())
    }
}
