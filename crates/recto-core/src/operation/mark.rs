//! MARK and UNMARK: set and remove marks on log entries.

use super::{check_indices, sorted};
use crate::draft::Draft;
use crate::{Error, LogIndex, PINNED};

/// Sets a mark on entries, visible or hidden. The mark `pinned` protects an entry from being hidden. Opens
/// no batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mark {
    /// The entries; at least one.
    pub indices: Vec<LogIndex>,
    /// The mark; not empty.
    pub mark: String,
}

/// Removes a mark from entries. Opens no batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unmark {
    /// The entries; at least one.
    pub indices: Vec<LogIndex>,
    /// The mark; not empty.
    pub mark: String,
}

impl Mark {
    /// Sets a mark on entries.
    pub fn label(indices: impl IntoIterator<Item = LogIndex>, mark: impl Into<String>) -> Mark {
        Mark { indices: indices.into_iter().collect(), mark: mark.into() }
    }

    /// Sets the mark [`PINNED`] on entries.
    pub fn pin(indices: impl IntoIterator<Item = LogIndex>) -> Mark {
        Mark::label(indices, PINNED)
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
    /// Removes a mark from entries.
    pub fn label(indices: impl IntoIterator<Item = LogIndex>, mark: impl Into<String>) -> Unmark {
        Unmark { indices: indices.into_iter().collect(), mark: mark.into() }
    }

    /// Removes the mark [`PINNED`] from entries.
    pub fn unpin(indices: impl IntoIterator<Item = LogIndex>) -> Unmark {
        Unmark::label(indices, PINNED)
    }

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

fn check(indices: &[LogIndex], mark: &str) -> Result<(), Error> {
    check_indices(indices)?;
    if mark.is_empty() {
        return Err(Error::operation_field("mark", "mark must have at least 1 character"));
    }
    Ok(())
}
