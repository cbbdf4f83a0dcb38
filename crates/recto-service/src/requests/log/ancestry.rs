//! The parent of each version: the version whose state it continues.

use std::collections::HashMap;

use recto::{Conversation, OperationKind, Version, VersionInfo};

use crate::Error;

/// The parents of versions, which are in ascending order. If several versions have the restored view, the
/// parent is the newest of them, because a mark in between does not change the view.
pub(super) async fn parents(
    conversation: &Conversation,
    versions: &[VersionInfo],
) -> Result<Vec<Option<Version>>, Error> {
    let mut ancestry = Ancestry::default();
    let mut parents = Vec::with_capacity(versions.len());
    for info in versions {
        let restored = match info.operation.restores_view() {
            true => conversation.parent(info.version).await?,
            false => None,
        };
        parents.push(ancestry.next(info, restored));
    }
    Ok(parents)
}

/// The versions so far, by view. A view is identified by the version that made it.
#[derive(Debug, Default)]
struct Ancestry {
    by_view: HashMap<(Version, Version), Version>,
    by_figures: HashMap<(Version, usize, u64), Version>,
    /// The version that made the view of the version before.
    view: Version,
}

impl Ancestry {
    /// The parent of the next version. `restored` is the version that made its view, if it
    /// restored one.
    fn next(&mut self, info: &VersionInfo, restored: Option<Version>) -> Option<Version> {
        let batch = info.batch_opened_by;
        let figures = (batch, info.messages, info.tokens);
        let parent = match restored {
            Some(restored) => {
                let same = self.by_view.get(&(restored, batch)).or(self.by_figures.get(&figures));
                Some(same.copied().unwrap_or(restored))
            }
            None => info.version.0.checked_sub(1).map(Version),
        };
        self.view = match (restored, info.operation) {
            (Some(restored), _) => restored,
            (None, OperationKind::Mark | OperationKind::Unmark) => self.view,
            (None, _) => info.version,
        };
        self.by_view.insert((self.view, batch), info.version);
        self.by_figures.insert(figures, info.version);
        parent
    }
}
