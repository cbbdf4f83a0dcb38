//! Cache of the newest version of each conversation, valid while no other connection has written.

use std::collections::HashMap;

use rusqlite::Connection;

use super::fault::Fault;
use super::place::Number;
use super::schema;
use crate::ConversationId;

/// Capacity of the cache. It is emptied when it is full.
const CAPACITY: usize = 4_096;

/// The newest versions, including those that the open transaction has written.
#[derive(Debug, Default)]
pub(super) struct NewestVersions {
    /// SQLite's `data_version`, which changes when another connection changes the file.
    data_version: Option<i64>,
    newest: HashMap<ConversationId, (Number, u32)>,
}

impl NewestVersions {
    /// Empties the cache if another connection has written. Every transaction calls this first.
    pub(super) fn refresh(&mut self, db: &Connection) -> Result<(), Fault> {
        let now = db.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        if self.data_version != Some(now) {
            self.clear();
            schema::check_format(db)?;
            self.data_version = Some(now);
        }
        Ok(())
    }

    /// The number of a conversation in the file, and its newest version. `None` if they are not cached. A
    /// removed conversation is never cached.
    pub(super) fn get(&self, id: ConversationId) -> Option<(Number, u32)> {
        self.newest.get(&id).copied()
    }

    pub(super) fn insert(&mut self, id: ConversationId, number: Number, version: u32) {
        if self.newest.len() >= CAPACITY {
            self.newest.clear();
        }
        self.newest.insert(id, (number, version));
    }

    /// Empties the cache. Called after a rollback, and before every write request other than `Commit` and
    /// `Remember`.
    pub(super) fn clear(&mut self) {
        self.newest.clear();
    }
}
