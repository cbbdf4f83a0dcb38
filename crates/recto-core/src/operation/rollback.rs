//! ROLLBACK: returns to a batch of the live path, or to the exact state at a version.

use crate::draft::Draft;
use crate::{BatchIndex, Error, LogIndex, Version};

/// Returns to an earlier state. Later versions stay reachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rollback {
    /// Makes a batch of the live path current again, with its last view. The tools do not change: in that
    /// view, the present tool description replaces stale ones that are not pinned.
    ToBatch(BatchIndex),
    /// Restores the view, live path, marks and tools of a version.
    ToVersion(Version),
}

impl Rollback {
    pub(super) fn perform(&self, draft: &mut Draft<'_>) -> Result<(), Error> {
        match *self {
            Rollback::ToBatch(batch) => roll_back_to_batch(draft, batch).map(drop),
            Rollback::ToVersion(version) => {
                draft.restore(draft.history.record(version, "targetVersion")?);
                Ok(())
            }
        }
    }
}

/// Returns to a batch. Returns the length of the log when that batch was left; `None` for the current
/// batch. The present tool description replaces stale ones.
pub(super) fn roll_back_to_batch(
    draft: &mut Draft<'_>,
    batch: BatchIndex,
) -> Result<Option<LogIndex>, Error> {
    let left_at = return_to_batch(draft, batch)?;
    let stale = draft.stale_positions(&draft.state.view)?;
    if !stale.is_empty() {
        let view = draft.state.view.clone();
        draft.state.view = draft.replace_descriptions(&view, &stale)?;
    }
    Ok(left_at)
}

fn return_to_batch(draft: &mut Draft<'_>, batch: BatchIndex) -> Result<Option<LogIndex>, Error> {
    let current = draft.state.path.current_number();
    if batch == current {
        return Ok(None);
    }
    let Some(left) = draft.state.path.left(batch, draft.loaded_batches)? else {
        return Err(Error::BatchNotFound { batch, current, field: "targetBatchIndex" });
    };
    draft.state.view = left.view.clone();
    draft.state.path.return_to(&left);
    let left_at = LogIndex(left.log_len as u32);
    draft.returned_to = Some(left);
    Ok(Some(left_at))
}
