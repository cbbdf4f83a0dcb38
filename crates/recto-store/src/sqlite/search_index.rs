//! The search index: an FTS5 table without text and positions.
//!
//! Changing the index for a single entry is expensive. So the words of new entries are inserted into a
//! small table, `waiting`, in the transaction of their entries, and moved to the index many at a time. The
//! search reads both.
//!
//! SQLite's `ascii` tokenizer takes every letter beyond ASCII as it is: the words that
//! [`words_of`](crate::words_of) makes are its tokens, in every script.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use rusqlite::{Connection, params};

use super::fault::Fault;
use super::place::Number;
use super::read::id_from;
use super::schema;
use crate::{Error, Hit, Tenant, WordSums, WordsOf};

/// The number of entries, and the bytes of their words, from which the waiting table is moved into the index.
const MAX_WAITING: Waiting = Waiting { entries: 256, bytes: 256 << 10 };

/// Number and size of the entries in the waiting table.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waiting {
    entries: u32,
    bytes: u32,
}

impl Waiting {
    /// Counts the entries in the waiting table of a file.
    pub(super) fn in_file(db: &Connection) -> Result<Waiting, Fault> {
        let select = "SELECT count(*), ifnull(sum(length(words)), 0) FROM waiting";
        Ok(db.query_row(select, [], |row| {
            Ok(Waiting { entries: row.get(0)?, bytes: row.get(1)? })
        })?)
    }

    pub(super) fn add<'a>(&mut self, words: impl Iterator<Item = &'a WordsOf>) {
        for of in words {
            self.entries = self.entries.saturating_add(1);
            self.bytes = self.bytes.saturating_add(of.words.as_str().len() as u32);
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.entries >= MAX_WAITING.entries || self.bytes >= MAX_WAITING.bytes
    }
}

pub(super) fn create(db: &Connection) -> Result<(), Fault> {
    Ok(db.execute_batch(
        "CREATE TABLE waiting (place INTEGER PRIMARY KEY, words TEXT NOT NULL);
         CREATE VIRTUAL TABLE words USING fts5(
             word, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
         );",
    )?)
}

/// The tables of the index: those of [`create`], and those in which FTS5 keeps its content.
pub(super) const TABLES: [&str; 6] =
    ["waiting", "words", "words_config", "words_data", "words_docsize", "words_idx"];

/// Empties the index. `DROP TABLE` would read the damaged tables to free their pages; here they are left for
/// `VACUUM`.
pub(super) fn clear(db: &Connection) -> Result<(), Fault> {
    let names = table_names();
    schema::edit(db, &format!("DELETE FROM sqlite_schema WHERE tbl_name IN ({names})"))?;
    create(db)
}

/// Whether the file has a search index. One of its tables is enough: if another one is lost, the words in the
/// rest must not be ignored.
pub(super) fn exists(db: &Connection) -> Result<bool, Fault> {
    let select = format!("SELECT 1 FROM sqlite_schema WHERE name IN ({})", table_names());
    Ok(db.prepare(&select)?.exists([])?)
}

fn table_names() -> String {
    TABLES.map(|name| format!("'{name}'")).join(", ")
}

pub(super) fn add(db: &Connection, number: Number, words: &[WordsOf]) -> Result<(), Fault> {
    let mut insert = db.prepare_cached("INSERT OR REPLACE INTO waiting VALUES (?1, ?2)")?;
    for of in words.iter().filter(|of| !of.words.is_empty()) {
        insert.execute(params![number.place(of.entry), of.words.as_str()])?;
    }
    Ok(())
}

/// Moves all entries from the waiting table into the index.
pub(super) fn move_waiting(db: &Connection) -> Result<(), Fault> {
    db.prepare_cached(
        "INSERT OR REPLACE INTO words (rowid, word) SELECT place, words FROM waiting",
    )?
    .execute([])?;
    db.prepare_cached("DELETE FROM waiting")?.execute([])?;
    Ok(())
}

/// Removes entries from the waiting table and the index, and merges the index, which drops their words. Fails
/// if the index keeps some of them.
pub(super) fn remove(db: &Connection, number: Number, entries: &[u32]) -> Result<(), Fault> {
    if entries.is_empty() {
        return Ok(());
    }
    let places: BTreeSet<i64> = entries.iter().map(|&entry| number.place(entry)).collect();
    for place in &places {
        db.prepare_cached("DELETE FROM waiting WHERE place = ?1")?.execute([place])?;
        db.prepare_cached("DELETE FROM words WHERE rowid = ?1")?.execute([place])?;
    }
    merge(db)?;
    check_removed(db, |place| places.contains(&place))
}

/// [Removes](remove) all entries of a conversation. `entries` is the number of log entries that the
/// conversation does not share with its ancestors, if it is known.
pub(super) fn remove_all(
    db: &Connection,
    number: Number,
    entries: Option<u32>,
) -> Result<(), Fault> {
    let places = number.places();
    let range = [places.start(), places.end()];
    let count = |select: &str| -> Result<u32, Fault> {
        Ok(db.prepare_cached(select)?.query_row(range, |row| row.get(0))?)
    };
    let waiting = count("SELECT count(*) FROM waiting WHERE place BETWEEN ?1 AND ?2")?;
    let indexed = count("SELECT count(*) FROM words_docsize WHERE id BETWEEN ?1 AND ?2")?;
    for delete in [
        "DELETE FROM waiting WHERE place BETWEEN ?1 AND ?2",
        "DELETE FROM words WHERE rowid BETWEEN ?1 AND ?2",
    ] {
        db.prepare_cached(delete)?.execute(range)?;
    }
    if indexed > 0 {
        merge(db)?;
    } else if entries.is_some_and(|entries| entries <= waiting) {
        return Ok(()); // nothing was moved into the index
    }
    check_removed(db, |place| places.contains(&place))
}

/// Fails if the index still has words of removed entries. FTS5 deletes an entry by its row in
/// `words_docsize`: if that row is lost, or names other segments, nothing is deleted, and no error is
/// reported.
fn check_removed(db: &Connection, is_removed: impl Fn(i64) -> bool) -> Result<(), Fault> {
    create_vocabulary(db, "indexed_words", "instance")?;
    let mut select = db.prepare("SELECT doc FROM temp.indexed_words")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        if is_removed(row.get(0)?) {
            let damage = "the search index keeps words of a message that is to be deleted; `clean` \
                          builds it again";
            return Err(Error::DamagedStore { damage: vec![damage.to_owned()] }.into());
        }
    }
    Ok(())
}

/// Merges the index, which drops deleted words.
pub(super) fn merge(db: &Connection) -> Result<(), Fault> {
    Ok(db.execute_batch("INSERT INTO words (words) VALUES ('optimize')")?)
}

/// Finds entries that contain all these words, the newest first, in the index and in the waiting table.
pub(super) fn find(
    db: &Connection,
    tenant: &Tenant,
    words: &[String],
    limit: usize,
) -> Result<Vec<Hit>, Fault> {
    if words.is_empty() || limit == 0 || !words.iter().all(|word| is_word(word)) {
        return Ok(Vec::new());
    }
    let mut found = BTreeSet::new();
    let mut hit = |place: i64, id: [u8; 16]| {
        let hit = Hit { conversation: id_from(id), entry: Number::split(place).1 };
        found.insert((place, hit));
    };
    let mut waiting = db.prepare_cached(
        "SELECT place, id, words FROM waiting CROSS JOIN conversations
         WHERE number = place >> 32 AND tenant = ?1",
    )?;
    let mut rows = waiting.query([&tenant.0])?;
    while let Some(row) = rows.next()? {
        let text = row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?;
        if words.iter().all(|word| text.split(' ').any(|has| has == word)) {
            hit(row.get(0)?, row.get(1)?);
        }
    }
    let mut indexed = db.prepare_cached(
        "SELECT words.rowid, id FROM words CROSS JOIN conversations
         WHERE words MATCH ?1 AND number = words.rowid >> 32 AND tenant = ?2
         ORDER BY words.rowid DESC LIMIT ?3",
    )?;
    let query: String = words.iter().map(|word| format!("\"{word}\" ")).collect();
    let limit_number = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = indexed.query(params![query, tenant.0, limit_number])?;
    while let Some(row) = rows.next()? {
        hit(row.get(0)?, row.get(1)?);
    }
    Ok(found.into_iter().rev().map(|(_, hit)| hit).take(limit).collect())
}

/// The words of every entry that the index or the waiting table contains, as sums. Fails if the index has
/// words of an entry that `words_docsize` lacks.
pub(super) fn sums(db: &Connection) -> Result<WordSums, Fault> {
    let mut ids = BTreeMap::new();
    let mut select = db.prepare("SELECT number, id FROM conversations NOT INDEXED")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        ids.insert(row.get::<_, i64>(0)?, id_from(row.get(1)?));
    }
    let hit = |place: i64| {
        let (number, entry) = Number::split(place);
        ids.get(&number.0).map(|&conversation| Hit { conversation, entry })
    };
    let mut sums = WordSums::default();
    let mut entries = HashSet::new();
    let mut select = db.prepare("SELECT id FROM words_docsize")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let place = row.get(0)?;
        entries.insert(place);
        // An entry without its words gets the sum of no words.
        if let Some(hit) = hit(place) {
            sums.add_entry(hit);
        }
    }
    // A virtual table over the index lists each word of each entry.
    create_vocabulary(db, "indexed_words", "instance")?;
    let mut select = db.prepare("SELECT doc, term FROM temp.indexed_words")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let place = row.get(0)?;
        // Without its row in the table of entries, an entry is found and cannot be removed.
        if !entries.contains(&place) {
            let damage = "the search index has words of an entry that its table of entries lacks";
            return Err(Error::DamagedStore { damage: vec![damage.to_owned()] }.into());
        }
        let term = row.get_ref(1)?.as_bytes().map_err(rusqlite::Error::from)?;
        if let Some(hit) = hit(place) {
            sums.add_word(hit, term);
        }
    }
    let mut select = db.prepare("SELECT place, words FROM waiting")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        // As in a search: a value of another type is damage.
        let words = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
        if let Some(hit) = hit(row.get(0)?) {
            // A waiting row replaces the row of the index when it moves there.
            sums.replace(hit, words.split(' ').map(str::as_bytes));
        }
    }
    Ok(sums)
}

/// The number of words in the index that a search does not find in all of their entries, because the pages
/// that lead to them are damaged. SQLite's own check does not look words up.
pub(super) fn unreachable_words(db: &Connection) -> Result<usize, Fault> {
    create_vocabulary(db, "indexed_terms", "row")?;
    let mut terms = db.prepare("SELECT term, doc FROM temp.indexed_terms")?;
    let mut found = db.prepare("SELECT count(*) FROM words WHERE words MATCH ?1")?;
    let mut rows = terms.query([])?;
    let mut unreachable = 0;
    while let Some(row) = rows.next()? {
        let (term, entries): (String, i64) = (row.get(0)?, row.get(1)?);
        let phrase = format!("\"{}\"", term.replace('"', "\"\""));
        let count: i64 = found.query_row([phrase], |row| row.get(0))?;
        unreachable += usize::from(count != entries);
    }
    Ok(unreachable)
}

/// Creates a virtual table that lists the words of the index.
fn create_vocabulary(db: &Connection, name: &str, kind: &str) -> Result<(), Fault> {
    // The temporary schema counts as a change, which a connection that only reads refuses.
    let only_reads: bool = db.pragma_query_value(None, "query_only", |row| row.get(0))?;
    db.pragma_update(None, "query_only", false)?;
    let created = db.execute_batch(&format!(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.{name} USING fts5vocab(main, words, {kind})"
    ));
    db.pragma_update(None, "query_only", only_reads)?;
    Ok(created?)
}

/// Whether it is one token, as every word of [`words_of`](crate::words_of) is.
fn is_word(word: &str) -> bool {
    let is_token =
        |letter: char| !letter.is_ascii() || letter.is_ascii_lowercase() || letter.is_ascii_digit();
    !word.is_empty() && word.chars().all(is_token)
}
