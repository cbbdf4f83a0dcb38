//! Stores from the outside: one contract for all of them, then what a file has to withstand.

mod contract;
#[cfg(unix)]
mod faults;
mod places;
mod random;
mod sample;
mod sqlite_file;
