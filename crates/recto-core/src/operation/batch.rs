//! BATCH_START and BATCH_END: temporary stages of the view.

use sum_tree::Keep;

use super::rollback::roll_back_to_batch;
use crate::draft::Draft;
use crate::{BatchIndex, Error, LogIndex, RoleSet};

/// Opens a batch with the same view, or with only the entries from a boundary on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchStart {
    /// Leave out the entries whose index is below it.
    pub boundary: Option<LogIndex>,
}

impl BatchStart {
    pub(super) fn perform(&self, draft: &mut Draft<'_>) -> Result<(), Error> {
        let Some(boundary) = self.boundary else {
            draft.open_batch(draft.state.view.clone());
            return Ok(());
        };
        if boundary.as_usize() > draft.log.len() {
            return Err(Error::BoundaryOutOfRange { boundary, len: draft.log.len() });
        }
        let pinned = draft.pinned(super::Scope::Visible);
        let view = draft.state.view.retain(
            &pinned,
            |_, sums| sums.judge_from(boundary),
            |_, entry| entry.index() >= boundary,
        );
        draft.open_batch(view);
        Ok(())
    }
}

/// What comes along when a batch ends: of what was added to the log since the target batch was
/// left, and is still visible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carry {
    /// Nothing.
    #[default]
    None,
    /// Everything.
    All,
    /// The messages of these roles.
    Roles(RoleSet),
}

/// Goes back to a batch of the live path, and carries messages along to the end of the view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchEnd {
    /// The batch to go back to.
    pub target: BatchIndex,
    /// What comes along.
    pub carry: Carry,
}

impl BatchEnd {
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.carry == Carry::Roles(RoleSet::NONE) {
            let reason = "carry is empty; use \"none\", \"all\" or a list of roles";
            return Err(Error::operation_field("carry", reason));
        }
        Ok(())
    }

    pub(super) fn perform(&self, draft: &mut Draft<'_>) -> Result<(), Error> {
        let roles = match self.carry {
            Carry::None => RoleSet::NONE,
            Carry::All => RoleSet::ALL,
            Carry::Roles(roles) => roles,
        };
        let before = draft.state.view.clone();
        let Some(left_at) = roll_back_to_batch(draft, self.target)? else { return Ok(()) };
        if roles.is_empty() {
            return Ok(());
        }
        let since = before.retain(
            &[],
            |_, sums| match sums.judge_from(left_at) {
                Keep::All => Keep::Some,
                judgement => judgement,
            },
            |_, entry| entry.index() >= left_at && roles.contains(entry.role()),
        );
        let mut carried: Vec<_> = since.0.iter().cloned().collect();
        carried.sort_unstable_by_key(|entry| entry.index());
        draft.state.view.0.extend(carried);
        Ok(())
    }
}
