//! Connections that read while the writer writes. Each read uses a snapshot of the file.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::SqliteOptions;
use super::connection::{self, Access};
use super::fault::Fault;
use crate::Error;

/// A pool of connections, opened on demand.
#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    access: Access,
    idle: Mutex<Vec<Connection>>,
    /// One permit for each concurrent read.
    turns: Arc<Semaphore>,
    /// How long a read waits for other processes.
    wait: Duration,
}

impl Readers {
    pub(super) fn new(path: PathBuf, access: Access, options: &SqliteOptions) -> Arc<Readers> {
        let turns = Arc::new(Semaphore::new(options.readers.max(1)));
        Arc::new(Readers { path, access, idle: Mutex::default(), turns, wait: options.wait })
    }

    /// Reads on a blocking thread of the runtime, because it may wait for the disk.
    pub(super) async fn read<T: Send + 'static>(
        self: &Arc<Readers>,
        action: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Error> {
        let turn = self.turns.clone().acquire_owned().await.expect("turns are never closed");
        let readers = self.clone();
        let read = tokio::task::spawn_blocking(move || {
            let answer = readers.read_now(work);
            drop(turn);
            answer.map_err(|fault| fault.during(action))
        });
        read.await.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(Error::failed(action, "the program is shutting down")),
        })
    }

    fn read_now<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, Fault> {
        connection::wait_at_most(self.wait);
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let db = match kept {
            Some(db) => db,
            None => connection::open_reader(&self.path, self.access)?,
        };
        let answer = {
            let _snapshot = db.unchecked_transaction()?;
            work(&db)
        };
        // A connection that failed is closed, because its cache may be wrong too.
        if !matches!(answer, Err(Fault::Database(_))) {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(db);
        }
        answer
    }

    /// Closes the idle connections.
    pub(super) fn close(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
