//! APPEND: adds messages at the end of the view.

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
    /// Appends messages.
    pub fn messages(messages: impl IntoIterator<Item = Message>) -> Append {
        Append { messages: messages.into_iter().collect() }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        check_messages(&self.messages)
    }

    pub(super) fn perform(&self, draft: &mut Draft<'_>) -> Result<(), Error> {
        // A view that shows the whole log is a clone of it, so that both share memory.
        let is_whole_log = draft.state.view.is_same_as(draft.log.as_view());
        let start = draft.log.len();
        draft.append_to_log(&self.messages)?;
        let Draft { log, state, .. } = draft;
        if is_whole_log {
            state.view = log.as_view().clone();
        } else {
            state.view.0.extend(log.as_view().0.iter_range(start..).cloned());
        }
        Ok(())
    }
}
