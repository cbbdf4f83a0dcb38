//! BATCH_START and BATCH_END: temporary batches.

use sum_tree::Keep;

use super::rollback::roll_back_to_batch;
use crate::draft::Draft;
use crate::{BatchIndex, Error, LogIndex, Position, Role, RoleSet};

/// Opens a batch with the same view, or without the entries whose index is below a boundary. Pinned entries
/// stay visible.
///
/// `BatchStart::default()` opens one with the same view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchStart {
    /// Hide the entries whose index is below this one, except pinned ones and, with `with_tools`, the present
    /// tool description.
    pub boundary: Option<LogIndex>,
    /// Show the present tool description in the new batch, and hide stale ones that are not pinned. This has no
    /// effect in a conversation without tools.
    pub with_tools: bool,
}

impl BatchStart {
    /// Hides the entries whose index is below this one, except pinned ones.
    pub fn from_entry(boundary: LogIndex) -> BatchStart {
        BatchStart { boundary: Some(boundary), ..BatchStart::default() }
    }

    pub(super) fn perform(&self, draft: &mut Draft<'_>) -> Result<(), Error> {
        let boundary = self.boundary.unwrap_or(LogIndex(0));
        if boundary.as_usize() > draft.log.len() {
            return Err(Error::BoundaryOutOfRange { boundary, len: draft.log.len() });
        }
        let mut view = draft.state.view.clone();
        if self.with_tools {
            view.hide(&draft.stale_positions(&view)?);
        }
        let descriptions = draft.descriptions();
        let present = match self.with_tools {
            true => descriptions.positions(&view, |_, message| descriptions.is_present(message))?,
            false => Vec::new(),
        };
        if boundary > LogIndex(0) {
            let mut kept = draft.pinned_in(&view);
            kept.extend(present.iter().map(|&at| Position(at)));
            kept.sort_unstable();
            view = view.retain(
                &kept,
                |_, sums| sums.keep_from(boundary),
                |_, entry| entry.index() >= boundary,
            );
        }
        if self.with_tools
            && present.is_empty()
            && let Some(entry) = draft.present_description()?
        {
            // After the system messages at the start of the view.
            let others = RoleSet::ALL.without(Role::System);
            let at = view.nth_of(others, 0).map_or(view.len(), |position| position.0);
            view.0.splice(at..at, [entry]);
        }
        draft.open_temporary_batch(view);
        Ok(())
    }
}

/// The entries that BATCH_END keeps visible. It selects from the visible entries that were added to the
/// log after the target batch was left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Carry {
    /// None of them.
    #[default]
    None,
    /// All of them.
    All,
    /// Those of these roles.
    Roles(RoleSet),
}

/// Returns to a batch of the live path, and appends the carried entries to its view.
///
/// Without a target, it returns to the batch that was current at the newest BATCH_START of the live
/// path. Use an idempotency key if such a request may be sent twice: the second one would return one
/// BATCH_START further.
///
/// `BatchEnd::default()` carries nothing.
///
/// ```
/// use recto_core::{Approx, BatchEnd, BatchStart, Carry, Conversation, Message, Role, Settings};
///
/// let start = Conversation::new(Settings::counting_with(Approx), 0)?;
/// let (asked, _) = start.append([Message::user("How full are the disks?")], 1)?;
/// let (batch, _) = asked.apply(BatchStart::default(), 2)?;
/// let (worked, _) = batch.append([Message::user("df -h"), Message::assistant("80 %")], 3)?;
/// let answer = BatchEnd::carrying(Carry::Roles(Role::Assistant.into()));
/// let (ended, _) = worked.apply(answer, 4)?;
/// assert_eq!(ended.messages().map(|message| message.text()).collect::<Vec<_>>(),
///     ["How full are the disks?", "80 %"]);
/// # Ok::<(), recto_core::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchEnd {
    /// The batch to return to.
    pub target: Option<BatchIndex>,
    /// The entries to carry. Stale tool descriptions are never carried.
    pub carry: Carry,
}

impl BatchEnd {
    /// Returns to the batch of the newest BATCH_START, and carries these entries.
    pub fn carrying(carry: Carry) -> BatchEnd {
        BatchEnd { carry, ..BatchEnd::default() }
    }

    /// Returns to this batch, and carries nothing.
    pub fn to(target: BatchIndex) -> BatchEnd {
        BatchEnd { target: Some(target), ..BatchEnd::default() }
    }

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
        let return_to = draft.state.path.current.opening.return_to;
        let target = self.target.or(return_to).ok_or(Error::NoBatchStarted)?;
        let before = draft.state.view.clone();
        let Some(left_at) = roll_back_to_batch(draft, target)? else { return Ok(()) };
        if roles.is_empty() {
            return Ok(());
        }
        let added = before.retain(
            &[],
            |_, sums| match sums.keep_from(left_at) {
                Keep::All => Keep::Some,
                keep => keep,
            },
            |_, entry| entry.index() >= left_at && roles.contains(entry.role()),
        );
        let descriptions = draft.descriptions();
        let stale = descriptions
            .positions(&added, |index, message| descriptions.is_stale(index, message))?;
        let mut locator = draft.state.view.locator();
        let mut carried: Vec<_> = added
            .0
            .iter()
            .enumerate()
            .filter(|(at, entry)| {
                stale.binary_search(at).is_err() && locator.position_of(entry.index()).is_none()
            })
            .map(|(_, entry)| entry.clone())
            .collect();
        carried.sort_unstable_by_key(|entry| entry.index());
        draft.state.view.0.extend(carried);
        Ok(())
    }
}
