//! The search: log entries by their words.

use super::PostgresStore;
use super::fault::Fault;
use super::numbers::{self, number};
use super::tenants;
use crate::{ConversationId, Error, Hit, Tenant};

const SEARCH: &str = r"
SELECT conversation, entry FROM recto_words
WHERE tenant = $1 AND words @> $2::text[]
ORDER BY conversation DESC, entry DESC
LIMIT $3";

impl PostgresStore {
    /// Finds log entries that contain all these words.
    pub(super) async fn find_words(
        &self,
        tenant: &Tenant,
        words: &[String],
        limit: usize,
    ) -> Result<Vec<Hit>, Error> {
        if !self.search {
            return Err(Error::NoSearch);
        }
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let attempt = || self.try_to_find_words(tenant, words, limit);
        self.connections.read("searching", attempt).await
    }

    async fn try_to_find_words(
        &self,
        tenant: &Tenant,
        words: &[String],
        limit: usize,
    ) -> Result<Vec<Hit>, Fault> {
        let client = self.connections.get().await?;
        let (tenant, limit) = (tenants::bytes(tenant), numbers::limit(limit));
        let search = client.prepare_cached(SEARCH).await?;
        let rows = client.query(&search, &[&tenant, &words, &limit]).await?;
        let hit = |row: &tokio_postgres::Row| {
            let conversation = ConversationId(row.try_get("conversation")?);
            Ok(Hit { conversation, entry: number(row, "entry")? })
        };
        rows.iter().map(hit).collect()
    }
}
