//! The connection pool: `deadpool-postgres`, with a spawned task for each connection.

use std::pin::Pin;
use std::time::Duration;

use deadpool_postgres::{
    Client, ClientWrapper, ConfigConnectImpl, Connect, Manager, ManagerConfig, Object, Pool,
    QueueMode, RecyclingMethod, Runtime,
};
use tokio::task::JoinHandle;
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::PostgresOptions;
use super::attempts::Attempts;
use super::encryption::Encryption;
use super::fault::Fault;
use crate::Error;

const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Settings of each session. Without sequential scans, the server finds every row by its key. A server that
/// made its plans while the tables were small would otherwise read whole tables for each request, until it
/// analyses them again.
const SESSION_SETTINGS: &str = "SET enable_seqscan = off; SET jit = off";

/// A pool of connections. It opens a connection when a request needs one and none is idle.
pub(super) struct Connections {
    pool: Pool,
    answer_timeout: Duration,
}

impl Connections {
    pub(super) fn new(
        address: &str,
        encryption: Encryption,
        options: &PostgresOptions,
    ) -> Result<Connections, Error> {
        // The driver's message can quote the password in the address.
        let invalid = |_| Error::InvalidAddress { given: "postgres://…".to_owned() };
        let mut config: Config = address.parse().map_err(invalid)?;
        let tls = encryption.prepare(&mut config)?;
        if config.get_application_name().is_none() {
            config.application_name("recto");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_WITHIN);
        }
        let connect_timeout = config.get_connect_timeout().copied().unwrap_or(CONNECT_WITHIN);
        config.keepalives_idle(Duration::from_secs(30));
        // Before the pool reuses a connection, it checks without a query that the server has not closed it.
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let limits = format!(
            "SET lock_timeout = {}; SET statement_timeout = {}",
            milliseconds(options.lock_timeout),
            milliseconds(options.statement_timeout)
        );
        let connector = Connector { tls, limits };
        let pool = Pool::builder(Manager::from_connect(config, connector, recycling))
            .max_size(options.connections.max(1))
            // The connection that was used last: its server process has plans and pages cached.
            .queue_mode(QueueMode::Lifo)
            .wait_timeout(Some(options.wait))
            // One timeout for the connection, and one for the settings of the session.
            .create_timeout(Some(connect_timeout * 2))
            .runtime(Runtime::Tokio1)
            .build();
        let pool = pool.map_err(|_| {
            Error::failed("opening the store", "the connection pool cannot be made")
        })?;
        Ok(Connections { pool, answer_timeout: options.answer_timeout })
    }

    /// Waits for a free connection.
    pub(super) async fn get(&self) -> Result<Client, Fault> {
        Ok(self.pool.get().await?)
    }

    /// Opens the first connection. If that takes longer than `answer_timeout`, opening the store fails. Other
    /// failures are ignored here.
    pub(super) async fn check(&self) -> Result<(), Error> {
        match self.limited(async { self.get().await.map(drop) }).await {
            Err(Fault::Silent(reason)) => Err(Error::failed("opening the store", reason)),
            // The first request repeats the attempt.
            _ => Ok(()),
        }
    }

    /// Performs repeatable work on whole tables. It takes a connection out of the pool and removes the time
    /// limit of its statements. During the work, the server has to answer on another connection.
    pub(super) async fn long<T, F>(
        &self,
        action: &'static str,
        work: impl Fn(ClientWrapper) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        let attempt = || async {
            let client = Object::take(self.get().await?);
            client.batch_execute("SET statement_timeout = 0").await?;
            work(client).await
        };
        let watched = || async {
            tokio::select! {
                done = attempt() => done,
                fault = self.silence() => Err(fault),
            }
        };
        Attempts::of_read(action).perform(|_| watched()).await
    }

    /// Waits until the server does not answer any more.
    async fn silence(&self) -> Fault {
        loop {
            tokio::time::sleep(self.answer_timeout).await;
            let question = async { Ok(self.get().await?.batch_execute("SELECT 1").await?) };
            let answered = self.limited(question).await;
            // An error of the server is an answer.
            if let Err(Fault::Silent(reason) | Fault::Unreachable(reason)) = answered {
                return Fault::Silent(reason);
            }
        }
    }

    /// Performs a request that only reads. Each attempt ends after `answer_timeout`.
    pub(super) async fn read<T, F>(
        &self,
        action: &'static str,
        attempt: impl Fn() -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        Attempts::of_read(action).perform(|_| self.limited(attempt())).await
    }

    /// Performs a request that changes something. Each attempt ends after `answer_timeout`, and receives
    /// whether an earlier one may have done the work.
    pub(super) async fn write<T, F>(
        &self,
        action: &'static str,
        attempt: impl Fn(bool) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        Attempts::of_write(action).perform(|in_doubt| self.limited(attempt(in_doubt))).await
    }

    /// Performs an attempt, and ends it after `answer_timeout`. Without this limit, an attempt would wait
    /// forever for a server that is stopped or cut off without closing its connections.
    async fn limited<T>(
        &self,
        attempt: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        match tokio::time::timeout(self.answer_timeout, attempt).await {
            Ok(done) => done,
            Err(_) => {
                // The connection of the attempt is idle now, and its server may not answer the next one.
                self.pool.retain(|_, _| false);
                let seconds = self.answer_timeout.as_secs_f64();
                Err(Fault::Silent(format!("the server did not answer within {seconds} s").into()))
            }
        }
    }
}

/// A time limit as PostgreSQL takes it: 0 would mean no limit.
fn milliseconds(limit: Duration) -> u128 {
    limit.as_millis().clamp(1, i32::MAX as u128)
}

impl std::fmt::Debug for Connections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let status = self.pool.status();
        f.debug_struct("Connections")
            .field("max_size", &status.max_size)
            .field("open", &status.size)
            .finish_non_exhaustive()
    }
}

/// Opens connections for the pool.
struct Connector {
    /// None if connections are not encrypted.
    tls: Option<MakeRustlsConnect>,
    /// Statements that set the time limits.
    limits: String,
}

type Connected = Result<(tokio_postgres::Client, JoinHandle<()>), tokio_postgres::Error>;

impl Connect for Connector {
    fn connect(&self, config: &Config) -> Pin<Box<dyn Future<Output = Connected> + Send + '_>> {
        let config = config.clone();
        Box::pin(async move {
            let (client, task) = match self.tls.clone() {
                Some(tls) => ConfigConnectImpl { tls }.connect(&config).await?,
                None => ConfigConnectImpl { tls: NoTls }.connect(&config).await?,
            };
            // A server that does not support these settings works without them.
            if let Err(error) = client.batch_execute(SESSION_SETTINGS).await {
                let state = error.code().map_or("none", |state| state.code());
                tracing::warn!(state, "the server refused the settings of a session");
            }
            client.batch_execute(&self.limits).await?;
            Ok((client, task))
        })
    }
}
