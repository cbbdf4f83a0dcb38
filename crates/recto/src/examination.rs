//! The warnings of all conversations of a store.

use std::collections::HashMap;

use recto_core::{PartialConversation, Warning};
use recto_store::{Ancestor, ConversationId, ConversationRow};

use crate::loaded::LoadedConversation;
use crate::recto::ConversationInfo;
use crate::{Error, Recto};

/// A conversation, and the warnings about its view.
#[derive(Debug)]
#[non_exhaustive]
pub struct ExaminedConversation {
    /// Facts about the conversation.
    pub info: ConversationInfo,
    /// The [warnings](crate::Conversation::warnings), or why the conversation cannot be read.
    pub warnings: Result<Vec<Warning>, Error>,
}

impl Recto {
    /// Opens every conversation and returns its warnings, in the order of the names. Rows that forks share
    /// are read once, however deep the forks are.
    pub async fn examine(&self) -> Result<Vec<ExaminedConversation>, Error> {
        let mut rows = self.shared.store.list(&self.tenant, None, usize::MAX).await?;
        // Ancestors before their forks.
        rows.sort_by_key(|row| row.lineage.len());
        let mut ancestors = LoadedAncestors::of(&rows);
        let mut examined = Vec::with_capacity(rows.len());
        for row in rows {
            let warnings = self.examine_one(&row, &mut ancestors).await;
            examined.push(ExaminedConversation { info: row.into(), warnings });
        }
        examined.sort_by(|one, other| one.info.name.cmp(&other.info.name));
        Ok(examined)
    }

    async fn examine_one(
        &self,
        row: &ConversationRow,
        ancestors: &mut LoadedAncestors,
    ) -> Result<Vec<Warning>, Error> {
        let (store, counters) = (self.shared.store.clone(), &self.shared.counters);
        let creation = self.handle_of(row.clone()).creation;
        let ancestor = ancestors.ancestor_of(row);
        let loaded = LoadedConversation::load_fork(store, row.id, &creation, counters, ancestor);
        let loaded = loaded.await;
        ancestors.release(row);
        let mut loaded = loaded?;
        let warnings = loaded.with(PartialConversation::warnings).await;
        ancestors.keep(loaded);
        warnings
    }
}

/// The loaded conversations that have forks.
struct LoadedAncestors {
    /// For each conversation, how many conversations that are not examined yet have it as their nearest
    /// ancestor with a name.
    forks: HashMap<ConversationId, usize>,
    loaded: HashMap<ConversationId, LoadedConversation>,
}

impl LoadedAncestors {
    fn of(rows: &[ConversationRow]) -> LoadedAncestors {
        let forks = rows.iter().map(|row| (row.id, 0)).collect();
        let mut ancestors = LoadedAncestors { forks, loaded: HashMap::new() };
        for nearest in rows.iter().filter_map(|row| ancestors.nearest(row)).collect::<Vec<_>>() {
            *ancestors.forks.entry(nearest.id).or_default() += 1;
        }
        ancestors
    }

    /// The nearest ancestor with a name, and what the conversation shares of it. A removed ancestor has no
    /// name, and is not among the rows.
    fn nearest(&self, row: &ConversationRow) -> Option<Ancestor> {
        row.lineage.iter().rev().find(|from| self.forks.contains_key(&from.id)).copied()
    }

    /// The nearest ancestor, unless it could not be loaded.
    fn ancestor_of(&self, row: &ConversationRow) -> Option<(&LoadedConversation, Ancestor)> {
        let nearest = self.nearest(row)?;
        Some((self.loaded.get(&nearest.id)?, nearest))
    }

    /// Drops the nearest ancestor of a conversation after its last fork.
    fn release(&mut self, row: &ConversationRow) {
        let Some(nearest) = self.nearest(row) else { return };
        let rest = self.forks.entry(nearest.id).or_default();
        *rest = rest.saturating_sub(1);
        if *rest == 0 {
            self.loaded.remove(&nearest.id);
        }
    }

    /// Keeps a conversation if it has forks.
    fn keep(&mut self, loaded: LoadedConversation) {
        let id = loaded.reader.id;
        if self.forks.get(&id).is_some_and(|forks| *forks > 0) {
            self.loaded.insert(id, loaded);
        }
    }
}
