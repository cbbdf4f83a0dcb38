//! Locks. In unit tests they are those of shuttle, which tries many orders of the threads.

#[cfg(test)]
pub(crate) use shuttle::sync::Mutex;
#[cfg(not(test))]
pub(crate) use std::sync::Mutex;
