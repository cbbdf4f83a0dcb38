//! The connection pool: its size, its timeouts and its connections.

use std::sync::Arc;
use std::time::{Duration, Instant};

use recto_store::{Cause, Error, PostgresOptions, PostgresStore, SqlStateCode, Store};
use testserver::PostgresServer;

use super::{create, version};

fn two() -> PostgresOptions {
    PostgresOptions { connections: 2, wait: Duration::from_millis(300), ..Default::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_of_two_connections_serves_many_short_requests() {
    let address = PostgresServer::shared().database();
    let options = PostgresOptions { connections: 2, ..Default::default() };
    let store = Arc::new(PostgresStore::open(&address, options).await.unwrap());
    let id = create(&*store, "many").await;
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { version(&*store, id).await })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_pool_fails_after_its_timeout_and_recovers() {
    let address = PostgresServer::shared().database();
    let store = Arc::new(PostgresStore::open(&address, two()).await.unwrap());
    let id = create(&*store, "busy").await;
    // Another session locks the table; two readers then hold both connections of the pool.
    let lock = lock(&address, "recto_commits").await;
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { version(&*store, id).await })
        })
        .collect();
    until(&address, &format!("SELECT count(*) {OURS} AND wait_event_type = 'Lock'"), "2").await;
    let start = Instant::now();
    let refused = store.commits(id, None).await.unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    let expected = "the store failed while reading commits: all connections of the pool \
                    stayed busy; allow more of them; nothing was changed";
    assert_eq!(refused.to_string(), expected);
    drop(lock);
    for reader in readers {
        reader.await.unwrap();
    }
    assert_eq!(version(&*store, id).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_request_leaves_the_pool_usable() {
    let address = PostgresServer::shared().database();
    let store = PostgresStore::open(&address, two()).await.unwrap();
    let id = create(&store, "given up").await;
    for round in 0..100 {
        let at = version(&store, id).await;
        let mut commit = super::commit(id, at + 1, "text");
        let pages = vec![recto_store::pack_records(at, [("packed", recto_store::Link([0; 32]))])];
        commit.seal = Some(recto_store::Seal { below: at + 1, pages, rows: None });
        let given = Duration::from_micros(100 * (round % 20));
        let _ = tokio::time::timeout(given, store.commit(commit)).await;
    }
    let at = version(&store, id).await;
    store.commit(super::commit(id, at + 1, "the last")).await.unwrap();
    let rows = store.commits(id, None).await.unwrap();
    assert_eq!(rows.last().unwrap().body, b"the last");
    let pages = store.pages(id, recto_store::PageKind::Records, 0..at, false).await.unwrap();
    assert_eq!(
        pages.len() as u32,
        at,
        "each version was packed with the one behind it, or neither"
    );
}

#[tokio::test]
async fn a_password_in_an_address_is_in_no_error() {
    let open = |address: &'static str| PostgresStore::open(address, PostgresOptions::default());
    let refused = open("postgres://user:secret@db.example/recto?sslmode=maybe").await.unwrap_err();
    assert!(refused.to_string().contains("verify-full"), "{refused}");
    assert!(!refused.to_string().contains("secret"));
    assert_eq!(refused.code(), "invalid_operation");
    let unknown = open("postgres://user:secret@db.example/recto?lock=1s").await.unwrap_err();
    assert!(unknown.to_string().contains("lock_timeout, options"), "{unknown}");
    assert!(!unknown.to_string().contains("secret"));
    let invalid = open("postgres://user:secret@host:port/recto").await.unwrap_err();
    assert_eq!(invalid, Error::InvalidAddress { given: "postgres://…".to_owned() });
}

/// A session that holds a table locked until it is dropped.
async fn lock(address: &str, table: &str) -> tokio_postgres::Client {
    let (client, connection) =
        tokio_postgres::connect(address, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&format!("BEGIN; LOCK {table}")).await.unwrap();
    client
}

/// Waits until a query has the expected result, over a separate connection.
async fn until(address: &str, sql: &str, expected: &str) {
    let (server, database) = (PostgresServer::shared(), address.rsplit('/').next().unwrap());
    let start = Instant::now();
    loop {
        let (of, asked) = (database.to_owned(), sql.to_owned());
        let found = tokio::task::spawn_blocking(move || server.sql(&of, &asked)).await.unwrap();
        if found == expected {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "{sql}: {found}, not {expected}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

const OURS: &str = "FROM pg_stat_activity WHERE datname = current_database() \
                    AND application_name = 'recto'";

#[tokio::test]
async fn the_source_of_an_error_contains_neither_rows_nor_the_password() {
    let options = PostgresOptions::default;
    let address = "postgres://user:secret@127.0.0.1:1/conversations";
    let error = PostgresStore::open(address, options()).await.unwrap_err();
    let cause = std::error::Error::source(&error).expect("the connection was refused");
    let cause = cause.downcast_ref::<Cause>().unwrap();
    let kind = cause.downcast_ref::<std::io::Error>().unwrap().kind();
    assert_eq!(kind, std::io::ErrorKind::ConnectionRefused);
    assert!(!format!("{error:?} {cause} {cause:?}").contains("secret"));
    let server = PostgresServer::shared();
    let address = server.database();
    let store = PostgresStore::open(&address, options()).await.unwrap();
    let id = create(&store, "secret").await;
    let database = address.rsplit('/').next().unwrap().to_owned();
    let constraint = "ALTER TABLE recto_commits ADD CHECK (version < 1)";
    tokio::task::spawn_blocking(move || server.sql(&database, constraint)).await.unwrap();
    let error = store.commit(super::commit(id, 1, "secret")).await.unwrap_err();
    let cause = std::error::Error::source(&error).expect("the server refused the row");
    let code = cause.downcast_ref::<Cause>().unwrap().downcast_ref::<SqlStateCode>();
    assert_eq!(code, Some(&SqlStateCode("23514".to_owned())));
    assert!(!format!("{error} {error:?}").contains("secret"));
}

#[tokio::test]
async fn a_dropped_transaction_ends_without_another_use_of_its_connection() {
    let address = PostgresServer::shared().database();
    let store = PostgresStore::open(&address, two()).await.unwrap();
    let id = create(&store, "given up").await;
    let lock = lock(&address, "recto_pages").await;
    let mut commit = super::commit(id, 1, "text");
    let pages = vec![recto_store::pack_records(0, [("packed", recto_store::Link([0; 32]))])];
    commit.seal = Some(recto_store::Seal { below: 1, pages, rows: None });
    // Its row is inserted; its page waits for the lock.
    let given_up = tokio::time::timeout(Duration::from_millis(300), store.commit(commit)).await;
    assert!(given_up.is_err());
    drop(lock);
    until(&address, &format!("SELECT count(*) {OURS} AND state <> 'idle'"), "0").await;
    until(&address, "SELECT max(version) FROM recto_commits", "0").await;
    assert_eq!(version(&store, id).await, 0);
}

#[tokio::test]
async fn a_refused_transaction_ends_without_another_use_of_its_connection() {
    let address = PostgresServer::shared().database();
    let store = PostgresStore::open(&address, two()).await.unwrap();
    let id = create(&store, "stays").await;
    let refused = store.remove_with(&super::tenant(), "stays", crate::sample::only_at(id, 5)).await;
    assert_eq!(refused, Err(Error::VersionConflict { expected: 5, current: 0 }));
    until(&address, &format!("SELECT count(*) {OURS} AND state <> 'idle'"), "0").await;
}

#[tokio::test]
async fn a_dropped_store_closes_its_connections() {
    let address = PostgresServer::shared().database();
    let store = PostgresStore::open(&address, PostgresOptions::default()).await.unwrap();
    let id = create(&store, "short").await;
    let (one, other) = tokio::join!(version(&store, id), version(&store, id));
    assert_eq!((one, other), (0, 0));
    until(&address, &format!("SELECT count(*) {OURS}"), "2").await;
    drop(store);
    until(&address, &format!("SELECT count(*) {OURS}"), "0").await;
}

#[tokio::test]
async fn a_connection_that_the_server_closed_is_not_used() {
    let address = PostgresServer::shared().database();
    let store = PostgresStore::open(&address, PostgresOptions::default()).await.unwrap();
    let (one, other) = tokio::join!(store.survey(), store.survey());
    assert_eq!((one.unwrap().len(), other.unwrap().len()), (0, 0));
    until(&address, &format!("SELECT count(pg_terminate_backend(pid)) {OURS}"), "2").await;
    until(&address, &format!("SELECT count(*) {OURS}"), "0").await;
    // Otherwise the outcome of the first attempt would be unknown.
    let renamed = store.rename(&super::tenant(), "before", "after").await;
    assert_eq!(renamed, Err(Error::ConversationNotFound { name: "before".to_owned() }));
}

#[test]
fn the_end_of_a_runtime_closes_its_connections_while_the_store_is_open() {
    let address = PostgresServer::shared().database();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = runtime.block_on(PostgresStore::open(&address, two())).unwrap();
    let count = format!("SELECT count(*) {OURS}");
    runtime.block_on(until(&address, &count, "1"));
    drop(runtime);
    let observer = tokio::runtime::Runtime::new().unwrap();
    observer.block_on(until(&address, &count, "0"));
    // The store opens new connections in another runtime.
    assert_eq!(observer.block_on(store.list(&super::tenant(), None, 9)), Ok(Vec::new()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_beside_dropped_requests_receive_their_own_responses() {
    let address = PostgresServer::shared().database();
    let store = Arc::new(PostgresStore::open(&address, two()).await.unwrap());
    let mut ids = Vec::new();
    for task in 0..8 {
        ids.push((task, create(&*store, &format!("conversation {task}")).await));
    }
    let tasks: Vec<_> = ids
        .into_iter()
        .map(|(task, id)| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let name = format!("conversation {task}");
                for round in 0..40_u64 {
                    let given = Duration::from_micros((task * 100 + round) * 7 % 23 * 100);
                    let tenant = super::tenant();
                    let _ = tokio::time::timeout(given, store.find(&tenant, &name)).await;
                    let found = store.find(&tenant, &name).await.unwrap();
                    assert_eq!(found.map(|row| row.id), Some(id));
                }
            })
        })
        .collect();
    for task in tasks {
        tokio::time::timeout(Duration::from_secs(20), task).await.expect("no deadlock").unwrap();
    }
}
