//! CLEAR: an empty view, but for system messages and the tool description.

use sum_tree::Keep;

use super::Scope;
use super::truncate::judge_by_role;
use crate::draft::Draft;
use crate::message_log::{check_at_hand, is_at_hand};
use crate::{Error, Role, RoleSet};

/// Empties the view, in a new batch. Afterwards the description of the present tools is visible.
#[derive(Clone, Debug, PartialEq)]
pub struct Clear {
    /// Keep the system messages.
    pub keep_system_message: bool,
    /// What to start from.
    pub scope: Scope,
}

impl Default for Clear {
    fn default() -> Self {
        Clear { keep_system_message: true, scope: Scope::Visible }
    }
}

impl Clear {
    pub(super) fn perform(&self, draft: &mut Draft<'_>) -> Result<(), Error> {
        let roles =
            if self.keep_system_message { RoleSet::from(Role::System) } else { RoleSet::NONE };
        let log = &draft.log;
        let descriptions = draft.descriptions();
        let has_tools = descriptions.tools.is_some();
        let mut absent = Vec::new();
        let mut is_stale = |index| {
            has_tools && {
                let entry = log.get(index).expect("a view holds only entries of the log");
                is_at_hand(entry, index, &mut absent)
                    && descriptions.is_stale(index, &entry.message)
            }
        };
        let mut view = draft.base(self.scope).retain(
            &draft.pinned(self.scope),
            |_, sums| match judge_by_role(sums, roles) {
                Keep::All if has_tools => Keep::Some,
                judgement => judgement,
            },
            |_, entry| roles.contains(entry.role()) && !is_stale(entry.index()),
        );
        check_at_hand(absent)?;
        if has_tools
            && !draft.descriptions().is_shown_in(&view)?
            && let Some(entry) = draft.present_description()?
        {
            view.push(entry);
        }
        draft.open_batch(view);
        Ok(())
    }
}
