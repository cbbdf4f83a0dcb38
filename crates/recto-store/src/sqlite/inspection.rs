//! Operations on the whole file: integrity check, survey, new indexes, size, backup.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use rusqlite::{Connection, backup::Backup};

use super::fault::Fault;
use super::opened_files::beside;
use super::place::Number;
use super::{connection, read, schema, search_index, word_segments};
use crate::lineage::Lineages;
use crate::{Ancestor, ConversationId, Error, PageKind, SurveyedConversation, Tenant};

/// Lists damage: in SQLite's structures, then in rows. A part that cannot be read is damage, and the
/// other parts are checked all the same.
pub(super) fn damage(db: &Connection) -> Vec<String> {
    let mut found = Vec::new();
    note(&mut found, integrity(db, "PRAGMA integrity_check"));
    note(&mut found, damaged_rows(db));
    note(&mut found, read::sound_rewrites(db).map(|_| Vec::new()));
    note(&mut found, unreachable_words(db));
    note(&mut found, entries_that_stay(db));
    for (table, count) in ORPHANS.iter().chain(&ORPHANED_WORDS) {
        note(&mut found, orphans(db, table, count));
    }
    found
}

/// Lists damage of the search index: in its structures, rows without a conversation, words that it does not
/// find, and entries that it cannot remove.
pub(super) fn damage_of_words(db: &Connection) -> Vec<String> {
    let mut found = Vec::new();
    for table in search_index::TABLES {
        note(&mut found, integrity(db, &format!("PRAGMA integrity_check('{table}')")));
    }
    for (table, count) in &ORPHANED_WORDS {
        note(&mut found, orphans(db, table, count));
    }
    note(&mut found, unreachable_words(db));
    note(&mut found, entries_that_stay(db));
    found
}

fn note(found: &mut Vec<String>, problems: Result<Vec<String>, Fault>) {
    match problems {
        Ok(problems) => found.extend(problems),
        Err(fault) => found.push(text_of(fault)),
    }
}

fn text_of(fault: Fault) -> String {
    match fault {
        Fault::Refused(error) => error.to_string(),
        Fault::Database(error) => super::fault::reason(&error).text,
    }
}

fn integrity(db: &Connection, check: &str) -> Result<Vec<String>, Fault> {
    let mut check = db.prepare(check)?;
    let texts = check.query_map([], |row| row.get::<_, String>(0))?;
    let texts = texts.collect::<Result<Vec<_>, _>>()?;
    Ok(texts.into_iter().filter(|text| text != "ok").collect())
}

fn unreachable_words(db: &Connection) -> Result<Vec<String>, Fault> {
    if !search_index::exists(db)? {
        return Ok(Vec::new());
    }
    let unreachable = search_index::unreachable_words(db)?;
    Ok(match unreachable {
        0 => Vec::new(),
        _ => vec![format!("the search index does not find {unreachable} of its words")],
    })
}

/// Entries that stay in the search index when their messages are erased.
fn entries_that_stay(db: &Connection) -> Result<Vec<String>, Fault> {
    if !search_index::exists(db)? {
        return Ok(Vec::new());
    }
    let count = word_segments::entries_outside(db)?;
    Ok(match count {
        0 => Vec::new(),
        _ => vec![format!("the search index cannot remove {count} of its entries")],
    })
}

fn orphans(db: &Connection, table: &str, count: &str) -> Result<Vec<String>, Fault> {
    let is_there = "SELECT 1 FROM sqlite_schema WHERE name = ?1";
    if !db.prepare_cached(is_there)?.exists([table])? {
        return Ok(Vec::new()); // the search index, in a file without one
    }
    let alone: i64 = db.query_row(count, [], |row| row.get(0))?;
    Ok(match alone {
        0 => Vec::new(),
        _ => vec![format!("{table} has {alone} rows without their conversation")],
    })
}

/// Lists rows that are missing, that an index does not find, or whose checksums do not match.
fn damaged_rows(db: &Connection) -> Result<Vec<String>, Fault> {
    let (mut found, mut lineages) = (Vec::new(), Lineages::default());
    let all = Numbers::of(db);
    found.extend(all.faults);
    for number in all.numbers {
        let conversation = match read::at(db, number) {
            Ok(Some(conversation)) => conversation,
            Ok(None) => {
                found.push(format!("the row of conversation number {} is missing", number.0));
                continue;
            }
            Err(fault) => {
                found.push(text_of(fault));
                continue;
            }
        };
        note(&mut found, damaged_rows_of(db, &conversation, &mut lineages));
    }
    Ok(found)
}

fn damaged_rows_of(
    db: &Connection,
    conversation: &read::Conversation,
    lineages: &mut Lineages,
) -> Result<Vec<String>, Fault> {
    let mut found = Vec::new();
    let mut note = |problem: Result<(), Fault>| found.extend(problem.err().map(text_of));
    let (number, id) = (conversation.number, conversation.id);
    let (parent, name) = (conversation.parent()?, conversation.name.as_deref());
    note(read::check_indexed(db, id));
    if let Some(name) = name {
        let tenant = Tenant(conversation.tenant.clone());
        note(read::find_among(db, &tenant, name, lineages).map(drop));
    }
    if let Some(parent) = parent {
        note(read::check_indexed(db, parent.id));
    }
    note(check_gaps(db, conversation, parent));
    note(read::newest(db, number, id).map(drop));
    match read::readable_commits(db, id, None) {
        Ok(rows) => {
            rows.into_iter().for_each(|(_, row)| note(row.map(drop).map_err(Fault::Refused)))
        }
        Err(fault) => note(Err(fault)),
    }
    for kind in [PageKind::Records, PageKind::Entries] {
        // One at a time: together they may be larger than memory.
        for first in firsts(db, number, kind)? {
            note(read::pages(db, id, kind, first..first.saturating_add(1), true).map(drop));
        }
    }
    let mut keys = db.prepare_cached("SELECT key FROM keys WHERE conversation = ?1")?;
    let keys = keys.query_map([number], |row| row.get::<_, String>(0))?;
    for key in keys.collect::<Result<Vec<_>, _>>()? {
        note(read::key(db, id, &key).map(drop));
    }
    Ok(found)
}

/// The numbers of all conversations.
struct Numbers {
    numbers: BTreeSet<Number>,
    /// Why a part of them could not be read.
    faults: Vec<String>,
    /// Whether numbers may be missing, because neither the table nor the index of ids can be read to its end.
    may_lack: bool,
}

impl Numbers {
    /// Reads the table and the index of ids, each as far as it can be read.
    fn of(db: &Connection) -> Numbers {
        let mut all = Numbers { numbers: BTreeSet::new(), faults: Vec::new(), may_lack: true };
        let sources = [
            ("the table of conversations", "NOT INDEXED"),
            ("the index of ids", "INDEXED BY sqlite_autoindex_conversations_1"),
        ];
        for (name, source) in sources {
            match all.read(db, source) {
                Ok(()) => all.may_lack = false,
                Err(fault) => all.faults.push(format!("{name}: {}", text_of(fault))),
            }
        }
        all
    }

    fn read(&mut self, db: &Connection, source: &str) -> Result<(), Fault> {
        let mut select = db.prepare(&format!("SELECT number FROM conversations {source}"))?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            self.numbers.insert(Number(row.get(0)?));
        }
        Ok(())
    }
}

/// Whether an index of the conversations is damaged. Fails if it cannot be built again from the table because
/// rows of the table are damaged or missing: the indexes then contain data that the table lacks.
///
/// SQLite refuses every change of the schema in a transaction that has read damaged pages, so the transaction
/// that replaces the indexes does not check them.
pub(super) fn has_damaged_index(db: &Connection) -> Result<bool, Fault> {
    let is_sound = "PRAGMA integrity_check('conversations')";
    if db.query_row(is_sound, [], |row| row.get::<_, String>(0)).is_ok_and(|text| text == "ok") {
        return Ok(false);
    }
    let all = Numbers::of(db);
    let mut ids = BTreeSet::new();
    let mut lost = 0;
    for &number in &all.numbers {
        match read::at(db, number)? {
            Some(conversation) => drop(ids.insert(conversation.id.0)),
            None => lost += 1,
        }
    }
    if lost > 0 {
        // An entry of the index whose id is in the table has a damaged number.
        let mut indexed = db.prepare(
            "SELECT id, number FROM conversations INDEXED BY sqlite_autoindex_conversations_1",
        )?;
        let mut rows = indexed.query([])?;
        // If the index cannot be read to its end, the rest of it is ignored.
        while let Ok(Some(row)) = rows.next() {
            let (id, number) = (read::id_from(row.get(0)?), Number(row.get(1)?));
            if !ids.contains(&id.0) && read::at(db, number)?.is_none() {
                return Err(read::damaged(id, "its row is missing, so no index is rebuilt"));
            }
        }
    }
    if all.may_lack {
        let reason = "the table of conversations cannot be read, so no index is rebuilt";
        return Err(read::damaged(NO_ID, reason));
    }
    Ok(true)
}

/// Gives the table of conversations the indexes of a copy of it. `REINDEX` would read the damaged indexes to
/// free their pages; here they are left for `VACUUM`.
pub(super) fn replace_indexes(db: &Connection) -> Result<(), Fault> {
    tracing::warn!("the indexes of the conversations are damaged; they are built again");
    let select = "SELECT sql FROM sqlite_schema WHERE name = 'conversations'";
    let table: String = db.query_row(select, [], |row| row.get(0))?;
    db.execute_batch(&table.replacen("conversations", "rebuilt", 1))?;
    // Without a condition, SQLite would copy the damaged indexes too. Numbers start with 1.
    db.execute_batch(
        "INSERT INTO rebuilt SELECT * FROM conversations NOT INDEXED WHERE number > 0",
    )?;
    let mut statements = "DELETE FROM sqlite_schema WHERE tbl_name = 'rebuilt';".to_owned();
    let mut indexes = db.prepare(
        "SELECT replace(name, 'rebuilt', 'conversations'), rootpage FROM sqlite_schema
         WHERE type = 'index' AND tbl_name = 'rebuilt'",
    )?;
    let mut rows = indexes.query([])?;
    while let Some(row) = rows.next()? {
        let (name, root): (String, i64) = (row.get(0)?, row.get(1)?);
        statements += &format!("UPDATE sqlite_schema SET rootpage = {root} WHERE name = '{name}';");
    }
    drop(rows);
    schema::edit(db, &statements)
}

/// Every conversation of the file, also the damaged ones and those that are kept for their forks.
pub(super) fn survey(db: &Connection) -> Result<Vec<SurveyedConversation>, Fault> {
    let (mut found, mut lineages) = (Vec::new(), Lineages::default());
    let all = Numbers::of(db);
    if all.may_lack {
        let reason = format!("conversations are missing: {}", all.faults.join("; "));
        let row = Err(Error::Damaged { conversation: NO_ID, reason });
        let (tenant, name) = (Tenant::default(), Some("unknown conversations".to_owned()));
        found.push(SurveyedConversation { id: NO_ID, tenant, name, row });
    }
    for number in all.numbers {
        let unknown = || format!("conversation number {}", number.0);
        found.push(match read::at(db, number) {
            Ok(Some(conversation)) => {
                let (id, tenant) = (conversation.id, Tenant(conversation.tenant.clone()));
                let name = conversation.name.clone();
                let row =
                    conversation.with_head(db, &mut lineages).map_err(|fault| damage_of(id, fault));
                SurveyedConversation { id, tenant, name, row }
            }
            Ok(None) => {
                let error = damage_of(NO_ID, read::damaged(NO_ID, "its row is missing"));
                let (tenant, name) = (Tenant::default(), Some(unknown()));
                SurveyedConversation { id: NO_ID, tenant, name, row: Err(error) }
            }
            // The row is damaged, so its name and id are only a hint.
            Err(fault) => {
                let select = "SELECT id, tenant, name FROM conversations WHERE number = ?1";
                let hint = db.query_row(select, [number], |row| {
                    let (id, tenant) = (row.get(0).map_or(NO_ID, read::id_from), row.get(1));
                    Ok((id, tenant.unwrap_or_default(), row.get::<_, Option<String>>(2)?))
                });
                let (id, tenant, name) =
                    hint.unwrap_or_else(|_| (NO_ID, String::new(), Some(unknown())));
                let row = Err(damage_of(id, fault));
                SurveyedConversation { id, tenant: Tenant(tenant), name, row }
            }
        });
    }
    Ok(found)
}

/// The id in a report about a conversation whose id cannot be read.
const NO_ID: ConversationId = ConversationId(uuid::Uuid::nil());

/// A fault as damage of a conversation.
fn damage_of(conversation: ConversationId, fault: Fault) -> Error {
    match fault {
        Fault::Refused(error) => error,
        Fault::Database(error) => {
            Error::Damaged { conversation, reason: super::fault::reason(&error).text }
        }
    }
}

/// Rows that no read would find: a changed bit in a key can move a row out of its conversation.
const ORPHANS: [(&str, &str); 3] = [
    (
        "commits",
        "SELECT count(*) FROM commits WHERE place >> 32 NOT IN (SELECT number FROM conversations)",
    ),
    (
        "pages",
        "SELECT count(*) FROM pages WHERE place >> 33 NOT IN (SELECT number FROM conversations)",
    ),
    (
        "keys",
        "SELECT count(*) FROM keys WHERE conversation NOT IN (SELECT number FROM conversations)",
    ),
];

/// Rows of the search index without their conversation.
const ORPHANED_WORDS: [(&str, &str); 2] = [
    (
        "waiting",
        "SELECT count(*) FROM waiting WHERE place >> 32 NOT IN (SELECT number FROM conversations)",
    ),
    (
        "words_docsize",
        "SELECT count(*) FROM words_docsize WHERE id >> 32 NOT IN (SELECT number FROM conversations)",
    ),
];

/// Checks that no version and no page is missing.
fn check_gaps(
    db: &Connection,
    conversation: &read::Conversation,
    from: Option<Ancestor>,
) -> Result<(), Fault> {
    let (number, id) = (conversation.number, conversation.id);
    // A fork's first row is the version that it starts from.
    let versions = from.map_or(0, |from| from.versions.saturating_sub(1));
    let mut next = pages_end(db, number, PageKind::Records, versions, id)?;
    let mut select =
        db.prepare_cached("SELECT place FROM commits WHERE place BETWEEN ?1 AND ?2")?;
    let places = number.places();
    let places = select.query_map([places.start(), places.end()], |row| row.get(0))?;
    for place in places {
        let (_, version) = Number::split(place?);
        if version != next {
            return Err(read::damaged(id, format!("version {next} is missing")));
        }
        next = next.saturating_add(1);
    }
    pages_end(db, number, PageKind::Entries, from.map_or(0, |from| from.entries), id).map(drop)
}

/// The end of the pages of one kind, which must be contiguous from `first` on.
fn pages_end(
    db: &Connection,
    number: Number,
    kind: PageKind,
    first: u32,
    id: ConversationId,
) -> Result<u32, Fault> {
    let mut select =
        db.prepare_cached("SELECT place, count FROM pages WHERE place BETWEEN ?1 AND ?2")?;
    let places = [number.page(kind, 0), number.page(kind, u32::MAX)];
    let pages = select.query_map(places, |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)))?;
    let mut next = first;
    for page in pages {
        let (place, count): (i64, u32) = page?;
        if place as u32 != next {
            return Err(read::damaged(id, format!("the page of {kind:?} at {next} is missing")));
        }
        next = next.saturating_add(count);
    }
    Ok(next)
}

fn firsts(db: &Connection, number: Number, kind: PageKind) -> Result<Vec<u32>, Fault> {
    let mut select = db.prepare_cached("SELECT place FROM pages WHERE place BETWEEN ?1 AND ?2")?;
    let places = [number.page(kind, 0), number.page(kind, u32::MAX)];
    let places = select.query_map(places, |row| row.get::<_, i64>(0))?;
    Ok(places.map(|place| place.map(|place| place as u32)).collect::<Result<_, _>>()?)
}

/// Size of the file and its log, in bytes.
pub(super) fn size(path: &Path) -> Result<u64, Error> {
    let len = |path: &Path| match fs::metadata(path) {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(Error::failed("measuring the file", error)),
    };
    Ok(len(path)? + len(&beside(path, "-wal"))?)
}

/// Whether there is a log beside the file that is not empty.
pub(super) fn has_log(path: &Path) -> bool {
    fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0)
}

/// Copies a snapshot of the file into a new file. Other connections can write during the copy. The copy
/// needs no log, and it gets its name only when it is complete and durable.
pub(super) fn copy(db: &Connection, to: &Path) -> Result<(), Fault> {
    let failed = |error: std::io::Error| Error::failed(COPYING, error);
    if fs::exists(to).map_err(failed)? {
        return Err(Error::failed(COPYING, "there is a file of that name already").into());
    }
    let partial = beside(to, ".partial");
    let copied = copy_to(db, &partial).and_then(|()| {
        fs::File::open(&partial).and_then(|file| file.sync_all()).map_err(failed)?;
        // Unlike a rename, a hard link never replaces a file that another process has created since.
        Ok(fs::hard_link(&partial, to).map_err(failed)?)
    });
    let removed = fs::remove_file(&partial).map_err(failed);
    copied?;
    removed?;
    sync_folder(to).map_err(failed)?;
    Ok(())
}

/// Syncs the folder, so that the name of a new file is durable.
fn sync_folder(file: &Path) -> std::io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    match cfg!(unix) {
        true => fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all(),
        // Other systems cannot open folders, and sync names themselves.
        false => Ok(()),
    }
}

const COPYING: &str = "copying the file";

fn copy_to(db: &Connection, partial: &Path) -> Result<(), Fault> {
    match fs::remove_file(partial) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::failed(COPYING, error).into());
        }
        _ => {}
    }
    connection::create_private(partial).map_err(|error| Error::failed(COPYING, error))?;
    let mut copy = Connection::open(partial)?;
    // All pages in one step: between steps, every write would restart the backup.
    Backup::new(db, &mut copy)?.step(-1)?;
    copy.close().map_err(|(_, error)| error.into())
}
