//! Connections: how many, how long one waits, and to where.

use std::sync::Arc;
use std::time::{Duration, Instant};

use recto_store::{Error, PostgresOptions, PostgresStore, Store};
use testserver::PostgresServer;

use super::{create, version};

fn two() -> PostgresOptions {
    PostgresOptions { connections: 2, wait: Duration::from_millis(300), ..Default::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_of_two_serves_many_who_are_quick() {
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
async fn a_pool_that_stays_busy_fails_in_time_and_gets_well_again() {
    let server = PostgresServer::shared();
    let address = server.database();
    let store = Arc::new(PostgresStore::open(&address, two()).await.unwrap());
    let id = create(&*store, "busy").await;
    let database = address.rsplit('/').next().unwrap().to_owned();
    // Somebody locks the table for a while; two readers then hold both connections.
    let lock = std::thread::spawn(move || {
        server.sql(
            &database,
            "BEGIN; LOCK recto_commits IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(2); COMMIT",
        );
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { version(&*store, id).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let start = Instant::now();
    let refused = store.commits(id, None).await.unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    let expected = "the store failed while reading commits: all connections of the pool \
                    stayed busy; allow more of them; nothing was changed";
    assert_eq!(refused.to_string(), expected);
    for reader in readers {
        reader.await.unwrap();
    }
    lock.join().unwrap();
    assert_eq!(version(&*store, id).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_given_up_leaves_the_pool_as_it_was() {
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
async fn a_password_in_an_address_is_never_told() {
    let open = |address: &'static str| PostgresStore::open(address, PostgresOptions::default());
    let refused = open("postgres://user:secret@db.example/talks?sslmode=maybe").await.unwrap_err();
    assert!(refused.to_string().contains("verify-full"), "{refused}");
    assert!(!refused.to_string().contains("secret"));
    let invalid = open("postgres://user:secret@host:port/talks").await.unwrap_err();
    assert_eq!(invalid, Error::InvalidAddress { given: "postgres://…".to_owned() });
}
