//! Packing older rows into pages.
//!
//! The rows go first, and are tested to be what was packed; then the pages come. A page that holds
//! what was erased meanwhile is not even written: as a dead row it could stay in the table's file.
//!
//! No lock is taken but those of the rows that go. Who rewrites them at the same time comes before,
//! and then they are not what was packed; or after, and then there is nothing to be replaced. Who
//! removes the conversation comes before, and then there are no rows; or after, and finds the pages.

use std::ops::ControlFlow;

use deadpool_postgres::Transaction;
use tokio_postgres::types::ToSql;

use super::PostgresStore;
use super::attempts::Attempts;
use super::fault::Fault;
use super::pages::PageColumns;
use super::remove::NEWEST;
use super::tenants::unknown;
use crate::{ConversationId, Error, Seal, names};

const TAKE: &str = r"
DELETE FROM recto_commits WHERE tenant = $1 AND conversation = $2 AND version < $3
RETURNING version, body";

impl PostgresStore {
    /// Packs older rows, in a transaction of its own.
    pub(super) async fn pack_rows(&self, id: ConversationId, seal: Seal) -> Result<(), Error> {
        let pages = PageColumns::new(&seal.pages);
        // An attempt in doubt is repeated: if the rows are gone, they are not what was packed.
        let mut attempts = Attempts::at("packing older versions");
        loop {
            let attempt = self.try_to_pack(id, &seal, &pages).await;
            if let ControlFlow::Break(answer) = attempts.settle(attempt).await {
                return answer;
            }
        }
    }

    async fn try_to_pack(
        &self,
        id: ConversationId,
        seal: &Seal,
        pages: &PageColumns<'_>,
    ) -> Result<(), Fault> {
        let mut client = self.connections.get().await?;
        let tenant = self.tenant_of(&client, id).await?;
        let transaction = client.transaction().await?;
        pack_away(&transaction, &tenant, id, seal, pages).await?;
        Ok(transaction.commit().await?)
    }
}

/// Puts pages in the place of older rows, as part of a transaction.
pub(super) async fn pack_away(
    transaction: &Transaction<'_>,
    tenant: &[u8],
    id: ConversationId,
    seal: &Seal,
    pages: &PageColumns<'_>,
) -> Result<(), Fault> {
    let take = transaction.prepare_cached(TAKE).await?;
    let newest = transaction.prepare_cached(NEWEST).await?;
    let below = i64::from(seal.below);
    // Both are sent before the first is answered.
    let taking: [&(dyn ToSql + Sync); 3] = [&tenant, &id.0, &below];
    let looking: [&(dyn ToSql + Sync); 2] = [&tenant, &id.0];
    let (taken, left) =
        tokio::join!(transaction.query(&take, &taking), transaction.query_one(&newest, &looking));
    let (mut taken, left) = (taken?, left?);
    let left: Option<i64> = left.try_get(0)?;
    if left.is_none() && taken.is_empty() {
        return Err(unknown(id));
    }
    names::check_seal(seal, left.and_then(|left| u32::try_from(left).ok()).unwrap_or(0))?;
    taken.sort_unstable_by_key(|row| row.get::<_, i64>("version"));
    seal.check(taken.iter().map(|row| row.get("body")))?;
    pages.put(transaction, tenant, id).await
}
