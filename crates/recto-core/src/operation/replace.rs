//! REPLACE: messages in the place of others, which stay in the log.

use super::{check_indices, check_messages, sorted};
use crate::draft::Draft;
use crate::{Error, LogIndex, Message, Position};

/// Puts a message in the place of the entry at a place of the view, in a new batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Replace {
    /// Where the entry stands in the view.
    pub index: Position,
    /// What takes its place.
    pub message: Message,
}

impl Replace {
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

/// The modification form's `replace`: messages take the place of the first of the named log
/// entries, and the others are hidden, in a new batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplaceEntries {
    /// The entries; the first one named must be visible.
    pub indices: Vec<LogIndex>,
    /// What takes its place; at least one message.
    pub messages: Vec<Message>,
}

impl ReplaceEntries {
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
        view.hide(&view.places_of(&others));
        let Position(at) = view.position_of(first).expect("it was visible and is not hidden yet");
        view.0.splice(at..=at, added);
        draft.open_batch(view);
        Ok(())
    }
}
