//! Progress of long work.

/// How much of a piece of work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The number of finished units.
    pub done: u64,
    /// The number of all units.
    pub total: u64,
}

impl Progress {
    /// `done` units of `total`.
    pub fn new(done: u64, total: u64) -> Progress {
        Progress { done, total }
    }
}

/// A progress callback. The work calls it between its steps and waits for it to return.
pub type ProgressFn<'a> = &'a mut (dyn FnMut(Progress) + Send);
