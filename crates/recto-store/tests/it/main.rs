//! Tests of the stores: one contract for all of them, then faults of files and of servers.

mod contract;
#[cfg(unix)]
mod faults;
mod places;
#[cfg(all(unix, feature = "postgres"))]
mod postgres;
mod random;
mod sample;
mod sqlite_erasure;
mod sqlite_file;
