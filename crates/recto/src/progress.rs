//! How far long work has come.

/// How much is done, of how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// So much is done.
    pub done: u64,
    /// So much there is.
    pub all: u64,
}

/// Whoever wants to know how far it has come. It is told between steps of the work, and should not
/// take long.
pub type Watcher<'a> = &'a mut (dyn FnMut(Progress) + Send);
