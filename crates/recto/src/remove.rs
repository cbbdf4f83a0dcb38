//! Removal of conversations.
//!
//! The rows of a removed conversation stay as long as a fork shares them. The messages in them that no fork
//! shows are overwritten in the same transaction.

use std::collections::BTreeSet;
use std::sync::Arc;

use recto_core::Version;
use recto_store::{ConversationId, ConversationRow, Lineage, Rewrite, RewriteOf, Store};
use tracing::Instrument;

use crate::attempts::Attempts;
use crate::prune::{shown, without_hidden};
use crate::row_reader::{RowReader, damaged};
use crate::{Error, Recto};

impl Recto {
    /// Deletes a conversation permanently. Messages that a version of a fork shows stay readable in the
    /// forks. In the logs of forks, placeholders replace its other messages. A SQLite store overwrites the
    /// deleted bytes in its file, its log and its search index. PostgreSQL keeps them in its files until
    /// [`clean`](Self::clean).
    ///
    /// Fails with `storage` if the conversation has forks, and damaged rows make it impossible to determine
    /// which messages the forks show: remove the forks first.
    pub async fn remove(&self, name: &str) -> Result<(), Error> {
        self.remove_if(name, None).await
    }

    /// [`remove`](Self::remove) that fails with `version_conflict` if `expected_version` is not the newest
    /// version. `None` removes the conversation at any version.
    pub async fn remove_if(
        &self,
        name: &str,
        expected_version: impl Into<Option<Version>>,
    ) -> Result<(), Error> {
        let expected = expected_version.into().map(|version| version.0);
        let store = &self.shared.store;
        let mut attempts = Attempts::default();
        loop {
            let row = self.row(name).await?;
            let (id, current) = (row.id, row.head.version);
            attempts.begin(id, (current, 0)).await?;
            if let Some(expected) = expected.filter(|expected| *expected != current) {
                return Err(recto_store::Error::VersionConflict { expected, current }.into());
            }
            let span = tracing::info_span!("remove", conversation = %id);
            let rewrites = self.rewrites(row).instrument(span).await.map_err(advise_forks)?;
            let overwrites = rewrites.iter().any(|rewrite| !rewrite.rewrite.forget.is_empty());
            match store.remove_with(&self.tenant, name, rewrites).await {
                // Another process has committed, packed, erased or forked.
                Err(error) if error.is_conflict() => {}
                removed => {
                    self.shared.open.forget(id);
                    if overwrites {
                        // Open forks may have cached overwritten messages, even if the store returned an
                        // error.
                        self.shared.open.close_all().await;
                    }
                    return Ok(removed?);
                }
            }
        }
    }

    /// The rewrites of a removal. They concern the removed conversation and its removed ancestors, up to the
    /// first one whose rows stay. An empty rewrite only checks that there is no other fork.
    async fn rewrites(&self, removed: ConversationRow) -> Result<Vec<RewriteOf>, Error> {
        let store = &self.shared.store;
        let mut rewrites = Vec::new();
        let (mut id, mut lineage, mut at) = (removed.id, removed.lineage, removed.head.version);
        loop {
            let known_forks = store.forks(id).await?;
            let is_removed = |fork: &ConversationRow| fork.id == removed.id;
            let known = known_forks.iter().map(|fork| fork.id).collect();
            let forks: Vec<_> = known_forks.into_iter().filter(|fork| !is_removed(fork)).collect();
            let stays = !forks.is_empty();
            let rewrite = match stays {
                true => overwrite_hidden(store, id, lineage.clone(), forks, known).await?,
                false => Rewrite { forks: Some(known), ..Rewrite::default() },
            };
            rewrites.push(RewriteOf { conversation: id, at, rewrite });
            let Some(above) = lineage.last().filter(|_| !stays).map(|above| above.id) else {
                return Ok(rewrites);
            };
            if store.get(&self.tenant, above).await?.is_some() {
                return Ok(rewrites);
            }
            // A removed conversation accepts no requests, so its rows do not change.
            let newest = store.unpacked(above, None).await?.commits;
            at = newest.last().map_or(0, |(version, _)| *version);
            (id, lineage) = (above, lineage.up_to(lineage.len() - 1));
        }
    }
}

/// The rewrite that overwrites the messages that no version of the forks shows.
async fn overwrite_hidden(
    store: &Arc<dyn Store>,
    id: ConversationId,
    lineage: Lineage,
    forks: Vec<ConversationRow>,
    known_forks: Vec<ConversationId>,
) -> Result<Rewrite, Error> {
    let reader = RowReader::new(store.clone(), id, lineage).await?;
    let shown = shown(&reader, BTreeSet::new(), forks).await?;
    Ok(without_hidden(&reader, &shown, known_forks).await?.2)
}

/// Adds advice to an error about damaged rows. If they cannot be read, it is unknown what the forks show.
fn advise_forks(error: Error) -> Error {
    match error {
        Error::Store(recto_store::Error::Damaged { conversation, reason }) => {
            damaged(conversation, format!("{reason}; remove the forks first"))
        }
        error => error,
    }
}
