//! A connection while it is lent: what can be asked over it, and transactions.

use std::collections::HashMap;
use std::ops::Deref;
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Waker};

use deadpool::managed::Object;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement, ToStatement};

use super::connections::Manager;
use super::driver::Driver;

/// A connection with the statements that it has prepared.
pub(super) struct Connection {
    // Dropped before the driver: then that takes leave of the server.
    client: tokio_postgres::Client,
    statements: Mutex<HashMap<&'static str, Statement>>,
    driver: Driver,
}

impl Connection {
    pub(super) fn new(client: tokio_postgres::Client, driver: Driver) -> Connection {
        Connection { client, statements: Mutex::default(), driver }
    }

    /// Whether it can be used no more.
    pub(super) fn is_closed(&self) -> bool {
        self.driver.look();
        self.client.is_closed()
    }

    /// A statement, prepared when it is first needed.
    pub(super) async fn prepare_cached(&self, sql: &'static str) -> Result<Statement, Error> {
        let known = self.statements.lock().expect("no holder panics").get(sql).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.driver.drive(self.client.prepare(sql)).await?;
        self.statements.lock().expect("no holder panics").insert(sql, statement.clone());
        Ok(statement)
    }

    pub(super) async fn query<T>(
        &self,
        statement: &T,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error>
    where
        T: ?Sized + ToStatement,
    {
        self.driver.drive(self.client.query(statement, parameters)).await
    }

    pub(super) async fn query_one<T>(
        &self,
        statement: &T,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Row, Error>
    where
        T: ?Sized + ToStatement,
    {
        self.driver.drive(self.client.query_one(statement, parameters)).await
    }

    pub(super) async fn query_opt<T>(
        &self,
        statement: &T,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, Error>
    where
        T: ?Sized + ToStatement,
    {
        self.driver.drive(self.client.query_opt(statement, parameters)).await
    }

    /// How many rows it changed.
    pub(super) async fn execute<T>(
        &self,
        statement: &T,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, Error>
    where
        T: ?Sized + ToStatement,
    {
        self.driver.drive(self.client.execute(statement, parameters)).await
    }

    pub(super) async fn batch_execute(&self, sql: &str) -> Result<(), Error> {
        self.driver.drive(self.client.batch_execute(sql)).await
    }

    /// Has something done when nobody waits for it.
    fn leave_behind(&self, sql: &str) {
        // Whatever is polled once is in the queue.
        let asked = pin!(self.client.batch_execute(sql));
        let _ = asked.poll(&mut Context::from_waker(Waker::noop()));
        self.driver.leave();
    }
}

/// A connection that is lent.
pub(super) struct Client(Object<Manager>);

impl Client {
    pub(super) fn new(connection: Object<Manager>) -> Client {
        Client(connection)
    }

    pub(super) async fn transaction(&mut self) -> Result<Transaction<'_>, Error> {
        self.begin("BEGIN").await
    }

    /// A transaction that sees everything as it is at one moment, and only reads.
    pub(super) async fn moment(&mut self) -> Result<Transaction<'_>, Error> {
        self.begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await
    }

    async fn begin(&mut self, sql: &str) -> Result<Transaction<'_>, Error> {
        // It is there before it begins: who gives up meanwhile leaves none behind.
        let transaction = Transaction { client: self, is_over: false };
        transaction.batch_execute(sql).await?;
        Ok(transaction)
    }
}

impl Deref for Client {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.0
    }
}

/// A transaction. When it is dropped, nothing of it has happened.
pub(super) struct Transaction<'a> {
    client: &'a mut Client,
    is_over: bool,
}

impl Transaction<'_> {
    pub(super) async fn commit(mut self) -> Result<(), Error> {
        self.is_over = true;
        self.client.batch_execute("COMMIT").await
    }

    pub(super) async fn rollback(mut self) -> Result<(), Error> {
        self.is_over = true;
        self.client.batch_execute("ROLLBACK").await
    }
}

impl Deref for Transaction<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.client
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.client.leave_behind("ROLLBACK");
        }
    }
}
