//! CLEAR: empties the view, except for pinned entries, system messages and the tool description.

use sum_tree::Keep;

use super::Scope;
use super::truncate::keep_by_role;
use crate::draft::Draft;
use crate::message_log::{check_loaded, is_loaded};
use crate::{Error, Role, RoleSet};

/// Keeps only visible pinned entries and, by default, system messages, in a new batch. If the conversation
/// has tools, stale tool descriptions that are not pinned are hidden, and the present one is visible
/// afterwards.
#[derive(Clone, Debug, PartialEq)]
pub struct Clear {
    /// Whether system messages stay. Default: true.
    pub keep_system_message: bool,
    /// The entries to select from.
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
                is_loaded(entry, index, &mut absent) && descriptions.is_stale(index, &entry.message)
            }
        };
        let mut view = draft.base(self.scope).retain(
            &draft.pinned(self.scope),
            |_, sums| match keep_by_role(sums, roles) {
                Keep::All if has_tools => Keep::Some,
                keep => keep,
            },
            |_, entry| roles.contains(entry.role()) && !is_stale(entry.index()),
        );
        check_loaded(absent)?;
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
