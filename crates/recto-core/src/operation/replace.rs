//! REPLACE: replaces visible entries by new messages. The replaced entries stay in the log.

use super::{check_indices, check_messages, sorted};
use crate::draft::Draft;
use crate::{Error, LogIndex, Message, Position};

/// Replaces the entry at a position of the view by a message, in a new batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Replace {
    /// The position of the entry in the view.
    pub index: Position,
    /// The new message.
    pub message: Message,
}

impl Replace {
    /// Replaces the entry at a position.
    pub fn at(index: Position, message: Message) -> Replace {
        Replace { index, message }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        self.message.check_content().map_err(|error| error.within("message"))
    }

    pub(super) fn perform(&self, draft: &mut Draft<'_>) -> Result<(), Error> {
        let view = &draft.state.view;
        let Some(old) = view.get(self.index) else {
            return Err(Error::NoEntryAtPosition { position: self.index, len: view.len() });
        };
        if draft.is_pinned(old) {
            return Err(Error::Pinned { index: old, field: "index" });
        }
        let added = draft.add_to_log(std::slice::from_ref(&self.message))?;
        let mut view = draft.state.view.clone();
        view.0.splice(self.index.0..=self.index.0, added);
        draft.open_batch(view);
        Ok(())
    }
}

/// The `replace` of the modification form: messages replace the first of the named log entries, and the
/// other ones are hidden, in a new batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplaceEntries {
    /// The entries; the first one named must be visible.
    pub indices: Vec<LogIndex>,
    /// The new messages; at least one.
    pub messages: Vec<Message>,
}

impl ReplaceEntries {
    /// Replaces the first of these entries by messages, and hides the others.
    pub fn with_messages(
        indices: impl IntoIterator<Item = LogIndex>,
        messages: impl IntoIterator<Item = Message>,
    ) -> ReplaceEntries {
        let (indices, messages) = (indices.into_iter().collect(), messages.into_iter().collect());
        ReplaceEntries { indices, messages }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        check_indices(&self.indices)?;
        check_messages(&self.messages)
    }

    pub(super) fn perform(&self, draft: &mut Draft<'_>) -> Result<(), Error> {
        let indices = sorted(&self.indices);
        draft.check_exist(&indices)?;
        let first = self.indices[0];
        if draft.state.view.position_of(first).is_none() {
            return Err(Error::NotVisible { index: first });
        }
        draft.check_none_pinned(&indices)?;
        let added = draft.add_to_log(&self.messages)?;
        let mut view = draft.state.view.clone();
        let others: Vec<LogIndex> = indices.into_iter().filter(|&index| index != first).collect();
        view.hide(&view.positions_of(&others));
        let Position(at) = view.position_of(first).expect("it was visible and is not hidden yet");
        view.0.splice(at..=at, added);
        draft.open_batch(view);
        Ok(())
    }
}
