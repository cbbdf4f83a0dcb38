//! The one writer of a file in this process: it takes requests in the order in which they come, and
//! makes as many durable at once as are waiting. `desk.rs` says on which thread.
//!
//! ```text
//!   BEGIN IMMEDIATE
//!     request                refused before it has written anything, or done
//!     request
//!     …
//!   COMMIT                   synced; only now every one of them is answered
//! ```
//!
//! If one of several fails half-way, all are rolled back and done again with a savepoint for each.
//!
//! What a request is told is what is stored. If SQLite cannot say whether a commit went through,
//! the writer opens the file anew and looks.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};

use super::fault::{self, Fault};
use super::known::Known;
use super::queue::{self, Clerk};
use super::search_index::{self, Waiting};
use super::work::Work;
use super::{connection, erasure};
use crate::Error;

/// How often the writer tries to find out what is stored, on a disk that just failed.
const SETTLING: u64 = 8;

/// A request, and where its answer goes.
pub(super) type Job = queue::Job<Work>;

/// How a request that fails in part is taken back without the others of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Savepoints {
    /// Not at all: it hardly ever happens, and then all of them are done again.
    None,
    Each,
}

/// The writer.
#[derive(Debug)]
pub(super) struct Writer {
    path: PathBuf,
    db: Connection,
    has_index: bool,
    waiting: Waiting,
    known: Known,
    /// The disk failed to make something durable, so nothing can be promised any more.
    is_read_only: bool,
}

impl Clerk for Writer {
    type Work = Work;

    fn stands_alone(work: &Work) -> bool {
        work.leaves_copies()
    }

    fn store(&mut self, jobs: &[Job], is_last: bool) -> Option<Vec<Result<(), Error>>> {
        let is_erasure = jobs[0].work.leaves_copies();
        let mut answers = self.store_group(jobs, is_last);
        if let Some([answer @ Ok(())]) = answers.as_deref_mut()
            && is_erasure
        {
            *answer = erasure::clean(&self.db);
        }
        if answers.is_some() && is_erasure {
            // Overwriting all that is freed costs time, and no harm comes of it otherwise.
            let _ = self.db.pragma_update(None, "secure_delete", "fast");
        }
        answers
    }

    fn nobody_waits(&mut self) {
        self.roll_back();
    }
}

impl Writer {
    pub(super) fn new(path: PathBuf, db: Connection, has_index: bool) -> Result<Writer, Fault> {
        let waiting = if has_index { Waiting::in_file(&db)? } else { Waiting::default() };
        let known = Known::default();
        Ok(Writer { path, db, has_index, waiting, known, is_read_only: false })
    }

    /// Begins without waiting for anybody; says whether it could.
    pub(super) fn begins_at_once(&mut self) -> bool {
        !self.is_read_only && connection::without_waiting(|| self.begin()).is_ok()
    }

    fn begin(&self) -> rusqlite::Result<()> {
        self.db.prepare_cached("BEGIN IMMEDIATE")?.execute([]).map(drop)
    }

    /// Stores what can be stored, in one transaction.
    fn store_group(&mut self, jobs: &[Job], is_last: bool) -> Option<Vec<Result<(), Error>>> {
        let all = |error: Error| Some(jobs.iter().map(|_| Err(error.clone())).collect());
        if self.is_read_only {
            return all(Error::ReadOnly);
        }
        let is_erasure = jobs[0].work.leaves_copies();
        let mut performed = self.perform(jobs, is_erasure, Savepoints::None);
        if matches!(performed, Ok(None)) {
            self.roll_back();
            performed = self.perform(jobs, is_erasure, Savepoints::Each);
        }
        let answers = match performed {
            Ok(answers) => answers.unwrap_or_default(),
            Err(fault) => {
                self.roll_back();
                return all(fault.during("writing"));
            }
        };
        if !is_last && queue::somebody_left(jobs, &answers) {
            self.roll_back();
            return None;
        }
        if answers.iter().all(Result::is_err) {
            self.roll_back();
            return Some(answers);
        }
        let waiting = match self.take_in_words(jobs, &answers) {
            Ok(waiting) => waiting,
            Err(fault) => {
                self.roll_back();
                return all(fault.during("writing"));
            }
        };
        let commit = self.db.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([]));
        match commit {
            Ok(_) => {
                self.waiting = waiting;
                Some(answers)
            }
            Err(error) => Some(self.find_out(jobs, answers, &error)),
        }
    }

    /// Does the work of every job. A fault means that all of it is lost; none, that without
    /// savepoints a part of a request cannot be taken back.
    fn perform(
        &mut self,
        jobs: &[Job],
        is_erasure: bool,
        savepoints: Savepoints,
    ) -> Result<Option<Vec<Result<(), Error>>>, Fault> {
        if is_erasure {
            self.db.pragma_update(None, "secure_delete", true)?;
        }
        if self.db.is_autocommit() {
            self.begin()?;
        }
        self.known.look(&self.db)?;
        let mut answers = Vec::with_capacity(jobs.len());
        for job in jobs {
            if savepoints == Savepoints::Each {
                self.db.prepare_cached("SAVEPOINT request")?.execute([])?;
            }
            let before = self.db.total_changes();
            let done = job.work.perform(&self.db, &mut self.known, self.has_index);
            // SQLite may have given up the whole transaction; then there is no savepoint either.
            if done.is_err() && self.db.is_autocommit() {
                return done.map(|()| None);
            }
            // A request that is alone needs no savepoint: if it is refused, all of it is rolled back.
            let is_in_part = done.is_err() && self.db.total_changes() != before;
            if is_in_part && jobs.len() > 1 && savepoints == Savepoints::None {
                return Ok(None);
            }
            if savepoints == Savepoints::Each {
                if done.is_err() {
                    self.known.forget();
                    self.db.prepare_cached("ROLLBACK TO request")?.execute([])?;
                }
                self.db.prepare_cached("RELEASE request")?.execute([])?;
            }
            answers.push(done.map_err(|fault| fault.during(job.work.doing())));
        }
        Ok(Some(answers))
    }

    /// Counts the words that wait now, and puts them into the index if there are many.
    fn take_in_words(&self, jobs: &[Job], answers: &[Result<(), Error>]) -> Result<Waiting, Fault> {
        let mut waiting = self.waiting;
        if !self.has_index {
            return Ok(waiting);
        }
        for (job, _) in jobs.iter().zip(answers).filter(|(_, answer)| answer.is_ok()) {
            waiting.add(job.work.words());
        }
        if !waiting.is_much() {
            return Ok(waiting);
        }
        // An index that is damaged must not stop requests: their words go on waiting.
        self.db.prepare_cached("SAVEPOINT words")?.execute([])?;
        let taken = search_index::take_in(&self.db);
        if taken.is_err() {
            if self.db.is_autocommit() {
                return taken.map(|()| waiting);
            }
            self.db.prepare_cached("ROLLBACK TO words")?.execute([])?;
        }
        self.db.prepare_cached("RELEASE words")?.execute([])?;
        Ok(Waiting::default())
    }

    fn roll_back(&mut self) {
        self.known.forget();
        if !self.db.is_autocommit() && self.db.execute_batch("ROLLBACK").is_err() {
            // Nobody else sees what this connection holds; a new one does not hold it.
            let _ = self.open_again();
        }
    }

    /// What is really stored after a commit that failed. Writing it may have failed after its last
    /// byte: then it is in the log, though nobody sees it, and would come back with the next process
    /// that reads the log. So the log is emptied before anybody is told that nothing was stored.
    fn find_out(
        &mut self,
        jobs: &[Job],
        answers: Vec<Result<(), Error>>,
        error: &rusqlite::Error,
    ) -> Vec<Result<(), Error>> {
        self.roll_back();
        // A full disk or a lock stops a commit before its last write; other faults may come after.
        let is_harmless = [ErrorCode::DiskFull, ErrorCode::DatabaseBusy, ErrorCode::OutOfMemory]
            .iter()
            .any(|code| fault::is(error, *code));
        self.is_read_only = !is_harmless;
        let is_settled = (0..SETTLING).any(|attempt| {
            thread::sleep(Duration::from_millis(20 * attempt));
            self.open_again().is_ok() && (is_harmless || erasure::checkpoint(&self.db).is_ok())
        });
        let find_out = |job: &Job, answer: Result<(), Error>| match job.work.is_done(&self.db) {
            // It was refused because of others that may not be stored either: it may try again.
            _ if answer.is_err() && is_settled => Err(self.not_stored(error)),
            _ if !is_settled => Err(Error::UnknownOutcome),
            Ok(true) => Ok(()),
            Ok(false) => Err(self.not_stored(error)),
            Err(_) => Err(Error::UnknownOutcome),
        };
        jobs.iter().zip(answers).map(|(job, answer)| find_out(job, answer)).collect()
    }

    fn not_stored(&self, error: &rusqlite::Error) -> Error {
        Error::failed("making requests durable", fault::reason(error))
    }

    /// A new connection knows nothing that is not in the file.
    fn open_again(&mut self) -> Result<(), Fault> {
        self.db = connection::open(&self.path, false)?;
        self.known = Known::default();
        if self.has_index {
            self.waiting = Waiting::in_file(&self.db)?;
        }
        Ok(())
    }
}
