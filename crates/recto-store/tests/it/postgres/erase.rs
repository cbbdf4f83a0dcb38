//! Erasing: no file of the database contains the message afterwards.

use std::path::Path;

use recto_store::{Error, PostgresOptions, PostgresStore, Rewrite, Store};
use testserver::PostgresServer;
use tokio_postgres::NoTls;

use super::{commit, create, keyed, open, row, tenant};

/// Number of files in a folder that contain these bytes.
fn files_with(folder: &Path, bytes: &str) -> usize {
    let mut found = 0;
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found += files_with(&path, bytes);
        } else if let Ok(content) = std::fs::read(&path) {
            let needle = bytes.as_bytes();
            found += usize::from(content.windows(needle.len()).any(|window| window == needle));
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erased_message_is_in_no_file_of_the_database() {
    let server = PostgresServer::start();
    let address = server.database();
    let store = open(&address).await;
    let id = create(&store, "secrets").await;
    // PostgreSQL stores a short value in the table itself and a long one in a TOAST table.
    let long = format!("{} longsecret", "filler ".repeat(3_000));
    store.commit(commit(id, 1, "a shortsecret")).await.unwrap();
    store.commit(commit(id, 2, &long)).await.unwrap();
    store.commit(commit(id, 3, "public")).await.unwrap();
    let database = address.rsplit('/').next().unwrap();
    // ANALYZE and a plain VACUUM run between, as autovacuum would run them.
    server.sql(database, "ANALYZE");
    server.sql(database, "VACUUM");
    server.sql(database, "CHECKPOINT");
    let base = server.data().join("base");
    assert!(files_with(&base, "shortsecret") > 0 && files_with(&base, "longsecret") > 0);

    let rewrite = Rewrite {
        commits: vec![row(1, "gone"), row(2, "gone")],
        pages: vec![],
        forget: vec![1, 2],
        forks: None,
        known: None,
    };
    store.rewrite(id, 3, rewrite).await.unwrap();
    server.sql(database, "CHECKPOINT");
    assert_eq!(files_with(&base, "shortsecret"), 0);
    assert_eq!(files_with(&base, "longsecret"), 0);
    assert!(files_with(&base, "public") > 0);
    let found = store.search(&tenant(), &["shortsecret".to_owned()], 9).await.unwrap();
    assert_eq!(found, []);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    store.commit(commit(id, 4, "continues")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_conversation_is_in_no_file_of_the_database_after_cleaning() {
    let server = PostgresServer::start();
    let address = server.database();
    let store = open(&address).await;
    create(&store, "public").await;
    let id = create(&store, "namesecret").await;
    let long = format!("{} longsecret", "filler ".repeat(3_000));
    store.commit(keyed(id, 1, "a shortsecret")).await.unwrap();
    store.commit(commit(id, 2, &long)).await.unwrap();
    let database = address.rsplit('/').next().unwrap();
    server.sql(database, "ANALYZE");
    server.sql(database, "VACUUM");
    server.sql(database, "CHECKPOINT");
    let base = server.data().join("base");
    let secrets = ["shortsecret", "longsecret", "namesecret"];
    assert!(secrets.iter().all(|secret| files_with(&base, secret) > 0));
    store.remove(&tenant(), "namesecret").await.unwrap();
    store.clean().await.unwrap();
    server.sql(database, "CHECKPOINT");
    for secret in secrets {
        assert_eq!(files_with(&base, secret), 0, "{secret}");
    }
    assert!(files_with(&base, "public") > 0);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_that_stay_because_the_user_does_not_own_the_tables_are_reported() {
    let server = PostgresServer::start();
    let address = server.database();
    let owner = open(&address).await;
    let database = address.rsplit('/').next().unwrap();
    server.sql(
        database,
        "CREATE ROLE writer LOGIN; GRANT SELECT ON recto_format TO writer;
         GRANT SELECT, INSERT, UPDATE, DELETE ON recto_conversations, recto_parents, recto_rewrites,
         recto_commits, recto_pages, recto_keys, recto_words TO writer",
    );
    let writer = open(&address.replace("postgres@", "writer@")).await;
    let id = create(&writer, "secrets").await;
    writer.commit(commit(id, 1, "a shortsecret")).await.unwrap();
    server.sql(database, "CHECKPOINT");
    let base = server.data().join("base");
    assert!(files_with(&base, "shortsecret") > 0);
    let erase = Rewrite { commits: vec![row(1, "gone")], forget: vec![1], ..Rewrite::default() };
    let left = writer.rewrite(id, 1, erase).await.unwrap_err();
    assert!(matches!(left, Error::CopiesLeft { .. }), "{left:?}");
    assert!(left.to_string().contains("does not own recto_commits"), "{left}");
    assert_eq!(writer.commits(id, Some(0)).await.unwrap()[0].body, b"gone");
    assert!(matches!(writer.clean().await, Err(Error::CopiesLeft { .. })));
    owner.clean().await.unwrap();
    server.sql(database, "CHECKPOINT");
    assert_eq!(files_with(&base, "shortsecret"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cleaning_builds_damaged_indexes_again() {
    let server = PostgresServer::start();
    let address = server.database();
    let database = address.rsplit('/').next().unwrap();
    open(&address).await;
    // Tables this small are read without their indexes otherwise.
    server.sql(database, &format!("ALTER DATABASE {database} SET enable_seqscan = off"));
    let store = open(&address).await;
    // An index that is not ready gets no entries of new rows: afterwards it lacks them.
    let set = |is_ready: bool| {
        server.sql(
            database,
            &format!(
                "UPDATE pg_index SET indisready = {is_ready}, indisvalid = {is_ready}
                 WHERE indrelid::regclass::text LIKE 'recto%'"
            ),
        )
    };
    let origin = create(&store, "origin").await;
    set(false);
    let parents =
        "INSERT INTO recto_parents SELECT tenant, gen_random_uuid(), id FROM recto_conversations";
    server.sql(database, parents);
    create(&store, "lost").await;
    set(true);
    let store = open(&address).await;
    let lost = async || store.find(&tenant(), "lost").await.unwrap().is_none();
    let counted = || {
        let count = format!("SELECT count(*) FROM recto_parents WHERE parent = '{origin}'");
        server.sql(database, &count)
    };
    assert!(lost().await && counted() == "0", "the indexes are not damaged");
    store.clean().await.unwrap();
    assert!(!lost().await);
    assert_eq!(counted(), "1");
}

#[tokio::test]
async fn a_rewrite_of_an_older_version_is_refused() {
    let store = super::store().await;
    let id = create(&store, "moved").await;
    store.commit(commit(id, 1, "text")).await.unwrap();
    let refused = store.rewrite(id, 0, Rewrite::default()).await;
    assert_eq!(refused, Err(Error::VersionConflict { expected: 0, current: 1 }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_that_an_older_transaction_can_see_are_reported() {
    let server = PostgresServer::shared();
    let address = server.database();
    let erase_wait = std::time::Duration::from_millis(100);
    let options = PostgresOptions { erase_wait, ..PostgresOptions::default() };
    let store = PostgresStore::open(&address, options).await.unwrap();
    let id = create(&store, "watched").await;
    let database = address.rsplit('/').next().unwrap().to_owned();
    let address = server.address(&database);
    let (mut client, connection) = tokio_postgres::connect(&address, NoTls).await.unwrap();
    tokio::spawn(connection);
    let repeatable = tokio_postgres::IsolationLevel::RepeatableRead;
    let older = client.build_transaction().isolation_level(repeatable).start().await.unwrap();
    older.query_one("SELECT 1", &[]).await.unwrap();
    let rewrite = || Rewrite { commits: vec![row(0, "gone")], ..Rewrite::default() };
    let outcome = store.rewrite(id, 0, rewrite()).await;
    assert!(matches!(outcome, Err(Error::CopiesLeft { .. })), "{outcome:?}");
    assert_eq!(store.commits(id, None).await.unwrap()[0].body, b"gone");
    older.rollback().await.unwrap();
    store.rewrite(id, 0, rewrite()).await.unwrap();
}
