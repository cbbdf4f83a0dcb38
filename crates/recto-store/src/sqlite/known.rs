//! What the writer knows of the file without looking: it is still so if nobody else has written.

use std::collections::HashMap;

use rusqlite::Connection;

use super::fault::Fault;
use super::place::Number;
use super::schema;
use crate::ConversationId;

/// Of so many conversations the newest version is known.
const MOST: usize = 4_096;

/// What is known, as the transaction that is open has it.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The number by which SQLite tells whether other connections have changed the file.
    seen: Option<i64>,
    newest: HashMap<ConversationId, (Number, u32)>,
}

impl Known {
    /// Looks whether others have written since. To be called in every transaction, first.
    pub(super) fn look(&mut self, db: &Connection) -> Result<(), Fault> {
        let now = db.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        if self.seen != Some(now) {
            self.forget();
            schema::check_format(db)?;
            self.seen = Some(now);
        }
        Ok(())
    }

    /// The newest version of a conversation that has a name, and its number in the file.
    pub(super) fn newest(&self, id: ConversationId) -> Option<(Number, u32)> {
        self.newest.get(&id).copied()
    }

    pub(super) fn note(&mut self, id: ConversationId, number: Number, version: u32) {
        if self.newest.len() >= MOST {
            self.newest.clear();
        }
        self.newest.insert(id, (number, version));
    }

    /// For when something else was written, or what was noted is rolled back.
    pub(super) fn forget(&mut self) {
        self.newest.clear();
    }
}
