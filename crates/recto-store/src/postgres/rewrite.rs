//! Replacing rows, to erase or prune messages.
//!
//! PostgreSQL never overwrites a row: the old one stays in the table's file as a dead row. A plain
//! VACUUM frees its space without clearing the bytes, and an index keeps the words of deleted rows. So
//! VACUUM FULL writes the tables and their indexes again, and the server deletes the old files. It
//! locks each table and needs space for a second copy. Erasing is rare, and its promise is that the
//! data is gone.
//!
//! VACUUM FULL copies dead rows that an older transaction can still see, so erasing waits for those
//! transactions.
//!
//! A client cannot reach: the server's log (`pg_wal`) until its segments are reused, archives of it,
//! replicas until they have caught up, backups, and freed blocks of the file system.

use std::time::{Duration, Instant};

use deadpool_postgres::{ClientWrapper, Transaction};
use tokio_postgres::types::ToSql;

use super::PostgresStore;
use super::conversations::check_parents;
use super::fault::Fault;
use super::numbers::{self, head, number};
use super::remove::lock_newest;
use super::tenants::unknown;
use crate::{CommitRow, ConversationId, Error, Page, Rewrite, RewriteOf};

const READ_COMMIT: &str = r"
SELECT version, entries, link, committed, body FROM recto_commits
WHERE tenant = $1 AND conversation = $2 AND version = $3";

const REPLACE_COMMIT: &str = r"
UPDATE recto_commits SET entries = $4, link = $5, committed = $6, body = $7
WHERE tenant = $1 AND conversation = $2 AND version = $3";

const READ_PAGE: &str = r"
SELECT count, meta, body FROM recto_pages
WHERE tenant = $1 AND conversation = $2 AND kind = $3 AND first = $4";

const REPLACE_PAGE: &str = r"
UPDATE recto_pages SET count = $5, meta = $6, body = $7
WHERE tenant = $1 AND conversation = $2 AND kind = $3 AND first = $4";

/// This lock is taken before the forks are read, so that concurrent forks are serialized.
const LOCK: &str = "SELECT id FROM recto_conversations WHERE tenant = $1 AND id = $2 FOR UPDATE";

const FORKS: &str = r"
WITH RECURSIVE below (fork) AS (
    SELECT fork FROM recto_parents WHERE tenant = $1 AND parent = $2
    UNION SELECT p.fork FROM recto_parents p
        JOIN below ON p.tenant = $1 AND p.parent = below.fork)
SELECT below.fork FROM below
JOIN recto_conversations n ON n.tenant = $1 AND n.id = below.fork
WHERE n.name IS NOT NULL";

/// Counts a rewrite. Other processes drop the rows that they hold in memory when the count has changed.
pub(super) const COUNT_REWRITE: &str = r"
INSERT INTO recto_rewrites AS old (tenant, count) VALUES ($1, 1)
ON CONFLICT (tenant) DO UPDATE SET count = old.count + 1";

const FORGET: &str = r"
DELETE FROM recto_words WHERE tenant = $1 AND conversation = $2 AND entry = ANY ($3::bigint[])";

/// The transaction id after the highest one that has ended. Rows that are dead now were deleted before it.
const HORIZON: &str = "SELECT pg_snapshot_xmax(pg_current_snapshot())::xid::text";

/// Counts the transactions that can still see rows that died before the horizon.
const WATCHERS: &str = r"
SELECT count(*) FROM (
    SELECT backend_xmin AS seen FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND backend_type <> 'autovacuum worker'
    UNION ALL
    SELECT backend_xid FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
    UNION ALL
    SELECT transaction FROM pg_prepared_xacts WHERE database = current_database()
    UNION ALL
    SELECT xmin FROM pg_replication_slots
) AS others
WHERE age(seen) > age($1::text::xid)";

/// The tables that contain text of conversations.
const WITH_TEXT: [&str; 5] =
    ["recto_commits", "recto_pages", "recto_words", "recto_keys", "recto_conversations"];

/// The other tables that have an index.
const WITHOUT_TEXT: [&str; 3] = ["recto_format", "recto_parents", "recto_rewrites"];

/// The number of a table's file. VACUUM FULL writes the table into a file with another number.
const FILE_OF: &str = "SELECT pg_relation_filenode($1::text::regclass)";

impl PostgresStore {
    /// Replaces rows, and erases the old ones.
    pub(super) async fn replace_rows(&self, request: RewriteOf) -> Result<(), Error> {
        // Replacing is idempotent, so an attempt in doubt is repeated.
        self.connections.write("replacing rows", |_| self.try_to_replace(&request)).await?;
        self.drop_copies().await
    }

    /// Writes the tables again, without deleted and replaced rows.
    pub(super) async fn drop_copies(&self) -> Result<(), Error> {
        let vacuum = |client| vacuum_tables(client, self.erase_wait);
        self.connections.long("removing old rows", vacuum).await.map_err(copies_left)
    }

    /// Writes the tables again, and builds all indexes again: `VACUUM FULL` builds those of the tables that it
    /// writes.
    pub(super) async fn clean_tables(&self) -> Result<(), Error> {
        self.drop_copies().await?;
        self.connections.long("building indexes again", build_indexes).await
    }

    async fn try_to_replace(&self, request: &RewriteOf) -> Result<(), Fault> {
        let mut client = self.connections.get().await?;
        let tenant = self.tenant_of(&client, request.conversation).await?;
        let transaction = client.transaction().await?;
        replace(&transaction, &tenant, request).await?;
        Ok(transaction.commit().await?)
    }
}

async fn vacuum_tables(client: ClientWrapper, wait: Duration) -> Result<(), Fault> {
    wait_for_older_transactions(&client, wait).await?;
    let file_of = client.prepare_cached(FILE_OF).await?;
    for table in WITH_TEXT {
        let before: u32 = client.query_one(&file_of, &[&table]).await?.try_get(0)?;
        client.batch_execute(&format!("VACUUM FULL {table}")).await?;
        let after: u32 = client.query_one(&file_of, &[&table]).await?.try_get(0)?;
        // The server skips the tables of another owner with a warning and reports success.
        if before == after {
            let reason = format!(
                "the server writes a table again only for its owner, and this user does not own \
                 {table}; connect as the owner"
            );
            return Err(Fault::Failed(reason.into()));
        }
    }
    Ok(())
}

async fn build_indexes(client: ClientWrapper) -> Result<(), Fault> {
    for table in WITHOUT_TEXT {
        client.batch_execute(&format!("REINDEX TABLE {table}")).await?;
    }
    Ok(())
}

/// Replaces rows in a transaction.
pub(super) async fn replace(
    transaction: &Transaction<'_>,
    tenant: &[u8],
    request: &RewriteOf,
) -> Result<(), Fault> {
    let &RewriteOf { conversation: id, at, ref rewrite } = request;
    if rewrite.forks.is_some() {
        let lock = transaction.prepare_cached(LOCK).await?;
        transaction.query(&lock, &[&tenant, &id.0]).await?;
        check_parents(transaction, tenant, id).await?;
        let forks = transaction.prepare_cached(FORKS).await?;
        let forks = transaction.query(&forks, &[&tenant, &id.0]).await?;
        let forks = forks.iter().map(|row| row.try_get("fork").map(ConversationId));
        rewrite.check_forks(forks.collect::<Result<Vec<_>, _>>()?)?;
    }
    let newest = lock_newest(transaction, tenant, id.0).await?;
    let current = newest.ok_or_else(|| unknown(id))?;
    if current != i64::from(at) {
        let current = current.try_into().unwrap_or(u32::MAX);
        return Err(Error::VersionConflict { expected: at, current }.into());
    }
    // The lock on the newest row serializes concurrent rewrites.
    replace_commits(transaction, tenant, id, rewrite).await?;
    replace_pages(transaction, tenant, id, rewrite).await?;
    let forget = transaction.prepare_cached(FORGET).await?;
    let forgotten: Vec<i64> = rewrite.forget.iter().map(|&entry| i64::from(entry)).collect();
    transaction.execute(&forget, &[&tenant, &id.0, &forgotten]).await?;
    let count = transaction.prepare_cached(COUNT_REWRITE).await?;
    transaction.execute(&count, &[&tenant]).await?;
    Ok(())
}

/// Waits until no transaction can see rows that were dead before now.
async fn wait_for_older_transactions(client: &ClientWrapper, wait: Duration) -> Result<(), Fault> {
    let horizon: String = client.query_one(HORIZON, &[]).await?.try_get(0)?;
    let watchers = client.prepare_cached(WATCHERS).await?;
    let start = Instant::now();
    loop {
        let count: i64 = client.query_one(&watchers, &[&horizon]).await?.try_get(0)?;
        if count == 0 {
            return Ok(());
        }
        if start.elapsed() > wait {
            let reason = "older transactions can still see the old rows; end them";
            return Err(Fault::Failed(reason.into()));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn copies_left(error: Error) -> Error {
    match error {
        Error::Failed { reason, source, .. } => Error::CopiesLeft { reason, source },
        error => error,
    }
}

/// Replaces commits, if the stored ones are those that were read.
async fn replace_commits(
    transaction: &Transaction<'_>,
    tenant: &[u8],
    id: ConversationId,
    rewrite: &Rewrite,
) -> Result<(), Fault> {
    let read = transaction.prepare_cached(READ_COMMIT).await?;
    let replace = transaction.prepare_cached(REPLACE_COMMIT).await?;
    for new in &rewrite.commits {
        let version = i64::from(new.head.version);
        let found = match transaction.query_opt(&read, &[&tenant, &id.0, &version]).await? {
            Some(row) => Some(CommitRow { head: head(&row)?, body: row.try_get("body")? }),
            None => None,
        };
        rewrite.check_commit(new, found.as_ref())?;
        let (entries, link) = (i64::from(new.head.entries), new.head.link.0.as_slice());
        let row: [&(dyn ToSql + Sync); 7] =
            [&tenant, &id.0, &version, &entries, &link, &new.head.committed, &new.body];
        transaction.execute(&replace, &row).await?;
    }
    Ok(())
}

/// Replaces pages in the same way.
async fn replace_pages(
    transaction: &Transaction<'_>,
    tenant: &[u8],
    id: ConversationId,
    rewrite: &Rewrite,
) -> Result<(), Fault> {
    let read = transaction.prepare_cached(READ_PAGE).await?;
    let replace = transaction.prepare_cached(REPLACE_PAGE).await?;
    for new in &rewrite.pages {
        let (kind, first) = (numbers::kind(new.kind), i64::from(new.first));
        let found = match transaction.query_opt(&read, &[&tenant, &id.0, &kind, &first]).await? {
            Some(row) => Some(Page {
                kind: new.kind,
                first: new.first,
                count: number(&row, "count")?,
                meta: row.try_get("meta")?,
                body: row.try_get("body")?,
            }),
            None => None,
        };
        rewrite.check_page(new, found.as_ref())?;
        let count = i64::from(new.count);
        let row: [&(dyn ToSql + Sync); 7] =
            [&tenant, &id.0, &kind, &first, &count, &new.meta, &new.body];
        transaction.execute(&replace, &row).await?;
    }
    Ok(())
}
