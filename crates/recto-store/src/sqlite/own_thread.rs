//! Whether a request may be done on the thread that asks for it.
//!
//! On a quick disk, waking another thread and being woken by it takes a third of the time of a
//! commit. A program that blocks on its request (`block_on` on a thread of its own, as `main` and
//! `recto::blocking` do) can as well do the work itself. A task cannot: it would hold up the others
//! that share its thread.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::{Handle, RuntimeFlavor};

/// Counts the requests that could be done on the threads that ask for them.
#[derive(Debug, Default)]
pub(super) struct OwnThread(AtomicUsize);

/// A request that may be done here, as long as this lives.
pub(super) struct Here<'a>(&'a AtomicUsize);

impl OwnThread {
    /// Whether the thread waits for this request alone. If it asks for several at once, none of them
    /// is alone: they can be done together, or beside each other.
    pub(super) async fn waits_for_this(&self) -> Option<Here<'_>> {
        if !is_blocking() {
            return None;
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        let here = Here(&self.0);
        // What else this thread asks for at the same time comes in now.
        tokio::task::yield_now().await;
        (self.0.load(Ordering::Relaxed) == 1).then_some(here)
    }
}

impl Drop for Here<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether this thread blocks on what it is polling, beside a runtime whose tasks have other threads.
fn is_blocking() -> bool {
    tokio::task::try_id().is_none()
        && Handle::try_current()
            .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}
