//! Blame: the requests that added, hid or showed a log entry or changed its marks, and their reasons.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::diff::Diff;
use crate::history::Record;
use crate::operation::OperationKind;
use crate::{Conversation, Error, LogIndex, Timestamp, Version, View};

/// A request that changed whether an entry is visible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Blame {
    /// The version that the request made.
    pub version: Version,
    /// The operation. In a request with several operations: the one that had the effect.
    pub operation: OperationKind,
    /// The reason of the operation.
    #[serde(rename = "description")]
    pub reason: String,
    /// The time of the request.
    pub timestamp: Timestamp,
    /// The effect on the entry.
    pub effect: Effect,
}

/// The effect of a request on an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Effect {
    /// The entry was added to the log and the view.
    Added,
    /// The entry was added to the log and was hidden after the request.
    AddedHidden,
    /// The entry was hidden.
    Hidden,
    /// The entry was shown again.
    Shown,
}

/// A request that added a mark to an entry or removed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MarkBlame {
    /// The version that the request made.
    pub version: Version,
    /// The operation of the request; [`OperationKind::List`] if the request had several.
    pub operation: OperationKind,
    /// The reason of the request.
    #[serde(rename = "description")]
    pub reason: String,
    /// The time of the request.
    pub timestamp: Timestamp,
    /// The mark.
    pub mark: String,
    /// Whether the request added the mark. If not, it removed the mark.
    pub marked: bool,
}

impl Conversation {
    /// The requests that added a mark to an entry or removed it, oldest first.
    pub fn blame_marks(&self, index: LogIndex) -> Result<Vec<MarkBlame>, Error> {
        self.log.check_index(index)?;
        self.history.check_all_loaded()?;
        let mut blames = Vec::new();
        let mut before: BTreeSet<&str> = BTreeSet::new();
        for (version, record) in self.history.iter() {
            let marks = &self.history.state_of(record).marks;
            let now: BTreeSet<&str> =
                marks.labels().filter(|label| marks.has(index, label)).collect();
            for &mark in before.symmetric_difference(&now) {
                blames.push(MarkBlame {
                    version,
                    operation: record.kind,
                    reason: self.history.reason(version, record),
                    timestamp: record.timestamp,
                    mark: mark.to_owned(),
                    marked: now.contains(mark),
                });
            }
            before = now;
        }
        Ok(blames)
    }

    /// The requests that changed whether an entry is visible, oldest first. The last one explains why it
    /// is visible or hidden now.
    pub fn blame(&self, index: LogIndex) -> Result<Vec<Blame>, Error> {
        self.log.check_index(index)?;
        self.history.check_all_loaded()?;
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
                let (operation, reason) =
                    self.responsible_operation(version, record, index, is_visible);
                let timestamp = record.timestamp;
                blames.push(Blame { version, operation, reason, timestamp, effect });
            }
            was_logged = true;
            was_visible = is_visible;
        }
        Ok(blames)
    }

    /// For every log entry that is hidden at a version, in log order: the last request up to that version
    /// that hid the entry or added it hidden. The cost grows with the log and with the differences between
    /// neighbouring versions.
    pub fn blame_hidden(&self, at: Version) -> Result<Vec<(LogIndex, Blame)>, Error> {
        let current = self.history.current_version();
        if at > current {
            return Err(Error::VersionNotFound { version: at, current, field: "at" });
        }
        self.history.check_all_loaded()?;
        // The request that hid each entry; `None` while it is visible.
        let mut hidden_by: Vec<Option<(Version, Effect)>> = Vec::new();
        let mut before = None;
        for (version, record) in self.history.iter().take_while(|(version, _)| *version <= at) {
            hidden_by.resize(record.log_len as usize, Some((version, Effect::AddedHidden)));
            let view = &self.history.state_of(record).view;
            let (hidden, shown) = match before.replace(view) {
                None => (Vec::new(), view.iter().collect()),
                Some(before) => {
                    let Diff { hidden, shown, .. } = Diff::between(before, view);
                    (hidden.indices, shown.indices)
                }
            };
            for index in hidden {
                hidden_by[index.as_usize()] = Some((version, Effect::Hidden));
            }
            for index in shown {
                hidden_by[index.as_usize()] = None;
            }
        }
        let blamed = (0..).map(LogIndex).zip(hidden_by);
        let blamed = blamed.filter_map(|(index, hidden_by)| Some((index, hidden_by?)));
        blamed
            .map(|(index, (version, effect))| {
                let record = self.history.record(version, "at")?;
                let (operation, reason) = self.responsible_operation(version, record, index, false);
                let timestamp = record.timestamp;
                Ok((index, Blame { version, operation, reason, timestamp, effect }))
            })
            .collect()
    }

    /// The kind and the reason of the operation that had the effect: the first operation of the request after
    /// which the entry stays visible (or hidden, if `is_visible` is false) until the end of the request.
    fn responsible_operation(
        &self,
        version: Version,
        record: &Record,
        index: LogIndex,
        is_visible: bool,
    ) -> (OperationKind, String) {
        let shows = |view: &View| view.position_of(index).is_some();
        let steps = record.steps().iter().rev();
        match steps.take_while(|step| shows(&step.view) == is_visible).last() {
            Some(step) => (step.kind, step.reason.to_string()),
            None => (record.kind, self.history.reason(version, record)),
        }
    }
}
