//! Writes groups of requests to a file: the [`GroupWriter`] of the write queue.
//!
//! ```text
//!   BEGIN IMMEDIATE
//!     request                refused before it has written anything, or executed
//!     request
//!     …
//!   COMMIT                   synced
//! ```
//!
//! If one of several requests fails half-way, all are rolled back and executed again with a savepoint
//! for each.
//!
//! A result states what is stored. If SQLite cannot say whether a commit went through, the writer
//! opens the file again and reads it.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};

use super::fault::{self, Fault};
use super::newest_versions::NewestVersions;
use super::opened_files::OpenedFiles;
use super::search_index::{self, Waiting};
use super::write_queue::GroupWriter;
use super::write_request::{Copies, WriteRequest};
use super::{connection, erasure};
use crate::Error;

/// Maximum attempts to read what is stored after a commit has failed.
const MAX_RECOVERY_ATTEMPTS: u64 = 8;

/// Whether a request that fails half-way can be undone without the other requests of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Savepoints {
    /// No. Requests hardly ever fail half-way; if one does, the whole group is executed again.
    None,
    Each,
}

/// Counts the entries that wait for the index. A damaged index does not keep the file from being opened.
fn waiting_in(db: &Connection) -> Waiting {
    Waiting::in_file(db).unwrap_or_else(|fault| {
        let error = fault.for_log();
        tracing::warn!(error, "the search index is damaged");
        Waiting::default()
    })
}

/// The connection that writes, and what it caches.
#[derive(Debug)]
pub(super) struct FileWriter {
    files: OpenedFiles,
    db: Connection,
    has_index: bool,
    waiting: Waiting,
    newest: NewestVersions,
    /// How long a write waits for other processes.
    wait: Duration,
    /// Set after a commit failed for another reason than a full disk, a lock or a lack of memory, for example
    /// because the disk failed to sync. Later commits could not be trusted.
    is_read_only: bool,
}

impl GroupWriter for FileWriter {
    type Request = WriteRequest;

    fn runs_alone(request: &WriteRequest) -> bool {
        request.copies() != Copies::None
    }

    fn execute(&mut self, requests: &[WriteRequest]) -> Vec<Result<(), Error>> {
        connection::wait_at_most(self.wait);
        let all = |error: Error| requests.iter().map(|_| Err(error.clone())).collect();
        if self.is_read_only {
            return all(Error::ReadOnly);
        }
        let mut executed = self.try_to_execute(requests, Savepoints::None);
        if matches!(executed, Ok(None)) {
            self.roll_back();
            executed = self.try_to_execute(requests, Savepoints::Each);
        }
        match executed {
            Ok(results) => results.unwrap_or_default(),
            Err(fault) => all(fault.during("writing")),
        }
    }

    fn commit(
        &mut self,
        requests: &[WriteRequest],
        results: Vec<Result<(), Error>>,
    ) -> Vec<Result<(), Error>> {
        let waiting = match self.files.check() {
            Ok(()) => self.index_words(requests, &results),
            Err(error) => Err(error.into()),
        };
        let waiting = match waiting {
            Ok(waiting) => waiting,
            Err(fault) => {
                self.roll_back();
                self.save_lost_log();
                let error = fault.during("writing");
                return requests.iter().map(|_| Err(error.clone())).collect();
            }
        };
        let commit = self.db.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([]));
        let mut results = match commit {
            Ok(_) => {
                self.waiting = waiting;
                results
            }
            Err(error) => self.read_results(requests, results, &error),
        };
        if let ([request], [result @ Ok(())]) = (requests, &mut *results) {
            *result = match request.copies() {
                Copies::None => Ok(()),
                Copies::InLog => erasure::clean_log(&self.db),
                Copies::InFile => erasure::clean(&self.db),
            };
        }
        results
    }

    fn roll_back(&mut self) {
        self.newest.clear();
        if !self.db.is_autocommit() && self.db.execute_batch("ROLLBACK").is_err() {
            // The changes are in this connection alone, so replacing the connection drops them.
            if let Err(fault) = self.open_again() {
                let error = fault.for_log();
                tracing::warn!(error, "the file could not be opened again after a failed rollback");
            }
        }
    }

    fn after_group(&mut self) {
        connection::yield_to_other_processes();
    }
}

impl FileWriter {
    pub(super) fn new(
        path: PathBuf,
        db: Connection,
        has_index: bool,
        wait: Duration,
    ) -> Result<FileWriter, Fault> {
        let waiting = if has_index { waiting_in(&db) } else { Waiting::default() };
        let newest = NewestVersions::default();
        let files = OpenedFiles::of(path, &db)?;
        Ok(FileWriter { files, db, has_index, waiting, newest, wait, is_read_only: false })
    }

    /// Moves the content of a log that was deleted or replaced into the file, because the log contains
    /// acknowledged requests that no other connection finds.
    fn save_lost_log(&self) {
        if self.files.is_only_log_lost()
            && let Err(fault) = erasure::checkpoint(&self.db)
        {
            let error = fault.for_log();
            tracing::warn!(error, "the content of a deleted write-ahead log could not be saved");
        }
    }

    /// Executes every request. A fault means that the whole transaction is lost; `None`, that a part
    /// of a request cannot be undone without savepoints.
    fn try_to_execute(
        &mut self,
        requests: &[WriteRequest],
        savepoints: Savepoints,
    ) -> Result<Option<Vec<Result<(), Error>>>, Fault> {
        self.db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        self.newest.refresh(&self.db)?;
        let mut results = Vec::with_capacity(requests.len());
        for request in requests {
            if savepoints == Savepoints::Each {
                self.db.prepare_cached("SAVEPOINT request")?.execute([])?;
            }
            let before = self.db.total_changes();
            let done = request.execute(&self.db, &mut self.newest, self.has_index);
            // SQLite may have rolled the whole transaction back; then there is no savepoint either.
            if done.is_err() && self.db.is_autocommit() {
                return done.map(|()| None);
            }
            // A single request needs no savepoint: if it is refused, the transaction is rolled back.
            let is_partial = done.is_err() && self.db.total_changes() != before;
            if is_partial && requests.len() > 1 && savepoints == Savepoints::None {
                return Ok(None);
            }
            if savepoints == Savepoints::Each {
                if done.is_err() {
                    self.newest.clear();
                    self.db.prepare_cached("ROLLBACK TO request")?.execute([])?;
                }
                self.db.prepare_cached("RELEASE request")?.execute([])?;
            }
            results.push(done.map_err(|fault| fault.during(request.action())));
        }
        Ok(Some(results))
    }

    /// Counts the entries that wait for the index, and moves them into it if there are many.
    fn index_words(
        &self,
        requests: &[WriteRequest],
        results: &[Result<(), Error>],
    ) -> Result<Waiting, Fault> {
        let mut waiting = self.waiting;
        if !self.has_index {
            return Ok(waiting);
        }
        for (request, _) in requests.iter().zip(results).filter(|(_, result)| result.is_ok()) {
            waiting.add(request.words());
        }
        if !waiting.is_full() {
            return Ok(waiting);
        }
        // A damaged index must not stop requests: their words stay in the waiting table.
        self.db.prepare_cached("SAVEPOINT words")?.execute([])?;
        let taken = search_index::move_waiting(&self.db);
        if let Err(fault) = taken {
            let error = fault.for_log();
            tracing::warn!(
                error,
                "the search index is damaged; new words stay in the waiting table"
            );
            if self.db.is_autocommit() {
                return Err(fault);
            }
            self.db.prepare_cached("ROLLBACK TO words")?.execute([])?;
        }
        self.db.prepare_cached("RELEASE words")?.execute([])?;
        Ok(Waiting::default())
    }

    /// Reads what is stored after a commit that failed. The write may have failed after its last
    /// byte: then the commit is in the write-ahead log, invisible, and would come back with the next
    /// process that reads the log. So the log is emptied before a result says "not stored".
    fn read_results(
        &mut self,
        requests: &[WriteRequest],
        results: Vec<Result<(), Error>>,
        error: &rusqlite::Error,
    ) -> Vec<Result<(), Error>> {
        self.roll_back();
        // A full disk, a lock or a lack of memory stops a commit before its last write. Other faults may come
        // after it.
        let is_harmless = [ErrorCode::DiskFull, ErrorCode::DatabaseBusy, ErrorCode::OutOfMemory]
            .iter()
            .any(|code| fault::is(error, *code));
        self.is_read_only = !is_harmless;
        let is_settled = (0..MAX_RECOVERY_ATTEMPTS).any(|attempt| {
            thread::sleep(Duration::from_millis(20 * attempt));
            let recovered = self.open_again().and_then(|()| match is_harmless {
                true => Ok(()),
                false => erasure::checkpoint(&self.db),
            });
            if let Err(fault) = &recovered {
                let error = fault.for_log();
                tracing::warn!(
                    error,
                    attempt,
                    "the file could not be recovered after a failed commit"
                );
            }
            recovered.is_ok()
        });
        let not_stored = || Error::failed("making requests durable", fault::reason(error));
        let read = |request: &WriteRequest, result: Result<(), Error>| {
            match request.is_done(&self.db) {
                // It may have been refused because of another request of its group that is not stored, so
                // it can be retried.
                _ if result.is_err() && is_settled => Err(not_stored()),
                _ if !is_settled => Err(Error::UnknownOutcome),
                Ok(true) => Ok(()),
                Ok(false) => Err(not_stored()),
                Err(_) => Err(Error::UnknownOutcome),
            }
        };
        requests.iter().zip(results).map(|(request, result)| read(request, result)).collect()
    }

    /// Replaces the connection: a new one holds nothing that is not in the file.
    fn open_again(&mut self) -> Result<(), Fault> {
        self.db = connection::open(self.files.path(), false)?;
        self.files.opened_again(&self.db)?;
        self.newest = NewestVersions::default();
        if self.has_index {
            self.waiting = waiting_in(&self.db);
        }
        Ok(())
    }
}
