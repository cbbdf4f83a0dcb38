//! MARK and UNMARK: labels on log entries.

use super::{check_indices, sorted};
use crate::draft::Draft;
use crate::{Error, LogIndex, PINNED};

/// Sets a label on entries, visible or not. The label `pinned` protects them. Opens no batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mark {
    /// The entries; at least one.
    pub indices: Vec<LogIndex>,
    /// The label; not empty.
    pub mark: String,
}

/// Takes a label off entries. Opens no batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unmark {
    /// The entries; at least one.
    pub indices: Vec<LogIndex>,
    /// The label; not empty.
    pub mark: String,
}

impl Mark {
    /// Pins entries.
    pub fn pin(indices: impl IntoIterator<Item = LogIndex>) -> Mark {
        Mark { indices: indices.into_iter().collect(), mark: PINNED.to_owned() }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        check(&self.indices, &self.mark)
    }

    pub(super) fn perform(&self, draft: &mut Draft<'_>) -> Result<(), Error> {
        let indices = sorted(&self.indices);
        draft.check_exist(&indices)?;
        draft.state.marks.set(&indices, &self.mark);
        Ok(())
    }
}

impl Unmark {
    pub(super) fn check(&self) -> Result<(), Error> {
        check(&self.indices, &self.mark)
    }

    pub(super) fn perform(&self, draft: &mut Draft<'_>) -> Result<(), Error> {
        let indices = sorted(&self.indices);
        draft.check_exist(&indices)?;
        draft.state.marks.unset(&indices, &self.mark);
        Ok(())
    }
}

fn check(indices: &[LogIndex], label: &str) -> Result<(), Error> {
    check_indices(indices)?;
    if label.is_empty() {
        return Err(Error::operation_field("mark", "mark is empty; give the label a name"));
    }
    Ok(())
}
