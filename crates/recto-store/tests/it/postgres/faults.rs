//! Killed servers and broken connections: no commit is lost, none is stored twice.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use recto_store::{ConversationId, Error, PostgresOptions, PostgresStore, Store};
use testserver::{Cut, PostgresServer, Proxy};

use super::{commit, create, keyed, open, texts, version};

/// Applies a request once, as a client with a key would: after each failure it looks for the key first.
async fn apply(store: &PostgresStore, id: ConversationId, text: &str, unknown: &AtomicU32) {
    let mut newest = None;
    loop {
        let at = match newest {
            Some(at) => at,
            None => match store.key(id, text).await {
                Ok(Some(_)) => return,
                Ok(None) => match store.commits(id, None).await {
                    Ok(rows) => rows.last().unwrap().head.version,
                    Err(_) => continue,
                },
                Err(_) => continue,
            },
        };
        newest = None;
        match store.commit(keyed(id, at + 1, text)).await {
            Ok(()) => return,
            Err(Error::VersionConflict { current, .. }) => newest = Some(current),
            Err(Error::UnknownOutcome) => {
                unknown.fetch_add(1, Ordering::SeqCst);
            }
            Err(Error::Failed { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_under_load_stores_every_commit_once() {
    const WRITERS: usize = 8;
    let server = Arc::new(PostgresServer::start());
    let address = server.database();
    let machines = [Arc::new(open(&address).await), Arc::new(open(&address).await)];
    let id = create(&*machines[0], "shared").await;
    let (over, unknown) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let tasks: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let store = Arc::clone(&machines[writer % 2]);
            let (over, unknown) = (Arc::clone(&over), Arc::clone(&unknown));
            tokio::spawn(async move {
                let mut acknowledged = Vec::new();
                while !over.load(Ordering::SeqCst) {
                    let text = format!("writer {writer} request {}", acknowledged.len());
                    apply(&store, id, &text, &unknown).await;
                    acknowledged.push(text);
                }
                acknowledged
            })
        })
        .collect();
    let kills = Arc::clone(&server);
    tokio::task::spawn_blocking(move || {
        for _ in 0..2 {
            std::thread::sleep(Duration::from_millis(200));
            kills.kill();
            kills.restart();
        }
        std::thread::sleep(Duration::from_millis(100));
    })
    .await
    .unwrap();
    over.store(true, Ordering::SeqCst);
    let mut acknowledged = Vec::new();
    for task in tasks {
        acknowledged.extend(task.await.unwrap());
    }
    let stored = texts(&*machines[1], id).await;
    let once: BTreeSet<&String> = stored.iter().collect();
    assert_eq!(once.len(), stored.len(), "no commit is stored twice");
    assert_eq!(once, acknowledged.iter().collect(), "the stored commits are the acknowledged ones");
    assert!(stored.len() > 2 * WRITERS, "there are commits between the kills: {}", stored.len());
    for text in &stored {
        assert!(machines[0].key(id, text).await.unwrap().is_some());
    }
}

/// A server, a proxy before it, and a store that uses the proxy.
async fn behind_a_proxy() -> (Proxy, PostgresStore, String) {
    let server = PostgresServer::shared();
    let address = server.database();
    let proxy = Proxy::to(server.port());
    let through = address.replace(&server.port().to_string(), &proxy.port().to_string());
    let store = open(&through).await;
    (proxy, store, address)
}

#[tokio::test]
async fn a_connection_cut_at_acceptance_is_resolved_without_a_key() {
    let (proxy, store, _) = behind_a_proxy().await;
    let id = create(&store, "cut").await;
    for (at, cut) in (1..).zip([Cut::BeforeTheServer, Cut::BeforeTheClient]) {
        let text = format!("sign {at}");
        proxy.cut_at(text.as_bytes(), cut);
        store.commit(commit(id, at, &text)).await.unwrap();
        assert_eq!(proxy.cuts(), at);
        assert_eq!(texts(&store, id).await.len(), at as usize);
    }
}

#[tokio::test]
async fn a_cut_at_the_creation_of_a_conversation_is_resolved() {
    let (proxy, store, _) = behind_a_proxy().await;
    for (number, cut) in (1..).zip([Cut::BeforeTheServer, Cut::BeforeTheClient]) {
        let name = format!("conversation {number}");
        proxy.cut_at(name.as_bytes(), cut);
        let id = create(&store, &name).await;
        assert_eq!(store.find(&super::tenant(), &name).await.unwrap().unwrap().id, id);
        assert_eq!(proxy.cuts(), number);
    }
}

#[tokio::test]
async fn a_cut_while_rows_are_packed_is_resolved() {
    let (proxy, store, _) = behind_a_proxy().await;
    let id = create(&store, "cut").await;
    for (at, cut) in (1..).zip([Cut::BeforeTheServer, Cut::BeforeTheClient]) {
        let mut commit = commit(id, at, "text");
        let pages =
            vec![recto_store::pack_records(at - 1, [("packed", recto_store::Link([0; 32]))])];
        let rows = store.commits(id, None).await.unwrap();
        let rows = Some(vec![rows[0].body.clone()]);
        commit.seal = Some(recto_store::Seal { below: at, pages, rows });
        proxy.cut_at(b"COMMIT", cut);
        store.commit(commit).await.unwrap();
        assert_eq!(proxy.cuts(), at);
        assert_eq!(version(&store, id).await, at);
        let pages = store.pages(id, recto_store::PageKind::Records, 0..9, true).await.unwrap();
        assert_eq!(pages.len(), at as usize);
    }
}

#[tokio::test]
async fn an_outcome_is_unknown_if_the_conversation_was_removed_after_the_cut() {
    let (proxy, store, address) = behind_a_proxy().await;
    let other = open(&address).await;
    let id = create(&store, "cut").await;
    let lineage = vec![recto_store::Ancestor { id, versions: 1, entries: 1 }];
    other.create(recto_store::NewConversation { lineage, ..super::new("fork") }).await.unwrap();
    proxy.cut_at(b"unheard", Cut::BeforeTheClient);
    proxy.refuse(true);
    let (ours, removed) = tokio::join!(store.commit(commit(id, 1, "unheard")), async {
        while proxy.cuts() == 0 || version(&other, id).await == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let removed = other.remove(&super::tenant(), "cut").await;
        proxy.refuse(false);
        removed
    });
    removed.unwrap();
    // The row exists, and its attempt is not known any more.
    assert_eq!(version(&other, id).await, 1);
    assert_eq!(ours, Err(Error::UnknownOutcome));
}

#[tokio::test]
async fn a_commit_of_another_writer_after_the_cut_is_not_taken_for_the_own_one() {
    let (proxy, store, address) = behind_a_proxy().await;
    let other = open(&address).await;
    let id = create(&store, "cut").await;
    // The same request, so that the link is the same too.
    proxy.cut_at(b"the same", Cut::BeforeTheServer);
    proxy.refuse(true);
    let (ours, theirs) = tokio::join!(store.commit(commit(id, 1, "the same")), async {
        while proxy.cuts() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let theirs = other.commit(commit(id, 1, "the same")).await;
        proxy.refuse(false);
        theirs
    });
    theirs.unwrap();
    assert_eq!(ours, Err(Error::VersionConflict { expected: 0, current: 1 }));
}

#[tokio::test]
async fn an_unknown_outcome_is_reported_and_can_be_found_by_its_key() {
    let (proxy, store, address) = behind_a_proxy().await;
    let id = create(&store, "cut").await;
    proxy.cut_at(b"unheard", Cut::BeforeTheClient);
    proxy.refuse(true);
    let outcome = store.commit(keyed(id, 1, "unheard")).await;
    assert_eq!(outcome, Err(Error::UnknownOutcome));
    let other = open(&address).await;
    assert_eq!(other.key(id, "unheard").await.unwrap().unwrap().version, 1);
    proxy.refuse(false);
    assert_eq!(store.key(id, "unheard").await.unwrap().unwrap().version, 1);
}

#[tokio::test]
async fn an_unreachable_server_is_named_in_the_error() {
    let opened = PostgresStore::open("postgres://127.0.0.1:1/none", Default::default()).await;
    let error = opened.unwrap_err();
    assert_eq!(error.code(), "storage");
    let expected = "the store failed while opening the store: \
                    the server cannot be reached; nothing was changed";
    assert_eq!(error.to_string(), expected);
}

/// A trigger simulates a busy cluster.
#[tokio::test]
async fn conflicts_of_transactions_are_retried() {
    let server = PostgresServer::shared();
    let address = server.database();
    let store = open(&address).await;
    let id = create(&store, "busy").await;
    let database = address.rsplit('/').next().unwrap();
    server.sql(
        database,
        "CREATE SEQUENCE tries;
         CREATE FUNCTION collide() RETURNS trigger LANGUAGE plpgsql AS $$
         DECLARE tried bigint := nextval('tries');
         BEGIN
             IF tried % 3 = 1 THEN RAISE 'busy' USING ERRCODE = '40001'; END IF;
             IF tried % 3 = 2 THEN RAISE 'busy' USING ERRCODE = '40P01'; END IF;
             RETURN NEW;
         END $$;
         CREATE TRIGGER collide BEFORE INSERT ON recto_commits
         FOR EACH ROW EXECUTE FUNCTION collide()",
    );
    for at in 1..=3 {
        store.commit(commit(id, at, "text")).await.unwrap();
    }
    assert_eq!(server.sql(database, "SELECT last_value FROM tries"), "9");

    server.sql(
        database,
        "CREATE OR REPLACE FUNCTION collide() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN RAISE 'a secret: %', NEW.body USING ERRCODE = '53100', DETAIL = 'secret'; END $$",
    );
    let failed = store.commit(commit(id, 4, "text")).await.unwrap_err();
    let expected = "the store failed while accepting a request: \
                    the server's disk is full (SQLSTATE 53100); nothing was changed";
    assert_eq!(failed.to_string(), expected);
    assert!(!format!("{failed:?}").contains("secret"));
}

#[tokio::test]
async fn a_row_that_stays_locked_is_not_waited_for_without_an_end() {
    let address = PostgresServer::shared().database();
    let store = open(&format!("{address}?lock_timeout=100ms")).await;
    let id = create(&store, "a").await;
    let (client, connection) =
        tokio_postgres::connect(&address, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("BEGIN; SELECT * FROM recto_commits FOR UPDATE").await.unwrap();
    let refused = store.commit(commit(id, 1, "late")).await.unwrap_err();
    assert!(matches!(refused, Error::Failed { .. }), "nothing has changed: {refused}");
    assert_eq!(refused.code(), "storage");
    assert!(refused.to_string().contains("locked by another session"), "{refused}");
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(version(&store, id).await, 0);
    store.commit(commit(id, 1, "in time")).await.unwrap();
    assert_eq!(version(&store, id).await, 1);
}

#[tokio::test]
async fn a_locked_table_is_no_damage() {
    let address = PostgresServer::shared().database();
    let store = open(&format!("{address}?lock_timeout=100ms")).await;
    create(&store, "a").await;
    let (client, connection) =
        tokio_postgres::connect(&address, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("BEGIN; LOCK TABLE recto_commits IN ACCESS EXCLUSIVE MODE").await.unwrap();
    for refused in [store.check().await.map(drop), store.survey().await.map(drop)] {
        let refused = refused.unwrap_err();
        assert!(!refused.is_damage() && refused.code() == "storage", "{refused}");
        assert!(refused.to_string().contains("locked by another session"), "{refused}");
    }
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(store.check().await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_statement_has_a_time_limit_except_for_work_on_whole_tables() {
    let address = PostgresServer::shared().database();
    // Creating the tables and the conversation may take long on a busy machine.
    let unlimited = PostgresStore::open(&address, PostgresOptions::default()).await.unwrap();
    let id = create(&unlimited, "a").await;
    let statement_timeout = Duration::from_millis(250);
    let options = PostgresOptions { statement_timeout, ..PostgresOptions::default() };
    let store = PostgresStore::open(&address, options).await.unwrap();
    let (client, connection) =
        tokio_postgres::connect(&address, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("BEGIN; LOCK TABLE recto_commits").await.unwrap();
    let refused = store.commits(id, None).await.unwrap_err();
    assert!(refused.to_string().contains("statement timeout"), "{refused}");
    let checking = tokio::spawn(async move { store.check().await });
    tokio::time::sleep(statement_timeout + Duration::from_millis(100)).await;
    assert!(!checking.is_finished(), "it waits for longer than a statement may");
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(checking.await.unwrap(), Ok(Vec::new()));
}

#[tokio::test]
async fn opening_a_store_on_a_frozen_server_fails_within_the_time_limit() {
    let server = PostgresServer::shared();
    let proxy = Proxy::to(server.port());
    let address = server.database();
    let through = address.replace(&server.port().to_string(), &proxy.port().to_string());
    proxy.freeze(true);
    let through = format!("{through}?connect_timeout=2&answer_timeout=500ms");
    let start = Instant::now();
    let refused = PostgresStore::open(&through, PostgresOptions::default()).await.unwrap_err();
    let took = start.elapsed();
    proxy.freeze(false);
    assert!(refused.to_string().contains("did not answer within 0.5 s"), "{refused}");
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_not_waited_for_without_an_end() {
    let server = PostgresServer::shared();
    let proxy = Proxy::to(server.port());
    let address = server.database();
    let name = address.rsplit('/').next().unwrap();
    let through =
        server.address(name).replace(&server.port().to_string(), &proxy.port().to_string());
    let answer_timeout = Duration::from_millis(300);
    let options = PostgresOptions { answer_timeout, ..PostgresOptions::default() };
    let store = PostgresStore::open(&through, options).await.unwrap();
    let id = create(&store, "a").await;
    store.commits(id, None).await.unwrap();
    proxy.freeze(true);
    let unread = store.commits(id, None).await.unwrap_err();
    assert!(unread.to_string().contains("did not answer within 0.3 s"), "{unread}");
    proxy.freeze(false);
    store.commits(id, None).await.unwrap();
    proxy.freeze(true);
    let unknown = store.commit(commit(id, 1, "perhaps")).await.unwrap_err();
    assert_eq!((unknown.clone(), unknown.code()), (Error::UnknownOutcome, "storage"));
    proxy.freeze(false);
    // The server may still accept what it has received.
    match store.commit(commit(id, 2, "next")).await {
        Ok(()) => assert_eq!(version(&store, id).await, 2),
        Err(Error::VersionConflict { .. }) => assert!(version(&store, id).await < 2),
        Err(other) => panic!("{other}"),
    }
}

/// The work has no time limit of its own, so the server is asked on another connection whether it is there.
#[tokio::test]
async fn work_on_whole_tables_ends_if_the_server_does_not_answer() {
    let server = PostgresServer::shared();
    let proxy = Proxy::to(server.port());
    let address = server.database();
    let through = address.replace(&server.port().to_string(), &proxy.port().to_string());
    let answer_timeout = Duration::from_millis(500);
    let options = PostgresOptions { answer_timeout, ..PostgresOptions::default() };
    let store = PostgresStore::open(&through, options).await.unwrap();
    create(&store, "a").await;
    let (client, connection) =
        tokio_postgres::connect(&address, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    for work in ["check", "clean", "read the search index"] {
        client.batch_execute("BEGIN; LOCK TABLE recto_commits").await.unwrap();
        let working = async {
            match work {
                "check" => store.check().await.map(drop),
                "clean" => store.clean().await,
                _ => store.indexed_words(&super::tenant()).await.map(drop),
            }
        };
        let mut working = std::pin::pin!(working);
        if work != "read the search index" {
            let early = tokio::time::timeout(answer_timeout * 3, &mut working).await;
            assert!(early.is_err(), "{work}: the server answers, so it may take longer: {early:?}");
        }
        proxy.freeze(true);
        let ended = tokio::time::timeout(Duration::from_secs(20), &mut working).await;
        let refused = ended.unwrap_or_else(|_| panic!("{work} has no end")).unwrap_err();
        assert!(refused.to_string().contains("did not answer within 0.5 s"), "{work}: {refused}");
        assert_eq!(matches!(refused, Error::CopiesLeft { .. }), work == "clean", "{refused}");
        proxy.freeze(false);
        client.batch_execute("ROLLBACK").await.unwrap();
    }
    assert_eq!(store.check().await, Ok(Vec::new()));
}
