//! The format number.

use std::sync::Arc;

use recto_store::{Error, PostgresOptions, PostgresStore, Store};
use testserver::PostgresServer;

use super::{create, open, tenant};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_that_start_at_the_same_time_create_the_tables_once() {
    let address = Arc::new(PostgresServer::shared().database());
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let address = Arc::clone(&address);
            tokio::spawn(async move { open(&address).await })
        })
        .collect();
    for (number, task) in tasks.into_iter().enumerate() {
        create(&task.await.unwrap(), &number.to_string()).await;
    }
    assert_eq!(open(&address).await.list(&tenant(), None, 99).await.unwrap().len(), 8);
}

#[tokio::test]
async fn a_newer_format_is_refused_and_unchanged() {
    let server = PostgresServer::shared();
    let address = server.database();
    drop(open(&address).await);
    let database = address.rsplit('/').next().unwrap();
    server.sql(database, "UPDATE recto_format SET format = 99");
    let refused = PostgresStore::open(&address, PostgresOptions::default()).await.unwrap_err();
    assert_eq!(refused, Error::NewerFormat { found: 99, known: 3 });
    assert_eq!(server.sql(database, "SELECT format FROM recto_format"), "99");
}

#[tokio::test]
async fn a_failed_migration_changes_nothing() {
    let server = PostgresServer::shared();
    let address = server.database();
    let database = address.rsplit('/').next().unwrap();
    // The last table exists already, so creating the tables fails after the first ones.
    server.sql(database, "CREATE TABLE recto_words (other bigint)");
    let refused = PostgresStore::open(&address, PostgresOptions::default()).await.unwrap_err();
    assert_eq!(refused.code(), "storage");
    let tables = "SELECT string_agg(relname, ' ') FROM pg_class WHERE relname LIKE 'recto%'";
    assert_eq!(server.sql(database, tables), "recto_words");
    server.sql(database, "DROP TABLE recto_words");
    create(&open(&address).await, "now").await;
}

#[tokio::test]
async fn a_database_without_utf8_is_refused() {
    let server = PostgresServer::shared();
    let create = "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0";
    server.sql("postgres", create);
    let opened = PostgresStore::open(&server.address("latin"), Default::default()).await;
    assert!(opened.unwrap_err().to_string().contains("create it with UTF8"));
}

#[tokio::test]
async fn a_store_created_without_search_stays_without() {
    let address = PostgresServer::shared().database();
    let without = PostgresOptions { search: false, ..Default::default() };
    let store = PostgresStore::open(&address, without).await.unwrap();
    create(&store, "unheard").await;
    for store in [store, open(&address).await] {
        let found = store.search(&tenant(), &["unheard".to_owned()], 9).await;
        assert_eq!(found, Err(Error::NoSearch));
    }
}
