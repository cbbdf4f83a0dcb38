//! The connections to the server.

use std::time::Duration;

use deadpool::Runtime;
use deadpool::managed::{self, Metrics, Pool, QueueMode, RecycleError, RecycleResult};
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::PostgresOptions;
use super::client::{Client, Connection};
use super::driver::Driver;
use super::encryption::Encryption;
use super::fault::Fault;
use crate::Error;

const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Every row is found by its key. A server that made its plans while the tables were small would
/// otherwise read all of them for each request, until it looks how large they have become.
const BY_KEY: &str = "SET enable_seqscan = off; SET jit = off";

/// A pool of connections, made when they are first needed.
pub(super) struct Connections(Pool<Manager>);

impl Connections {
    pub(super) fn new(address: &str, options: &PostgresOptions) -> Result<Connections, Error> {
        // What the driver says of an address can quote the password in it.
        let invalid = |_| Error::InvalidAddress { given: "postgres://…".to_owned() };
        let (address, encryption) = Encryption::take(address);
        let mut config: Config = address.parse().map_err(invalid)?;
        let tls = encryption.prepare(&mut config)?;
        if config.get_application_name().is_none() {
            config.application_name("recto");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_WITHIN);
        }
        config.keepalives_idle(Duration::from_secs(30));
        let pool = Pool::builder(Manager { config, tls })
            .max_size(options.connections.max(1))
            // The one that was used last: its server process has everything at hand.
            .queue_mode(QueueMode::Lifo)
            .wait_timeout(Some(options.wait))
            .create_timeout(Some(CONNECT_WITHIN * 2))
            .runtime(Runtime::Tokio1)
            .build();
        let pool = pool.map_err(|_| Error::failed("opening the store", "there is no pool"))?;
        Ok(Connections(pool))
    }

    /// A connection, as soon as one is free.
    pub(super) async fn get(&self) -> Result<Client, Fault> {
        Ok(Client::new(self.0.get().await?))
    }
}

impl std::fmt::Debug for Connections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let status = self.0.status();
        f.debug_struct("Connections")
            .field("most", &status.max_size)
            .field("open", &status.size)
            .finish_non_exhaustive()
    }
}

/// Makes connections for the pool.
pub(super) struct Manager {
    config: Config,
    tls: Option<MakeRustlsConnect>,
}

impl managed::Manager for Manager {
    type Type = Connection;
    type Error = tokio_postgres::Error;

    async fn create(&self) -> Result<Connection, tokio_postgres::Error> {
        let (client, driver) = match self.tls.clone() {
            Some(tls) => {
                let (client, connection) = self.config.connect(tls).await?;
                (client, Driver::start(connection))
            }
            None => {
                let (client, connection) = self.config.connect(NoTls).await?;
                (client, Driver::start(connection))
            }
        };
        let connection = Connection::new(client, driver);
        // A server that does not know these settings does without.
        let _ = connection.batch_execute(BY_KEY).await;
        Ok(connection)
    }

    async fn recycle(
        &self,
        connection: &mut Connection,
        _: &Metrics,
    ) -> RecycleResult<tokio_postgres::Error> {
        match connection.is_closed() {
            true => Err(RecycleError::message("the server has closed it")),
            false => Ok(()),
        }
    }
}
