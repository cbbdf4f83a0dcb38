//! The search: log entries by their words.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::PostgresStore;
use super::attempts::Attempts;
use super::fault::Fault;
use super::numbers::{self, number};
use super::tenants;
use crate::{ConversationId, Error, Hit, Tenant};

const EVERYWHERE: &str = r"
SELECT conversation, entry FROM recto_words
WHERE tenant = $1 AND words @> $2::text[]
ORDER BY conversation, entry DESC
LIMIT $3";

const WITHIN: &str = r"
SELECT w.conversation, w.entry
FROM unnest($4::uuid[], $5::bigint[]) AS part (conversation, until)
JOIN recto_words w ON w.conversation = part.conversation AND w.entry < part.until
WHERE w.tenant = $1 AND w.words @> $2::text[]
ORDER BY w.conversation, w.entry DESC
LIMIT $3";

impl PostgresStore {
    /// Finds log entries that contain all these words.
    pub(super) async fn find_words(
        &self,
        tenant: &Tenant,
        words: &[String],
        within: Option<&[(ConversationId, u32)]>,
        limit: usize,
    ) -> Result<Vec<Hit>, Error> {
        if !self.search {
            return Err(Error::NoSearch);
        }
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let mut attempts = Attempts::of_read("searching");
        loop {
            let attempt = self
                .connections
                .limited(self.try_to_find_words(tenant, words, within, limit))
                .await;
            if let ControlFlow::Break(result) = attempts.settle(attempt).await {
                return result;
            }
        }
    }

    async fn try_to_find_words(
        &self,
        tenant: &Tenant,
        words: &[String],
        within: Option<&[(ConversationId, u32)]>,
        limit: usize,
    ) -> Result<Vec<Hit>, Fault> {
        let client = self.connections.get().await?;
        let (tenant, limit) = (tenants::bytes(tenant), numbers::limit(limit));
        let rows = match within {
            None => {
                let search = client.prepare_cached(EVERYWHERE).await?;
                client.query(&search, &[&tenant, &words, &limit]).await?
            }
            Some(within) => {
                let parts: BTreeMap<_, _> =
                    within.iter().rev().map(|(id, until)| (id.0, i64::from(*until))).collect();
                let (ids, ends): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
                let search = client.prepare_cached(WITHIN).await?;
                client.query(&search, &[&tenant, &words, &limit, &ids, &ends]).await?
            }
        };
        let hit = |row: &tokio_postgres::Row| {
            let conversation = ConversationId(row.try_get("conversation")?);
            Ok(Hit { conversation, entry: number(row, "entry")? })
        };
        rows.iter().map(hit).collect()
    }
}
