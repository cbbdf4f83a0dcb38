//! Who hid a log entry, or brought it back, and why.

use serde::Serialize;

use crate::history::Record;
use crate::operation::OperationKind;
use crate::{Conversation, Error, LogIndex, Timestamp, Version, View};

/// A request that changed whether an entry is visible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Blame {
    /// The version that it made.
    pub version: Version,
    /// The operation; in a list of operations the one that did it.
    pub operation: OperationKind,
    /// Why, as the caller said, or what the operation does.
    pub description: String,
    /// When.
    pub timestamp: Timestamp,
    /// What it did to the entry.
    pub effect: Effect,
}

/// What happened to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    /// It entered the log and the view.
    Added,
    /// It entered the log, but was not visible when the request was done.
    AddedHidden,
    /// It was taken out of the view.
    Hidden,
    /// It was brought back into the view.
    Shown,
}

impl Conversation {
    /// Everything that happened to an entry, oldest first. The last one says why it is visible or
    /// hidden now.
    pub fn blame(&self, index: LogIndex) -> Result<Vec<Blame>, Error> {
        self.log.check_index(index)?;
        self.history.check_whole()?;
        let mut blames = Vec::new();
        let mut was_visible = false;
        let mut was_logged = false;
        for (version, record) in self.history.iter() {
            if (record.log_len as usize) <= index.as_usize() {
                continue;
            }
            let view = &self.history.state_of(record).view;
            let is_visible = view.position_of(index).is_some();
            let effect = match (was_logged, was_visible, is_visible) {
                (false, _, true) => Some(Effect::Added),
                (false, _, false) => Some(Effect::AddedHidden),
                (true, true, false) => Some(Effect::Hidden),
                (true, false, true) => Some(Effect::Shown),
                _ => None,
            };
            if let Some(effect) = effect {
                let (operation, description) = self.responsible(version, record, index, is_visible);
                let timestamp = record.timestamp;
                blames.push(Blame { version, operation, description, timestamp, effect });
            }
            was_logged = true;
            was_visible = is_visible;
        }
        Ok(blames)
    }

    /// The operation of a request after which the entry stayed as the request left it.
    fn responsible(
        &self,
        version: Version,
        record: &Record,
        index: LogIndex,
        is_visible: bool,
    ) -> (OperationKind, String) {
        let shows = |view: &View| view.position_of(index).is_some();
        let step = record.steps().iter().rev();
        match step.take_while(|step| shows(&step.view) == is_visible).last() {
            Some(step) => (step.kind, step.description.to_string()),
            None => (record.kind, self.history.description(version, record)),
        }
    }
}
