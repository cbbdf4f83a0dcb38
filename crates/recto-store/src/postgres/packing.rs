//! Packing older rows into pages, in the transaction of a commit.
//!
//! The transaction deletes the rows first and compares them with what was packed; then it inserts the
//! pages. So a page with a message that was erased at the same time is never written: as a dead row it could
//! stay in the table's file.
//!
//! Before it packs, the commit has locked the row that was the newest one. Removing and rewriting lock the
//! newest row too. So each of them is either finished before the packing, which then fails if the rows were
//! changed, or it starts after the packing and finds the pages.

use deadpool_postgres::Transaction;

use super::fault::Fault;
use super::pages::PageColumns;
use crate::{ConversationId, Seal};

const TAKE: &str = r"
DELETE FROM recto_commits WHERE tenant = $1 AND conversation = $2 AND version < $3
RETURNING version, body";

/// Replaces older rows by pages.
pub(super) async fn pack_away(
    transaction: &Transaction<'_>,
    tenant: &[u8],
    id: ConversationId,
    seal: &Seal,
    pages: &PageColumns<'_>,
) -> Result<(), Fault> {
    let take = transaction.prepare_cached(TAKE).await?;
    let below = i64::from(seal.below);
    let mut taken = transaction.query(&take, &[&tenant, &id.0, &below]).await?;
    taken.sort_unstable_by_key(|row| row.get::<_, i64>("version"));
    seal.check(taken.iter().map(|row| row.get("body")))?;
    pages.put(transaction, tenant, id).await
}
