//! Connections to the file, with the settings that durability needs.
//!
//! The write-ahead log is synced with each commit (`synchronous=FULL`). A connection waits for other
//! writers with short sleeps of random length, so that no process starves.

use std::cell::Cell;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::fault::is;

/// Maximum attempts to get a lock, which take about ten seconds.
const ATTEMPTS: i32 = 2_000;

thread_local! {
    /// Whether this thread had to wait for another writer.
    static WAITED: Cell<bool> = const { Cell::new(false) };
}

/// Opens the file, and creates it if `may_create`.
pub(super) fn open(path: &Path, may_create: bool) -> rusqlite::Result<Connection> {
    let create = if may_create { OpenFlags::SQLITE_OPEN_CREATE } else { OpenFlags::empty() };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | create;
    let mut db = Connection::open_with_flags(path, flags)?;
    db.set_prepared_statement_cache_capacity(64);
    db.busy_handler(Some(wait))?;
    db.pragma_update(None, "synchronous", "FULL")?;
    // The schema of a file must not run code, and its pages are checked.
    db.pragma_update(None, "trusted_schema", false)?;
    db.pragma_update(None, "cell_size_check", true)?;
    db.pragma_update(None, "secure_delete", "fast")?;
    // A log that grew during a long read is truncated.
    db.pragma_update(None, "journal_size_limit", 16 << 20)?;
    Ok(db)
}

/// Opens a connection that cannot write.
pub(super) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let db = open(path, false)?;
    db.pragma_update(None, "query_only", true)?;
    Ok(db)
}

/// Switches to a write-ahead log. SQLite does not call the busy handler for this statement.
pub(super) fn write_ahead(db: &Connection) -> rusqlite::Result<()> {
    let mut attempt = 0;
    loop {
        match db.query_row("PRAGMA journal_mode=WAL", [], |row| row.get::<_, String>(0)) {
            Err(error) if is(&error, ErrorCode::DatabaseBusy) && wait(attempt) => attempt += 1,
            mode => return mode.map(drop),
        }
    }
}

/// Busy handler: sleeps longer with each attempt, and gives up after about ten seconds.
fn wait(attempt: i32) -> bool {
    WAITED.set(true);
    let longest = 200 * (1 + attempt.clamp(0, 49) as u64);
    sleep(Duration::from_micros(100 + uneven() % longest));
    attempt < ATTEMPTS
}

/// Sleeps if this thread had to wait for other processes, so that they get the lock next: SQLite's
/// lock has no queue.
pub(super) fn give_way() {
    if WAITED.replace(false) {
        sleep(Duration::from_micros(100 + uneven() % 400));
    }
}

/// A pseudo-random number that differs between processes.
fn uneven() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let mixed = now.map_or(0, |since| since.as_nanos() as u64) ^ u64::from(std::process::id());
    mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}
