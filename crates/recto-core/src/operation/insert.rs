//! INSERT: adds messages at a position of the view.

use super::check_messages;
use crate::draft::Draft;
use crate::{Error, Message, Position};

/// Adds messages to the log and inserts them into the view, in a new batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Insert {
    /// The position of the first message: 0 to the length of the view.
    pub position: Position,
    /// The messages in order; at least one.
    pub messages: Vec<Message>,
}

impl Insert {
    /// Inserts messages at a position.
    pub fn at(position: Position, messages: impl IntoIterator<Item = Message>) -> Insert {
        Insert { position, messages: messages.into_iter().collect() }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        check_messages(&self.messages)
    }

    pub(super) fn perform(&self, draft: &mut Draft<'_>) -> Result<(), Error> {
        let len = draft.state.view.len();
        if self.position.0 > len {
            return Err(Error::PositionOutOfRange { position: self.position, len });
        }
        let added = draft.add_to_log(&self.messages)?;
        let mut view = draft.state.view.clone();
        view.0.splice(self.position.0..self.position.0, added);
        draft.open_batch(view);
        Ok(())
    }
}
