//! The parent of each version: the version whose state it continues.

use std::collections::HashMap;

use recto::{Conversation, OperationKind, Version, VersionInfo};

use crate::Error;

/// The parent of each version. `versions` are in ascending order. If several of them have the view that a
/// version restored, its parent is the newest of these, because MARK and UNMARK keep the view.
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

/// The versions that were read so far. A view is identified by the version that made it.
#[derive(Debug, Default)]
struct Ancestry {
    /// The newest version with a view in a batch. The key is the version that made the view, and the version
    /// that opened the batch.
    by_view: HashMap<(Version, Version), Version>,
    /// The newest version with these figures: the version that opened its batch, and the number of messages
    /// and of tokens of its view. Used if `by_view` does not have the restored view.
    by_figures: HashMap<(Version, usize, u64), Version>,
    /// The version that made the view of the latest version.
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
