//! The bare way: a row a message in a table of its own, inserted and committed with the same
//! pragmas, on the thread that asks.

use std::path::Path;

use rusqlite::Connection;

pub(crate) struct Bare(Connection);

impl Bare {
    pub(crate) fn new(path: &Path) -> Bare {
        let db = Connection::open(path).expect("the file can be made");
        db.execute_batch(
            "PRAGMA journal_mode = WAL;
             PRAGMA synchronous = FULL;
             CREATE TABLE messages (number INTEGER PRIMARY KEY, body BLOB NOT NULL);",
        )
        .expect("the file is new");
        Bare(db)
    }

    /// Returns when it is durable.
    pub(crate) fn append(&self, json: &str) {
        let run = |sql: &str| self.0.prepare_cached(sql)?.execute([]);
        let insert = || {
            run("BEGIN IMMEDIATE")?;
            self.0
                .prepare_cached("INSERT INTO messages (body) VALUES (?1)")?
                .execute([json.as_bytes()])?;
            run("COMMIT")
        };
        insert().expect("nobody else writes");
    }
}
