//! Processes that are created with `fork`.
//!
//! SQLite keeps the locks of a process in global variables. A forked process would inherit them together with
//! the connections of its parent, and take locks for its own that only the parent holds: the parent could
//! remove the write-ahead log in which the child commits. So no store of a file or a server is open while the
//! process is forked: [`before_fork`] waits for the requests that run and closes the stores, and their next
//! request opens them again, in the parent and in the child.
//!
//! A lock that another thread holds stays locked in the child. So everything here is atomic numbers, except
//! [`STORES`], which is locked only by a thread that is [`Running`] and by the thread that forks.

use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::Slot;

const PAUSE: Duration = Duration::from_millis(1);

static IS_FORKING: AtomicBool = AtomicBool::new(false);
static RUNNING: AtomicUsize = AtomicUsize::new(0);
static OPEN_FILES: AtomicUsize = AtomicUsize::new(0);
/// The process that opened the newest file.
static OPENED_BY: AtomicU32 = AtomicU32::new(0);
/// The stores of files and servers in this process.
static STORES: Mutex<Vec<Weak<Slot>>> = Mutex::new(Vec::new());

/// Something that uses an open store. The process is not forked meanwhile.
pub(crate) struct Running(());

impl Running {
    /// Waits while the process is forked. The thread must be detached from the interpreter.
    pub(crate) fn begin() -> Running {
        loop {
            RUNNING.fetch_add(1, SeqCst);
            if !IS_FORKING.load(SeqCst) {
                return Running(());
            }
            RUNNING.fetch_sub(1, SeqCst);
            thread::sleep(PAUSE);
        }
    }
}

impl Running {
    /// Adds a store to those that are closed before a fork.
    pub(crate) fn register(&self, store: &Arc<Slot>) {
        let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
        stores.retain(|store| store.strong_count() > 0);
        stores.push(Arc::downgrade(store));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, SeqCst);
    }
}

/// A store of a file or a server that is open in this process.
pub(crate) struct OpenFile(());

impl OpenFile {
    /// `None` in a process that was forked without [`before_fork`], by a program in C, while a file was open.
    pub(crate) fn new() -> Option<OpenFile> {
        let process = process::id();
        if OPEN_FILES.load(SeqCst) > 0 && OPENED_BY.load(SeqCst) != process {
            return None;
        }
        OPENED_BY.store(process, SeqCst);
        OPEN_FILES.fetch_add(1, SeqCst);
        Some(OpenFile(()))
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        OPEN_FILES.fetch_sub(1, SeqCst);
    }
}

/// Waits until no request runs, and closes the stores. No request starts before [`after_fork_in_parent`] or
/// [`after_fork_in_child`].
#[pyfunction]
pub(crate) fn before_fork(py: Python<'_>) {
    py.detach(|| {
        // Another thread may fork at the same time.
        while IS_FORKING.swap(true, SeqCst) {
            thread::sleep(PAUSE);
        }
        while RUNNING.load(SeqCst) > 0 {
            thread::sleep(PAUSE);
        }
        for store in STORES.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            if let Some(store) = store.upgrade() {
                drop(store.take());
            }
        }
    });
}

#[pyfunction]
pub(crate) fn after_fork_in_parent() {
    IS_FORKING.store(false, SeqCst);
}

#[pyfunction]
pub(crate) fn after_fork_in_child() {
    // The threads that wait for their requests exist only in the parent.
    RUNNING.store(0, SeqCst);
    IS_FORKING.store(false, SeqCst);
}
