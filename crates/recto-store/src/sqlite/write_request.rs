//! The requests that write to the tables. Each is executed completely or not at all.

use rusqlite::{Connection, params};

use super::fault::Fault;
use super::newest_versions::NewestVersions;
use super::place::Number;
use super::{inspection, read, search_index};
use crate::{
    Commit, CommitRow, ConversationId, Error, Head, IdempotencyKey, NewConversation, Page,
    RestoredConversation, RewriteOf, Seal, Tenant, WordsOf, checks,
};

/// A request to the writer.
#[derive(Debug)]
pub(super) enum WriteRequest {
    Create(Box<NewConversation>),
    Restore(Vec<RestoredConversation>),
    Rename {
        tenant: Tenant,
        from: String,
        to: String,
    },
    SetPolicy {
        tenant: Tenant,
        name: String,
        policy: Option<String>,
    },
    Remove {
        tenant: Tenant,
        name: String,
        rewrites: Vec<RewriteOf>,
    },
    Commit(Box<Commit>),
    Remember {
        conversation: ConversationId,
        key: IdempotencyKey,
    },
    Rewrite(RewriteOf),
    /// Drops all copies of removed rows.
    Clean,
    /// Builds damaged indexes again.
    RebuildIndexes,
    /// Empties the search index.
    ClearWords,
    /// Adds words to the search index.
    AddWords {
        conversation: ConversationId,
        words: Vec<WordsOf>,
    },
}

/// Where copies of deleted rows can be left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copies {
    None,
    /// In the log. Freed bytes of the file are overwritten.
    InLog,
    /// In the log, and in free space that an earlier program has not overwritten.
    InFile,
}

impl WriteRequest {
    /// Executes the request in the open transaction. It can be repeated after a rollback.
    ///
    /// A request that contradicts what is stored is refused. It has then written nothing, unless it is a
    /// `Restore`, a `Remove` or a `Rewrite`, which can fail half-way.
    pub(super) fn execute(
        &self,
        db: &Connection,
        newest: &mut NewestVersions,
        has_index: bool,
    ) -> Result<(), Fault> {
        if !matches!(self, WriteRequest::Commit(_) | WriteRequest::Remember { .. }) {
            newest.clear();
        }
        match self {
            WriteRequest::Create(new) => create(db, new, Some(&new.name), has_index),
            WriteRequest::Restore(restored) => {
                restored.iter().try_for_each(|restored| restore(db, restored, has_index))
            }
            WriteRequest::Rename { tenant, from, to } => rename(db, tenant, from, to),
            WriteRequest::SetPolicy { tenant, name, policy } => {
                set_policy(db, tenant, name, policy)
            }
            WriteRequest::Remove { tenant, name, rewrites } => {
                remove(db, tenant, name, rewrites, has_index)
            }
            WriteRequest::Commit(new) => commit(db, newest, new, has_index),
            WriteRequest::Remember { conversation, key } => {
                keep_key(db, named_number(db, *conversation)?, key)
            }
            WriteRequest::Rewrite(request) => rewrite(db, request, has_index),
            WriteRequest::Clean if has_index => search_index::merge(db),
            WriteRequest::Clean => Ok(()),
            WriteRequest::RebuildIndexes => {
                inspection::replace_indexes(db)?;
                repair_rewrites(db)
            }
            WriteRequest::ClearWords | WriteRequest::AddWords { .. } if !has_index => Ok(()),
            WriteRequest::ClearWords => search_index::clear(db),
            WriteRequest::AddWords { conversation, words } => {
                search_index::add(db, read::number(db, *conversation)?, words)
            }
        }
    }

    /// Whether the request is stored, read from the tables after a commit with an unknown outcome.
    pub(super) fn is_done(&self, db: &Connection) -> Result<bool, Fault> {
        match self {
            WriteRequest::Create(new) => is_there(db, new.id),
            WriteRequest::Restore(restored) => {
                restored.last().map_or(Ok(true), |last| is_there(db, last.new.id))
            }
            WriteRequest::Rename { tenant, from, to } => {
                let old = from != to && read::named(db, tenant, from)?.is_some();
                Ok(!old && read::named(db, tenant, to)?.is_some())
            }
            WriteRequest::SetPolicy { tenant, name, policy } => {
                let found = read::named(db, tenant, name)?;
                Ok(found.is_some_and(|found| found.policy == *policy))
            }
            WriteRequest::Remove { tenant, name, .. } => {
                Ok(read::named(db, tenant, name)?.is_none())
            }
            WriteRequest::Commit(new) => {
                let above = new.row.head.version.checked_sub(1);
                let rows = read::commits(db, new.conversation, above)?;
                Ok(rows.first() == Some(&new.row))
            }
            WriteRequest::Remember { conversation, key } => {
                Ok(read::key(db, *conversation, &key.key)?.as_ref() == Some(key))
            }
            WriteRequest::Rewrite(RewriteOf { conversation, rewrite, .. }) => {
                let rows = read::commits(db, *conversation, None)?;
                let mut commits = rewrite.commits.iter();
                let are_there = commits.all(|commit| rows.contains(commit));
                let mut pages = rewrite.pages.iter();
                let are_there = are_there
                    && pages.all(|page| {
                        let numbers = page.first..page.end();
                        read::pages(db, *conversation, page.kind, numbers, true)
                            .is_ok_and(|found| found.contains(page))
                    });
                Ok(are_there)
            }
            // These requests can be repeated.
            WriteRequest::ClearWords | WriteRequest::AddWords { .. } => Ok(false),
            WriteRequest::Clean | WriteRequest::RebuildIndexes => Ok(true),
        }
    }

    /// What must be written again after the request, so that no copy of deleted rows is left.
    pub(super) fn copies(&self) -> Copies {
        match self {
            WriteRequest::Rewrite(_) | WriteRequest::Clean => Copies::InFile,
            // The pages of the damaged indexes are lost until the file is written again.
            WriteRequest::RebuildIndexes | WriteRequest::ClearWords => Copies::InFile,
            WriteRequest::Remove { .. } => Copies::InLog,
            _ => Copies::None,
        }
    }

    /// The words that the request adds to the search index.
    pub(super) fn words(&self) -> impl Iterator<Item = &WordsOf> {
        let (words, restored) = match self {
            WriteRequest::Create(new) => (&*new.words, &[][..]),
            WriteRequest::AddWords { words, .. } => (&**words, &[][..]),
            WriteRequest::Restore(restored) => (&[][..], &**restored),
            WriteRequest::Commit(new) => (&*new.words, &[][..]),
            _ => (&[][..], &[][..]),
        };
        words.iter().chain(restored.iter().flat_map(|restored| &restored.new.words))
    }

    pub(super) fn action(&self) -> &'static str {
        match self {
            WriteRequest::Create(_) => "creating a conversation",
            WriteRequest::Restore(_) => "restoring a conversation",
            WriteRequest::Rename { .. } => "renaming a conversation",
            WriteRequest::SetPolicy { .. } => "setting a policy",
            WriteRequest::Remove { .. } => "removing a conversation",
            WriteRequest::Commit(_) => "accepting a request",
            WriteRequest::Remember { .. } => "keeping an idempotency key",
            WriteRequest::Rewrite(_) => "replacing rows",
            WriteRequest::Clean => "leaving no copy",
            WriteRequest::RebuildIndexes => "building indexes again",
            WriteRequest::ClearWords | WriteRequest::AddWords { .. } => {
                "building the search index again"
            }
        }
    }
}

/// Creates a conversation; without a name if it is only kept for its forks.
fn create(
    db: &Connection,
    new: &NewConversation,
    name: Option<&str>,
    has_index: bool,
) -> Result<(), Fault> {
    if let Some(name) = name {
        check_free(db, &new.tenant, name)?;
    }
    if read::indexed_number(db, new.id)?.is_some() {
        return Err(Error::ConversationExists { name: new.id.to_string() }.into());
    }
    check_parent(db, new)?;
    let number = db
        .prepare_cached("SELECT ifnull(max(number), 0) + 1 FROM conversations")?
        .query_row([], |row| row.get(0))?;
    if number > Number::MAX {
        return Err(
            Error::failed("creating a conversation", "the file has no room for more").into()
        );
    }
    let row = read::Conversation {
        number: Number(number),
        id: new.id,
        tenant: new.tenant.0.clone(),
        name: name.map(str::to_owned),
        created: new.created,
        settings: new.settings.clone(),
        policy: new.policy.clone(),
        lineage: serde_json::to_string(new.lineage.last().as_slice())
            .expect("a lineage is ids and numbers"),
    };
    db.prepare_cached("INSERT INTO conversations VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?
        .execute(params![
            row.number,
            row.id.0.as_bytes(),
            row.tenant,
            row.name,
            row.created,
            row.settings,
            row.lineage,
            row.checksum(),
            row.policy
        ])?;
    insert_commit(db, row.number, &new.first)?;
    if has_index {
        search_index::add(db, row.number, &new.words)?;
    }
    Ok(())
}

/// Fails if a conversation has this name, also one that the index of names does not contain.
fn check_free(db: &Connection, tenant: &Tenant, name: &str) -> Result<(), Fault> {
    match read::named(db, tenant, name)? {
        Some(_) => Err(Error::ConversationExists { name: name.to_owned() }.into()),
        None => read::check_not_named(db, tenant, name),
    }
}

fn is_there(db: &Connection, id: ConversationId) -> Result<bool, Fault> {
    match read::number(db, id) {
        Err(Fault::Refused(Error::ConversationNotFound { .. })) => Ok(false),
        found => found.map(|_| true),
    }
}

fn restore(db: &Connection, restored: &RestoredConversation, has_index: bool) -> Result<(), Fault> {
    let RestoredConversation { new, is_removed, rows } = restored;
    create(db, new, (!is_removed).then_some(&*new.name), has_index)?;
    let number = read::number(db, new.id)?;
    for row in &rows.commits {
        insert_commit(db, number, row)?;
    }
    for page in &rows.pages {
        put_page(db, number, page)?;
    }
    for key in &rows.keys {
        keep_key(db, number, key)?;
    }
    // Other processes may have the conversation in memory as it was before it was removed.
    count_rewrite(db)
}

/// Counts a rewrite: other processes then drop the rows that they hold in memory.
fn count_rewrite(db: &Connection) -> Result<(), Fault> {
    read::sound_rewrites(db)?;
    db.prepare_cached("UPDATE rewrites SET count = count + 1, copy = copy + 1")?.execute([])?;
    Ok(())
}

/// Replaces a damaged number of rewrites by one that no process has read: it is far above any count.
fn repair_rewrites(db: &Connection) -> Result<(), Fault> {
    if read::sound_rewrites(db).is_ok() {
        return Ok(());
    }
    let new: i64 = db.query_row("SELECT (1 << 60) + (random() >> 8)", [], |row| row.get(0))?;
    db.execute("DELETE FROM rewrites", [])?;
    db.execute("INSERT INTO rewrites VALUES (?1, ?1)", [new])?;
    Ok(())
}

/// Fails if the rows of the direct ancestor were deleted, or if it belongs to another tenant.
fn check_parent(db: &Connection, new: &NewConversation) -> Result<(), Fault> {
    let Some(parent) = new.lineage.last() else { return Ok(()) };
    let found = read::by_id(db, parent.id)?;
    match found.is_some_and(|found| found.tenant == new.tenant.0) {
        true => Ok(()),
        false => Err(Error::ConversationNotFound { name: parent.id.to_string() }.into()),
    }
}

/// Renames a conversation, or removes its name.
fn set_name(
    db: &Connection,
    row: &mut read::Conversation,
    name: Option<&str>,
) -> Result<(), Fault> {
    row.name = name.map(str::to_owned);
    db.prepare_cached("UPDATE conversations SET name = ?2, checksum = ?3 WHERE number = ?1")?
        .execute(params![row.number, row.name, row.checksum()])?;
    Ok(())
}

fn named(db: &Connection, tenant: &Tenant, name: &str) -> Result<read::Conversation, Fault> {
    let unknown = || Error::ConversationNotFound { name: name.to_owned() };
    Ok(read::named(db, tenant, name)?.ok_or_else(unknown)?)
}

fn rename(db: &Connection, tenant: &Tenant, from: &str, to: &str) -> Result<(), Fault> {
    let mut row = named(db, tenant, from)?;
    if from != to {
        check_free(db, tenant, to)?;
    }
    set_name(db, &mut row, Some(to))
}

fn set_policy(
    db: &Connection,
    tenant: &Tenant,
    name: &str,
    policy: &Option<String>,
) -> Result<(), Fault> {
    let mut row = named(db, tenant, name)?;
    row.policy.clone_from(policy);
    db.prepare_cached("UPDATE conversations SET policy = ?2, checksum = ?3 WHERE number = ?1")?
        .execute(params![row.number, row.policy, row.checksum()])?;
    Ok(())
}

fn remove(
    db: &Connection,
    tenant: &Tenant,
    name: &str,
    rewrites: &[RewriteOf],
    has_index: bool,
) -> Result<(), Fault> {
    let mut row = named(db, tenant, name)?;
    rewrites.iter().try_for_each(|request| rewrite(db, request, has_index))?;
    // Removed ancestors may have been kept for this conversation alone.
    set_name(db, &mut row, None)?;
    let mut next = Some(row);
    while let Some(row) = next.filter(|row| row.name.is_none()) {
        if read::has_forks(db, row.id)? {
            break;
        }
        next = match row.parent()? {
            Some(parent) => Some(read::conversation(db, parent.id)?),
            None => None,
        };
        delete_rows(db, &row, has_index)?;
    }
    Ok(())
}

fn delete_rows(db: &Connection, row: &read::Conversation, has_index: bool) -> Result<(), Fault> {
    let number = row.number;
    // A conversation with damaged rows can be removed.
    let entries = read::own_entries(db, row).ok();
    let (commits, pages) = (number.places(), number.all_pages());
    db.prepare_cached("DELETE FROM commits WHERE place BETWEEN ?1 AND ?2")?
        .execute([commits.start(), commits.end()])?;
    db.prepare_cached("DELETE FROM pages WHERE place BETWEEN ?1 AND ?2")?
        .execute([pages.start(), pages.end()])?;
    db.prepare_cached("DELETE FROM keys WHERE conversation = ?1")?.execute([number])?;
    db.prepare_cached("DELETE FROM conversations WHERE number = ?1")?.execute([number])?;
    if has_index {
        search_index::remove_all(db, number, entries)?;
    }
    Ok(())
}

/// The number of a conversation that was not removed.
fn named_number(db: &Connection, id: ConversationId) -> Result<Number, Fault> {
    let found = read::by_id(db, id)?.filter(|found| found.name.is_some());
    let unknown = || Error::ConversationNotFound { name: id.to_string() };
    Ok(found.ok_or_else(unknown)?.number)
}

fn commit(
    db: &Connection,
    cache: &mut NewestVersions,
    commit: &Commit,
    has_index: bool,
) -> Result<(), Fault> {
    let id = commit.conversation;
    let (number, newest) = match cache.get(id) {
        Some(newest) => newest,
        None => {
            let number = named_number(db, id)?;
            (number, read::newest(db, number, id)?)
        }
    };
    checks::check_next(newest, commit.row.head.version)?;
    if commit.rewrites.is_some_and(|known| read::rewrites(db).is_ok_and(|now| now != known)) {
        return Err(Error::RowsChanged.into());
    }
    if let Some(seal) = &commit.seal {
        check_rows(db, number, seal)?;
    }
    if let Some(key) = &commit.key {
        keep_key(db, number, key)?;
    }
    insert_commit(db, number, &commit.row)?;
    cache.insert(id, number, commit.row.head.version);
    if has_index {
        search_index::add(db, number, &commit.words)?;
    }
    commit.seal.as_ref().map_or(Ok(()), |seal| replace_by_pages(db, number, seal))
}

/// Checks that the rows to be packed are those that the writer has read.
fn check_rows(db: &Connection, number: Number, seal: &Seal) -> Result<(), Fault> {
    match &seal.rows {
        Some(rows) if !read::are_below(db, number, seal.below, rows)? => {
            Err(Error::RowsChanged.into())
        }
        _ => Ok(()),
    }
}

fn replace_by_pages(db: &Connection, number: Number, seal: &Seal) -> Result<(), Fault> {
    db.prepare_cached("DELETE FROM commits WHERE place >= ?1 AND place < ?2")?
        .execute([number.place(0), number.place(seal.below)])?;
    seal.pages.iter().try_for_each(|page| put_page(db, number, page))
}

fn insert_commit(db: &Connection, number: Number, row: &CommitRow) -> Result<(), Fault> {
    let place = number.place(row.head.version);
    let checksums = (read::head_checksum(place, &row.head), read::body_checksum(place, &row.body));
    let Head { entries, link, committed, .. } = row.head;
    db.prepare_cached("INSERT OR REPLACE INTO commits VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?
        .execute(params![place, entries, link.0, committed, checksums.0, checksums.1, row.body])?;
    Ok(())
}

fn put_page(db: &Connection, number: Number, page: &Page) -> Result<(), Fault> {
    let place = number.page(page.kind, page.first);
    db.prepare_cached("INSERT OR REPLACE INTO pages VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?.execute(
        params![
            place,
            page.count,
            read::page_checksum(place, page.count, &page.meta),
            read::body_checksum(place, &page.body),
            page.meta,
            page.body
        ],
    )?;
    Ok(())
}

fn keep_key(db: &Connection, number: Number, key: &IdempotencyKey) -> Result<(), Fault> {
    let kept = db
        .prepare_cached("INSERT OR IGNORE INTO keys VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
        .execute(params![
            number,
            key.key,
            key.request,
            key.version,
            key.changed,
            read::key_checksum(number, key)
        ])?;
    match kept {
        0 => Err(Error::KeyReused { key: key.key.clone() }.into()),
        _ => Ok(()),
    }
}

fn rewrite(db: &Connection, request: &RewriteOf, has_index: bool) -> Result<(), Fault> {
    let &RewriteOf { conversation: id, at, ref rewrite } = request;
    let number = read::number(db, id)?;
    if rewrite.forks.is_some() {
        rewrite.check_forks(read::forks(db, id)?.into_iter().map(|fork| fork.id))?;
    }
    let current = read::newest(db, number, id)?;
    if current != at {
        return Err(Error::VersionConflict { expected: at, current }.into());
    }
    let found = match rewrite.commits.is_empty() {
        true => Vec::new(),
        false => read::commits(db, id, None)?,
    };
    for row in &rewrite.commits {
        let found = found.iter().find(|found| found.head.version == row.head.version);
        rewrite.check_commit(row, found)?;
        insert_commit(db, number, row)?;
    }
    for page in &rewrite.pages {
        let found = read::pages(db, id, page.kind, page.first..page.first + 1, true)?;
        rewrite.check_page(page, found.iter().find(|found| found.first == page.first))?;
        put_page(db, number, page)?;
    }
    if has_index {
        search_index::remove(db, number, &rewrite.forget)?;
    }
    count_rewrite(db)?;
    Ok(())
}
