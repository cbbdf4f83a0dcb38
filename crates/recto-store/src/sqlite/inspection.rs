//! Operations on the whole file: integrity check, size, backup.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, backup::Backup};

use super::fault::Fault;
use super::place::Number;
use super::read;
use crate::{Ancestor, ConversationId, Error, PageKind};

/// Lists damage: in SQLite's structures, then in rows.
pub(super) fn damage(db: &Connection) -> Result<Vec<String>, Fault> {
    let mut found = Vec::new();
    let mut check = db.prepare("PRAGMA integrity_check")?;
    let mut rows = check.query([])?;
    while let Some(row) = rows.next()? {
        let text: String = row.get(0)?;
        if text != "ok" {
            found.push(text);
        }
    }
    found.extend(damaged_rows(db)?);
    Ok(found)
}

/// Rows whose checksums do not match.
fn damaged_rows(db: &Connection) -> Result<Vec<String>, Fault> {
    let mut found = Vec::new();
    let mut note = |problem: Result<(), Fault>| match problem {
        Err(Fault::Refused(error)) => {
            found.push(error.to_string());
            Ok(())
        }
        other => other,
    };
    let select = format!("SELECT {} FROM conversations", read::Conversation::COLUMNS);
    let mut select = db.prepare(&select)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let conversation = match read::Conversation::from_row(row) {
            Ok(conversation) => conversation,
            Err(fault) => {
                note(Err(fault))?;
                continue;
            }
        };
        let (number, id) = (conversation.number, conversation.id);
        match conversation.parent() {
            Ok(parent) => {
                if let Some(parent) = parent {
                    note(read::conversation(db, parent.id).map(drop))?;
                }
                note(dense(db, &conversation, parent))?;
            }
            Err(fault) => note(Err(fault))?,
        }
        note(read::newest(db, number, id).map(drop))?;
        note(read::commits(db, id, None).map(drop))?;
        for kind in [PageKind::Records, PageKind::Entries] {
            // One at a time: together they may be larger than memory.
            for first in firsts(db, number, kind)? {
                note(read::pages(db, id, kind, first..first.saturating_add(1), true).map(drop))?;
            }
        }
        let mut keys = db.prepare_cached("SELECT key FROM keys WHERE conversation = ?1")?;
        let keys = keys.query_map([number], |row| row.get::<_, String>(0))?;
        for key in keys.collect::<Result<Vec<_>, _>>()? {
            note(read::key(db, id, &key).map(drop))?;
        }
    }
    for (table, count) in ORPHANS {
        let is_there = "SELECT 1 FROM sqlite_schema WHERE name = ?1";
        if !db.prepare_cached(is_there)?.exists([table])? {
            continue; // the search index, in a file without one
        }
        let alone: i64 = db.query_row(count, [], |row| row.get(0))?;
        if alone > 0 {
            found.push(format!("{table} has {alone} rows without their conversation"));
        }
    }
    Ok(found)
}

/// Rows that no read would find: a changed bit in a key can move a row out of its conversation.
const ORPHANS: [(&str, &str); 5] = [
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
fn dense(
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
        let (_, version) = Number::and_number(place?);
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

/// Copies a snapshot of the file into a new file. Other connections can write meanwhile. The copy
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
    let mut copy = Connection::open(partial)?;
    // All pages in one step: between steps, every write would restart the backup.
    Backup::new(db, &mut copy)?.step(-1)?;
    copy.close().map_err(|(_, error)| error.into())
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
