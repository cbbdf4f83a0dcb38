//! Checks and size of the tables.

use deadpool_postgres::ClientWrapper;

use super::PostgresStore;
use super::fault::Fault;
use crate::Error;
use crate::error::Cause;

/// Statements that count rows without their counterpart in another table, and gaps between rows. The first
/// five also read the large columns, so that the server verifies its page checksums if it has them.
const CHECKS: [(&str, &str); 9] = [
    (
        "recto_commits",
        "SELECT count(md5(m.body)) * 0 + count(*) FILTER (WHERE c.id IS NULL) FROM recto_commits m LEFT JOIN recto_conversations c ON c.tenant = m.tenant AND c.id = m.conversation",
    ),
    (
        "recto_pages",
        "SELECT count(md5(p.meta || p.body)) * 0 + count(*) FILTER (WHERE c.id IS NULL) FROM recto_pages p LEFT JOIN recto_conversations c ON c.tenant = p.tenant AND c.id = p.conversation",
    ),
    (
        "recto_keys",
        "SELECT count(md5(k.request)) * 0 + count(*) FILTER (WHERE c.id IS NULL) FROM recto_keys k LEFT JOIN recto_conversations c ON c.tenant = k.tenant AND c.id = k.conversation",
    ),
    (
        "recto_words",
        "SELECT count(cardinality(w.words)) * 0 + count(*) FILTER (WHERE c.id IS NULL) FROM recto_words w LEFT JOIN recto_conversations c ON c.tenant = w.tenant AND c.id = w.conversation",
    ),
    (
        "recto_conversations",
        "SELECT count(md5(c.settings || c.lineage)) * 0 + count(*) FILTER (WHERE NOT EXISTS (SELECT 1 FROM recto_commits m WHERE m.tenant = c.tenant AND m.conversation = c.id)) FROM recto_conversations c",
    ),
    (
        "recto_parents",
        "SELECT count(*) FROM (SELECT tenant, id, (lineage::jsonb -> -1 ->> 'id')::uuid FROM recto_conversations WHERE lineage::jsonb -> -1 IS NOT NULL) AS expected (tenant, fork, parent) FULL JOIN recto_parents p USING (tenant, fork, parent) WHERE expected.fork IS NULL OR p.fork IS NULL",
    ),
    // Rows that do not start where the one before ends: a version or a page is missing.
    (
        "recto_commits, by their numbers,",
        "SELECT count(*) FROM (SELECT version - lag(version) OVER (PARTITION BY tenant, conversation ORDER BY version) AS step FROM recto_commits) AS steps WHERE step > 1",
    ),
    (
        "recto_pages, by their numbers,",
        "SELECT count(*) FROM (SELECT first - lag(first + count) OVER (PARTITION BY tenant, conversation, kind ORDER BY first) AS gap FROM recto_pages) AS gaps WHERE gap <> 0",
    ),
    (
        "recto_conversations, by their first rows,",
        "SELECT count(*) FROM recto_conversations c CROSS JOIN LATERAL (SELECT coalesce((c.lineage::jsonb -> -1 ->> 'versions')::bigint - 1, 0) AS version, coalesce((c.lineage::jsonb -> -1 ->> 'entries')::bigint, 0) AS entry) AS start WHERE start.version <> least((SELECT min(first) FROM recto_pages p WHERE p.tenant = c.tenant AND p.conversation = c.id AND p.kind = 0), (SELECT min(version) FROM recto_commits m WHERE m.tenant = c.tenant AND m.conversation = c.id)) OR start.entry <> (SELECT min(first) FROM recto_pages p WHERE p.tenant = c.tenant AND p.conversation = c.id AND p.kind = 1) OR (SELECT max(first + count) FROM recto_pages p WHERE p.tenant = c.tenant AND p.conversation = c.id AND p.kind = 0) <> (SELECT min(version) FROM recto_commits m WHERE m.tenant = c.tenant AND m.conversation = c.id)",
    ),
];

const SIZE: &str = r"
SELECT sum(pg_total_relation_size(name::regclass))::bigint FROM unnest(ARRAY[
    'recto_conversations', 'recto_parents', 'recto_rewrites', 'recto_commits', 'recto_pages', 'recto_keys',
    'recto_words']) AS name";

impl PostgresStore {
    /// Runs the checks.
    pub(super) async fn check_tables(&self) -> Result<Vec<String>, Error> {
        self.connections.long("checking the tables", run_checks).await
    }

    /// Size of the tables and their indexes, in bytes.
    pub(super) async fn database_size(&self) -> Result<Option<u64>, Error> {
        let attempt = || async {
            let row = self.connections.get().await?.query_one(SIZE, &[]).await?;
            let size: i64 = row.try_get(0)?;
            Ok(u64::try_from(size).ok())
        };
        self.connections.read("measuring the tables", attempt).await
    }
}

async fn run_checks(client: ClientWrapper) -> Result<Vec<String>, Fault> {
    let mut found = Vec::new();
    for (table, check) in CHECKS {
        match client.query_one(check, &[]).await.map_err(Fault::from) {
            Ok(row) => {
                let unpaired: i64 = row.try_get(0)?;
                if unpaired > 0 {
                    found.push(format!("{table} has {unpaired} rows without their counterpart"));
                }
            }
            Err(Fault::Failed(reason)) if reason.cause.as_ref().is_some_and(Cause::is_damage) => {
                found.push(format!("{table} cannot be read: {}", reason.text));
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(found)
}
