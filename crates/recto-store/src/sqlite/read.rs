//! Statements that read the tables. Every row is verified against its checksum.

use std::collections::HashMap;
use std::ops::Range;

use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;

use super::checksum::Checksum;
use super::fault::Fault;
use super::place::Number;
use crate::lineage::Lineages;
use crate::{
    Ancestor, CommitRow, ConversationId, ConversationRow, Error, Head, IdempotencyKey, Link, Page,
    PageKind, StoredRows, Tenant, Unpacked,
};

/// A row of `conversations`.
pub(super) struct Conversation {
    pub(super) number: Number,
    pub(super) id: ConversationId,
    pub(super) tenant: String,
    /// `None` if it was removed and forks share its rows.
    pub(super) name: Option<String>,
    pub(super) created: i64,
    pub(super) settings: String,
    pub(super) policy: Option<String>,
    pub(super) lineage: String,
}

impl Conversation {
    pub(super) const COLUMNS: &str =
        "conversations.number, id, tenant, name, created, settings, lineage, checksum, policy";

    pub(super) fn checksum(&self) -> i64 {
        let checksum = Checksum::at(self.number.0)
            .bytes(self.id.0.as_bytes())
            .bytes(self.tenant.as_bytes())
            .number(i64::from(self.name.is_some()))
            .bytes(self.name.as_deref().unwrap_or("").as_bytes())
            .number(self.created)
            .bytes(self.settings.as_bytes())
            .bytes(self.lineage.as_bytes());
        // Rows of older formats have none.
        match &self.policy {
            Some(policy) => checksum.bytes(policy.as_bytes()).get(),
            None => checksum.get(),
        }
    }

    pub(super) fn from_row(row: &Row<'_>) -> Result<Conversation, Fault> {
        let read = Conversation {
            number: Number(row.get(0)?),
            id: id_from(row.get(1)?),
            tenant: row.get(2)?,
            name: row.get(3)?,
            created: row.get(4)?,
            settings: row.get(5)?,
            lineage: row.get(6)?,
            policy: row.get(8)?,
        };
        match read.checksum() == row.get::<_, i64>(7)? {
            true => Ok(read),
            false => Err(damaged(read.id, "its name or its settings are not what was written")),
        }
    }

    /// The direct ancestor. Files of format 2 and earlier have the others before it.
    pub(super) fn parent(&self) -> Result<Option<Ancestor>, Fault> {
        let read: Result<Vec<Ancestor>, _> = serde_json::from_str(&self.lineage);
        let mut read = read.map_err(|_| damaged(self.id, "its lineage cannot be read"))?;
        Ok(read.pop())
    }

    fn with_head(self, db: &Connection, lineages: &mut Lineages) -> Result<ConversationRow, Fault> {
        let parent_of = |id: ConversationId| conversation(db, id)?.parent();
        Ok(ConversationRow {
            id: self.id,
            head: head(db, self.number, self.id)?,
            lineage: lineages.of(self.id, self.parent()?, parent_of)?,
            name: self.name.unwrap_or_default(),
            created: self.created,
            settings: self.settings,
            policy: self.policy,
        })
    }
}

pub(super) fn id_from(bytes: [u8; 16]) -> ConversationId {
    ConversationId(Uuid::from_bytes(bytes))
}

pub(super) fn damaged(conversation: ConversationId, reason: impl ToString) -> Fault {
    Fault::Refused(Error::Damaged { conversation, reason: reason.to_string() })
}

/// A conversation, removed or not.
pub(super) fn conversation(db: &Connection, id: ConversationId) -> Result<Conversation, Fault> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {} FROM conversations WHERE id = ?1",
        Conversation::COLUMNS
    ))?;
    let mut rows = select.query([id.0.as_bytes()])?;
    let unknown = || Error::ConversationNotFound { name: id.to_string() };
    let found = Conversation::from_row(rows.next()?.ok_or_else(unknown)?)?;
    match found.id == id {
        true => Ok(found),
        false => Err(damaged(id, "its row is that of another conversation")),
    }
}

/// The number of a conversation in this file.
pub(super) fn number(db: &Connection, id: ConversationId) -> Result<Number, Fault> {
    let mut select = db.prepare_cached("SELECT number FROM conversations WHERE id = ?1")?;
    let found = select.query_row([id.0.as_bytes()], |row| row.get(0)).optional()?;
    let unknown = || Error::ConversationNotFound { name: id.to_string() };
    Ok(found.map(Number).ok_or_else(unknown)?)
}

/// The conversation of a tenant that has this name.
pub(super) fn named(
    db: &Connection,
    tenant: &Tenant,
    name: &str,
) -> Result<Option<Conversation>, Fault> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {} FROM conversations WHERE tenant = ?1 AND name = ?2",
        Conversation::COLUMNS
    ))?;
    let mut rows = select.query([&tenant.0, name])?;
    rows.next()?.map(Conversation::from_row).transpose()
}

/// The newest version.
pub(super) fn newest(db: &Connection, number: Number, id: ConversationId) -> Result<u32, Fault> {
    let mut select =
        db.prepare_cached("SELECT max(place) FROM commits WHERE place BETWEEN ?1 AND ?2")?;
    let places = number.places();
    let found: Option<i64> = select.query_row([places.start(), places.end()], |row| row.get(0))?;
    let place = found.ok_or_else(|| damaged(id, "its newest version is missing"))?;
    Ok(Number::and_number(place).1)
}

const HEAD_COLUMNS: &str = "place, entries, link, committed, checksum";

/// The newest version, without its body.
fn head(db: &Connection, number: Number, id: ConversationId) -> Result<Head, Fault> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {HEAD_COLUMNS} FROM commits WHERE place BETWEEN ?1 AND ?2
         ORDER BY place DESC LIMIT 1"
    ))?;
    let places = number.places();
    let mut rows = select.query([places.start(), places.end()])?;
    match rows.next()? {
        Some(row) => head_from(row, id),
        None => Err(damaged(id, "its newest version is missing")),
    }
}

pub(super) fn head_checksum(place: i64, head: &Head) -> i64 {
    Checksum::at(place)
        .number(i64::from(head.entries))
        .bytes(&head.link.0)
        .number(head.committed)
        .get()
}

fn head_from(row: &Row<'_>, id: ConversationId) -> Result<Head, Fault> {
    let place = row.get(0)?;
    let version = Number::and_number(place).1;
    let (entries, link, committed) = (row.get(1)?, Link(row.get(2)?), row.get(3)?);
    let head = Head { version, entries, link, committed };
    match head_checksum(place, &head) == row.get::<_, i64>(4)? {
        true => Ok(head),
        false => Err(changed_version(id, version)),
    }
}

fn commit(row: &Row<'_>, id: ConversationId) -> Result<CommitRow, Fault> {
    let read = CommitRow { head: head_from(row, id)?, body: row.get(6)? };
    match body_checksum(row.get(0)?, &read.body) == row.get::<_, i64>(5)? {
        true => Ok(read),
        false => Err(changed_version(id, read.head.version)),
    }
}

fn changed_version(id: ConversationId, version: u32) -> Fault {
    damaged(id, format!("version {version} is not what was written"))
}

pub(super) fn find(
    db: &Connection,
    tenant: &Tenant,
    name: &str,
) -> Result<Option<ConversationRow>, Fault> {
    let found = named(db, tenant, name)?;
    found.map(|found| found.with_head(db, &mut Lineages::default())).transpose()
}

pub(super) fn get(
    db: &Connection,
    tenant: &Tenant,
    id: ConversationId,
) -> Result<Option<ConversationRow>, Fault> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {} FROM conversations WHERE id = ?1 AND tenant = ?2 AND name IS NOT NULL",
        Conversation::COLUMNS
    ))?;
    let mut rows = select.query(params![id.0.as_bytes(), tenant.0])?;
    let found = rows.next()?.map(Conversation::from_row).transpose()?;
    found.map(|found| found.with_head(db, &mut Lineages::default())).transpose()
}

pub(super) fn list(
    db: &Connection,
    tenant: &Tenant,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<ConversationRow>, Fault> {
    // No name is empty, so all names follow the empty one.
    let mut select = db.prepare_cached(&format!(
        "SELECT {} FROM conversations WHERE tenant = ?1 AND name > ?2 ORDER BY name LIMIT ?3",
        Conversation::COLUMNS
    ))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = select.query(params![tenant.0, after.unwrap_or(""), limit])?;
    let (mut found, mut lineages) = (Vec::new(), Lineages::default());
    while let Some(row) = rows.next()? {
        found.push(Conversation::from_row(row)?.with_head(db, &mut lineages)?);
    }
    Ok(found)
}

/// The conversations with a name that share rows of a conversation, ordered by name.
pub(super) fn forks(db: &Connection, id: ConversationId) -> Result<Vec<ConversationRow>, Fault> {
    number(db, id)?;
    let mut direct: HashMap<ConversationId, Vec<Conversation>> = HashMap::new();
    for_each(db, |conversation| {
        if let Some(parent) = conversation.parent()? {
            direct.entry(parent.id).or_default().push(conversation);
        }
        Ok(())
    })?;
    let (mut named, mut next) = (Vec::new(), vec![id]);
    while let Some(id) = next.pop() {
        for fork in direct.remove(&id).unwrap_or_default() {
            next.push(fork.id);
            named.extend(Some(fork).filter(|fork| fork.name.is_some()));
        }
    }
    named.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    let mut lineages = Lineages::default();
    named.into_iter().map(|fork| fork.with_head(db, &mut lineages)).collect()
}

/// Whether a conversation, with or without a name, was forked from another one.
pub(super) fn has_forks(db: &Connection, id: ConversationId) -> Result<bool, Fault> {
    let mut has_forks = false;
    for_each(db, |conversation| {
        has_forks |= conversation.parent()?.is_some_and(|parent| parent.id == id);
        Ok(())
    })?;
    Ok(has_forks)
}

/// Calls `work` for every conversation, with or without a name. What is deleted depends on the result, so
/// every row is verified: a damaged one could be a fork.
fn for_each(
    db: &Connection,
    mut work: impl FnMut(Conversation) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {} FROM conversations NOT INDEXED",
        Conversation::COLUMNS
    ))?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        work(Conversation::from_row(row)?)?;
    }
    Ok(())
}

pub(super) fn commits(
    db: &Connection,
    id: ConversationId,
    above: Option<u32>,
) -> Result<Vec<CommitRow>, Fault> {
    let number = number(db, id)?;
    let from = above.map_or(number.place(0), |above| number.place(above) + 1);
    let mut select = db.prepare_cached(&format!(
        "SELECT {HEAD_COLUMNS}, body_checksum, body FROM commits
         WHERE place BETWEEN ?1 AND ?2 ORDER BY place"
    ))?;
    let mut rows = select.query([from, *number.places().end()])?;
    let mut found: Vec<CommitRow> = Vec::new();
    while let Some(row) = rows.next()? {
        let next = commit(row, id)?;
        let before = found.last().map(|row| row.head.version);
        if before.is_some_and(|before| before.checked_add(1) != Some(next.head.version)) {
            return Err(damaged(id, format!("version {} is missing", next.head.version - 1)));
        }
        found.push(next);
    }
    Ok(found)
}

/// The commits above a version, and the number of rewrites.
pub(super) fn unpacked(
    db: &Connection,
    id: ConversationId,
    above: Option<u32>,
) -> Result<Unpacked, Fault> {
    Ok(Unpacked { rewrites: rewrites(db)?, commits: commits(db, id, above)? })
}

/// The number of rewrites. A file of format 2 that cannot be written has none.
pub(super) fn rewrites(db: &Connection) -> Result<u64, Fault> {
    let count = match db.prepare_cached("SELECT count FROM rewrites") {
        Err(error) if error.to_string().contains("no such table") => return Ok(0),
        select => select?.query_row([], |row| row.get::<_, i64>(0))?,
    };
    Ok(count as u64)
}

/// Whether the bodies of the commits below a version are these, in order.
pub(super) fn are_below(
    db: &Connection,
    number: Number,
    below: u32,
    bodies: &[Vec<u8>],
) -> Result<bool, Fault> {
    let mut select = db.prepare_cached(
        "SELECT body FROM commits WHERE place >= ?1 AND place < ?2 ORDER BY place",
    )?;
    let mut rows = select.query([number.place(0), number.place(below)])?;
    for body in bodies {
        let is_same = |row: &Row<'_>| Ok::<_, Fault>(row.get_ref(0)?.as_blob().ok() == Some(body));
        if !rows.next()?.map(is_same).transpose()?.unwrap_or(false) {
            return Ok(false);
        }
    }
    Ok(rows.next()?.is_none())
}

pub(super) fn page_checksum(place: i64, count: u32, meta: &[u8]) -> i64 {
    Checksum::at(place).number(i64::from(count)).bytes(meta).get()
}

pub(super) fn body_checksum(place: i64, body: &[u8]) -> i64 {
    Checksum::at(place).bytes(body).get()
}

pub(super) fn pages(
    db: &Connection,
    id: ConversationId,
    kind: PageKind,
    numbers: Range<u32>,
    bodies: bool,
) -> Result<Vec<Page>, Fault> {
    let number = number(db, id)?;
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    // The page that contains the first number may start before it. Columns that are not selected are
    // not read.
    let body = if bodies { "body" } else { "NULL" };
    let mut select = db.prepare_cached(&format!(
        "SELECT place, count, checksum, body_checksum, meta, {body} FROM pages
         WHERE place >= ifnull((SELECT max(place) FROM pages WHERE place BETWEEN ?1 AND ?2), ?2)
           AND place < ?3 ORDER BY place"
    ))?;
    let [lowest, start, end] =
        [0, numbers.start, numbers.end].map(|first| number.page(kind, first));
    let mut rows = select.query([lowest, start, end])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let page = page(row, kind, id)?;
        if page.end() > numbers.start {
            found.push(page);
        }
    }
    Ok(found)
}

fn page(row: &Row<'_>, kind: PageKind, id: ConversationId) -> Result<Page, Fault> {
    let place: i64 = row.get(0)?;
    let (first, count) = (place as u32, row.get(1)?);
    let meta: Vec<u8> = row.get(4)?;
    let body: Option<Vec<u8>> = row.get(5)?;
    let is_whole = page_checksum(place, count, &meta) == row.get::<_, i64>(2)?
        && match &body {
            Some(body) => body_checksum(place, body) == row.get::<_, i64>(3)?,
            None => true,
        };
    match is_whole {
        true => Ok(Page { kind, first, count, meta, body: body.unwrap_or_default() }),
        false => {
            Err(damaged(id, format!("the page of {kind:?} at {first} is not what was written")))
        }
    }
}

pub(super) fn tenants(db: &Connection) -> Result<Vec<Tenant>, Fault> {
    let mut select = db.prepare_cached(
        "SELECT DISTINCT tenant FROM conversations WHERE name IS NOT NULL ORDER BY tenant",
    )?;
    let mut rows = select.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(Tenant(row.get(0)?));
    }
    Ok(found)
}

/// All rows of a conversation.
pub(super) fn rows(db: &Connection, id: ConversationId) -> Result<StoredRows, Fault> {
    let mut pages = pages(db, id, PageKind::Records, 0..u32::MAX, true)?;
    pages.extend(self::pages(db, id, PageKind::Entries, 0..u32::MAX, true)?);
    let mut select =
        db.prepare_cached("SELECT key FROM keys WHERE conversation = ?1 ORDER BY key")?;
    let mut names = select.query([number(db, id)?])?;
    let mut keys = Vec::new();
    while let Some(row) = names.next()? {
        let name: String = row.get(0)?;
        keys.extend(key(db, id, &name)?);
    }
    Ok(StoredRows { commits: commits(db, id, None)?, pages, keys })
}

pub(super) fn key_checksum(number: Number, key: &IdempotencyKey) -> i64 {
    Checksum::at(number.0)
        .bytes(key.key.as_bytes())
        .bytes(&key.request)
        .number(i64::from(key.version))
        .number(i64::from(key.changed))
        .get()
}

pub(super) fn key(
    db: &Connection,
    id: ConversationId,
    key: &str,
) -> Result<Option<IdempotencyKey>, Fault> {
    let number = number(db, id)?;
    let mut select = db.prepare_cached(
        "SELECT request, version, changed, checksum FROM keys WHERE conversation = ?1 AND key = ?2",
    )?;
    let mut rows = select.query(params![number, key])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let read = IdempotencyKey {
        key: key.to_owned(),
        request: row.get(0)?,
        version: row.get(1)?,
        changed: row.get(2)?,
    };
    match key_checksum(number, &read) == row.get::<_, i64>(3)? {
        true => Ok(Some(read)),
        false => Err(damaged(id, "an idempotency key is not what was written")),
    }
}
