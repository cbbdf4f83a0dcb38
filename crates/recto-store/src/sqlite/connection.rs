//! A connection to the file, set up as durability needs it.
//!
//! Every connection has a write-ahead log that is synced with each commit (`synchronous=FULL`), and
//! waits for other writers with short sleeps of uneven length, so that nobody is always too late.

use std::cell::Cell;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::fault::is;

/// How often a connection asks for a lock before it gives up: for about ten seconds.
const ATTEMPTS: i32 = 2_000;

thread_local! {
    /// Whether this thread had to wait for another writer.
    static WAITED: Cell<bool> = const { Cell::new(false) };
}

/// Opens the file, and makes it if it may.
pub(super) fn open(path: &Path, may_create: bool) -> rusqlite::Result<Connection> {
    let create = if may_create { OpenFlags::SQLITE_OPEN_CREATE } else { OpenFlags::empty() };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | create;
    let mut db = Connection::open_with_flags(path, flags)?;
    db.set_prepared_statement_cache_capacity(64);
    db.busy_handler(Some(wait))?;
    db.pragma_update(None, "synchronous", "FULL")?;
    // Nothing that a file says may run code, and all that it says is checked.
    db.pragma_update(None, "trusted_schema", false)?;
    db.pragma_update(None, "cell_size_check", true)?;
    db.pragma_update(None, "secure_delete", "fast")?;
    // A log that grew behind a long read is cut again.
    db.pragma_update(None, "journal_size_limit", 16 << 20)?;
    Ok(db)
}

/// A connection that cannot write.
pub(super) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let db = open(path, false)?;
    db.pragma_update(None, "query_only", true)?;
    Ok(db)
}

/// Switches to a write-ahead log. SQLite does not wait here by itself.
pub(super) fn write_ahead(db: &Connection) -> rusqlite::Result<()> {
    let mut attempt = 0;
    loop {
        match db.query_row("PRAGMA journal_mode=WAL", [], |row| row.get::<_, String>(0)) {
            Err(error) if is(&error, ErrorCode::DatabaseBusy) && wait(attempt) => attempt += 1,
            mode => return mode.map(drop),
        }
    }
}

/// Sleeps a little, longer with each attempt. Ends after about ten seconds.
fn wait(attempt: i32) -> bool {
    WAITED.set(true);
    let longest = 200 * (1 + attempt.clamp(0, 49) as u64);
    sleep(Duration::from_micros(100 + uneven() % longest));
    attempt < ATTEMPTS
}

/// Lets other processes go first, if they were there: the lock has no queue of its own.
pub(super) fn give_way() {
    if WAITED.replace(false) {
        sleep(Duration::from_micros(100 + uneven() % 400));
    }
}

/// A number that differs between processes that wait for each other.
fn uneven() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let mixed = now.map_or(0, |since| since.as_nanos() as u64) ^ u64::from(std::process::id());
    mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}
