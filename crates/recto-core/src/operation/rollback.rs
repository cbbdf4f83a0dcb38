//! ROLLBACK: back to a batch of the live path, or to the exact state at a version.

use crate::draft::Draft;
use crate::{BatchIndex, Error, LogIndex, Version};

/// Goes back. Nothing is lost: what was left stays reachable by its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rollback {
    /// Makes a batch of the live path current again, with the view it was left with. The tools stay
    /// as they are: in that view, stale tool descriptions give way to the present one.
    ToBatch(BatchIndex),
    /// Brings view, live path, marks and tools back as they were at a version.
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

/// Goes back to a batch, and says how long the log was when that batch was left; `None` for the
/// current batch, which was not left. Stale descriptions give way to the present one.
pub(super) fn roll_back_to_batch(
    draft: &mut Draft<'_>,
    batch: BatchIndex,
) -> Result<Option<LogIndex>, Error> {
    let left_at = return_to_batch(draft, batch)?;
    let stale = draft.stale_places(&draft.state.view)?;
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
    let Some(left) = draft.state.path.left(batch, draft.known_batches)? else {
        return Err(Error::BatchNotFound { batch, current, field: "targetBatchIndex" });
    };
    draft.state.view = left.view.clone();
    draft.state.path.step_down_to(&left);
    let left_at = LogIndex(left.log_len as u32);
    draft.returned_to = Some(left);
    Ok(Some(left_at))
}
