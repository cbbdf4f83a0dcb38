//! Servers that tests start by themselves. For tests only, and only on Unix.
//!
//! - [`PostgresServer`]: a real PostgreSQL on loopback, with a directory of its own. It ends with the
//!   test process, however that ends.
//! - [`Proxy`]: stands between a client and a server, and cuts the connection when it is told to.
//! - [`ModelServer`]: a model provider that plays a script, faults included.
#![cfg(unix)]

mod model;
mod postgres;
mod programs;
mod proxy;

pub use model::{ModelServer, Received, Reply};
pub use postgres::PostgresServer;
pub use proxy::{Cut, Proxy};
