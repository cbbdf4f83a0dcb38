//! Encrypted connections: which servers the store accepts.

use std::time::{Duration, Instant};

use recto_store::{Error, PostgresOptions, PostgresStore, Store};
use testserver::PostgresServer;

use super::{create, tenant};

/// Waits until the server has these connections, encrypted and not: it detects late that a client has
/// closed one.
fn check_connections(server: &PostgresServer, expected: &str, address: &str) {
    let start = Instant::now();
    while connections(server) != expected && start.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(connections(server), expected, "{address}");
}

/// The number of encrypted connections, and of others.
fn connections(server: &PostgresServer) -> String {
    let count = "SELECT count(*) FILTER (WHERE ssl) || ' ' || count(*) FILTER (WHERE NOT ssl) \
                 FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                 WHERE application_name = 'recto'";
    server.sql("postgres", count)
}

async fn open(address: &str) -> Result<PostgresStore, Error> {
    PostgresStore::open(address, PostgresOptions::default()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_verified_as_the_address_requires() {
    let server = PostgresServer::start_encrypted(&["localhost", "127.0.0.1"]);
    let other = PostgresServer::start_encrypted(&["elsewhere.example"]);
    let address = server.database();
    let roots = format!("sslrootcert={}", server.certificate().display());

    let store = open(&address).await.unwrap();
    assert_eq!(
        connections(&server),
        "0 1",
        "on this machine nothing is encrypted unless asked for"
    );
    drop(store);
    for how in [
        "sslmode=require".to_owned(),
        format!("sslmode=require&{roots}"),
        format!("{roots}&sslmode=verify-full&connect_timeout=5"),
    ] {
        let store = open(&format!("{address}?{how}")).await.unwrap();
        create(&store, &how).await;
        assert!(store.find(&tenant(), &how).await.unwrap().is_some());
        check_connections(&server, "1 0", &how);
    }

    // No root that browsers trust has signed it.
    let refused = open(&format!("{address}?sslmode=verify-full")).await.unwrap_err();
    assert!(refused.to_string().contains("UnknownIssuer"), "{refused}");
    // The certificate of another server, and one for another name.
    let roots_of_other = format!("sslrootcert={}", other.certificate().display());
    let refused = open(&format!("{address}?sslmode=verify-full&{roots_of_other}")).await;
    assert!(refused.unwrap_err().to_string().contains("certificate"));
    let elsewhere = format!("{}?sslmode=verify-full&{roots_of_other}", other.database());
    let refused = open(&elsewhere).await.unwrap_err();
    assert!(refused.to_string().contains("not valid for name"), "{refused}");
    assert_eq!(connections(&other), "0 0");
}

#[tokio::test]
async fn a_server_without_encryption_is_refused_if_the_address_requires_it() {
    let address = PostgresServer::shared().database();
    let refused = open(&format!("{address}?sslmode=require")).await.unwrap_err();
    assert!(refused.to_string().contains("no encrypted connection can be made"), "{refused}");
}
