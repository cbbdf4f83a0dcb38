//! The mutex of this crate. Unit tests use the one of `shuttle`, which tries many thread schedules.

#[cfg(test)]
pub(crate) use shuttle::sync::Mutex;
#[cfg(not(test))]
pub(crate) use std::sync::Mutex;
