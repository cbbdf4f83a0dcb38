//! Statements that read the tables. Every row is verified against its checksum.
//!
//! SQLite does not compare a row with the index entry that leads to it, and a changed bit in an index can
//! lead to the row of another conversation. So every row that was found through an index is compared with
//! the key that was searched for. If the index of ids does not find a conversation, or cannot be read, the
//! table is searched without it, because the entry may be damaged.

use std::cmp::Reverse;
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
    PageKind, ReadCommit, StoredRows, Tenant, Unpacked,
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

    /// The direct ancestor. In rows of format 2 and earlier, the older ancestors precede it.
    pub(super) fn parent(&self) -> Result<Option<Ancestor>, Fault> {
        let read: Result<Vec<Ancestor>, _> = serde_json::from_str(&self.lineage);
        let mut read = read.map_err(|_| damaged(self.id, "its lineage cannot be read"))?;
        Ok(read.pop())
    }

    pub(super) fn with_head(
        self,
        db: &Connection,
        lineages: &mut Lineages,
    ) -> Result<ConversationRow, Fault> {
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
    let unknown = || Error::ConversationNotFound { name: id.to_string() };
    Ok(by_id(db, id)?.ok_or_else(unknown)?)
}

/// The number of a conversation in this file. If the index of ids is damaged or does not find it, the number
/// is searched in the table, which is slower; the rows of the table have checksums.
pub(super) fn number(db: &Connection, id: ConversationId) -> Result<Number, Fault> {
    let indexed = indexed_number(db, id);
    if let Ok(Some(number)) = indexed {
        return Ok(number);
    }
    let mut table =
        db.prepare_cached("SELECT number FROM conversations NOT INDEXED WHERE id = ?1")?;
    let numbers = table.query_map([id.0.as_bytes()], |row| Ok(Number(row.get(0)?)))?;
    for number in numbers.collect::<Result<Vec<Number>, _>>()? {
        if at(db, number)?.is_some_and(|found| found.id == id) {
            return Ok(number);
        }
    }
    indexed?;
    Err(Error::ConversationNotFound { name: id.to_string() }.into())
}

/// Fails if the index of ids does not lead to a conversation.
pub(super) fn check_indexed(db: &Connection, id: ConversationId) -> Result<(), Fault> {
    let indexed = indexed_number(db, id)?;
    indexed.map(drop).ok_or_else(|| damaged(id, NOT_INDEXED))
}

/// The number of a conversation, by the index of ids alone.
pub(super) fn indexed_number(db: &Connection, id: ConversationId) -> Result<Option<Number>, Fault> {
    // The outer join reads the id from the table, at the number that the index names.
    let mut select = db.prepare_cached(
        "SELECT found.number, kept.id FROM conversations found
         LEFT JOIN conversations kept ON kept.number = found.number WHERE found.id = ?1",
    )?;
    let found = select.query_row([id.0.as_bytes()], |row| {
        Ok((Number(row.get(0)?), row.get::<_, Option<[u8; 16]>>(1)?))
    });
    match found.optional()? {
        Some((number, Some(kept))) if kept == *id.0.as_bytes() => Ok(Some(number)),
        Some(_) => Err(damaged(id, MISLEADING)),
        None => Ok(None),
    }
}

const NOT_INDEXED: &str = "an index of the file does not contain it";
const MISLEADING: &str = "an index of the file leads to another conversation";

/// A conversation by its id, verified as a whole. `None` if there is none.
pub(super) fn by_id(db: &Connection, id: ConversationId) -> Result<Option<Conversation>, Fault> {
    let number = match number(db, id) {
        Err(Fault::Refused(Error::ConversationNotFound { .. })) => return Ok(None),
        number => number?,
    };
    Ok(Some(at(db, number)?.ok_or_else(|| damaged(id, MISLEADING))?))
}

/// The conversation with a number.
pub(super) fn at(db: &Connection, number: Number) -> Result<Option<Conversation>, Fault> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {} FROM conversations WHERE number = ?1",
        Conversation::COLUMNS
    ))?;
    let mut rows = select.query([number])?;
    rows.next()?.map(Conversation::from_row).transpose()
}

/// The conversation of a tenant that has this name, by the index of names.
pub(super) fn named(
    db: &Connection,
    tenant: &Tenant,
    name: &str,
) -> Result<Option<Conversation>, Fault> {
    let mut select =
        db.prepare_cached("SELECT number FROM conversations WHERE tenant = ?1 AND name = ?2")?;
    let number: Option<i64> = select.query_row([&tenant.0, name], |row| row.get(0)).optional()?;
    let Some(number) = number.map(Number) else { return Ok(None) };
    match at(db, number)? {
        Some(found) if found.tenant == tenant.0 && found.name.as_deref() == Some(name) => {
            Ok(Some(found))
        }
        Some(other) => Err(damaged(other.id, MISLEADING)),
        None => Err(unreadable_id(format!("the row of the conversation {name:?} is missing"))),
    }
}

/// Damage of a conversation whose id cannot be read.
fn unreadable_id(reason: String) -> Fault {
    damaged(ConversationId(Uuid::nil()), reason)
}

/// The newest version.
pub(super) fn newest(db: &Connection, number: Number, id: ConversationId) -> Result<u32, Fault> {
    let mut select =
        db.prepare_cached("SELECT max(place) FROM commits WHERE place BETWEEN ?1 AND ?2")?;
    let places = number.places();
    let found: Option<i64> = select.query_row([places.start(), places.end()], |row| row.get(0))?;
    let place = found.ok_or_else(|| damaged(id, "its newest version is missing"))?;
    Ok(Number::split(place).1)
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

/// The number of log entries that a conversation does not share with its ancestors.
pub(super) fn own_entries(db: &Connection, conversation: &Conversation) -> Result<u32, Fault> {
    let shared = conversation.parent()?.map_or(0, |parent| parent.entries);
    Ok(head(db, conversation.number, conversation.id)?.entries.saturating_sub(shared))
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
    let version = Number::split(place).1;
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
    damaged(id, not_as_written(version))
}

fn not_as_written(version: u32) -> String {
    format!("version {version} is not what was written")
}

pub(super) fn find(
    db: &Connection,
    tenant: &Tenant,
    name: &str,
) -> Result<Option<ConversationRow>, Fault> {
    find_among(db, tenant, name, &mut Lineages::default())
}

/// As [`find`], with the lineages that were read before.
pub(super) fn find_among(
    db: &Connection,
    tenant: &Tenant,
    name: &str,
    lineages: &mut Lineages,
) -> Result<Option<ConversationRow>, Fault> {
    let Some(found) = named(db, tenant, name)? else {
        return check_not_named(db, tenant, name).map(|()| None);
    };
    found.with_head(db, lineages).map(Some)
}

/// Fails if the table has a conversation of a name that the index of names does not contain.
pub(super) fn check_not_named(db: &Connection, tenant: &Tenant, name: &str) -> Result<(), Fault> {
    let table = "SELECT id FROM conversations NOT INDEXED WHERE tenant = ?1 AND name = ?2";
    let lost = db.prepare_cached(table)?.query_row([&tenant.0, name], |row| row.get(0));
    match lost.optional()? {
        Some(id) => Err(damaged(id_from(id), NOT_INDEXED)),
        None => Ok(()),
    }
}

pub(super) fn get_all(
    db: &Connection,
    tenant: &Tenant,
    mut ids: Vec<ConversationId>,
) -> Result<Vec<ConversationRow>, Fault> {
    // Forks before their ancestors, so that they share one lineage.
    ids.sort_unstable_by_key(|id| Reverse(*id));
    let (mut found, mut lineages) = (Vec::new(), Lineages::default());
    for id in ids {
        let row = by_id(db, id)?.filter(|row| row.tenant == tenant.0 && row.name.is_some());
        found.extend(row.map(|row| row.with_head(db, &mut lineages)).transpose()?);
    }
    Ok(found)
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
    // A list of all names is compared with the table: entries may be missing in the index.
    if after.is_none() && (found.len() as i64) < limit {
        let all: i64 = db
            .prepare_cached(
                "SELECT count(*) FROM conversations NOT INDEXED
                 WHERE tenant = ?1 AND name IS NOT NULL",
            )?
            .query_row([&tenant.0], |row| row.get(0))?;
        if all != found.len() as i64 {
            let reason = "the index of names and the table have different conversations";
            return Err(unreadable_id(reason.to_owned()));
        }
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
/// every row is verified: a damaged or lost one could be a fork.
fn for_each(
    db: &Connection,
    mut work: impl FnMut(Conversation) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {} FROM conversations NOT INDEXED",
        Conversation::COLUMNS
    ))?;
    let mut rows = select.query([])?;
    let mut count = 0_i64;
    while let Some(row) = rows.next()? {
        count += 1;
        work(Conversation::from_row(row)?)?;
    }
    // The index of ids counts rows that the table may have lost.
    let index = "SELECT count(*) FROM conversations INDEXED BY sqlite_autoindex_conversations_1";
    let all: i64 = db.prepare_cached(index)?.query_row([], |row| row.get(0))?;
    match all == count {
        true => Ok(()),
        false => Err(unreadable_id("the table of conversations and its index differ".to_owned())),
    }
}

/// The unpacked commits above a version. Fails if one of them is damaged.
pub(super) fn commits(
    db: &Connection,
    id: ConversationId,
    above: Option<u32>,
) -> Result<Vec<CommitRow>, Fault> {
    let rows = readable_commits(db, id, above)?;
    rows.into_iter().map(|(_, row)| row.map_err(Fault::Refused)).collect()
}

/// The unpacked commits above a version, each with its version. A damaged row is an error in its place.
pub(super) fn readable_commits(
    db: &Connection,
    id: ConversationId,
    above: Option<u32>,
) -> Result<Vec<ReadCommit>, Fault> {
    let number = number(db, id)?;
    let from = above.map_or(number.place(0), |above| number.place(above) + 1);
    let mut select = db.prepare_cached(&format!(
        "SELECT {HEAD_COLUMNS}, body_checksum, body FROM commits
         WHERE place BETWEEN ?1 AND ?2 ORDER BY place"
    ))?;
    let mut rows = select.query([from, *number.places().end()])?;
    let mut found: Vec<ReadCommit> = Vec::new();
    while let Some(row) = rows.next()? {
        let version = Number::split(row.get(0)?).1;
        let before = found.last().map(|(version, _)| *version);
        if before.is_some_and(|before| before.checked_add(1) != Some(version)) {
            return Err(damaged(id, format!("version {} is missing", version.saturating_sub(1))));
        }
        found.push((version, damage_as_value(commit(row, id), id, version)?));
    }
    Ok(found)
}

/// Turns damage of one row into a value. Failures of the disk stay failures.
fn damage_as_value<T>(
    read: Result<T, Fault>,
    id: ConversationId,
    version: u32,
) -> Result<Result<T, Error>, Fault> {
    match read {
        Ok(read) => Ok(Ok(read)),
        Err(Fault::Refused(error)) => Ok(Err(error)),
        // A value of another type: a changed bit in the header of the row.
        Err(Fault::Database(error)) if error.sqlite_error().is_none() => {
            let reason = not_as_written(version);
            Ok(Err(Error::Damaged { conversation: id, reason }))
        }
        Err(fault) => Err(fault),
    }
}

/// The commits above a version, and the number of rewrites.
pub(super) fn unpacked(
    db: &Connection,
    id: ConversationId,
    above: Option<u32>,
) -> Result<Unpacked, Fault> {
    Ok(Unpacked { rewrites: rewrites(db)?, commits: readable_commits(db, id, above)? })
}

/// Stands for a damaged number of rewrites. No sound number is this large, so every reader drops the rows
/// that it loaded before the damage. Nothing can be rewritten until the number is
/// [repaired](super::write_request).
const UNKNOWN_REWRITES: u64 = u64::MAX;

/// The number of rewrites. It is only compared with numbers that were read before, so damage of it keeps
/// nothing else from being read.
pub(super) fn rewrites(db: &Connection) -> Result<u64, Fault> {
    match sound_rewrites(db).map_err(|fault| fault.during("counting rewrites")) {
        Err(error) if error.is_damage() => Ok(UNKNOWN_REWRITES),
        read => Ok(read?),
    }
}

/// The number of rewrites, or its damage. A file of format 2 that cannot be written has none.
pub(super) fn sound_rewrites(db: &Connection) -> Result<u64, Fault> {
    let (count, copy) = match db.prepare_cached("SELECT count, copy FROM rewrites") {
        Err(error) if error.to_string().contains("no such table") => return Ok(0),
        select => {
            let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
            select?.query_row([], read).optional()?.unwrap_or((0, 1))
        }
    };
    match count == copy {
        true => Ok(count as u64),
        false => Err(unreadable_id("the number of rewrites is damaged".to_owned())),
    }
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
