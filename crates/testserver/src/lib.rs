//! Servers for tests. Unix only.
//!
//! - [`PostgresServer`]: a real PostgreSQL server on loopback with its own directory. It ends with the test
//!   process, even if the process is killed.
//! - [`PgBouncer`]: PgBouncer in front of a PostgreSQL server.
//! - [`Proxy`]: a TCP proxy that cuts connections on request.
//! - [`ModelServer`]: a model provider with scripted replies and faults.
#![cfg(unix)]

mod model;
mod pgbouncer;
mod postgres;
mod programs;
mod proxy;

pub use model::{ModelServer, Received, Reply};
pub use pgbouncer::PgBouncer;
pub use postgres::PostgresServer;
pub use proxy::{Cut, Proxy};
