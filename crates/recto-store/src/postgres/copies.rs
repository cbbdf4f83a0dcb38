//! Reading and restoring all rows of a conversation, for copies in another store.

use deadpool_postgres::Transaction;
use tokio_postgres::{IsolationLevel, Row};
use uuid::Uuid;

use super::PostgresStore;
use super::fault::Fault;
use super::numbers::{hash, head, number, text};
use super::pages::PageColumns;
use super::remove;
use super::rewrite::COUNT_REWRITE;
use super::tenants::{self, unknown};
use crate::new_id::new_id_now;
use crate::{
    CommitRow, ConversationId, Error, Hit, IdempotencyKey, Page, PageKind, RestoredConversation,
    StoredRows, Tenant, WordSums, checks,
};

const COMMITS: &str = r"
SELECT version, entries, link, committed, body FROM recto_commits
WHERE tenant = $1 AND conversation = $2 ORDER BY version";

const PAGES: &str = r"
SELECT kind, first, count, meta, body FROM recto_pages
WHERE tenant = $1 AND conversation = $2 ORDER BY kind, first";

const KEYS: &str = r"
SELECT key, request, version, changed FROM recto_keys
WHERE tenant = $1 AND conversation = $2 ORDER BY key";

const WORDS: &str = r"
SELECT conversation, entry, words FROM recto_words
WHERE tenant = $1 AND (conversation, entry) > ($2, $3)
ORDER BY conversation, entry LIMIT 4096";

const PUT_COMMIT: &str = r"
INSERT INTO recto_commits (tenant, conversation, version, entries, link, committed, attempt, body)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (tenant, conversation, version) DO NOTHING";

const PUT_KEY: &str = r"
INSERT INTO recto_keys (tenant, conversation, key, request, version, changed)
VALUES ($1, $2, $3, $4, $5, $6)";

impl PostgresStore {
    /// Reads the search index of a tenant.
    pub(super) async fn read_index(&self, tenant: &Tenant) -> Result<WordSums, Error> {
        let mut sums = WordSums::default();
        // In parts, because the index may be larger than memory.
        let mut after = (Uuid::nil(), -1_i64);
        loop {
            let part = || self.read_words(tenant, after);
            let rows = self.connections.read("reading the search index", part).await?;
            let Some(last) = rows.last() else { return Ok(sums) };
            after = (last.0.conversation.0, i64::from(last.0.entry));
            for (hit, words) in &rows {
                sums.replace(*hit, words.iter().map(|word| word.as_bytes()));
            }
        }
    }

    /// Reads a part of the search index: at most 4096 entries, those that follow the entry `after`.
    async fn read_words(
        &self,
        tenant: &Tenant,
        after: (Uuid, i64),
    ) -> Result<Vec<(Hit, Vec<String>)>, Fault> {
        let client = self.connections.get().await?;
        let rows = client.query(WORDS, &[&tenants::bytes(tenant), &after.0, &after.1]).await?;
        let entry = |row: &Row| {
            let conversation = ConversationId(row.try_get("conversation")?);
            Ok((Hit { conversation, entry: number(row, "entry")? }, row.try_get("words")?))
        };
        rows.iter().map(entry).collect()
    }

    /// Reads all rows of a conversation in one snapshot.
    pub(super) async fn read_rows(&self, id: ConversationId) -> Result<StoredRows, Fault> {
        let mut client = self.connections.get().await?;
        let tenant = self.tenant_of(&client, id).await?;
        let snapshot = client
            .build_transaction()
            .isolation_level(IsolationLevel::RepeatableRead)
            .read_only(true)
            .start()
            .await?;
        let mut rows = StoredRows::default();
        for row in snapshot.query(COMMITS, &[&&*tenant, &id.0]).await? {
            rows.commits.push(CommitRow { head: head(&row)?, body: row.try_get("body")? });
        }
        if rows.commits.is_empty() {
            return Err(unknown(id));
        }
        for row in snapshot.query(PAGES, &[&&*tenant, &id.0]).await? {
            let kind: i16 = row.try_get("kind")?;
            rows.pages.push(Page {
                kind: if kind == 0 { PageKind::Records } else { PageKind::Entries },
                first: number(&row, "first")?,
                count: number(&row, "count")?,
                meta: row.try_get("meta")?,
                body: row.try_get("body")?,
            });
        }
        for row in snapshot.query(KEYS, &[&&*tenant, &id.0]).await? {
            rows.keys.push(IdempotencyKey {
                key: text(&row, "key")?,
                request: hash(&row, "request")?,
                version: number(&row, "version")?,
                changed: row.try_get("changed")?,
            });
        }
        snapshot.commit().await?;
        Ok(rows)
    }

    /// Creates conversations with rows of another store, in one transaction.
    pub(super) async fn restore_conversations(
        &self,
        conversations: Vec<RestoredConversation>,
    ) -> Result<(), Error> {
        checks::check_restored(&conversations)?;
        let attempt = |in_doubt| self.try_to_restore(&conversations, in_doubt);
        self.connections.write("restoring conversations", attempt).await?;
        for RestoredConversation { new, .. } in &conversations {
            self.tenants.cache(new.id, tenants::bytes(&new.tenant));
        }
        Ok(())
    }

    async fn try_to_restore(
        &self,
        conversations: &[RestoredConversation],
        in_doubt: bool,
    ) -> Result<(), Fault> {
        let Some(RestoredConversation { new: last, .. }) = conversations.last() else {
            return Ok(());
        };
        let mut client = self.connections.get().await?;
        let tenant = tenants::bytes(&last.tenant);
        let exists = "SELECT 1 FROM recto_conversations WHERE tenant = $1 AND id = $2";
        if in_doubt && client.query_opt(exists, &[&tenant, &last.id.0]).await?.is_some() {
            return Ok(()); // an earlier attempt has done all of it
        }
        let transaction = client.transaction().await?;
        for restored in conversations {
            self.restore_one(&transaction, restored).await?;
        }
        // Other processes may have a conversation in memory as it was before it was removed.
        let count = transaction.prepare_cached(COUNT_REWRITE).await?;
        transaction.execute(&count, &[&tenant]).await?;
        Ok(transaction.commit().await?)
    }

    async fn restore_one(
        &self,
        transaction: &Transaction<'_>,
        restored: &RestoredConversation,
    ) -> Result<(), Fault> {
        let RestoredConversation { new, is_removed, rows } = restored;
        let tenant = tenants::bytes(&new.tenant);
        let name = (!is_removed).then_some(&*new.name);
        self.create_with(transaction, new, name, false).await?;
        let put = transaction.prepare_cached(PUT_COMMIT).await?;
        for CommitRow { head, body } in &rows.commits {
            let (version, entries) = (i64::from(head.version), i64::from(head.entries));
            let (link, attempt) = (head.link.0.as_slice(), new_id_now());
            transaction
                .execute(
                    &put,
                    &[
                        &tenant,
                        &new.id.0,
                        &version,
                        &entries,
                        &link,
                        &head.committed,
                        &attempt,
                        body,
                    ],
                )
                .await?;
        }
        // In parts: a statement has to fit into the server's memory.
        for pages in rows.pages.chunks(64) {
            PageColumns::new(pages).put(transaction, tenant, new.id).await?;
        }
        let put = transaction.prepare_cached(PUT_KEY).await?;
        for key in &rows.keys {
            let (name, request) = (key.key.as_bytes(), key.request.as_slice());
            let version = i64::from(key.version);
            transaction
                .execute(&put, &[&tenant, &new.id.0, &name, &request, &version, &key.changed])
                .await?;
        }
        if *is_removed {
            // Forks share its rows, and nothing can be added to them.
            remove::close(transaction, tenant, new.id.0).await?;
        }
        Ok(())
    }
}
