//! Pages: older versions and log entries, many per row.

use std::collections::BTreeMap;
use std::ops::Range;

use deadpool_postgres::GenericClient;
use tokio_postgres::Row;
use uuid::Uuid;

use super::PostgresStore;
use super::commits::take_part;
use super::conversations::{check_owner, wrong_index_entry};
use super::fault::Fault;
use super::numbers::{self, number};
use super::tenants::unknown;
use crate::{ConversationId, Page, PageKind};

/// Pages do not overlap, so only the last page that starts at or before the first number can contain it.
const PAGES: &str = r"
SELECT p.conversation AS owner, p.kind, p.first, p.count, p.meta, CASE WHEN $6 THEN p.body END AS body
FROM recto_conversations c
LEFT JOIN recto_pages p
    ON p.tenant = c.tenant AND p.conversation = c.id AND p.kind = $3
    AND p.first >= coalesce(
        (SELECT max(first) FROM recto_pages
         WHERE tenant = $1 AND conversation = $2 AND kind = $3 AND first <= $4), 0)
    AND $4 < $5 AND p.first < $5 AND p.first + p.count > $4
WHERE c.tenant = $1 AND c.id = $2
ORDER BY p.first";

/// The pages of several conversations of a tenant, each with its own numbers. `LATERAL` reads each
/// conversation by its key.
const PAGES_OF: &str = r"
SELECT part.n, p.conversation AS owner, p.kind, p.first, p.count, p.meta,
    CASE WHEN $6 THEN p.body END AS body
FROM unnest($2::uuid[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS part (id, start, until, n)
JOIN recto_conversations c ON c.tenant = $1 AND c.id = part.id
LEFT JOIN LATERAL (
    SELECT * FROM recto_pages
    WHERE tenant = $1 AND conversation = part.id AND kind = $5
        AND first >= coalesce(
            (SELECT max(first) FROM recto_pages
             WHERE tenant = $1 AND conversation = part.id AND kind = $5 AND first <= part.start), 0)
        AND part.start < part.until AND first < part.until AND first + count > part.start
    OFFSET 0) p ON true
ORDER BY part.n, p.first";

const PUT: &str = r"
INSERT INTO recto_pages (tenant, conversation, kind, first, count, meta, body)
SELECT $1, $2, page.* FROM
    unnest($3::smallint[], $4::bigint[], $5::bigint[], $6::bytea[], $7::bytea[]) AS page
ON CONFLICT (tenant, conversation, kind, first)
DO UPDATE SET count = excluded.count, meta = excluded.meta, body = excluded.body";

impl PostgresStore {
    /// Reads the pages that contain some of these numbers.
    pub(super) async fn read_pages(
        &self,
        id: ConversationId,
        kind: PageKind,
        numbers: Range<u32>,
        bodies: bool,
    ) -> Result<Vec<Page>, Fault> {
        let client = self.connections.get().await?;
        let tenant = self.tenant_of(&client, id).await?;
        let read = client.prepare_cached(PAGES).await?;
        let (start, end) = (i64::from(numbers.start), i64::from(numbers.end));
        let rows = client
            .query(&read, &[&&*tenant, &id.0, &numbers::kind(kind), &start, &end, &bodies])
            .await?;
        pages(&rows, id, kind)
    }

    /// Reads pages of conversations of one tenant: for each, those that contain some of its numbers.
    pub(super) async fn read_pages_of(
        &self,
        parts: &[(ConversationId, Range<u32>)],
        kind: PageKind,
        bodies: bool,
    ) -> Result<Vec<Vec<Page>>, Fault> {
        let Some((first, _)) = parts.first() else { return Ok(Vec::new()) };
        let client = self.connections.get().await?;
        let tenant = self.tenant_of(&client, *first).await?;
        let read = client.prepare_cached(PAGES_OF).await?;
        let ids: Vec<Uuid> = parts.iter().map(|(id, _)| id.0).collect();
        let starts: Vec<i64> = parts.iter().map(|(_, numbers)| numbers.start.into()).collect();
        let ends: Vec<i64> = parts.iter().map(|(_, numbers)| numbers.end.into()).collect();
        let rows = client
            .query(&read, &[&&*tenant, &ids, &starts, &ends, &numbers::kind(kind), &bodies])
            .await?;
        let mut rows = &*rows;
        let mut found = Vec::with_capacity(parts.len());
        for ((id, _), n) in parts.iter().zip(1_i64..) {
            found.push(pages(take_part(&mut rows, n)?, *id, kind)?);
        }
        Ok(found)
    }
}

/// Decodes rows as the pages of a conversation. No row means that there is no conversation.
fn pages(rows: &[Row], id: ConversationId, kind: PageKind) -> Result<Vec<Page>, Fault> {
    if rows.is_empty() {
        return Err(unknown(id));
    }
    // A row without a number means that the conversation exists and has no such page.
    let rows = rows.iter().filter(|row| row.get::<_, Option<i64>>("first").is_some());
    rows.map(|row| {
        check_owner(row, id)?;
        if row.try_get::<_, i16>("kind")? != numbers::kind(kind) {
            return Err(wrong_index_entry(id).into());
        }
        Ok(Page {
            kind,
            first: number(row, "first")?,
            count: number(row, "count")?,
            meta: row.try_get("meta")?,
            body: row.try_get::<_, Option<Vec<u8>>>("body")?.unwrap_or_default(),
        })
    })
    .collect()
}

/// Pages as columns.
pub(super) struct PageColumns<'a> {
    kinds: Vec<i16>,
    firsts: Vec<i64>,
    counts: Vec<i64>,
    metas: Vec<&'a [u8]>,
    bodies: Vec<&'a [u8]>,
}

impl<'a> PageColumns<'a> {
    pub(super) fn new(pages: &'a [Page]) -> PageColumns<'a> {
        // Each page once: ON CONFLICT cannot update a row twice.
        let pages: BTreeMap<_, _> =
            pages.iter().map(|page| ((page.kind, page.first), page)).collect();
        let pages = || pages.values();
        PageColumns {
            kinds: pages().map(|page| numbers::kind(page.kind)).collect(),
            firsts: pages().map(|page| i64::from(page.first)).collect(),
            counts: pages().map(|page| i64::from(page.count)).collect(),
            metas: pages().map(|page| page.meta.as_slice()).collect(),
            bodies: pages().map(|page| page.body.as_slice()).collect(),
        }
    }

    /// Inserts the pages, or replaces those that start at the same numbers.
    pub(super) async fn put(
        &self,
        client: &impl GenericClient,
        tenant: &[u8],
        id: ConversationId,
    ) -> Result<(), Fault> {
        let put = client.prepare_cached(PUT).await?;
        let PageColumns { kinds, firsts, counts, metas, bodies } = self;
        client.execute(&put, &[&tenant, &id.0, kinds, firsts, counts, metas, bodies]).await?;
        Ok(())
    }
}
