//! The tables of a file, how a file is recognised as a store, and migrations.
//!
//! The format is a number in the file's header (`user_version`). Each step of [`STEPS`] migrates from
//! one format to the next; one transaction performs all steps that a file needs. A file of a newer format is
//! refused before anything is written to it. `docs/format.md` describes the rows.

use rusqlite::Connection;

use super::fault::Fault;
use super::{connection, search_index};
use crate::Error;

/// SQLite's `application_id` of a store: "Rcto".
const APPLICATION_ID: i32 = 0x5263_746f;

/// The format that this program reads and writes.
pub(super) const FORMAT: u32 = STEPS.len() as u32;

/// Migrations: step `n` changes format `n` to `n + 1`.
///
/// A `place` orders rows by conversation, then by version, entry or first number, in one integer:
/// so a row is found along one path of one tree, and short rows share a page.
const STEPS: &[&str] = &[
    "
    CREATE TABLE conversations (
        number   INTEGER PRIMARY KEY,
        id       BLOB NOT NULL UNIQUE,
        tenant   TEXT NOT NULL,
        name     TEXT,              -- none: removed, but forks share its rows
        created  INTEGER NOT NULL,
        settings TEXT NOT NULL,
        lineage  TEXT NOT NULL,     -- JSON
        checksum INTEGER NOT NULL,
        UNIQUE (tenant, name)
    );
    CREATE TABLE shares (
        ancestor INTEGER NOT NULL,  -- the number of a conversation whose rows are shared
        fork     INTEGER NOT NULL,  -- by this one
        PRIMARY KEY (ancestor, fork)
    ) WITHOUT ROWID;
    CREATE TABLE commits (
        place     INTEGER PRIMARY KEY,
        entries   INTEGER NOT NULL,
        link      BLOB NOT NULL,
        committed INTEGER NOT NULL,
        checksum  INTEGER NOT NULL, -- of all but the body
        body_checksum INTEGER NOT NULL,
        body      BLOB NOT NULL
    );
    CREATE TABLE pages (
        place    INTEGER PRIMARY KEY,
        count    INTEGER NOT NULL,
        checksum INTEGER NOT NULL,  -- of all but the body
        body_checksum INTEGER NOT NULL,
        meta     BLOB NOT NULL,     -- before the body, which is on pages of its own
        body     BLOB NOT NULL
    );
    CREATE TABLE keys (
        conversation INTEGER NOT NULL,
        key      TEXT NOT NULL,
        request  BLOB NOT NULL,
        version  INTEGER NOT NULL,
        changed  INTEGER NOT NULL,
        checksum INTEGER NOT NULL,
        PRIMARY KEY (conversation, key)
    ) WITHOUT ROWID;
",
    "
    ALTER TABLE conversations ADD COLUMN policy TEXT;
",
    // A lineage that is written from here on has only the direct ancestor. Which conversations share rows
    // follows from the lineages, which have checksums. Records and role bytes of this format can contain more
    // than those of format 2: see `docs/format.md`.
    "
    CREATE TABLE rewrites (count INTEGER NOT NULL, copy INTEGER NOT NULL); -- how often rows were rewritten
    INSERT INTO rewrites VALUES (0, 0);
    DROP TABLE shares;
",
];

/// Creates the tables in a new file, or migrates an older one.
pub(super) fn prepare(db: &Connection, path: &std::path::Path, search: bool) -> Result<(), Error> {
    let found = Found::in_file(db).map_err(|error| Fault::from(error).during(OPENING))?;
    match found {
        Found::Other => return Err(Error::NotAStore { path: path.display().to_string() }),
        Found::Format(found) => refuse_newer(found)?,
        Found::Nothing => {}
    }
    connection::write_ahead(db).map_err(|error| Fault::from(error).during(OPENING))?;
    if found != Found::Format(FORMAT) {
        migrate(db, search).map_err(|fault| fault.during("bringing the file up to date"))?;
    }
    Ok(())
}

/// Checks a file that cannot be written. Files of format 2 and later can be read without a migration: the
/// tables that are read are the same, except that `rewrites` may be missing.
pub(super) fn check_readable(db: &Connection, path: &std::path::Path) -> Result<(), Fault> {
    match Found::in_file(db)? {
        Found::Format(found) if found > FORMAT => Ok(refuse_newer(found)?),
        Found::Format(2..) => Ok(()),
        Found::Format(_) => Err(Error::failed(OPENING, "the file is of an older format and cannot be written, so it cannot be brought up to date").into()),
        _ => Err(Error::NotAStore { path: path.display().to_string() }.into()),
    }
}

const OPENING: &str = "opening the file";

fn refuse_newer(found: u32) -> Result<(), Error> {
    match found > FORMAT {
        true => Err(Error::NewerFormat { found, known: FORMAT }),
        false => Ok(()),
    }
}

/// Fails if a newer program has migrated the file since it was opened.
pub(super) fn check_format(db: &Connection) -> Result<(), Fault> {
    let found = db.prepare_cached("PRAGMA user_version")?.query_row([], |row| row.get(0))?;
    Ok(refuse_newer(found)?)
}

/// Executes statements that change `sqlite_schema`. Pages of tables and indexes that the statements remove
/// from it are lost until `VACUUM` writes the file again.
pub(super) fn edit(db: &Connection, statements: &str) -> Result<(), Fault> {
    let version: i64 = db.query_row("PRAGMA schema_version", [], |row| row.get(0))?;
    db.pragma_update(None, "writable_schema", true)?;
    // Every connection reads the schema again when its version has changed.
    let edited = db
        .execute_batch(statements)
        .and_then(|()| db.pragma_update(None, "schema_version", version + 1));
    db.pragma_update(None, "writable_schema", "RESET")?;
    Ok(edited?)
}

fn migrate(db: &Connection, search: bool) -> Result<(), Fault> {
    db.execute_batch("BEGIN IMMEDIATE")?;
    let migrated = perform_steps(db, search);
    match &migrated {
        Ok(()) => db.execute_batch("COMMIT")?,
        // The caller gets the first error. Closing the connection rolls back too.
        Err(_) => {
            if let Err(error) = db.execute_batch("ROLLBACK") {
                let error = Fault::from(error).for_log();
                tracing::warn!(error, "a failed migration could not be rolled back");
            }
        }
    }
    migrated
}

fn perform_steps(db: &Connection, search: bool) -> Result<(), Fault> {
    // Another process may have migrated the file since.
    let format = match Found::in_file(db)? {
        Found::Format(format) => format,
        _ => 0,
    };
    refuse_newer(format)?;
    for step in &STEPS[format as usize..] {
        db.execute_batch(step)?;
    }
    if format == 0 {
        db.pragma_update(None, "application_id", APPLICATION_ID)?;
        if search {
            search_index::create(db)?;
        }
    }
    Ok(db.pragma_update(None, "user_version", FORMAT)?)
}

/// The kind of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    /// An empty database.
    Nothing,
    /// A store, with its format.
    Format(u32),
    /// A database of another program.
    Other,
}

impl Found {
    fn in_file(db: &Connection) -> rusqlite::Result<Found> {
        let number = |pragma: &str| db.query_row(pragma, [], |row| row.get::<_, i32>(0));
        let id = number("PRAGMA application_id")?;
        let format = number("PRAGMA user_version")?;
        let tables = number("SELECT count(*) FROM sqlite_schema")?;
        Ok(match (id, format, tables) {
            (0, 0, 0) => Found::Nothing,
            (APPLICATION_ID, 1.., _) => Found::Format(format as u32),
            _ => Found::Other,
        })
    }
}
