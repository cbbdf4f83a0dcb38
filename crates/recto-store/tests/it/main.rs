//! Stores from the outside: one contract for all of them, then what a file and a server have to
//! withstand.

mod contract;
#[cfg(unix)]
mod faults;
mod places;
#[cfg(all(unix, feature = "postgres"))]
mod postgres;
mod random;
mod sample;
mod sqlite_file;
