//! Connections to the file, with the settings that durability needs.
//!
//! The write-ahead log is synced with each commit (`synchronous=FULL`). A connection waits for other
//! writers with short sleeps of random length, so that no process starves.

use std::cell::Cell;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::fault::is;

thread_local! {
    /// Whether this thread had to wait for another writer.
    static WAITED: Cell<bool> = const { Cell::new(false) };
    /// How long this thread waits for a lock. SQLite's busy handler takes no such argument, so it reads this.
    static LIMIT: Cell<Duration> = const { Cell::new(super::DEFAULT_WAIT) };
    /// When this thread started to wait.
    static START: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Sets how long this thread waits for a lock. Threads serve several stores, so every piece of work sets it
/// first.
pub(super) fn wait_at_most(limit: Duration) {
    LIMIT.set(limit);
}

/// How connections use the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Write,
    /// The file or its folder cannot be written. SQLite then needs the log and its index, which a writer
    /// creates beside the file.
    ReadOnly,
    /// As `ReadOnly`, but there is no log beside the file, or it is empty: the file alone is complete.
    Immutable,
}

/// Opens the file, and creates it if `may_create`. Only its owner can read a new file. SQLite creates the
/// log with the same permissions.
pub(super) fn open(path: &Path, may_create: bool) -> rusqlite::Result<Connection> {
    if may_create {
        // If this fails, SQLite reports why.
        let _ = create_private(path);
    }
    let create = if may_create { OpenFlags::SQLITE_OPEN_CREATE } else { OpenFlags::empty() };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | create;
    configure(Connection::open_with_flags(path, flags)?)
}

/// Creates an empty file that only its owner can read and write. An existing file stays as it is.
pub(super) fn create_private(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

fn configure(mut db: Connection) -> rusqlite::Result<Connection> {
    db.set_prepared_statement_cache_capacity(64);
    db.busy_handler(Some(wait))?;
    db.pragma_update(None, "synchronous", "FULL")?;
    // The schema of a file must not run code, and its pages are checked.
    db.pragma_update(None, "trusted_schema", false)?;
    db.pragma_update(None, "cell_size_check", true)?;
    // Everything that is deleted is overwritten, also what is packed into pages: otherwise free space
    // would keep the text of messages that are erased or removed later.
    db.pragma_update(None, "secure_delete", true)?;
    // A log that grew during a long read is truncated to 16 MiB.
    db.pragma_update(None, "journal_size_limit", 16 << 20)?;
    Ok(db)
}

/// Opens a connection that cannot write.
pub(super) fn open_reader(path: &Path, access: Access) -> rusqlite::Result<Connection> {
    let db = match access {
        Access::Write => open(path, false)?,
        Access::ReadOnly => open_uri(path, "mode=ro")?,
        Access::Immutable => open_uri(path, "mode=ro&immutable=1")?,
    };
    db.pragma_update(None, "query_only", true)?;
    Ok(db)
}

fn open_uri(path: &Path, parameters: &str) -> rusqlite::Result<Connection> {
    // Characters with a meaning in a URI are escaped.
    let path = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    configure(Connection::open_with_flags(format!("file:{path}?{parameters}"), flags)?)
}

/// Switches to a write-ahead log. SQLite does not call the busy handler for this statement.
pub(super) fn write_ahead(db: &Connection) -> rusqlite::Result<()> {
    let switch = || db.query_row("PRAGMA journal_mode=WAL", [], |row| row.get::<_, String>(0));
    let is_busy =
        |mode: &Result<_, _>| mode.as_ref().is_err_and(|error| is(error, ErrorCode::DatabaseBusy));
    repeat_while(is_busy, switch).map(drop)
}

/// Repeats an attempt while it finds the file busy, until the limit of this thread is reached. Locks for
/// which SQLite does not call the busy handler need it.
pub(super) fn repeat_while<T>(is_busy: impl Fn(&T) -> bool, attempt: impl Fn() -> T) -> T {
    let start = Instant::now();
    let mut attempts = 0;
    loop {
        let result = attempt();
        if !is_busy(&result) || start.elapsed() >= LIMIT.get() {
            return result;
        }
        pause(attempts);
        attempts += 1;
    }
}

/// Busy handler: sleeps longer with each attempt, until the limit of this thread is reached.
fn wait(attempt: i32) -> bool {
    let start = match START.get() {
        Some(start) if attempt > 0 => start,
        _ => {
            let now = Instant::now();
            START.set(Some(now));
            now
        }
    };
    pause(attempt);
    start.elapsed() < LIMIT.get()
}

/// Sleeps for a random time before the next attempt. The longest time grows with each attempt, up to 10.1 ms.
fn pause(attempt: i32) {
    WAITED.set(true);
    let longest = 200 * (1 + attempt.clamp(0, 49) as u64);
    sleep(Duration::from_micros(100 + pseudo_random() % longest));
}

/// Sleeps if this thread had to wait for other processes, so that they get the lock next: SQLite's
/// lock has no queue.
pub(super) fn yield_to_other_processes() {
    if WAITED.replace(false) {
        sleep(Duration::from_micros(100 + pseudo_random() % 400));
    }
}

/// A pseudo-random number that differs between processes.
fn pseudo_random() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let mixed = now.map_or(0, |since| since.as_nanos() as u64) ^ u64::from(std::process::id());
    mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}
